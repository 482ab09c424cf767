//! What is kept of a page so that rows in the middle of it are found without those before them.
//!
//! A page of differences says what their sum is once in thousands of rows, and exceptions of any bit-packed page stand one
//! behind the other, each with how far it is from the one before. Whoever reads a few rows of a page again and again keeps
//! more of that than the page says.

use super::Packed;
use crate::{float, patched::ExceptionPlace};

/// Rows from one that is kept to the next: what lies between takes as long as to decode as many rows as are wanted mostly.
const ROWS: usize = 512;
/// Of pages of fewer rows nothing is kept.
const PAGE_ROWS_MIN: usize = 2 * ROWS;

/// What somebody has kept of a row of a page, so that later ones are found from there. The first row is one by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waypoint {
    /// The row, a multiple of eight.
    pub row: usize,
    /// Its value, less the first of the page, modulo 2^64; of a page of floats those of the integers that they are stored as.
    pub distance: i64,
    /// Exceptions that are before the row.
    pub exceptions: ExceptionPlace,
}

impl Waypoint {
    pub(crate) fn check(&self, row: usize) {
        let is_before = self.row <= row && self.row.is_multiple_of(8);
        assert!(is_before, "BUG: from {self:?} to row {row}");
    }
}

/// Where to go on among the exceptions of a page, for every so many'th row.
#[derive(Debug)]
pub struct ExceptionPlaces(Box<[ExceptionPlace]>);

impl ExceptionPlaces {
    /// Of a page of `count` integers. `None`: it has few, or is damaged.
    #[must_use]
    pub fn of_i64(page: &[u8], count: usize) -> Option<Self> {
        Self::of(&Packed::open(page, count)?)
    }

    fn of(packed: &Packed<'_>) -> Option<Self> {
        packed.exception_places(ROWS).map(Self)
    }

    /// The last of them that is before a row.
    #[must_use]
    pub fn before(&self, row: usize) -> ExceptionPlace {
        self.0.get(row / ROWS).or(self.0.last()).copied().unwrap_or_default()
    }

    /// Bytes of memory beside itself.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

/// Waypoints of a page of numbers.
#[derive(Debug)]
pub struct Waypoints {
    /// Of every [`ROWS`]th row, from the first on; empty if values are no differences.
    distances: Box<[i64]>,
    exceptions: Option<ExceptionPlaces>,
}

impl Waypoints {
    /// Whether there may be any of a page of `count` integers: what tells that is looked at soon.
    #[must_use]
    pub fn help_i64(page: &[u8], count: usize) -> bool {
        Self::helped(page, count).is_some()
    }

    fn helped(page: &[u8], count: usize) -> Option<Packed<'_>> {
        let packed = if count < PAGE_ROWS_MIN { None } else { Packed::open(page, count) };
        packed.filter(|packed| packed.is_read_in_order())
    }

    /// The same of a page of floats.
    #[must_use]
    pub fn help_f64(page: &[u8], count: usize) -> bool {
        float::integers(page).is_some_and(|page| Self::help_i64(page, count))
    }

    /// Of a page of `count` integers. `None`: they do not help, or it is damaged.
    #[must_use]
    pub fn of_i64(page: &[u8], count: usize) -> Option<Self> {
        let packed = Self::helped(page, count)?;
        let distances = packed.distances(ROWS)?;
        Some(Self { distances, exceptions: ExceptionPlaces::of(&packed) })
    }

    /// The same of a page of floats.
    #[must_use]
    pub fn of_f64(page: &[u8], count: usize) -> Option<Self> {
        Self::of_i64(float::integers(page)?, count)
    }

    /// The last of them that is not behind a row of the page.
    #[must_use]
    pub fn before(&self, row: usize) -> Waypoint {
        let at = row / ROWS;
        let exceptions = self.exceptions.as_ref().map(|places| places.before(at * ROWS));
        Waypoint {
            row: at * ROWS,
            distance: self.distances.get(at).copied().unwrap_or(0),
            exceptions: exceptions.unwrap_or_default(),
        }
    }

    /// Bytes of memory beside themselves.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let of_places = self.exceptions.as_ref().map_or(0, ExceptionPlaces::memory_bytes);
        size_of_val(&*self.distances) + of_places
    }
}
