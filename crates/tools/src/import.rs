//! `nyala import`: from dumps, from CSV, and from a running InfluxDB 1.x or Nyala.

mod csv;
mod file;
mod options;
mod schema;
mod server;
mod state;
mod users;
mod verify;

use std::process::ExitCode;

use anyhow::Result;
use clap::ArgMatches;

pub(crate) use options::command as command_line;
use options::{From, Options};

/// Runs the import.
///
/// # Errors
/// Something cannot be read, or the server is not there.
pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let options = Options::read(matches)?;
    let clean = match &options.from {
        From::Files(files) => file::run(files, &options)?,
        From::Server(source) => server::run(source, &options)?,
    };
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
