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
/// How long a merge rests, as a multiple of how long it worked.
const REST: u32 = 2;
/// A rest is never longer, whatever held the work up.
const REST_MAX: Duration = Duration::from_millis(100);

/// Makes a merge rest now and then.
#[derive(Debug)]
pub(super) struct Pace<'a> {
    engine: &'a Engine,
    /// Since the last rest, and where the log ended then.
    since: Instant,
    position: Lsn,
}

impl<'a> Pace<'a> {
    pub(super) fn new(engine: &'a Engine) -> Self {
        Self { engine, since: Instant::now(), position: engine.wal.position() }
    }

    /// To be called after every few rows: rests if it is time to.
    pub(super) fn keep(&mut self) {
        let worked = self.since.elapsed();
        if worked < STINT {
            return;
        }
        let position = self.engine.wal.position();
        let rest = rest(worked, position != self.position);
        if !rest.is_zero() {
            std::thread::sleep(rest);
        }
        (self.since, self.position) = (Instant::now(), position);
    }
}

/// How long to rest after so much work.
fn rest(worked: Duration, rows_come: bool) -> Duration {
    if rows_come { (worked * REST).min(REST_MAX) } else { Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_while_rows_come_and_never_long() {
        assert_eq!(rest(STINT, true), STINT * REST);
        assert_eq!(rest(STINT, false), Duration::ZERO);
        assert_eq!(rest(Duration::from_secs(9), true), REST_MAX);
    }
}
