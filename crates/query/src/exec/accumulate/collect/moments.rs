//! Deviations of values that are not kept: how many there were, their mean, and the squares of their distances from it.
//!
//! Two such sets are put together by the formula of T. F. Chan, G. H. Golub and R. J. LeVeque ("Updating Formulae and a
//! Pairwise Algorithm for Computing Sample Variances", Stanford, STAN-CS-79-773, 1979); of values that are at hand the
//! mean comes first, then the squares, so that nothing large is taken from something large.

use std::ops::Range;

use model::Values;

use crate::functions::values::Number;

/// Values added side by side: a sum need not wait for the one before it.
const LANES: usize = 8;

/// What is known of some values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moments {
    pub(super) count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// Of values, at least one.
    pub(super) fn of<T: Number>(values: &[T]) -> Self {
        let count = values.len();
        let mean = sum(values, T::to_f64) / count as f64;
        let square = |value: T| {
            let distance = value.to_f64() - mean;
            distance * distance
        };
        Self { count: count as u64, mean, squares: sum(values, square) }
    }

    /// Of some numbers of a column, at least one.
    pub(super) fn of_rows(values: &Values, rows: Range<usize>) -> Self {
        match values {
            Values::Float(v) => Self::of(&v[rows]),
            Values::Integer(v) => Self::of(&v[rows]),
            Values::Unsigned(v) => Self::of(&v[rows]),
            other => panic!("BUG: the deviation of {other:?}"),
        }
    }

    /// Of both, if there are any.
    pub(super) fn with(self, other: Self) -> Self {
        if self.count == 0 {
            return other;
        }
        let count = self.count + other.count;
        let share = other.count as f64 / count as f64;
        let apart = other.mean - self.mean;
        let between = apart * apart * (self.count as f64 * share);
        Self {
            count,
            mean: self.mean + apart * share,
            squares: self.squares + other.squares + between,
        }
    }

    /// The root of the mean squared distance from the mean, over one less than the values; `None` for fewer than two.
    pub(super) fn deviation(self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / (self.count - 1) as f64).sqrt())
    }
}

fn sum<T: Copy>(values: &[T], number: impl Fn(T) -> f64) -> f64 {
    let mut lanes = [0.0; LANES];
    let (chunks, tail) = values.as_chunks::<LANES>();
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane += number(*value));
    }
    lanes.into_iter().chain(tail.iter().map(|value| number(*value))).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::functions::values::stddev;

    proptest! {
        #[test]
        fn parts_put_together_are_the_whole(
            parts in prop::collection::vec(prop::collection::vec(-1000i64..1000, 1..40), 1..8),
            offset in prop_oneof![Just(0i64), Just(1 << 20)],
        ) {
            let parts: Vec<Vec<i64>> =
                parts.into_iter().map(|part| part.iter().map(|v| v + offset).collect()).collect();
            let all = parts.iter().fold(Moments::default(), |all, part| all.with(Moments::of(part)));
            match (all.deviation(), stddev(&parts.concat())) {
                (Some(a), Some(b)) => prop_assert!((a - b).abs() <= 1e-9 * b.max(1.0), "{a} {b}"),
                (a, b) => prop_assert_eq!(a, b),
            }
        }
    }
}
