//! Rows of one series in columns, and what can be done with them: cut, select, reverse (`merge` has the rest).

use std::ops::Range;

use codec::kernels;
use model::{Bitmap, Column, ColumnBatch, SeriesRun, Values};

/// Some rows of one series, ascending in time, no time twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Piece {
    pub(crate) times: Vec<i64>,
    /// The requested fields.
    pub(crate) columns: Vec<Column>,
}

impl Piece {
    /// Leaves out rows in which none of these columns has a value, or no column at all.
    pub(crate) fn drop_empty_rows(&mut self, with_any: Option<&[usize]>) {
        if let Some(any) = self.rows_with_values(with_any)
            && any.count_ones() < self.times.len()
        {
            self.select(&any);
        }
    }

    /// The rows in which one of these columns has a value, or one of all; `None`: it is known that all do.
    pub(super) fn rows_with_values<'a>(&'a self, with_any: Option<&[usize]>) -> Option<Bitmap> {
        let validity = |column: &'a Column| column.validity.as_ref();
        let validities: Option<Vec<&Bitmap>> = match with_any {
            None => self.columns.iter().map(validity).collect(),
            Some(any) => any.iter().map(|at| validity(&self.columns[*at])).collect(),
        };
        let rows = self.times.len();
        let mut any = vec![0u64; rows.div_ceil(64)];
        for validity in validities? {
            any.iter_mut().zip(validity.words()).for_each(|(a, v)| *a |= v);
        }
        Some(Bitmap::from_words(any, rows))
    }

    /// The rows as a batch of a scan, `runs` of series in it.
    pub(super) fn into_batch(self, runs: Vec<SeriesRun>) -> ColumnBatch {
        let rows = self.times.len();
        let time = Column::new(Values::Time(self.times));
        let columns = std::iter::once(time).chain(self.columns).collect();
        ColumnBatch { rows, runs, columns }
    }

    /// Leaves out the rows with these times, which ascend.
    pub(crate) fn drop_times(&mut self, gone: &[i64]) {
        let Some(first) = self.times.first() else { return };
        let mut gone = &gone[gone.partition_point(|time| time < first)..];
        let mut kept = Bitmap::filled(self.times.len(), true);
        let mut dropped = false;
        // Wherever both go on, the one that is behind leaps to the other.
        let mut row = 0;
        while let Some(time) = gone.first()
            && row < self.times.len()
        {
            row += self.times[row..].partition_point(|t| t < time);
            match self.times.get(row) {
                Some(found) if found == time => {
                    kept.set(row, false);
                    dropped = true;
                    row += 1;
                    gone = &gone[1..];
                }
                Some(found) => gone = &gone[gone.partition_point(|t| t < found)..],
                None => break,
            }
        }
        if dropped {
            self.select(&kept);
        }
    }

    /// Takes out the rows from `at` on.
    pub(crate) fn split_off(&mut self, at: usize) -> Self {
        let rows = self.times.len();
        if at == 0 {
            return std::mem::take(self);
        }
        if at == rows {
            return Self::default();
        }
        let others = self.part(at..rows);
        self.truncate(at);
        others
    }

    /// Some neighbouring rows.
    pub(super) fn part(&self, rows: Range<usize>) -> Self {
        let columns = self.columns.iter().map(|column| part(column, rows.clone())).collect();
        Self { times: self.times[rows].to_vec(), columns }
    }

    /// Several such stretches of rows behind one another, `rows` in all.
    pub(super) fn parts(&self, of: impl Iterator<Item = Range<usize>>, rows: usize) -> Self {
        let columns = self.columns.iter().map(empty_like).collect();
        let mut parts = Self { times: Vec::with_capacity(rows), columns };
        parts.columns.iter_mut().for_each(|column| column.values.reserve(rows));
        of.for_each(|rows| parts.extend_from(self, rows));
        parts
    }

    /// Adds the rows `rows` of another piece of the same fields.
    pub(super) fn extend_from(&mut self, other: &Self, rows: Range<usize>) {
        self.times.extend_from_slice(&other.times[rows.clone()]);
        for (mine, theirs) in self.columns.iter_mut().zip(&other.columns) {
            mine.extend_from(theirs, rows.clone());
        }
    }

    /// Leaves only the first rows.
    pub(crate) fn truncate(&mut self, rows: usize) {
        if rows < self.times.len() {
            self.times.truncate(rows);
            self.columns.iter_mut().for_each(|column| *column = part(column, 0..rows));
        }
    }

    /// Leaves only the rows whose bit is set.
    pub(crate) fn select(&mut self, rows: &Bitmap) {
        self.times = filter_times(&self.times, rows);
        for column in &mut self.columns {
            *column = filter(column, rows);
        }
    }

    /// Leaves only some rows, in that order.
    pub(super) fn take(&mut self, rows: &[u32]) {
        self.times = rows.iter().map(|at| self.times[*at as usize]).collect();
        for column in &mut self.columns {
            *column = gather(column, rows);
        }
    }

    /// Turns the rows around.
    pub(crate) fn reverse(&mut self) {
        let order: Vec<u32> = (0..self.times.len() as u32).rev().collect();
        self.times.reverse();
        for column in &mut self.columns {
            match (&mut column.values, &column.validity) {
                (Values::Float(v), None) => v.reverse(),
                (Values::Integer(v), None) => v.reverse(),
                (Values::Unsigned(v), None) => v.reverse(),
                _ => *column = gather(column, &order),
            }
        }
    }
}

