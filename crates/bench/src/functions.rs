//! Times every function of InfluxQL on InfluxDB and Nyala, over the same data; or common questions over what
//! agents of services send, which is regular in nothing, or over many hosts, each with few rows.
//!
//! One connection asks each query several times; the median counts. Functions that one of them does not have, or that the other
//! refuses for these operands, are shown without a figure.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use jiff::Timestamp;

use crate::compare::create_database;
use crate::http::{Client, target};
use crate::latency::Latencies;
use crate::load::{Format, LoadOptions, load, note};
use crate::system::System;
use crate::workload::{Spec, Workload};

mod history;

pub use history::{Slower, append_functions};

const DB: &str = "benchmark";
/// An error is told within so many bytes.
const ERROR_BYTES: usize = 200;

/// How to compare.
#[derive(Debug, Clone)]
pub struct FunctionsOptions {
    /// What is loaded.
    pub data: Spec,
    /// The systems, in the order of their columns.
    pub systems: Vec<System>,
    /// How often each query is asked.
    pub repeats: u32,
    /// How long a server rests between load and queries.
    pub rest: Duration,
}

/// What one function took: milliseconds a query on each system; `None`: the system refuses it.
#[derive(Debug, Clone)]
pub struct FunctionFigures {
    /// The function with its place among those of its kind.
    pub name: String,
    /// Medians, in milliseconds.
    pub median_ms: Vec<Option<f64>>,
}

/// Loads and asks one system after the other.
///
/// # Errors
/// When one is not installed, does not start or refuses the data.
pub fn functions(options: &FunctionsOptions) -> Result<Vec<FunctionFigures>> {
    let questions = questions(&options.data)?;
    let mut figures: Vec<FunctionFigures> = questions
        .iter()
        .map(|(name, _)| FunctionFigures { name: name.clone(), median_ms: Vec::new() })
        .collect();
    for system in &options.systems {
        if !system.is_installed() {
            bail!("{}", system.how_to_install());
        }
        note(&format!("== {}", system.name()));
        let directory = tempfile::tempdir().context("no place for the server's files")?;
        let medians = measure(system, directory.path(), &questions, options)
            .with_context(|| system.name().to_owned())?;
        for (figures, median) in figures.iter_mut().zip(medians) {
            figures.median_ms.push(median);
        }
    }
    Ok(figures)
}

fn measure(
    system: &System,
    directory: &Path,
    questions: &[(String, String)],
    options: &FunctionsOptions,
) -> Result<Vec<Option<f64>>> {
    // Each question is asked several times for what answering it takes, not for the same answer again.
    let server = system.start_with(directory, &[("NYALA_QUERY_CACHE_SIZE", "0".to_owned())])?;
    create_database(server.url(), DB)?;
    let loading = LoadOptions {
        url: server.url().to_owned(),
        target: target("/write", &[("db", DB)]),
        format: Format::Lines,
        // Rows of a host come in order, as its agent sends them.
        workers: 1,
        batch_rows: 10_000,
        rows_per_second: None,
        duration_max: None,
        pregenerate: false,
        pid: None,
        progress: false,
    };
    load(&options.data, &loading)?;
    std::thread::sleep(options.rest);
    let mut client = Client::new(server.url())?;
    let ask = |(_, query): &(String, String)| median_ms(&mut client, query, options.repeats);
    questions.iter().map(ask).collect()
}

/// The median of a query's times; `None` if it is refused.
fn median_ms(client: &mut Client, query: &str, repeats: u32) -> Result<Option<f64>> {
    let target = target("/query", &[("db", DB), ("epoch", "ns"), ("q", query)]);
    let mut latencies = Latencies::default();
    for _ in 0..repeats.max(1) {
        let started = Instant::now();
        let response = client.get(&target)?;
        let taken = started.elapsed();
        let head = &response.body[..response.body.len().min(ERROR_BYTES)];
        let head = String::from_utf8_lossy(head);
        if !response.is_success() || head.contains("\"error\"") {
            return Ok(None);
        }
        if !head.contains("\"series\"") {
            bail!("nothing is found by {query}");
        }
        latencies.record(taken);
    }
    Ok(Some(latencies.quantile_ms(0.5)))
}

