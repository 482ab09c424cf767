//! Turning a series' stored rows into columns: sorted by time, one row a time.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use model::{Column, SeriesId, TimeRange};
use segment::SparseColumn;

use super::block_builder::BlockBuilder;
use super::places::FieldPlaces;
use super::shard::{LOOKED_UP, Series, Shard, StoredRow};

/// Rows of one series, sorted by time, no time twice.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeriesBlock {
    pub(crate) times: Vec<i64>,
    /// The wanted fields.
    pub(crate) columns: Vec<Column>,
}

/// How many rows of a series are needed, and from which end: rows beyond them may be left out.
#[derive(Clone, Debug)]
pub(crate) struct Few {
    /// Rows that count.
    pub(crate) rows: usize,
    /// The last ones in time, not the first.
    pub(crate) from_end: bool,
    /// A row counts that has one of these fields, named by their places; `None`: one of any.
    pub(crate) with_any: Option<Arc<[usize]>>,
    /// Whether rows that do not count can be left out, too: no row elsewhere has their time.
    pub(crate) is_alone: bool,
}

impl Few {
    fn counts(&self, row: &StoredRow<'_>, places: &FieldPlaces) -> bool {
        places.has_any(row, self.with_any.as_deref())
    }
}

/// Most rows that are looked for one by one among rows that are not in order.
const FEW_ROWS_MAX: usize = 64;

/// Copies the rows of a series within `time` that have one of the fields, as far as these go; with `few` at
/// least those.
pub(super) fn read(
    shard: &Shard,
    series: Series<'_>,
    (time, arrived_before): (TimeRange, u32),
    places: &FieldPlaces,
    few: Option<&Few>,
) -> SeriesBlock {
    let wanted = Wanted { shard, series, time, hidden: &[], arrived_before, places };
    let mut block = BlockBuilder::new(shard, places, true);
    block.reserve(wanted.expected_of(few));
    wanted.add_to(&mut block, few);
    block.finish()
}

/// The same without gaps: of each column the values that there are. All rows within `time` but those that are hidden.
pub(super) fn read_sparse(
    shard: &Shard,
    series: Series<'_>,
    (time, hidden): (TimeRange, &[i64]),
    places: &FieldPlaces,
) -> (Vec<i64>, Vec<SparseColumn>) {
    let mut block = BlockBuilder::new(shard, places, false);
    let wanted = Wanted { shard, series, time, hidden, arrived_before: u32::MAX, places };
    block.reserve(wanted.expected());
    wanted.all(&mut block);
    block.finish_sparse()
}

/// Rows of one of several series, in a block of them all.
#[derive(Debug)]
pub(crate) struct FoundRows {
    /// Its place among those that were asked for.
    pub(crate) at: usize,
    pub(crate) rows: Range<usize>,
}

/// The rows of several series of a shard, as [`read`] copies them of each, one behind the other; of those that have any where
/// they are.
pub(super) fn read_many(
    shard: &Shard,
    wanted: &[(usize, SeriesId)],
    (time, arrived_before): (TimeRange, u32),
    places: &FieldPlaces,
    few: Option<&Few>,
) -> (SeriesBlock, Vec<FoundRows>) {
    let mut block = BlockBuilder::new(shard, places, true);
    let (mut found, mut last) = (Vec::with_capacity(wanted.len()), 0);
    for some in wanted.chunks(LOOKED_UP) {
        // Looked up one right behind the other, so that they are waited for together; then their rows are asked for.
        let mut series = [None; LOOKED_UP];
        for (series, (_, id)) in series.iter_mut().zip(some) {
            *series = shard.series_near(&mut last, *id);
        }
        let of = |series| Wanted { shard, series, time, hidden: &[], arrived_before, places };
        let expected = series.iter().flatten().map(|series| of(*series).expected_of(few));
        block.reserve(expected.sum());
        series.iter().flatten().for_each(|series| shard.prefetch(*series));
        for ((at, _), series) in some.iter().zip(series) {
            let Some(series) = series else { continue };
            let before = block.rows();
            of(series).add_to(&mut block, few);
            if block.rows() > before {
                found.push(FoundRows { at: *at, rows: before..block.rows() });
            }
        }
    }
    (block.finish(), found)
}

/// Which rows of a series are wanted.
pub(super) struct Wanted<'a> {
    pub(super) shard: &'a Shard,
    pub(super) series: Series<'a>,
    pub(super) time: TimeRange,
    /// Times of rows that are not wanted, ascending.
    pub(super) hidden: &'a [i64],
    pub(super) arrived_before: u32,
    pub(super) places: &'a FieldPlaces,
}

impl<'a> Wanted<'a> {
    /// Whether a row is one of them.
    pub(super) fn has(&self, row: &StoredRow<'_>) -> bool {
        self.time.contains(row.time_ns)
            && row.arrival < self.arrived_before
            && self.places.has_fields(row.layout)
            && (self.hidden.is_empty() || self.hidden.binary_search(&row.time_ns).is_err())
    }

    /// How many rows to make room for, if all are wanted.
    fn expected(&self) -> usize {
        let rows = self.series.rows;
        let is_everything = self.time.min <= rows.min_time && self.time.max >= rows.max_time;
        if is_everything { rows.rows as usize } else { 0 }
    }