/// A column of the same type without entries and without room for any.
pub(super) fn empty_like(column: &Column) -> Column {
    Column::new(column.values.none_like())
}

/// Neighbouring entries of a column.
fn part(column: &Column, rows: Range<usize>) -> Column {
    let mut part = empty_like(column);
    part.values.reserve(rows.len());
    part.extend_from(column, rows);
    part
}

/// The times whose bit is set.
pub(super) fn filter_times(times: &[i64], rows: &Bitmap) -> Vec<i64> {
    let mut kept = Vec::new();
    kernels::filter_i64(times, rows.words(), &mut kept);
    kept
}

/// The entries of a column whose bit is set.
pub(super) fn filter(column: &Column, rows: &Bitmap) -> Column {
    let mut kept = empty_like(column);
    append_found(&mut kept, column, rows);
    kept
}

/// Adds the entries of a column whose bit is set.
pub(super) fn append_found(kept: &mut Column, column: &Column, rows: &Bitmap) {
    let (had, words) = (kept.len(), rows.words());
    match (&column.values, &mut kept.values) {
        (Values::Float(v), Values::Float(kept)) => kernels::filter_f64(v, words, kept),
        (Values::Integer(v), Values::Integer(kept)) => kernels::filter_i64(v, words, kept),
        (Values::Unsigned(v), Values::Unsigned(kept)) => kernels::filter_u64(v, words, kept),
        (Values::Boolean(v), Values::Boolean(kept)) => {
            let found = filter_bits(v, rows);
            kept.extend_from(&found, 0..found.len());
        }
        (Values::String(v), Values::String(kept)) if had == 0 => *kept = v.take(rows.ones()),
        (Values::String(v), Values::String(kept)) => {
            let found = v.take(rows.ones());
            kept.extend_from(&found, 0..found.len());
        }
        _ => panic!("BUG: a column of its own type"),
    }
    // Where rows were picked for their values, there is nothing to say of which are missing.
    let found = column.validity.as_ref().map(|validity| filter_bits(validity, rows));
    let found = found.filter(|found| found.count_ones() < found.len());
    if found.is_some() || kept.validity.is_some() {
        let validity = kept.validity.get_or_insert_with(|| Bitmap::filled(had, true));
        match &found {
            Some(found) => validity.extend_from(found, 0..found.len()),
            None => validity.extend_filled(rows.count_ones(), true),
        }
    }
}

/// The bits of picked rows.
fn filter_bits(bits: &Bitmap, rows: &Bitmap) -> Bitmap {
    let mut words = Vec::with_capacity(bits.words().len());
    let found = kernels::filter_bits(bits.words(), rows.words(), bits.len(), &mut words);
    Bitmap::from_words(words, found)
}

