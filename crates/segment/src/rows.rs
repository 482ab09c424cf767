//! Rows on their way into a segment.

use std::ops::Range;

use model::{FieldType, Name, SeriesId, Values};

use crate::sparse::SparseColumn;

/// Rows of one measurement, sorted by series and time, no (series, time) twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SegmentRows {
    /// Series, ascending, and how many rows each has.
    pub runs: Vec<(SeriesId, u32)>,
    /// Time of every row.
    pub times: Vec<i64>,
    /// One column a field of the measurement, in the measurement's order.
    pub columns: Vec<SparseColumn>,
}

/// Series and time of a row: what rows are sorted by.
pub(crate) type RowKey = (SeriesId, i64);

impl SegmentRows {
    /// No rows yet of a measurement with these fields.
    #[must_use]
    pub fn empty(fields: &[(Name, FieldType)]) -> Self {
        let columns = fields.iter().map(|(_, t)| SparseColumn::empty(*t)).collect();
        Self { runs: Vec::new(), times: Vec::new(), columns }
    }

    /// Removes all rows and keeps their memory for others.
    pub fn clear(&mut self) {
        self.runs.clear();
        self.times.clear();
        self.columns.iter_mut().for_each(SparseColumn::clear);
    }

    /// Values that are not missing.
    pub(crate) fn values(&self) -> usize {
        self.columns.iter().map(|column| column.values.len()).sum()
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Stops the program if the rows are not what the writer was promised.
    pub(crate) fn check(&self, fields: &[(Name, FieldType)], after: Option<RowKey>) {
        let rows: u64 = self.runs.iter().map(|(_, n)| u64::from(*n)).sum();
        assert_eq!(rows, self.times.len() as u64, "BUG: the runs do not add up to the rows");
        assert_eq!(self.columns.len(), fields.len(), "BUG: not one column a field");
        for (column, (name, field_type)) in self.columns.iter().zip(fields) {
            assert_eq!(column.len(), self.len(), "BUG: column {name} has another length");
            assert!(fits(&column.values, *field_type), "BUG: column {name} is not {field_type}");
            let values = column.present.as_ref().map_or(self.len(), model::Bitmap::count_ones);
            assert_eq!(column.values.len(), values, "BUG: column {name} has too few values");
        }
        self.check_order(after);
    }

    fn check_order(&self, mut after: Option<RowKey>) {
        let mut from = 0;
        for (series, rows) in &self.runs {
            assert!(*rows > 0, "BUG: a run without rows");
            let times = &self.times[from..from + *rows as usize];
            from += times.len();
            assert!(after < Some((*series, times[0])), "BUG: rows out of order");
            assert!(times.is_sorted_by(|a, b| a < b), "BUG: times of a series out of order");
            after = Some((*series, times[times.len() - 1]));
        }
    }

    /// Adds rows `range` of `other`, whose runs are `runs`.
    pub(crate) fn push(&mut self, other: &Self, runs: &[(SeriesId, u32)], range: Range<usize>) {
        for (series, rows) in runs {
            match self.runs.last_mut() {
                Some((last, n)) if last == series => *n += rows,
                _ => self.runs.push((*series, *rows)),
            }
        }
        self.times.extend_from_slice(&other.times[range.clone()]);
        for (mine, theirs) in self.columns.iter_mut().zip(&other.columns) {
            mine.extend_from(theirs, range.clone());
        }
    }

    /// The runs of rows `range`; `at` says where a former call stopped, so that reading all rows
    /// piece by piece looks at every run once.
    pub(crate) fn runs_of(
        &self,
        at: &mut RunPosition,
        rows: usize,
        out: &mut Vec<(SeriesId, u32)>,
    ) {
        out.clear();
        let mut left = rows;
        while left > 0 {
            let (series, run_rows) = self.runs[at.run];
            let take = left.min((run_rows - at.used) as usize);
            out.push((series, take as u32));
            at.used += take as u32;
            left -= take;
            if at.used == run_rows {
                *at = RunPosition { run: at.run + 1, used: 0 };
            }
        }
    }
}

/// A place in a list of runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunPosition {
    pub(crate) run: usize,
    /// Rows of `run` that lie before.
    pub(crate) used: u32,
}

/// Whether a column is of a field's type.
pub(crate) fn fits(values: &Values, field_type: FieldType) -> bool {
    matches!(
        (values, field_type),
        (Values::Float(_), FieldType::Float)
            | (Values::Integer(_), FieldType::Integer)
            | (Values::Unsigned(_), FieldType::Unsigned)
            | (Values::String(_), FieldType::String)
            | (Values::Boolean(_), FieldType::Boolean)
    )
}
