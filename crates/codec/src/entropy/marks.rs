//! Places inside a tight page that decoding can go on from.
//!
//! A stream of symbols can only be read from its head, unless somebody was there before: what a decoder
//! knows after some symbols (its states, where it is in the words and the raw bits, the value reached) is
//! a few bytes. Whoever keeps these finds rows in the middle of a page without decoding what comes
//! before them. The idea is that of indexed access to deflate streams (zran.c, in zlib's examples).
//!
//! Invariants
//! - Marks are of one page. With those of another, decoding gives other values or an error.
//! - A mark never changes: readers share them without a lock.

use std::sync::OnceLock;

use super::CHUNK_ROWS;
use super::rans::{END_SYMBOLS_MAX, LANES};

/// Symbols between two marks. With fewer, a few rows would take less decoding; but where a symbol takes two
/// bits, a mark of 64 bytes is already almost half of what it marks.
pub(super) const MARK_SYMBOLS: usize = 512;

/// Values from a mark to the farthest one that has no nearer mark: those between two marks, or up to the last
/// one of a stream, whose end has none.
pub const MARK_REACH: usize = MARK_SYMBOLS + END_SYMBOLS_MAX;

/// What a decoder knows before one of a page's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub(super) next: u32,
    /// Where in its chunk the next word and the next raw bit are.
    pub(super) word: u32,
    pub(super) raw_bit: u32,
    pub(super) states: [u32; LANES],
    /// The value before, if differences are coded.
    pub(super) value: u64,
}

impl Mark {
    /// Which value comes next, counted in the page.
    #[must_use]
    pub fn next(&self) -> usize {
        self.next as usize
    }
}

/// The marks of a page, as far as they are known.
///
/// Each has its place by the value that comes next. Chunks begin anew, so the first place of each stays empty.
#[derive(Debug)]
pub struct Marks(Box<[OnceLock<Mark>]>);

impl Marks {
    /// Those of a page of `count` values: none is known.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self((0..count.div_ceil(MARK_SYMBOLS)).map(|_| OnceLock::new()).collect())
    }

    /// Bytes of memory they take.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    /// The last known mark at or before a value, in its chunk.
    #[must_use]
    pub fn before(&self, value: usize) -> Option<Mark> {
        const PLACES: usize = CHUNK_ROWS / MARK_SYMBOLS;
        let place = (value / MARK_SYMBOLS).min(self.0.len().checked_sub(1)?);
        let mut known =
            self.0[place / PLACES * PLACES..=place].iter().rev().filter_map(OnceLock::get);
        // The value of a restart is not coded: then marks are one value behind where their places begin.
        known.find(|mark| mark.next() <= value).copied()
    }

    /// Whether decoding a few values from `value` on takes no more than that, and at most [`MARK_REACH`] before
    /// them: so it is for all that come after a mark, once those up to them were passed.
    #[must_use]
    pub fn reach(&self, value: usize) -> bool {
        self.before(value).is_some_and(|mark| value - mark.next() <= MARK_REACH)
    }

    /// Adds those that are not known yet.
    ///
    /// # Panics
    /// If the page does not have that many values.
    pub fn add(&self, passed: &[Mark]) {
        for mark in passed {
            self.0[mark.next() / MARK_SYMBOLS].get_or_init(|| *mark);
        }
    }
}
