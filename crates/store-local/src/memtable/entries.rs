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
}

impl Entries {
    /// Where a series is: its place, which it keeps. That behind `last` and `last` itself are looked at first.
    #[inline]
    pub(super) fn place(&self, last: usize, series: SeriesId) -> Option<usize> {
        let is_at = |place: usize| self.all.get(place).is_some_and(|e| e.series == series);
        match last.wrapping_add(1) {
            next if is_at(next) => Some(next),
            _ if is_at(last) => Some(last),
            _ => self.find(series),
        }
    }

    /// What is known of the series at a place.
    #[inline]
    pub(super) fn at(&self, place: usize) -> &SeriesRows {
        &self.all[place].rows
    }

    /// The same, to be changed.
    #[inline]
    pub(super) fn at_mut(&mut self, place: usize) -> &mut SeriesRows {
        &mut self.all[place].rows
    }

    /// What is known of a series.
    pub(super) fn get(&self, series: SeriesId) -> Option<&SeriesRows> {
        self.find(series).map(|place| self.at(place))
    }

    /// The place of a series, which gets one if it has none.
    #[inline]
    pub(super) fn place_or_insert(
        &mut self,
        series: SeriesId,
        new: impl FnOnce() -> SeriesRows,
    ) -> usize {
        self.find(series).unwrap_or_else(|| self.insert(series, new()))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
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
            let mut last = usize::MAX;
            for series in order(round) {
                let near = entries.place(last, series);
                let place = entries.place_or_insert(series, new(series.0 as u32));
                assert!(near == Some(place) || near.is_none() && round == 0);
                assert_eq!(entries.at_mut(place).measurement, MeasurementNo(series.0 as u32));
                assert_eq!(entries.place(place, series), Some(place), "it itself");
                last = place;
            }
        }
        let first: Vec<SeriesId> = entries.iter().map(|(series, _)| series).collect();
        let came: Vec<SeriesId> = order(0).collect();
        assert_eq!(first, came, "in the order they came");
        let mut last = 0;
        for id in 0..1500u64 {
            let expected = id.is_multiple_of(3).then_some(MeasurementNo(id as u32));
            let found = |rows: Option<&SeriesRows>| rows.map(|rows| rows.measurement);
            assert_eq!(found(entries.get(SeriesId(id))), expected);
            let place = entries.place(last, SeriesId(id));
            assert_eq!(found(place.map(|place| entries.at(place))), expected);
            last = place.unwrap_or(last);
        }
    }
}
