//! Times questions over whole columns, which general columnar stores are made for, on QuestDB, ClickHouse and Nyala, and
//! questions about trucks, on InfluxDB, QuestDB and Nyala.
//!
//! All have the same rows, and have settled. One connection asks each question several times; the median counts.
//! Where an answer is one number, the systems must agree on it. What a language cannot ask is shown without a figure.

mod long;
mod short;
mod trucks;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use jiff::Timestamp;

use crate::compare::{Settling, dialect, load_options_of, prepare, settle};
use crate::http::{Client, target};
use crate::json::Json;
use crate::latency::Latencies;
use crate::load::{load, note};
use crate::query_run::{Dialect, check, is_empty};
use crate::system::System;
use crate::workload::Spec;

const LOAD_WORKERS: usize = 2;
const BATCH_ROWS: u64 = 10_000;
/// A question that has taken longer than this is not asked again.
const QUESTION_TIME_MAX: Duration = Duration::from_secs(5);

/// Which questions are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Questions {
    /// Over a few long series.
    Long,
    /// Over many short ones.
    Short,
    /// Over the trucks of the iot workload.
    Trucks,
}

/// How to compare.
#[derive(Debug, Clone)]
pub struct ScansOptions {
    /// What is loaded: iot for trucks, otherwise cpu-only.
    pub data: Spec,
    /// What is asked.
    pub questions: Questions,
    /// The systems, in the order of their columns; the last one is compared with the best of the others.
    pub systems: Vec<System>,
    /// How often each question is asked.
    pub repeats: u32,
}

/// What one question took: milliseconds on each system; `None`: its language cannot ask it.
#[derive(Debug, Clone)]
pub struct ScanFigures {
    /// What is asked.
    pub name: &'static str,
    /// Medians, in milliseconds.
    pub median_ms: Vec<Option<f64>>,
    /// The answer of each system, where it is one number.
    numbers: Vec<Option<f64>>,
}

/// A question.
struct Question {
    name: &'static str,
    influxql: InfluxQl,
    /// `None`: the language cannot ask it.
    questdb: Option<&'static str>,
    /// `None`: it has no table for the rows.
    clickhouse: Option<&'static str>,
    /// Whether the answer is one number.
    is_number: bool,
}

/// How InfluxQL asks.
enum InfluxQl {
    /// Of cpu: what is selected, and what follows the range of time.
    Cpu { select: &'static str, rest: &'static str },
    /// The statement, with `{time}` where the range of time belongs.
    Statement(&'static str),
}

const fn question(
    name: &'static str,
    (select, rest): (&'static str, &'static str),
    questdb: Option<&'static str>,
    clickhouse: &'static str,
) -> Question {
    let influxql = InfluxQl::Cpu { select, rest };
    Question { name, influxql, questdb, clickhouse: Some(clickhouse), is_number: false }
}

const fn number(
    name: &'static str,
    influxql: (&'static str, &'static str),
    questdb: Option<&'static str>,
    clickhouse: &'static str,
) -> Question {
    Question { is_number: true, ..question(name, influxql, questdb, clickhouse) }
}

const fn trucks(
    name: &'static str,
    statement: &'static str,
    questdb: Option<&'static str>,
) -> Question {
    let influxql = InfluxQl::Statement(statement);
    Question { name, influxql, questdb, clickhouse: None, is_number: false }
}

const fn trucks_number(
    name: &'static str,
    statement: &'static str,
    questdb: Option<&'static str>,
) -> Question {
    Question { is_number: true, ..trucks(name, statement, questdb) }
}

/// Loads and asks one system after the other.
///
/// # Errors
/// When one is not installed, does not start, refuses the data or a question, or when two disagree.
pub fn scans(options: &ScansOptions) -> Result<Vec<ScanFigures>> {
    let mut figures: Vec<ScanFigures> = options
        .questions
        .list()
        .iter()
        .map(|Question { name, .. }| ScanFigures {
            name,
            median_ms: Vec::new(),
            numbers: Vec::new(),
        })
        .collect();
    for system in &options.systems {
        if !system.is_installed() {
            bail!("{}", system.how_to_install());
        }
        note(&format!("== {}", system.name()));
        measure(system, options, &mut figures).with_context(|| system.name().to_owned())?;
    }
    for ScanFigures { name, numbers, .. } in &figures {
        let known: Vec<f64> = numbers.iter().copied().flatten().collect();
        let agree =
            |a: f64, b: f64| (a - b).abs() <= options.questions.tolerance() * a.abs().max(b.abs());
        if !known.iter().all(|number| agree(*number, known[0])) {
            bail!("the systems disagree on {name}: {known:?}");
        }
    }
    Ok(figures)
}

fn measure(system: &System, options: &ScansOptions, figures: &mut [ScanFigures]) -> Result<()> {
    let directory = tempfile::tempdir().context("no place for the server's files")?;
    // Each question is asked several times for what answering it takes, not for the same answer again.
    let settings =
        [("NYALA_QUERY_CACHE_SIZE", "0".to_owned()), ("NYALA_IDLE_AFTER", "5s".to_owned())];
    let server = system.start_with(directory.path(), &settings)?;
    let dialect = dialect(system);
    prepare(&server, &dialect)?;
    load(&options.data, &load_options_of(&server, &dialect, LOAD_WORKERS, BATCH_ROWS))?;
    note("settling");
    settle(&server, &Settling::QUICK)?;
    let mut client = Client::new(server.url())?;
    for (question, figures) in options.questions.list().iter().zip(figures) {
        let asked = match question.target(&dialect, &options.data)? {
            Some(target) => Some(ask(&mut client, &target, options.repeats)?),
            None => None,
        };
        figures.median_ms.push(asked.as_ref().map(|(median_ms, _)| *median_ms));
        let answer = asked.filter(|_| question.is_number).map(|(_, answer)| answer);
        let number = |answer: Vec<u8>| {
            let number = only_number(&dialect, &answer);
            number.with_context(|| format!("no number: {}", String::from_utf8_lossy(&answer)))
        };
        figures.numbers.push(answer.map(number).transpose()?);
    }
    Ok(())
}

/// The median time of a question in milliseconds, and its answer.
fn ask(client: &mut Client, target: &str, repeats: u32) -> Result<(f64, Vec<u8>)> {
    let mut latencies = Latencies::default();
    let mut answer = Vec::new();
    let begun = Instant::now();
    for _ in 0..repeats.max(1) {
        let started = Instant::now();
        let response = client.get(target)?;
        let taken: Duration = started.elapsed();
        check(target, response.status, response.body)?;
        if is_empty(response.body) {
            bail!("nothing is found by {target}");
        }
        latencies.record(taken);
        answer = response.body.to_vec();
        if begun.elapsed() > QUESTION_TIME_MAX {
            break;
        }
    }
    Ok((latencies.quantile_ms(0.5), answer))
}

impl Questions {
    fn list(self) -> &'static [Question] {
        match self {
            Self::Long => &long::QUESTIONS,
            Self::Short => &short::QUESTIONS,
            Self::Trucks => &trucks::QUESTIONS,
        }
    }

