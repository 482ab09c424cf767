//! `ColumnBatch`: the only type that travels from a store to the socket.

use std::sync::Arc;

use crate::{Bitmap, FieldType, Scalar, Strings};

/// Some rows, column by column.
///
/// Shape: every column has `rows` entries. A batch from a scan has the time as column 0 and the
/// requested fields after it, in the request's order, and `runs` says which series its rows belong
/// to. A batch on its way out has whatever columns the statement selects and no runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnBatch {
    /// Number of rows.
    pub rows: usize,
    /// Rows of one series after another; the counts add up to `rows`. Empty outside scans.
    pub runs: Vec<SeriesRun>,
    /// The columns.
    pub columns: Vec<Column>,
}

/// A number of consecutive rows of one series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesRun {
    /// Ordinal of the series in the scan's series table, or [`SeriesRun::SEVERAL`].
    pub series: u32,
    /// Number of rows, at least 1.
    pub rows: u32,
}

impl SeriesRun {
    /// In place of an ordinal: rows of several series, in no order of time. Only for those who said that it does not matter.
    pub const SEVERAL: u32 = u32::MAX;
}

/// One column: values and which of them exist.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// One entry a row; the entry of a missing value is unspecified.
    pub values: Values,
    /// Which rows have a value. `None`: all of them.
    pub validity: Option<Bitmap>,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Nanoseconds since 1970-01-01 UTC.
    Time(Vec<i64>),
    /// float64.
    Float(Vec<f64>),
    /// int64.
    Integer(Vec<i64>),
    /// uint64.
    Unsigned(Vec<u64>),
    /// Booleans.
    Boolean(Bitmap),
    /// Text.
    String(Strings),
    /// Text with few distinct values (tags): an index into a shared dictionary per row.
    Dictionary(Vec<u32>, Arc<Strings>),
}

impl Values {
    /// An empty column for fields of type `field_type`.
    #[must_use]
    pub fn empty(field_type: FieldType) -> Self {
        match field_type {
            FieldType::Float => Self::Float(Vec::new()),
            FieldType::Integer => Self::Integer(Vec::new()),
            FieldType::Unsigned => Self::Unsigned(Vec::new()),
            FieldType::String => Self::String(Strings::new()),
            FieldType::Boolean => Self::Boolean(Bitmap::new()),
        }
    }

    /// No entries of the same kind, and no room for any.
    #[must_use]
    pub fn none_like(&self) -> Self {
        match self {
            Self::Time(_) => Self::Time(Vec::new()),
            Self::Float(_) => Self::Float(Vec::new()),
            Self::Integer(_) => Self::Integer(Vec::new()),
            Self::Unsigned(_) => Self::Unsigned(Vec::new()),
            Self::Boolean(_) => Self::Boolean(Bitmap::new()),
            Self::String(_) => Self::String(Strings::new()),
            Self::Dictionary(_, texts) => Self::Dictionary(Vec::new(), Arc::clone(texts)),
        }
    }

    /// The same with room for as many numbers.
    #[must_use]
    pub fn empty_like(&self) -> Self {
        match self {
            Self::Time(v) => Self::Time(Vec::with_capacity(v.len())),
            Self::Float(v) => Self::Float(Vec::with_capacity(v.len())),
            Self::Integer(v) => Self::Integer(Vec::with_capacity(v.len())),
            Self::Unsigned(v) => Self::Unsigned(Vec::with_capacity(v.len())),
            Self::Boolean(_) => Self::Boolean(Bitmap::new()),
            Self::String(_) => Self::String(Strings::new()),
            Self::Dictionary(v, texts) => {
                Self::Dictionary(Vec::with_capacity(v.len()), Arc::clone(texts))
            }
        }
    }

