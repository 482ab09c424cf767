//! First and last values, found from the ends of series: of each a row is read; then, of the series that have shown no
//! value of a function's field yet, or of which the condition left no row, more, function by function, or if it is about
//! many of them, field by field as the store knows how (`Scan::field_ends`).
//!
//! Invariants
//! - What is added of a series is all of its rows that matter up to some row, counted from the end that is read
//!   from. Rows are added again with those behind them: a first or last value does not change by that.

use std::collections::BTreeMap;

use model::{ColumnBatch, SeriesRun};
use store::{ScanItem, ScanSlice};

use super::super::accumulate::Accumulator;
use super::super::accumulate::kernels::first_valid;
use super::super::input::{ColumnSource, Input};
use super::Run;
use crate::QueryError;
use crate::functions::Function;
use crate::plan::Select;

/// How much more is read of the series that need more.
const GROWTH: u64 = 8;

/// Series that need more rows than this are read whole.
const ROWS_MAX: u64 = 4096;

/// Columns without a value that are looked for one by one. Of more, the store is asked for the ends of fields, or rows that
/// have any are read: of thousands of fields of which a row has a handful, each was another look at all of them otherwise.
const COLUMNS_APART: usize = 8;

/// Ends of fields that a store is asked for at once: some MB.
const FIELD_ENDS_AT_ONCE: usize = 1 << 17;

/// How much more is read of series for several columns together: every row has all of them.
const GROWTH_TOGETHER: u64 = 4;

/// Cells of a series that are read for several columns together at most: what is missing then is in few rows, and found
/// sooner by itself.
const CELLS_TOGETHER_MAX: u64 = 1 << 22;

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
    /// By column the series that may have a value further on.
    pending: BTreeMap<usize, Vec<u32>>,
}

/// The columns that functions are over.
fn columns(input: &Input) -> Vec<usize> {
    let column = |source: &ColumnSource| match source {
        ColumnSource::Column { at, .. } => Some(*at),
        _ => None,
    };
    let mut columns: Vec<usize> = input.calls.iter().filter_map(column).collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

impl Seeker {
    /// Of a slice of an input.
    pub(super) fn new(input: &Input, slice: &ScanSlice) -> Self {
        // Column 0 is the time.
        let columns = match &slice.with_any {
            None => columns(input),
            Some(fields) => fields.iter().map(|field| field + 1).collect(),
        };
        Self::of(columns, slice.rows_per_series.unwrap_or(u64::MAX))
    }

    fn of(columns: Vec<usize>, rows: u64) -> Self {
        let (missing, pending) = (Vec::new(), BTreeMap::new());
        Self { columns, rows, series: None, handed: 0, missing, pending }
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
        let Some(series) = self.series.take() else { return };
        // With fewer rows than were asked for the series has no more.
        if self.handed >= self.rows {
            let missing = self.missing.iter();
            missing.for_each(|column| self.pending.entry(*column).or_default().push(series));
        }
    }

    /// The series that miss values, if these are of so many columns that the store is asked for the ends of fields.
    fn series_of_many(&mut self) -> Option<Vec<u32>> {
        self.close();
        (self.pending.len() > COLUMNS_APART).then(|| series_of(self.pending.values().flatten()))
    }

    /// What is to be read next, after `slice`: rows with a value of a column that is still missing.
    pub(super) fn next_slices(mut self, input: &Input, slice: &ScanSlice) -> Vec<ScanSlice> {
        self.close();
        let together = self.rows.saturating_mul(GROWTH_TOGETHER);
        let fields = input.request.as_ref().map_or(0, |request| request.fields.len() as u64);
        let fits = together.saturating_mul(fields) <= CELLS_TOGETHER_MAX;
        if self.pending.len() > COLUMNS_APART && fits {
            return vec![self.slice_together(slice, together)];
        }
        let rows_per_series = match (&slice.with_any, &input.filter) {
            // The first row with a value is what was asked for.
            (Some(columns), None) if columns.len() == 1 => return Vec::new(),
            (None, _) | (Some(_), None) => first_rows(input),
            (Some(_), Some(_)) => Some(self.rows.saturating_mul(GROWTH)).filter(|n| *n <= ROWS_MAX),
        };
        self.slices(slice, rows_per_series)
    }

    /// Rows with a value of any column that is missing in some series: a series that has shown one already does so again.
    fn slice_together(self, slice: &ScanSlice, rows: u64) -> ScanSlice {
        let columns: Vec<usize> = self.pending.keys().map(|column| column - 1).collect();
        ScanSlice {
            series: Some(series_of(self.pending.values().flatten()).into()),
            time: slice.time,
            with_any: Some(columns.into()),
            rows_per_series: Some(rows),
        }
    }

    fn slices(self, slice: &ScanSlice, rows_per_series: Option<u64>) -> Vec<ScanSlice> {
        let of_column = |(column, series): (usize, Vec<u32>)| ScanSlice {
            series: Some(series.into()),
            time: slice.time,
            with_any: Some([column - 1].into()),
            rows_per_series,
        };
        self.pending.into_iter().map(of_column).collect()
    }
}

/// All of some series once, ascending.
fn series_of<'a>(pending: impl Iterator<Item = &'a u32>) -> Vec<u32> {
    let mut series: Vec<u32> = pending.copied().collect();
    series.sort_unstable();
    series.dedup();
    series
}

