//! Reading a join: what is read and merged together, and handing it out in batches.

use std::ops::Range;
use std::sync::Arc;

use model::{Column, ColumnBatch, Reservation, SeriesRun, TimeRange, Values};
use store::{ScanCursor, ScanItem, StoreError};

use super::merge::{Merge, Pairs};
use super::side::SideRows;
use super::{Joined, NO_GROUP};
use crate::QueryError;
use crate::exec::column::take;

/// Rows of a batch at most.
const BATCH_ROWS: usize = 1 << 14;

/// Reads some series within a range of time.
pub(super) struct JoinCursor {
    joined: Arc<Joined>,
    series: Arc<[u32]>,
    /// Series that are read or being read.
    done: usize,
    time: TimeRange,
    /// The series that is read a slice of time after another.
    current: Option<Slices>,
    ready: Option<Ready>,
}

/// What is left of a series.
struct Slices {
    series: u32,
    /// The time up to which rows are read.
    done: Option<i64>,
    /// Rows of the next slice, about.
    rows: u64,
}

/// Joined rows that are to be handed out.
struct Ready {
    sides: Vec<SideRows>,
    pairs: Pairs,
    /// The series of the rows, and where the rows of each end.
    runs: Vec<(u32, usize)>,
    /// Rows handed out.
    done: usize,
    _reservation: Reservation,
}

impl JoinCursor {
    pub(super) fn new(joined: Arc<Joined>, series: Arc<[u32]>, time: TimeRange) -> Self {
        Self { joined, series, done: 0, time, current: None, ready: None }
    }

    /// Reads the next rows; false at the end.
    fn advance(&mut self) -> Result<bool, QueryError> {
        self.joined.context.interrupt.check()?;
        if let Some(mut current) = self.current.take() {
            if let Some(time) = self.next_slice(&mut current) {
                self.ready = Some(self.joined.read(&[current.series], time)?);
                self.current = Some(current);
            }
            return Ok(true);
        }
        if self.done == self.series.len() {
            return Ok(false);
        }
        let tuning = &self.joined.context.tuning;
        let all = (self.joined.groups.len() / self.joined.sides.len()).max(1) as u64;
        let each = (self.joined.extent.rows_within(self.time) / all).max(1);
        let count = usize::try_from(tuning.gather_rows / each).unwrap_or(usize::MAX).max(1);
        if count == 1 && each > tuning.first_slice_rows {
            let series = self.series[self.done];
            self.current = Some(Slices { series, done: None, rows: tuning.first_slice_rows });
            self.done += 1;
            return Ok(true);
        }
        let end = self.done.saturating_add(count).min(self.series.len());
        self.ready = Some(self.joined.read(&self.series[self.done..end], self.time)?);
        self.done = end;
        Ok(true)
    }

    /// The next slice of time of one series.
    fn next_slice(&self, current: &mut Slices) -> Option<TimeRange> {
        let ascending = self.joined.ascending;
        let all = (self.joined.groups.len() / self.joined.sides.len()) as u64;
        // The extent counts the rows of all series.
        let rows = current.rows.saturating_mul(all);
        let before = match (current.done, ascending) {
            (Some(done), _) => Some(done),
            (None, true) => self.time.min.checked_sub(1),
            (None, false) => self.time.max.checked_add(1),
        };
        let slice = self.joined.extent.slice(before, rows, ascending)?;
        let within = slice.intersect(&self.time);
        current.done = Some(if ascending { slice.max } else { slice.min });
        let most = self.joined.context.tuning.gather_rows.max(current.rows);
        current.rows = current.rows.saturating_mul(4).min(most);
        (!within.is_empty()).then_some(within)
    }
}

impl Joined {
    /// Reads and joins some series, whose ordinals ascend.
    fn read(&self, series: &[u32], time: TimeRange) -> Result<Ready, QueryError> {
        let mut sides = Vec::with_capacity(self.sides.len());
        for (at, side) in self.sides.iter().enumerate() {
            // Groups of a side are in the order of the series.
            let groups = series.iter().map(|series| self.groups_of(*series)[at]);
            let groups: Vec<u32> = groups.filter(|group| *group != NO_GROUP).collect();
            sides.push(side.read(&groups, time, self.ascending, &self.context)?);
        }
        let mut reservation = self.context.budget.reserve(0)?;
        let mut pairs = Pairs::empty(sides.len());
        let mut runs = Vec::new();
        for series in series {
            let of_series = self.sides.iter().zip(&sides).zip(self.groups_of(*series));
            let of_series: Vec<_> = of_series
                .map(|((side, rows), group)| (side.kind, rows, rows.of_group(*group)))
                .collect();
            let merge = Merge {
                sides: &of_series,
                ascending: self.ascending,
                interrupt: &self.context.interrupt,
                held_bytes: pairs.memory_bytes(),
                memory: &mut reservation,
            };
            let more = merge.run()?;
            if !more.times.is_empty() {
                pairs.append(more);
                runs.push((*series, pairs.times.len()));
            }
        }
        Ok(Ready { sides, pairs, runs, done: 0, _reservation: reservation })
    }
}

impl Ready {
    /// The next rows with the columns at `places`; `None` at the end.
    fn next(&mut self, places: &[(usize, usize)]) -> Option<ColumnBatch> {
        let end = self.pairs.times.len().min(self.done + BATCH_ROWS);
        let rows = self.done..end;
        if rows.is_empty() {
            return None;
        }
        self.done = end;
        let runs = self.runs_within(&rows);
        let times = self.pairs.times[rows.clone()].to_vec();
        let column = |(side, slot): &(usize, usize)| {
            take(&self.sides[*side].slots[*slot], &self.pairs.rows[*side][rows.clone()])
        };
        let columns = std::iter::once(Column::new(Values::Time(times)));
        let columns = columns.chain(places.iter().map(column)).collect();
        Some(ColumnBatch { rows: rows.len(), runs, columns })
    }

    fn runs_within(&self, rows: &Range<usize>) -> Vec<SeriesRun> {
        let first = self.runs.partition_point(|(_, end)| *end <= rows.start);
        let mut from = rows.start;
        let mut runs = Vec::new();
        for (series, end) in &self.runs[first..] {
            if from == rows.end {
                break;
            }
            let to = rows.end.min(*end);
            runs.push(SeriesRun { series: *series, rows: (to - from) as u32 });
            from = to;
        }
        runs
    }
}

impl ScanCursor for JoinCursor {
    fn next(&mut self) -> Result<Option<ScanItem>, StoreError> {
        loop {
            if let Some(ready) = &mut self.ready {
                if let Some(batch) = ready.next(&self.joined.places) {
                    return Ok(Some(ScanItem::Rows(batch)));
                }
                self.ready = None;
            }
            if !self.advance().map_err(QueryError::into_store)? {
                return Ok(None);
            }
        }
    }
}
