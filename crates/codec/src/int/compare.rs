//! Which values of a page stand to a scalar as asked, found in the form they are packed in.
//!
//! A comparison of a whole column looks at every value once and keeps a bit of it. Unpacking values of a few bits to
//! 64 each, adding them up there and writing them to memory is most of what that takes otherwise.

use std::cmp::Ordering;
use std::ops::Range;

use super::delta::{RESTART_ROWS, read_restart};
use crate::{
    bitpack::{COMPARED_MAX, CompareBits, PackedRows, compare_at, compare_rows_at, low_mask},
    encoding::id,
    error::Result,
    kernels::Comparison,
    patched::{Body, Differences, Plain},
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
#[derive(Debug)]
pub(crate) struct Numbers {
    pub(crate) of: fn(u64) -> i128,
    pub(crate) min: i128,
    pub(crate) max: i128,
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

pub(crate) fn compare(
    level: SimdLevel,
    (bytes, count): (&[u8], usize),
    comparison: Comparison,
    scalar: i128,
    numbers: &Numbers,
) -> Result<Option<ComparedBits>> {
    let Some(Packed { base, rows }) = Packed::read(bytes, count, numbers)? else { return Ok(None) };
    let distance = scalar - base;
    let bits = match rows.step {
        Some(_) => compare_rows_at(level, count, rows, comparison, (None, distance)),
        None => Some(compare_values(level, rows.bytes, (count, rows.width), comparison, distance)),
    };
    Ok(bits.map(|bits| first_bits(bits, count)))
}

pub(crate) fn compare_pair(
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

/// A page of however many integers, or of floats stored as such, that is compared with a scalar as it is packed: rows ascending.
#[derive(Debug)]
pub struct PageComparison<'a> {
    body: Body<'a>,
    comparison: Comparison,
    scalar: i128,
    numbers: &'static Numbers,
}

impl<'a> PageComparison<'a> {
    /// Of a page of `count` integers. `None`: pages of this encoding have to be decoded to be compared, or it is damaged.
    #[must_use]
    pub fn of_i64(
        bytes: &'a [u8],
        count: usize,
        comparison: Comparison,
        scalar: i64,
    ) -> Option<Self> {
        Self::of(bytes, count, comparison, scalar.into(), &SIGNED)
    }

    /// The same for a page of unsigned integers.
    #[must_use]
    pub fn of_u64(
        bytes: &'a [u8],
        count: usize,
        comparison: Comparison,
        scalar: u64,
    ) -> Option<Self> {
        Self::of(bytes, count, comparison, scalar.into(), &UNSIGNED)
    }

    pub(crate) fn of(
        bytes: &'a [u8],
        count: usize,
        comparison: Comparison,
        scalar: i128,
        numbers: &'static Numbers,
    ) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if count == 0 || reader.u8().ok()? != id::INT_FOR {
            return None;
        }
        let body = Body::read(reader, count).ok()?;
        // What lies across an end of the number line would go on at the other.
        let last = (numbers.of)(body.base) + i128::from(low_mask(body.width));
        (last <= numbers.max && (numbers.of)(body.base) >= numbers.min).then_some(Self {
            body,
            comparison,
            scalar,
            numbers,
        })
    }

    /// Which of some rows, at most [`COMPARED_ROWS_MAX`], stand to the scalar as asked; bits behind them are zero. The first is a
    /// multiple of eight, and none of them was asked for before.
    ///
    /// # Errors
    /// If the page is damaged.
    ///
    /// # Panics
    /// If it does not have these rows, or they are too many, or do not begin there.
    pub fn compare(&mut self, rows: Range<usize>) -> Result<ComparedBits> {
        let Self { body, comparison, scalar, numbers } = self;
        assert!(rows.start.is_multiple_of(8), "BUG: rows {rows:?}");
        let packed = &body.packed[rows.start / 8 * body.width as usize..];
        let distance = *scalar - (numbers.of)(body.base);
        let mut bits = compare_values(
            SimdLevel::detect(),
            packed,
            (rows.len(), body.width),
            *comparison,
            distance,
        );
        body.each_exception(rows.clone(), |row, value| {
            let at = row - rows.start;
            let holds = comparison.holds((numbers.of)(value).cmp(scalar));
            bits[at / 64] = bits[at / 64] & !(1 << (at % 64)) | u64::from(holds) << (at % 64);
        })?;
        Ok(first_bits(bits, rows.len()))
    }
}

/// Packed values that are so far from the scalar.
fn compare_values(
    level: SimdLevel,
    packed: &[u8],
    (count, width): (usize, u32),
    comparison: Comparison,
    distance: i128,
) -> ComparedBits {
    match distance {
        ..0 => all(comparison, Ordering::Greater),
        _ if distance > i128::from(low_mask(width)) => all(comparison, Ordering::Less),
        _ => compare_at(level, packed, (count, width), comparison, distance as u64),
    }
}

/// What holds for a value that stands so to the scalar, for all values.
fn all(comparison: Comparison, order: Ordering) -> ComparedBits {
    [if comparison.holds(order) { u64::MAX } else { 0 }; COMPARED_MAX / 64]
}

/// The first `count` bits, all others zero.
pub(crate) fn first_bits(mut bits: ComparedBits, count: usize) -> ComparedBits {
    for (word, first) in bits.iter_mut().zip((0..).step_by(64)) {
        *word &= low_mask(count.saturating_sub(first).min(64) as u32);
    }
    bits
}
