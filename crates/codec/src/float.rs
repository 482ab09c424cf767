//! Pages of 64-bit floats, bit-exact including NaN payloads, signed zeros and infinities.
//!
//! Most telemetry is short decimals that became doubles: dividing an integer by a power of ten gives
//! them back exactly, because IEEE division rounds correctly, or nearly so after some arithmetic at
//! the source. The rest goes through its bit
//! patterns, mapped so that their order as integers is the order of the numbers: neighbours are
//! then close, and the integer encodings do what a float-specific XOR would do, only faster.

mod compare;
mod decimal;

pub use compare::{compare_page_f64, compare_pages_f64};
pub(crate) use decimal::skip_to_integers as decimal_integers;

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::{
    encoding::{Effort, id},
    entropy::TightPart,
    error::{DecodeError, Result, check_range},
    int::{self, Nesting, Sink, Waypoint, as_i64, encode_page},
    simd::multiversion,
    wire::Reader,
};

/// Appends `values` as one page; at most [`crate::PAGE_COUNT_MAX`] of them.
pub fn encode_f64(values: &[f64], effort: Effort, out: &mut Vec<u8>) {
    assert!(values.len() <= crate::PAGE_COUNT_MAX, "BUG: a page of {} values", values.len());
    let start = out.len();
    let is_decimal = decimal::encode(values, effort, out);
    let decimal_len = out.len() - start;
    let raw_len = 1 + 8 * values.len();
    let enough = if effort == Effort::Fast { raw_len } else { values.len() * 2 };
    if is_decimal && decimal_len <= enough {
        return;
    }
    let bits_start = out.len();
    let mut bits = vec![0u64; values.len()];
    to_ordered(as_bits(values), &mut bits);
    out.push(id::FLOAT_BITS);
    encode_page(as_i64(&bits), effort, Nesting::Top, out);
    let bits_len = out.len() - bits_start;
    // All decode at about the same speed: the smallest one wins.
    if is_decimal && decimal_len <= bits_len.min(raw_len) {
        out.truncate(bits_start);
    } else if bits_len < raw_len {
        out.drain(start..bits_start);
    } else {
        out.truncate(start);
        out.push(id::FLOAT_RAW);
        out.reserve(raw_len);
        for value in values {
            out.extend_from_slice(&value.to_bits().to_le_bytes());
        }
    }
}

/// The decimals that `values` are: a number of digits, at most 22, and an integer for each value that
/// divided by that power of ten gives it back exactly. `None` if there is a value for which none does.
///
/// For whoever arranges the integers of a column before they become pages.
#[must_use]
pub fn to_decimals(values: &[f64]) -> Option<(u8, Vec<i64>)> {
    decimal::to_integers(values)
}

/// Puts the bit patterns of the floats in place of the integers of [`to_decimals`].
///
/// # Errors
/// More digits than there are.
pub fn from_decimals(digits: u8, values: &mut [u64]) -> Result<()> {
    decimal::from_integers(digits, values)
}

/// Appends the `count` values of a page to `out`, which is left as it was on error.
pub fn decode_f64(bytes: &[u8], count: usize, out: &mut Vec<f64>) -> Result<()> {
    decode_f64_range(bytes, count, 0..count, out)
}

/// Appends the given rows of a page of `count` values to `out`, which is left as it was on error.
pub fn decode_f64_range(
    bytes: &[u8],
    count: usize,
    range: Range<usize>,
    out: &mut Vec<f64>,
) -> Result<()> {
    append(bytes, count, range, None, out)
}

/// See [`decode_f64_range`]; for `ahead` see [`int::decode_page`].
pub(crate) fn append(
    bytes: &[u8],
    count: usize,
    range: Range<usize>,
    ahead: Option<TightPart<'_>>,
    out: &mut Vec<f64>,
) -> Result<()> {
    int::append_to(out, &range.clone(), count, |out| {
        if ahead.is_none()
            && let Some(done) = append_few(bytes, count, range.clone(), Waypoint::default(), out)
        {
            return done;
        }
        decode(bytes, count, range, ahead, &mut |block| out.extend_from_slice(as_f64(block)))
    })
}

/// Adds a few rows of a page whose integers are bit-packed, in place. `None`: it is of another kind.
fn append_few(
    bytes: &[u8],
    count: usize,
    range: Range<usize>,
    waypoint: Waypoint,
    out: &mut Vec<f64>,
) -> Option<Result<()>> {
    let (integers, power) = open(bytes)?;
    let packed = int::Packed::of_few(integers, count, range.len())?;
    let had = out.len();
    let read = packed.append(range, waypoint, out, as_bits_mut);
    Some(read.map(|()| {
        let bits = as_bits_mut(&mut out[had..]);
        match power {
            Some(power) => decimal::to_floats(bits, power),
            None => from_ordered(bits),
        }
    }))
}

