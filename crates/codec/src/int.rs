//! Pages of 64-bit integers and timestamps.
//!
//! A decoder hands over blocks of at most `BLOCK` values while they are in the first-level cache;
//! whoever wraps another page (scaling, decimal floats) transforms the block in place on its way.
//! Inside the crate integers are `u64` with wrapping arithmetic; signed and unsigned are one thing.

mod choose;
pub(crate) mod compare;
pub(crate) mod delta;
mod packed;
mod runs;
mod scale;
mod simple;
mod stats;
mod waypoints;

#[cfg(test)]
mod tests;

use std::ops::Range;

pub(crate) use choose::encode_page;
pub use compare::{
    COMPARED_ROWS_MAX, ComparedBits, PageComparison, compare_page_i64, compare_page_u64,
    compare_pages_i64, compare_pages_u64,
};
pub(crate) use packed::Packed;
pub(crate) use simple::decode_raw;
pub use waypoints::{ExceptionPlaces, Waypoint, Waypoints};

use crate::{
    bitpack::BLOCK,
    encoding::{Effort, id},
    entropy::{self, Body, Learned, TightPart},
    error::{DecodeError, Result, check_range},
    wire::Reader,
};

/// Receives the decoded values in order, a block at a time, and may overwrite them.
pub(crate) type Sink<'s> = dyn FnMut(&mut [u64]) + 's;

/// Which pages may be inside which: a bound on recursion whatever the bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Nesting {
    /// Not inside another integer page.
    Top,
    /// Inside a scaled page: everything but another scaled page.
    Scaled,
    /// Inside a page of runs: neither scaled nor runs.
    Runs,
}

/// Appends `values` as one page; at most [`crate::PAGE_COUNT_MAX`] of them.
pub fn encode_i64(values: &[i64], effort: Effort, out: &mut Vec<u8>) {
    encode_page(values, effort, Nesting::Top, out);
}

/// Appends `values` as one page; at most [`crate::PAGE_COUNT_MAX`] of them.
///
/// The bytes are those of the same bit patterns taken as `i64`.
pub fn encode_u64(values: &[u64], effort: Effort, out: &mut Vec<u8>) {
    encode_page(as_i64(values), effort, Nesting::Top, out);
}

/// Appends the `count` values of a page to `out`, which is left as it was on error.
pub fn decode_i64(bytes: &[u8], count: usize, out: &mut Vec<i64>) -> Result<()> {
    decode_i64_range(bytes, count, 0..count, out)
}

/// Appends the given rows of a page of `count` values to `out`, which is left as it was on error.
///
/// Only the blocks that hold these rows are decoded, where the encoding allows it.
pub fn decode_i64_range(
    bytes: &[u8],
    count: usize,
    range: Range<usize>,
    out: &mut Vec<i64>,
) -> Result<()> {
    append_i64(bytes, count, range, None, out)
}

/// What [`decode_i64_range`] does, for the row of a waypoint and later ones; of a page of differences without those before the
/// waypoint.
///
/// # Panics
/// If the waypoint lies behind the first row, or its row is no multiple of eight.
pub fn decode_i64_from(
    bytes: &[u8],
    count: usize,
    range: Range<usize>,
    waypoint: Waypoint,
    out: &mut Vec<i64>,
) -> Result<()> {
    waypoint.check(range.start);
    append_to(out, &range.clone(), count, |out| match Packed::open(bytes, count) {
        Some(packed) => packed.append(range, waypoint, out, as_u64_mut),
        None => {
            decode(bytes, count, range, None, &mut |block| out.extend_from_slice(as_i64(block)))
        }
    })
}

/// What [`decode_i64_from`] does, of a page of unsigned integers.
///
/// # Panics
/// As that.
pub fn decode_u64_from(
    bytes: &[u8],
    count: usize,
    range: Range<usize>,
    waypoint: Waypoint,
    out: &mut Vec<u64>,
) -> Result<()> {
    waypoint.check(range.start);
    append_to(out, &range.clone(), count, |out| match Packed::open(bytes, count) {
        Some(packed) => packed.append(range, waypoint, out, |v| v),
        None => decode(bytes, count, range, None, &mut |block| out.extend_from_slice(block)),
    })
}

