//! What a point must beat to be among those that `top()`, `bottom()` or `sample()` choose.
//!
//! Of each slot the best points so far are known by two numbers, a rank and a time, of which the smaller is better. A
//! point that is behind all of them when there are enough cannot be in the result; a run whose best value is behind them is
//! not looked at row by row. With tags to tell apart only the best point of each combination counts (`leaders`).
//!
//! Invariants
//! - No point is left out that would be in the result: of points with the same two numbers the first is better.

mod leaders;

use std::collections::BinaryHeap;
use std::ops::Range;

use hashbrown::HashMap;
use model::Values;

use self::leaders::Leaders;
use crate::exec::accumulate::kernels;
use crate::exec::accumulate::slots::Run;
use crate::functions::Function;

/// Which points are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    Largest,
    Smallest,
    /// Those that drew the smallest numbers.
    Drawn,
}

/// The best points of each slot so far.
#[derive(Clone, Debug)]
pub(super) struct Bars {
    goal: Goal,
    /// So many are chosen at most.
    count: usize,
    /// Whether one point of each combination counts.
    by_key: bool,
    /// By slot the best points, the worst of them first.
    best: HashMap<u32, BinaryHeap<Point>>,
    /// By slot, where combinations are told apart.
    leaders: HashMap<u32, Leaders>,
    points: usize,
}

/// Rank and time.
type Point = (u64, i64);

impl Bars {
    /// Those of a function; `None` if every point counts.
    pub(super) fn of(function: &Function) -> Option<Self> {
        let (goal, count, by_key) = match function {
            Function::Top(ranked) => (Goal::Largest, ranked.count, !ranked.by.is_empty()),
            Function::Bottom(ranked) => (Goal::Smallest, ranked.count, !ranked.by.is_empty()),
            Function::Sample(count) => (Goal::Drawn, *count, false),
            _ => return None,
        };
        let (best, leaders) = (HashMap::new(), HashMap::new());
        Some(Self { goal, count, by_key, best, leaders, points: 0 })
    }

    /// Which points are better.
    pub(super) fn goal(&self) -> Goal {
        self.goal
    }

    /// Calls `visit` with each stretch of `rows` that may be chosen, in order. All rows have values and are of one
    /// series; `draws` are theirs, if points are drawn.
    pub(super) fn pass(
        &mut self,
        (slot, key): (u32, u32),
        values: &Values,
        draws: &[u64],
        times: &[i64],
        rows: Range<usize>,
        visit: impl FnMut(Range<usize>),
    ) {
        let (goal, count) = (self.goal, self.count);
        if self.by_key {
            let leaders = self.leaders.entry(slot).or_default();
            let before = leaders.len();
            let bar = OfKey { leaders: &mut *leaders, key, count };
            Stretch { bar, times, rows, visit }.pass(goal, values, draws);
            self.points = self.points + leaders.len() - before;
        } else {
            let points = self.best.entry(slot).or_default();
            let before = points.len();
            let bar = OfSlot { points: &mut *points, count };
            Stretch { bar, times, rows, visit }.pass(goal, values, draws);
            self.points += points.len() - before;
        }
    }

    /// Whether it is clear without a look at each run that none of their rows, which all have values, may be chosen.
    pub(super) fn pass_none(&self, values: &Values, runs: &[Run]) -> bool {
        let ([first, ..], [.., last]) = (runs, runs) else { return true };
        if self.goal == Goal::Drawn || runs.iter().any(|run| run.slot != first.slot) {
            return false;
        }
        let worst = match self.by_key {
            true => self.leaders.get(&first.slot).and_then(Leaders::bar),
            false => {
                let points = self.best.get(&first.slot);
                let points = points.filter(|points| points.len() >= self.count);
                points.and_then(|points| points.peek().copied())
            }
        };
        let Some((worst, _)) = worst else { return false };
        let rows = first.start as usize..last.end as usize;
        let largest = self.goal == Goal::Largest;
        macro_rules! best {
            ($values:expr) => {{
                let values = &$values[rows];
                if largest { kernels::max(values) } else { kernels::min(values) }
            }};
        }
        let best = match values {
            Values::Float(v) => {
                let best = best!(v);
                if best.is_nan() {
                    return false;
                }
                rank_of_float(best)
            }
            Values::Integer(v) => rank_of_integer(best!(v)),
            Values::Unsigned(v) => best!(v),
            _ => return false,
        };
        (if largest { !best } else { best }) > worst
    }