impl Run<'_> {
    /// Reads a slice, then more of the series that need more.
    pub(super) fn read_ends(
        &self,
        state: &mut Accumulator<'_>,
        at: usize,
        first: ScanSlice,
        group_of: impl Fn(u32) -> Option<u32> + Copy,
    ) -> Result<(), QueryError> {
        let input = &self.unit.inputs[at];
        let mut slices = vec![first];
        while let Some(slice) = slices.pop() {
            let mut seeker = Seeker::new(input, &slice);
            let mut cursor = input.cursor(&slice)?;
            while let Some(item) = cursor.next()? {
                self.context.interrupt.check()?;
                let ScanItem::Rows(batch) = item else {
                    panic!("BUG: summaries were not asked for");
                };
                self.context.count_points(batch.rows)?;
                if input.filter.is_none() {
                    seeker.look(&batch.runs, &batch);
                    state.add_rows(at, input, &batch, group_of)?;
                    continue;
                }
                let handed = batch.runs.clone();
                let found = input.wanted_rows(batch);
                seeker.look(&handed, &found);
                if found.rows > 0 {
                    state.add_rows(at, input, &found, group_of)?;
                }
            }
            if !self.add_field_ends(state, input, &mut seeker, (&slice, group_of))? {
                slices.extend(seeker.next_slices(input, &slice));
            }
        }
        Ok(())
    }

    /// Adds the ends of fields of series that miss many, if the store knows them and they are all that is wanted.
    fn add_field_ends(
        &self,
        state: &mut Accumulator<'_>,
        input: &Input,
        seeker: &mut Seeker,
        (slice, group_of): (&ScanSlice, impl Fn(u32) -> Option<u32> + Copy),
    ) -> Result<bool, QueryError> {
        let Some(request) = &input.request else { return Ok(false) };
        if input.filter.is_some() || self.recipe.summary_parts().is_none() {
            return Ok(false);
        }
        let Some(series) = seeker.series_of_many() else { return Ok(false) };
        let at_once = (FIELD_ENDS_AT_ONCE / request.fields.len().max(1)).max(1);
        for series in series.chunks(at_once) {
            self.context.interrupt.check()?;
            let Some(ends) = input.scan.field_ends(series, slice.time)? else { return Ok(false) };
            self.context.count_points(ends.spans.len())?;
            state.add_summaries(input, &ends, group_of)?;
        }
        Ok(true)
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

    fn pending(mut seeker: Seeker) -> Vec<(usize, Vec<u32>)> {
        seeker.close();
        let slices = seeker.slices(&ScanSlice::all(), Some(1)).into_iter();
        let read = |slice: ScanSlice| (slice.with_any.unwrap()[0], slice.series.unwrap().to_vec());
        slices.map(read).collect()
    }

    #[test]
    fn series_without_a_value_are_read_further_unless_they_ended() {
        let mut two = Seeker::of(vec![1], 2);
        let rows =
            batch(&[(1, &[false, true]), (3, &[false, false]), (4, &[false]), (7, &[false])]);
        two.look(&rows.runs, &rows);
        let rest = batch(&[(7, &[false]), (8, &[true, true])]);
        two.look(&rest.runs, &rest);
        assert_eq!(pending(two), [(0, vec![3, 7])]);
    }

    #[test]
    fn each_column_has_series_of_its_own() {
        let mut one = Seeker::of(vec![1, 2], 1);
        let mut rows = batch(&[(1, &[true]), (2, &[false]), (5, &[false])]);
        let others: Bitmap = [false, true, false].into_iter().collect();
        rows.columns.push(Column { validity: Some(others), ..rows.columns[1].clone() });
        one.look(&rows.runs, &rows);
        assert_eq!(pending(one), [(0, vec![2, 5]), (1, vec![1, 5])]);
    }

    #[test]
    fn many_columns_are_looked_for_together() {
        let mut one = Seeker::of(vec![1, 2], 1);
        let mut rows = batch(&[(1, &[true]), (2, &[false]), (5, &[false])]);
        let others: Bitmap = [false, true, false].into_iter().collect();
        rows.columns.push(Column { validity: Some(others), ..rows.columns[1].clone() });
        one.look(&rows.runs, &rows);
        one.close();
        let slice = one.slice_together(&ScanSlice::all(), 8);
        assert_eq!(slice.with_any.as_deref(), Some(&[0, 1][..]));
        assert_eq!(slice.series.as_deref(), Some(&[1, 2, 5][..]));
        assert_eq!(slice.rows_per_series, Some(8));
    }

    #[test]
    fn rows_that_fail_the_condition_count_as_read() {
        let mut one = Seeker::of(vec![1], 1);
        let handed = batch(&[(1, &[true]), (2, &[true]), (5, &[true])]);
        one.look(&handed.runs, &batch(&[(2, &[true])]));
        assert_eq!(pending(one), [(0, vec![1, 5])]);
    }

    #[test]
    fn nothing_is_left_when_all_have_values() {
        let mut one = Seeker::of(vec![1], 1);
        let rows = batch(&[(1, &[true]), (2, &[true])]);
        one.look(&rows.runs, &rows);
        assert_eq!(pending(one), []);
    }
}
