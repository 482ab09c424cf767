//! Inner loops over slices of one type: sum, minimum, maximum.
//!
//! Long slices go through several lanes so that the compiler can use vector instructions; short
//! ones are added from left to right, so that small sums of floats have InfluxDB's very digits.

use std::ops::Add;

use codec::kernels::{
    max_interleaved_f64, max_interleaved_i64, max_interleaved_u64, min_interleaved_f64,
    min_interleaved_i64, min_interleaved_u64, sum_interleaved_f64, sum_interleaved_i64,
    sum_interleaved_u64,
};
use model::Bitmap;

/// Slices shorter than this are summed from left to right.
pub(crate) const SEQUENTIAL_MAX: usize = 256;
const LANES: usize = 8;
/// Fewer values than this go through so many lanes.
const FEW: usize = 24;
const FEW_LANES: usize = 4;

/// A number that totals are kept of.
pub(crate) trait Number: Copy + PartialOrd + Default + Send {
    /// Sum; integers wrap.
    fn plus(self, other: Self) -> Self;

    /// Adds values to as many as there are lanes in turns.
    fn sum_interleaved(values: &[Self], lanes: &mut [Self]);

    /// The same of the lesser of two.
    fn min_interleaved(values: &[Self], lanes: &mut [Self]);

    /// The same of the greater of two.
    fn max_interleaved(values: &[Self], lanes: &mut [Self]);
}

macro_rules! number {
    ($type:ty, $plus:expr, $sum:ident, $min:ident, $max:ident) => {
        impl Number for $type {
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }

            fn sum_interleaved(values: &[Self], lanes: &mut [Self]) {
                $sum(values, lanes);
            }

            fn min_interleaved(values: &[Self], lanes: &mut [Self]) {
                $min(values, lanes);
            }

            fn max_interleaved(values: &[Self], lanes: &mut [Self]) {
                $max(values, lanes);
            }
        }
    };
}

number!(f64, f64::add, sum_interleaved_f64, min_interleaved_f64, max_interleaved_f64);
number!(i64, i64::wrapping_add, sum_interleaved_i64, min_interleaved_i64, max_interleaved_i64);
number!(u64, u64::wrapping_add, sum_interleaved_u64, min_interleaved_u64, max_interleaved_u64);

/// The sum of `values`.
pub(crate) fn sum<T: Number>(values: &[T]) -> T {
    if values.len() < SEQUENTIAL_MAX {
        return values.iter().fold(T::default(), |sum, v| sum.plus(*v));
    }
    let mut lanes = [T::default(); LANES];
    let chunks = values.chunks_exact(LANES);
    let tail = chunks.remainder();
    for chunk in chunks {
        for (lane, v) in lanes.iter_mut().zip(chunk) {
            *lane = lane.plus(*v);
        }
    }
    lanes.iter().chain(tail).fold(T::default(), |sum, v| sum.plus(*v))
}

/// The smallest of `values`, which are not empty.
pub(crate) fn min<T: Number>(values: &[T]) -> T {
    best(values, |v, best| v < best)
}

/// The largest of `values`, which are not empty.
pub(crate) fn max<T: Number>(values: &[T]) -> T {
    best(values, |v, best| v > best)
}

#[inline(always)]
fn best<T: Number>(values: &[T], wins: impl Fn(T, T) -> bool) -> T {
    // Lanes have to be filled and compared with one another: few values are compared in fewer.
    if values.len() < FEW {
        best_in_lanes::<T, FEW_LANES>(values, wins)
    } else {
        best_in_lanes::<T, LANES>(values, wins)
    }
}

/// What is no number is picked if it is the first value, as in InfluxDB, and never else.
#[inline(always)]
fn best_in_lanes<T: Number, const LANES: usize>(values: &[T], wins: impl Fn(T, T) -> bool) -> T {
    let pick = |best: T, v: T| if wins(v, best) { v } else { best };
    let mut lanes = [values[0]; LANES];
    let (chunks, tail) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, v) in lanes.iter_mut().zip(chunk) {
            *lane = pick(*lane, *v);
        }
    }
    let best = lanes[1..].iter().fold(lanes[0], |best, v| pick(best, *v));
    tail.iter().fold(best, |best, v| pick(best, *v))
}