    /// Bytes of memory taken.
    pub(super) fn memory_bytes(&self) -> usize {
        // Heaps and tables grow by doubling, and tables are half empty.
        let of_points =
            self.points * if self.by_key { Leaders::POINT_BYTES } else { 2 * POINT_BYTES };
        self.best.allocation_size() + self.leaders.allocation_size() + of_points
    }
}

const POINT_BYTES: usize = size_of::<Point>();

/// What points must beat.
trait Bar {
    /// Whether a point may be chosen, as far as is known without a look at which ones are.
    fn may_pass(&self, point: Point) -> bool;

    /// Takes a point among the best if it is; whether it is.
    fn offer(&mut self, point: Point) -> bool;
}

/// The best points of a slot.
struct OfSlot<'a> {
    points: &'a mut BinaryHeap<Point>,
    count: usize,
}

impl Bar for OfSlot<'_> {
    fn may_pass(&self, point: Point) -> bool {
        self.points.len() < self.count || self.points.peek().is_some_and(|worst| point < *worst)
    }

    fn offer(&mut self, point: Point) -> bool {
        if !self.may_pass(point) {
            return false;
        }
        if self.points.len() < self.count {
            self.points.push(point);
        } else if let Some(mut worst) = self.points.peek_mut() {
            *worst = point;
        }
        true
    }
}

/// The best points of a slot's combinations, of which one is looked at.
struct OfKey<'a> {
    leaders: &'a mut Leaders,
    key: u32,
    count: usize,
}

impl Bar for OfKey<'_> {
    fn may_pass(&self, point: Point) -> bool {
        self.leaders.may_pass(point)
    }

    fn offer(&mut self, point: Point) -> bool {
        self.leaders.offer(self.key, point, self.count)
    }
}

/// A number that orders as the float does; zeros are equal.
fn rank_of_float(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// A number that orders as the integer does.
fn rank_of_integer(value: i64) -> u64 {
    value.cast_unsigned() ^ (1 << 63)
}

/// Rows that want to pass a bar.
struct Stretch<'a, B, V> {
    bar: B,
    times: &'a [i64],
    rows: Range<usize>,
    visit: V,
}

