//! Records the answers of a real InfluxDB, started for the purpose in a private directory.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use bench::http::Client;
use bench::system::System;

use crate::case::read_all;
use crate::dataset;
use crate::fixture::{self, Fixture, RECORDED_VERSION};
use crate::runner::Runner;

/// What a recording changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Number of answers now.
    pub recorded: usize,
    /// Cases that had no answer before.
    pub added: Vec<String>,
    /// Answers whose case is gone.
    pub removed: Vec<String>,
    /// Cases that are answered differently, with the differences.
    pub changed: Vec<(String, Vec<String>)>,
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, differences) in &self.changed {
            writeln!(f, "changed {key}")?;
            for difference in differences {
                writeln!(f, "    {difference}")?;
            }
        }
        for key in &self.removed {
            writeln!(f, "removed {key}")?;
        }
        let (added, removed, changed) = (self.added.len(), self.removed.len(), self.changed.len());
        writeln!(
            f,
            "{} answers recorded: {added} added, {removed} removed, {changed} changed",
            self.recorded
        )
    }
}

/// Starts InfluxDB, loads all data, asks all cases and stores the answers.
///
/// # Errors
/// When InfluxDB is missing or of another version, or the files cannot be read or written.
pub fn record(root: &Path) -> Result<Changes> {
    let directory = tempfile::tempdir().context("no place for the server's files")?;
    let server = System::InfluxDb.start(directory.path())?;
    check_version(server.url())?;
    let mut runner = Runner::new(server.url())?;
    let datasets = dataset::all(root)?;
    for dataset in &datasets {
        runner.load(dataset)?;
    }
    let mut changes = Changes::default();
    for file in read_all(root)? {
        let before = fixture::read(root, &file.name)?.unwrap_or_default();
        let mut answers = Fixture::new();
        let mut failed = None;
        for group in &file.groups {
            runner.run(group, |case, answer| match answer {
                Ok(answer) => drop(answers.insert(case.key.clone(), answer)),
                Err(error) => failed = Some(format!("{}: {error}", case.key)),
            })?;
        }
        if let Some(failed) = failed {
            bail!("{failed}");
        }
        note_changes(&mut changes, &file.name, &before, &answers);
        fixture::write(root, &file, &answers)?;
    }
    let sums: Vec<(String, String)> =
        datasets.iter().map(|dataset| (dataset.db.to_owned(), dataset.fingerprint())).collect();
    fixture::write_datasets(root, &sums)?;
    Ok(changes)
}

fn note_changes(changes: &mut Changes, file: &str, before: &Fixture, after: &Fixture) {
    changes.recorded += after.len();
    for (key, answer) in after {
        match before.get(key) {
            None => changes.added.push(format!("{file}: {key}")),
            Some(old) if old == answer => {}
            Some(old) => changes.changed.push((format!("{file}: {key}"), old.differences(answer))),
        }
    }
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        changes.removed.push(format!("{file}: {key}"));
    }
    changes.added.sort();
    changes.removed.sort();
    changes.changed.sort();
}

fn check_version(url: &str) -> Result<()> {
    let mut client = Client::new(url)?;
    let response = client.get("/ping")?;
    let version = response.header("X-Influxdb-Version").unwrap_or("unknown");
    if !version.starts_with(RECORDED_VERSION) {
        bail!("the installed InfluxDB is {version}, answers are recorded with {RECORDED_VERSION}");
    }
    Ok(())
}
