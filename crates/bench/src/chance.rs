//! Asks questions that are put together by chance, and tells which take long for what they read and answer.
//!
//! For finding what nobody thought of: a benchmark's list has the questions that its author had in mind, and those are
//! fast. What the database has is asked of the server, so any data does. A question is held against what its values
//! and its answer should take, against QuestDB with the same data, and against another server (an older build), whose answer must be
//! the same; all are asked in turns. Servers are started, loaded and left as they are by who runs this; Nyala's should have no query cache.

mod question;
mod schema;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::http::{Client, target};
use crate::json::{Json, differences};
use crate::latency::Latencies;
use crate::load::note;
use crate::query_run::check;
use crate::random::Random;
use question::Question;
use schema::{cell, measurements, rows};

/// What any question may take.
const BASE_MS: f64 = 0.15;
/// What a byte of an answer may take.
const BYTE_NS: f64 = 1.0;
/// An answer with all rows of more values is not asked for.
const ROWS_MAX: f64 = 400_000.0;
/// A question that has taken longer than this is not asked again.
const QUESTION_TIME_MAX: Duration = Duration::from_secs(3);
/// Questions in the table, of each order.
const WORST: usize = 15;

/// What to ask of whom.
#[derive(Debug, Clone)]
pub struct ChanceOptions {
    /// The server that is measured.
    pub url: String,
    /// Its database.
    pub db: String,
    /// Another server with the same database, as of an older build.
    pub before: Option<String>,
    /// QuestDB with the same data.
    pub questdb: Option<String>,
    /// The same seed puts the same questions together, over the same data.
    pub seed: u64,
    /// How many questions.
    pub count: u64,
    /// How often each is asked; the median counts.
    pub repeats: u32,
}

/// What one question took.
#[derive(Debug, Clone)]
pub struct ChanceFigure {
    /// The question.
    pub influxql: String,
    /// Median, in milliseconds.
    pub ms: f64,
    /// What its values and its answer should take, in milliseconds.
    pub model_ms: f64,
    /// Of the other server.
    pub before_ms: Option<f64>,
    /// Of QuestDB, where it has words for the question and answers it.
    pub questdb_ms: Option<f64>,
    /// Values of the fields in the range of time.
    pub values: f64,
    /// Of the answer.
    pub bytes: usize,
    /// Whether the other server answers something else.
    pub differs: bool,
}

/// Sums of floats in another order differ by so much of themselves, or less.
const ROUNDING: f64 = 1e-9;

/// Whether answers say something else, beside how their numbers were rounded.
fn is_otherwise(before: &[u8], answer: &[u8]) -> bool {
    let read = |answer| Json::parse(answer).ok();
    before != answer
        && match (read(before), read(answer)) {
            (Some(before), Some(answer)) => !differences(&before, &answer, ROUNDING, 1).is_empty(),
            _ => true,
        }
}

/// Asks, and gives a figure for each question that is answered, with the errors of the others.
///
/// # Errors
/// When a server cannot be reached, or the database has nothing to ask about.
pub fn chance(options: &ChanceOptions) -> Result<(Vec<ChanceFigure>, Vec<String>)> {
    let mut client = Client::new(&options.url)?;
    let mut before = options.before.as_deref().map(Client::new).transpose()?;
    let mut questdb = options.questdb.as_deref().map(Client::new).transpose()?;
    let all = measurements(&mut client, &options.db)?;
    let mut random = Random::new(options.seed);
    let (mut figures, mut errors) = (Vec::new(), Vec::new());
    let (mut told, mut left_out) = (Instant::now(), 0);
    for asked in 0..options.count {
        let question = question::question(&mut random, &all);
        if told.elapsed() > Duration::from_secs(20) {
            note(&format!("{asked} of {} questions", options.count));
            told = Instant::now();
        }
        let values = match values_of(&mut client, &options.db, &question) {
            Ok(values) => values,
            Err(error) => {
                errors.push(format!("{error:#}"));
                continue;
            }
        };
        if question.shows_all_rows && values > ROWS_MAX {
            left_out += 1;
            continue;
        }
        let peers = (before.as_mut(), questdb.as_mut());
        match figure(&mut client, peers, options, &question, values)? {
            Ok(figure) => figures.push(figure),
            Err(error) => errors.push(error),
        }
    }
    if left_out > 0 {
        note(&format!("{left_out} questions were left out, whose answers have very many rows"));
    }
    Ok((figures, errors))
}

/// How many values it may look at.
fn values_of(client: &mut Client, db: &str, question: &Question) -> Result<f64> {
    let found = rows(client, db, &question.count).context("cannot count")?;
    let count = |row| {
        let mut at = 1;
        std::iter::from_fn(|| {
            at += 1;
            cell(row, at - 1)?.parse::<f64>().ok()
        })
        .fold(0.0, |all, count| all + count)
    };
    Ok(found.iter().flatten().map(count).fold(0.0, |all, count: f64| all + count))
}

