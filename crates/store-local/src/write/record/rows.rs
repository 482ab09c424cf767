//! Rows in a log record, column by column.
//!
//! A column is encoded as its order makes it cheap: where rows stand by series (see `write::order`)
//! neighbours are near each other and their differences take a few bits; the looking for that is worth
//! a pass over the values. Where there are a few rows of each series they are written as differences
//! from one another, wherever they stand (see `apart`). Rows of ever new series are packed as they come.

use std::borrow::Cow;
use std::ops::Range;

use codec::Effort;
use model::{DatabaseId, FieldType, PolicyId, SeriesId, string_slot, string_slot_parts};

use crate::bytes::{Malformed, PutBytes, Reader};
use crate::rows::{BatchRow, FieldNo, MeasurementNo, RowBatch, RowLayout};
use crate::write::links::Links;
use crate::write::record::apart::{self, Apart, Linked};

/// Rows of a series that stand together, on average, from which on looking for a small encoding pays.
const HOT_ROWS_MIN: usize = 4;

/// Rows of a series, on average, for which they are written apart. If there are more, they stand by
/// series, and the steps from one series to the next are few.
const APART_ROWS: Range<usize> = 2..16;

/// Columns that are taken out of the rows at once, and rows that are looked at together: their values
/// stay in the first cache meanwhile.
const COLUMNS_AT_ONCE: usize = 16;
const ROWS_AT_ONCE: usize = 64;

/// Whether the rows of a batch are written apart.
pub(super) fn are_apart(links: &Links) -> bool {
    APART_ROWS.contains(&links.rows_per_series())
}

/// Adds the columns of a batch: layouts; layout, series and time of each row; then per layout each
/// field's values in row order.
pub(super) fn encode(batch: &RowBatch<'_>, links: &Links, out: &mut Vec<u8>) {
    put_header(batch, out);
    let effort = if links.rows_together() >= HOT_ROWS_MIN { Effort::Hot } else { Effort::Fast };
    let mut scratch = Vec::new();
    let layouts: Vec<u64> = batch.rows.iter().map(|r| u64::from(r.layout)).collect();
    put_column(out, &mut scratch, |out| codec::encode_u64(&layouts, effort, out));
    let linked = are_apart(links).then(|| {
        Linked::new(&layouts, batch.layouts.len(), links.back()).expect("BUG: links of other rows")
    });
    let mut series: Vec<u64> = batch.rows.iter().map(|r| r.series.0).collect();
    if let Some(linked) = &linked {
        put_column(out, &mut scratch, |out| codec::encode_u64(links.back(), Effort::Hot, out));
        series = linked.all.first_of(&series);
    }
    put_column(out, &mut scratch, |out| codec::encode_u64(&series, effort, out));
    let times: Vec<u64> = batch.rows.iter().map(|r| r.time_ns as u64).collect();
    let all = linked.as_ref().map(|linked| &linked.all);
    put_column(out, &mut scratch, |out| put_integers(&times, all, effort, out));

    let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); batch.layouts.len()];
    for row in &batch.rows {
        rows_of[row.layout as usize].push(row.values_start);
    }
    let mut columns = vec![Vec::new(); COLUMNS_AT_ONCE];
    for (at, (layout, starts)) in batch.layouts.iter().zip(&rows_of).enumerate() {
        let apart = linked.as_ref().map(|linked| &linked.of_layout[at]);
        for (group, fields) in layout.fields.chunks(COLUMNS_AT_ONCE).enumerate() {
            let first = group * COLUMNS_AT_ONCE;
            take_columns(&batch.values, starts, first, &mut columns[..fields.len()]);
            for (column, (_, field_type)) in columns.iter().zip(fields) {
                put_column(out, &mut scratch, |out| match field_type {
                    FieldType::Integer | FieldType::Unsigned => {
                        put_integers(column, apart, effort, out);
                    }
                    FieldType::Float => put_floats(column, apart, effort, out),
                    FieldType::Boolean => put_booleans(column, out),
                    FieldType::String => put_strings(column, &batch.strings, effort, out),
                });
            }
        }
    }
}