/// The page of integers of a page that is nothing but one, and the power of ten they are divided by, if any.
fn open(bytes: &[u8]) -> Option<(&[u8], Option<f64>)> {
    match bytes.split_first()? {
        (&id::FLOAT_DECIMAL, rest) => decimal::exact(rest).map(|(rest, power)| (rest, Some(power))),
        (&id::FLOAT_BITS, rest) => Some((rest, None)),
        _ => None,
    }
}

/// The page of integers of a page that is nothing but one.
pub(crate) fn integers(bytes: &[u8]) -> Option<&[u8]> {
    open(bytes).map(|(integers, _)| integers)
}

/// What [`decode_f64_range`] does, for the row of a waypoint of the page and later ones; of differences without those before the
/// waypoint, as long as they are few enough for that to count.
///
/// # Panics
/// If the waypoint lies behind the first row, or its row is no multiple of eight.
pub fn decode_f64_from(
    bytes: &[u8],
    count: usize,
    range: Range<usize>,
    waypoint: Waypoint,
    out: &mut Vec<f64>,
) -> Result<()> {
    waypoint.check(range.start);
    int::append_to(out, &range.clone(), count, |out| {
        match append_few(bytes, count, range.clone(), waypoint, out) {
            Some(done) => done,
            None => {
                decode(bytes, count, range, None, &mut |block| out.extend_from_slice(as_f64(block)))
            }
        }
    })
}

/// The bits of one value of a page of `count` floats.
pub fn float_at(bytes: &[u8], count: usize, row: usize) -> Result<u64> {
    let mut value = 0;
    decode(bytes, count, row..row + 1, None, &mut |block| value = block[0])?;
    Ok(value)
}

/// Calls `visit` with the given rows of a page, in order, a block of at most 1024 at a time.
///
/// For folding a page into an aggregate without writing it to memory first. On error `visit` may
/// have been called with rows that precede the damage.
pub fn visit_f64(
    bytes: &[u8],
    count: usize,
    range: Range<usize>,
    mut visit: impl FnMut(&[f64]),
) -> Result<()> {
    decode(bytes, count, range, None, &mut |block| visit(as_f64(block)))
}

fn decode(
    bytes: &[u8],
    count: usize,
    range: Range<usize>,
    ahead: Option<TightPart<'_>>,
    sink: &mut Sink<'_>,
) -> Result<()> {
    check_range(&range, count)?;
    let mut reader = Reader::new(bytes);
    match reader.u8()? {
        id::FLOAT_DECIMAL => decimal::decode(reader, count, range, ahead, sink),
        id::FLOAT_BITS => int::decode(reader.rest(), count, range, ahead, &mut |block| {
            from_ordered(block);
            sink(block);
        }),
        id::FLOAT_RAW => {
            int::with_block(range.len(), |block| int::decode_raw(reader, count, range, block, sink))
        }
        id => Err(DecodeError::WrongEncoding { id, expected: "floats" }),
    }
}

multiversion! {
    /// Bit patterns such that integers compare like the numbers do.
    fn to_ordered / to_ordered_at(bits: &[u64], out: &mut [u64]) {
        for (slot, &bits) in out.iter_mut().zip(bits) {
            *slot = bits ^ ((bits as i64 >> 63) as u64 >> 1);
        }
    }
}

multiversion! {
    /// The inverse; the map is its own.
    fn from_ordered / from_ordered_at(values: &mut [u64]) {
        for value in values.iter_mut() {
            *value ^= (*value as i64 >> 63) as u64 >> 1;
        }
    }
}

#[allow(unsafe_code)]
pub(crate) fn as_bits(values: &[f64]) -> &[u64] {
    // SAFETY: both types have the same size and alignment, and no invalid bit patterns.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
}

#[allow(unsafe_code)]
pub(crate) fn as_f64(values: &[u64]) -> &[f64] {
    // SAFETY: both types have the same size and alignment, and no invalid bit patterns.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
}

/// See [`as_bits`].
#[allow(unsafe_code)]
fn as_bits_mut(values: &mut [f64]) -> &mut [u64] {
    // SAFETY: both types have the same size and alignment, and no invalid bit patterns.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), values.len()) }
}
