//! Command line: record the answers of InfluxDB, compare a server with them, or with InfluxDB itself.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool prints")]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use differential::{IDLE_SOON, Options, RandomOptions, check, random, record, root};

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
    /// Start the installed influxd and Nyala, write random rows to both and ask both random statements.
    Random {
        /// Everything follows from it; the rounds take one seed after another
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Statements of a round
        #[arg(long, default_value_t = 600)]
        statements: u64,
        /// How many rounds
        #[arg(long, default_value_t = 1)]
        rounds: u64,
        /// Nyala's binary
        #[arg(long, default_value = "target/release/nyala")]
        nyala: PathBuf,
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
        Command::Random { seed, statements, rounds, nyala } => {
            let mut is_success = true;
            for seed in seed..seed.saturating_add(rounds) {
                let settings = vec![(IDLE_SOON.0, IDLE_SOON.1.to_owned())];
                let nyala = nyala.clone();
                let report = random(&RandomOptions { seed, statements, nyala, settings })?;
                print!("seed {seed}: {report}");
                is_success &= report.disagreements.is_empty();
            }
            Ok(if is_success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}
