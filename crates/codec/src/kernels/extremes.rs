//! Least and greatest value, and where each occurs first.

use super::select::filter_level;
use crate::{
    float::{as_bits, as_f64},
    int::{as_i64, as_u64},
    simd::{SimdLevel, multiversion},
};

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

/// Looks for both values; `None` when they do not occur because there are no values.
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

/// As `locate`, among the values whose bit is set.
fn locate_masked<T: Copy + PartialEq>(
    values: &[T],
    mask: &[u64],
    min: T,
    max: T,
) -> Option<MinMax<T>> {
    let find = |wanted: T| {
        values.chunks(64).zip(mask).enumerate().find_map(|(i, (chunk, &word))| {
            // Most chunks do not have it: ask that first.
            if !chunk.iter().fold(false, |found, value| found | (*value == wanted)) {
                return None;
            }
            let hit = |bit: &usize| chunk[*bit] == wanted && word >> bit & 1 == 1;
            (0..chunk.len()).find(hit).map(|bit| i * 64 + bit)
        })
    };
    let min_index = find(min)?;
    let max_index = find(max)?;
    Some(MinMax { min: values[min_index], min_index, max: values[max_index], max_index })
}

macro_rules! integer_extremes {
    ($type:ty, $to_bits:expr, $from_bits:expr, $bounds:ident, $name:ident / $at:ident,
     $masked:ident / $masked_at:ident) => {
        multiversion! {
            fn / $bounds(values: &[$type]) -> ($type, $type) {
                let (mut min, mut max) = (<$type>::MAX, <$type>::MIN);
                for &value in values {
                    min = min.min(value);
                    max = max.max(value);
                }
                (min, max)
            }
        }

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

        /// The extremes of the values whose bit is set, `None` if there are none; indices count all
        /// values.
        ///
        /// # Panics
        /// If there are fewer bits than values.
        #[must_use]
        pub fn $masked(values: &[$type], mask: &[u64]) -> Option<MinMax<$type>> {
            $masked_at(SimdLevel::detect(), values, mask)
        }

        pub(super) fn $masked_at(
            level: SimdLevel,
            values: &[$type],
            mask: &[u64],
        ) -> Option<MinMax<$type>> {
            let (mut min, mut max) = (<$type>::MAX, <$type>::MIN);
            filter_level(level, $to_bits(values), mask, |picked| {
                let (low, high) = $bounds(level, $from_bits(picked));
                min = min.min(low);
                max = max.max(high);
            });
            locate_masked(values, mask, min, max)
        }
    };
}

integer_extremes!(
    i64,
    as_u64,
    as_i64,
    bounds_i64_at,
    min_max_i64 / min_max_i64_at,
    min_max_i64_masked / min_max_i64_masked_at
);
integer_extremes!(
    u64,
    std::convert::identity,
    std::convert::identity,
    bounds_u64_at,
    min_max_u64 / min_max_u64_at,
    min_max_u64_masked / min_max_u64_masked_at
);

/// Infinities of the wrong sign when all values are NaN.
// Must become part of each instruction set's version of its caller.
#[inline(always)]
#[allow(clippy::inline_always)]
fn bounds_f64<const LANES: usize>(values: &[f64]) -> (f64, f64) {
    let (mut min, mut max) = ([f64::INFINITY; LANES], [f64::NEG_INFINITY; LANES]);
    let (chunks, rest) = values.as_chunks::<LANES>();
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
    (
        min.into_iter().fold(f64::INFINITY, f64::min),
        max.into_iter().fold(f64::NEG_INFINITY, f64::max),
    )
}

multiversion! {
    fn / bounds_f64_at(values: &[f64]) -> (f64, f64) {
        bounds_f64::<8>(values)
    }
}

multiversion! {
    /// The extremes of the values that are not NaN, `None` if there are none.
    ///
    /// Zeros of both signs are equal: the first of them is reported, with its sign.
    pub fn min_max_f64 / min_max_f64_at(values: &[f64]) -> Option<MinMax<f64>> {
        let (min, max) = bounds_f64::<32>(values);
        locate(values, min, max)
    }
}

/// The extremes of the values that are not NaN and whose bit is set, `None` if there are none;
/// indices count all values.
///
/// # Panics
/// If there are fewer bits than values.
#[must_use]
pub fn min_max_f64_masked(values: &[f64], mask: &[u64]) -> Option<MinMax<f64>> {
    min_max_f64_masked_at(SimdLevel::detect(), values, mask)
}

pub(super) fn min_max_f64_masked_at(
    level: SimdLevel,
    values: &[f64],
    mask: &[u64],
) -> Option<MinMax<f64>> {
    let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
    filter_level(level, as_bits(values), mask, |picked| {
        let (low, high) = bounds_f64_at(level, as_f64(picked));
        min = min.min(low);
        max = max.max(high);
    });
    locate_masked(values, mask, min, max)
}
