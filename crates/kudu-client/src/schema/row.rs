//! Rows of single values in the format of writes: bounds of range partitions.
//!
//! Layout of an operation: its number, a bit per column that is set, a bit per column that is NULL
//! (only if the schema has nullable columns), then the values of set columns in schema order. Text
//! is an offset and a length into a buffer beside the rows.

use bytes::Bytes;

use super::{DataType, Schema, Value};
use crate::proto::{RowOperations, operation};

/// Pairs of bounds for one message.
#[derive(Debug, Default)]
pub(crate) struct Bounds {
    rows: Vec<u8>,
    indirect: Vec<u8>,
}

impl Bounds {
    /// Adds a lower (inclusive) and an upper (exclusive) bound. Columns without a value stay unset,
    /// which means the least value; no value at all means no bound.
    pub(crate) fn push(
        &mut self,
        schema: &Schema,
        lower: &[(usize, Value)],
        upper: &[(usize, Value)],
    ) {
        let Self { rows, indirect } = self;
        push_row(schema, operation::RANGE_LOWER_BOUND, lower, rows, indirect);
        push_row(schema, operation::RANGE_UPPER_BOUND, upper, rows, indirect);
    }

    pub(crate) fn into_message(self) -> RowOperations {
        let Self { rows, indirect } = self;
        RowOperations { rows: Some(rows.into()), indirect_data: Some(indirect.into()) }
    }
}

fn push_row(
    schema: &Schema,
    operation: u8,
    cells: &[(usize, Value)],
    rows: &mut Vec<u8>,
    indirect: &mut Vec<u8>,
) {
    let bitmap = schema.columns().len().div_ceil(8);
    rows.push(operation);
    let is_set = rows.len();
    rows.resize(is_set + if schema.has_nullable() { 2 * bitmap } else { bitmap }, 0);
    for (index, column) in schema.columns().iter().enumerate() {
        let Some((_, value)) = cells.iter().find(|(i, _)| *i == index) else { continue };
        rows[is_set + index / 8] |= 1 << (index % 8);
        let bytes = value.wire(column.data_type);
        if column.data_type.width().is_some() {
            rows.extend_from_slice(&bytes);
        } else {
            rows.extend_from_slice(&(indirect.len() as u64).to_le_bytes());
            rows.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            indirect.extend_from_slice(&bytes);
        }
    }
}

/// A row as it comes back: operation and the value of each column that is set.
pub(crate) type DecodedRow = (u8, Vec<Option<Value>>);

/// Reads rows back; `None`: they are damaged.
pub(crate) fn decode(schema: &Schema, message: &RowOperations) -> Option<Vec<DecodedRow>> {
    let indirect = message.indirect_data.clone().unwrap_or_default();
    let all = message.rows.clone().unwrap_or_default();
    let mut rest: &[u8] = &all;
    let bitmap = schema.columns().len().div_ceil(8);
    let mut rows = Vec::new();
    while let Some((operation, after)) = rest.split_first() {
        let (is_set, after) = after.split_at_checked(bitmap)?;
        let (is_null, after) =
            after.split_at_checked(if schema.has_nullable() { bitmap } else { 0 })?;
        rest = after;
        let bit = |bits: &[u8], i: usize| bits.get(i / 8).is_some_and(|b| b >> (i % 8) & 1 == 1);
        let mut cells = Vec::with_capacity(schema.columns().len());
        for (index, column) in schema.columns().iter().enumerate() {
            let present = bit(is_set, index) && !(column.nullable && bit(is_null, index));
            cells.push(match present {
                true => Some(take_cell(&mut rest, column.data_type, &indirect)?),
                false => None,
            });
        }
        rows.push((*operation, cells));
    }
    Some(rows)
}

fn take_cell(rest: &mut &[u8], data_type: DataType, indirect: &Bytes) -> Option<Value> {
    let (bytes, after) = rest.split_at_checked(data_type.width().unwrap_or(16))?;
    *rest = after;
    if data_type.width().is_some() {
        return Value::from_wire(bytes, data_type);
    }
    let (offset, length) = bytes.split_at_checked(8)?;
    let offset = usize::try_from(u64::from_le_bytes(offset.try_into().ok()?)).ok()?;
    let length = usize::try_from(u64::from_le_bytes(length.try_into().ok()?)).ok()?;
    let text = indirect.get(offset..offset.checked_add(length)?)?;
    Some(Value::Bytes(text.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Column;

    #[test]
    fn bounds_come_back() {
        let schema = Schema::new(
            vec![
                Column::new("a", DataType::Int32),
                Column::new("b", DataType::String),
                Column::new("c", DataType::Double).nullable(),
            ],
            2,
        )
        .unwrap();
        let lower = [(0, Value::from(-5)), (1, Value::from("x"))];
        let mut bounds = Bounds::default();
        bounds.push(&schema, &lower, &[]);
        bounds.push(&schema, &[], &[(0, Value::from(1)), (1, Value::from("yz"))]);
        let encoded = bounds.into_message();
        let rows = decode(&schema, &encoded).unwrap();
        assert_eq!(rows.len(), 4);
        assert_eq!(rows[3], (7, vec![Some(Value::from(1)), Some(Value::from("yz")), None]));
        assert_eq!(rows[0], (6, vec![Some(Value::from(-5)), Some(Value::from("x")), None]));
        assert_eq!(rows[1], (7, vec![None, None, None]));
        let cut = RowOperations {
            rows: encoded.rows.map(|r| r.slice(..r.len() - 1)),
            indirect_data: None,
        };
        assert!(decode(&schema, &cut).is_none());
    }
}