impl<B: Bar, V: FnMut(Range<usize>)> Stretch<'_, B, V> {
    fn pass(mut self, goal: Goal, values: &Values, draws: &[u64]) {
        let (rows, largest) = (self.rows.clone(), goal == Goal::Largest);
        match (goal, values) {
            (Goal::Drawn, _) => self.offer_all(draws, draws.iter().min(), |draw| *draw),
            (_, Values::Float(v)) => self.numbers(&v[rows], largest, rank_of_float),
            (_, Values::Integer(v)) => {
                self.numbers(&v[rows], largest, rank_of_integer);
            }
            (_, Values::Unsigned(v)) => self.numbers(&v[rows], largest, |v| v),
            (_, other) => panic!("BUG: {other:?} are not ranked"),
        }
    }

    fn numbers<T: kernels::Number>(
        &mut self,
        values: &[T],
        largest: bool,
        rank: impl Fn(T) -> u64,
    ) {
        if largest {
            self.offer_all(values, Some(&kernels::max(values)), |v| !rank(*v));
        } else {
            self.offer_all(values, Some(&kernels::min(values)), |v| rank(*v));
        }
    }

    /// Offers all values, of which the best is known.
    fn offer_all<T>(&mut self, values: &[T], best: Option<&T>, rank: impl Fn(&T) -> u64) {
        let Some(best) = best else { return };
        let times = &self.times[self.rows.clone()];
        // Rows of one series are in order of time.
        let earliest = times[0].min(times[times.len() - 1]);
        if !self.bar.may_pass((rank(best), earliest)) {
            return;
        }
        let mut from = None;
        for (at, (value, time)) in (self.rows.start..).zip(values.iter().zip(times)) {
            let passes = self.bar.offer((rank(value), *time));
            match from {
                None if passes => from = Some(at),
                Some(start) if !passes => {
                    (self.visit)(start..at);
                    from = None;
                }
                _ => {}
            }
        }
        if let Some(start) = from {
            (self.visit)(start..self.rows.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::Ranked;
    use crate::functions::ranked::{self, End};
    use proptest::prelude::*;

    fn passed(
        bars: &mut Bars,
        key: u32,
        values: &Values,
        draws: &[u64],
        times: &[i64],
    ) -> Vec<u32> {
        let mut found = Vec::new();
        let rows = 0..times.len();
        bars.pass((0, key), values, draws, times, rows, |rows| {
            found.extend(rows.start as u32..rows.end as u32);
        });
        found
    }

    /// Some series, of each the values in order of time, upwards or downwards.
    fn series() -> impl Strategy<Value = Vec<Vec<(i64, i64)>>> {
        let one = (prop::collection::vec((-4i64..4, 0i64..9), 1..12), any::<bool>());
        let one = one.prop_map(|(mut points, ascending)| {
            points.sort_by_key(|point| if ascending { point.1 } else { -point.1 });
            points
        });
        prop::collection::vec(one, 1..60)
    }

    proptest! {
        #[test]
        fn the_best_pass(
            series in series(),
            (count, largest, by_key) in (1usize..5, any::<bool>(), any::<bool>()),
            each in 1u32..3,
        ) {
            let by = if by_key { vec!["host".to_owned()] } else { Vec::new() };
            let chosen = Ranked { count, by };
            let (end, function) = match largest {
                true => (End::Largest, Function::Top(chosen)),
                false => (End::Smallest, Function::Bottom(chosen)),
            };
            let mut bars = Bars::of(&function).unwrap();
            let (mut values, mut times, mut passing) = (Vec::new(), Vec::new(), Vec::new());
            let mut keys = Vec::new();
            for (points, at) in series.iter().zip(0..) {
                let of: Vec<f64> = points.iter().map(|p| p.0 as f64).collect();
                let at_times: Vec<i64> = points.iter().map(|p| p.1).collect();
                // One or two series of each combination.
                let rows = passed(&mut bars, at / each, &Values::Float(of.clone()), &[], &at_times);
                passing.extend(rows.into_iter().map(|row| row + values.len() as u32));
                values.extend(of);
                times.extend(at_times);
                keys.resize(values.len(), at / each);
            }
            let best = |rows: Vec<u32>| {
                let rows = match by_key {
                    true => ranked::best_of_each(end, &values, &times, &rows, |r| keys[r as usize]),
                    false => rows,
                };
                ranked::best(end, &values, &times, rows, count)
            };
            prop_assert_eq!(best(passing), best((0..values.len() as u32).collect()));
            // What is left out together would have been left out one by one.
            let mut start = 0;
            let runs = series.iter().zip(0..).map(|(points, series)| {
                let run = Run { slot: 0, start, end: start + points.len() as u32, series };
                start = run.end;
                run
            });
            let runs: Vec<Run> = runs.collect();
            if bars.pass_none(&Values::Float(values.clone()), &runs) {
                for run in runs {
                    let rows = run.start as usize..run.end as usize;
                    let of = Values::Float(values[rows.clone()].to_vec());
                    let found = passed(&mut bars, run.series / each, &of, &[], &times[rows]);
                    prop_assert!(found.is_empty(), "{:?}", found);
                }
            }
        }
    }

    #[test]
    fn few_points_pass_where_many_are_offered() {
        let count = 100_000u64;
        let times: Vec<i64> = (0..count as i64).collect();
        let scattered: Vec<u64> =
            (0..count).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        let values = Values::Unsigned(scattered.clone());
        for function in [Function::Top(Ranked { count: 10, by: Vec::new() }), Function::Sample(10)]
        {
            let mut bars = Bars::of(&function).unwrap();
            let rows = passed(&mut bars, 0, &values, &scattered, &times);
            // Ten times the logarithm of what is offered to each place.
            assert!((10..300).contains(&rows.len()), "{}", rows.len());
        }
    }

    #[test]
    fn floats_rank_as_they_order() {
        let values = [f64::MIN, -2.5, -0.0, 0.0, f64::MIN_POSITIVE, 1.0, f64::MAX];
        for pair in values.windows(2) {
            let ranks = (rank_of_float(pair[0]), rank_of_float(pair[1]));
            assert_eq!(ranks.0.cmp(&ranks.1), pair[0].partial_cmp(&pair[1]).unwrap());
        }
    }
}
