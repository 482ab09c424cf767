//! Tags of whole measurements, as columns: what dashboards over all series ask for again and again.
//!
//! The number of a series stands for the same tags as long as the store exists, so that an entry is
//! right for the series it was made for, and for some of them, and need not be told of changes.

use std::sync::Arc;

use hashbrown::HashMap;
use model::Name;
use parking_lot::RwLock;
use roaring::RoaringTreemap;
use store::{SeriesOrders, TagColumn};

use crate::rows::MeasurementNo;

/// A bounded cache of tag columns.
#[derive(Debug)]
pub(crate) struct TagCache {
    bytes_max: usize,
    held: RwLock<Held>,
}

#[derive(Debug, Default)]
struct Held {
    entries: HashMap<MeasurementNo, Entry>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    /// The series that each column has a code for, ascending.
    series: RoaringTreemap,
    columns: Vec<TagColumn>,
    orders: SeriesOrders,
    bytes: usize,
}

impl TagCache {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, held: RwLock::default() }
    }

    /// The columns of `keys` over these series, if all of them are there: as they were made, or out of those of more series. What is known of
    /// the order of the series is shared by who gets the same ones.
    pub(crate) fn get(
        &self,
        measurement: MeasurementNo,
        series: &RoaringTreemap,
        keys: &[Name],
    ) -> Option<(Vec<TagColumn>, SeriesOrders)> {
        let held = self.held.read();
        let entry = held.entries.get(&measurement)?;
        let column = |key: &Name| entry.columns.iter().find(|column| column.key == *key);
        let columns: Vec<&TagColumn> = keys.iter().map(column).collect::<Option<_>>()?;
        if entry.series == *series {
            return Some((columns.into_iter().cloned().collect(), entry.orders.clone()));
        }
        let places = entry.places(series)?;
        let of_column = |column: &TagColumn| TagColumn {
            key: Name::clone(&column.key),
            codes: places.iter().map(|place| column.codes[*place]).collect(),
            values: Arc::clone(&column.values),
        };
        Some((columns.into_iter().map(of_column).collect(), SeriesOrders::default()))
    }

    /// The series of the entry, if these are among them, and others.
    pub(crate) fn known_beside(
        &self,
        measurement: MeasurementNo,
        series: &RoaringTreemap,
    ) -> Option<RoaringTreemap> {
        let held = self.held.read();
        let entry = held.entries.get(&measurement)?;
        let is_more = entry.series != *series && series.is_subset(&entry.series);
        is_more.then(|| entry.series.clone())
    }

    /// Keeps columns over these series. What was kept over others is of no use any more; if there is
    /// too much, everything else goes.
    pub(crate) fn insert(
        &self,
        measurement: MeasurementNo,
        series: &RoaringTreemap,
        columns: &[TagColumn],
    ) {
        let mut held = self.held.write();
        let known = held.entries.remove(&measurement);
        held.bytes -= known.as_ref().map_or(0, |entry| entry.bytes);
        let mut entry = match known {
            Some(entry) if entry.series == *series => entry,
            _ => Entry {
                series: series.clone(),
                columns: Vec::new(),
                orders: SeriesOrders::default(),
                bytes: series.serialized_size() + SeriesOrders::bytes_max(series.len() as usize),
            },
        };
        let is_new = |column: &&TagColumn| entry.columns.iter().all(|c| c.key != column.key);
        let new: Vec<&TagColumn> = columns.iter().filter(is_new).collect();
        entry.bytes += new.iter().map(|column| bytes_of(column)).sum::<usize>();
        if entry.bytes > self.bytes_max {
            return;
        }
        entry.columns.extend(new.into_iter().cloned());
        if held.bytes + entry.bytes > self.bytes_max {
            *held = Held::default();
        }
        held.bytes += entry.bytes;
        held.entries.insert(measurement, entry);
    }
}

impl Entry {
    /// Where in the columns some series are, if they are in them.
    fn places(&self, series: &RoaringTreemap) -> Option<Vec<usize>> {
        if !series.is_subset(&self.series) {
            return None;
        }
        let first = self.series.min()?;
        if self.series.max()? - first == self.series.len() - 1 {
            return Some(series.iter().map(|series| (series - first) as usize).collect());
        }
        if series.len().saturating_mul(COUNTED) < self.series.len() {
            return Some(series.iter().map(|one| self.series.rank(one) as usize - 1).collect());
        }
        let mut all = self.series.iter().enumerate();
        let place = |wanted| all.find(|(_, series)| *series == wanted).map(|(place, _)| place);
        series.iter().map(place).collect()
    }
}

