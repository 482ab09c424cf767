//! Functions of all values of a group and window at once.

use std::cmp::Ordering;

/// A value with an order and an identity; both are total.
pub(crate) trait Value: Copy {
    /// Order by value.
    fn order(self, other: Self) -> Ordering;
}

impl Value for f64 {
    fn order(self, other: Self) -> Ordering {
        // NaN is never stored; total_cmp would tell -0 from 0.
        self.partial_cmp(&other).unwrap_or_else(|| self.total_cmp(&other))
    }
}

impl Value for i64 {
    fn order(self, other: Self) -> Ordering {
        self.cmp(&other)
    }
}

impl Value for u64 {
    fn order(self, other: Self) -> Ordering {
        self.cmp(&other)
    }
}

impl Value for bool {
    fn order(self, other: Self) -> Ordering {
        self.cmp(&other)
    }
}

impl Value for &str {
    fn order(self, other: Self) -> Ordering {
        self.cmp(other)
    }
}

/// A number that means and distances can be computed of.
pub(crate) trait Number: Value {
    /// As a float.
    fn to_f64(self) -> f64;
    /// `self - other` as a float, computed in the type.
    fn distance(self, other: Self) -> f64;
}

impl Number for f64 {
    fn to_f64(self) -> f64 {
        self
    }
    fn distance(self, other: Self) -> f64 {
        self - other
    }
}

impl Number for i64 {
    fn to_f64(self) -> f64 {
        self as f64
    }
    fn distance(self, other: Self) -> f64 {
        self.wrapping_sub(other) as f64
    }
}

impl Number for u64 {
    fn to_f64(self) -> f64 {
        self as f64
    }
    fn distance(self, other: Self) -> f64 {
        self.wrapping_sub(other) as f64
    }
}

/// The middle value; of an even number of values the middle between the two.
pub(crate) fn median<T: Number>(values: &mut [T]) -> Option<f64> {
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let even = values.len().is_multiple_of(2);
    let (below, high, _) = values.select_nth_unstable_by(middle, |a, b| a.order(*b));
    let high = *high;
    if !even {
        return Some(high.to_f64());
    }
    let low = below.iter().copied().max_by(|a, b| a.order(*b))?;
    Some(low.to_f64() + high.distance(low) / 2.0)
}

/// The position of the nearest rank among `count` sorted values; `None` where there is none.
pub(crate) fn percentile_rank(count: usize, percentage: f64) -> Option<usize> {
    let rank = (count as f64 * percentage / 100.0 + 0.5).floor() - 1.0;
    (rank >= 0.0 && rank < count as f64).then_some(rank as usize)
}