    /// The same, if a few are enough.
    fn expected_of(&self, few: Option<&Few>) -> usize {
        few.map_or(usize::MAX, |few| few.rows).min(self.expected())
    }

    /// Adds rows to `block`, in order of time: all, or with `few` at least those.
    fn add_to(&self, block: &mut BlockBuilder<'a, '_>, few: Option<&Few>) {
        let few = few.filter(|few| (1..self.series.rows.rows as usize).contains(&few.rows));
        let Some((few, mut found)) = few.and_then(|few| Some((few, self.few(few)?))) else {
            self.all(block);
            return;
        };
        if few.is_alone
            && few.with_any.is_some()
            // What was written later to the same time completes a row.
            && found.windows(2).all(|two| two[0].time_ns != two[1].time_ns)
        {
            found.retain(|row| few.counts(row, self.places));
        }
        block.add(&found);
    }

    /// Whether the rows arrived in order of time.
    fn is_in_order(&self) -> bool {
        self.series.rows.is_ascending() || self.time.min > self.series.rows.late_max
    }

    /// Adds all rows to `block`, in order of time.
    fn all(&self, block: &mut BlockBuilder<'a, '_>) {
        if self.is_in_order() {
            self.shard.for_each_row(self.series, self.time, |row| {
                if self.has(&row) {
                    block.push(row);
                }
            });
            return;
        }
        let mut found: Vec<StoredRow<'a>> = Vec::with_capacity(self.expected());
        self.shard.for_each_row(self.series, self.time, |row| {
            if self.has(&row) {
                found.push(row);
            }
        });
        self.sort(&mut found);
        block.add(&found);
    }

    /// Rows until there are as many as `few` says, in order of time; `None`: all are needed.
    fn few(&self, few: &Few) -> Option<Vec<StoredRow<'a>>> {
        let is_ascending = self.series.rows.is_ascending();
        if is_ascending || few.from_end {
            let (mut found, is_whole) = self.in_order(few);
            if is_whole || is_ascending {
                if few.from_end {
                    found.reverse();
                }
                return Some(found);
            }
        }
        if few.rows > FEW_ROWS_MAX {
            return None;
        }
        let within = self.bound(few)?;
        let mut found = Vec::new();
        self.shard.for_each_row(self.series, within, |row| {
            if within.contains(row.time_ns) && self.has(&row) {
                found.push(row);
            }
        });
        self.sort(&mut found);
        Some(found)
    }

    /// Rows from one end, of those that arrived in order of time and later than any that did not; and
    /// whether nothing beyond them is needed. Reading from the end they come with the last first.
    fn in_order(&self, few: &Few) -> (Vec<StoredRow<'a>>, bool) {
        let mut found: Vec<StoredRow<'a>> = Vec::new();
        let late_max = self.series.rows.late_max;
        // All that is wanted may be later than any row that is not in order.
        let (mut left, mut is_whole) = (few.rows, self.time.min > late_max);
        // From the end nothing is behind what is in order.
        let after_late = TimeRange { min: self.time.min.max(late_max), max: self.time.max };
        let time = if few.from_end { after_late } else { self.time };
        self.shard.rows_until_enough(self.series, time, few.from_end, |row| {
            if row.time_ns <= late_max {
                return ControlFlow::Continue(());
            }
            let is_behind = if few.from_end {
                row.time_ns < self.time.min
            } else {
                row.time_ns > self.time.max
            };
            if is_behind {
                is_whole = true;
                return ControlFlow::Break(());
            }
            if !self.has(&row) {
                return ControlFlow::Continue(());
            }
            found.push(row);
            left -= usize::from(few.counts(&row, self.places));
            if left > 0 {
                return ControlFlow::Continue(());
            }
            is_whole = true;
            ControlFlow::Break(())
        });
        (found, is_whole)
    }

    /// The times that the rows are within that `few` wants; `None` if there are fewer.
    fn bound(&self, few: &Few) -> Option<TimeRange> {
        let (series, mut within) = (self.series, self.time);
        // The nearest times so far, as distances from the end that is read from, descending.
        let mut nearest: Vec<i64> = Vec::with_capacity(few.rows + 1);
        self.shard.rows_still_wanted(series, self.time, few.from_end, |row| {
            if !within.contains(row.time_ns) || !self.has(&row) || !few.counts(&row, self.places) {
                return within;
            }
            let distance = if few.from_end { !row.time_ns } else { row.time_ns };
            let at = nearest.partition_point(|other| *other > distance);
            if nearest.get(at) == Some(&distance) {
                return within;
            }
            nearest.insert(at, distance);
            if nearest.len() > few.rows {
                nearest.remove(0);
            }
            if nearest.len() == few.rows {
                let farthest = nearest[0];
                if few.from_end {
                    within.min = !farthest;
                } else {
                    within.max = farthest;
                }
            }
            within
        });
        (nearest.len() == few.rows).then_some(within)
    }

    fn sort(&self, found: &mut Vec<StoredRow<'a>>) {
        if !self.is_in_order() {
            // By place among those of one time: the later written stays behind the earlier. Rows are moved once.
            let times = found.iter().map(|row| row.time_ns);
            let mut order: Vec<(i64, u32)> = times.zip(0..).collect();
            order.sort_unstable();
            *found = order.into_iter().map(|(_, at)| found[at as usize]).collect();
        }
    }
}
