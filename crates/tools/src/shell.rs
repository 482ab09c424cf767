//! `nyala shell`: asks a server in InfluxQL, as InfluxDB's own `influx` does.
//!
//! Invariants
//! - With `-execute`, what is printed is what `influx` prints: scripts may depend on it. Each of its
//!   lines is a command; the standard input is statements and nothing else.
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
    let outcome = match options.execute.as_deref().filter(|text| !text.is_empty()) {
        Some(lines) => {
            session.connect()?;
            obey_lines(&mut session, lines, &mut out)?
        }
        None if io::stdin().is_terminal() => return interactive::run(&mut session, &mut out),
        None => {
            let mut statements = String::new();
            io::stdin().read_to_string(&mut statements)?;
            session.connect()?;
            session.ask(&statements, &mut out)?
        }
    };
    out.flush()?;
    match outcome {
        Outcome::Failed(error) => {
            writeln!(io::stderr(), "{error}")?;
            Ok(ExitCode::FAILURE)
        }
        Outcome::Done | Outcome::Exit => Ok(ExitCode::SUCCESS),
    }
}

/// Obeys one line after the other, up to the first whose statements fail. As with `influx`, `exit` is
/// no end, and an empty line is a mistake.
fn obey_lines(session: &mut Session, lines: &str, out: &mut dyn Write) -> Result<Outcome> {
    for line in lines.split('\n') {
        if line.trim().is_empty() {
            return Ok(Outcome::Failed("empty input".to_owned()));
        }
        if let failed @ Outcome::Failed(_) = session.obey(line, out)? {
            return Ok(failed);
        }
    }
    Ok(Outcome::Done)
}
