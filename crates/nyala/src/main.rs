//! The `nyala` command: the database server and its tools.
//!
//! The only place that knows which store there is. Everything else is put together here and done
//! elsewhere.

mod allocator;
mod banner;
mod cli;
mod inspect;
mod logging;
mod machine;
mod serve;
mod settings;
mod signals;

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    allocator::settle();
    match cli::run() {
        Ok(code) => code,
        Err(error) => {
            // The last resort is not to fail over a closed stderr.
            let _ = writeln!(std::io::stderr(), "nyala: {error:#}");
            ExitCode::FAILURE
        }
    }
}