/// See [`decode_i64_range`]; for `ahead` see [`decode_page`].
pub(crate) fn append_i64(
    bytes: &[u8],
    count: usize,
    range: Range<usize>,
    ahead: Option<TightPart<'_>>,
    out: &mut Vec<i64>,
) -> Result<()> {
    append_to(out, &range.clone(), count, |out| match Packed::of_few(bytes, count, range.len()) {
        Some(packed) if ahead.is_none() => {
            packed.append(range, Waypoint::default(), out, as_u64_mut)
        }
        _ => decode(bytes, count, range, ahead, &mut |block| out.extend_from_slice(as_i64(block))),
    })
}

/// Appends the `count` values of a page to `out`, which is left as it was on error.
pub fn decode_u64(bytes: &[u8], count: usize, out: &mut Vec<u64>) -> Result<()> {
    decode_u64_range(bytes, count, 0..count, out)
}

/// Appends the given rows of a page of `count` values to `out`, which is left as it was on error.
///
/// Only the blocks that hold these rows are decoded, where the encoding allows it.
pub fn decode_u64_range(
    bytes: &[u8],
    count: usize,
    range: Range<usize>,
    out: &mut Vec<u64>,
) -> Result<()> {
    append_u64(bytes, count, range, None, out)
}

/// See [`decode_u64_range`]; for `ahead` see [`decode_page`].
pub(crate) fn append_u64(
    bytes: &[u8],
    count: usize,
    range: Range<usize>,
    ahead: Option<TightPart<'_>>,
    out: &mut Vec<u64>,
) -> Result<()> {
    append_to(out, &range.clone(), count, |out| match Packed::of_few(bytes, count, range.len()) {
        Some(packed) if ahead.is_none() => packed.append(range, Waypoint::default(), out, |v| v),
        _ => decode(bytes, count, range, ahead, &mut |block| out.extend_from_slice(block)),
    })
}

/// Adds the rows `range`, which `decode` gives, and leaves `out` as it was if that fails.
pub(crate) fn append_to<T>(
    out: &mut Vec<T>,
    range: &Range<usize>,
    count: usize,
    decode: impl FnOnce(&mut Vec<T>) -> Result<()>,
) -> Result<()> {
    let before = out.len();
    // No place is taken for rows that a page cannot have.
    check_range(range, count)?;
    if range.is_empty() && count > 0 {
        return Ok(());
    }
    out.reserve(range.len());
    decode(out).inspect_err(|_| out.truncate(before))
}

/// The first value and the step of a page of regular values, in which any can be found by calculation: value `i` is
/// `first + i * step`, modulo 2^64. `None`: the page is of another encoding, or damaged.
#[must_use]
pub fn regular_i64(bytes: &[u8]) -> Option<(i64, i64)> {
    let mut reader = Reader::new(bytes);
    if reader.u8().ok()? != id::INT_REGULAR {
        return None;
    }
    let (first, step) = (reader.ivarint().ok()?, reader.ivarint().ok()?);
    reader.finish().ok()?;
    Some((first, step))
}

/// Rows between two whose values a page of differences says apart, see [`restarts_i64`].
pub const RESTART_ROWS: usize = delta::RESTART_ROWS;

/// The values of every [`RESTART_ROWS`]th row of a page of `count` values, from the first on, if the page says them apart, as
/// pages of differences do: in a page of ascending values a row is found by them with one stretch decoded. `None`: the page is
/// of another encoding, or damaged.
#[must_use]
pub fn restarts_i64(bytes: &[u8], count: usize) -> Option<Vec<i64>> {
    let mut reader = Reader::new(bytes);
    let mut id = reader.u8().ok()?;
    let (mut base, mut factor) = (0, 1);
    if id == id::INT_SCALED {
        (base, factor) = (reader.ivarint().ok()?, reader.uvarint().ok()?.cast_signed());
        id = reader.u8().ok()?;
    }
    if id != id::INT_DELTA {
        return None;
    }
    let restarts = delta::restarts(&mut reader, count).ok()?;
    let scaled = |restart: u64| restart.cast_signed().wrapping_mul(factor).wrapping_add(base);
    Some(restarts.into_iter().map(scaled).collect())
}

/// The bits of one value of a page of `count` integers: of a page of a few hundred at less than what
/// [`decode_i64_range`] costs.
pub fn integer_at(bytes: &[u8], count: usize, row: usize) -> Result<u64> {
    integer_from(bytes, count, row, Waypoint::default())
}

