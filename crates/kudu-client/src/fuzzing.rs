//! Entry points for fuzzing: what servers send.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use tokio::time::Instant;

use crate::cluster::locations::{Locations, WHOLE, find_in};
use crate::proto::{GetTableLocationsResponse, GetTableSchemaResponse, ScanResponse};
use crate::rpc::{Frame, take_frame};
use crate::scan::{ColumnView, ScanBatch};
use crate::schema::{Column, DataType, PartitionSchema, Schema, ranges_of};

/// Types of a projection, by number.
const TYPES: [DataType; 8] = [
    DataType::Int8,
    DataType::Int16,
    DataType::Int32,
    DataType::Int64,
    DataType::Double,
    DataType::Bool,
    DataType::String,
    DataType::Decimal128,
];
/// Rows of a batch that are looked at one by one.
const ROWS_MAX: usize = 1000;

/// Takes frames out of arbitrary bytes: the same come out when the bytes arrive in small pieces.
///
/// # Panics
/// When others do, or parts of a frame are not where it is, which is a bug.
pub fn frames(data: &[u8]) {
    let Some((first, data)) = data.split_first() else { return };
    let whole = take_all([data].into_iter());
    let pieces = take_all(data.chunks(1 + usize::from(*first) % 32));
    assert_eq!(pieces, whole, "BUG: frames depend on how they arrive");
    let (frames, _) = whole;
    let parts = |(body, sidecars): &(Bytes, Vec<Bytes>)| {
        body.len() + sidecars.iter().map(Bytes::len).sum::<usize>()
    };
    let total: usize = frames.iter().map(parts).sum();
    assert!(total <= data.len(), "BUG: frames of more bytes than there are");
}

type Parts = (Bytes, Vec<Bytes>);

fn take_all<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Parts>, Option<String>) {
    let mut buffer = BytesMut::new();
    let mut frames = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            match take_frame(&mut buffer) {
                Ok(Some(frame)) => frames.push((frame.body, frame.sidecars)),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

/// Reads arbitrary bytes as a scan's answer to a projection that the first of them choose, and looks
/// at all that is in it.
///
/// # Panics
/// When two views of a value differ, which is a bug.
pub fn scan_answer(data: &[u8]) {
    let Some((count, data)) = data.split_first() else { return };
    let Some((types, data)) = data.split_at_checked(usize::from(count % 5)) else { return };
    let projection: Vec<Column> = types
        .iter()
        .filter_map(|number| TYPES.get(usize::from(*number) % TYPES.len()))
        .map(|data_type| Column::new("c", *data_type).nullable())
        .collect();
    let mut buffer = BytesMut::new();
    buffer.put_u32(data.len() as u32);
    buffer.extend_from_slice(data);
    let Ok(Some(Frame { body, sidecars, .. })) = take_frame(&mut buffer) else { return };
    let Ok(response) = ScanResponse::decode(body) else { return };
    let block = response.columnar_data.unwrap_or_default();
    let Ok(batch) = ScanBatch::new(&block, &sidecars, &projection) else { return };
    assert_eq!(batch.columns(), projection.len(), "BUG: columns were lost");
    for index in 0..batch.columns() {
        look_at(batch.column(index));
    }
}

fn look_at(column: ColumnView<'_>) {
    let rows = column.rows();
    let lengths = [
        (1, column.i8s().len()),
        (2, column.i16s().len()),
        (4, column.i32s().len()),
        (8, column.i64s().len()),
        (8, column.f64s().len()),
        (16, column.i128s().len()),
    ];
    for (width, length) in lengths {
        let expected = if column.data_type().width() == Some(width) { rows } else { 0 };
        assert_eq!(length, expected, "BUG: a view of {width} bytes has other rows");
    }
    for row in (0..rows.min(ROWS_MAX)).chain(rows.checked_sub(1)) {
        let value = column.value(row);
        assert_eq!(value.is_some(), column.is_valid(row), "BUG: a value without one");
        if let Some(crate::Value::Bytes(text)) = value {
            assert_eq!(text, column.bytes(row), "BUG: text differs");
        }
    }
    assert_eq!(column.value(rows), None, "BUG: a row that is not there");
    assert_eq!(column.bytes(rows), b"", "BUG: text that is not there");
}

/// Reads arbitrary bytes as a master's description of a table and of its tablets, divided at the
/// length that the first two bytes are.
///
/// # Panics
/// When a tablet is found for a key that is not its own, which is a bug.
pub fn table_description(data: &[u8]) {
    let Some((length, data)) = data.split_first_chunk::<2>() else { return };
    let length = usize::from(u16::from_be_bytes(*length)).min(data.len());
    let (table, tablets) = data.split_at(length);
    if let Ok(answer) = GetTableLocationsResponse::decode(tablets) {
        let now = Instant::now();
        let locations = Locations::new(Bytes::new());
        if locations.learn(b"", &answer, WHOLE, now).is_ok() {
            for key in [&b""[..], b"\0\0\0\x01", b"\xff", tablets] {
                let found = find_in(&locations.snapshot(), key, now);
                assert!(found.is_none_or(|s| s.contains(key)), "BUG: another tablet");
            }
        }
    }
    let Ok(answer) = GetTableSchemaResponse::decode(table) else { return };
    let Some(message) = answer.schema else { return };
    let Ok((schema, ids)) = Schema::from_message(message) else { return };
    let message = answer.partition_schema.unwrap_or_default();
    let Ok(partition) = PartitionSchema::from_message(&message, &schema, &ids) else { return };
    let Ok(answer) = GetTableLocationsResponse::decode(tablets) else { return };
    let bounds: Vec<_> =
        answer.tablet_locations.into_iter().filter_map(|tablet| tablet.partition).collect();
    let bounds = bounds.iter().map(|partition| {
        let start = partition.partition_key_start.as_deref().unwrap_or_default();
        (start, partition.partition_key_end.as_deref().unwrap_or_default())
    });
    // Every error will do; the point is that there is no panic.
    let _ = ranges_of(&partition, &schema, bounds);
}