/// The queries with their names.
fn questions(data: &Spec) -> Result<Vec<(String, String)>> {
    let time = |ns: i64| -> Result<Timestamp> { Ok(Timestamp::from_nanosecond(i128::from(ns))?) };
    let range = format!("time >= '{}' AND time < '{}'", time(data.start_ns)?, time(data.end_ns)?);
    let mut all = Vec::new();
    if data.workload == Workload::Services {
        for (select, rest) in OF_SERVICES {
            let query = format!("SELECT {select} FROM service WHERE {range}{rest}");
            all.push((format!("{select}{rest}"), query));
        }
        return Ok(all);
    }
    if data.scale >= MANY_HOSTS {
        for (select, rest) in OF_MANY_HOSTS {
            let query = format!("SELECT {select} FROM cpu WHERE {range}{rest}");
            all.push((format!("{select}{rest}"), query));
        }
        return Ok(all);
    }
    for (place, group, calls) in CLASSES {
        for call in calls {
            let name =
                if place.is_empty() { (*call).to_owned() } else { format!("{call}, {place}") };
            all.push((name, format!("SELECT {call} FROM cpu WHERE {range} GROUP BY {group}")));
        }
    }
    Ok(all)
}

/// What is asked about services: what is selected, and what follows the range of time.
const OF_SERVICES: [(&str, &str); 30] = [
    ("last(*)", " GROUP BY host"),
    ("last(latency), last(share), last(message)", " GROUP BY host"),
    ("last(latency), state", " GROUP BY host"),
    ("last(message)", " GROUP BY host"),
    ("first(message), slow", " GROUP BY host"),
    ("last(latency)", " AND state = 'failed' GROUP BY host"),
    ("last(latency)", " AND slow = true GROUP BY host"),
    ("*", " AND host = 'host_7' ORDER BY time DESC LIMIT 10"),
    ("latency", " ORDER BY time DESC LIMIT 10"),
    ("latency, share, state", " AND host = 'host_7'"),
    ("message", " AND host = 'host_7'"),
    ("message", " AND message =~ /took:999ms/"),
    ("count(*)", ""),
    ("count(message)", " GROUP BY time(1h)"),
    ("count(state)", " AND state = 'failed' GROUP BY time(10m)"),
    ("count(slow)", " AND slow = false GROUP BY time(10m)"),
    ("mean(latency)", " GROUP BY time(10m)"),
    ("mean(latency)", " GROUP BY time(1m), host"),
    ("mean(latency)", " AND host = 'host_7' GROUP BY time(1m)"),
    ("max(latency)", " AND rack = 'r3' GROUP BY time(5m), host"),
    ("mean(share)", " GROUP BY time(10m), host"),
    ("sum(latency)", " AND slow = true AND state != 'running' GROUP BY time(10m)"),
    ("non_negative_derivative(max(requests), 1s)", " GROUP BY time(1m), host"),
    ("percentile(latency, 99)", " GROUP BY time(10m)"),
    ("percentile(latency, 99), median(latency), stddev(latency)", " GROUP BY host"),
    ("distinct(state)", ""),
    ("count(distinct(latency))", " GROUP BY host"),
    ("mode(state)", " GROUP BY time(10m)"),
    ("top(latency, host, 5)", ""),
    ("first(latency), last(latency), min(latency), max(latency)", " GROUP BY time(10m), host"),
];

/// From so many hosts on it is asked what is asked of many.
const MANY_HOSTS: u64 = 10_000;