/// What [`integer_at`] gives, for the row of a waypoint or a later one; of a page of differences without those before the
/// waypoint.
///
/// # Panics
/// If the waypoint lies behind the row, or its row is no multiple of eight.
pub fn integer_from(bytes: &[u8], count: usize, row: usize, waypoint: Waypoint) -> Result<u64> {
    check_range(&(row..row + 1), count)?;
    waypoint.check(row);
    if let Some(packed) = Packed::open(bytes, count)
        && let Some(value) = packed.value_at(row, waypoint)?
    {
        return Ok(value);
    }
    let mut value = 0;
    decode(bytes, count, row..row + 1, None, &mut |block| value = block[0])?;
    Ok(value)
}

/// Calls `visit` with the given rows of a page, in order, a block of at most 1024 at a time.
///
/// For folding a page into an aggregate without writing it to memory first. On error `visit` may
/// have been called with rows that precede the damage.
pub fn visit_i64(
    bytes: &[u8],
    count: usize,
    range: Range<usize>,
    mut visit: impl FnMut(&[i64]),
) -> Result<()> {
    decode(bytes, count, range, None, &mut |block| visit(as_i64(block)))
}

/// Decodes rows of a page that is not nested in another integer page.
pub(crate) fn decode(
    bytes: &[u8],
    count: usize,
    range: Range<usize>,
    ahead: Option<TightPart<'_>>,
    sink: &mut Sink<'_>,
) -> Result<()> {
    check_range(&range, count)?;
    with_block(range.len(), |block| {
        decode_page(bytes, count, range, Nesting::Top, block, ahead, sink)
    })
}

/// A block that begins at a cache line: wide stores must not straddle two.
#[repr(align(64))]
struct Aligned<const N: usize>([u64; N]);

/// Small pages are common; clearing a whole block for each would cost more than decoding it.
pub(crate) fn with_block<R>(rows: usize, decode: impl FnOnce(&mut [u64]) -> R) -> R {
    match rows {
        ..=64 => decode(&mut Aligned([0; 64]).0),
        65..=256 => decode(&mut Aligned([0; 256]).0),
        257..=512 => decode(&mut Aligned([0; 512]).0),
        _ => decode(&mut Aligned([0; BLOCK]).0),
    }
}

/// `range` has been checked against `count`, and `count` against the limit. If the page is entropy-coded,
/// or what it nests is, its symbols may have been decoded: then that is `ahead`.
pub(crate) fn decode_page(
    bytes: &[u8],
    count: usize,
    range: Range<usize>,
    nesting: Nesting,
    block: &mut [u64],
    ahead: Option<TightPart<'_>>,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let mut reader = Reader::new(bytes);
    let id = reader.u8()?;
    if count == 0 && id != id::INT_RAW {
        return Err(DecodeError::Corrupt("an empty page must be raw"));
    }
    if range.is_empty() && count > 0 {
        return Ok(());
    }
    match id {
        id::INT_CONSTANT => simple::decode_constant(reader, range, block, sink),
        id::INT_REGULAR => simple::decode_regular(reader, range, block, sink),
        id::INT_RAW => decode_raw(reader, count, range, block, sink),
        id::INT_FOR => simple::decode_for(reader, count, range, block, sink),
        id::INT_DELTA => delta::decode(reader, count, range, block, sink),
        _ if let Some(body) = Body::of_id(id) => {
            if let Some(part) = ahead {
                return part.emit(sink);
            }
            let mut part = TightPart::open(body, reader, count, range, Learned::default())?;
            entropy::decode_symbols(&mut [&mut part]);
            part.emit(sink)
        }
        id::INT_SCALED if nesting < Nesting::Scaled => {
            scale::decode(reader, count, range, block, ahead, sink)
        }
        id::INT_RUNS if nesting < Nesting::Runs => runs::decode(reader, count, range, block, sink),
        id::INT_SCALED | id::INT_RUNS => Err(DecodeError::Corrupt("pages nested too deep")),
        _ => Err(DecodeError::WrongEncoding { id, expected: "integers" }),
    }
}

/// The same bits as signed integers.
#[allow(unsafe_code)]
pub(crate) fn as_i64(values: &[u64]) -> &[i64] {
    // SAFETY: both types have the same size and alignment, and no invalid bit patterns.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
}

/// The same bits as unsigned integers.
#[allow(unsafe_code)]
pub(crate) fn as_u64(values: &[i64]) -> &[u64] {
    // SAFETY: both types have the same size and alignment, and no invalid bit patterns.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
}

/// See [`as_u64`].
#[allow(unsafe_code)]
pub(crate) fn as_u64_mut(values: &mut [i64]) -> &mut [u64] {
    // SAFETY: both types have the same size and alignment, and no invalid bit patterns.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), values.len()) }
}
