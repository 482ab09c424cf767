//! How many connections are busy, counted in windows of time.
//!
//! A connection counts itself once a window, when its client has sent [`BUSY_REQUESTS`] in it. So nobody has to
//! sign off, and a crowd that has gone is forgotten a window later.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::connection::Kind;

/// Time over which requests are counted.
pub(super) const WINDOW: Duration = Duration::from_millis(250);

/// Requests in a window that make a connection a busy one: pauses are 50 ms at most, so that a few microseconds
/// that a thread of its own saves are still a thousandth of the time.
pub(super) const BUSY_REQUESTS: u64 = 5;

/// Busy connections for which threads of their own are better, by kind; the most are for each processor. Measured with
/// two processors (docs/benchmarks.md). Questions keep a processor busy: one client alone is served as well by the
/// threads for all, and more than so many interrupt each other. Writes of more are better off in groups (`write`).
const ASKING_MIN: usize = 2;
const ASKING_MAX: usize = 4;
const WRITING_MIN: usize = 1;
const WRITING_MAX: usize = 2;
/// And so many of a kind at most, on however large a machine: the threads come from those that heavy queries and writes of
/// other connections need as well.
const KIND_MAX: usize = 256;

/// Counts busy connections.
#[derive(Debug)]
pub(super) struct Census {
    start: Instant,
    /// How many of a kind there have to be for threads of their own.
    good_for: [RangeInclusive<usize>; Kind::COUNT],
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// The latest window that somebody counted in.
    window: u64,
    now: [usize; Kind::COUNT],
    before: [usize; Kind::COUNT],
}

impl Census {
    /// One for a machine with so many processors.
    pub(super) fn new(processors: usize) -> Self {
        let good_for = [(ASKING_MIN, ASKING_MAX), (WRITING_MIN, WRITING_MAX)]
            .map(|(min, max)| min..=(max * processors).min(KIND_MAX));
        Self { start: Instant::now(), good_for, counts: Mutex::default() }
    }

    /// The number of the window that is now.
    pub(super) fn window(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis() / WINDOW.as_millis()).unwrap_or(u64::MAX)
    }

    /// Counts one more that is busy in `window`.
    pub(super) fn count(&self, kind: Kind, window: u64) {
        let mut counts = self.counts.lock();
        counts.go_on_to(window);
        counts.now[kind as usize] += 1;
    }

    /// Whether threads are good for as many as are busy: in `window` so far or in the one before, whichever are more.
    pub(super) fn has_threads(&self, kind: Kind, window: u64) -> bool {
        let mut counts = self.counts.lock();
        counts.go_on_to(window);
        let kind = kind as usize;
        self.good_for[kind].contains(&counts.now[kind].max(counts.before[kind]))
    }
}

impl Counts {
    /// Begins `window`, unless it has begun.
    fn go_on_to(&mut self, window: u64) {
        // Who looked at the clock a moment before another may come after it, and counts as now.
        if window > self.window {
            let follows = window == self.window + 1;
            let before = if follows { self.now } else { Default::default() };
            *self = Self { window, now: Default::default(), before };
        }
    }
}

/// What a client does in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Little so far.
    Quiet,
    /// It has just become busy.
    BusyNow,
    /// It was busy before, in this window.
    BusyStill,
}

/// How often one connection's client sends requests.
#[derive(Debug, Default)]
pub(super) struct Pace {
    window: u64,
    /// Requests before the window began.
    before: u64,
    /// Requests when somebody looked last.
    seen: u64,
}

impl Pace {
    /// Whether there are requests that have not been looked at.
    pub(super) fn is_news(&self, requests: u64) -> bool {
        requests != self.seen
    }

    /// Takes note of all requests so far, and says what they make of the connection.
    pub(super) fn look(&mut self, window: u64, requests: u64) -> Look {
        if window != self.window {
            (self.window, self.before) = (window, self.seen);
        }
        let is_busy = |requests| requests - self.before >= BUSY_REQUESTS;
        let look = match (is_busy(requests), is_busy(self.seen)) {
            (false, _) => Look::Quiet,
            (true, false) => Look::BusyNow,
            (true, true) => Look::BusyStill,
        };
        self.seen = requests;
        look
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Look::{BusyNow, BusyStill, Quiet};

    #[test]
    fn a_client_becomes_busy_once_a_window() {
        let mut pace = Pace::default();
        let looks = |pace: &mut Pace, window, requests: RangeInclusive<u64>| {
            requests.map(|requests| pace.look(window, requests)).collect::<Vec<_>>()
        };
        let four = [Quiet; 4];
        assert_eq!(looks(&mut pace, 1, 1..=6), [&four[..], &[BusyNow, BusyStill]].concat());
        assert_eq!(looks(&mut pace, 2, 7..=10), four, "what came before counts no more");
        assert_eq!(looks(&mut pace, 3, 11..=15), [&four[..], &[BusyNow]].concat());
        assert!(!pace.is_news(15));
        assert!(pace.is_news(16));
    }

    #[test]
    fn a_crowd_is_seen_at_once_and_forgotten_after_a_window() {
        let census = Census::new(2);
        let count = |kind, window, times| (0..times).for_each(|_| census.count(kind, window));
        count(Kind::Asks, 7, 1);
        assert!(!census.has_threads(Kind::Asks, 7), "one alone");
        count(Kind::Asks, 7, 7);
        assert!(census.has_threads(Kind::Asks, 7));
        assert!(census.has_threads(Kind::Asks, 8), "as many as a window ago");
        count(Kind::Asks, 8, 9);
        assert!(!census.has_threads(Kind::Asks, 8));
        count(Kind::Asks, 7, 1);
        assert!(!census.has_threads(Kind::Asks, 9), "they were too many a window ago");
        count(Kind::Asks, 10, 2);
        assert!(census.has_threads(Kind::Asks, 10));
        assert!(!census.has_threads(Kind::Asks, 12), "that was two windows ago");
    }

    #[test]
    fn kinds_count_apart() {
        let census = Census::new(2);
        census.count(Kind::Writes, 3);
        assert!(census.has_threads(Kind::Writes, 3));
        (0..3).for_each(|_| census.count(Kind::Writes, 3));
        assert!(census.has_threads(Kind::Writes, 3));
        census.count(Kind::Writes, 3);
        assert!(!census.has_threads(Kind::Writes, 3), "five of two processors");
        assert!(!census.has_threads(Kind::Asks, 3));
        (0..2).for_each(|_| census.count(Kind::Asks, 3));
        assert!(census.has_threads(Kind::Asks, 3));
        assert_eq!(Census::new(64).good_for, [2..=256, 1..=128]);
    }
}
