//! First and last values, found from the ends of series: of each a row is read, and more, from the same
//! end, only where a function has found no value yet or the condition left no row.
//!
//! Invariants
//! - What is added of a series is all of its rows up to some row, counted from the end that is read from. Rows
//!   are added again with those behind them: a first or last value does not change by that.

use model::{ColumnBatch, SeriesRun};
use store::ScanSlice;

use super::super::accumulate::kernels::first_valid;
use super::super::input::{ColumnSource, Input};
use crate::functions::Function;
use crate::plan::Select;

/// How much more is read of the series that need more.
const GROWTH: u64 = 8;

/// Series that need more rows than this are read whole.
const ROWS_MAX: u64 = 4096;

/// Rows read first where only the query knows which of them satisfy its condition.
const FILTERED_ROWS: u64 = 64;

/// An end of series that shows all that a SELECT wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    First,
    Last,
}

impl End {
    /// The end of `select`, if all its functions are about the same one.
    pub(super) fn of(select: &Select) -> Option<Self> {
        if select.windows.is_some() {
            return None;
        }
        let all = |function: &Function| select.calls.iter().all(|c| c.function == *function);
        match &select.calls.first()?.function {
            function @ Function::First if all(function) => Some(Self::First),
            function @ Function::Last if all(function) => Some(Self::Last),
            _ => None,
        }
    }
}

/// How many rows of each series are read first. `None`: all, since the source does not read from an end.
pub(super) fn first_rows(input: &Input) -> Option<u64> {
    let request = input.request.as_ref()?;
    let is_counted = input.filter.is_none() || !request.filters.is_empty();
    Some(if is_counted { 1 } else { FILTERED_ROWS })
}

/// Finds the series that were not read far enough.
pub(super) struct Seeker {
    /// The columns that functions are over.
    columns: Vec<usize>,
    rows: u64,
    series: Option<u32>,
    /// Rows of that series that were handed out.
    handed: u64,
    /// Columns it has shown no value of yet.
    missing: Vec<usize>,
    pending: Vec<u32>,
}

impl Seeker {
    /// Of an input of which `rows` of each series are read.
    pub(super) fn new(input: &Input, rows: u64) -> Self {
        let column = |source: &ColumnSource| match source {
            ColumnSource::Column { at, .. } => Some(*at),
            ColumnSource::Tag { .. } | ColumnSource::Missing(_) => None,
        };
        let mut columns: Vec<usize> = input.calls.iter().filter_map(column).collect();
        columns.sort_unstable();
        columns.dedup();
        Self { columns, rows, series: None, handed: 0, missing: Vec::new(), pending: Vec::new() }
    }

    /// Looks at a batch: the rows that were handed out, and those of them that satisfy the condition. Series
    /// ascend.
    pub(super) fn look(&mut self, handed: &[SeriesRun], found: &ColumnBatch) {
        let (mut runs, mut row) = (found.runs.iter().peekable(), 0);
        for run in handed {
            if self.series != Some(run.series) {
                self.close();
                (self.series, self.handed) = (Some(run.series), 0);
                self.missing.clone_from(&self.columns);
            }
            self.handed += u64::from(run.rows);
            while let Some(found_run) = runs.next_if(|found| found.series == run.series) {
                let (start, end) = (row, row + found_run.rows as usize);
                self.missing.retain(|column| {
                    first_valid(found.columns[*column].validity.as_ref(), start, end).is_none()
                });
                row = end;
            }
        }
    }

    fn close(&mut self) {
        // With fewer rows than were asked for the series has no more.
        if let Some(series) = self.series.take()
            && self.handed >= self.rows
            && !self.missing.is_empty()
        {
            self.pending.push(series);
        }
    }

    /// What is to be read next: more rows of the series that need more.
    pub(super) fn next_slice(mut self, slice: &ScanSlice) -> Option<ScanSlice> {
        self.close();
        let more = self.rows.saturating_mul(GROWTH);
        (!self.pending.is_empty()).then(|| ScanSlice {
            series: Some(self.pending.into()),
            rows_per_series: (more <= ROWS_MAX).then_some(more),
            ..slice.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Bitmap, Column, Values};
    use store::ScanSlice;

    fn batch(runs: &[(u32, &[bool])]) -> ColumnBatch {
        let bits: Bitmap = runs.iter().flat_map(|(_, rows)| rows.iter().copied()).collect();
        let rows = bits.len();
        let run = |(series, rows): &(u32, &[bool])| SeriesRun {
            series: *series,
            rows: rows.len() as u32,
        };
        let values = Column { values: Values::Integer(vec![0; rows]), validity: Some(bits) };
        let times = Column::new(Values::Time(vec![0; rows]));
        ColumnBatch { rows, runs: runs.iter().map(run).collect(), columns: vec![times, values] }
    }

    fn seeker(rows: u64) -> Seeker {
        let (columns, missing, pending) = (vec![1], Vec::new(), Vec::new());
        Seeker { columns, rows, series: None, handed: 0, missing, pending }
    }

    fn pending(seeker: Seeker) -> Option<(Vec<u32>, Option<u64>)> {
        let slice = seeker.next_slice(&ScanSlice::all())?;
        Some((slice.series?.to_vec(), slice.rows_per_series))
    }

    #[test]
    fn series_without_a_value_are_read_further_unless_they_ended() {
        let mut two = seeker(2);
        let rows =
            batch(&[(1, &[false, true]), (3, &[false, false]), (4, &[false]), (7, &[false])]);
        two.look(&rows.runs, &rows);
        let rest = batch(&[(7, &[false]), (8, &[true, true])]);
        two.look(&rest.runs, &rest);
        assert_eq!(pending(two), Some((vec![3, 7], Some(16))));
    }

    #[test]
    fn rows_that_fail_the_condition_count_as_read() {
        let mut one = seeker(1);
        let handed = batch(&[(1, &[true]), (2, &[true]), (5, &[true])]);
        one.look(&handed.runs, &batch(&[(2, &[true])]));
        assert_eq!(pending(one), Some((vec![1, 5], Some(8))));
        let mut last = seeker(4096);
        last.look(&[SeriesRun { series: 6, rows: 4096 }], &batch(&[]));
        assert_eq!(pending(last), Some((vec![6], None)));
    }

    #[test]
    fn nothing_is_left_when_all_have_values() {
        let mut one = seeker(1);
        let rows = batch(&[(1, &[true]), (2, &[true])]);
        one.look(&rows.runs, &rows);
        assert_eq!(pending(one), None);
    }
}
