//! Recorded answers of a real InfluxDB 1.x server, and the comparison of a running server with them.
//!
//! `cases/*.txt` says what is asked (format: [`case`]), `fixtures/*.json` what InfluxDB 1.6.7 answered, both over
//! the data of [`dataset`]. Where 1.8, the version to be compatible with, answers differently, the case carries the
//! answer of 1.8 and the reason. [`record`] writes the fixtures, [`check`] compares a server with them. [`random`] asks
//! both servers statements that nobody thought of.
#![allow(
    clippy::disallowed_methods,
    reason = "a test tool works on real files, never in simulation"
)]

mod answer;
mod case;
mod check;
mod dataset;
mod fixture;
mod random;
mod record;
mod runner;

pub use check::{Failure, Options, Report, check};
pub use random::{Disagreement, IDLE_SOON, RandomOptions, RandomReport, random};
pub use record::{Changes, record};

use std::path::PathBuf;

/// Where cases, data and fixtures are.
#[must_use]
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
