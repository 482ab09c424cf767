//! Questions over many short series: hundreds of thousands of hosts, six rows each, every ten minutes.

use super::{Question, number, question};

pub(super) const QUESTIONS: [Question; 22] = [
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
    number(
        "mean",
        ("mean(usage_user)", ""),
        Some("SELECT avg(usage_user) FROM cpu"),
        "SELECT avg(usage_user) FROM cpu",
    ),
    question(
        "mean by 10 minutes",
        ("mean(usage_user)", " GROUP BY time(10m)"),
        Some("SELECT timestamp, avg(usage_user) FROM cpu SAMPLE BY 10m"),
        "SELECT toDateTime(intDiv(toUInt32(time), 600) * 600) AS t, avg(usage_user) FROM cpu GROUP BY t ORDER BY t",
    ),
    question(
        "mean by 10 minutes, another field above 50",
        ("mean(usage_user)", " AND usage_system > 50 GROUP BY time(10m)"),
        Some("SELECT timestamp, avg(usage_user) FROM cpu WHERE usage_system > 50 SAMPLE BY 10m"),
        "SELECT toDateTime(intDiv(toUInt32(time), 600) * 600) AS t, avg(usage_user) FROM cpu WHERE usage_system > 50 GROUP BY t ORDER BY t",
    ),
    question(
        "mean by region",
        ("mean(usage_user)", " GROUP BY region"),
        Some("SELECT region, avg(usage_user) FROM cpu"),
        "SELECT region, avg(usage_user) FROM cpu GROUP BY region ORDER BY region",
    ),
    question(
        "mean by 10 minutes, region and os",
        ("mean(usage_user)", " GROUP BY time(10m), region, os"),
        Some("SELECT timestamp, region, os, avg(usage_user) FROM cpu SAMPLE BY 10m"),
        "SELECT region, os, toDateTime(intDiv(toUInt32(time), 600) * 600) AS t, avg(usage_user) FROM cpu GROUP BY region, os, t ORDER BY region, os, t",
    ),
    question(
        "mean of one region by 10 minutes",
        ("mean(usage_user)", " AND region = 'eu-west-1' GROUP BY time(10m)"),
        Some("SELECT timestamp, avg(usage_user) FROM cpu WHERE region = 'eu-west-1' SAMPLE BY 10m"),
        "SELECT toDateTime(intDiv(toUInt32(time), 600) * 600) AS t, avg(usage_user) FROM cpu WHERE region = 'eu-west-1' GROUP BY t ORDER BY t",
    ),
    question(
        "mean by 10 minutes, hosts by a regular expression",
        ("mean(usage_user)", " AND hostname =~ /^host_1.*7$/ GROUP BY time(10m)"),
        Some(
            "SELECT timestamp, avg(usage_user) FROM cpu WHERE hostname ~ '^host_1.*7$' SAMPLE BY 10m",
        ),
        "SELECT toDateTime(intDiv(toUInt32(time), 600) * 600) AS t, avg(usage_user) FROM cpu WHERE match(hostname, '^host_1.*7$') GROUP BY t ORDER BY t",
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
        "99th percentile (exact)",
        ("percentile(usage_user, 99)", ""),
        None,
        "SELECT quantileExact(0.99)(usage_user) FROM cpu",
    ),
    question(
        "standard deviation by 10 minutes",
        ("stddev(usage_idle)", " GROUP BY time(10m)"),
        Some("SELECT timestamp, stddev_samp(usage_idle) FROM cpu SAMPLE BY 10m"),
        "SELECT toDateTime(intDiv(toUInt32(time), 600) * 600) AS t, stddevSamp(usage_idle) FROM cpu GROUP BY t ORDER BY t",
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
        "mean by host",
        ("mean(usage_user)", " GROUP BY hostname"),
        Some("SELECT hostname, avg(usage_user) FROM cpu"),
        "SELECT hostname, avg(usage_user) FROM cpu GROUP BY hostname ORDER BY hostname",
    ),
    question(
        "greatest by host, one region",
        ("max(usage_user)", " AND region = 'eu-west-1' GROUP BY hostname"),
        Some("SELECT hostname, max(usage_user) FROM cpu WHERE region = 'eu-west-1'"),
        "SELECT hostname, max(usage_user) FROM cpu WHERE region = 'eu-west-1' GROUP BY hostname ORDER BY hostname",
    ),
    number(
        "sum of what is greatest by host",
        ("sum(m) FROM (SELECT max(usage_user) AS m", " GROUP BY hostname)"),
        Some("SELECT sum(m) FROM (SELECT hostname, max(usage_user) m FROM cpu)"),
        "SELECT sum(m) FROM (SELECT hostname, max(usage_user) AS m FROM cpu GROUP BY hostname)",
    ),
    question(
        "ten hosts with the greatest means",
        ("top(m, hostname, 10) FROM (SELECT mean(usage_user) AS m", " GROUP BY hostname)"),
        Some(
            "SELECT * FROM (SELECT hostname, avg(usage_user) m FROM cpu) ORDER BY m DESC LIMIT 10",
        ),
        "SELECT hostname, avg(usage_user) AS m FROM cpu GROUP BY hostname ORDER BY m DESC LIMIT 10",
    ),
    question(
        "rows above 98 in both of two fields",
        ("usage_user, usage_system", " AND usage_user > 98 AND usage_system > 98"),
        Some(
            "SELECT timestamp, usage_user, usage_system FROM cpu WHERE usage_user > 98 AND usage_system > 98",
        ),
        "SELECT time, usage_user, usage_system FROM cpu WHERE usage_user > 98 AND usage_system > 98 ORDER BY time",
    ),
    question(
        "one host's rows",
        ("*", " AND hostname = 'host_777'"),
        Some("SELECT * FROM cpu WHERE hostname = 'host_777'"),
        "SELECT * FROM cpu WHERE hostname = 'host_777' ORDER BY time",
    ),
    question(
        "latest ten rows",
        ("*", " ORDER BY time DESC LIMIT 10"),
        Some("SELECT * FROM cpu ORDER BY timestamp DESC LIMIT 10"),
        "SELECT * FROM cpu ORDER BY time DESC LIMIT 10",
    ),
    number(
        "how many differ of what is greatest by host",
        ("count(distinct(m)) FROM (SELECT max(usage_user) AS m", " GROUP BY hostname)"),
        Some("SELECT count_distinct(m) FROM (SELECT hostname, max(usage_user) m FROM cpu)"),
        "SELECT uniqExact(m) FROM (SELECT hostname, max(usage_user) AS m FROM cpu GROUP BY hostname)",
    ),
];