/// Calls `visit` with each maximal stretch of `start..end` whose rows have a value.
pub(crate) fn valid_stretches(
    validity: Option<&Bitmap>,
    start: usize,
    end: usize,
    mut visit: impl FnMut(usize, usize),
) {
    let Some(validity) = validity else {
        visit(start, end);
        return;
    };
    let mut at = start;
    while let Some(from) = validity.first_one_in(at..end) {
        let to = first_gap(validity, from, end).unwrap_or(end);
        visit(from, to);
        at = to;
    }
}

/// The first row in `at..end` without a value.
fn first_gap(bits: &Bitmap, mut at: usize, end: usize) -> Option<usize> {
    while at < end {
        let word = !bits.words()[at / 64] >> (at % 64);
        if word != 0 {
            let found = at + word.trailing_zeros() as usize;
            return (found < end).then_some(found);
        }
        at = (at / 64 + 1) * 64;
    }
    None
}

/// The first row of `start..end` that has a value.
pub(crate) fn first_valid(validity: Option<&Bitmap>, start: usize, end: usize) -> Option<usize> {
    match validity {
        None => (start < end).then_some(start),
        Some(bits) => bits.first_one_in(start..end),
    }
}

/// The last row of `start..end` that has a value.
pub(crate) fn last_valid(validity: Option<&Bitmap>, start: usize, end: usize) -> Option<usize> {
    match validity {
        None => (start < end).then(|| end - 1),
        Some(bits) => bits.last_one_in(start..end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lanes_agree_with_folds(values in prop::collection::vec(any::<i64>(), 1..600)) {
            prop_assert_eq!(sum(&values), values.iter().fold(0, |s: i64, v| s.wrapping_add(*v)));
            prop_assert_eq!(min(&values), *values.iter().min().unwrap());
            prop_assert_eq!(max(&values), *values.iter().max().unwrap());
            let floats: Vec<f64> = values.iter().map(|v| (v % 1000) as f64).collect();
            prop_assert_eq!(sum(&floats), floats.iter().sum::<f64>());
            prop_assert_eq!(min(&floats), floats.iter().copied().fold(f64::INFINITY, f64::min));
        }

        #[test]
        fn what_is_no_number_counts_in_front_only(
            values in prop::collection::vec(prop::option::weighted(0.7, -9i8..9), 1..60),
        ) {
            let floats: Vec<f64> = values.iter().map(|v| v.map_or(f64::NAN, f64::from)).collect();
            let one_by_one = |wins: fn(&f64, &f64) -> bool| {
                floats[1..].iter().fold(floats[0], |best, v| if wins(v, &best) { *v } else { best })
            };
            let same = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan();
            prop_assert!(same(min(&floats), one_by_one(f64::lt)));
            prop_assert!(same(max(&floats), one_by_one(f64::gt)));
        }

        #[test]
        fn stretches_cover_the_valid_rows(
            bits in prop::collection::vec(any::<bool>(), 0..200),
            cut in any::<prop::sample::Index>(),
        ) {
            let map: Bitmap = bits.iter().copied().collect();
            let start = cut.index(bits.len() + 1);
            let mut got = Vec::new();
            valid_stretches(Some(&map), start, bits.len(), |a, b| got.extend(a..b));
            let want: Vec<usize> = (start..bits.len()).filter(|at| bits[*at]).collect();
            prop_assert_eq!(first_valid(Some(&map), start, bits.len()), want.first().copied());
            prop_assert_eq!(last_valid(Some(&map), start, bits.len()), want.last().copied());
            prop_assert_eq!(got, want);
        }
    }
}
