//! The series of a shard, in the order they came.
//!
//! Whoever sends rows sends those of the same series in the same order again and again, and queries ask for series in the
//! order of their numbers, which is that of their first rows: the series that is looked for is mostly the one behind the
//! last that was found. That is looked at first, and waits for nothing: entries lie side by side. A table, which says where
//! the others are, has nothing but their places: it is small enough to be in a cache.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use model::SeriesId;

use super::shard::SeriesRows;

#[derive(Debug)]
struct Entry {
    series: SeriesId,
    rows: SeriesRows,
}

/// Series and what is known of their rows.
#[derive(Debug, Default)]
pub(super) struct Entries {
    all: Vec<Entry>,
    /// Places of all.
    by_series: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// Behind the place that was asked for last in order to be changed.
    next: usize,
}

impl Entries {
    /// What is known of a series, to be changed; `new` if it was not there.
    #[inline]
    pub(super) fn get_or_insert(
        &mut self,
        series: SeriesId,
        new: impl FnOnce() -> SeriesRows,
    ) -> &mut SeriesRows {
        let at = match self.all.get(self.next) {
            Some(entry) if entry.series == series => self.next,
            _ => self.find(series).unwrap_or_else(|| self.insert(series, new())),
        };
        self.next = at + 1;
        &mut self.all[at].rows
    }

    /// What is known of a series.
    pub(super) fn get(&self, series: SeriesId) -> Option<&SeriesRows> {
        self.find(series).map(|at| &self.all[at].rows)
    }

    /// The same, looked for at a place first, which is then behind it.
    #[inline]
    pub(super) fn get_near(&self, place: &mut usize, series: SeriesId) -> Option<&SeriesRows> {
        let at = match self.all.get(*place) {
            Some(entry) if entry.series == series => *place,
            _ => self.find(series)?,
        };
        *place = at + 1;
        Some(&self.all[at].rows)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (SeriesId, &SeriesRows)> {
        self.all.iter().map(|entry| (entry.series, &entry.rows))
    }

    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> usize {
        self.all.capacity() * size_of::<Entry>() + self.by_series.allocation_size()
    }

    fn find(&self, series: SeriesId) -> Option<usize> {
        let is_it = |at: &u32| self.all[*at as usize].series == series;
        self.by_series.find(self.hasher.hash_one(series), is_it).map(|at| *at as usize)
    }

    /// Adds a series that is not there.
    #[cold]
    fn insert(&mut self, series: SeriesId, rows: SeriesRows) -> usize {
        let (at, hasher) = (self.all.len(), &self.hasher);
        self.all.push(Entry { series, rows });
        let hash = |at: &u32| hasher.hash_one(self.all[*at as usize].series);
        self.by_series.insert_unique(hasher.hash_one(series), at as u32, hash);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::MeasurementNo;

    #[test]
    fn series_are_found_in_any_order() {
        let mut entries = Entries::default();
        let new = |number: u32| move || SeriesRows::new(MeasurementNo(number));
        let order =
            |round: u64| (0..500u64).map(move |at| SeriesId(at * (7 + 2 * round) % 500 * 3));
        for round in 0..6 {
            for series in order(round) {
                let rows = entries.get_or_insert(series, new(series.0 as u32));
                assert_eq!(rows.measurement, MeasurementNo(series.0 as u32));
            }
        }
        let first: Vec<SeriesId> = entries.iter().map(|(series, _)| series).collect();
        let mut came: Vec<SeriesId> = Vec::new();
        for round in 0..6 {
            came.extend(order(round).filter(|s| !came.contains(s)).collect::<Vec<_>>());
        }
        assert_eq!(first, came, "in the order they came");
        let mut place = 0;
        for id in 0..1500u64 {
            let expected = id.is_multiple_of(3).then_some(MeasurementNo(id as u32));
            let found = |rows: Option<&SeriesRows>| rows.map(|rows| rows.measurement);
            assert_eq!(found(entries.get(SeriesId(id))), expected);
            assert_eq!(found(entries.get_near(&mut place, SeriesId(id))), expected);
        }
    }
}
