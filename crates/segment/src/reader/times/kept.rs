//! What is kept in the cache beside a page of times.
//!
//! Times are learned from a page once some of them were wanted as often as that costs (as with values, `thaw`), or while it is
//! written.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use super::by_time::ByTime;
use super::lines::Lines;
use super::pieces::{Known, Pieces};
use crate::reader::thaw::{LOOKS_BEFORE, LOOKS_OF_MOST};

/// What is known of a page of times.
#[derive(Debug, Default)]
pub(in crate::reader) struct KeptTimes {
    /// How often some of them were wanted before they were learned.
    looks: AtomicU32,
    learned: OnceLock<Learned>,
    /// How often rows of a short time were wanted before they were listed.
    short_looks: AtomicU32,
    by_time: OnceLock<Option<ByTime>>,
}

/// Looks at a short time before the one that lists rows by their time, which takes as long as decoding the times three or four times.
const SHORT_LOOKS_BEFORE: u32 = 3;

/// What times turned out to be.
#[derive(Debug)]
pub(super) enum Learned {
    Lines(Arc<Lines>),
    /// Of a page that was entropy-coded.
    Pieces(Pieces),
    /// Neither, of a page that is read fast as it is.
    Known(Known),
}

impl Learned {
    /// Those that are lines.
    fn lines(times: &[i64]) -> Option<Self> {
        Lines::of(times).map(|lines| Self::Lines(Arc::new(lines)))
    }

    fn of(times: &[i64], page: &[u8]) -> Self {
        match Self::lines(times) {
            Some(lines) => lines,
            None if codec::is_entropy_coded(page) => Self::Pieces(Pieces::of(times)),
            None => Self::Known(Known::of_page(times, page)),
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Self::Lines(lines) => size_of::<Lines>() + lines.memory_bytes(),
            Self::Pieces(pieces) => pieces.memory_bytes(),
            Self::Known(known) => known.memory_bytes(),
        }
    }
}

impl KeptTimes {
    /// Of the times of a page that is being written.
    pub(in crate::reader) fn written(times: &[i64], page: &[u8]) -> Self {
        let learned = Learned::of(times, page);
        Self { learned: OnceLock::from(learned), ..Self::default() }
    }

    /// Bytes of memory beside itself.
    pub(in crate::reader) fn memory_bytes(&self) -> usize {
        let of_list = self.by_time().map_or(0, ByTime::memory_bytes);
        self.learned.get().map_or(0, Learned::memory_bytes) + of_list
    }

    /// The rows by their time, if they were listed.
    pub(super) fn by_time(&self) -> Option<&ByTime> {
        self.by_time.get()?.as_ref()
    }

    /// Says that rows of a short time are wanted that were not listed by it. Whether they shall be now.
    pub(super) fn touch_short(&self) -> bool {
        self.by_time.get().is_none()
            && self.short_looks.fetch_add(1, Ordering::Relaxed) >= SHORT_LOOKS_BEFORE
    }

    /// Lists rows by their times, which these are. The bytes of memory that were added.
    pub(super) fn list_by_time(&self, times: &[i64]) -> usize {
        let listed = ByTime::of(times);
        let bytes = listed.as_ref().map_or(0, ByTime::memory_bytes);
        if self.by_time.set(listed).is_ok() { bytes } else { 0 }
    }

    /// What the times turned out to be, if they were learned.
    pub(super) fn learned(&self) -> Option<&Learned> {
        self.learned.get()
    }

    /// The times if they are lines.
    pub(super) fn lines(&self) -> Option<&Arc<Lines>> {
        match self.learned.get() {
            Some(Learned::Lines(lines)) => Some(lines),
            _ => None,
        }
    }

    /// Says that times are wanted that were not learned, most of them or a few. Whether they shall be learned now.
    pub(super) fn touch(&self, are_most: bool) -> bool {
        let weight = if are_most { LOOKS_OF_MOST } else { 1 };
        self.looks.fetch_add(weight, Ordering::Relaxed) >= LOOKS_BEFORE
    }

    /// Learns the times of a page, which are these; if not `at_any_cost`, only what costs next to nothing. The bytes of memory that were
    /// added.
    pub(super) fn learn(&self, times: &[i64], page: &[u8], at_any_cost: bool) -> usize {
        let learned = match at_any_cost {
            true => Some(Learned::of(times, page)),
            false => Learned::lines(times),
        };
        let Some(learned) = learned else { return 0 };
        let bytes = learned.memory_bytes();
        if self.learned.set(learned).is_ok() { bytes } else { 0 }
    }
}
