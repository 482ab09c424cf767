//! Which values of a short page stand to a scalar as asked, found in the form they are packed in.
//!
//! A comparison of a whole column looks at every value once and keeps a bit of it. Unpacking values of a few bits to
//! 64 each, adding them up there and writing them to memory is most of what that takes otherwise.

use std::cmp::Ordering;

use super::delta::{RESTART_ROWS, read_restart};
use crate::{
    bitpack::{COMPARED_MAX, CompareBits, compare_at, compare_running_at, low_mask},
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
    let number = |value: u64| i128::from(value.cast_signed());
    let bounds = (i64::MIN.into(), i64::MAX.into());
    compare(SimdLevel::detect(), (bytes, count), comparison, scalar.into(), (number, bounds))
}

/// The same for a page of unsigned integers.
pub fn compare_page_u64(
    bytes: &[u8],
    count: usize,
    comparison: Comparison,
    scalar: u64,
) -> Result<Option<ComparedBits>> {
    let bounds = (0, u64::MAX.into());
    compare(SimdLevel::detect(), (bytes, count), comparison, scalar.into(), (i128::from, bounds))
}

/// `number` says which number the bits of a value are, all of which lie within `bounds`.
pub(super) fn compare(
    level: SimdLevel,
    (bytes, count): (&[u8], usize),
    comparison: Comparison,
    scalar: i128,
    (number, bounds): (impl Fn(u64) -> i128, (i128, i128)),
) -> Result<Option<ComparedBits>> {
    const { assert!(COMPARED_MAX < RESTART_ROWS) };
    if !(1..=COMPARED_MAX).contains(&count) {
        return Ok(None);
    }
    let mut reader = Reader::new(bytes);
    let bits = match reader.u8()? {
        id::INT_FOR => {
            let Some(plain) = Plain::read(reader, count)? else { return Ok(None) };
            let (base, reach) = (number(plain.base), i128::from(low_mask(plain.width)));
            if base + reach > bounds.1 {
                return Ok(None);
            }
            let bits = match scalar - base {
                ..0 => all(comparison, Ordering::Greater),
                distance if distance > reach => all(comparison, Ordering::Less),
                distance => {
                    let shape = (count, plain.width);
                    compare_at(level, plain.packed, shape, comparison, distance as u64)
                }
            };
            plain.finish()?;
            bits
        }
        id::INT_DELTA => {
            let first = number(read_restart(&mut reader, count, RESTART_ROWS, 0)?);
            let Some(plain) = Plain::read(reader, count - 1)? else { return Ok(None) };
            // What lies across an end of the number line would go on at the other.
            let reach = i128::from(i32::MAX);
            if first - reach < bounds.0 || first + reach > bounds.1 {
                return Ok(None);
            }
            let (shape, step) = ((count - 1, plain.width), plain.base.cast_signed());
            let distance = scalar - first;
            let sums = compare_running_at(level, plain.packed, shape, step, comparison, distance);
            let Some(sums) = sums else { return Ok(None) };
            plain.finish()?;
            behind(comparison.holds(0.cmp(&distance)), &sums)
        }
        _ => return Ok(None),
    };
    Ok(Some(first_bits(bits, count)))
}

/// What holds for a value that stands so to the scalar, for all values.
fn all(comparison: Comparison, order: Ordering) -> ComparedBits {
    [if comparison.holds(order) { u64::MAX } else { 0 }; COMPARED_MAX / 64]
}

/// A bit and others behind it.
fn behind(first: bool, others: &ComparedBits) -> ComparedBits {
    let mut carry = u64::from(first);
    others.map(|word| {
        let moved = word << 1 | carry;
        carry = word >> 63;
        moved
    })
}

/// The first `count` bits, all others zero.
fn first_bits(mut bits: ComparedBits, count: usize) -> ComparedBits {
    for (word, first) in bits.iter_mut().zip((0..).step_by(64)) {
        *word &= low_mask(count.saturating_sub(first).min(64) as u32);
    }
    bits
}
