//! Time that is read in parts of whole windows, each by one thread: of functions that keep values by windows.
//!
//! Where each thread reads some series for all windows, what the threads kept is put together afterwards, results are made by
//! one of them, and nothing fits into a cache. Windows share no values, so that a thread can read a few of them, finish them,
//! and forget what it kept. Integrals reach over the edges of windows and are read as a whole.

use std::ops::Range;

use model::{Budget, ColumnBatch, Reservation, TimeRange};

use super::by_group::part_by_part;
use super::{Item, Points, Reader, Run};
use crate::QueryError;
use crate::exec::column::append;

/// With a condition parts have so many times as many rows of each series at least.
const FILTERED: u64 = 4;

/// Rows that are put together at most, about.
const GATHERED_ROWS: usize = 1 << 17;

impl Run<'_> {
    /// The parts of `range`, in the order of the result, in which windows of `groups` are better read apart.
    pub(super) fn windows_apart(
        &self,
        groups: &Range<usize>,
        range: TimeRange,
    ) -> Option<Vec<TimeRange>> {
        // A subquery would be worked out for each part anew.
        let are_stored = self.unit.inputs.iter().all(|input| input.request.is_some());
        if self.select.windows.is_none() || range.is_empty() || !are_stored {
            return None;
        }
        let (extent, tuning) = (&self.unit.extent, &self.context.tuning);
        let series_of = |groups| self.unit.groups.series_count(groups).max(1) as u64;
        let (series, all) = (series_of(groups.clone()), series_of(0..self.unit.groups.len()));
        let of_all = extent.rows_within(range);
        let rows = (u128::from(of_all) * u128::from(series) / u128::from(all)) as u64;
        let windows = self.windows_within(range);
        let of_window = rows / (windows.saturating_mul(groups.len() as u64)).max(1);
        let of_series = rows / windows.saturating_mul(series).max(1);
        if !self.recipe.keeps_by_window(self.select, of_window, of_series) {
            return None;
        }
        let threads = self.context.threads.max(1) as u64;
        let at_once = tuning.window_rows.min(rows / threads);
        // Of rows with a condition few may be left to work on.
        let is_filtered = self.unit.inputs.iter().any(|input| input.filter.is_some());
        let of_each = tuning.window_series_rows * if is_filtered { FILTERED } else { 1 };
        let parts = rows / at_once.max(of_each * series);
        let parts = parts.min(windows);
        if parts < 2 {
            return None;
        }
        let ascending = self.select.ascending;
        let mut ranges: Vec<TimeRange> = Vec::new();
        let mut done =
            if ascending { range.min.saturating_sub(1) } else { range.max.saturating_add(1) };
        while let Some(slice) = extent.slice(Some(done), of_all / parts, ascending) {
            let part = self.whole_windows(slice.intersect(&range), 1, range);
            if part.is_empty() {
                break;
            }
            done = if ascending { part.max } else { part.min };
            ranges.push(part);
        }
        (ranges.len() > 1).then_some(ranges)
    }

    /// The points of `groups` in these ranges, one behind another.
    pub(super) fn read_windows(
        &self,
        groups: &Range<usize>,
        ranges: &[TimeRange],
    ) -> Result<Vec<Vec<Points>>, QueryError> {
        let read = |range: &TimeRange| self.read_window(groups.clone(), *range);
        let mut found = part_by_part(self.context.threads, ranges, read)?.into_iter();
        let mut points = found.next().unwrap_or_default();
        for more in found {
            for (mine, more) in points.iter_mut().zip(more) {
                if mine.is_empty() {
                    *mine = more;
                } else {
                    mine.iter_mut().zip(&more).for_each(|(mine, more)| mine.append(more));
                }
            }
        }
        Ok(points)
    }

    /// The points of groups within a part of time, read by one thread.
    fn read_window(
        &self,
        groups: Range<usize>,
        range: TimeRange,
    ) -> Result<Vec<Vec<Points>>, QueryError> {
        let mut state = self.accumulator(groups.len(), range)?;
        let reader = Reader { context: self.context, interrupt: &self.context.interrupt };
        for (at, input) in self.unit.inputs.iter().enumerate() {
            let Some(slice) = self.unit.slice(at, groups.clone(), range) else { continue };
            let group_of = self.group_of(at, groups.clone(), None);
            let series = self.unit.groups.series_count(groups.clone());
            let rows = self.unit.rows_within(at, &slice);
            let gathers = state.gathers(rows, series);
            let mut gathered = Gathered::new(rows.min(GATHERED_ROWS), &self.context.budget)?;
            reader.read(input, &slice, |item| match item {
                Item::Rows(batch) if gathers => {
                    gathered.add(batch)?;
                    if gathered.rows() < GATHERED_ROWS {
                        return Ok(());
                    }
                    gathered.take().map_or(Ok(()), |all| state.add_rows(at, input, &all, group_of))
                }
                Item::Rows(batch) => state.add_rows(at, input, &batch, group_of),
                Item::Summaries(batch) => state.add_summaries(input, &batch, group_of),
            })?;
            if let Some(all) = gathered.take() {
                state.add_rows(at, input, &all, group_of)?;
            }
        }
        Ok(state.finish(&self.unit.inputs))
    }
}

/// Batches put together: of series with a few rows in each window, all rows of a window are then worked on together.
struct Gathered {
    all: Option<ColumnBatch>,
    /// How many rows there will be, about.
    expected: usize,
    held: Reservation,
}

impl Gathered {
    fn new(expected: usize, budget: &Budget) -> Result<Self, QueryError> {
        Ok(Self { all: None, expected, held: budget.reserve(0)? })
    }

    fn rows(&self) -> usize {
        self.all.as_ref().map_or(0, |all| all.rows)
    }

    fn add(&mut self, batch: ColumnBatch) -> Result<(), QueryError> {
        match &mut self.all {
            None => {
                let all = self.all.insert(batch);
                let more = self.expected.saturating_sub(all.rows);
                all.columns.iter_mut().for_each(|column| column.values.reserve(more));
            }
            Some(all) => {
                all.rows += batch.rows;
                all.runs.extend(batch.runs);
                for (mine, more) in all.columns.iter_mut().zip(&batch.columns) {
                    append(mine, more);
                }
            }
        }
        let bytes = self.all.as_ref().map_or(0, ColumnBatch::memory_bytes);
        Ok(self.held.resize(bytes)?)
    }

    fn take(&mut self) -> Option<ColumnBatch> {
        self.all.take()
    }
}
