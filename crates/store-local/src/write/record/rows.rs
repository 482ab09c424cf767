//! Rows in a log record, column by column.
//!
//! A column is encoded as its order makes it cheap: where rows stand by series (see `write::order`)
//! neighbours are near each other and their differences take a few bits; the looking for that is worth
//! a pass over the values. Rows of ever new series are packed as they come.

use std::borrow::Cow;

use codec::Effort;
use model::{DatabaseId, FieldType, PolicyId, SeriesId, string_slot, string_slot_parts};

use crate::bytes::{Malformed, PutBytes, Reader};
use crate::rows::{BatchRow, FieldNo, MeasurementNo, RowBatch, RowLayout};
use crate::write::order;

/// Columns that are taken out of the rows at once, and rows that are looked at together: their values
/// stay in the first cache meanwhile.
const COLUMNS_AT_ONCE: usize = 16;
const ROWS_AT_ONCE: usize = 64;

/// Adds the columns of a batch: layouts; layout, series and time of each row; then per layout each
/// field's values in row order.
pub(super) fn encode(batch: &RowBatch<'_>, out: &mut Vec<u8>) {
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
    let effort = if order::has_runs(&batch.rows) { Effort::Hot } else { Effort::Fast };
    let mut scratch = Vec::new();
    let layouts: Vec<u64> = batch.rows.iter().map(|r| u64::from(r.layout)).collect();
    put_column(out, &mut scratch, |out| codec::encode_u64(&layouts, effort, out));
    let series: Vec<u64> = batch.rows.iter().map(|r| r.series.0).collect();
    put_column(out, &mut scratch, |out| codec::encode_u64(&series, effort, out));
    let times: Vec<i64> = batch.rows.iter().map(|r| r.time_ns).collect();
    put_column(out, &mut scratch, |out| codec::encode_i64(&times, effort, out));

    let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); batch.layouts.len()];
    for row in &batch.rows {
        rows_of[row.layout as usize].push(row.values_start);
    }
    let mut columns = vec![Vec::new(); COLUMNS_AT_ONCE];
    for (layout, starts) in batch.layouts.iter().zip(&rows_of) {
        for (group, fields) in layout.fields.chunks(COLUMNS_AT_ONCE).enumerate() {
            let first = group * COLUMNS_AT_ONCE;
            take_columns(&batch.values, starts, first, &mut columns[..fields.len()]);
            for (column, (_, field_type)) in columns.iter().zip(fields) {
                put_column(out, &mut scratch, |out| {
                    encode_slots(column, *field_type, &batch.strings, effort, out);
                });
            }
        }
    }
}

/// The values of rows that start at `starts`, from the row's value `first` on, a column each.
fn take_columns(values: &[u64], starts: &[u32], first: usize, columns: &mut [Vec<u64>]) {
    for column in &mut *columns {
        column.clear();
        column.reserve(starts.len());
    }
    for rows in starts.chunks(ROWS_AT_ONCE) {
        for (at, column) in columns.iter_mut().enumerate() {
            column.extend(rows.iter().map(|start| values[*start as usize + first + at]));
        }
    }
}

fn put_column(out: &mut Vec<u8>, scratch: &mut Vec<u8>, encode: impl FnOnce(&mut Vec<u8>)) {
    scratch.clear();
    encode(scratch);
    out.put_block(scratch);
}

fn encode_slots(
    slots: &[u64],
    field_type: FieldType,
    strings: &[u8],
    effort: Effort,
    out: &mut Vec<u8>,
) {
    match field_type {
        FieldType::Integer => {
            let values: Vec<i64> = slots.iter().map(|s| *s as i64).collect();
            codec::encode_i64(&values, effort, out);
        }
        FieldType::Unsigned => codec::encode_u64(slots, effort, out),
        FieldType::Float => {
            let values: Vec<f64> = slots.iter().map(|s| f64::from_bits(*s)).collect();
            codec::encode_f64(&values, effort, out);
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
            codec::encode_strings(&offsets, &text, effort, out);
        }
    }
}

/// Longest text one column of a record may decode to: what a request body can hold.
const COLUMN_TEXT_BYTES_MAX: u64 = u32::MAX as u64;
/// Most rows a record may claim: what a page can hold, and no write has more.
pub(super) const ROWS_MAX: u64 = codec::PAGE_COUNT_MAX as u64;

/// Reads what `encode` wrote, of at most `rows_max` rows.
pub(super) fn decode(
    reader: &mut Reader<'_>,
    rows_max: u64,
) -> Result<RowBatch<'static>, Malformed> {
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
