//! Sums and running sums.

use crate::{prefix::prefix_sum, simd::multiversion};

/// Partial sums of floats: enough for four registers of the widest kind, the same on every machine
/// so that results do not depend on the machine.
const LANES: usize = 32;

multiversion! {
    /// The wrapping sum.
    pub fn sum_i64 / sum_i64_at(values: &[i64]) -> i64 {
        values.iter().fold(0, |sum, value| sum.wrapping_add(*value))
    }
}

multiversion! {
    /// The wrapping sum.
    pub fn sum_u64 / sum_u64_at(values: &[u64]) -> u64 {
        values.iter().fold(0, |sum, value| sum.wrapping_add(*value))
    }
}

multiversion! {
    /// The sum, as 32 interleaved partial sums that are added at the end.
    ///
    /// The order of additions is fixed: the same values give the same bits on every machine.
    pub fn sum_f64 / sum_f64_at(values: &[f64]) -> f64 {
        let mut sums = [0.0f64; LANES];
        let (chunks, rest) = values.as_chunks::<LANES>();
        for chunk in chunks {
            for (sum, value) in sums.iter_mut().zip(chunk) {
                *sum += value;
            }
        }
        for (sum, value) in sums.iter_mut().zip(rest) {
            *sum += value;
        }
        add_lanes(sums)
    }
}

#[inline]
fn add_lanes(mut sums: [f64; LANES]) -> f64 {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            sums[i] += sums[i + width];
        }
        width /= 2;
    }
    sums[0]
}

/// All ones if the bit is set.
#[inline]
fn spread(word: u64, bit: usize) -> u64 {
    (word >> bit & 1).wrapping_neg()
}

multiversion! {
    /// The wrapping sum of the values whose bit is set.
    ///
    /// # Panics
    /// If there are fewer bits than values.
    pub fn sum_u64_masked / sum_u64_masked_at(values: &[u64], mask: &[u64]) -> u64 {
        assert!(mask.len() >= values.len().div_ceil(64), "BUG: mask shorter than the values");
        let mut sum = 0u64;
        for (chunk, &word) in values.chunks(64).zip(mask) {
            if word == u64::MAX {
                sum = chunk.iter().fold(sum, |sum, value| sum.wrapping_add(*value));
            } else if word != 0 {
                for (bit, value) in chunk.iter().enumerate() {
                    sum = sum.wrapping_add(value & spread(word, bit));
                }
            }
        }
        sum
    }
}

/// The wrapping sum of the values whose bit is set.
///
/// # Panics
/// If there are fewer bits than values.
#[must_use]
pub fn sum_i64_masked(values: &[i64], mask: &[u64]) -> i64 {
    sum_u64_masked(crate::int::as_u64(values), mask) as i64
}

multiversion! {
    /// The sum of the values whose bit is set, in the order of [`sum_f64`].
    ///
    /// # Panics
    /// If there are fewer bits than values.
    pub fn sum_f64_masked / sum_f64_masked_at(values: &[f64], mask: &[u64]) -> f64 {
        assert!(mask.len() >= values.len().div_ceil(64), "BUG: mask shorter than the values");
        let mut sums = [0.0f64; LANES];
        for (chunk, &word) in values.chunks(64).zip(mask) {
            for (half, chunk) in chunk.chunks(LANES).enumerate() {
                let word = word >> (half * LANES);
                for (lane, (sum, value)) in sums.iter_mut().zip(chunk).enumerate() {
                    // By bits, so that a NaN behind a cleared bit does not count.
                    *sum += f64::from_bits(value.to_bits() & spread(word, lane));
                }
            }
        }
        add_lanes(sums)
    }
}

/// Replaces every value by `start` plus the sum of the values up to it, wrapping; returns the last.
#[allow(unsafe_code)]
pub fn prefix_sum_i64(values: &mut [i64], start: i64) -> i64 {
    // SAFETY: the types have the same size and alignment, and no invalid bit patterns.
    let words = unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), values.len()) };
    prefix_sum(words, start as u64, 0) as i64
}
