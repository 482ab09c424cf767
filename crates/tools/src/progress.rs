//! Says on stderr how far an import is.

use std::io::{self, Write};
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_secs(2);

/// Counts points, and says so from time to time.
#[derive(Debug)]
pub(crate) struct Progress {
    started: Instant,
    said: Instant,
    pub(crate) points: u64,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { started: now, said: now, points: 0 }
    }

    /// Adds points of `place`; says so if it was long silent.
    pub(crate) fn add(&mut self, points: u64, place: impl FnOnce() -> String) {
        self.points += points;
        if self.said.elapsed() >= INTERVAL {
            self.said = Instant::now();
            say(&format!("{}: {} points, {}/s", place(), self.points, self.rate()));
        }
    }

    /// Points a second so far.
    pub(crate) fn rate(&self) -> u64 {
        (self.points as f64 / self.started.elapsed().as_secs_f64().max(1e-3)) as u64
    }
}

/// A line on stderr.
pub(crate) fn say(line: &str) {
    // Nobody may be looking.
    let _ = writeln!(io::stderr(), "{line}");
}