/// What is asked about many hosts: what is selected, and what follows the range of time.
const OF_MANY_HOSTS: [(&str, &str); 13] = [
    ("mean(usage_user)", ""),
    ("mean(usage_user)", " GROUP BY time(10m)"),
    ("max(*)", ""),
    ("mean(usage_user)", " GROUP BY region"),
    ("mean(usage_user)", " GROUP BY time(10m), region"),
    ("mean(usage_user)", " AND region = 'eu-west-1' GROUP BY time(10m)"),
    ("mean(usage_user)", " AND hostname =~ /^host_1.*7$/ GROUP BY time(10m)"),
    ("count(usage_user)", " AND usage_user > 90"),
    ("top(usage_user, 10)", ""),
    ("percentile(usage_user, 99)", ""),
    ("last(usage_user)", " AND region = 'eu-west-1' GROUP BY hostname"),
    ("*", " LIMIT 10"),
    ("*", " ORDER BY time DESC LIMIT 10"),
];

/// Where functions stand, by what the query is grouped, and their calls.
const CLASSES: [(&str, &str, &[&str]); 5] = [
    (
        "time(1h)",
        "time(1h), hostname",
        &[
            "count(usage_user)",
            "count(distinct(usage_user))",
            "sum(usage_user)",
            "mean(usage_user)",
            "median(usage_user)",
            "mode(usage_user)",
            "spread(usage_user)",
            "stddev(usage_user)",
            "integral(usage_user)",
            "distinct(usage_user)",
            "min(usage_user)",
            "max(usage_user)",
            "first(usage_user)",
            "last(usage_user)",
            "percentile(usage_user, 95)",
            "top(usage_user, 3)",
            "bottom(usage_user, 3)",
            "sample(usage_user, 3)",
        ],
    ),
    (
        "whole day",
        "hostname",
        &[
            "mean(usage_user)",
            "max(usage_user)",
            "last(usage_user)",
            "last(*)",
            "last(usage_user), usage_system",
            "percentile(usage_user, 95)",
            "mode(usage_user)",
            "count(distinct(usage_user))",
            "top(usage_user, 3)",
        ],
    ),
    (
        "every row",
        "hostname",
        &[
            "usage_user",
            "derivative(usage_user, 1s)",
            "non_negative_derivative(usage_user, 1s)",
            "difference(usage_user)",
            "non_negative_difference(usage_user)",
            "elapsed(usage_user, 1s)",
            "moving_average(usage_user, 10)",
            "cumulative_sum(usage_user)",
            "abs(usage_user)",
            "acos(usage_user / 100.0)",
            "asin(usage_user / 100.0)",
            "atan(usage_user / 100.0)",
            "atan2(usage_user, usage_system)",
            "ceil(usage_user / 100.0)",
            "cos(usage_user / 100.0)",
            "exp(usage_user / 100.0)",
            "floor(usage_user / 100.0)",
            "ln(usage_user + 1.0)",
            "log(usage_user + 1.0, 3)",
            "log2(usage_user + 1.0)",
            "log10(usage_user + 1.0)",
            "pow(usage_user, 2)",
            "round(usage_user / 100.0)",
            "sin(usage_user / 100.0)",
            "sqrt(usage_user)",
            "tan(usage_user / 100.0)",
        ],
    ),
    (
        "of means, time(1m)",
        "time(1m), hostname",
        &[
            "derivative(mean(usage_user), 1m)",
            "difference(mean(usage_user))",
            "moving_average(mean(usage_user), 10)",
            "cumulative_sum(mean(usage_user))",
            "exponential_moving_average(mean(usage_user), 10)",
            "double_exponential_moving_average(mean(usage_user), 10)",
            "triple_exponential_moving_average(mean(usage_user), 10)",
            "triple_exponential_derivative(mean(usage_user), 10)",
            "relative_strength_index(mean(usage_user), 10)",
            "kaufmans_efficiency_ratio(mean(usage_user), 10)",
            "kaufmans_adaptive_moving_average(mean(usage_user), 10)",
            "chande_momentum_oscillator(mean(usage_user), 10)",
        ],
    ),
    (
        "of means, time(1h)",
        "time(1h), hostname",
        &["holt_winters(mean(usage_user), 6, 4)", "holt_winters_with_fit(mean(usage_user), 6, 4)"],
    ),
];