/// The root of the mean squared distance from the mean, over one less than the values; `None` for
/// fewer than two.
pub(crate) fn stddev<T: Number>(values: &[T]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mut mean = 0.0;
    for (at, value) in values.iter().enumerate() {
        mean += (value.to_f64() - mean) / (at + 1) as f64;
    }
    let squares: f64 = values.iter().map(|value| (value.to_f64() - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The index of the most frequent value. `order` sorts by value and then by time, as the values are
/// reached; InfluxDB's rule for ties follows from the order in which it counts.
pub(crate) fn mode<T: Value>(values: &[T], times: &[i64], order: &[u32]) -> Option<u32> {
    let first = *order.first()?;
    let value = |at: u32| values[at as usize];
    let time = |at: u32| times[at as usize];
    let (mut best, mut best_count, mut best_time) = (first, 0, time(first));
    let (mut run, mut run_count, mut run_time) = (first, 0, time(first));
    for &at in order {
        if value(at).order(value(run)).is_ne() {
            // A value is compared with the leader only from its second occurrence on.
            (run, run_count, run_time) = (at, 1, time(at));
            continue;
        }
        run_count += 1;
        if best_count > run_count || (best_count == run_count && run_time > best_time) {
            continue;
        }
        (best, best_count, best_time) = (at, run_count, time(at));
    }
    Some(best)
}

/// The indexes `0..count` sorted by value, then time, then index.
pub(crate) fn sorted_by_value<T: Value>(values: &[T], times: &[i64]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    order.sort_by(|a, b| {
        let (a, b) = (*a as usize, *b as usize);
        values[a].order(values[b]).then_with(|| times[a].cmp(&times[b]))
    });
    order
}

/// The index at position `rank` of what [`sorted_by_value`] gives.
pub(crate) fn nth_by_value<T: Value>(values: &[T], times: &[i64], rank: usize) -> u32 {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    let (_, nth, _) = order.select_nth_unstable_by(rank, |a, b| {
        let (x, y) = (*a as usize, *b as usize);
        values[x].order(values[y]).then_with(|| times[x].cmp(&times[y])).then(a.cmp(b))
    });
    *nth
}

/// The indexes of the first occurrence in time of each value, sorted by that time, then value.
pub(crate) fn distinct<T: Value>(values: &[T], times: &[i64]) -> Vec<u32> {
    let order = sorted_by_value(values, times);
    let mut firsts: Vec<u32> = Vec::new();
    for at in order {
        let last = firsts.last().map(|last| values[*last as usize]);
        if last.is_none_or(|last| last.order(values[at as usize]).is_ne()) {
            firsts.push(at);
        }
    }
    // Stable: values of one time stay in order of value.
    firsts.sort_by_key(|at| times[*at as usize]);
    firsts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_take_the_nearest_rank() {
        for (count, percentage, rank) in [
            (10, 50.0, Some(4)),
            (10, 0.0, None),
            (10, 4.0, None),
            (10, 5.0, Some(0)),
            (10, 100.0, Some(9)),
            (10, 106.0, None),
            (5, 50.0, Some(2)),
            (1, 50.0, Some(0)),
            (0, 50.0, None),
            (3, f64::NAN, None),
            (3, -5.0, None),
        ] {
            assert_eq!(percentile_rank(count, percentage), rank, "{count} {percentage}");
        }
    }

    #[test]
    fn the_mode_of_unique_values_is_the_smallest() {
        let (values, times) = ([7i64, 1, 9], [1, 2, 3]);
        let order = sorted_by_value(&values, &times);
        assert_eq!(mode(&values, &times, &order), Some(1));
    }

    proptest! {
        #[test]
        fn the_nth_value_is_that_of_the_sorted_ones(
            points in prop::collection::vec((-3i64..3, 0i64..4), 1..30),
            rank in any::<prop::sample::Index>(),
        ) {
            let values: Vec<i64> = points.iter().map(|p| p.0).collect();
            let times: Vec<i64> = points.iter().map(|p| p.1).collect();
            let rank = rank.index(points.len());
            let want = sorted_by_value(&values, &times)[rank];
            prop_assert_eq!(nth_by_value(&values, &times, rank), want);
        }

        #[test]
        fn the_mode_occurs_most(values in prop::collection::vec(-3i64..3, 1..40)) {
            let times: Vec<i64> = (0..values.len() as i64).collect();
            let order = sorted_by_value(&values, &times);
            let got = values[mode(&values, &times, &order).unwrap() as usize];
            let count = |v: i64| values.iter().filter(|x| **x == v).count();
            let most = values.iter().map(|v| count(*v)).max().unwrap();
            prop_assert_eq!(count(got), most);
        }

        #[test]
        fn median_and_stddev_follow_their_definitions(
            values in prop::collection::vec(-1000i64..1000, 1..40),
        ) {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let n = sorted.len();
            let want = if n % 2 == 1 { sorted[n / 2] as f64 } else {
                sorted[n / 2 - 1] as f64 + (sorted[n / 2] - sorted[n / 2 - 1]) as f64 / 2.0
            };
            prop_assert_eq!(median(&mut values.clone()), Some(want));
            match stddev(&values) {
                None => prop_assert_eq!(n, 1),
                Some(got) => {
                    let mean = values.iter().sum::<i64>() as f64 / n as f64;
                    let squares: f64 = values.iter().map(|v| (*v as f64 - mean).powi(2)).sum();
                    let want = (squares / (n - 1) as f64).sqrt();
                    prop_assert!((got - want).abs() < 1e-6);
                }
            }
        }

        #[test]
        fn distinct_values_come_by_first_appearance(
            values in prop::collection::vec((-3i64..3, 0i64..5), 0..30),
        ) {
            let times: Vec<i64> = values.iter().map(|v| v.1).collect();
            let values: Vec<i64> = values.iter().map(|v| v.0).collect();
            let got: Vec<(i64, i64)> = distinct(&values, &times)
                .into_iter()
                .map(|at| (times[at as usize], values[at as usize]))
                .collect();
            let mut want = std::collections::BTreeMap::new();
            for (v, t) in values.iter().zip(&times) {
                let first = want.entry(*v).or_insert(*t);
                *first = (*first).min(*t);
            }
            let mut want: Vec<(i64, i64)> = want.into_iter().map(|(v, t)| (t, v)).collect();
            want.sort_unstable();
            prop_assert_eq!(got, want);
        }
    }
}
