//! Runs of a few rows each, as windows of a minute cut what comes every ten seconds: their sums and extremes are found for
//! four runs side by side.
//!
//! Of one run each value waits for the one before it, and what is done about a run takes as long as its values. Within a
//! run values are taken in their order.

use std::ops::Range;

use super::NumberTotals;
use crate::exec::accumulate::kernels::Number;
use crate::exec::accumulate::slots::Run;

/// So many runs are worth it.
const RUNS_MIN: usize = 8;
/// Longer runs are fast one by one.
const ROWS: Range<u32> = 2..33;

/// Some of the runs, one behind another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) runs: Range<usize>,
    /// If all of them have so many rows, which lie side by side, and slots one behind another.
    pub(crate) rows_each: Option<usize>,
}

/// Cuts runs into stretches.
pub(crate) fn cut(runs: &[Run], stretches: &mut Vec<Stretch>) {
    stretches.clear();
    let mut at = 0;
    while let Some(first) = runs.get(at) {
        let rows = first.end - first.start;
        let goes_on = |pair: &&[Run]| {
            let [before, run] = pair else { return false };
            run.start == before.end
                && run.end - run.start == rows
                && run.slot == before.slot.wrapping_add(1)
        };
        let end = at + 1 + runs[at..].windows(2).take_while(goes_on).count();
        let is_steady = end - at >= RUNS_MIN && ROWS.contains(&rows);
        match stretches.last_mut() {
            Some(last) if !is_steady && last.rows_each.is_none() => last.runs.end = end,
            _ => {
                let rows_each = is_steady.then_some(rows as usize);
                stretches.push(Stretch { runs: at..end, rows_each });
            }
        }
        at = end;
    }
}

impl<T: Number> NumberTotals<T> {
    /// Adds the rows of a stretch of runs of so many rows each, which all have a value.
    pub(super) fn add_steady(&mut self, values: &[T], runs: &[Run], rows_each: usize) {
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return };
        let values = &values[first.start as usize..last.end as usize];
        let slots = first.slot as usize..first.slot as usize + runs.len();
        let counts = &mut self.count[slots.clone()];
        if self.parts.sum {
            let sums = &mut self.sum[slots.clone()];
            let plus = |sum: T, value: T| sum.plus(value);
            // From zero on, as one by one: the sum of a negative zero is none.
            let add = |at: usize, sum: T| sums[at] = sums[at].plus(T::default().plus(sum));
            fold_each(values, rows_each, plus, add);
        }
        if self.parts.min {
            let mins = &mut self.min[slots.clone()];
            let pick = |least: T, value: T| if value < least { value } else { least };
            fold_each(values, rows_each, pick, |at, least| {
                if counts[at] == 0 || least < mins[at] {
                    mins[at] = least;
                }
            });
        }
        if self.parts.max {
            let maxs = &mut self.max[slots];
            let pick = |most: T, value: T| if value > most { value } else { most };
            fold_each(values, rows_each, pick, |at, most| {
                if counts[at] == 0 || most > maxs[at] {
                    maxs[at] = most;
                }
            });
        }
        counts.iter_mut().for_each(|count| *count += rows_each as u64);
    }
}

/// Folds each of consecutive groups of so many values, and hands over what comes of it with the group's number.
#[inline]
fn fold_each<T: Copy>(
    values: &[T],
    rows_each: usize,
    fold: impl Fn(T, T) -> T,
    mut put: impl FnMut(usize, T),
) {
    let mut fours = values.chunks_exact(4 * rows_each);
    let mut group = 0;
    for four in &mut fours {
        let (a, four) = four.split_at(rows_each);
        let (b, four) = four.split_at(rows_each);
        let (c, d) = four.split_at(rows_each);
        let mut folded = [a[0], b[0], c[0], d[0]];
        for (((a, b), c), d) in a[1..].iter().zip(&b[1..]).zip(&c[1..]).zip(&d[1..]) {
            let [w, x, y, z] = folded;
            folded = [fold(w, *a), fold(x, *b), fold(y, *c), fold(z, *d)];
        }
        for value in folded {
            put(group, value);
            group += 1;
        }
    }
    for one in fours.remainder().chunks_exact(rows_each) {
        put(group, one[1..].iter().fold(one[0], |folded, value| fold(folded, *value)));
        group += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Parts;
    use super::*;

    fn totals(slots: usize) -> NumberTotals<f64> {
        let parts = Parts { sum: true, min: true, max: true, ..Parts::default() };
        let mut totals = NumberTotals::new(parts, false);
        totals.grow(slots);
        totals
    }

    proptest! {
        #[test]
        fn stretches_add_what_their_runs_do(
            lengths in prop::collection::vec((1u32..8, 1usize..30), 1..6),
            seed in any::<u64>(),
        ) {
            let (mut runs, mut start) = (Vec::new(), 3);
            for (slot, rows) in (5..).zip(lengths.iter().flat_map(|(rows, runs)| vec![*rows; *runs])) {
                // A slot may be left out, and rows.
                let slot = slot + u32::from(slot > 30);
                start += u32::from(slot == 40);
                runs.push(Run { slot, start, end: start + rows, series: 0 });
                start += rows;
            }
            let value = |row: u64| match row.wrapping_mul(seed) >> 60 {
                0 => f64::NAN,
                1 => -0.0,
                other => other as f64 / 4.0 - 2.0,
            };
            let values: Vec<f64> = (0..u64::from(start)).map(value).collect();
            let mut stretches = Vec::new();
            cut(&runs, &mut stretches);
            prop_assert!(stretches.windows(2).all(|pair| pair[0].runs.end == pair[1].runs.start));
            prop_assert_eq!(stretches.last().map(|last| last.runs.end), Some(runs.len()));
            let longest = lengths.iter().filter(|(rows, _)| *rows > 1).map(|(_, runs)| *runs).max();
            if longest.is_some_and(|longest| longest > 3 * RUNS_MIN) {
                prop_assert!(stretches.iter().any(|stretch| stretch.rows_each.is_some()));
            }
            let slots = runs.last().unwrap().slot as usize + 1;
            let (mut together, mut alone) = (totals(slots), totals(slots));
            // Twice: to slots that have nothing yet, and to slots that have.
            for _ in 0..2 {
                for Stretch { runs: of_stretch, rows_each } in &stretches {
                    match rows_each {
                        Some(rows) => together.add_steady(&values, &runs[of_stretch.clone()], *rows),
                        None => together.add_runs(&values, &[], &runs[of_stretch.clone()], true),
                    }
                }
                alone.add_runs(&values, &[], &runs, true);
            }
            let bits = |of: &[f64]| -> Vec<u64> {
                of.iter().map(|v| if v.is_nan() { u64::MAX } else { v.to_bits() }).collect()
            };
            prop_assert_eq!(&together.count, &alone.count);
            prop_assert_eq!(bits(&together.sum), bits(&alone.sum));
            // Of zeros of both signs either may be the extreme.
            let same = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| a == b || a.is_nan() && b.is_nan());
            prop_assert!(same(&together.min, &alone.min));
            prop_assert!(same(&together.max, &alone.max));
        }
    }
}
