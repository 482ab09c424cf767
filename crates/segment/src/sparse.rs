//! Columns without room for what is missing: on the way into a file, of thousands of fields of which a row has a handful,
//! memory and work go with the values that there are. What is missing costs a bit a row.

use std::ops::Range;

use model::{Bitmap, Column, FieldType, Strings, Values};

use crate::numbers::Number;

/// The values of one field in some rows.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseColumn {
    /// Those that there are, in the order of their rows.
    pub values: Values,
    /// Which rows have one. `None`: all of them.
    pub present: Option<Bitmap>,
}

/// The same, of somebody else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SparseView<'a> {
    pub(crate) values: &'a Values,
    pub(crate) present: Option<&'a Bitmap>,
}

impl SparseColumn {
    /// A column that has every value.
    #[must_use]
    pub fn new(values: Values) -> Self {
        Self { values, present: None }
    }

    /// No rows of a field.
    #[must_use]
    pub fn empty(field_type: FieldType) -> Self {
        Self::new(Values::empty(field_type))
    }

    pub(crate) fn view(&self) -> SparseView<'_> {
        SparseView { values: &self.values, present: self.present.as_ref() }
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.view().len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many values rows before this one have: its own, if it has one, stands at that place.
    #[must_use]
    pub fn values_before(&self, row: usize) -> usize {
        self.view().values_before(row)
    }

    /// Bytes of memory it takes, for budgets.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.values.memory_bytes() + self.present.as_ref().map_or(0, |p| p.words().len() * 8)
    }

    /// Removes all rows and keeps the memory of values for others.
    pub fn clear(&mut self) {
        self.values.clear();
        self.present = None;
    }

    /// Adds rows of another column.
    ///
    /// # Panics
    /// If it is of another type, or has not as many rows.
    pub fn extend_from(&mut self, other: &Self, rows: Range<usize>) {
        let had = self.len();
        let view = other.view();
        self.values.extend_from(&other.values, view.values_of(&rows));
        self.note(had, other.present.as_ref(), rows);
    }

    /// Adds rows of a column that has room for missing values.
    ///
    /// # Panics
    /// As [`Self::extend_from`].
    pub fn extend_from_column(&mut self, column: &Column, rows: Range<usize>) {
        let had = self.len();
        match &column.validity {
            None => self.values.extend_from(&column.values, rows.clone()),
            Some(validity) => {
                let mut bits = Bitmap::new();
                bits.extend_from(validity, rows.clone());
                append_present(&mut self.values, &column.values, rows.start, &bits);
            }
        }
        self.note(had, column.validity.as_ref(), rows);
    }

    /// Adds the bits of rows that came behind `had` others.
    fn note(&mut self, had: usize, present: Option<&Bitmap>, rows: Range<usize>) {
        match (&mut self.present, present) {
            (None, None) => {}
            (Some(mine), None) => mine.extend_filled(rows.len(), true),
            (mine, Some(theirs)) => {
                mine.get_or_insert_with(|| Bitmap::filled(had, true)).extend_from(theirs, rows);
            }
        }
    }
}

impl From<Column> for SparseColumn {
    fn from(column: Column) -> Self {
        let rows = column.len();
        match &column.validity {
            Some(validity) if validity.count_ones() < rows => {
                let mut sparse = Self::new(column.values.none_like());
                sparse.extend_from_column(&column, 0..rows);
                sparse
            }
            _ => Self::new(column.values),
        }
    }
}

impl<'a> SparseView<'a> {
    /// A column that has every value.
    pub(crate) fn all(values: &'a Values) -> Self {
        Self { values, present: None }
    }

    /// Calls `with` with the values of a column that has room for missing ones; copies them only if some are missing.
    pub(crate) fn of<R>(column: &Column, with: impl FnOnce(SparseView<'_>) -> R) -> R {
        if column.validity.is_none() {
            return with(SparseView::all(&column.values));
        }
        let mut sparse = SparseColumn::new(column.values.none_like());
        sparse.extend_from_column(column, 0..column.len());
        with(sparse.view())
    }

    pub(crate) fn len(&self) -> usize {
        self.present.map_or(self.values.len(), Bitmap::len)
    }

    /// How many values rows before this one have.
    pub(crate) fn values_before(&self, row: usize) -> usize {
        self.present.map_or(row, |present| present.count_ones_in(0..row))
    }

    /// Which of the values are those of some rows.
    pub(crate) fn values_of(&self, rows: &Range<usize>) -> Range<usize> {
        let start = self.values_before(rows.start);
        let count = self.present.map_or(rows.len(), |p| p.count_ones_in(rows.clone()));
        start..start + count
    }
}

/// Adds the entries from `first` on whose bit is set.
fn append_present(out: &mut Values, values: &Values, first: usize, bits: &Bitmap) {
    let (rows, words) = (first..first + bits.len(), bits.words());
    match (values, out) {
        (Values::Float(v), Values::Float(out)) => Number::select(&v[rows], words, out),
        (Values::Integer(v), Values::Integer(out)) => Number::select(&v[rows], words, out),
        (Values::Unsigned(v), Values::Unsigned(out)) => Number::select(&v[rows], words, out),
        (Values::Boolean(v), Values::Boolean(out)) => {
            bits.ones().for_each(|row| out.push(v.get(first + row)));
        }
        (Values::String(v), Values::String(out)) => {
            let found: Strings = v.take(bits.ones().map(|row| first + row));
            out.extend_from(&found, 0..found.len());
        }
        _ => panic!("BUG: columns of two types"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dense(cells: &[Option<i64>]) -> Column {
        let mut column = Column::new(Values::Integer(Vec::new()));
        cells.iter().for_each(|cell| column.push_bits(cell.map(i64::cast_unsigned)));
        column
    }

    proptest! {
        #[test]
        fn rows_that_are_added_in_any_way_are_the_same(
            cells in prop::collection::vec(prop::option::weighted(0.3, any::<i64>()), 0..300),
            cut in any::<(prop::sample::Index, prop::sample::Index)>(),
            texts in any::<bool>(),
        ) {
            let (a, b) = (cut.0.index(cells.len() + 1), cut.1.index(cells.len() + 1));
            let (from, to) = (a.min(b), a.max(b));
            let column = |cells: &[Option<i64>]| {
                if !texts {
                    return dense(cells);
                }
                let mut column = Column::new(Values::String(Strings::new()));
                for cell in cells {
                    column.push(cell.map(|n| model::Scalar::String(n.to_string().into())).as_ref());
                }
                column
            };
            let whole = SparseColumn::from(column(&cells));
            prop_assert_eq!(whole.len(), cells.len());
            prop_assert_eq!(whole.values.len(), cells.iter().flatten().count());
            let mut some = SparseColumn::new(whole.values.none_like());
            some.extend_from(&whole, 0..from);
            some.extend_from_column(&column(&cells), from..to);
            some.extend_from(&whole, to..cells.len());
            prop_assert_eq!(some.values, whole.values.clone());
            let bit = |row: usize| whole.present.as_ref().is_none_or(|present| present.get(row));
            for (row, cell) in cells.iter().enumerate() {
                prop_assert_eq!(bit(row), cell.is_some());
                prop_assert_eq!(some.present.as_ref().is_none_or(|p| p.get(row)), cell.is_some());
            }
            let of_part = whole.view().values_of(&(from..to));
            let expected: Vec<i64> = cells[from..to].iter().flatten().copied().collect();
            prop_assert_eq!(of_part.len(), expected.len());
            if let Values::Integer(values) = &whole.values {
                prop_assert_eq!(&values[of_part], expected.as_slice());
            }
        }
    }
}
