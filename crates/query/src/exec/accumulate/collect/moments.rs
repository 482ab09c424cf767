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

    /// Of the numbers of a column by slot: each is in one, and `counts` says how many are in which.
    pub(super) fn of_slots(values: &Values, slots: &[u32], counts: &[u32]) -> Vec<Self> {
        match values {
            Values::Float(v) => Self::scattered(v, slots, counts),
            Values::Integer(v) => Self::scattered(v, slots, counts),
            Values::Unsigned(v) => Self::scattered(v, slots, counts),
            other => panic!("BUG: the deviation of {other:?}"),
        }
    }

    fn scattered<T: Number>(values: &[T], slots: &[u32], counts: &[u32]) -> Vec<Self> {
        let mut means = vec![0.0; counts.len()];
        for (value, slot) in values.iter().zip(slots) {
            means[*slot as usize] += value.to_f64();
        }
        means.iter_mut().zip(counts).for_each(|(sum, count)| *sum /= f64::from(*count));
        let mut squares = vec![0.0; counts.len()];
        for (value, slot) in values.iter().zip(slots) {
            let distance = value.to_f64() - means[*slot as usize];
            squares[*slot as usize] += distance * distance;
        }
        let of_slot = |((count, mean), squares): ((&u32, f64), f64)| match *count {
            0 => Self::default(),
            count => Self { count: count.into(), mean, squares },
        };
        counts.iter().zip(means).zip(squares).map(of_slot).collect()
    }

    /// Of both, if there are any.
    pub(super) fn with(self, other: Self) -> Self {
        if self.count == 0 || other.count == 0 {
            return if self.count == 0 { other } else { self };
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
    use crate::functions::deviation::stddev;

    proptest! {
        #[test]
        fn scattered_values_are_those_of_their_slots(
            rows in prop::collection::vec((-1000i64..1000, 0u32..5), 0..80),
        ) {
            let (values, slots): (Vec<i64>, Vec<u32>) = rows.iter().copied().unzip();
            let mut counts = [0; 6];
            slots.iter().for_each(|slot| counts[*slot as usize] += 1);
            let found = Moments::of_slots(&Values::Integer(values), &slots, &counts);
            for (slot, found) in (0..).zip(found) {
                let of = rows.iter().filter(|row| row.1 == slot).map(|row| row.0);
                let of: Vec<i64> = of.collect();
                prop_assert_eq!(found.count, of.len() as u64);
                match (found.deviation(), stddev(&of)) {
                    (Some(a), Some(b)) => prop_assert!((a - b).abs() <= 1e-9 * b.max(1.0), "{a} {b}"),
                    (a, b) => prop_assert_eq!(a, b),
                }
            }
        }

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
