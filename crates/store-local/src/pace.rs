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
const FLUSH_REST_PERCENT: u32 = 100;

/// Gives the thread that does some work the manners that suit it, as long as it is kept.
pub(crate) struct Pace<'a> {
    engine: &'a Engine,
    /// The manners while rows are written.
    manners: &'a dyn Fn() -> Manners,
    looked: Instant,
    /// Where the log ended then.
    position: Lsn,
}

impl<'a> Pace<'a> {
    /// Of work that this thread begins; `manners` says which it has while rows are written. It rests only then.
    pub(crate) fn new(engine: &'a Engine, manners: &'a dyn Fn() -> Manners) -> Self {
        let mut pace =
            Self { engine, manners, looked: Instant::now(), position: engine.wal.position() };
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
        let manners = match (self.manners)() {
            Manners::Rests(_) if position == self.position => Manners::Yields,
            manners => manners,
        };
        set_manners(manners);
        (self.looked, self.position) = (Instant::now(), position);
    }
}

impl Drop for Pace<'_> {
    fn drop(&mut self) {
        set_manners(Manners::Hurries);
    }
}

/// Of a flush, with so many bytes of memtables in all: it rests as long as it works when the one that is flushed is all
/// there is, and hurries when the next one is half full: it should be done before that one waits for it.
pub(crate) fn of_flush(memtable_bytes: usize, plan: &MemoryPlan) -> Manners {
    let (least, most) = (plan.memtable_flush, plan.memtable_flush + plan.memtable_flush / 2);
    let room = most.saturating_sub(memtable_bytes.max(least));
    resting((FLUSH_REST_PERCENT as usize * room / (most - least)) as u32)
}

/// Of work that rests for so many percent of its time; that which must not rest hurries.
pub(crate) fn resting(percent: u32) -> Manners {
    if percent == 0 { Manners::Hurries } else { Manners::Rests(percent) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_rests_less_the_less_memory_is_left() {
        let plan = MemoryPlan::new(1 << 30);
        let flush = plan.memtable_flush;
        let manners = |quarters| of_flush(flush * quarters / 4, &plan);
        assert_eq!(manners(1), Manners::Rests(100), "of little as well");
        assert_eq!(manners(4), Manners::Rests(100));
        assert_eq!(manners(5), Manners::Rests(50));
        assert_eq!(manners(6), Manners::Hurries);
        assert_eq!(manners(99), Manners::Hurries);
    }
}
