//! Figures in Prometheus' text format: of the store, of the server, of the process.

use std::collections::BTreeMap;
use std::fmt::Write;

use store::{Metric, MetricKind};

use super::{Metrics, STATUSES, process};
use crate::routes::Route;

/// Names of all figures start so.
const PREFIX: &str = "nyala_";

/// All figures, one family after another.
pub(crate) fn exposition(metrics: &Metrics, of_store: Vec<Metric>) -> String {
    // A family's samples have to be together, in whatever order they come.
    let mut families: BTreeMap<&'static str, Vec<Metric>> = BTreeMap::new();
    for metric in of_store.into_iter().chain(own(metrics)) {
        families.entry(metric.name).or_default().push(metric);
    }
    let mut out = String::new();
    for (name, members) in &families {
        family(&mut out, name, members);
    }
    out
}

fn family(out: &mut String, name: &str, members: &[Metric]) {
    let Some(first) = members.first() else { return };
    let kind = match first.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram(_) => "histogram",
    };
    let help = first.help.replace('\\', "\\\\").replace('\n', "\\n");
    push(out, format_args!("# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {kind}\n"));
    for metric in members {
        match &metric.kind {
            MetricKind::Counter | MetricKind::Gauge => {
                sample(out, name, "", &labels(metric, None), metric.value);
            }
            MetricKind::Histogram(buckets) => histogram(out, name, metric, buckets),
        }
    }
}

fn histogram(out: &mut String, name: &str, metric: &Metric, buckets: &[(f64, u64)]) {
    let mut count = 0;
    let mut infinite = false;
    for (bound, cumulative) in buckets {
        count = *cumulative;
        infinite |= bound.is_infinite();
        let bound = number(*bound);
        sample(out, name, "_bucket", &labels(metric, Some(&bound)), count as f64);
    }
    if !infinite {
        sample(out, name, "_bucket", &labels(metric, Some("+Inf")), count as f64);
    }
    sample(out, name, "_sum", &labels(metric, None), metric.value);
    sample(out, name, "_count", &labels(metric, None), count as f64);
}

fn sample(out: &mut String, name: &str, suffix: &str, labels: &str, value: f64) {
    push(out, format_args!("{PREFIX}{name}{suffix}{labels} {}\n", number(value)));
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("BUG: a string takes any text");
}

fn labels(metric: &Metric, bound: Option<&str>) -> String {
    let escaped =
        |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let pairs = metric.labels.iter().map(|(key, value)| (*key, value.as_str()));
    let pairs: Vec<String> = pairs
        .chain(bound.map(|bound| ("le", bound)))
        .map(|(key, value)| format!("{key}=\"{}\"", escaped(value)))
        .collect();
    if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
}

/// A value as Prometheus reads it.
fn number(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned()
    } else {
        value.to_string()
    }
}

/// The server's and the process' own figures.
fn own(metrics: &Metrics) -> Vec<Metric> {
    let mut all = of_requests(metrics);
    let counter = |name, help, value: u64| plain(name, help, MetricKind::Counter, value as f64);
    let gauge = |name, help, value: i64| plain(name, help, MetricKind::Gauge, value as f64);
    let m = metrics;
    all.extend([
        gauge("http_requests_active", "Requests being answered.", m.active(&Route::ALL)),
        gauge("http_connections", "Open connections.", m.connections.get()),
        gauge(
            "http_connections_alone",
            "Busy connections that have a thread of their own.",
            m.connections_alone.get(),
        ),
        counter(
            "http_connections_refused_total",
            "Connections closed because there were too many.",
            m.connections_refused.get(),
        ),
        counter(
            "http_authentication_failures_total",
            "Requests whose sender could not say who they are.",
            m.authentication_failures.get(),
        ),
        counter("http_panics_total", "Requests ended by a bug of the server.", m.panics.get()),
        counter("http_received_bytes_total", "Bytes of request bodies.", m.bytes_in.get()),
        counter("http_sent_bytes_total", "Bytes of answers' bodies.", m.bytes_out.get()),
        counter("write_rows_total", "Rows stored.", m.rows_written.get()),
        counter("write_rows_rejected_total", "Rows refused by a rule.", m.rows_rejected.get()),
        counter(
            "write_lines_unparsable_total",
            "Lines that are no line protocol.",
            m.lines_unparsable.get(),
        ),
        counter(
            "write_requests_refused_total",
            "Writes refused because there was no room.",
            m.writes_refused.get(),
        ),
        counter("udp_datagrams_total", "Datagrams received.", m.udp_datagrams.get()),
        counter(
            "udp_datagrams_dropped_total",
            "Datagrams with lines that are no line protocol.",
            m.udp_datagrams_dropped.get(),
        ),
        gauge("queries_active", "Query requests being executed.", m.queries_active.get()),
        counter(
            "queries_refused_total",
            "Query requests refused because there were too many.",
            m.queries_refused.get(),
        ),
        counter("query_statements_total", "Statements executed.", m.statements.get()),
        counter(
            "query_statements_failed_total",
            "Statements that failed.",
            m.statements_failed.get(),
        ),
        counter(
            "query_cache_hits_total",
            "Queries answered with what they were answered before.",
            m.query_cache_hits.get(),
        ),
        counter(
            "retention_partitions_dropped_total",
            "Partitions dropped because they expired.",
            m.partitions_expired.get(),
        ),
        counter(
            "retention_failures_total",
            "Policies whose enforcement failed.",
            m.retention_failures.get(),
        ),
        counter(
            "continuous_query_runs_total",
            "Runs of continuous queries.",
            m.continuous_queries.get(),
        ),
        counter(
            "continuous_query_failures_total",
            "Runs of continuous queries that failed.",
            m.continuous_query_failures.get(),
        ),
        counter(
            "subscription_writes_total",
            "Writes handed to subscriptions.",
            m.subscription_writes.get(),
        ),
        counter(
            "subscription_writes_dropped_total",
            "Writes that subscriptions did not get because too many were waiting.",
            m.subscription_writes_dropped.get(),
        ),
        counter(
            "subscription_rows_total",
            "Rows that destinations of subscriptions took.",
            m.subscription_rows.get(),
        ),
        counter(
            "subscription_failures_total",
            "Writes that destinations of subscriptions did not take.",
            m.subscription_failures.get(),
        ),
    ]);
    for (class, durations) in [("light", &m.light_queries), ("heavy", &m.heavy_queries)] {
        all.push(Metric {
            name: "query_duration_seconds",
            help: "Time to execute the statements of a request, without waiting for a turn.",
            kind: MetricKind::Histogram(durations.cumulative()),
            labels: vec![("class", class.to_owned())],
            value: durations.sum_s(),
        });
    }
    all.extend(of_process(metrics));
    all
}

