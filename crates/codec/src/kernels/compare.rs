//! Comparing a slice with a scalar, or with another slice.

use std::cmp::Ordering;

use crate::simd::{SimdLevel, multiversion};

/// How a value stands to the scalar, or to the value of the other slice.
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

impl Comparison {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 6] = [
        Self::Equal,
        Self::NotEqual,
        Self::Less,
        Self::LessOrEqual,
        Self::Greater,
        Self::GreaterOrEqual,
    ];

    /// The one that holds for the orders that `holds` says.
    ///
    /// # Panics
    /// If it holds for none of them, or for all.
    #[must_use]
    pub fn of(holds: impl Fn(Ordering) -> bool) -> Self {
        match [Ordering::Less, Ordering::Equal, Ordering::Greater].map(holds) {
            [false, true, false] => Self::Equal,
            [true, false, true] => Self::NotEqual,
            [true, false, false] => Self::Less,
            [true, true, false] => Self::LessOrEqual,
            [false, false, true] => Self::Greater,
            [false, true, true] => Self::GreaterOrEqual,
            all @ ([false, false, false] | [true, true, true]) => {
                panic!("BUG: a comparison whose results are {all:?}")
            }
        }
    }

    /// Whether it holds of a value that stands so to the scalar.
    #[must_use]
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
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

/// One word of results for each 64 pairs.
#[inline]
fn words_of_pairs<T: Copy>(a: &[T], b: &[T], out: &mut [u64], test: impl Fn(T, T) -> bool) {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<64>(), b.as_chunks::<64>());
    for ((slot, a), b) in out.iter_mut().zip(a).zip(b) {
        *slot = word_of_pairs(a, b, &test);
    }
    if let (false, Some(slot)) = (a_rest.is_empty(), out.get_mut(a.len())) {
        *slot = word_of_pairs(a_rest, b_rest, &test);
    }
}

#[inline]
fn word_of_pairs<T: Copy>(a: &[T], b: &[T], test: &impl Fn(T, T) -> bool) -> u64 {
    let mut word = 0;
    for (bit, (a, b)) in a.iter().zip(b).enumerate() {
        word |= u64::from(test(*a, *b)) << bit;
    }
    word
}

macro_rules! pair_comparisons {
    ($(#[$meta:meta])* $type:ty, $name:ident / $level:ident, $at:ident) => {
        $(#[$meta])*
        ///
        /// # Panics
        /// If the slices differ in length.
        pub fn $name(a: &[$type], comparison: Comparison, b: &[$type], out: &mut Vec<u64>) {
            $level(SimdLevel::detect(), a, comparison, b, out);
        }

        pub(crate) fn $level(
            level: SimdLevel,
            a: &[$type],
            comparison: Comparison,
            b: &[$type],
            out: &mut Vec<u64>,
        ) {
            assert_eq!(a.len(), b.len(), "BUG: pairs of slices of two lengths");
            let before = out.len();
            out.resize(before + a.len().div_ceil(64), 0);
            $at(level, a, comparison, b, &mut out[before..]);
        }

        multiversion! {
            fn / $at(a: &[$type], comparison: Comparison, b: &[$type], out: &mut [u64]) {
                match comparison {
                    Comparison::Equal => words_of_pairs(a, b, out, |a, b| a == b),
                    Comparison::NotEqual => words_of_pairs(a, b, out, |a, b| a != b),
                    Comparison::Less => words_of_pairs(a, b, out, |a, b| a < b),
                    Comparison::LessOrEqual => words_of_pairs(a, b, out, |a, b| a <= b),
                    Comparison::Greater => words_of_pairs(a, b, out, |a, b| a > b),
                    Comparison::GreaterOrEqual => words_of_pairs(a, b, out, |a, b| a >= b),
                }
            }
        }
    };
}

pair_comparisons!(
    /// Appends a bitmap of the pairs whose first value stands to the second as asked.
    i64,
    compare_pairs_i64 / compare_pairs_i64_level,
    compare_pairs_i64_at
);
pair_comparisons!(
    /// Appends a bitmap of the pairs whose first value stands to the second as asked.
    u64,
    compare_pairs_u64 / compare_pairs_u64_level,
    compare_pairs_u64_at
);
pair_comparisons!(
    /// Appends a bitmap of the pairs whose first value stands to the second as asked, as IEEE 754 has it.
    f64,
    compare_pairs_f64 / compare_pairs_f64_level,
    compare_pairs_f64_at
);