fn figure(
    client: &mut Client,
    (mut before, mut questdb): (Option<&mut Client>, Option<&mut Client>),
    options: &ChanceOptions,
    question: &Question,
    values: f64,
) -> Result<Result<ChanceFigure, String>> {
    let influxql =
        target("/query", &[("db", &options.db), ("epoch", "ns"), ("q", &question.influxql)]);
    let sql = question.questdb.as_ref().map(|sql| target("/exec", &[("query", sql)]));
    let (mut ours, mut theirs, mut sqls) = <(Latencies, Latencies, Latencies)>::default();
    let (mut answer, mut differs) = (Vec::new(), false);
    let begun = Instant::now();
    for _ in 0..options.repeats.max(1) {
        answer = match timed(client, &influxql, &mut ours)? {
            Ok(answer) => answer.to_vec(),
            Err(error) => return Ok(Err(format!("{}: {error:#}", question.influxql))),
        };
        if let Some(before) = &mut before {
            let other = timed(before, &influxql, &mut theirs)?;
            // Which rows a sample has is left to chance.
            let is_fixed = !question.influxql.contains("sample(");
            differs |= is_fixed && other.map_or(true, |other| is_otherwise(other, &answer));
        }
        if let (Some(questdb), Some(sql)) = (&mut questdb, &sql) {
            // What it has no words for in this version has no figure.
            let _refused = timed(questdb, sql, &mut sqls)?.is_err();
        }
        if begun.elapsed() > QUESTION_TIME_MAX {
            break;
        }
    }
    let median =
        |latencies: &Latencies| (latencies.count() > 0).then(|| latencies.quantile_ms(0.5));
    let bytes = answer.len();
    Ok(Ok(ChanceFigure {
        influxql: question.influxql.clone(),
        ms: ours.quantile_ms(0.5),
        model_ms: BASE_MS + (values * question.effort_ns + bytes as f64 * BYTE_NS) / 1e6,
        before_ms: median(&theirs),
        questdb_ms: median(&sqls),
        values,
        bytes,
        differs,
    }))
}

/// Asks once. What is refused, and why, is no figure.
fn timed<'a>(
    client: &'a mut Client,
    target: &str,
    latencies: &mut Latencies,
) -> Result<Result<&'a [u8]>> {
    let started = Instant::now();
    let response = client.get(target)?;
    let taken = started.elapsed();
    Ok(check(target, response.status, response.body).map(|()| {
        latencies.record(taken);
        response.body
    }))
}

/// How many times as long as something else a question took.
type Ratio = fn(&ChanceFigure) -> Option<f64>;

