//! Columns of a scan's answer: views of the buffers it was received into.
//!
//! Layout: values packed little-endian (a byte for a boolean); text as `rows + 1` offsets of 32 bits
//! and the bytes beside them; a bit per row that is 1 where there is a value. NULL slots hold zeros.
//! The buffers need not be aligned.

use bytes::Bytes;

use crate::proto::ColumnarRowBlock;
use crate::schema::{Column, DataType, Value};
use crate::write::Bits;

/// Some rows of a scan.
#[derive(Clone, Debug)]
pub struct ScanBatch {
    rows: usize,
    columns: Vec<BatchColumn>,
}

#[derive(Clone, Debug)]
struct BatchColumn {
    data_type: DataType,
    data: Bytes,
    text: Bytes,
    validity: Option<Bytes>,
}

/// A column of a batch.
#[derive(Clone, Copy, Debug)]
pub struct ColumnView<'a> {
    rows: usize,
    column: &'a BatchColumn,
}

impl ScanBatch {
    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns: those of the projection, in its order.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// A column.
    ///
    /// # Panics
    /// There are not so many.
    #[must_use]
    pub fn column(&self, index: usize) -> ColumnView<'_> {
        ColumnView { rows: self.rows, column: &self.columns[index] }
    }

    /// Keeps the first rows only.
    pub(crate) fn truncate(&mut self, rows: usize) {
        self.rows = self.rows.min(rows);
    }

    /// Checks the answer so that no view of it can go wrong. The error says what is wrong.
    pub(crate) fn new(
        block: &ColumnarRowBlock,
        sidecars: &[Bytes],
        projection: &[Column],
    ) -> Result<Self, String> {
        let rows = usize::try_from(block.num_rows.unwrap_or(0)).map_err(|_| "negative rows")?;
        if rows == 0 {
            return Ok(Self { rows, columns: projection.iter().map(empty_column).collect() });
        }
        if block.columns.len() != projection.len() {
            return Err(format!("{} columns, asked for {}", block.columns.len(), projection.len()));
        }
        let sidecar = |index: Option<i32>| -> Result<Option<Bytes>, String> {
            let Some(index) = index else { return Ok(None) };
            let found = usize::try_from(index).ok().and_then(|i| sidecars.get(i)).cloned();
            found.map(Some).ok_or_else(|| format!("no sidecar {index}"))
        };
        let mut columns = Vec::with_capacity(projection.len());
        for (message, column) in block.columns.iter().zip(projection) {
            let data = sidecar(message.data_sidecar)?.unwrap_or_default();
            let text = sidecar(message.varlen_data_sidecar)?.unwrap_or_default();
            let validity = sidecar(message.non_null_bitmap_sidecar)?;
            let wanted = match column.data_type.width() {
                Some(width) => rows.checked_mul(width),
                None => rows.checked_add(1).and_then(|n| n.checked_mul(4)),
            };
            if wanted != Some(data.len()) {
                return Err(format!("column {} has {} bytes", column.name, data.len()));
            }
            if validity.as_ref().is_some_and(|bits| bits.len() < rows.div_ceil(8)) {
                return Err(format!("column {} has too few bits", column.name));
            }
            let column = BatchColumn { data_type: column.data_type, data, text, validity };
            if column.data_type.width().is_none() {
                check_offsets(&column)?;
            }
            columns.push(column);
        }
        Ok(Self { rows, columns })
    }
}

fn empty_column(column: &Column) -> BatchColumn {
    BatchColumn {
        data_type: column.data_type,
        data: Bytes::new(),
        text: Bytes::new(),
        validity: None,
    }
}

fn check_offsets(column: &BatchColumn) -> Result<(), String> {
    let (offsets, _) = column.data.as_chunks::<4>();
    let mut last = 0;
    for offset in offsets {
        let offset = u32::from_le_bytes(*offset);
        if offset < last {
            return Err("offsets that go back".to_owned());
        }
        last = offset;
    }
    if last as usize > column.text.len() { Err("offsets beyond text".to_owned()) } else { Ok(()) }
}

macro_rules! numbers {
    ($(($name:ident, $number:ty, $doc:literal)),*) => {
        $(
            #[doc = $doc]
            pub fn $name(self) -> impl ExactSizeIterator<Item = $number> + 'a {
                const WIDTH: usize = size_of::<$number>();
                let rows = if self.column.data_type.width() == Some(WIDTH) { self.rows } else { 0 };
                let (chunks, _) = self.column.data.as_chunks::<WIDTH>();
                chunks.iter().take(rows).map(|bytes| <$number>::from_le_bytes(*bytes))
            }
        )*
    };
}

impl<'a> ColumnView<'a> {
    /// Number of rows.
    #[must_use]
    pub fn rows(self) -> usize {
        self.rows
    }

    /// Type.
    #[must_use]
    pub fn data_type(self) -> DataType {
        self.column.data_type
    }

