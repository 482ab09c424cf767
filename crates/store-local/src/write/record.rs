//! Records of the write-ahead log. docs/formats/log-records.md is normative.
//!
//! Rows travel column by column, bit-packed: a batch of ten thousand wide rows takes about a byte a
//! value. What is new (series, measurements, fields) is logged before the rows that use it.

use std::borrow::Cow;

use codec::Effort;
use model::{
    DatabaseId, FieldType, Name, PolicyId, SeriesId, TimeRange, string_slot, string_slot_parts,
};
use roaring::RoaringTreemap;

use crate::bytes::{Malformed, PutBytes, Reader};
use crate::rows::{BatchRow, FieldNo, MeasurementNo, RowBatch, RowLayout};
use crate::schema::SchemaChange;
use crate::tombstone::{Tombstone, put_treemap, read_treemap};

/// Kinds of records. Written to disk: never change a number.
mod kind {
    pub(super) const ROWS: u8 = 1;
    pub(super) const SERIES: u8 = 2;
    pub(super) const SCHEMA: u8 = 3;
    pub(super) const DELETE: u8 = 4;
    pub(super) const DROP_PARTITIONS: u8 = 5;
    pub(super) const REMOVE_SERIES: u8 = 6;
    pub(super) const REMOVE_DATABASE: u8 = 7;
    pub(super) const DROP_PARTITION: u8 = 8;
    pub(super) const DELETE_ROWS: u8 = 9;
}

/// A series that came to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeriesDefinition {
    pub(crate) series: SeriesId,
    /// The canonical key.
    pub(crate) key: Name,
}

/// What one record says.
#[derive(Debug)]
pub(crate) enum Record<'a> {
    /// Rows were written.
    Rows(RowBatch<'a>),
    /// Series came to be.
    Series(DatabaseId, Vec<SeriesDefinition>),
    /// Measurements and fields came to be or went away.
    Schema(Vec<SchemaChange>),
    /// Rows written before are gone.
    Delete(Tombstone),
    /// Partitions of a policy that end before a time are gone. `None`: of all policies.
    DropPartitions { database: DatabaseId, policy: Option<PolicyId>, before_ns: i64 },
    /// The partition of a policy that has exactly these bounds is gone.
    DropPartition { database: DatabaseId, policy: PolicyId, time: TimeRange },
    /// Series ceased to exist.
    RemoveSeries(DatabaseId, RoaringTreemap),
    /// All series of a database with ids below this ceased to exist.
    RemoveDatabase(DatabaseId, SeriesId),
}

