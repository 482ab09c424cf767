//! Random statements over random rows, asked of a real InfluxDB and of the server in question.
//!
//! Both get the same rows in the same requests: in and out of order, some twice, with gaps, some deleted again. The
//! statements ([`statements`]) leave out what is known to differ (docs/influxdb.md), so that every difference is worth a
//! look. All of it follows from a seed.

mod rows;
mod statements;

use std::fmt;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bench::json::Json;
use bench::random::Random;
use bench::system::System;

use self::rows::Shape;
use crate::answer::{Answer, Body};
use crate::case::{Kind, Request};
use crate::runner::Runner;

const DB: &str = "random";
/// Rows are written, some are deleted, statements are asked; so many times.
const PHASES: u64 = 3;
/// So long Nyala gets to put its rows in order.
const SETTLE: Duration = Duration::from_secs(4);
/// What has it do so within that time: a setting of the store on disk, by its name in the environment.
pub const IDLE_SOON: (&str, &str) = ("NYALA_IDLE_AFTER", "1s");

/// What is asked.
#[derive(Debug, Clone)]
pub struct RandomOptions {
    /// Everything follows from it.
    pub seed: u64,
    /// How many statements.
    pub statements: u64,
    /// Nyala's binary.
    pub nyala: PathBuf,
    /// Its settings, by their names in the environment.
    pub settings: Vec<(&'static str, String)>,
}

/// A statement that was answered differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    /// The statement.
    pub statement: String,
    /// What differs, one line each: InfluxDB's is what was expected.
    pub differences: Vec<String>,
}

/// The outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RandomReport {
    /// Statements that both answered alike.
    pub agreed: u64,
    /// Those among them that found something.
    pub found: u64,
    /// The others.
    pub disagreements: Vec<Disagreement>,
}

impl fmt::Display for RandomReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for disagreement in &self.disagreements {
            writeln!(f, "DIFFERS {}", disagreement.statement)?;
            for difference in &disagreement.differences {
                writeln!(f, "    {difference}")?;
            }
        }
        let (agreed, found, differ) = (self.agreed, self.found, self.disagreements.len());
        writeln!(f, "{agreed} agree, {found} of them with rows; {differ} differ")
    }
}

/// Starts both, and asks both.
///
/// # Errors
/// When one of them is missing or does not start, or takes what the other refuses.
pub fn random(options: &RandomOptions) -> Result<RandomReport> {
    let directory = tempfile::tempdir().context("no place for the servers' files")?;
    let of = |name: &str| directory.path().join(name);
    let influxdb = System::InfluxDb.start(&of("influxdb"))?;
    let nyala = System::Nyala(options.nyala.clone());
    let nyala = nyala.start_with(&of("nyala"), &options.settings)?;
    let mut both =
        Both { expected: Runner::new(influxdb.url())?, actual: Runner::new(nyala.url())? };
    both.change(&query(format!("CREATE DATABASE {DB}")))?;
    let mut random = Random::new(options.seed);
    let shape = Shape::new(&mut random);
    let mut report = RandomReport::default();
    for phase in 0..PHASES {
        for _ in 0..*random.pick(&[1, 3]) {
            both.change(&write(shape.lines(&mut random)))?;
        }
        if random.chance(0.5) {
            both.change(&query(shape.delete(&mut random)))?;
        }
        // The last rows are asked for where they arrive, others where they stay.
        if phase + 1 < PHASES && random.chance(0.5) {
            sleep(SETTLE);
        }
        for _ in 0..options.statements / PHASES {
            both.ask(statements::select(&shape, &mut random), &mut report)?;
        }
    }
    Ok(report)
}

struct Both {
    expected: Runner,
    actual: Runner,
}

impl Both {
    /// Has both do the same.
    fn change(&mut self, request: &Request) -> Result<()> {
        let (expected, actual) = (self.expected.send(request)?, self.actual.send(request)?);
        let differences = expected.differences(&actual);
        if expected.status >= 300 || !differences.is_empty() {
            let start: String = request.text.chars().take(200).collect();
            bail!("{} for {start}: {differences:?}", expected.status);
        }
        Ok(())
    }

    fn ask(&mut self, statement: String, report: &mut RandomReport) -> Result<()> {
        let request = query(statement);
        let expected = without_remarks(self.expected.send(&request)?);
        let actual = without_remarks(self.actual.send(&request)?);
        let differences = expected.differences(&actual);
        if differences.is_empty() {
            report.agreed += 1;
            report.found += u64::from(has_rows(&expected));
        } else {
            report.disagreements.push(Disagreement { statement: request.text, differences });
        }
        Ok(())
    }
}

fn request(kind: Kind, text: String) -> Request {
    let parameter = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let parameters = vec![parameter("db", DB), parameter("epoch", "ns")];
    Request { kind, parameters, accept: None, text }
}

fn query(text: String) -> Request {
    request(Kind::Query, text)
}

fn write(lines: String) -> Request {
    request(Kind::Write, lines)
}

fn has_rows(answer: &Answer) -> bool {
    let Body::Document(document) = &answer.body else { return false };
    let results = document.get("results").and_then(Json::elements).unwrap_or_default();
    results.iter().any(|result| result.get("series").is_some())
}

/// InfluxDB says `partial` of complete series that it put together from several parts.
fn without_remarks(mut answer: Answer) -> Answer {
    if let Body::Document(document) = &mut answer.body {
        drop_partial(document);
    }
    answer
}

fn drop_partial(document: &mut Json) {
    match document {
        Json::Array(elements) => elements.iter_mut().for_each(drop_partial),
        Json::Object(members) => {
            members.retain(|(key, _)| key != "partial");
            members.iter_mut().for_each(|(_, value)| drop_partial(value));
        }
        _ => {}
    }
}
