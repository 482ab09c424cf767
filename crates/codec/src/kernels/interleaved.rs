//! Sums and extremes of values that belong to as many as there are lanes, in turns: the first to the first lane, and after
//! the last lane's the next to the first again.
//!
//! Each lane is folded from left to right, so that the same values give the same bits on every machine.

use crate::simd::multiversion;

macro_rules! fold_interleaved {
    ($type:ty, $name:ident / $at:ident, $what:literal, $fold:expr) => {
        multiversion! {
            #[doc = concat!("Folds each lane's values into it: ", $what, ".")]
            ///
            /// # Panics
            /// If there are values and no lanes.
            pub fn $name / $at(values: &[$type], lanes: &mut [$type]) {
                assert!(values.is_empty() || !lanes.is_empty(), "BUG: no lanes");
                for values in values.chunks(lanes.len().max(1)) {
                    for (lane, value) in lanes.iter_mut().zip(values) {
                        *lane = $fold(*lane, *value);
                    }
                }
            }
        }
    };
}

macro_rules! fold_least_and_greatest {
    ($type:ty, $min:ident / $min_at:ident, $max:ident / $max_at:ident) => {
        fold_interleaved!(
            $type,
            $min / $min_at,
            "the lesser of two, the lane's if they do not compare",
            |lane, value| if value < lane { value } else { lane }
        );
        fold_interleaved!(
            $type,
            $max / $max_at,
            "the greater of two, the lane's if they do not compare",
            |lane, value| if value > lane { value } else { lane }
        );
    };
}

fold_interleaved!(i64, sum_interleaved_i64 / sum_i64_at, "wrapping sums", i64::wrapping_add);
fold_interleaved!(u64, sum_interleaved_u64 / sum_u64_at, "wrapping sums", u64::wrapping_add);
fold_interleaved!(f64, sum_interleaved_f64 / sum_f64_at, "sums", |lane: f64, value| lane + value);
fold_least_and_greatest!(i64, min_interleaved_i64 / min_i64_at, max_interleaved_i64 / max_i64_at);
fold_least_and_greatest!(u64, min_interleaved_u64 / min_u64_at, max_interleaved_u64 / max_u64_at);
fold_least_and_greatest!(f64, min_interleaved_f64 / min_f64_at, max_interleaved_f64 / max_f64_at);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simd::SimdLevel;

    /// Each value folded into its lane, by definition.
    fn folded<T: Copy>(values: &[T], lanes: &[T], fold: impl Fn(T, T) -> T) -> Vec<T> {
        let mut folded = lanes.to_vec();
        for (at, value) in values.iter().enumerate() {
            let lane = &mut folded[at % lanes.len()];
            *lane = fold(*lane, *value);
        }
        folded
    }

    proptest! {
        #[test]
        fn values_are_folded_into_their_lanes(
            words in prop::collection::vec(
                prop_oneof![any::<u64>(), 0u64..9, Just(f64::NAN.to_bits())], 0..400),
            lanes in prop::collection::vec(any::<u64>(), 1..90),
        ) {
            macro_rules! check {
                ($fold:expr, $at:ident, $values:expr, $lanes:expr, $bits:expr) => {
                    let expected: Vec<u64> =
                        folded(&$values, &$lanes, $fold).into_iter().map($bits).collect();
                    for level in SimdLevel::available() {
                        let mut found = $lanes.clone();
                        $at(level, &$values, &mut found);
                        let found: Vec<u64> = found.into_iter().map($bits).collect();
                        prop_assert_eq!(&found, &expected, "{:?}", level);
                    }
                };
            }
            let integers = |words: &[u64]| words.iter().map(|word| *word as i64).collect::<Vec<i64>>();
            let (v, l) = (integers(&words), integers(&lanes));
            check!(i64::wrapping_add, sum_i64_at, v, l, i64::cast_unsigned);
            check!(|a: i64, b| a.min(b), min_i64_at, v, l, i64::cast_unsigned);
            check!(|a: i64, b| a.max(b), max_i64_at, v, l, i64::cast_unsigned);
            check!(u64::wrapping_add, sum_u64_at, words, lanes, |word| word);
            check!(|a: u64, b| a.min(b), min_u64_at, words, lanes, |word| word);
            check!(|a: u64, b| a.max(b), max_u64_at, words, lanes, |word| word);
            let floats =
                |words: &[u64]| words.iter().map(|word| f64::from_bits(*word)).collect::<Vec<f64>>();
            let (v, l) = (floats(&words), floats(&lanes));
            // What is no number may have any bits after it was added.
            let bits = |sum: f64| if sum.is_nan() { f64::NAN.to_bits() } else { sum.to_bits() };
            check!(|a: f64, b| a + b, sum_f64_at, v, l, bits);
            check!(|a: f64, b| if b < a { b } else { a }, min_f64_at, v, l, f64::to_bits);
            check!(|a: f64, b| if b > a { b } else { a }, max_f64_at, v, l, f64::to_bits);
        }
    }
}