impl Record<'_> {
    /// The record's bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Rows(batch) => encode_rows(batch, &mut out),
            Self::Series(database, definitions) => {
                out.put_u8(kind::SERIES);
                out.put_varint(u64::from(database.0));
                out.put_varint(definitions.len() as u64);
                for definition in definitions {
                    out.put_varint(definition.series.0);
                    out.put_block(definition.key.as_bytes());
                }
            }
            Self::Schema(changes) => {
                out.put_u8(kind::SCHEMA);
                put_schema_changes(changes, &mut out);
            }
            Self::Delete(tombstone) => {
                out.put_u8(if tombstone.is_of_rows() { kind::DELETE_ROWS } else { kind::DELETE });
                tombstone.encode(&mut out);
            }
            Self::DropPartitions { database, policy, before_ns } => {
                out.put_u8(kind::DROP_PARTITIONS);
                out.put_varint(u64::from(database.0));
                out.put_varint(policy.map_or(0, |p| u64::from(p.0) + 1));
                out.put_i64(*before_ns);
            }
            Self::DropPartition { database, policy, time } => {
                out.put_u8(kind::DROP_PARTITION);
                out.put_varint(u64::from(database.0));
                out.put_varint(u64::from(policy.0));
                out.put_time_range(*time);
            }
            Self::RemoveSeries(database, series) => {
                out.put_u8(kind::REMOVE_SERIES);
                out.put_varint(u64::from(database.0));
                put_treemap(series, &mut out);
            }
            Self::RemoveDatabase(database, below) => {
                out.put_u8(kind::REMOVE_DATABASE);
                out.put_varint(u64::from(database.0));
                out.put_varint(below.0);
            }
        }
        out
    }

    /// The bytes of a record of rows.
    pub(crate) fn encode_rows(batch: &RowBatch<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        encode_rows(batch, &mut out);
        out
    }

    /// Reads a record.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Record<'static>, Malformed> {
        Self::decode_bounded(bytes, ROWS_MAX)
    }

    /// Reads a record of at most `rows_max` rows.
    pub(crate) fn decode_bounded(
        bytes: &[u8],
        rows_max: u64,
    ) -> Result<Record<'static>, Malformed> {
        let mut reader = Reader::new(bytes, "log record");
        let record = match reader.u8()? {
            kind::ROWS => Record::Rows(decode_rows(&mut reader, rows_max)?),
            kind::SERIES => {
                let database = DatabaseId(reader.u32()?);
                let count = reader.count(2)?;
                let definitions = (0..count).map(|_| {
                    Ok(SeriesDefinition { series: SeriesId(reader.varint()?), key: reader.name()? })
                });
                Record::Series(database, definitions.collect::<Result<_, Malformed>>()?)
            }
            kind::SCHEMA => Record::Schema(read_schema_changes(&mut reader)?),
            kind::DELETE => Record::Delete(Tombstone::decode(&mut reader, false)?),
            kind::DELETE_ROWS => Record::Delete(Tombstone::decode(&mut reader, true)?),
            kind::DROP_PARTITIONS => Record::DropPartitions {
                database: DatabaseId(reader.u32()?),
                policy: match reader.u32()? {
                    0 => None,
                    n => Some(PolicyId(n - 1)),
                },
                before_ns: reader.i64()?,
            },
            kind::DROP_PARTITION => Record::DropPartition {
                database: DatabaseId(reader.u32()?),
                policy: PolicyId(reader.u32()?),
                time: reader.time_range()?,
            },
            kind::REMOVE_SERIES => {
                Record::RemoveSeries(DatabaseId(reader.u32()?), read_treemap(&mut reader)?)
            }
            kind::REMOVE_DATABASE => {
                Record::RemoveDatabase(DatabaseId(reader.u32()?), SeriesId(reader.varint()?))
            }
            _ => return Err(reader.malformed()),
        };
        reader.finish()?;
        Ok(record)
    }
}

/// Adds changes of the schema, with their number before them.
pub(crate) fn put_schema_changes(changes: &[SchemaChange], out: &mut Vec<u8>) {
    out.put_varint(changes.len() as u64);
    for change in changes {
        match change {
            SchemaChange::Measurement { no, database, name } => {
                out.put_u8(0);
                out.put_varint(u64::from(no.0));
                out.put_varint(u64::from(database.0));
                out.put_block(name.as_bytes());
            }
            SchemaChange::Field { measurement, no, name, field_type } => {
                out.put_u8(1);
                out.put_varint(u64::from(measurement.0));
                out.put_varint(u64::from(no.0));
                out.put_block(name.as_bytes());
                out.put_u8(*field_type as u8);
            }
            SchemaChange::Drop(no) => {
                out.put_u8(2);
                out.put_varint(u64::from(no.0));
            }
        }
    }
}

/// Reads changes of the schema.
pub(crate) fn read_schema_changes(reader: &mut Reader<'_>) -> Result<Vec<SchemaChange>, Malformed> {
    let count = reader.count(2)?;
    let mut changes = Vec::with_capacity(count);
    for _ in 0..count {
        changes.push(match reader.u8()? {
            0 => SchemaChange::Measurement {
                no: MeasurementNo(reader.u32()?),
                database: DatabaseId(reader.u32()?),
                name: reader.name()?,
            },
            1 => SchemaChange::Field {
                measurement: MeasurementNo(reader.u32()?),
                no: FieldNo(reader.u32()?),
                name: reader.name()?,
                field_type: reader.field_type()?,
            },
            2 => SchemaChange::Drop(MeasurementNo(reader.u32()?)),
            _ => return Err(reader.malformed()),
        });
    }
    Ok(changes)
}