    /// The values as they came: packed little-endian, or `rows + 1` offsets of text. May hold more
    /// rows than the batch.
    #[must_use]
    pub fn data(self) -> &'a Bytes {
        &self.column.data
    }

    /// The bytes that the offsets of text point into.
    #[must_use]
    pub fn text(self) -> &'a Bytes {
        &self.column.text
    }

    /// A bit a row, 1 where there is a value. `None`: everywhere.
    #[must_use]
    pub fn validity(self) -> Option<&'a Bytes> {
        self.column.validity.as_ref()
    }

    /// Whether the row has a value.
    #[must_use]
    pub fn is_valid(self, row: usize) -> bool {
        self.column.validity.as_ref().is_none_or(|bits| Bits(bits).get(row))
    }

    numbers!(
        (i8s, i8, "Values of `Int8`, zero for NULL. Empty if the type is another one."),
        (i16s, i16, "Values of 16 bits, zero for NULL. Empty if the width is another one."),
        (i32s, i32, "Values of 32 bits, zero for NULL. Empty if the width is another one."),
        (i64s, i64, "Values of 64 bits, zero for NULL. Empty if the width is another one."),
        (i128s, i128, "Values of 128 bits, zero for NULL. Empty if the width is another one."),
        (f32s, f32, "Values of `Float`, zero for NULL. Empty if the width is another one."),
        (f64s, f64, "Values of `Double`, zero for NULL. Empty if the width is another one.")
    );

    /// Values of `Bool`, false for NULL. Empty if the type is another one.
    pub fn bools(self) -> impl ExactSizeIterator<Item = bool> + 'a {
        let rows = if self.column.data_type == DataType::Bool { self.rows } else { 0 };
        self.column.data.iter().take(rows).map(|byte| *byte != 0)
    }

    /// The text of a row, empty for NULL, for rows that are not there, and for other types.
    #[must_use]
    pub fn bytes(self, row: usize) -> &'a [u8] {
        if self.column.data_type.width().is_some() || row >= self.rows {
            return &[];
        }
        let (offsets, _) = self.column.data.as_chunks::<4>();
        let at = |i: usize| offsets.get(i).map(|bytes| u32::from_le_bytes(*bytes) as usize);
        match (at(row), at(row + 1)) {
            (Some(start), Some(end)) => self.column.text.get(start..end).unwrap_or_default(),
            _ => &[],
        }
    }

    /// A single value; `None` for NULL and for rows that are not there.
    #[must_use]
    pub fn value(self, row: usize) -> Option<Value> {
        if row >= self.rows || !self.is_valid(row) {
            return None;
        }
        match self.column.data_type.width() {
            None => Some(Value::Bytes(self.bytes(row).to_vec())),
            Some(width) => {
                let bytes = self.column.data.get(row * width..(row + 1) * width)?;
                Value::from_wire(bytes, self.column.data_type)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::ColumnarColumn;

    fn projection() -> Vec<Column> {
        vec![
            Column::new("usage", DataType::Double).nullable(),
            Column::new("host", DataType::String).nullable(),
        ]
    }

    fn block(rows: i64) -> ColumnarRowBlock {
        let column = |data, text, bits| ColumnarColumn {
            data_sidecar: Some(data),
            varlen_data_sidecar: text,
            non_null_bitmap_sidecar: Some(bits),
        };
        let columns = vec![column(0, None, 1), column(2, Some(3), 4)];
        ColumnarRowBlock { columns, num_rows: Some(rows) }
    }

    /// What a server sent.
    fn sidecars() -> Vec<Bytes> {
        let usage: Vec<u8> = [0.0_f64, 1.5, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let offsets: Vec<u8> = [0_u32, 2, 2, 2].iter().flat_map(|v| v.to_le_bytes()).collect();
        vec![
            usage.into(),
            Bytes::from_static(&[6]),
            offsets.into(),
            Bytes::from_static(b"ab"),
            Bytes::from_static(&[3]),
        ]
    }

    #[test]
    fn golden_answer() {
        let batch = ScanBatch::new(&block(3), &sidecars(), &projection()).unwrap();
        let usage: Vec<f64> = batch.column(0).f64s().collect();
        assert_eq!(usage, [0.0, 1.5, -2.0]);
        let values: Vec<_> = (0..4).map(|row| batch.column(0).value(row)).collect();
        assert_eq!(values, [None, Some(1.5.into()), Some((-2.0).into()), None]);
        let host: Vec<_> = (0..3).map(|row| batch.column(1).value(row)).collect();
        assert_eq!(host, [Some("ab".into()), Some("".into()), None]);
        assert_eq!(batch.column(0).i32s().len(), 0);
        assert_eq!(batch.column(0).bytes(0), b"");
    }

    #[test]
    fn answers_that_do_not_fit_are_refused() {
        let good = sidecars();
        assert!(ScanBatch::new(&block(4), &good, &projection()).is_err());
        assert!(ScanBatch::new(&block(-1), &good, &projection()).is_err());
        assert!(ScanBatch::new(&block(3), &good[..4], &projection()).is_err());
        assert!(ScanBatch::new(&block(3), &good, &projection()[..1]).is_err());
        for (index, bad) in [(0, &b"short"[..]), (1, b""), (2, &[9; 16]), (3, b"a")] {
            let mut sidecars = good.clone();
            sidecars[index] = Bytes::copy_from_slice(bad);
            assert!(ScanBatch::new(&block(3), &sidecars, &projection()).is_err(), "{index}");
        }
        assert_eq!(ScanBatch::new(&block(0), &[], &projection()).unwrap().columns(), 2);
    }
}
