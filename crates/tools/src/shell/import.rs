//! `nyala shell -import`: loads a dump, as `influx -import` does.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Result, bail};

use super::options::{Import, Options};
use crate::dump::{self, DumpReader};
use crate::http::Client;
use crate::influx;
use crate::write::{LineWriter, Target};

/// Lines after which the number so far is said.
const REPORT_LINES: u64 = 100_000;

/// Loads the file, and says on stderr what became of it.
///
/// # Errors
/// The file cannot be read, or the server is not there.
pub(super) fn run(import: &Import, options: &Options) -> Result<ExitCode> {
    let (input, packed) = dump::open(&import.path)?;
    // A packed file is unpacked anyway; what is called packed and is not is a mistake.
    if import.compressed && !packed {
        bail!("{} is not packed with gzip: leave -compressed out", import.path.display());
    }
    let mut client = Client::new(options.endpoint.clone())?;
    influx::ping(&mut client)?;
    let target = Target {
        database: options.database.clone(),
        precision: options.precision.of_lines().to_owned(),
        consistency: options.consistency.clone(),
        ..Target::default()
    };
    let mut writer = LineWriter::new(&mut client, target, import.points_per_second);
    let mut err = io::stderr();
    for complaint in &options.complaints {
        writeln!(err, "{complaint}")?;
    }
    let mut said = 0;
    let mut reader = DumpReader::new(input, false);
    let loaded = dump::load(&mut reader, &mut writer, |writer| {
        let lines = writer.written().lines;
        if lines >= said + REPORT_LINES {
            said = lines;
            // Nobody may be looking.
            let _ = writeln!(io::stderr(), "Processed {lines} lines");
        }
    })?;
    let written = writer.written();
    for failed in &loaded.failed_statements {
        writeln!(err, "error: {failed}")?;
    }
    for reason in &written.reasons {
        writeln!(err, "error writing batch: {reason}")?;
    }
    writeln!(err, "Processed {} commands", loaded.statements)?;
    writeln!(err, "Processed {} inserts", written.lines)?;
    writeln!(err, "Failed {} inserts", written.rejected)?;
    let failed = written.rejected > 0 || !loaded.failed_statements.is_empty();
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
