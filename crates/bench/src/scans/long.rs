//! Questions over a few long series: 100 hosts, three days.

use super::{Question, number, question};

pub(super) const QUESTIONS: [Question; 23] = [
    number(
        "rows above 90",
        ("count(usage_user)", " AND usage_user > 90"),
        Some("SELECT count() FROM cpu WHERE usage_user > 90"),
        "SELECT count() FROM cpu WHERE usage_user > 90",
    ),
    number(
        "rows where one field is above another",
        ("count(usage_user)", " AND usage_user > usage_system"),
        Some("SELECT count() FROM cpu WHERE usage_user > usage_system"),
        "SELECT count() FROM cpu WHERE usage_user > usage_system",
    ),
    question(
        "mean by hour, another field above 50",
        ("mean(usage_user)", " AND usage_system > 50 GROUP BY time(1h)"),
        Some("SELECT timestamp, avg(usage_user) FROM cpu WHERE usage_system > 50 SAMPLE BY 1h"),
        "SELECT toStartOfHour(time) AS t, avg(usage_user) FROM cpu WHERE usage_system > 50 GROUP BY t ORDER BY t",
    ),
    question(
        "four means by host, another field above 20",
        (
            "mean(usage_user), mean(usage_system), mean(usage_idle), mean(usage_nice)",
            " AND usage_irq > 20 GROUP BY hostname",
        ),
        Some(
            "SELECT hostname, avg(usage_user), avg(usage_system), avg(usage_idle), avg(usage_nice) FROM cpu WHERE \
             usage_irq > 20",
        ),
        "SELECT hostname, avg(usage_user), avg(usage_system), avg(usage_idle), avg(usage_nice) FROM cpu WHERE \
         usage_irq > 20 GROUP BY hostname",
    ),
    number(
        "mean",
        ("mean(usage_user)", ""),
        Some("SELECT avg(usage_user) FROM cpu"),
        "SELECT avg(usage_user) FROM cpu",
    ),
    question(
        "mean by hour",
        ("mean(usage_user)", " GROUP BY time(1h)"),
        Some("SELECT timestamp, avg(usage_user) FROM cpu SAMPLE BY 1h"),
        "SELECT toStartOfHour(time) AS t, avg(usage_user) FROM cpu GROUP BY t ORDER BY t",
    ),
    question(
        "mean by minute",
        ("mean(usage_user)", " GROUP BY time(1m)"),
        Some("SELECT timestamp, avg(usage_user) FROM cpu SAMPLE BY 1m"),
        "SELECT toStartOfMinute(time) AS t, avg(usage_user) FROM cpu GROUP BY t ORDER BY t",
    ),
    question(
        "mean by minute and region",
        ("mean(usage_user)", " GROUP BY time(1m), region"),
        Some("SELECT timestamp, region, avg(usage_user) FROM cpu SAMPLE BY 1m"),
        "SELECT region, toStartOfMinute(time) AS t, avg(usage_user) FROM cpu GROUP BY region, t ORDER BY region, t",
    ),
    question(
        "mean by host",
        ("mean(usage_user)", " GROUP BY hostname"),
        Some("SELECT hostname, avg(usage_user) FROM cpu"),
        "SELECT hostname, avg(usage_user) FROM cpu GROUP BY hostname ORDER BY hostname",
    ),
    question(
        "mean by hour, hosts by a regular expression",
        ("mean(usage_user)", " AND hostname =~ /_[0-9]*7$/ GROUP BY time(1h)"),
        Some(
            "SELECT timestamp, avg(usage_user) FROM cpu WHERE hostname ~ '_[0-9]*7$' SAMPLE BY 1h",
        ),
        "SELECT toStartOfHour(time) AS t, avg(usage_user) FROM cpu WHERE match(hostname, '_[0-9]*7$') GROUP BY t \
         ORDER BY t",
    ),
    question(
        "greatest of ten fields",
        ("max(*)", ""),
        Some(
            "SELECT max(usage_user), max(usage_system), max(usage_idle), max(usage_nice), max(usage_iowait), \
             max(usage_irq), max(usage_softirq), max(usage_steal), max(usage_guest), max(usage_guest_nice) FROM cpu",
        ),
        "SELECT max(usage_user), max(usage_system), max(usage_idle), max(usage_nice), max(usage_iowait), \
         max(usage_irq), max(usage_softirq), max(usage_steal), max(usage_guest), max(usage_guest_nice) FROM cpu",
    ),
    number(
        "95th percentile (exact)",
        ("percentile(usage_user, 95)", ""),
        None,
        "SELECT quantileExact(0.95)(usage_user) FROM cpu",
    ),
    question(
        "median by host (exact)",
        ("median(usage_nice)", " GROUP BY hostname"),
        None,
        "SELECT hostname, quantileExact(0.5)(usage_nice) FROM cpu GROUP BY hostname ORDER BY hostname",
    ),
    number(
        "standard deviation",
        ("stddev(usage_idle)", ""),
        Some("SELECT stddev_samp(usage_idle) FROM cpu"),
        "SELECT stddevSamp(usage_idle) FROM cpu",
    ),
    question(
        "standard deviation by hour",
        ("stddev(usage_idle)", " GROUP BY time(1h)"),
        Some("SELECT timestamp, stddev_samp(usage_idle) FROM cpu SAMPLE BY 1h"),
        "SELECT toStartOfHour(time) AS t, stddevSamp(usage_idle) FROM cpu GROUP BY t ORDER BY t",
    ),
    question(
        "ten greatest values",
        ("top(usage_iowait, 10)", ""),
        Some("SELECT timestamp, usage_iowait FROM cpu ORDER BY usage_iowait DESC LIMIT 10"),
        "SELECT time, usage_iowait FROM cpu ORDER BY usage_iowait DESC, time LIMIT 10",
    ),
    question(
        "values that differ",
        ("distinct(usage_irq)", ""),
        Some("SELECT DISTINCT usage_irq FROM cpu"),
        "SELECT DISTINCT usage_irq FROM cpu",
    ),
    question(
        "how many differ, by host",
        ("count(distinct(usage_irq))", " GROUP BY hostname"),
        Some("SELECT hostname, count_distinct(usage_irq) FROM cpu"),
        "SELECT hostname, uniqExact(usage_irq) FROM cpu GROUP BY hostname",
    ),
    question(
        "most frequent value by hour",
        ("mode(usage_guest)", " GROUP BY time(1h)"),
        None,
        "SELECT toStartOfHour(time) AS t, topK(1)(usage_guest) FROM cpu GROUP BY t ORDER BY t",
    ),
    number(
        "sum of what two fields make",
        ("sum(x) FROM (SELECT usage_user + usage_system * 2 AS x", ")"),
        Some("SELECT sum(usage_user + usage_system * 2) FROM cpu"),
        "SELECT sum(usage_user + usage_system * 2) FROM cpu",
    ),
    question(
        "rows above 99, two fields",
        ("usage_user, usage_system", " AND usage_user > 99"),
        Some("SELECT timestamp, usage_user, usage_system FROM cpu WHERE usage_user > 99"),
        "SELECT time, usage_user, usage_system FROM cpu WHERE usage_user > 99 ORDER BY time",
    ),
    question(
        "one host's rows, one field",
        ("usage_softirq", " AND hostname = 'host_7'"),
        Some("SELECT timestamp, usage_softirq FROM cpu WHERE hostname = 'host_7'"),
        "SELECT time, usage_softirq FROM cpu WHERE hostname = 'host_7' ORDER BY time",
    ),
    question(
        "latest ten rows",
        ("*", " ORDER BY time DESC LIMIT 10"),
        Some("SELECT * FROM cpu ORDER BY timestamp DESC LIMIT 10"),
        "SELECT * FROM cpu ORDER BY time DESC LIMIT 10",
    ),
];