    /// Relative difference of numbers that is none: systems add in orders of their own.
    fn tolerance(self) -> f64 {
        match self {
            Self::Long | Self::Short => 1e-9,
            // QuestDB keeps a row that comes again with other values beside the one before it.
            Self::Trucks => 1e-4,
        }
    }
}

impl Question {
    /// Path and query that ask it; `None` where the language cannot.
    fn target(&self, dialect: &Dialect, data: &Spec) -> Result<Option<String>> {
        let time = |ns: i64| Timestamp::from_nanosecond(i128::from(ns));
        Ok(match dialect {
            Dialect::InfluxQl { db } => {
                let (start, end) = (time(data.start_ns)?, time(data.end_ns)?);
                let range = format!("time >= '{start}' AND time < '{end}'");
                let text = match self.influxql {
                    InfluxQl::Cpu { select, rest } => {
                        format!("SELECT {select} FROM cpu WHERE {range}{rest}")
                    }
                    InfluxQl::Statement(statement) => statement.replace("{time}", &range),
                };
                Some(target("/query", &[("db", db), ("epoch", "s"), ("q", &text)]))
            }
            Dialect::QuestDbSql => self.questdb.map(|sql| target("/exec", &[("query", sql)])),
            Dialect::ClickHouseSql => {
                let Some(sql) = self.clickhouse else { return Ok(None) };
                // By itself it uses half of the processors where two share a core.
                let threads = std::thread::available_parallelism()?.to_string();
                let text = format!("{sql} FORMAT JSONCompact");
                Some(target("/", &[("max_threads", &threads), ("query", &text)]))
            }
            Dialect::PromQl => None,
        })
    }
}

