//! The rows at the ends of blocks, which the directory of a segment keeps: the latest row of a series
//! is found without reading a page.

use std::ops::Range;

use model::{Bitmap, Column, FieldType, Scalar, Values};
use segment::{Block, Edge};

/// Which end of a block of one series `rows` is, and its time, if it is just that row.
pub(crate) fn edge_of(block: &Block, rows: &Range<usize>) -> Option<(Edge, i64)> {
    if rows.len() != 1 || !block.has_one_series() {
        return None;
    }
    match rows.start {
        0 => Some((Edge::First, block.first().1)),
        at if at + 1 == block.rows() => Some((Edge::Last, block.last().1)),
        _ => None,
    }
}

/// A column of one row.
pub(crate) fn column_of(value: Option<Scalar>, field_type: FieldType) -> Column {
    let values = match value {
        None => {
            let mut column = Column::new(Values::empty(field_type));
            column.extend_missing(1);
            return column;
        }
        Some(Scalar::Float(v)) => Values::Float(vec![v]),
        Some(Scalar::Integer(v)) => Values::Integer(vec![v]),
        Some(Scalar::Unsigned(v)) => Values::Unsigned(vec![v]),
        Some(Scalar::Boolean(v)) => Values::Boolean(Bitmap::filled(1, v)),
        Some(Scalar::String(v)) => Values::String(std::iter::once(&*v).collect()),
    };
    Column::new(values)
}
