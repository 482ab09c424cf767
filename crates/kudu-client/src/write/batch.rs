//! Rows to be written, column by column, borrowed from wherever the caller has them.

use crate::error::Error;
use crate::schema::{DataType, Schema};

/// What happens to the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A new row; one that exists is an error of the row.
    Insert,
    /// Columns of an existing row; one that does not exist is an error of the row.
    Update,
    /// Removes a row, given by its key alone; one that does not exist is an error of the row.
    Delete,
    /// A new row, or the given columns of an existing one; others stay as they are.
    Upsert,
    /// Like `Insert`; rows that exist are passed over.
    InsertIgnore,
    /// Like `Update`; rows that do not exist are passed over.
    UpdateIgnore,
    /// Like `Delete`; rows that do not exist are passed over.
    DeleteIgnore,
    /// Like `Upsert`, but leaves immutable columns of existing rows (Kudu 1.17).
    UpsertIgnore,
}

impl Operation {
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Insert => 1,
            Self::Update => 2,
            Self::Delete => 3,
            Self::Upsert => 5,
            Self::InsertIgnore => 10,
            Self::UpdateIgnore => 11,
            Self::DeleteIgnore => 12,
            Self::UpsertIgnore => 13,
        }
    }
}

/// The values of a column, one a row.
#[derive(Clone, Copy, Debug)]
pub enum Cells<'a> {
    /// For `Bool`.
    Bool(&'a [bool]),
    /// For `Int8`.
    Int8(&'a [i8]),
    /// For `Int16`.
    Int16(&'a [i16]),
    /// For `Int32`, `Date` and `Decimal32`.
    Int32(&'a [i32]),
    /// For `Int64`, `UnixtimeMicros` and `Decimal64`.
    Int64(&'a [i64]),
    /// For `Decimal128`.
    Int128(&'a [i128]),
    /// For `Float`.
    Float(&'a [f32]),
    /// For `Double`.
    Double(&'a [f64]),
    /// For `String`, `Varchar` and `Binary`: row `i` is `data[offsets[i]..offsets[i + 1]]`.
    Bytes {
        /// One more than rows, ascending.
        offsets: &'a [u32],
        /// All values, one after another.
        data: &'a [u8],
    },
    /// For `String`, `Varchar` and `Binary`: a slice a row.
    Slices(&'a [&'a [u8]]),
}

impl Cells<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Bool(v) => v.len(),
            Self::Int8(v) => v.len(),
            Self::Int16(v) => v.len(),
            Self::Int32(v) => v.len(),
            Self::Int64(v) => v.len(),
            Self::Int128(v) => v.len(),
            Self::Float(v) => v.len(),
            Self::Double(v) => v.len(),
            Self::Bytes { offsets, .. } => offsets.len().saturating_sub(1),
            Self::Slices(v) => v.len(),
        }
    }

    fn fits(&self, data_type: DataType) -> bool {
        match self {
            Self::Bool(_) => data_type == DataType::Bool,
            Self::Int8(_) => data_type == DataType::Int8,
            Self::Int16(_) => data_type == DataType::Int16,
            Self::Float(_) => data_type == DataType::Float,
            Self::Double(_) => data_type == DataType::Double,
            Self::Bytes { .. } | Self::Slices(_) => data_type.width().is_none(),
            Self::Int32(_) => data_type.is_integer() && data_type.width() == Some(4),
            Self::Int64(_) => data_type.is_integer() && data_type.width() == Some(8),
            Self::Int128(_) => data_type.is_integer() && data_type.width() == Some(16),
        }
    }

    /// Complains about text of more than `length` characters: servers do not look.
    fn check_length(&self, length: i32, name: &str) -> Result<(), Error> {
        let max = usize::try_from(length).unwrap_or(0);
        let characters = |text: &[u8]| text.iter().filter(|byte| **byte & 0xC0 != 0x80).count();
        let is_long = |text: &[u8]| text.len() > max && characters(text) > max;
        let found = match self {
            Self::Slices(values) => values.iter().any(|value| is_long(value)),
            Self::Bytes { offsets, data } => offsets.windows(2).any(|ends| match ends {
                [from, to] => data.get(*from as usize..*to as usize).is_some_and(is_long),
                _ => false,
            }),
            _ => false,
        };
        match found {
            true => Err(Error::invalid(format!("column {name} takes {max} characters at most"))),
            false => Ok(()),
        }
    }

    fn check(&self, rows: usize, name: &str) -> Result<(), Error> {
        if self.len() != rows {
            return Err(Error::invalid(format!(
                "column {name} has {} values for {rows} rows",
                self.len()
            )));
        }
        if let Self::Bytes { offsets, data } = self {
            let ascending = offsets.is_sorted();
            let inside = offsets.last().is_none_or(|end| *end as usize <= data.len());
            if !(ascending && inside) {
                return Err(Error::invalid(format!("offsets of column {name} are no offsets")));
            }
        }
        Ok(())
    }
}

/// A bit a row, lowest bit of each byte first.
#[derive(Clone, Copy, Debug)]
pub struct Bits<'a>(pub &'a [u8]);

impl Bits<'_> {
    pub(crate) fn get(self, row: usize) -> bool {
        self.0.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 == 1)
    }
}

