//! Floats that are `integer / 10^digits`, or within a few units in the last place of that.
//!
//! Layout: digits (one byte, top bit = has corrections), then the nested page of the integers. With
//! corrections that page follows its length, and after it comes a second nested page: what is added
//! to the bit pattern of each quotient.
//!
//! Corrections serve two kinds of values. Averages and percentages are often decimals with noise in
//! the last bits (49.553999999999995): their corrections are small numbers. NaN, infinities,
//! negative zeros and strays have corrections of any size: there are few, and integer pages keep
//! outliers apart.

use std::ops::Range;

use crate::{
    bitpack::{BLOCK, bits_of},
    encoding::{Effort, id},
    entropy::TightPart,
    error::{DecodeError, Result},
    int::{self, Nesting, Sink, encode_page},
    simd::multiversion,
    wire::{Reader, put_length_prefixed, zigzag},
};

const HAS_CORRECTIONS: u8 = 0x80;

/// Up to here powers of ten are exact doubles.
const DIGITS_MAX: usize = 22;

/// Adding this brings an integer into the low bits of the mantissa, rounded, for magnitudes below
/// `INTEGER_MAX`.
const ROUNDER: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52
const INTEGER_MAX: f64 = 2_251_799_813_685_248.0; // 2^51

const POWERS: [f64; DIGITS_MAX + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Sampled values that decide the number of digits.
const SAMPLE: usize = 64;

/// Corrections up to this many bits (zigzag) are taken for noise, which most values then have.
const NOISE_BITS: u32 = 6;

/// What the correction of a value would be; `None` when there is no integer for it.
#[inline]
fn correction(value: f64, digits: usize) -> Option<i64> {
    let rounded = value * POWERS[digits] + ROUNDER - ROUNDER;
    let exact = rounded.abs() < INTEGER_MAX;
    let quotient = rounded / POWERS[digits];
    exact.then(|| value.to_bits().wrapping_sub(quotient.to_bits()) as i64)
}

/// How many digits after the point cost the least, judged by a sample; `None` when too few values
/// are decimals of any number of digits.
fn choose_digits(values: &[f64], effort: Effort) -> Option<usize> {
    let mut sample = [0.0f64; SAMPLE];
    let step = values.len().div_ceil(SAMPLE).max(1);
    let n = values.len().div_ceil(step);
    for (slot, value) in sample.iter_mut().zip(values.iter().step_by(step)) {
        *slot = *value;
    }
    let sample = &sample[..n];
    // How many values are exact with so many digits and not with fewer.
    let mut needed = [0u32; DIGITS_MAX + 1];
    let mut guess = 0;
    for &value in sample {
        let exact = |digits: &usize| correction(value, *digits) == Some(0);
        // Neighbours tend to have as many digits as each other, or a zero at the end.
        let found = if exact(&guess) {
            (0..guess).rev().take_while(exact).last().or(Some(guess))
        } else {
            (guess + 1..=DIGITS_MAX).find(exact).or_else(|| (0..guess).find(exact))
        };
        if let Some(digits) = found {
            needed[digits] += 1;
            guess = digits;
        }
    }
    if needed.iter().sum::<u32>() < (n as u32 / 4).max(1) {
        return None;
    }
    let candidates = (0..=DIGITS_MAX).filter(|&digits| needed[digits] > 0);
    let (digits, per_value) = candidates
        .map(|digits| (digits, cost_bits(sample, digits)))
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    // Without entropy coding or patches there is no room for noise.
    (effort != Effort::Fast || per_value < 48.0).then_some(digits)
}

/// Bits a value at this number of digits, up to what all numbers of digits have in common.
fn cost_bits(sample: &[f64], digits: usize) -> f64 {
    let (mut noisy, mut stray_bits) = (0u32, 0u32);
    // Digits cost nothing where a value is like the one before.
    let changes = sample.windows(2).filter(|pair| pair[0] != pair[1]).count() + 1;
    for &value in sample {
        match correction(value, digits) {
            Some(0) => {}
            Some(c) if bits_of(zigzag(c)) <= NOISE_BITS => noisy += 1,
            Some(c) => stray_bits += 28 + bits_of(zigzag(c)),
            None => stray_bits += 28 + 64,
        }
    }
    let noise_bits = (noisy * 32).min(sample.len() as u32 * NOISE_BITS);
    let digit_bits = digits as f64 * std::f64::consts::LOG2_10 * changes as f64;
    (digit_bits + f64::from(noise_bits + stray_bits)) / sample.len() as f64
}

multiversion! {
    /// Writes integers and corrections; returns whether all values have an integer, and whether any
    /// has a correction.
    fn split / split_at(
        values: &[f64], power: f64, integers: &mut [i64], corrections: &mut [i64],
    ) -> (bool, bool) {
        let mut all = true;
        let mut any = 0;
        for ((value, integer), correction) in values.iter().zip(integers).zip(corrections) {
            let shifted = value * power + ROUNDER;
            // The integer is in the low bits of the mantissa: no conversion instruction needed.
            *integer = (shifted.to_bits() as i64).wrapping_sub(ROUNDER.to_bits() as i64);
            let rounded = shifted - ROUNDER;
            all &= rounded.abs() < INTEGER_MAX;
            *correction = value.to_bits().wrapping_sub((rounded / power).to_bits()) as i64;
            any |= *correction;
        }
        (all, any != 0)
    }
}

/// Appends a decimal page, unless too few values are decimals.
pub(super) fn encode(values: &[f64], effort: Effort, out: &mut Vec<u8>) -> bool {
    let Some(digits) = choose_digits(values, effort) else {
        return false;
    };
    let power = POWERS[digits];
    let mut integers = vec![0i64; values.len()];
    let mut corrections = Vec::new();
    let mut block = [0i64; BLOCK];
    for first in (0..values.len()).step_by(BLOCK) {
        let values = &values[first..values.len().min(first + BLOCK)];
        let integers = &mut integers[first..first + values.len()];
        let block = &mut block[..values.len()];
        let (all, any) = split(values, power, integers, block);
        if !all {
            replace_strays(values, digits, integers, block);
        }
        // NaN and infinity divide to themselves and show no correction until they are replaced.
        if any || !all || !corrections.is_empty() {
            corrections.resize(first, 0);
            corrections.extend_from_slice(block);
        }
    }
    out.push(id::FLOAT_DECIMAL);
    if corrections.is_empty() {
        out.push(digits as u8);
        encode_page(&integers, effort, Nesting::Top, out);
        return true;
    }
    out.push(digits as u8 | HAS_CORRECTIONS);
    let mut nested = Vec::new();
    encode_page(&integers, effort, Nesting::Top, &mut nested);
    put_length_prefixed(out, &nested);
    // Strays need patches, which the cheapest effort does not make.
    let effort = if effort == Effort::Fast { Effort::Hot } else { effort };
    encode_page(&corrections, effort, Nesting::Top, out);
    true
}

/// Number of digits and integers of values that are all exactly decimals.
pub(super) fn to_integers(values: &[f64]) -> Option<(u8, Vec<i64>)> {
    let digits = choose_digits(values, Effort::Hot)?;
    let mut integers = vec![0i64; values.len()];
    let mut corrections = [0i64; BLOCK];
    for (values, integers) in values.chunks(BLOCK).zip(integers.chunks_mut(BLOCK)) {
        let (all, any) = split(values, POWERS[digits], integers, &mut corrections[..values.len()]);
        if any || !all {
            return None;
        }
    }
    Some((digits as u8, integers))
}

/// The bit patterns of decimals, in place of their integers.
pub(super) fn from_integers(digits: u8, values: &mut [u64]) -> Result<()> {
    let power = POWERS.get(usize::from(digits));
    to_floats(values, *power.ok_or(DecodeError::Corrupt("digits after the decimal point"))?);
    Ok(())
}

/// Gives values without an integer one that does not disturb the integers around it.
fn replace_strays(values: &[f64], digits: usize, integers: &mut [i64], corrections: &mut [i64]) {
    let mut previous = 0i64;
    for ((value, integer), slot) in values.iter().zip(integers).zip(corrections) {
        if correction(*value, digits).is_none() {
            *integer = previous;
            let quotient = previous as f64 / POWERS[digits];
            *slot = value.to_bits().wrapping_sub(quotient.to_bits()) as i64;
        }
        previous = *integer;
    }
}

multiversion! {
    /// Integers to the bit patterns of their quotients.
    pub(super) fn to_floats / to_floats_at(values: &mut [u64], power: f64) {
        for value in values.iter_mut() {
            // Exact for the magnitudes that an encoder writes, and one addition where AVX2 has no
            // conversion of 64-bit integers.
            let integer = f64::from_bits(value.wrapping_add(ROUNDER.to_bits())) - ROUNDER;
            *value = (integer / power).to_bits();
        }
    }
}

/// Leaves `reader`, behind the id of a decimal page, where its page of integers begins.
pub(crate) fn skip_to_integers(reader: &mut Reader<'_>) -> Result<()> {
    if reader.u8()? & HAS_CORRECTIONS != 0 {
        *reader = Reader::new(reader.length_prefixed()?);
    }
    Ok(())
}

/// The page of integers and their power of ten, of a page, behind its id, without corrections.
pub(super) fn exact(bytes: &[u8]) -> Option<(&[u8], f64)> {
    let (&flags, integers) = bytes.split_first()?;
    let power = POWERS.get(usize::from(flags)).filter(|_| flags & HAS_CORRECTIONS == 0)?;
    Some((integers, *power))
}

pub(super) fn decode(
    mut reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    ahead: Option<TightPart<'_>>,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let flags = reader.u8()?;
    let Some(&power) = POWERS.get(usize::from(flags & !HAS_CORRECTIONS)) else {
        return Err(DecodeError::Corrupt("digits after the decimal point"));
    };
    if flags & HAS_CORRECTIONS == 0 {
        return int::decode(reader.rest(), count, range, ahead, &mut |block| {
            to_floats(block, power);
            sink(block);
        });
    }
    let integers = reader.length_prefixed()?;
    let mut corrections = Vec::with_capacity(range.len());
    int::decode(reader.rest(), count, range.clone(), None, &mut |block| {
        corrections.extend_from_slice(block);
    })?;
    let mut corrections = &corrections[..];
    int::decode(integers, count, range, ahead, &mut |block| {
        to_floats(block, power);
        let (here, later) = corrections.split_at(block.len());
        for (bits, correction) in block.iter_mut().zip(here) {
            *bits = bits.wrapping_add(*correction);
        }
        corrections = later;
        sink(block);
    })
}
