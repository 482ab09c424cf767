//! Command line of the benchmark tool.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool prints")]
#![allow(clippy::disallowed_methods, reason = "a benchmark tool works on real files")]

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
