//! Comparing a slice with a scalar.

use crate::simd::{SimdLevel, multiversion};

/// How a value stands to the scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `value == scalar`
    Equal,
    /// `value != scalar`
    NotEqual,
    /// `value < scalar`
    Less,
    /// `value <= scalar`
    LessOrEqual,
    /// `value > scalar`
    Greater,
    /// `value >= scalar`
    GreaterOrEqual,
}

/// One word of results for each 64 values.
#[inline]
fn words_of<T: Copy>(values: &[T], out: &mut [u64], test: impl Fn(T) -> bool) {
    let (chunks, rest) = values.as_chunks::<64>();
    for (slot, chunk) in out.iter_mut().zip(chunks) {
        *slot = word_of(chunk, &test);
    }
    if let (false, Some(slot)) = (rest.is_empty(), out.get_mut(chunks.len())) {
        *slot = word_of(rest, &test);
    }
}

#[inline]
fn word_of<T: Copy>(chunk: &[T], test: &impl Fn(T) -> bool) -> u64 {
    let mut word = 0;
    for (bit, value) in chunk.iter().enumerate() {
        word |= u64::from(test(*value)) << bit;
    }
    word
}

macro_rules! comparisons {
    ($(#[$meta:meta])* $type:ty, $name:ident / $level:ident, $at:ident) => {
        $(#[$meta])*
        pub fn $name(
            values: &[$type],
            comparison: Comparison,
            scalar: $type,
            out: &mut Vec<u64>,
        ) {
            $level(SimdLevel::detect(), values, comparison, scalar, out);
        }

        pub(crate) fn $level(
            level: SimdLevel,
            values: &[$type],
            comparison: Comparison,
            scalar: $type,
            out: &mut Vec<u64>,
        ) {
            let before = out.len();
            out.resize(before + values.len().div_ceil(64), 0);
            $at(level, values, comparison, scalar, &mut out[before..]);
        }

        multiversion! {
            fn / $at(
                values: &[$type], comparison: Comparison, scalar: $type, out: &mut [u64],
            ) {
                match comparison {
                    Comparison::Equal => words_of(values, out, |v| v == scalar),
                    Comparison::NotEqual => words_of(values, out, |v| v != scalar),
                    Comparison::Less => words_of(values, out, |v| v < scalar),
                    Comparison::LessOrEqual => words_of(values, out, |v| v <= scalar),
                    Comparison::Greater => words_of(values, out, |v| v > scalar),
                    Comparison::GreaterOrEqual => words_of(values, out, |v| v >= scalar),
                }
            }
        }
    };
}

comparisons!(
    /// Appends a bitmap of the values that stand to `scalar` as asked.
    i64,
    compare_i64 / compare_i64_level,
    compare_i64_words_at
);
comparisons!(
    /// Appends a bitmap of the values that stand to `scalar` as asked.
    u64,
    compare_u64 / compare_u64_level,
    compare_u64_words_at
);
comparisons!(
    /// Appends a bitmap of the values that stand to `scalar` as asked.
    ///
    /// As IEEE 754 has it: NaN is unequal to everything and neither less nor greater, zeros of both
    /// signs are equal.
    f64,
    compare_f64 / compare_f64_level,
    compare_f64_words_at
);