    /// Removes all entries and keeps their memory for others.
    pub fn clear(&mut self) {
        match self {
            Self::Time(v) | Self::Integer(v) => v.clear(),
            Self::Float(v) => v.clear(),
            Self::Unsigned(v) => v.clear(),
            Self::Boolean(v) => v.clear(),
            Self::String(v) => v.clear(),
            Self::Dictionary(v, _) => v.clear(),
        }
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Time(v) | Self::Integer(v) => v.len(),
            Self::Float(v) => v.len(),
            Self::Unsigned(v) => v.len(),
            Self::Boolean(v) => v.len(),
            Self::String(v) => v.len(),
            Self::Dictionary(v, _) => v.len(),
        }
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the entries `range` of `other`.
    ///
    /// # Panics
    /// If the types differ, or two dictionaries are not the same one.
    pub fn extend_from(&mut self, other: &Self, range: std::ops::Range<usize>) {
        match (self, other) {
            (Self::Time(a), Self::Time(b)) | (Self::Integer(a), Self::Integer(b)) => {
                a.extend_from_slice(&b[range]);
            }
            (Self::Float(a), Self::Float(b)) => a.extend_from_slice(&b[range]),
            (Self::Unsigned(a), Self::Unsigned(b)) => a.extend_from_slice(&b[range]),
            (Self::Boolean(a), Self::Boolean(b)) => a.extend_from(b, range),
            (Self::String(a), Self::String(b)) => a.extend_from(b, range),
            (Self::Dictionary(a, x), Self::Dictionary(b, y)) => {
                assert!(Arc::ptr_eq(x, y), "BUG: columns of two dictionaries");
                a.extend_from_slice(&b[range]);
            }
            _ => panic!("BUG: columns of two types"),
        }
    }

    /// The entry at `index`; a time is an integer.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn get(&self, index: usize) -> Scalar {
        match self {
            Self::Float(v) => Scalar::Float(v[index]),
            Self::Time(v) | Self::Integer(v) => Scalar::Integer(v[index]),
            Self::Unsigned(v) => Scalar::Unsigned(v[index]),
            Self::Boolean(v) => Scalar::Boolean(v.get(index)),
            Self::String(v) => Scalar::String(v.get(index).into()),
            Self::Dictionary(codes, texts) => {
                Scalar::String(texts.get(codes[index] as usize).into())
            }
        }
    }

    /// Adds an entry; a time is an integer.
    ///
    /// # Panics
    /// If it is of another type, or this is a dictionary.
    pub fn push(&mut self, value: &Scalar) {
        match (self, value) {
            (Self::Float(v), Scalar::Float(x)) => v.push(*x),
            (Self::Time(v) | Self::Integer(v), Scalar::Integer(x)) => v.push(*x),
            (Self::Unsigned(v), Scalar::Unsigned(x)) => v.push(*x),
            (Self::Boolean(v), Scalar::Boolean(x)) => v.push(*x),
            (Self::String(v), Scalar::String(x)) => v.push(x),
            _ => panic!("BUG: {value:?} in a column of another type"),
        }
    }

    /// Adds a number by the eight bytes it has in memory: two's complement, IEEE 754; a boolean is true
    /// unless they are 0.
    ///
    /// # Panics
    /// If these are texts.
    pub fn push_bits(&mut self, bits: u64) {
        match self {
            Self::Float(v) => v.push(f64::from_bits(bits)),
            Self::Time(v) | Self::Integer(v) => v.push(bits.cast_signed()),
            Self::Unsigned(v) => v.push(bits),
            Self::Boolean(v) => v.push(bits != 0),
            Self::String(_) | Self::Dictionary(..) => panic!("BUG: a number among texts"),
        }
    }

    /// Adds `count` entries that stand for missing values.
    pub fn extend_missing(&mut self, count: usize) {
        match self {
            Self::Time(v) | Self::Integer(v) => v.resize(v.len() + count, 0),
            Self::Float(v) => v.resize(v.len() + count, 0.0),
            Self::Unsigned(v) => v.resize(v.len() + count, 0),
            Self::Boolean(v) => v.extend_filled(count, false),
            Self::String(v) => v.extend_empty(count),
            Self::Dictionary(v, _) => v.resize(v.len() + count, 0),
        }
    }

    /// Makes room for `count` more entries, where each takes the same.
    pub fn reserve(&mut self, count: usize) {
        match self {
            Self::Time(v) | Self::Integer(v) => v.reserve(count),
            Self::Float(v) => v.reserve(count),
            Self::Unsigned(v) => v.reserve(count),
            Self::Dictionary(v, _) => v.reserve(count),
            Self::String(v) => v.reserve(count),
            Self::Boolean(_) => {}
        }
    }

    /// Bytes of memory the entries take, for budgets.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Time(v) | Self::Integer(v) => v.capacity() * 8,
            Self::Float(v) => v.capacity() * 8,
            Self::Unsigned(v) => v.capacity() * 8,
            Self::Boolean(v) => v.words().len() * 8,
            Self::String(v) => v.memory_bytes(),
            Self::Dictionary(v, _) => v.capacity() * 4,
        }
    }
}