fn put_header(batch: &RowBatch<'_>, out: &mut Vec<u8>) {
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

/// Adds integers, those of the same series as differences if it is said which these are.
fn put_integers(values: &[u64], apart: Option<&Apart>, effort: Effort, out: &mut Vec<u8>) {
    match apart {
        Some(apart) => apart::encode(values, apart, out),
        None => codec::encode_u64(values, effort, out),
    }
}

fn put_floats(slots: &[u64], apart: Option<&Apart>, effort: Effort, out: &mut Vec<u8>) {
    let values: Vec<f64> = slots.iter().map(|slot| f64::from_bits(*slot)).collect();
    match apart {
        Some(apart) => apart::encode_floats(&values, apart, out),
        None => codec::encode_f64(&values, effort, out),
    }
}

fn put_booleans(slots: &[u64], out: &mut Vec<u8>) {
    let bits: model::Bitmap = slots.iter().map(|slot| *slot != 0).collect();
    codec::encode_bool(bits.words(), slots.len(), out);
}

fn put_strings(slots: &[u64], strings: &[u8], effort: Effort, out: &mut Vec<u8>) {
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

/// Longest text one column of a record may decode to: what a request body can hold.
const COLUMN_TEXT_BYTES_MAX: u64 = u32::MAX as u64;
/// Most rows a record may claim: what a page can hold, and no write has more.
pub(super) const ROWS_MAX: u64 = codec::PAGE_COUNT_MAX as u64;

/// Reads what `encode` wrote, of at most `rows_max` rows, apart or not.
pub(super) fn decode(
    reader: &mut Reader<'_>,
    is_apart: bool,
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
    let layout_of = read_whole(reader.block()?, count).ok_or(malformed)?;
    let mut linked = None;
    let series = if is_apart {
        let back = read_whole(reader.block()?, count).ok_or(malformed)?;
        let linked = linked.insert(Linked::new(&layout_of, layouts.len(), &back).ok_or(malformed)?);
        linked.series(&back, reader.block()?).ok_or(malformed)?
    } else {
        read_whole(reader.block()?, count).ok_or(malformed)?
    };
    let all = linked.as_ref().map(|linked| &linked.all);
    let times = read_integers(reader.block()?, count, all).ok_or(malformed)?;

    let mut rows = Vec::with_capacity(count);
    let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); layouts.len()];
    let mut values_len = 0u32;
    for at in 0..count {
        let layout = layout_of[at] as usize;
        let fields = layouts.get(layout).ok_or(malformed)?.fields.len() as u32;
        rows_of[layout].push(values_len);
        rows.push(BatchRow {
            series: SeriesId(series[at]),
            time_ns: times[at] as i64,
            layout: layout as u32,
            values_start: values_len,
        });
        values_len = values_len.checked_add(fields).ok_or(malformed)?;
    }
    let mut values = vec![0; values_len as usize];
    let mut strings = Vec::new();
    for (of, (layout, starts)) in layouts.iter().zip(&rows_of).enumerate() {
        let apart = linked.as_ref().map(|linked| &linked.of_layout[of]);
        for (at, (_, field_type)) in layout.fields.iter().enumerate() {
            let (block, count) = (reader.block()?, starts.len());
            let slots = match field_type {
                FieldType::Integer | FieldType::Unsigned => read_integers(block, count, apart),
                FieldType::Float => read_floats(block, count, apart),
                FieldType::Boolean => read_booleans(block, count),
                FieldType::String => read_strings(block, count, &mut strings),
            };
            for (start, slot) in starts.iter().zip(slots.ok_or(malformed)?) {
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

fn read_whole(block: &[u8], count: usize) -> Option<Vec<u64>> {
    let mut values = Vec::new();
    codec::decode_u64(block, count, &mut values).ok()?;
    Some(values)
}

fn read_integers(block: &[u8], count: usize, apart: Option<&Apart>) -> Option<Vec<u64>> {
    match apart {
        Some(apart) => apart::decode(block, apart),
        None => read_whole(block, count),
    }
}

fn read_floats(block: &[u8], count: usize, apart: Option<&Apart>) -> Option<Vec<u64>> {
    if let Some(apart) = apart {
        return apart::decode_floats(block, apart);
    }
    let mut values = Vec::new();
    codec::decode_f64(block, count, &mut values).ok()?;
    Some(values.into_iter().map(f64::to_bits).collect())
}

fn read_booleans(block: &[u8], count: usize) -> Option<Vec<u64>> {
    let mut words = Vec::new();
    codec::decode_bool(block, count, &mut words).ok()?;
    Some((0..count).map(|at| words[at / 64] >> (at % 64) & 1).collect())
}

/// Adds the text of the values to `strings`.
fn read_strings(block: &[u8], count: usize, strings: &mut Vec<u8>) -> Option<Vec<u64>> {
    let mut reader = Reader::new(block, "text column");
    let len = reader.varint().ok().filter(|len| *len <= COLUMN_TEXT_BYTES_MAX)?;
    let encoded = reader.rest();
    let (mut places, mut text) = (Vec::new(), Vec::new());
    codec::decode_strings(encoded, count, len as usize, &mut places, &mut text).ok()?;
    std::str::from_utf8(&text).ok()?;
    let base = u32::try_from(strings.len()).ok()?;
    base.checked_add(u32::try_from(text.len()).ok()?)?;
    strings.extend_from_slice(&text);
    Some(places.iter().map(|(start, len)| string_slot(base + start, *len)).collect())
}