/// Adds the columns of a batch: layouts; layout, series and time of each row; then per layout each
/// field's values in row order.
fn encode_rows(batch: &RowBatch<'_>, out: &mut Vec<u8>) {
    out.put_u8(kind::ROWS);
    out.put_varint(u64::from(batch.database.0));
    out.put_varint(u64::from(batch.policy.0));
    out.put_varint(batch.partition_ns as u64);
    out.put_varint(batch.rows.len() as u64);
    out.put_varint(batch.layouts.len() as u64);
    for layout in &batch.layouts {
        out.put_varint(u64::from(layout.measurement.0));
        out.put_varint(layout.fields.len() as u64);
        for (field, field_type) in &layout.fields {
            out.put_varint(u64::from(field.0));
            out.put_u8(*field_type as u8);
        }
    }
    let mut scratch = Vec::new();
    let layouts: Vec<u64> = batch.rows.iter().map(|r| u64::from(r.layout)).collect();
    put_column(out, &mut scratch, |out| codec::encode_u64(&layouts, Effort::Fast, out));
    let series: Vec<u64> = batch.rows.iter().map(|r| r.series.0).collect();
    put_column(out, &mut scratch, |out| codec::encode_u64(&series, Effort::Fast, out));
    let times: Vec<i64> = batch.rows.iter().map(|r| r.time_ns).collect();
    put_column(out, &mut scratch, |out| codec::encode_i64(&times, Effort::Fast, out));

    let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); batch.layouts.len()];
    for row in &batch.rows {
        rows_of[row.layout as usize].push(row.values_start);
    }
    let mut column = Vec::new();
    for (layout, starts) in batch.layouts.iter().zip(&rows_of) {
        for (at, (_, field_type)) in layout.fields.iter().enumerate() {
            column.clear();
            column.extend(starts.iter().map(|start| batch.values[*start as usize + at]));
            put_column(out, &mut scratch, |out| {
                encode_slots(&column, *field_type, &batch.strings, out);
            });
        }
    }
}

fn put_column(out: &mut Vec<u8>, scratch: &mut Vec<u8>, encode: impl FnOnce(&mut Vec<u8>)) {
    scratch.clear();
    encode(scratch);
    out.put_block(scratch);
}

fn encode_slots(slots: &[u64], field_type: FieldType, strings: &[u8], out: &mut Vec<u8>) {
    match field_type {
        FieldType::Integer => {
            let values: Vec<i64> = slots.iter().map(|s| *s as i64).collect();
            codec::encode_i64(&values, Effort::Fast, out);
        }
        FieldType::Unsigned => codec::encode_u64(slots, Effort::Fast, out),
        FieldType::Float => {
            let values: Vec<f64> = slots.iter().map(|s| f64::from_bits(*s)).collect();
            codec::encode_f64(&values, Effort::Fast, out);
        }
        FieldType::Boolean => {
            let bits: model::Bitmap = slots.iter().map(|s| *s != 0).collect();
            codec::encode_bool(bits.words(), slots.len(), out);
        }
        FieldType::String => {
            let mut offsets = Vec::with_capacity(slots.len() + 1);
            let mut text = Vec::new();
            offsets.push(0);
            for slot in slots {
                let (start, len) = string_slot_parts(*slot);
                text.extend_from_slice(&strings[start as usize..start as usize + len as usize]);
                offsets.push(text.len() as u32);
            }
            out.put_varint(text.len() as u64);
            codec::encode_strings(&offsets, &text, Effort::Fast, out);
        }
    }
}

/// Longest text one column of a record may decode to: what a request body can hold.
const COLUMN_TEXT_BYTES_MAX: u64 = u32::MAX as u64;
/// Most rows a record may claim: what a page can hold, and no write has more.
const ROWS_MAX: u64 = codec::PAGE_COUNT_MAX as u64;

