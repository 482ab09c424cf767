//! Rows to be removed if they still are what they were when somebody looked at them.
//!
//! Whoever deletes by a condition that a store does not understand reads the rows, decides, and names
//! those that go, each with the values that the decision was based on. The store removes a row only
//! where these values are still there: a write that came in between is not lost, and nobody holds a
//! lock while deciding.

use std::ops::Range;

use model::{Column, ColumnBatch, FieldType, Name, PolicyId, SeriesKey, Values};

/// Rows of one measurement and policy, with the values they had.
#[derive(Clone, Debug, PartialEq)]
pub struct MatchingRows {
    policy: PolicyId,
    measurement: Name,
    fields: Vec<(Name, FieldType)>,
    series: Vec<SeriesKey>,
    rows: ColumnBatch,
}

impl MatchingRows {
    /// Rows that are named together at most: what a store has to look at in one step.
    pub const ROWS_MAX: usize = 1 << 16;

    /// At most [`Self::ROWS_MAX`] rows: those of `rows`, a batch as scans hand it out: column 0 is the time, then come `fields`; its
    /// runs refer to `series`, each series has one run at most, and in it times ascend. Without fields
    /// rows go whatever they hold.
    ///
    /// # Panics
    /// If the batch has another shape.
    #[must_use]
    pub fn new(
        policy: PolicyId,
        measurement: Name,
        fields: Vec<(Name, FieldType)>,
        series: Vec<SeriesKey>,
        rows: ColumnBatch,
    ) -> Self {
        assert!(rows.rows <= Self::ROWS_MAX, "BUG: too many rows at a time");
        assert_eq!(rows.columns.len(), fields.len() + 1, "BUG: a column a field");
        let lengths = rows.columns.iter().map(Column::len);
        assert!(lengths.into_iter().all(|len| len == rows.rows), "BUG: columns of several lengths");
        let named = Self { policy, measurement, fields, series, rows };
        let mut seen = vec![false; named.series.len()];
        let mut end = 0;
        for (series, range) in named.ranges() {
            assert!(!std::mem::replace(&mut seen[series], true), "BUG: two runs of a series");
            let times = &named.times()[range.clone()];
            assert!(times.windows(2).all(|w| w[0] < w[1]), "BUG: times do not ascend");
            end = range.end;
        }
        assert_eq!(end, named.rows.rows, "BUG: runs do not add up");
        named
    }

    /// The policy whose rows are meant; what other policies have of the same series and time stays.
    #[must_use]
    pub fn policy(&self) -> PolicyId {
        self.policy
    }

    /// The measurement that all series are of.
    #[must_use]
    pub fn measurement(&self) -> &Name {
        &self.measurement
    }

    /// The fields whose values are compared.
    #[must_use]
    pub fn fields(&self) -> &[(Name, FieldType)] {
        &self.fields
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.rows
    }

    /// Whether no row is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.rows == 0
    }

    /// The times of all rows, series after series.
    #[must_use]
    pub fn times(&self) -> &[i64] {
        self.rows.times()
    }

    /// The series with the rows of each.
    pub fn runs(&self) -> impl Iterator<Item = (&SeriesKey, Range<usize>)> {
        self.ranges().map(|(series, range)| (&self.series[series], range))
    }

    /// Compares the rows `range`, which are of one series, with what there is now.
    #[must_use]
    pub fn compare(&self, range: Range<usize>) -> Comparison<'_> {
        Comparison { named: self, next: range.start, end: range.end, unchanged: Vec::new() }
    }

    fn ranges(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        self.rows.runs.iter().scan(0, |end, run| {
            let start = *end;
            *end += run.rows as usize;
            Some((run.series as usize, start..*end))
        })
    }

    fn columns(&self) -> &[Column] {
        self.rows.columns.get(1..).unwrap_or_default()
    }
}

/// Finds out which rows of one series are what they were.
#[derive(Debug)]
pub struct Comparison<'a> {
    named: &'a MatchingRows,
    next: usize,
    end: usize,
    unchanged: Vec<i64>,
}