impl Column {
    /// A column that has every value.
    #[must_use]
    pub fn new(values: Values) -> Self {
        Self { values, validity: None }
    }

    /// Bytes of memory it takes, for budgets.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.values.memory_bytes() + self.validity.as_ref().map_or(0, |v| v.words().len() * 8)
    }

    /// Whether row `index` has a value.
    #[must_use]
    pub fn is_valid(&self, index: usize) -> bool {
        self.validity.as_ref().is_none_or(|v| v.get(index))
    }

    /// The value of row `index`, if it has one.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Scalar> {
        self.is_valid(index).then(|| self.values.get(index))
    }

    /// Adds a row, with a value or without.
    ///
    /// # Panics
    /// As [`Values::push`].
    pub fn push(&mut self, value: Option<&Scalar>) {
        let Some(value) = value else { return self.extend_missing(1) };
        self.values.push(value);
        if let Some(validity) = &mut self.validity {
            validity.push(true);
        }
    }

    /// Adds a row with a number, as [`Values::push_bits`] does, or without.
    ///
    /// # Panics
    /// As there.
    pub fn push_bits(&mut self, bits: Option<u64>) {
        let Some(bits) = bits else { return self.extend_missing(1) };
        self.values.push_bits(bits);
        if let Some(validity) = &mut self.validity {
            validity.push(true);
        }
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Removes all entries and keeps their memory for others.
    pub fn clear(&mut self) {
        self.values.clear();
        self.validity = None;
    }

    /// Adds the entries `range` of `other`, validity included.
    ///
    /// # Panics
    /// As [`Values::extend_from`].
    pub fn extend_from(&mut self, other: &Self, range: std::ops::Range<usize>) {
        let had = self.len();
        self.values.extend_from(&other.values, range.clone());
        match (&mut self.validity, &other.validity) {
            (None, None) => {}
            (Some(mine), None) => mine.extend_filled(range.len(), true),
            (mine, Some(theirs)) => {
                mine.get_or_insert_with(|| Bitmap::filled(had, true)).extend_from(theirs, range);
            }
        }
    }

    /// Adds `count` missing values.
    pub fn extend_missing(&mut self, count: usize) {
        let had = self.len();
        self.values.extend_missing(count);
        if count > 0 {
            self.validity
                .get_or_insert_with(|| Bitmap::filled(had, true))
                .extend_filled(count, false);
        }
    }
}

impl ColumnBatch {
    /// The times of a scan's batch.
    ///
    /// # Panics
    /// If column 0 is not the time: the batch is not a scan's.
    #[must_use]
    pub fn times(&self) -> &[i64] {
        match self.columns.first().map(|c| &c.values) {
            Some(Values::Time(times)) => times,
            _ => panic!("BUG: a scan's batch starts with the time"),
        }
    }

    /// Bytes of memory the batch takes, for budgets.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(Column::memory_bytes).sum();
        columns + self.runs.len() * size_of::<SeriesRun>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_by_their_bits() {
        let mut column = Column::new(Values::Float(vec![0.5]));
        [None, Some((-0.0f64).to_bits())].into_iter().for_each(|bits| column.push_bits(bits));
        assert_eq!(column.get(0), Some(Scalar::Float(0.5)));
        assert_eq!((column.get(1), column.len()), (None, 3));
        assert!(matches!(column.get(2), Some(Scalar::Float(zero)) if zero.is_sign_negative()));
        for (values, bits, expected) in [
            (Values::Integer(Vec::new()), u64::MAX, Scalar::Integer(-1)),
            (Values::Unsigned(Vec::new()), u64::MAX, Scalar::Unsigned(u64::MAX)),
            (Values::Boolean(Bitmap::new()), 1, Scalar::Boolean(true)),
        ] {
            let mut column = Column::new(values);
            column.push_bits(Some(bits));
            assert_eq!(column.get(0), Some(expected));
        }
    }
}