fn decode_rows(reader: &mut Reader<'_>, rows_max: u64) -> Result<RowBatch<'static>, Malformed> {
    let database = DatabaseId(reader.u32()?);
    let policy = PolicyId(reader.u32()?);
    let malformed = reader.malformed();
    let partition_ns =
        i64::try_from(reader.varint()?).ok().filter(|ns| *ns > 0).ok_or(malformed)?;
    let count = reader.varint()?;
    if count > rows_max {
        return Err(malformed);
    }
    let count = count as usize;
    let layouts = read_layouts(reader)?;
    let mut layout_of = Vec::new();
    codec::decode_u64(reader.block()?, count, &mut layout_of).map_err(|_| malformed)?;
    let mut series = Vec::new();
    codec::decode_u64(reader.block()?, count, &mut series).map_err(|_| malformed)?;
    let mut times = Vec::new();
    codec::decode_i64(reader.block()?, count, &mut times).map_err(|_| malformed)?;

    let mut rows = Vec::with_capacity(count);
    let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); layouts.len()];
    let mut values_len = 0u32;
    for at in 0..count {
        let layout = layout_of[at] as usize;
        let fields = layouts.get(layout).ok_or(malformed)?.fields.len() as u32;
        rows_of[layout].push(values_len);
        rows.push(BatchRow {
            series: SeriesId(series[at]),
            time_ns: times[at],
            layout: layout as u32,
            values_start: values_len,
        });
        values_len = values_len.checked_add(fields).ok_or(malformed)?;
    }
    let mut values = vec![0; values_len as usize];
    let mut strings = Vec::new();
    for (layout, starts) in layouts.iter().zip(&rows_of) {
        for (at, (_, field_type)) in layout.fields.iter().enumerate() {
            let slots = decode_slots(reader.block()?, starts.len(), *field_type, &mut strings)
                .ok_or(malformed)?;
            for (start, slot) in starts.iter().zip(slots) {
                values[*start as usize + at] = slot;
            }
        }
    }
    let (values, strings) = (Cow::Owned(values), Cow::Owned(strings));
    Ok(RowBatch { database, policy, partition_ns, layouts, rows, values, strings })
}

fn read_layouts(reader: &mut Reader<'_>) -> Result<Vec<RowLayout>, Malformed> {
    let count = reader.count(2)?;
    let mut layouts = Vec::with_capacity(count);
    for _ in 0..count {
        let measurement = MeasurementNo(reader.u32()?);
        let count = reader.count(2)?;
        let mut fields = Vec::with_capacity(count);
        for _ in 0..count {
            fields.push((FieldNo(reader.u32()?), reader.field_type()?));
        }
        layouts.push(RowLayout { measurement, fields });
    }
    Ok(layouts)
}

fn decode_slots(
    bytes: &[u8],
    count: usize,
    field_type: FieldType,
    strings: &mut Vec<u8>,
) -> Option<Vec<u64>> {
    Some(match field_type {
        FieldType::Integer => {
            let mut values = Vec::new();
            codec::decode_i64(bytes, count, &mut values).ok()?;
            values.into_iter().map(|v| v as u64).collect()
        }
        FieldType::Unsigned => {
            let mut values = Vec::new();
            codec::decode_u64(bytes, count, &mut values).ok()?;
            values
        }
        FieldType::Float => {
            let mut values = Vec::new();
            codec::decode_f64(bytes, count, &mut values).ok()?;
            values.into_iter().map(f64::to_bits).collect()
        }
        FieldType::Boolean => {
            let mut words = Vec::new();
            codec::decode_bool(bytes, count, &mut words).ok()?;
            (0..count).map(|at| words[at / 64] >> (at % 64) & 1).collect()
        }
        FieldType::String => {
            let mut reader = Reader::new(bytes, "text column");
            let len = reader.varint().ok().filter(|len| *len <= COLUMN_TEXT_BYTES_MAX)?;
            let encoded = reader.rest();
            let (mut offsets, mut text) = (Vec::new(), Vec::new());
            codec::decode_strings(encoded, count, len as usize, &mut offsets, &mut text).ok()?;
            std::str::from_utf8(&text).ok()?;
            let base = u32::try_from(strings.len()).ok()?;
            base.checked_add(u32::try_from(text.len()).ok()?)?;
            strings.extend_from_slice(&text);
            offsets.windows(2).map(|w| string_slot(base + w[0], w[1] - w[0])).collect()
        }
    })
}

#[cfg(test)]
mod tests;
