//! How fast merges go while rows are written.
//!
//! A merge at full speed writes a hundred megabytes a second for as long as it takes, and every write
//! waits for the same disk: rows come in at half their rate for seconds. A merge that rests most of the
//! time takes a few times as long and is hardly felt. What waits for merges makes them rest less.

use std::time::{Duration, Instant};

use wal::Lsn;

use super::candidates;
use super::policy::rest_percent;
use crate::engine::Engine;
use crate::view::Partition;

/// The least work between two rests.
const STINT: Duration = Duration::from_millis(4);
/// A rest is never longer, whatever held the work up.
const REST_MAX: Duration = Duration::from_millis(100);

/// Makes a merge rest now and then.
#[derive(Debug)]
pub(super) struct Pace<'a> {
    engine: &'a Engine,
    partition: &'a Partition,
    is_urgent: bool,
    /// Since the last rest, and where the log ended then.
    since: Instant,
    position: Lsn,
}

impl<'a> Pace<'a> {
    /// Of a merge of some segments of a partition, which does not rest if it was urgent from the start.
    pub(super) fn new(engine: &'a Engine, partition: &'a Partition, is_urgent: bool) -> Self {
        let position = engine.wal.position();
        Self { engine, partition, is_urgent, since: Instant::now(), position }
    }

    /// To be called after every few rows: rests if it is time to.
    pub(super) fn keep(&mut self) {
        let worked = self.since.elapsed();
        if worked < STINT {
            return;
        }
        let position = self.engine.wal.position();
        if position != self.position {
            std::thread::sleep(rest(worked, self.percent()));
        }
        (self.since, self.position) = (Instant::now(), position);
    }

    /// How long to rest, as things are by now: while a large merge goes on many segments may come, and
    /// runs of the index, which are merged by the thread that rests here.
    fn percent(&self) -> u32 {
        if self.is_urgent || self.engine.has_many_index_runs() {
            return 0;
        }
        let view = self.engine.view();
        let now = view.partition_at(self.partition.policy, self.partition.time.min);
        now.map_or(0, |partition| rest_percent(&candidates(partition)))
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
