//! Imports files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::csv;
use super::options::Options;
use crate::dump::{self, DumpReader};
use crate::http::Client;
use crate::influx;
use crate::progress::{Progress, say};
use crate::write::{LineWriter, Target};

/// Imports all files; whether everything was taken.
pub(super) fn run(files: &[PathBuf], options: &Options) -> Result<bool> {
    let mut client = Client::new(options.to.clone())?;
    influx::ping(&mut client)?;
    let mut clean = true;
    for file in files {
        clean &= one(file, &mut client, options).with_context(|| file.display().to_string())?;
    }
    Ok(clean)
}

fn one(file: &Path, client: &mut Client, options: &Options) -> Result<bool> {
    let (input, _) = dump::open(file)?;
    let target = Target {
        database: options.database().to_owned(),
        policy: options.policy.clone(),
        precision: if options.precision == "ns" {
            String::new()
        } else {
            options.precision.clone()
        },
        consistency: String::new(),
    };
    let bare = !target.database.is_empty();
    let mut writer = LineWriter::new(client, target, options.lines_per_second_max);
    let mut progress = Progress::new();
    let mut failed = Vec::new();
    if is_csv(file) {
        csv::load(input, &mut writer, options, &mut progress)?;
    } else {
        if !options.measurement.is_empty() || !options.tags.is_empty() {
            bail!("--measurement and --tags are for CSV, whose names end with .csv or .csv.gz");
        }
        let mut reader = DumpReader::new(input, bare);
        let place = || file.display().to_string();
        failed =
            dump::load(&mut reader, &mut writer, |_| progress.add(1, place))?.failed_statements;
    }
    let written = writer.written();
    let name = file.display();
    for statement in &failed {
        say(&format!("{name}: failed: {statement}"));
    }
    for reason in &written.reasons {
        say(&format!("{name}: rejected: {reason}"));
    }
    let (lines, rejected) = (written.lines, written.rejected);
    say(&format!("{name}: {lines} points, {rejected} of them rejected; {}/s", progress.rate()));
    Ok(failed.is_empty() && rejected == 0)
}

fn is_csv(file: &Path) -> bool {
    let name = file.to_string_lossy().to_lowercase();
    name.ends_with(".csv") || name.ends_with(".csv.gz")
}
