//! Places inside a tight page that decoding can go on from.
//!
//! A stream of symbols can only be read from its head, unless somebody was there before: what a decoder
//! knows after some symbols (its states, where it is in the words and the raw bits, the value reached) is
//! a few bytes. Whoever keeps these finds rows in the middle of a page without decoding what comes
//! before them. The idea is that of indexed access to deflate streams (zran.c, in zlib's examples).
//!
//! Invariants
//! - Marks are of one page. With those of another, decoding gives other values or an error.

use super::rans::LANES;

/// Symbols between two marks. With fewer, a few rows would take less decoding; but where a symbol takes two
/// bits, a mark of 56 bytes is already two fifths of what it marks.
pub(super) const MARK_SYMBOLS: usize = 512;

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

/// The marks of a page that are known, ascending.
#[derive(Clone, Debug, Default)]
pub struct Marks(Vec<Mark>);

impl Marks {
    /// The last mark at or before a value.
    #[must_use]
    pub fn before(&self, value: usize) -> Option<Mark> {
        let next = self.0.partition_point(|mark| mark.next() <= value);
        next.checked_sub(1).map(|at| self.0[at])
    }

    /// Whether decoding a few values from `value` on takes no more than that, and the few before them that
    /// stand between two marks.
    #[must_use]
    pub fn reach(&self, value: usize) -> bool {
        self.before(value).is_some_and(|mark| value - mark.next() <= MARK_SYMBOLS)
    }

    /// Adds those that are not known yet, and says how many that were.
    pub fn add(&mut self, passed: &[Mark]) -> usize {
        let known = self.0.len();
        for mark in passed {
            if let Err(at) = self.0.binary_search_by_key(&mark.next, |known| known.next) {
                self.0.insert(at, *mark);
            }
        }
        self.0.len() - known
    }
}
