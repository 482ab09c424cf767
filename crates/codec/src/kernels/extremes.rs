//! Least and greatest value, and where each occurs first.

use super::sum::spread;
use crate::{float::as_bits, int::as_u64, simd::multiversion};

/// The extremes of a slice and the index of the first value equal to each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MinMax<T> {
    /// The least value.
    pub min: T,
    /// Where it occurs first.
    pub min_index: usize,
    /// The greatest value.
    pub max: T,
    /// Where it occurs first.
    pub max_index: usize,
}

/// Looks for both values, which occur.
#[inline]
fn locate<T: Copy + PartialEq>(values: &[T], min: T, max: T) -> Option<MinMax<T>> {
    let min_index = position(values, min)?;
    let max_index = position(values, max)?;
    Some(MinMax { min: values[min_index], min_index, max: values[max_index], max_index })
}

/// The first index of a value; whole chunks are compared without a branch a value.
#[inline]
fn position<T: Copy + PartialEq>(values: &[T], wanted: T) -> Option<usize> {
    let (chunks, _) = values.as_chunks::<32>();
    let mut start = 0;
    for chunk in chunks {
        if chunk.iter().fold(false, |found, value| found | (*value == wanted)) {
            break;
        }
        start += 32;
    }
    values[start..].iter().position(|value| *value == wanted).map(|index| start + index)
}

/// The values of a chunk, or `neutral` where the bit is not set, as bits.
#[inline]
fn masked(chunk: &[u64], word: u64, neutral: u64) -> [u64; 64] {
    let mut out = [neutral; 64];
    for (bit, (slot, value)) in out.iter_mut().zip(chunk).enumerate() {
        let keep = spread(word, bit);
        *slot = value & keep | neutral & !keep;
    }
    out
}

macro_rules! integer_extremes {
    ($type:ty, $bits:expr, $name:ident / $at:ident, $masked:ident / $masked_at:ident) => {
        multiversion! {
            /// The extremes, `None` of an empty slice.
            pub fn $name / $at(values: &[$type]) -> Option<MinMax<$type>> {
                let (mut min, mut max) = (<$type>::MAX, <$type>::MIN);
                for &value in values {
                    min = min.min(value);
                    max = max.max(value);
                }
                locate(values, min, max)
            }
        }

        multiversion! {
            /// The extremes of the values whose bit is set, `None` if there are none; indices count
            /// all values.
            ///
            /// # Panics
            /// If there are fewer bits than values.
            pub fn $masked / $masked_at(values: &[$type], mask: &[u64]) -> Option<MinMax<$type>> {
                assert!(mask.len() >= values.len().div_ceil(64), "BUG: mask shorter than values");
                let (mut min, mut max) = (<$type>::MAX, <$type>::MIN);
                for (chunk, &word) in $bits(values).chunks(64).zip(mask) {
                    for value in masked(chunk, word, <$type>::MAX as u64) {
                        min = min.min(value as $type);
                    }
                    for value in masked(chunk, word, <$type>::MIN as u64) {
                        max = max.max(value as $type);
                    }
                }
                locate_masked(values, mask, min, max)
            }
        }
    };
}

integer_extremes!(
    i64,
    as_u64,
    min_max_i64 / min_max_i64_at,
    min_max_i64_masked / min_max_i64_masked_at
);
integer_extremes!(
    u64,
    std::convert::identity,
    min_max_u64 / min_max_u64_at,
    min_max_u64_masked / min_max_u64_masked_at
);

#[inline]
fn locate_masked<T: Copy + PartialEq>(
    values: &[T],
    mask: &[u64],
    min: T,
    max: T,
) -> Option<MinMax<T>> {
    let find = |wanted: T| {
        values.chunks(64).zip(mask).enumerate().find_map(|(i, (chunk, &word))| {
            let mut equal = 0u64;
            for (bit, value) in chunk.iter().enumerate() {
                equal |= u64::from(*value == wanted) << bit;
            }
            let hits = equal & word;
            (hits != 0).then(|| i * 64 + hits.trailing_zeros() as usize)
        })
    };
    let min_index = find(min)?;
    let max_index = find(max)?;
    Some(MinMax { min: values[min_index], min_index, max: values[max_index], max_index })
}

multiversion! {
    /// The extremes of the values that are not NaN, `None` if there are none.
    ///
    /// Zeros of both signs are equal: the first of them is reported, with its sign.
    pub fn min_max_f64 / min_max_f64_at(values: &[f64]) -> Option<MinMax<f64>> {
        let (mut min, mut max) = ([f64::INFINITY; 32], [f64::NEG_INFINITY; 32]);
        let (chunks, rest) = values.as_chunks::<32>();
        for chunk in chunks {
            for ((min, max), &value) in min.iter_mut().zip(&mut max).zip(chunk) {
                // Comparisons with NaN are false, which keeps what is there.
                *min = if value < *min { value } else { *min };
                *max = if value > *max { value } else { *max };
            }
        }
        for &value in rest {
            min[0] = if value < min[0] { value } else { min[0] };
            max[0] = if value > max[0] { value } else { max[0] };
        }
        let min = min.into_iter().fold(f64::INFINITY, f64::min);
        let max = max.into_iter().fold(f64::NEG_INFINITY, f64::max);
        locate(values, min, max)
    }
}

multiversion! {
    /// The extremes of the values that are not NaN and whose bit is set, `None` if there are none;
    /// indices count all values.
    ///
    /// # Panics
    /// If there are fewer bits than values.
    pub fn min_max_f64_masked / min_max_f64_masked_at(
        values: &[f64], mask: &[u64],
    ) -> Option<MinMax<f64>> {
        assert!(mask.len() >= values.len().div_ceil(64), "BUG: mask shorter than values");
        let (mut min, mut max) = ([f64::INFINITY; 32], [f64::NEG_INFINITY; 32]);
        for (chunk, &word) in as_bits(values).chunks(64).zip(mask) {
            // A NaN compares false, which keeps what is there.
            for half in masked(chunk, word, f64::NAN.to_bits()).as_chunks::<32>().0 {
                for ((min, max), &bits) in min.iter_mut().zip(&mut max).zip(half) {
                    let value = f64::from_bits(bits);
                    *min = if value < *min { value } else { *min };
                    *max = if value > *max { value } else { *max };
                }
            }
        }
        let min = min.into_iter().fold(f64::INFINITY, f64::min);
        let max = max.into_iter().fold(f64::NEG_INFINITY, f64::max);
        locate_masked(values, mask, min, max)
    }
}
