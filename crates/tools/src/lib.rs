//! Command line tools that speak to a server over HTTP like any other client.
//!
//! The binary adds [`commands`] to its own, and hands what is given to one of them to [`run`].
#![allow(
    clippy::disallowed_methods,
    reason = "command line tools work on their user's files, never in simulation"
)]

mod args;
mod csv_text;
mod dump;
mod export;
mod http;
mod import;
mod influx;
mod line;
mod progress;
mod shell;
mod source;
mod write;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{ArgMatches, Command};

pub use args::with_two_dashes;

/// The command lines of the tools.
#[must_use]
pub fn commands() -> Vec<Command> {
    vec![shell::command_line(), export::command_line(), import::command_line()]
}

/// Gives the options of a tool their second dash, where `args` (with the program's name) names one.
#[must_use]
pub fn normalised(args: Vec<OsString>) -> Vec<OsString> {
    let commands = commands();
    let named = args.get(1).and_then(|name| commands.iter().find(|c| *name == *c.get_name()));
    let Some(command) = named else { return args };
    let mut args = args;
    let rest = args.split_off(2);
    args.extend(with_two_dashes(command, rest));
    args
}

/// Runs the tool of this name; `None` if there is none.
///
/// # Errors
/// Whatever the tool says went wrong.
#[must_use]
pub fn run(name: &str, matches: &ArgMatches) -> Option<anyhow::Result<ExitCode>> {
    match name {
        "shell" => Some(shell::run(matches)),
        "export" => Some(export::run(matches)),
        "import" => Some(import::run(matches)),
        _ => None,
    }
}