fn of_requests(metrics: &Metrics) -> Vec<Metric> {
    let mut all = Vec::new();
    for route in Route::ALL {
        let counts = &metrics.requests[route as usize];
        for (status, count) in STATUSES.iter().zip(counts).filter(|(_, count)| count.get() > 0) {
            let status = if *status == 0 { "other".to_owned() } else { status.to_string() };
            let labels = vec![("route", route.label().to_owned()), ("status", status)];
            let help = "Requests answered; status 499: the client went away before.";
            let counter =
                plain("http_requests_total", help, MetricKind::Counter, count.get() as f64);
            all.push(Metric { labels, ..counter });
        }
        let durations = &metrics.durations[route as usize];
        all.push(Metric {
            name: "http_request_duration_seconds",
            help: "Time from the head of a request to the last byte of its answer.",
            kind: MetricKind::Histogram(durations.cumulative()),
            labels: vec![("route", route.label().to_owned())],
            value: durations.sum_s(),
        });
    }
    all
}

fn of_process(metrics: &Metrics) -> Vec<Metric> {
    let uptime_s = metrics.started.elapsed().as_secs_f64();
    let uptime = plain("uptime_seconds", "Time since the start.", MetricKind::Gauge, uptime_s);
    let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    let build = plain("build_info", "The version that runs.", MetricKind::Gauge, 1.0);
    let resident = process::resident_bytes().map(|bytes| {
        let help = "Resident memory of the process.";
        plain("process_resident_memory_bytes", help, MetricKind::Gauge, bytes as f64)
    });
    let cpu = process::cpu_seconds().map(|seconds| {
        let help = "Processor time of the process.";
        plain("process_cpu_seconds_total", help, MetricKind::Counter, seconds)
    });
    let always = [uptime, Metric { labels: version, ..build }];
    always.into_iter().chain(resident).chain(cpu).collect()
}

fn plain(name: &'static str, help: &'static str, kind: MetricKind, value: f64) -> Metric {
    Metric { name, help, kind, labels: Vec::new(), value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::time::Duration;

    #[test]
    fn every_family_is_announced_once_and_every_line_is_well_formed() {
        let metrics = Metrics::default();
        let ok = Some(hyper::StatusCode::OK);
        metrics.request_done(Route::Query, ok, Duration::from_millis(3), 0);
        metrics.request_done(Route::Write, None, Duration::from_millis(3), 0);
        let label = |value: &str| vec![("kind", value.to_owned())];
        let scans =
            |labels| Metric { labels, ..plain("scans", "Scans.", MetricKind::Counter, 1.0) };
        let of_store = vec![
            scans(label("a\"b\\c\nd")),
            plain("zebras", "Far\naway.", MetricKind::Gauge, f64::NAN),
            scans(label("other")),
        ];
        let text = exposition(&metrics, of_store);
        let mut announced = HashSet::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, _) = rest.split_once(' ').unwrap();
                assert!(announced.insert(name.to_owned()), "{name} twice");
                continue;
            }
            if line.starts_with("# HELP nyala_") {
                continue;
            }
            let (series, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
            let name = series.split('{').next().unwrap();
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .filter_map(|suffix| name.strip_suffix(suffix))
                .find(|family| announced.contains(*family))
                .unwrap_or(name);
            assert!(announced.contains(family), "{line}");
        }
        assert!(text.contains("nyala_scans{kind=\"a\\\"b\\\\c\\nd\"} 1\n"));
        assert!(text.contains("nyala_http_requests_total{route=\"/query\",status=\"200\"} 1\n"));
        assert!(text.contains("nyala_http_requests_total{route=\"/write\",status=\"499\"} 1\n"));
        let bucket = "nyala_http_request_duration_seconds_bucket{route=\"/query\",le=\"+Inf\"} 1\n";
        assert!(text.contains(bucket), "{text}");
    }
}
