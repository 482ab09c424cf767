//! Comparing packed values with a scalar in the width they have, or what their sums are, without writing either to memory.

#[cfg(target_arch = "x86_64")]
use super::x86;
use super::{packed_len, unpack_at};
use crate::kernels::Comparison;
use crate::simd::{SimdLevel, multiversion};

/// The most values that are compared at once.
pub(crate) const COMPARED_MAX: usize = 512;

/// A bit for each of some values, the first in the lowest bit of the first word.
pub(crate) type Bits = [u64; COMPARED_MAX / 64];

/// Which of the first `n` values stand to `scalar` as asked; bits behind them are undefined.
///
/// # Panics
/// If these are more than [`COMPARED_MAX`], or the stream is shorter.
pub(crate) fn compare_at(
    level: SimdLevel,
    bytes: &[u8],
    (n, width): (usize, u32),
    comparison: Comparison,
    scalar: u64,
) -> Bits {
    assert!(n <= COMPARED_MAX && bytes.len() >= packed_len(n, width), "BUG: {n} values packed");
    #[cfg(target_arch = "x86_64")]
    if level == SimdLevel::Avx512
        && (1..=8).contains(&width)
        && let Ok(scalar) = u8::try_from(scalar)
    {
        return x86::compare::bytes(bytes, (n, width), comparison, scalar);
    }
    let mut bits = Bits::default();
    let mut values = [0; 64];
    for (first, word) in (0..n).step_by(64).zip(&mut bits) {
        let values = &mut values[..64.min(n - first)];
        unpack_at(level, bytes, first, width, values);
        *word = word_at(level, values, comparison, scalar);
    }
    bits
}

// A bit for each of at most 64 values.
multiversion! {
    fn / word_at(values: &[u64], comparison: Comparison, scalar: u64) -> u64 {
        let holds = |value: &u64| u64::from(comparison.holds(value.cmp(&scalar)));
        values.iter().rev().fold(0, |word, value| word << 1 | holds(value))
    }
}

/// Differences are this wide at most, and what is added to each of them is this far from zero at most, for
/// [`compare_running_at`]: no sum of [`COMPARED_MAX`] is 2^30 or more.
const RUNNING_WIDTH_MAX: u32 = 20;
const RUNNING_STEP_MAX: i64 = 1 << 20;

/// Which of the sums of the first `n` values, `step` added to each, stand to `scalar` as asked; bits behind them are undefined.
/// `None`: this processor, or the values, are not for that.
///
/// # Panics
/// As [`compare_at`].
pub(crate) fn compare_running_at(
    level: SimdLevel,
    bytes: &[u8],
    (n, width): (usize, u32),
    step: i64,
    comparison: Comparison,
    scalar: i128,
) -> Option<Bits> {
    assert!(n <= COMPARED_MAX && bytes.len() >= packed_len(n, width), "BUG: {n} values packed");
    let steps = -RUNNING_STEP_MAX..=RUNNING_STEP_MAX;
    #[cfg(target_arch = "x86_64")]
    if level == SimdLevel::Avx512
        && (1..=RUNNING_WIDTH_MAX).contains(&width)
        && steps.contains(&step)
    {
        // All sums are on the same side of what is beyond these.
        let scalar = scalar.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        return Some(x86::compare::sums(bytes, (n, width), step as i32, comparison, scalar));
    }
    None
}
