//! Which values of a short page stand to a scalar as asked, found in the form they are packed in.
//!
//! A comparison of a whole column looks at every value once and keeps a bit of it. Unpacking values of a few bits to
//! 64 each, adding them up there and writing them to memory is most of what that takes otherwise.

use std::cmp::Ordering;

use super::delta::{RESTART_ROWS, read_restart};
use crate::{
    bitpack::{COMPARED_MAX, CompareBits, PackedRows, compare_at, compare_rows_at, low_mask},
    encoding::id,
    error::Result,
    kernels::Comparison,
    patched::{Differences, Plain},
    simd::SimdLevel,
    wire::Reader,
};

/// The most values of a page that is compared as it is packed.
pub const COMPARED_ROWS_MAX: usize = COMPARED_MAX;

/// A bit for each value of a page, the first in the lowest bit of the first word.
pub type ComparedBits = CompareBits;

/// Which values of a page of `count` integers stand to `scalar` as asked; bits behind them are zero. `None`: pages of this
/// encoding, or so many values, have to be decoded to be compared.
pub fn compare_page_i64(
    bytes: &[u8],
    count: usize,
    comparison: Comparison,
    scalar: i64,
) -> Result<Option<ComparedBits>> {
    compare(SimdLevel::detect(), (bytes, count), comparison, scalar.into(), &SIGNED)
}

/// The same for a page of unsigned integers.
pub fn compare_page_u64(
    bytes: &[u8],
    count: usize,
    comparison: Comparison,
    scalar: u64,
) -> Result<Option<ComparedBits>> {
    compare(SimdLevel::detect(), (bytes, count), comparison, scalar.into(), &UNSIGNED)
}

/// Which values of a page of `count` integers stand as asked to those of another in the same places, as [`compare_page_i64`]
/// would say.
pub fn compare_pages_i64(
    a: &[u8],
    b: &[u8],
    count: usize,
    comparison: Comparison,
) -> Result<Option<ComparedBits>> {
    compare_pair(SimdLevel::detect(), (a, b, count), comparison, &SIGNED)
}

/// The same for pages of unsigned integers.
pub fn compare_pages_u64(
    a: &[u8],
    b: &[u8],
    count: usize,
    comparison: Comparison,
) -> Result<Option<ComparedBits>> {
    compare_pair(SimdLevel::detect(), (a, b, count), comparison, &UNSIGNED)
}

/// Which numbers the bits of values are.
pub(super) struct Numbers {
    of: fn(u64) -> i128,
    min: i128,
    max: i128,
}

pub(super) static SIGNED: Numbers =
    Numbers { of: |bits| bits.cast_signed() as i128, min: i64::MIN as i128, max: i64::MAX as i128 };
pub(super) static UNSIGNED: Numbers =
    Numbers { of: |bits| bits as i128, min: 0, max: u64::MAX as i128 };

/// A page that can be compared as it is packed.
struct Packed<'a> {
    /// What its rows are counted from.
    base: i128,
    rows: PackedRows<'a>,
}

impl<'a> Packed<'a> {
    fn read(bytes: &'a [u8], count: usize, numbers: &Numbers) -> Result<Option<Self>> {
        const { assert!(COMPARED_MAX < RESTART_ROWS) };
        if !(1..=COMPARED_MAX).contains(&count) {
            return Ok(None);
        }
        let mut reader = Reader::new(bytes);
        let (plain, base, reach, step) = match reader.u8()? {
            id::INT_FOR => {
                let Some(plain) = Plain::read(reader, count)? else { return Ok(None) };
                let reach = 0..=i128::from(low_mask(plain.width));
                (plain, (numbers.of)(plain.base), reach, None)
            }
            id::INT_DELTA => {
                let first = read_restart(&mut reader, count, RESTART_ROWS, 0)?;
                let Some(plain) = Plain::read(reader, count - 1)? else { return Ok(None) };
                let reach = -i128::from(i32::MAX)..=i128::from(i32::MAX);
                (plain, (numbers.of)(first), reach, Some(plain.base.cast_signed()))
            }
            _ => return Ok(None),
        };
        plain.finish()?;
        // What lies across an end of the number line would go on at the other.
        let is_inside = base + reach.start() >= numbers.min && base + reach.end() <= numbers.max;
        let rows = PackedRows { bytes: plain.packed, width: plain.width, step };
        Ok(is_inside.then_some(Self { base, rows }))
    }
}

pub(super) fn compare(
    level: SimdLevel,
    (bytes, count): (&[u8], usize),
    comparison: Comparison,
    scalar: i128,
    numbers: &Numbers,
) -> Result<Option<ComparedBits>> {
    let Some(Packed { base, rows }) = Packed::read(bytes, count, numbers)? else { return Ok(None) };
    let distance = scalar - base;
    let reach = i128::from(low_mask(rows.width));
    let bits = match (rows.step, distance) {
        (Some(_), _) => compare_rows_at(level, count, rows, comparison, (None, distance)),
        (None, ..0) => Some(all(comparison, Ordering::Greater)),
        (None, _) if distance > reach => Some(all(comparison, Ordering::Less)),
        (None, _) => {
            let shape = (count, rows.width);
            Some(compare_at(level, rows.bytes, shape, comparison, distance as u64))
        }
    };
    Ok(bits.map(|bits| first_bits(bits, count)))
}

pub(super) fn compare_pair(
    level: SimdLevel,
    (a, b, count): (&[u8], &[u8], usize),
    comparison: Comparison,
    numbers: &Numbers,
) -> Result<Option<ComparedBits>> {
    let Some(a) = Packed::read(a, count, numbers)? else { return Ok(None) };
    let Some(b) = Packed::read(b, count, numbers)? else { return Ok(None) };
    let right = (Some(b.rows), b.base - a.base);
    let bits = compare_rows_at(level, count, a.rows, comparison, right);
    Ok(bits.map(|bits| first_bits(bits, count)))
}

/// What holds for a value that stands so to the scalar, for all values.
fn all(comparison: Comparison, order: Ordering) -> ComparedBits {
    [if comparison.holds(order) { u64::MAX } else { 0 }; COMPARED_MAX / 64]
}

/// The first `count` bits, all others zero.
fn first_bits(mut bits: ComparedBits, count: usize) -> ComparedBits {
    for (word, first) in bits.iter_mut().zip((0..).step_by(64)) {
        *word &= low_mask(count.saturating_sub(first).min(64) as u32);
    }
    bits
}
