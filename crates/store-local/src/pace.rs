//! How fast flushes and merges go while rows are written.
//!
//! At full speed they write hundreds of megabytes a second, and every write waits for the same disk and behind them for a
//! processor: rows come in at half their rate for seconds. What rests most of the time takes a few times as
//! long and is hardly felt. What waits for merges makes them rest less, and what memory is left makes flushes.
//!
//! Not here: when a thread with such manners gives way (`platform`), and which merges are urgent (`compaction`).

use std::time::{Duration, Instant};

use platform::{Manners, set_manners};
use wal::Lsn;

use crate::engine::Engine;
use crate::options::MemoryPlan;

/// How often to look how things are.
const LOOK_EVERY: Duration = Duration::from_millis(4);
/// How long a flush rests at most, in percent of how long it works.
const FLUSH_REST_PERCENT: u32 = 300;
/// So many percent of it a flush may be behind before it does not rest at all.
const BEHIND_PERCENT_MAX: usize = 25;

/// Gives the thread that does some work the manners that suit it, as long as it is kept.
pub(crate) struct Pace<'a> {
    engine: &'a Engine,
    /// How long to rest now, in percent of how long it works.
    rest_percent: &'a dyn Fn() -> u32,
    looked: Instant,
    /// Where the log ended then.
    position: Lsn,
}

impl<'a> Pace<'a> {
    /// Of work that this thread begins. `rest_percent` says how long it rests while rows are written; 0: it hurries.
    pub(crate) fn new(engine: &'a Engine, rest_percent: &'a dyn Fn() -> u32) -> Self {
        let (looked, position) = (Instant::now(), engine.wal.position());
        let mut pace = Self { engine, rest_percent, looked, position };
        pace.look();
        pace
    }

    /// To be called after every few rows.
    pub(crate) fn keep(&mut self) {
        platform::give_way();
        if self.looked.elapsed() >= LOOK_EVERY {
            self.look();
        }
    }

    fn look(&mut self) {
        let position = self.engine.wal.position();
        set_manners(manners((self.rest_percent)(), position != self.position));
        (self.looked, self.position) = (Instant::now(), position);
    }
}

impl Drop for Pace<'_> {
    fn drop(&mut self) {
        set_manners(Manners::Hurries);
    }
}

/// Of work that is to rest so long while rows are written.
fn manners(rest_percent: u32, rows_come: bool) -> Manners {
    match rest_percent {
        0 => Manners::Hurries,
        percent if rows_come => Manners::Rests(percent),
        _ => Manners::Yields,
    }
}

/// Of a flush that has written some of `rows`, with so many bytes of memtables in all. It is to be done when the next
/// memtable is three quarters full, and always as far as that one is: work that is spread over all of the time is felt least.
/// It rests less once it is behind, and not where memtables of many partitions are that much.
pub(crate) fn flush_rest_percent(
    memtable_bytes: usize,
    written: usize,
    rows: usize,
    plan: &MemoryPlan,
) -> u32 {
    let next = memtable_bytes.saturating_sub(plan.memtable_flush);
    let due = next * 100 / (plan.memtable_flush / 4 * 3);
    let behind = due.saturating_sub(written * 100 / rows.max(1));
    FLUSH_REST_PERCENT * BEHIND_PERCENT_MAX.saturating_sub(behind) as u32
        / BEHIND_PERCENT_MAX as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_is_as_far_as_the_next_memtable_is_full() {
        let plan = MemoryPlan::new(1 << 30);
        let percent = |eighths: usize, written| {
            flush_rest_percent(plan.memtable_flush / 8 * eighths, written, 1000, &plan)
        };
        let begun = [4, 8, 9, 10, 99].map(|eighths| percent(eighths, 0));
        assert_eq!(begun, [300, 300, 108, 0, 0]);
        let half_done = [8, 11, 12, 13, 14].map(|eighths| percent(eighths, 500));
        assert_eq!(half_done, [300, 300, 108, 0, 0]);
        assert_eq!(flush_rest_percent(0, 0, 0, &plan), 300, "of nothing");
    }

    #[test]
    fn work_rests_only_while_rows_come_and_what_must_not_rest_hurries() {
        assert_eq!(manners(7, true), Manners::Rests(7));
        assert_eq!(manners(7, false), Manners::Yields);
        assert_eq!([true, false].map(|rows_come| manners(0, rows_come)), [Manners::Hurries; 2]);
    }
}
