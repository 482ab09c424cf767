//! Rows with everything resolved to numbers: what the log carries and memtables take.

use std::borrow::Cow;

use model::{DatabaseId, FieldType, PolicyId, SeriesId};

/// A measurement of one database. Counted up by the store, never used again: a dropped and
/// re-created measurement has another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct MeasurementNo(pub(crate) u32);

/// A field of one measurement, counted from 0 in order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FieldNo(pub(crate) u32);

/// The number of a field that does not exist: no layout has it.
pub(crate) const NO_FIELD: FieldNo = FieldNo(u32::MAX);

/// Rows of one policy. Those of one series stand in the order in which they were sent.
#[derive(Debug)]
pub(crate) struct RowBatch<'a> {
    pub(crate) database: DatabaseId,
    pub(crate) policy: PolicyId,
    /// Length of partitions made for these rows, nanoseconds.
    pub(crate) partition_ns: i64,
    pub(crate) layouts: Vec<RowLayout>,
    pub(crate) rows: Vec<BatchRow>,
    /// Slots as in `model::LineBatch::values`.
    pub(crate) values: Cow<'a, [u64]>,
    /// Text of string slots.
    pub(crate) strings: Cow<'a, [u8]>,
}

/// The measurement and the fields of some rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RowLayout {
    pub(crate) measurement: MeasurementNo,
    /// In the order of the values; no field twice.
    pub(crate) fields: Vec<(FieldNo, FieldType)>,
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchRow {
    pub(crate) series: SeriesId,
    pub(crate) time_ns: i64,
    /// Index into the batch's layouts.
    pub(crate) layout: u32,
    /// Index of the first value in the batch's values.
    pub(crate) values_start: u32,
}

impl RowBatch<'_> {
    /// The values of `row`, in its layout's order.
    pub(crate) fn row_values(&self, row: &BatchRow) -> &[u64] {
        let start = row.values_start as usize;
        &self.values[start..start + self.layouts[row.layout as usize].fields.len()]
    }
}