/// What it means that a row has no value in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The row gets NULL, whatever it has.
    Null,
    /// The row keeps what it has; a new row gets the default or NULL.
    Unset,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchColumn<'a> {
    pub(crate) index: usize,
    pub(crate) cells: Cells<'a>,
    /// Bit 1: the row has a value.
    pub(crate) present: Option<(Bits<'a>, Missing)>,
}

/// Rows of one table that all get the same operation. Columns that are not given are unset.
#[derive(Clone, Debug)]
pub struct RowBatch<'a> {
    pub(crate) operation: Operation,
    pub(crate) rows: usize,
    pub(crate) columns: Vec<BatchColumn<'a>>,
}

impl<'a> RowBatch<'a> {
    /// `rows` rows without columns yet.
    #[must_use]
    pub fn new(operation: Operation, rows: usize) -> Self {
        Self { operation, rows, columns: Vec::new() }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Gives the column at `index` of the table's schema a value in every row.
    #[must_use]
    pub fn column(mut self, index: usize, cells: Cells<'a>) -> Self {
        self.columns.push(BatchColumn { index, cells, present: None });
        self
    }

    /// Gives the column at `index` of the table's schema a value in the rows whose bit is 1.
    #[must_use]
    pub fn column_where(
        mut self,
        index: usize,
        cells: Cells<'a>,
        present: Bits<'a>,
        missing: Missing,
    ) -> Self {
        self.columns.push(BatchColumn { index, cells, present: Some((present, missing)) });
        self
    }

    /// About how many bytes its rows take on the wire, never much less.
    pub(crate) fn bytes(&self) -> usize {
        let of_column = |column: &BatchColumn<'_>| match column.cells {
            Cells::Bytes { offsets, data } => {
                let end = offsets.last().map_or(0, |end| *end as usize);
                self.rows * 16 + end.min(data.len())
            }
            Cells::Slices(values) => {
                self.rows * 16 + values.iter().map(|value| value.len()).sum::<usize>()
            }
            Cells::Int128(_) => self.rows * 16,
            _ => self.rows * 8,
        };
        // Operation and bits of the row, and its number.
        self.rows * 16 + self.columns.iter().map(of_column).sum::<usize>()
    }

    /// Checks the batch against a schema. What passes cannot confuse a server's decoder.
    pub(crate) fn check(&self, schema: &Schema) -> Result<(), Error> {
        if u32::try_from(self.rows).is_err() {
            return Err(Error::invalid("more rows in a batch than 32 bits count"));
        }
        let mut given = vec![false; schema.columns().len()];
        for batch_column in &self.columns {
            let index = batch_column.index;
            let (Some(column), Some(given)) = (schema.columns().get(index), given.get_mut(index))
            else {
                return Err(Error::invalid(format!("the table has no column {index}")));
            };
            let name = &column.name;
            if std::mem::replace(given, true) {
                return Err(Error::invalid(format!("column {name} is given twice")));
            }
            if !batch_column.cells.fits(column.data_type) {
                let data_type = column.data_type;
                return Err(Error::invalid(format!("column {name} is {data_type:?}")));
            }
            batch_column.cells.check(self.rows, name)?;
            if let Some(length) = column.length {
                batch_column.cells.check_length(length, name)?;
            }
            let Some((bits, missing)) = batch_column.present else { continue };
            if bits.0.len() < self.rows.div_ceil(8) {
                return Err(Error::invalid(format!("too few bits for column {name}")));
            }
            let is_key = index < schema.key().len();
            if is_key || (missing == Missing::Null && !column.nullable) {
                return Err(Error::invalid(format!("column {name} must have a value in each row")));
            }
        }
        let keys = given.iter().zip(schema.key());
        if let Some((_, column)) =
            keys.into_iter().find(|(given, c)| !**given && !c.auto_incrementing)
        {
            return Err(Error::invalid(format!("key column {} is missing", column.name)));
        }
        Ok(())
    }
}
