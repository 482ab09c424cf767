//! Floats that are `integer / 10^digits`, with exceptions.
//!
//! Layout: digits (one byte, top bit = has exceptions), the length of the nested integer page, that
//! page, then the exceptions: their number, and for each the distance from the position after the
//! previous one (uvarint) and its bit pattern (ivarint).

use std::ops::Range;

use crate::{
    bitpack::BLOCK,
    encoding::{Effort, id},
    error::{DecodeError, Result},
    int::{self, Nesting, Sink, encode_page},
    patched::{ExceptionList, Exceptions},
    simd::multiversion,
    wire::{Reader, put_length_prefixed},
};

const HAS_EXCEPTIONS: u8 = 0x80;

/// Up to here powers of ten are exact doubles.
const DIGITS_MAX: u32 = 22;

/// Adding and subtracting this rounds to an integer, for magnitudes below `INTEGER_MAX`.
const ROUNDER: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52
/// Integers below this are exact, and the rounding above is right.
const INTEGER_MAX: f64 = 2_251_799_813_685_248.0; // 2^51

const POWERS: [f64; DIGITS_MAX as usize + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Sampled values that decide the number of digits.
const SAMPLE: usize = 64;

/// The integer that, divided by `power`, gives back exactly these bits.
#[inline]
fn as_integer(value: f64, power: f64) -> Option<i64> {
    let rounded = value * power + ROUNDER - ROUNDER;
    let same = (rounded / power).to_bits() == value.to_bits();
    (same && rounded.abs() < INTEGER_MAX).then_some(rounded as i64)
}

multiversion! {
    /// Writes the integers of `values` and returns whether all of them are exact.
    fn to_integers / to_integers_at(values: &[f64], power: f64, out: &mut [i64]) -> bool {
        let mut exact = true;
        for (slot, &value) in out.iter_mut().zip(values) {
            let rounded = value * power + ROUNDER;
            // The integer is in the low bits of the mantissa: no conversion instruction needed.
            *slot = (rounded.to_bits() as i64).wrapping_sub(ROUNDER.to_bits() as i64);
            let rounded = rounded - ROUNDER;
            exact &= (rounded / power).to_bits() == value.to_bits();
            exact &= rounded.abs() < INTEGER_MAX;
        }
        exact
    }
}

/// How many digits after the point cost the least, judged by a sample; `None` when bit patterns
/// would do better.
fn choose_digits(values: &[f64], effort: Effort) -> Option<u32> {
    let step = values.len().div_ceil(SAMPLE).max(1);
    let mut needed = [0u32; DIGITS_MAX as usize + 2];
    let mut sampled = 0;
    let mut from = 0;
    for &value in values.iter().step_by(step) {
        // Neighbours tend to have as many digits as each other.
        let fits = |digits: u32| as_integer(value, POWERS[digits as usize]).is_some();
        let mut digits = from;
        while digits <= DIGITS_MAX && !fits(digits) {
            digits += 1;
        }
        if digits <= DIGITS_MAX {
            // Fewer may do as well.
            while digits > 0 && fits(digits - 1) {
                digits -= 1;
            }
            from = digits;
        } else if from > 0
            && let Some(fewer) = (0..from).find(|d| fits(*d))
        {
            digits = fewer;
            from = fewer;
        }
        needed[digits as usize] += 1;
        sampled += 1;
        if effort == Effort::Fast && needed[DIGITS_MAX as usize + 1] > 4 {
            return None;
        }
    }
    let covered_min = sampled - sampled / 8;
    let mut covered = 0;
    let mut best = None;
    // More digits cover more values, unless these become too large; three bits a value and digit
    // against ten bytes an exception.
    let mut best_bits = u64::MAX;
    for digits in 0..=DIGITS_MAX {
        covered += needed[digits as usize];
        if needed[digits as usize] == 0 || covered < covered_min.max(1) {
            continue;
        }
        let exceptions = u64::from(sampled - covered);
        let bits = exceptions * 80 + u64::from(sampled * digits * 10 / 3);
        if bits < best_bits {
            best_bits = bits;
            best = Some(digits);
        }
    }
    best
}

/// Appends a decimal page, unless too many values are not short decimals.
pub(super) fn encode(values: &[f64], effort: Effort, out: &mut Vec<u8>) -> bool {
    let Some(digits) = choose_digits(values, effort) else {
        return false;
    };
    let power = POWERS[digits as usize];
    let mut integers = vec![0i64; values.len()];
    let mut exceptions = ExceptionList::default();
    for (index, (values, integers)) in
        values.chunks(BLOCK).zip(integers.chunks_mut(BLOCK)).enumerate()
    {
        if to_integers(values, power, integers) {
            continue;
        }
        for (i, &value) in values.iter().enumerate() {
            if as_integer(value, power).is_none() {
                exceptions.push(index * BLOCK + i, value.to_bits());
                // Nothing that disturbs the integers around it.
                integers[i] = if i > 0 { integers[i - 1] } else { 0 };
            }
        }
        if exceptions.byte_len() > values.len() * (index + 1) * 2 {
            return false;
        }
    }
    out.push(id::FLOAT_DECIMAL);
    let flag = if exceptions.is_empty() { 0 } else { HAS_EXCEPTIONS };
    out.push(digits as u8 | flag);
    if exceptions.is_empty() {
        encode_page(&integers, effort, Nesting::Top, out);
    } else {
        let mut nested = Vec::new();
        encode_page(&integers, effort, Nesting::Top, &mut nested);
        put_length_prefixed(out, &nested);
        exceptions.write(out);
    }
    true
}

multiversion! {
    /// Integers to the bit patterns of their quotients.
    fn to_floats / to_floats_at(values: &mut [u64], power: f64) {
        for value in values.iter_mut() {
            // Exact for the magnitudes that an encoder writes, and one addition where AVX2 has no
            // conversion of 64-bit integers.
            let integer = f64::from_bits(value.wrapping_add(ROUNDER.to_bits())) - ROUNDER;
            *value = (integer / power).to_bits();
        }
    }
}

pub(super) fn decode(
    mut reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let flags = reader.u8()?;
    let digits = flags & !HAS_EXCEPTIONS;
    let Some(&power) = POWERS.get(usize::from(digits)) else {
        return Err(DecodeError::Corrupt("digits after the decimal point"));
    };
    if flags & HAS_EXCEPTIONS == 0 {
        return int::decode(reader.rest(), count, range, &mut |block| {
            to_floats(block, power);
            sink(block);
        });
    }
    let nested = reader.length_prefixed()?;
    let mut exceptions = Exceptions::read(reader, true, count)?;
    let mut row = range.start;
    let mut applied = Ok(());
    int::decode(nested, count, range.clone(), &mut |block| {
        to_floats(block, power);
        if applied.is_ok() {
            applied = exceptions.apply(row, block, |slot, bits| *slot = bits);
        }
        row += block.len();
        sink(block);
    })?;
    applied?;
    if range.end == count && !range.is_empty() { exceptions.finish() } else { Ok(()) }
}