/// The only number of an answer.
fn only_number(dialect: &Dialect, answer: &[u8]) -> Option<f64> {
    let answer = Json::parse(answer).ok()?;
    let first = |json: &Json| match json {
        Json::Array(items) => items.first().cloned(),
        _ => None,
    };
    let last = |json: &Json| match json {
        Json::Array(items) => items.last().cloned(),
        _ => None,
    };
    let rows = match dialect {
        Dialect::InfluxQl { .. } => {
            first(first(answer.get("results")?)?.get("series")?)?.get("values")?.clone()
        }
        Dialect::QuestDbSql => answer.get("dataset")?.clone(),
        Dialect::ClickHouseSql => answer.get("data")?.clone(),
        Dialect::PromQl => return None,
    };
    match last(&first(&rows)?)? {
        Json::Number(text) | Json::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// The figures as a Markdown table, with how many times as long as the last system the best of the others takes.
#[must_use]
pub fn scans_table(systems: &[System], figures: &[ScanFigures]) -> String {
    let names: Vec<String> =
        systems.iter().map(|system| format!(" {} ms |", system.name())).collect();
    let mut text = format!("| question |{} best peer |\n|---|", names.concat());
    text.push_str(&"---|".repeat(systems.len() + 1));
    text.push('\n');
    for ScanFigures { name, median_ms, .. } in figures {
        let cell = |ms: &Option<f64>| ms.map_or(" - |".to_owned(), |ms| format!(" {ms:.2} |"));
        let cells: Vec<String> = median_ms.iter().map(cell).collect();
        let times = median_ms.split_last().and_then(|(ours, others)| {
            let best = others.iter().flatten().copied().min_by(f64::total_cmp)?;
            Some(format!("{:.1} x", best / (*ours)?))
        });
        writeln!(text, "| {name} |{} {} |", cells.concat(), times.as_deref().unwrap_or("-"))
            .expect("BUG: text can always grow");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_asked_in_each_language() {
        let data = Spec::cpu_only(1, 24);
        let asked = |dialect: &Dialect, at: usize| {
            long::QUESTIONS[at]
                .target(dialect, &data)
                .unwrap()
                .map(|target| target.replace('+', "%20"))
        };
        let influxql = asked(&Dialect::InfluxQl { db: "benchmark".to_owned() }, 19).unwrap();
        assert!(influxql.starts_with("/query?db=benchmark&epoch=s&q=SELECT%20sum"), "{influxql}");
        assert!(influxql.ends_with("2016-01-02T00%3A00%3A00Z%27%29"), "{influxql}");
        assert_eq!(asked(&Dialect::QuestDbSql, 11), None);
        let sql = asked(&Dialect::ClickHouseSql, 4).unwrap();
        assert!(
            sql.ends_with("query=SELECT%20avg%28usage_user%29%20FROM%20cpu%20FORMAT%20JSONCompact")
        );
        assert_eq!(asked(&Dialect::PromQl, 4), None);
        let of_trucks = |dialect: &Dialect| {
            let found = trucks::QUESTIONS.iter().map(|question| question.target(dialect, &data));
            found.filter_map(|target| target.unwrap()).collect::<Vec<_>>()
        };
        let influxql = of_trucks(&Dialect::InfluxQl { db: "benchmark".to_owned() });
        assert_eq!(influxql.len(), trucks::QUESTIONS.len());
        assert!(
            influxql.iter().all(|target| target.contains("2016-01-0") && !target.contains('{'))
        );
        assert_eq!(of_trucks(&Dialect::ClickHouseSql), [""; 0]);
    }

    #[test]
    fn refused_and_empty_answers_have_no_figure() {
        let url = crate::fake_server::start(|received| {
            let body = match received.target.as_str() {
                "/refused" => r#"{"results":[{"error":"undefined function"}]}"#,
                "/empty" => r#"{"results":[{"statement_id":0}]}"#,
                _ => r#"{"results":[{"series":[{"values":[[5,7.5]]}]}]}"#,
            };
            (200, body.to_owned())
        });
        let mut client = Client::new(&url).unwrap();
        assert!(ask(&mut client, "/", 2).is_ok());
        for target in ["/refused", "/empty"] {
            assert!(ask(&mut client, target, 2).unwrap_err().to_string().contains(target));
        }
    }

    #[test]
    fn the_only_number_is_found_in_every_answer() {
        let influxql = Dialect::InfluxQl { db: String::new() };
        let answers: [(Dialect, &str); 3] = [
            (influxql.clone(), r#"{"results":[{"series":[{"values":[[5,7.5]]}]}]}"#),
            (Dialect::QuestDbSql, r#"{"query":"","dataset":[[7.5]],"count":1}"#),
            (Dialect::ClickHouseSql, r#"{"meta":[],"data":[["7.5"]]}"#),
        ];
        for (dialect, answer) in answers {
            assert_eq!(only_number(&dialect, answer.as_bytes()), Some(7.5));
        }
        assert_eq!(only_number(&influxql, br#"{"results":[{}]}"#), None);
    }

    #[test]
    fn the_table_tells_how_far_the_best_peer_is_behind() {
        let systems = [System::ClickHouse, System::InfluxDb, System::Nyala("nyala".into())];
        let figure = |median_ms| ScanFigures { name: "mean", median_ms, numbers: Vec::new() };
        let figures =
            [figure(vec![Some(3.0), Some(2.0), Some(0.5)]), figure(vec![None, None, Some(1.0)])];
        assert_eq!(
            scans_table(&systems, &figures),
            "| question | ClickHouse ms | InfluxDB ms | Nyala ms | best peer |\n|---|---|---|---|---|\n\
             | mean | 3.00 | 2.00 | 0.50 | 4.0 x |\n| mean | - | - | 1.00 | - |\n"
        );
    }
}
