//! Medians of past runs: a line of JSON a run, which the next run over the same data is held against.
//!
//! Machines differ from hour to hour, and mostly for all questions alike. So a question is slower if it takes longer
//! than before by more than the others do: its ratio is divided by the median of all ratios.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::{Context, Result};
use jiff::Timestamp;

use super::{FunctionFigures, FunctionsOptions};
use crate::compare::commit;
use crate::json::Json;
use crate::workload::{HOUR_NS, Spec};

/// Shorter answers are mostly waiting for sockets and threads.
const COUNTED_MIN_MS: f64 = 0.3;
/// From here on a question is slower, not just measured differently.
const SLOWER: f64 = 1.5;

/// A question that takes longer than it did.
#[derive(Debug, Clone, PartialEq)]
pub struct Slower {
    /// The question.
    pub name: String,
    /// What it took, in milliseconds.
    pub before_ms: f64,
    /// What it takes.
    pub now_ms: f64,
    /// The commit it was measured at before.
    pub commit: String,
}

/// Appends the figures of the last system to a file, and tells which questions have become slower since the last run
/// over the same data that is in it.
///
/// # Errors
/// When the file is none of these or cannot be written.
pub fn append_functions(
    options: &FunctionsOptions,
    figures: &[FunctionFigures],
    path: &Path,
) -> Result<Vec<Slower>> {
    let context = || format!("in {}", path.display());
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error).with_context(context),
    };
    let runs = Json::parse_sequence(&text).with_context(context)?;
    let medians: Vec<(&str, f64)> = figures
        .iter()
        .filter_map(|figure| Some((figure.name.as_str(), (*figure.median_ms.last()?)?)))
        .collect();
    let is_same = |run: &&Json| {
        let text = |key| run.get(key).and_then(Json::text);
        text("data") == Some(&data_name(&options.data))
    };
    let slower = runs.iter().rev().find(is_same).map(|run| slower(run, &medians));
    let line = line(&options.data, &medians, &commit(), &Timestamp::now().to_string());
    let file = fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes())).with_context(context)?;
    Ok(slower.unwrap_or_default())
}

/// What was loaded, in words.
fn data_name(data: &Spec) -> String {
    let hours = (data.end_ns - data.start_ns) / HOUR_NS;
    format!("{}, {} hosts, {hours} h", data.workload, data.scale)
}

fn line(data: &Spec, medians: &[(&str, f64)], commit: &str, time: &str) -> String {
    let member = |(name, ms): &(&str, f64)| {
        let rounded = (ms * 1000.0).round() / 1000.0;
        ((*name).to_owned(), Json::Number(rounded.to_string()))
    };
    let text = |key: &str, value: &str| (key.to_owned(), Json::String(value.to_owned()));
    let run = Json::Object(vec![
        text("time", time),
        text("commit", commit),
        text("data", &data_name(data)),
        ("median_ms".to_owned(), Json::Object(medians.iter().map(member).collect())),
    ]);
    let mut line = String::new();
    writeln!(line, "{run}").expect("BUG: text can always grow");
    line
}

fn slower(run: &Json, medians: &[(&str, f64)]) -> Vec<Slower> {
    let before = |name: &str| match run.get("median_ms")?.get(name)? {
        Json::Number(digits) => digits.parse::<f64>().ok().filter(|ms| *ms > 0.0),
        _ => None,
    };
    let pairs: Vec<(&str, f64, f64)> =
        medians.iter().filter_map(|(name, now)| Some((*name, before(name)?, *now))).collect();
    let mut ratios: Vec<f64> = pairs.iter().map(|(_, before, now)| now / before).collect();
    ratios.sort_by(f64::total_cmp);
    let Some(usual) = ratios.get(ratios.len().saturating_sub(1) / 2).copied() else {
        return Vec::new();
    };
    let commit = run.get("commit").and_then(Json::text).unwrap_or("unknown");
    pairs
        .into_iter()
        .filter(|(_, before, now)| *now >= COUNTED_MIN_MS && now / before > SLOWER * usual)
        .map(|(name, before_ms, now_ms)| Slower {
            name: name.to_owned(),
            before_ms,
            now_ms,
            commit: commit.to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::system::System;

    fn figures(ms: [f64; 4]) -> Vec<FunctionFigures> {
        let figure = |(at, ms)| FunctionFigures {
            name: format!("f{at}(\"x\")"),
            median_ms: vec![None, Some(ms)],
        };
        ms.into_iter().enumerate().map(figure).collect()
    }

    #[test]
    fn a_question_that_got_slower_than_the_others_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("functions.jsonl");
        let options = |hours| FunctionsOptions {
            data: Spec::cpu_only(10, hours),
            systems: vec![System::InfluxDb, System::Nyala("nyala".into())],
            repeats: 1,
            rest: Duration::ZERO,
        };
        let add = |hours, ms| append_functions(&options(hours), &figures(ms), &path).unwrap();
        assert_eq!(add(24, [1.0, 2.0, 3.0, 0.01]), []);
        // Over other data, and in an hour in which all take twice as long.
        assert_eq!(add(6, [9.0, 9.0, 9.0, 9.0]), []);
        assert_eq!(add(24, [2.0, 4.0, 6.0, 0.02]), []);
        // The last is too short to count.
        let slower = add(24, [2.0, 7.0, 6.0, 0.2]);
        let names: Vec<_> = slower.iter().map(|slower| slower.name.as_str()).collect();
        assert_eq!(names, ["f1(\"x\")"]);
        assert_eq!((slower[0].before_ms, slower[0].now_ms), (4.0, 7.0));
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 4);
        fs::write(&path, "no history").unwrap();
        assert!(append_functions(&options(24), &figures([1.0; 4]), &path).is_err());
    }
}
