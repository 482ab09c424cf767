//! Command line: record the answers of InfluxDB, compare a server with them.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool prints")]

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use differential::{Options, check, record, root};

/// Compares a server with recorded answers of InfluxDB 1.x.
#[derive(Parser)]
#[command(name = "differential", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start the installed influxd, ask all cases and store its answers.
    Record,
    /// Load the data into a running server, ask all cases and compare. Uses the databases nab, cpu, devops, iot,
    /// mixed and x_*.
    Check {
        /// The server
        #[arg(long, default_value = "http://127.0.0.1:8086")]
        url: String,
        /// Only cases whose `FILE: CASE` contains this text
        #[arg(long)]
        filter: Option<String>,
        /// Leave the data on the server
        #[arg(long)]
        keep: bool,
        /// Drop databases of these names that the server already has
        #[arg(long)]
        replace: bool,
    },
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    match Cli::parse().command {
        Command::Record => {
            print!("{}", record(&root())?);
            Ok(ExitCode::SUCCESS)
        }
        Command::Check { url, filter, keep, replace } => {
            let report = check(&url, &Options { filter, keep, replace, ..Options::default() })?;
            print!("{report}");
            Ok(if report.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}
