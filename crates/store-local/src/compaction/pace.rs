//! How fast merges go while rows are written.
//!
//! A merge at full speed writes a hundred megabytes a second for as long as it takes, and every write
//! waits for the same disk: rows come in at half their rate for seconds. A merge that rests most of the
//! time takes a few times as long and is hardly felt. Nothing waits for a merge but later queries.

use std::time::{Duration, Instant};

use wal::Lsn;

use crate::engine::Engine;

/// The least work between two rests.
const STINT: Duration = Duration::from_millis(4);
/// A rest is never longer, whatever held the work up.
const REST_MAX: Duration = Duration::from_millis(100);

/// Makes a merge rest now and then.
#[derive(Debug)]
pub(super) struct Pace<'a> {
    engine: &'a Engine,
    /// Since the last rest, and where the log ended then.
    since: Instant,
    position: Lsn,
    rest_percent: u32,
}

impl<'a> Pace<'a> {
    /// A merge that rests so long, in percent of how long it works, while rows come.
    pub(super) fn new(engine: &'a Engine, rest_percent: u32) -> Self {
        Self { engine, since: Instant::now(), position: engine.wal.position(), rest_percent }
    }

    /// To be called after every few rows: rests if it is time to.
    pub(super) fn keep(&mut self) {
        let worked = self.since.elapsed();
        if worked < STINT {
            return;
        }
        let position = self.engine.wal.position();
        if position != self.position {
            std::thread::sleep(rest(worked, self.rest_percent));
        }
        (self.since, self.position) = (Instant::now(), position);
    }
}

/// How long to rest after so much work.
fn rest(worked: Duration, percent: u32) -> Duration {
    (worked * percent / 100).min(REST_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_in_proportion_and_never_long() {
        assert_eq!(rest(STINT, 200), STINT * 2);
        assert_eq!(rest(STINT, 0), Duration::ZERO);
        assert_eq!(rest(Duration::from_secs(9), 200), REST_MAX);
    }
}