impl Comparison<'_> {
    /// Takes rows that the series has now, ascending over all calls: every one that has a named time
    /// and a value of one of the fields; others may be among them. `columns` are the fields, in which
    /// these rows begin at `first`.
    pub fn see(&mut self, times: &[i64], columns: &[Column], first: usize) {
        let mut row = 0;
        while self.next < self.end {
            let wanted = self.named.times()[self.next];
            row += times[row..].partition_point(|time| *time < wanted);
            if row == times.len() {
                return;
            }
            let is_there = times[row] == wanted;
            self.decide(is_there.then_some((columns, first + row)));
        }
    }

    /// The times of the rows that are what they were, ascending, once everything was seen.
    #[must_use]
    pub fn finish(mut self) -> Vec<i64> {
        while self.next < self.end {
            self.decide(None);
        }
        self.unchanged
    }

    /// Decides about the next named row by what there is of it.
    fn decide(&mut self, found: Option<(&[Column], usize)>) {
        let row = self.next;
        let mine = self.named.columns();
        let unchanged = match found {
            Some((columns, at)) => mine.iter().zip(columns).all(|(a, b)| is_same(a, row, b, at)),
            // A row without values of these fields does not show in a scan of them.
            None => mine.iter().all(|column| !column.is_valid(row)),
        };
        if unchanged {
            self.unchanged.push(self.named.times()[row]);
        }
        self.next += 1;
    }
}

/// Whether two cells are the same bit for bit; two missing values are.
fn is_same(a: &Column, at: usize, b: &Column, other: usize) -> bool {
    match (a.is_valid(at), b.is_valid(other)) {
        (true, true) => {}
        (there, too) => return there == too,
    }
    match (&a.values, &b.values) {
        (Values::Float(a), Values::Float(b)) => a[at].to_bits() == b[other].to_bits(),
        (Values::Integer(a), Values::Integer(b)) => a[at] == b[other],
        (Values::Unsigned(a), Values::Unsigned(b)) => a[at] == b[other],
        (Values::Boolean(a), Values::Boolean(b)) => a.get(at) == b.get(other),
        (Values::String(a), Values::String(b)) => a.get_bytes(at) == b.get_bytes(other),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use model::SeriesRun;

    use super::*;

    fn integers(values: &[Option<i64>]) -> Column {
        let mut column = Column::new(Values::Integer(Vec::new()));
        for value in values {
            match value {
                Some(v) => column.extend_from(&Column::new(Values::Integer(vec![*v])), 0..1),
                None => column.extend_missing(1),
            }
        }
        column
    }

    fn named(times: &[i64], values: &[Option<i64>]) -> MatchingRows {
        let columns = vec![Column::new(Values::Time(times.to_vec())), integers(values)];
        let runs = vec![SeriesRun { series: 0, rows: times.len() as u32 }];
        let rows = ColumnBatch { rows: times.len(), runs, columns };
        let fields = vec![("f".into(), FieldType::Integer)];
        let key = SeriesKey { measurement: "m".into(), tags: Vec::new() };
        MatchingRows::new(PolicyId(1), "m".into(), fields, vec![key], rows)
    }

    #[test]
    fn only_rows_with_the_same_values_are_unchanged() {
        let rows = named(&[1, 3, 5, 7, 9], &[Some(1), None, Some(5), None, Some(9)]);
        let mut comparison = rows.compare(0..5);
        comparison.see(&[0, 1, 2], &[integers(&[Some(0), Some(1), Some(2)])], 0);
        comparison.see(&[], &[integers(&[])], 0);
        comparison.see(&[3, 5], &[integers(&[Some(3), Some(4)])], 0);
        assert_eq!(comparison.finish(), [1, 7]);
        assert_eq!(rows.compare(0..5).finish(), [3, 7]);
    }

    #[test]
    fn cells_are_compared_bit_by_bit() {
        let floats = |v: f64| Column::new(Values::Float(vec![v]));
        assert!(is_same(&floats(f64::NAN), 0, &floats(f64::NAN), 0));
        assert!(!is_same(&floats(0.0), 0, &floats(-0.0), 0));
        assert!(!is_same(&floats(1.0), 0, &integers(&[Some(1)]), 0));
        assert!(!is_same(&integers(&[None]), 0, &integers(&[Some(0)]), 0));
        assert!(!is_same(&integers(&[None]), 0, &floats(0.0), 0));
    }

    #[test]
    #[should_panic(expected = "times do not ascend")]
    fn times_must_ascend() {
        let _ = named(&[2, 1], &[None, None]);
    }
}
