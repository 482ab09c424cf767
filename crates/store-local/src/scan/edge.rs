//! The rows at the ends of blocks, which the directory of a segment keeps: the latest row of a series
//! is found without reading a page.

use std::ops::Range;

use model::{Column, FieldType, Scalar, Values};
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
pub(crate) fn column_of(value: Option<&Scalar>, field_type: FieldType) -> Column {
    let mut column = Column::new(Values::empty(field_type));
    push(&mut column, value);
    column
}

/// Adds a value of the column's type, or none.
pub(crate) fn push(column: &mut Column, value: Option<&Scalar>) {
    let Some(value) = value else { return column.extend_missing(1) };
    push_value(&mut column.values, value);
    if let Some(validity) = &mut column.validity {
        validity.extend_filled(1, true);
    }
}

/// Adds a value of the values' type.
pub(crate) fn push_value(values: &mut Values, value: &Scalar) {
    match (values, value) {
        (Values::Float(values), Scalar::Float(value)) => values.push(*value),
        (Values::Integer(values), Scalar::Integer(value)) => values.push(*value),
        (Values::Unsigned(values), Scalar::Unsigned(value)) => values.push(*value),
        (Values::Boolean(values), Scalar::Boolean(value)) => values.extend_filled(1, *value),
        (Values::String(values), Scalar::String(value)) => values.push(value),
        _ => panic!("BUG: a value of another type than its column's"),
    }
}
