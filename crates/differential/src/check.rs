//! Compares a running server with the recorded answers.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::answer::Answer;
use crate::case::{Case, CaseFile, Group, read_all};
use crate::dataset::{self, Dataset};
use crate::fixture::{self, Fixture};
use crate::runner::Runner;

/// How to compare.
#[derive(Debug, Clone)]
pub struct Options {
    /// Only cases whose `FILE: CASE` contains this text. A script runs whole if one of its steps matches.
    pub filter: Option<String>,
    /// Leave the data sets on the server afterwards.
    pub keep: bool,
    /// Drop databases of the names used here if the server has them; otherwise they are an error.
    pub replace: bool,
    /// Where cases and fixtures are.
    pub root: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Self { filter: None, keep: false, replace: false, root: crate::root() }
    }
}

/// A case that was answered differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// `FILE: CASE`.
    pub case: String,
    /// What differed, one line each.
    pub differences: Vec<String>,
}

/// The outcome of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of cases answered as recorded.
    pub passed: usize,
    /// The others.
    pub failures: Vec<Failure>,
}

impl Report {
    /// Whether every case was answered as recorded.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.failures.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for failure in &self.failures {
            writeln!(f, "FAILED {}", failure.case)?;
            for difference in &failure.differences {
                writeln!(f, "    {difference}")?;
            }
        }
        writeln!(f, "{} passed, {} failed", self.passed, self.failures.len())
    }
}

/// Loads the data sets into the server and asks all cases.
///
/// # Errors
/// When the server cannot be reached, has databases of the names used here (see [`Options::replace`]) or refuses
/// the data, or the files of this crate are not in order.
/// A wrong answer is no error but part of the report.
pub fn check(url: &str, options: &Options) -> Result<Report> {
    let files = read_all(&options.root)?;
    let datasets = dataset::all(&options.root)?;
    let sums: Vec<(String, String)> =
        datasets.iter().map(|dataset| (dataset.db.to_owned(), dataset.fingerprint())).collect();
    if sums != fixture::read_datasets(&options.root)? {
        bail!(
            "the data is not that of the recorded answers: run `cargo run -p differential -- record`"
        );
    }
    let mut runner = Runner::new(url)?;
    if !options.replace {
        must_not_exist(&mut runner, &files, &datasets)?;
    }
    for dataset in &datasets {
        runner.load(dataset)?;
    }
    let mut report = Report::default();
    for file in &files {
        let recorded = fixture::read(&options.root, &file.name)?.unwrap_or_default();
        for group in file.groups.iter().filter(|group| selected(options, file, group)) {
            runner.run(group, |case, answer| match answer {
                Ok(answer) => report.add(file, case, judge(case, &recorded, &answer)),
                Err(error) => report.add(file, case, vec![error.to_string()]),
            })?;
        }
    }
    if !options.keep {
        for dataset in &datasets {
            runner.drop_database(dataset.db).context("cleaning up")?;
        }
    }
    Ok(report)
}

/// The tool drops databases; it must never drop somebody's data by accident.
fn must_not_exist(runner: &mut Runner, files: &[CaseFile], datasets: &[Dataset]) -> Result<()> {
    let existing = runner.databases()?;
    let scripts = files.iter().flat_map(|file| &file.groups).flat_map(|group| match group {
        Group::Script { databases, .. } => databases.as_slice(),
        Group::Plain(_) => &[],
    });
    let mut names = datasets.iter().map(|dataset| dataset.db).chain(scripts.map(String::as_str));
    if let Some(name) = names.find(|name| existing.iter().any(|other| other == name)) {
        bail!(
            "the server already has a database {name:?}: use another server, or --replace to drop it"
        );
    }
    Ok(())
}

impl Report {
    fn add(&mut self, file: &CaseFile, case: &Case, differences: Vec<String>) {
        if differences.is_empty() {
            self.passed += 1;
        } else {
            self.failures.push(Failure { case: name(file, case), differences });
        }
    }
}

fn name(file: &CaseFile, case: &Case) -> String {
    format!("{}: {}", file.name, case.key)
}

fn selected(options: &Options, file: &CaseFile, group: &Group) -> bool {
    let Some(filter) = &options.filter else { return true };
    match group {
        Group::Plain(case) => name(file, case).contains(filter),
        Group::Script { steps, .. } => steps.iter().any(|step| name(file, step).contains(filter)),
    }
}

fn judge(case: &Case, recorded: &Fixture, actual: &Answer) -> Vec<String> {
    if let Some(expected) = &case.expected {
        let accepted = case.request.accept.as_deref().unwrap_or("application/json");
        return Answer::by_hand(expected.status, accepted, &expected.body).differences(actual);
    }
    match recorded.get(&case.key) {
        Some(expected) => expected.differences(actual),
        None => vec!["no answer is recorded: run `cargo run -p differential -- record`".to_owned()],
    }
}