/// The questions that took longest for what they do, beside the others' times.
#[must_use]
pub fn chance_table(figures: &[ChanceFigure]) -> String {
    let mut text = String::new();
    let orders: [(&str, Ratio); 3] = [
        ("for their values and answers", |figure| Some(figure.ms / figure.model_ms)),
        ("beside QuestDB", |figure| Some(figure.ms / figure.questdb_ms?)),
        ("beside the build before", |figure| Some(figure.ms / figure.before_ms?)),
    ];
    for (name, ratio) in orders {
        let mut found: Vec<(f64, &ChanceFigure)> =
            figures.iter().filter_map(|figure| Some((ratio(figure)?, figure))).collect();
        if found.is_empty() {
            continue;
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        let middle = found[found.len() / 2].0;
        write!(
            text,
            "Longest {name}, of {} questions (the one in the middle takes {middle:.2} x)\n\n\
             | x | ms | QuestDB ms | before ms | values | answer KB | question |\n|---|---|---|---|---|---|---|\n",
            found.len()
        )
        .expect("BUG: text can always grow");
        for (ratio, figure) in found.iter().take(WORST) {
            text.push_str(&row(*ratio, figure));
        }
        text.push('\n');
    }
    let differ: Vec<&ChanceFigure> = figures.iter().filter(|figure| figure.differs).collect();
    for figure in differ {
        writeln!(text, "Answered otherwise before: {}", figure.influxql)
            .expect("BUG: text can always grow");
    }
    text
}

fn row(ratio: f64, figure: &ChanceFigure) -> String {
    let ms = |ms: Option<f64>| ms.map_or("-".to_owned(), |ms| format!("{ms:.2}"));
    let ChanceFigure { influxql, values, bytes, .. } = figure;
    format!(
        "| {ratio:.2} | {:.2} | {} | {} | {values:.0} | {:.1} | {} |\n",
        figure.ms,
        ms(figure.questdb_ms),
        ms(figure.before_ms),
        *bytes as f64 / 1000.0,
        influxql.replace('|', "\\|"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database of one measurement, whose every question is answered with the same rows.
    fn answer(target: &str) -> String {
        let columns =
            |rows: &str| format!(r#"{{"results":[{{"series":[{{"values":[{rows}]}}]}}]}}"#);
        let target = target.replace('+', "%20");
        let rows = match target.split("&q=").nth(1).unwrap_or_default() {
            q if q.starts_with("SHOW%20MEASUREMENTS") => r#"["cpu"]"#,
            q if q.starts_with("SHOW%20TAG%20KEYS") => r#"["host"]"#,
            q if q.starts_with("SHOW%20TAG%20VALUES") => r#"["host","a"],["host","b"]"#,
            q if q.starts_with("SHOW%20FIELD%20KEYS") => {
                r#"["f","float"],["text","string"],["up","boolean"]"#
            }
            q if q.contains("percentile%28%22f%22%2C%201%29") => "[0,1,10,30,50.5,90,99,100]",
            q if q.starts_with("SELECT%20distinct%28%22text%22%29%20FROM%20%22cpu%22%20LIMIT") => {
                r#"[0,"GET /a"],[0,"PUT /b"]"#
            }
            q if q.starts_with("SELECT%20last%28%22f%22%29%20FROM%20%22cpu%22") && q.len() < 60 => {
                "[7200000000000,1]"
            }
            _ => "[0,1]",
        };
        columns(rows)
    }

    fn options(url: String) -> ChanceOptions {
        ChanceOptions {
            before: Some(url.clone()),
            questdb: None,
            url,
            db: "d".to_owned(),
            seed: 3,
            count: 300,
            repeats: 2,
        }
    }

    #[test]
    fn the_same_seed_asks_the_same_of_what_there_is() {
        let url = crate::fake_server::start(|received| (200, answer(&received.target)));
        let (figures, errors) = chance(&options(url.clone())).unwrap();
        assert!(errors.is_empty(), "{errors:?}");
        assert!(figures.len() > 250, "{}", figures.len());
        let asked = |figures: &[ChanceFigure]| {
            figures.iter().map(|figure| figure.influxql.clone()).collect::<Vec<_>>()
        };
        let texts = asked(&figures);
        assert_eq!(texts, asked(&chance(&options(url)).unwrap().0));
        for wanted in
            ["GROUP BY time(", "\"host\" = '", "LIMIT", "FROM (SELECT", "\"text\" =", "50.5"]
        {
            assert!(texts.iter().any(|text| text.contains(wanted)), "{wanted}");
        }
        let is_known = |figure: &ChanceFigure| {
            figure.ms > 0.0 && figure.before_ms > Some(0.0) && !figure.differs
        };
        assert!(figures.iter().all(is_known));
    }

    #[test]
    fn what_is_refused_or_answered_otherwise_is_told() {
        let is_listed = |target: &str| target.contains("SHOW") || target.contains("percentile");
        let refusing =
            crate::fake_server::start(move |received| match is_listed(&received.target) {
                false if received.target.contains("stddev") => {
                    (200, r#"{"results":[{"error":"no"}]}"#.to_owned())
                }
                _ => (200, answer(&received.target)),
            });
        let other = crate::fake_server::start(|_| (200, "otherwise".to_owned()));
        let options = ChanceOptions { before: Some(other), ..options(refusing) };
        let (figures, errors) = chance(&options).unwrap();
        assert!(!errors.is_empty() && errors.iter().all(|error| error.contains("stddev")));
        assert!(figures.iter().all(|figure| figure.differs || figure.influxql.contains("sample(")));
    }

    #[test]
    fn sums_may_be_rounded_otherwise() {
        let answer = |number: &str| format!(r#"{{"values":[[0,{number}]]}}"#).into_bytes();
        let is_other = |a: &str, b: &str| is_otherwise(&answer(a), &answer(b));
        assert!(!is_other("29.88024678106466", "29.880246781064653"));
        assert!(is_other("29.88024678106466", "29.880247") && is_other("1", "2"));
        assert!(is_other("null", "1.5") && is_other("1", "1}"));
    }

    #[test]
    fn the_longest_come_first() {
        let figure = |name: &str, ms, questdb_ms| ChanceFigure {
            influxql: name.to_owned(),
            ms,
            model_ms: 1.0,
            before_ms: None,
            questdb_ms,
            values: 10.0,
            bytes: 2500,
            differs: false,
        };
        let table = chance_table(&[figure("a|b", 2.0, Some(0.5)), figure("c", 3.0, Some(6.0))]);
        assert!(table.contains("| 3.00 | 3.00 | 6.00 | - | 10 | 2.5 | c |\n| 2.00 | 2.00 | 0.50 | - | 10 | 2.5 | a\\|b |"));
        assert!(table.contains("| 4.00 | 2.00 | 0.50 | - | 10 | 2.5 | a\\|b |\n| 0.50 |"));
        assert!(!table.contains("before\n"));
    }
}
