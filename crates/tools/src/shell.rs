//! `nyala shell`: asks a server in InfluxQL, as InfluxDB's own `influx` does.
//!
//! Invariants
//! - With `-execute`, what is printed is what `influx` prints: scripts may depend on it.
//! - Passwords reach neither the history nor the screen.
//!
//! Not here: Flux.

mod command;
mod help;
mod import;
mod insert;
mod interactive;
mod json;
mod names;
mod options;
mod print;
mod session;
mod table;

use std::io::{self, IsTerminal, Read, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::ArgMatches;

pub(crate) use options::command as command_line;
use session::{Outcome, Session};

/// Runs the shell.
///
/// # Errors
/// There is no server.
pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let options = options::Options::read(matches)?;
    let mut out = io::stdout();
    if options.version {
        writeln!(out, "nyala shell version: {}", env!("CARGO_PKG_VERSION"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(import) = &options.import {
        return import::run(import, &options);
    }
    let mut session = Session::new(&options)?;
    let execute = match &options.execute {
        Some(text) => Some(text.clone()),
        None if io::stdin().is_terminal() => None,
        None => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text)?;
            Some(text)
        }
    };
    match execute {
        Some(text) => {
            session.connect()?;
            let outcome = session.obey(text.trim(), &mut out)?;
            out.flush()?;
            match outcome {
                Outcome::Failed(error) => {
                    writeln!(io::stderr(), "{error}")?;
                    Ok(ExitCode::FAILURE)
                }
                Outcome::Done | Outcome::Exit => Ok(ExitCode::SUCCESS),
            }
        }
        None => interactive::run(&mut session, &mut out),
    }
}