/// The entries `order` of a column, in that order.
pub(super) fn gather(column: &Column, order: &[u32]) -> Column {
    let pick = |at: &u32| *at as usize;
    let values = match &column.values {
        Values::Time(v) => Values::Time(order.iter().map(|at| v[pick(at)]).collect()),
        Values::Float(v) => Values::Float(order.iter().map(|at| v[pick(at)]).collect()),
        Values::Integer(v) => Values::Integer(order.iter().map(|at| v[pick(at)]).collect()),
        Values::Unsigned(v) => Values::Unsigned(order.iter().map(|at| v[pick(at)]).collect()),
        Values::Boolean(v) => Values::Boolean(order.iter().map(|at| v.get(pick(at))).collect()),
        Values::String(v) => Values::String(v.take(order.iter().map(pick))),
        Values::Dictionary(..) => panic!("BUG: stores hand out no dictionaries of fields"),
    };
    let validity = column
        .validity
        .as_ref()
        .map(|v| order.iter().map(|at| v.get(pick(at))).collect::<Bitmap>());
    Column { values, validity }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::merge::merge;
    use super::*;
    use proptest::prelude::*;

    type Rows = BTreeMap<i64, (Option<i64>, Option<bool>)>;

    fn piece(rows: &Rows) -> Piece {
        let mut a = Column::new(Values::Integer(Vec::new()));
        let mut b = Column::new(Values::Boolean(Bitmap::new()));
        for (x, y) in rows.values() {
            match x {
                Some(x) => a.extend_from(&Column::new(Values::Integer(vec![*x])), 0..1),
                None => a.extend_missing(1),
            }
            match y {
                Some(y) => {
                    b.extend_from(&Column::new(Values::Boolean(Bitmap::filled(1, *y))), 0..1);
                }
                None => b.extend_missing(1),
            }
        }
        Piece { times: rows.keys().copied().collect(), columns: vec![a, b] }
    }

    fn rows(piece: &Piece) -> Vec<(i64, Option<i64>, Option<bool>)> {
        let (Values::Integer(a), Values::Boolean(b)) =
            (&piece.columns[0].values, &piece.columns[1].values)
        else {
            panic!("types changed")
        };
        (0..piece.times.len())
            .map(|at| {
                let valid = |column: usize| piece.columns[column].is_valid(at);
                (piece.times[at], valid(0).then(|| a[at]), valid(1).then(|| b.get(at)))
            })
            .collect()
    }

    fn any_rows() -> impl Strategy<Value = Rows> {
        let value = (prop::option::of(any::<i64>()), prop::option::of(any::<bool>()));
        let few = prop::collection::btree_map(0i64..20, value, 1..15);
        // Long stretches of the same times, complete or nearly so.
        let value = (prop::option::weighted(0.97, any::<i64>()), Just(Some(true)));
        let many = (0i64..3, prop::collection::vec(value, 30..110))
            .prop_map(|(start, rows)| (start..).zip(rows).collect::<Rows>());
        prop_oneof![few, many]
    }

    proptest! {
        #[test]
        fn later_pieces_win_field_by_field(
            sources in prop::collection::vec(any_rows(), 1..5),
            gone in prop::collection::btree_set(-2i64..22, 0..24),
        ) {
            let pieces: Vec<Piece> = sources.iter().map(piece).collect();
            let mut model = Rows::new();
            for source in &sources {
                for (time, (a, b)) in source {
                    let row = model.entry(*time).or_default();
                    row.0 = a.or(row.0);
                    row.1 = b.or(row.1);
                }
            }
            let merged = merge(&pieces);
            prop_assert_eq!(rows(&merged), rows(&piece(&model)));

            let mut kept = merged;
            kept.drop_empty_rows(None);
            model.retain(|_, (a, b)| a.is_some() || b.is_some());
            prop_assert_eq!(rows(&kept), rows(&piece(&model)));

            let mut some = kept.clone();
            some.drop_times(&gone.iter().copied().collect::<Vec<i64>>());
            let left: Vec<_> = rows(&kept).into_iter().filter(|r| !gone.contains(&r.0)).collect();
            prop_assert_eq!(rows(&some), left);

            let mut expected = rows(&kept);
            expected.reverse();
            kept.reverse();
            prop_assert_eq!(rows(&kept), expected);
        }
    }
}
