//! `top()`, `bottom()` and `sample()`: some of the points, with their own times.

use std::cmp::Ordering;

use super::values::Value;

/// Which end of the values is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Largest,
    Smallest,
}

/// Best first: by value, ties by earlier time, then by index.
fn better<T: Value>(end: End, values: &[T], times: &[i64], a: u32, b: u32) -> Ordering {
    let (x, y) = (a as usize, b as usize);
    let by_value = match end {
        End::Largest => values[y].order(values[x]),
        End::Smallest => values[x].order(values[y]),
    };
    by_value.then_with(|| times[x].cmp(&times[y])).then(a.cmp(&b))
}

/// The `count` best of the points `rows`, best first.
pub(crate) fn best<T: Value>(
    end: End,
    values: &[T],
    times: &[i64],
    mut rows: Vec<u32>,
    count: usize,
) -> Vec<u32> {
    let order = |a: &u32, b: &u32| better(end, values, times, *a, *b);
    if count < rows.len() {
        rows.select_nth_unstable_by(count, order);
        rows.truncate(count);
    }
    rows.sort_unstable_by(order);
    rows
}

/// The best point for each of `keys`, one key a point.
pub(crate) fn best_of_each<T: Value, K: Eq + std::hash::Hash>(
    end: End,
    values: &[T],
    times: &[i64],
    rows: &[u32],
    key: impl Fn(u32) -> K,
) -> Vec<u32> {
    let mut leaders: hashbrown::HashMap<K, u32> = hashbrown::HashMap::new();
    for &row in rows {
        let leader = leaders.entry(key(row)).or_insert(row);
        if better(end, values, times, row, *leader).is_lt() {
            *leader = row;
        }
    }
    leaders.into_values().collect()
}

/// The points `rows`, sorted best first, put in the order they are shown: by time, the better first
/// where times are equal. Within a window time ascends even in a query that goes backwards.
pub(crate) fn by_time(rows: &mut [u32], times: &[i64]) {
    rows.sort_by_key(|row| times[*row as usize]);
}

/// A reproducible source of random numbers (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    state: u64,
}

impl Draws {
    /// Numbers that depend on `seed` only.
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number.
    pub(crate) fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// `count` of the points `rows`, each set of them equally likely: those that drew the smallest
/// numbers.
pub(crate) fn sample(mut rows: Vec<u32>, draws: &[u64], count: usize) -> Vec<u32> {
    if count < rows.len() {
        rows.select_nth_unstable_by_key(count, |row| draws[*row as usize]);
        rows.truncate(count);
    }
    rows.sort_unstable();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_best_are_a_prefix_of_all_sorted(
            points in prop::collection::vec((-4i64..4, 0i64..6), 0..30),
            count in 0usize..8,
        ) {
            let values: Vec<i64> = points.iter().map(|p| p.0).collect();
            let times: Vec<i64> = points.iter().map(|p| p.1).collect();
            let all: Vec<u32> = (0..points.len() as u32).collect();
            for end in [End::Largest, End::Smallest] {
                let got = best(end, &values, &times, all.clone(), count);
                let mut want = all.clone();
                want.sort_by_key(|at| {
                    let (v, t) = points[*at as usize];
                    (if end == End::Largest { -v } else { v }, t, *at)
                });
                want.truncate(count);
                prop_assert_eq!(got, want);
            }
        }

        #[test]
        fn a_sample_has_its_size_and_no_point_twice(points in 0u32..40, count in 1usize..20) {
            let mut source = Draws::new(u64::from(points));
            let draws: Vec<u64> = (0..points).map(|_| source.draw()).collect();
            let got = sample((0..points).collect(), &draws, count);
            prop_assert_eq!(got.len(), count.min(points as usize));
            prop_assert!(got.windows(2).all(|w| w[0] < w[1]));
        }
    }

    #[test]
    fn one_leader_for_each_key() {
        let (values, times) = ([1i64, 5, 5, 2], [1, 3, 2, 4]);
        let mut got =
            best_of_each(End::Largest, &values, &times, &[0, 1, 2, 3], |row| row % 3 == 0);
        got.sort_unstable();
        assert_eq!(got, [2, 3]);
    }

    #[test]
    fn every_point_is_drawn_sooner_or_later() {
        let mut seen = [false; 10];
        let mut source = Draws::new(1);
        for _ in 0..200 {
            let draws: Vec<u64> = (0..10).map(|_| source.draw()).collect();
            for at in sample((0..10).collect(), &draws, 2) {
                seen[at as usize] = true;
            }
        }
        assert_eq!(seen, [true; 10]);
    }
}
