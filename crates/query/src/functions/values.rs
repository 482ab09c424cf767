//! Functions of all values of a group and window at once.

use std::cmp::Ordering;

use codec::kernels;
use model::Scalar;

/// A value with an order and an identity; both are total.
pub(crate) trait Value: Copy {
    /// Order by value.
    fn order(self, other: Self) -> Ordering;
    /// A number that orders as the value does.
    fn key(self) -> u64;
    /// The least and the greatest of some values; `None` if there are none, or one of them is no number.
    fn extremes(values: &[Self]) -> Option<(Self, Self)>;
}

impl Value for f64 {
    fn order(self, other: Self) -> Ordering {
        // NaN is never stored; total_cmp would tell -0 from 0.
        self.partial_cmp(&other).unwrap_or_else(|| self.total_cmp(&other))
    }
    fn key(self) -> u64 {
        // Adding zero makes the two zeros one.
        let bits = (self + 0.0).to_bits();
        // Of negative numbers larger bits are less.
        bits ^ ((bits.cast_signed() >> 63).cast_unsigned() | 1 << 63)
    }
    fn extremes(values: &[Self]) -> Option<(Self, Self)> {
        let are_numbers = !values.iter().fold(false, |found, value| found | value.is_nan());
        let found = kernels::min_max_f64(values).filter(|_| are_numbers);
        found.map(|found| (found.min, found.max))
    }
}

impl Value for i64 {
    fn order(self, other: Self) -> Ordering {
        self.cmp(&other)
    }
    fn key(self) -> u64 {
        self.cast_unsigned() ^ 1 << 63
    }
    fn extremes(values: &[Self]) -> Option<(Self, Self)> {
        kernels::min_max_i64(values).map(|found| (found.min, found.max))
    }
}

impl Value for u64 {
    fn order(self, other: Self) -> Ordering {
        self.cmp(&other)
    }
    fn key(self) -> u64 {
        self
    }
    fn extremes(values: &[Self]) -> Option<(Self, Self)> {
        kernels::min_max_u64(values).map(|found| (found.min, found.max))
    }
}

/// A number that means and distances can be computed of.
pub(crate) trait Number: Value {
    /// As a float.
    fn to_f64(self) -> f64;
    /// `self - other` as a float, computed in the type.
    fn distance(self, other: Self) -> f64;
    /// As a value of a result.
    fn scalar(self) -> Scalar;
}

impl Number for f64 {
    fn to_f64(self) -> f64 {
        self
    }
    fn distance(self, other: Self) -> f64 {
        self - other
    }
    fn scalar(self) -> Scalar {
        Scalar::Float(self)
    }
}

impl Number for i64 {
    fn to_f64(self) -> f64 {
        self as f64
    }
    fn distance(self, other: Self) -> f64 {
        self.wrapping_sub(other) as f64
    }
    fn scalar(self) -> Scalar {
        Scalar::Integer(self)
    }
}

impl Number for u64 {
    fn to_f64(self) -> f64 {
        self as f64
    }
    fn distance(self, other: Self) -> f64 {
        self.wrapping_sub(other) as f64
    }
    fn scalar(self) -> Scalar {
        Scalar::Unsigned(self)
    }
}

/// How often a value occurs, and when first and last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Occurrences {
    pub count: u64,
    pub first: i64,
    pub last: i64,
}

impl Occurrences {
    /// A single one.
    pub(crate) fn one(time: i64) -> Self {
        Self { count: 1, first: time, last: time }
    }

    /// Adds others of the same value.
    pub(crate) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }
}

/// Which of some values, from the smallest to the largest, is the most frequent one.
///
/// Of values that are equally frequent it is the smallest, unless a larger one, which occurs twice at least,
/// began before the smaller one occurred last: InfluxDB counts through the values in order, and gives up its
/// leader to one that comes level with it and began earlier.
pub(crate) fn mode(values: impl Iterator<Item = Occurrences>) -> Option<usize> {
    let mut best: Option<(usize, Occurrences)> = None;
    for (at, value) in values.enumerate() {
        let wins = best.is_none_or(|(_, best)| {
            let is_level = value.count == best.count && value.count > 1;
            value.count > best.count || (is_level && value.first <= best.last)
        });
        if wins {
            best = Some((at, value));
        }
    }
    best.map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The indexes sorted by value, then time, then index.
    fn sorted_by_value(values: &[i64], times: &[i64]) -> Vec<u32> {
        let mut order: Vec<u32> = (0..values.len() as u32).collect();
        order.sort_by_key(|at| (values[*at as usize], times[*at as usize]));
        order
    }

    /// InfluxDB's way: occurrences are counted one by one, in order of value and time.
    fn mode_by_counting(values: &[i64], times: &[i64]) -> Option<i64> {
        let order = sorted_by_value(values, times);
        let point = |at: &u32| (values[*at as usize], times[*at as usize]);
        let (first, time) = point(order.first()?);
        let (mut best, mut best_count, mut best_time) = (first, 0, time);
        let (mut run, mut run_count, mut run_time) = (first, 0, time);
        for (value, time) in order.iter().map(point) {
            if value != run {
                // A value is compared with the leader only from its second occurrence on.
                (run, run_count, run_time) = (value, 1, time);
                continue;
            }
            run_count += 1;
            if best_count > run_count || (best_count == run_count && run_time > best_time) {
                continue;
            }
            (best, best_count, best_time) = (value, run_count, time);
        }
        Some(best)
    }

    proptest! {
        #[test]
        fn the_mode_is_what_counting_one_by_one_finds(
            points in prop::collection::vec((-3i64..3, 0i64..12), 0..16),
        ) {
            let values: Vec<i64> = points.iter().map(|p| p.0).collect();
            let times: Vec<i64> = points.iter().map(|p| p.1).collect();
            let mut found = std::collections::BTreeMap::<i64, Occurrences>::new();
            for (value, time) in &points {
                let one = Occurrences::one(*time);
                found.entry(*value).and_modify(|all| all.add(one)).or_insert(one);
            }
            let best = mode(found.values().copied()).and_then(|at| found.keys().nth(at).copied());
            prop_assert_eq!(best, mode_by_counting(&values, &times));
        }
    }
}