/// How many series come before one of so many is counted sooner than all others are passed by.
const COUNTED: u64 = 16;

fn bytes_of(column: &TagColumn) -> usize {
    size_of::<TagColumn>() + column.codes.len() * 4 + column.values.memory_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(key: &str, codes: &[u32]) -> TagColumn {
        let values = Arc::new(["a", "b"].into_iter().collect());
        TagColumn { key: key.into(), codes: codes.into(), values }
    }

    fn codes(cache: &TagCache, no: u32, series: &[u64], keys: &[&str]) -> Option<Vec<Vec<u32>>> {
        let keys: Vec<Name> = keys.iter().map(|key| Name::from(*key)).collect();
        let series = series.iter().copied().collect();
        let (found, _) = cache.get(MeasurementNo(no), &series, &keys)?;
        Some(found.into_iter().map(|column| column.codes.to_vec()).collect())
    }

    #[test]
    fn columns_are_right_for_the_series_they_were_made_for_only() {
        let cache = TagCache::new(10_000);
        let insert = |no, series: &[u64], columns: &[TagColumn]| {
            cache.insert(MeasurementNo(no), &series.iter().copied().collect(), columns);
        };
        insert(1, &[1, 2], &[column("x", &[0, 1])]);
        insert(1, &[1, 2], &[column("y", &[1, 1]), column("x", &[0, 1])]);
        insert(2, &[7], &[column("x", &[1])]);
        assert_eq!(codes(&cache, 1, &[1, 2], &["y", "x"]).unwrap(), [[1, 1], [0, 1]]);
        assert_eq!(codes(&cache, 2, &[7], &["x"]).unwrap(), [[1]]);
        assert_eq!(codes(&cache, 1, &[1, 2], &["y", "z"]), None);
        assert_eq!(codes(&cache, 1, &[1, 3], &["x"]), None);
        // Of some of them.
        assert_eq!(codes(&cache, 1, &[2], &["x", "y"]).unwrap(), [[1], [1]]);
        insert(3, &[5, 9, 12], &[column("x", &[0, 1, 0])]);
        assert_eq!(codes(&cache, 3, &[9], &["x"]).unwrap(), [[1]]);
        assert_eq!(codes(&cache, 3, &[5, 12], &["x"]).unwrap(), [[0, 0]]);
        assert_eq!(codes(&cache, 3, &[5, 10], &["x"]), None);
        // A few of many that do not follow one another.
        let (odd, their): (Vec<u64>, Vec<u32>) = (0..60).map(|n| (2 * n + 1, n as u32)).unzip();
        insert(4, &odd, &[column("x", &their)]);
        assert_eq!(codes(&cache, 4, &[1, 51, 119], &["x"]).unwrap(), [[0, 25, 59]]);
        assert_eq!(codes(&cache, 4, &[1, 52], &["x"]), None);
        // Another series came.
        insert(1, &[1, 2, 3], &[column("x", &[0, 1, 0])]);
        assert_eq!(codes(&cache, 1, &[1, 2], &["x"]).unwrap(), [[0, 1]]);
        assert_eq!(codes(&cache, 1, &[1, 4], &["x"]), None);
        assert_eq!(codes(&cache, 1, &[1, 2, 3], &["x"]).unwrap(), [[0, 1, 0]]);
        assert_eq!(codes(&cache, 1, &[1, 2, 3], &["y"]), None);
    }

    #[test]
    fn memory_is_bounded() {
        let cache = TagCache::new(10_000);
        for no in 0..200 {
            let series: RoaringTreemap = (0..50).collect();
            cache.insert(MeasurementNo(no), &series, &[column("x", &[0; 50])]);
            let held = cache.held.read();
            assert_eq!(held.bytes, held.entries.values().map(|entry| entry.bytes).sum::<usize>());
            assert!(held.bytes <= 10_000 && held.entries.contains_key(&MeasurementNo(no)));
        }
        let many: Vec<u32> = vec![0; 10_000];
        let series: RoaringTreemap = (0..10_000).collect();
        cache.insert(MeasurementNo(7), &series, &[column("x", &many)]);
        assert!(!cache.held.read().entries.contains_key(&MeasurementNo(7)));
    }
}
