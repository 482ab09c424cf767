//! Decoding a part of one field's page, missing values included.

use std::ops::Range;

use model::{Bitmap, Column, Strings, Values};

use crate::bits;
use crate::format::BLOCK_TEXT_LIMIT;
use crate::input::{Input, Malformed};

/// What the directory says of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageShape {
    /// Rows of the block.
    pub(crate) rows: usize,
    /// Values in the page.
    pub(crate) count: usize,
}

/// Adds the entries `rows` of a page to `out`.
pub(crate) fn decode(
    page: &[u8],
    shape: PageShape,
    rows: Range<usize>,
    out: &mut Column,
) -> Result<(), Malformed> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut input = Input::new(page);
    if shape.count == shape.rows {
        decode_values(input, shape.count, rows.clone(), &mut out.values)?;
        if let Some(validity) = &mut out.validity {
            validity.extend_filled(rows.len(), true);
        }
        return Ok(());
    }
    let present = decode_present(&mut input, shape)?;
    let before = bits::count_ones(&present, 0..rows.start);
    let values = before..before + bits::count_ones(&present, rows.clone());
    if values.is_empty() {
        out.extend_missing(rows.len());
        return Ok(());
    }
    let had = out.len();
    let complete = values.len() == rows.len();
    decode_values(input, shape.count, values, &mut out.values)?;
    if !complete {
        spread(&mut out.values, had, &present, rows.clone());
    }
    if !complete || out.validity.is_some() {
        let validity = out.validity.get_or_insert_with(|| Bitmap::filled(had, true));
        validity.extend_from(&present, rows);
    }
    Ok(())
}

/// Which rows have a value.
pub(crate) fn decode_present(input: &mut Input<'_>, shape: PageShape) -> Result<Bitmap, Malformed> {
    let mut words = Vec::new();
    codec::decode_validity(input.bytes()?, shape.rows, &mut words)?;
    let present = Bitmap::from_words(words, shape.rows);
    if present.count_ones() != shape.count {
        return Err(input.fail("a page does not have the values its directory says"));
    }
    Ok(present)
}

/// Adds values without missing ones.
fn decode_values(
    mut input: Input<'_>,
    count: usize,
    range: Range<usize>,
    out: &mut Values,
) -> Result<(), Malformed> {
    let at = input.at();
    let expected = out.len() + range.len();
    match out {
        Values::Integer(v) => codec::decode_i64_range(input.rest(), count, range, v),
        Values::Unsigned(v) => codec::decode_u64_range(input.rest(), count, range, v),
        Values::Float(v) => codec::decode_f64_range(input.rest(), count, range, v),
        Values::Boolean(v) => {
            let mut words = Vec::new();
            let len = range.len();
            let decoded = codec::decode_bool_range(input.rest(), count, range, &mut words);
            decoded.map(|()| v.extend_from(&Bitmap::from_words(words, len), 0..len))
        }
        Values::String(v) => return decode_strings(&mut input, count, range, v),
        Values::Time(_) | Values::Dictionary(..) => panic!("BUG: not a column of a field"),
    }
    .map_err(|e| Malformed { at, what: e.to_string() })?;
    assert_eq!(out.len(), expected, "BUG: a decoder gave another number of values");
    Ok(())
}

fn decode_strings(
    input: &mut Input<'_>,
    count: usize,
    range: Range<usize>,
    out: &mut Strings,
) -> Result<(), Malformed> {
    let text_bytes = input.bounded(BLOCK_TEXT_LIMIT as u64, "the length of a page's text")?;
    let (mut offsets, mut bytes) = (Vec::new(), Vec::new());
    let rows = range.len();
    codec::decode_strings_range(input.rest(), count, range, text_bytes, &mut offsets, &mut bytes)
        .map_err(|e| input.fail(e.to_string()))?;
    let strings = Strings::from_parts(offsets, bytes);
    let strings = strings.filter(|s| s.len() == rows);
    let strings = strings.ok_or_else(|| input.fail("a string is not UTF-8"))?;
    if out.is_empty() {
        *out = strings;
    } else {
        out.extend_from(&strings, 0..rows);
    }
    Ok(())
}

/// Makes room for missing values among those from `at` on.
fn spread(values: &mut Values, at: usize, present: &Bitmap, rows: Range<usize>) {
    match values {
        Values::Integer(v) => bits::spread(v, at, present, rows),
        Values::Unsigned(v) => bits::spread(v, at, present, rows),
        Values::Float(v) => bits::spread(v, at, present, rows),
        Values::Boolean(v) => {
            let (mut all, mut next) = (Bitmap::new(), at);
            all.extend_from(v, 0..at);
            for row in rows {
                let value = present.get(row) && {
                    next += 1;
                    v.get(next - 1)
                };
                all.push(value);
            }
            *v = all;
        }
        Values::String(v) => {
            let (mut all, mut next) = (Strings::new(), at);
            all.extend_from(v, 0..at);
            for row in rows {
                if present.get(row) {
                    all.extend_from(v, next..next + 1);
                    next += 1;
                } else {
                    all.push("");
                }
            }
            *v = all;
        }
        Values::Time(_) | Values::Dictionary(..) => panic!("BUG: not a column of a field"),
    }
}