/// The figures as a Markdown table; the ratio is that of the last system to the first.
#[must_use]
pub fn functions_table(systems: &[System], figures: &[FunctionFigures]) -> String {
    let names: Vec<String> =
        systems.iter().map(|system| format!(" {} ms |", system.name())).collect();
    let mut text = format!("| function |{} ratio |\n|---|", names.concat());
    text.push_str(&"---|".repeat(systems.len() + 1));
    text.push('\n');
    let cell = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    for figure in figures {
        let cells: Vec<String> =
            figure.median_ms.iter().map(|value| format!(" {} |", cell(*value))).collect();
        let ratio = match (figure.median_ms.first(), figure.median_ms.last()) {
            (Some(Some(first)), Some(Some(last))) => Some(last / first),
            _ => None,
        };
        writeln!(text, "| {} |{} {} |", figure.name, cells.concat(), cell(ratio))
            .expect("BUG: text can always grow");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_server;

    #[test]
    fn refused_queries_have_no_figure() {
        let url = fake_server::start(|received| {
            let body = match received.target.contains("mean") {
                true => r#"{"results":[{"series":[]}]}"#,
                false => r#"{"results":[{"error":"undefined function"}]}"#,
            };
            (200, body.to_owned())
        });
        let mut client = Client::new(&url).unwrap();
        assert!(median_ms(&mut client, "mean", 2).unwrap().is_some());
        assert!(median_ms(&mut client, "other", 2).unwrap().is_none());
    }

    #[test]
    fn every_function_is_asked_once_in_its_place() {
        let questions = questions(&Spec::cpu_only(1, 24)).unwrap();
        assert!(questions.len() > 55);
        let (name, query) = &questions[0];
        assert_eq!(name, "count(usage_user), time(1h)");
        assert_eq!(
            query,
            "SELECT count(usage_user) FROM cpu WHERE time >= '2016-01-01T00:00:00Z' AND \
             time < '2016-01-02T00:00:00Z' GROUP BY time(1h), hostname"
        );
    }

    #[test]
    fn services_have_questions_of_their_own() {
        let data = Spec { workload: Workload::Services, ..Spec::cpu_only(1, 24) };
        let questions = questions(&data).unwrap();
        let (name, query) = &questions[5];
        assert_eq!(name, "last(latency) AND state = 'failed' GROUP BY host");
        assert_eq!(
            query,
            "SELECT last(latency) FROM service WHERE time >= '2016-01-01T00:00:00Z' AND \
             time < '2016-01-02T00:00:00Z' AND state = 'failed' GROUP BY host"
        );
    }

    #[test]
    fn many_hosts_have_questions_of_their_own() {
        let questions = questions(&Spec::cpu_only(MANY_HOSTS, 1)).unwrap();
        let (name, query) = &questions[11];
        assert_eq!(name, "* LIMIT 10");
        assert_eq!(
            query,
            "SELECT * FROM cpu WHERE time >= '2016-01-01T00:00:00Z' AND \
             time < '2016-01-01T01:00:00Z' LIMIT 10"
        );
    }

    #[test]
    fn the_table_has_the_ratio_of_the_last_to_the_first() {
        let systems = [System::InfluxDb, System::Nyala("nyala".into())];
        let figure = |median_ms| FunctionFigures { name: "f".to_owned(), median_ms };
        let figures = [figure(vec![Some(2.0), Some(0.5)]), figure(vec![None, Some(1.0)])];
        assert_eq!(
            functions_table(&systems, &figures),
            "| function | InfluxDB ms | Nyala ms | ratio |\n|---|---|---|---|\n| f | 2.00 | 0.50 | 0.25 |\n\
             | f | - | 1.00 | - |\n"
        );
    }
}
