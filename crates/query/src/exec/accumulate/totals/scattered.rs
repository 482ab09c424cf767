//! Rows that are added one by one, each to its slot.

use model::{Bitmap, Column, Values};

use super::{NumberTotals, Totals};
use crate::exec::accumulate::kernels::Number;
use crate::exec::accumulate::slots::{NOWHERE, RowSlots};

/// Values are added in so many lanes at least.
const LANES_MIN: usize = 64;

impl Totals {
    /// Adds each row to its slot in `slots`, if it has one. `column` has the totals' type; neither first nor last values are
    /// kept.
    pub(crate) fn add_scattered(&mut self, column: &Column, slots: &RowSlots) {
        let validity = column.validity.as_ref();
        match (self, &column.values) {
            (Self::Float(t), Values::Float(v)) => t.add_scattered(v, validity, slots),
            (Self::Integer(t), Values::Integer(v)) => t.add_scattered(v, validity, slots),
            (Self::Unsigned(t), Values::Unsigned(v)) => t.add_scattered(v, validity, slots),
            (Self::Boolean(t), Values::Boolean(v)) => {
                let v: Vec<u64> = (0..v.len()).map(|row| u64::from(v.get(row))).collect();
                t.add_scattered(&v, validity, slots);
            }
            (Self::Text(t), Values::String(_) | Values::Dictionary(..)) => {
                each(&slots.of, validity, |_, slot| t.count[slot] += 1);
            }
            _ => panic!("BUG: totals of another type"),
        }
    }
}

/// Rows of a slot, side by side, or [`NOWHERE`], and how many.
pub(crate) type ShortRun = (u32, u32);

impl Totals {
    /// Adds runs of a few rows each, one behind another: what rows of a run make is added to their slot once.
    pub(crate) fn add_short(&mut self, column: &Column, runs: &[ShortRun]) {
        match (self, &column.values, &column.validity) {
            (Self::Float(t), Values::Float(v), None) => t.add_short(v, runs),
            (Self::Integer(t), Values::Integer(v), None) => t.add_short(v, runs),
            (Self::Unsigned(t), Values::Unsigned(v), None) => t.add_short(v, runs),
            (totals, ..) => {
                let of_run = |run: &ShortRun| std::iter::repeat_n(run.0, run.1 as usize);
                let of = runs.iter().flat_map(of_run).collect();
                totals.add_scattered(column, &RowSlots { of, repeated: Vec::new() });
            }
        }
    }
}

impl<T: Number> NumberTotals<T> {
    fn add_short(&mut self, values: &[T], runs: &[ShortRun]) {
        let (parts, mut at) = (self.parts, 0);
        for (slot, rows) in runs {
            let of_run = &values[at..at + *rows as usize];
            at += of_run.len();
            let Some((first, others)) = of_run.split_first().filter(|_| *slot != NOWHERE) else {
                continue;
            };
            let slot = *slot as usize;
            let fresh = self.count[slot] == 0;
            self.count[slot] += of_run.len() as u64;
            let fold = |better: fn(T, T) -> T| others.iter().fold(*first, |a, b| better(a, *b));
            if parts.sum {
                self.sum[slot] = self.sum[slot].plus(fold(T::plus));
            }
            if parts.min {
                let least = fold(|a, b| if b < a { b } else { a });
                if fresh || least < self.min[slot] {
                    self.min[slot] = least;
                }
            }
            if parts.max {
                let most = fold(|a, b| if b > a { b } else { a });
                if fresh || most > self.max[slot] {
                    self.max[slot] = most;
                }
            }
        }
    }

    fn add_scattered(&mut self, values: &[T], validity: Option<&Bitmap>, slots: &RowSlots) {
        let of = slots.of.as_slice();
        if validity.is_some() {
            return self.add_each(values, validity, of);
        }
        let mut at = 0;
        for repeated in &slots.repeated {
            let rows = repeated.rows.clone();
            self.add_each(&values[at..rows.start], None, &of[at..rows.start]);
            at = rows.end;
            self.add_repeated(&values[rows.clone()], &of[rows][..repeated.period]);
        }
        self.add_each(&values[at..], None, &of[at..]);
    }

    /// Adds rows whose slots are these again and again.
    fn add_repeated(&mut self, values: &[T], slots: &[u32]) {
        // The first value of a slot counts even if it is no number.
        let (once, again) = values.split_at(slots.len());
        self.add_each(once, None, slots);
        let (parts, count) = (self.parts, (again.len() / slots.len()) as u64);
        slots.iter().for_each(|slot| self.count[*slot as usize] += count);
        let lanes = slots.len() * LANES_MIN.div_ceil(slots.len());
        let slots = || slots.iter().cycle().take(lanes).map(|slot| *slot as usize);
        if parts.sum {
            let mut sums = vec![T::default(); lanes];
            T::sum_interleaved(again, &mut sums);
            for (slot, sum) in slots().zip(sums) {
                self.sum[slot] = self.sum[slot].plus(sum);
            }
        }
        if parts.min {
            let mut least: Vec<T> = slots().map(|slot| self.min[slot]).collect();
            T::min_interleaved(again, &mut least);
            for (slot, least) in slots().zip(least) {
                if least < self.min[slot] {
                    self.min[slot] = least;
                }
            }
        }
        if parts.max {
            let mut most: Vec<T> = slots().map(|slot| self.max[slot]).collect();
            T::max_interleaved(again, &mut most);
            for (slot, most) in slots().zip(most) {
                if most > self.max[slot] {
                    self.max[slot] = most;
                }
            }
        }
    }

    /// Adds rows one by one.
    fn add_each(&mut self, values: &[T], validity: Option<&Bitmap>, slots: &[u32]) {
        let parts = self.parts;
        if validity.is_none() && !parts.min && !parts.max && !slots.contains(&NOWHERE) {
            // A loop for each part is half of what one for all that may be there takes.
            slots.iter().for_each(|slot| self.count[*slot as usize] += 1);
            if parts.sum {
                for (value, slot) in values.iter().zip(slots) {
                    let sum = &mut self.sum[*slot as usize];
                    *sum = sum.plus(*value);
                }
            }
            return;
        }
        each(slots, validity, |row, slot| {
            let value = values[row];
            let fresh = self.count[slot] == 0;
            self.count[slot] += 1;
            if parts.sum {
                self.sum[slot] = self.sum[slot].plus(value);
            }
            if parts.min && (fresh || value < self.min[slot]) {
                self.min[slot] = value;
            }
            if parts.max && (fresh || value > self.max[slot]) {
                self.max[slot] = value;
            }
        });
    }
}

/// Calls `add` with each row that has a value and a slot, and with the slot.
#[inline]
fn each(slots: &[u32], validity: Option<&Bitmap>, mut add: impl FnMut(usize, usize)) {
    let placed = slots.iter().enumerate().filter(|(_, slot)| **slot != NOWHERE);
    match validity {
        None => placed.for_each(|(row, slot)| add(row, *slot as usize)),
        Some(valid) => placed
            .filter(|(row, _)| valid.get(*row))
            .for_each(|(row, slot)| add(row, *slot as usize)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Parts;
    use super::*;
    use crate::exec::accumulate::slots::{Repeated, Run};

    proptest! {
        #[test]
        fn short_runs_are_added_as_their_rows_are(
            runs in prop::collection::vec((prop::option::weighted(0.9, 0u32..5), 0u32..5), 0..30),
            seed in any::<u64>(),
        ) {
            let parts = Parts { sum: true, min: true, max: true, ..Parts::default() };
            let runs: Vec<ShortRun> =
                runs.iter().map(|(slot, rows)| (slot.unwrap_or(NOWHERE), *rows)).collect();
            let of_run = |run: &ShortRun| vec![run.0; run.1 as usize];
            let slots: Vec<u32> = runs.iter().flat_map(of_run).collect();
            let value = |row: usize| (seed.rotate_left(row as u32) % 100) as i64 - 50;
            let values: Vec<i64> = (0..slots.len()).map(value).collect();
            let new = || NumberTotals::new(parts, false);
            let (mut short, mut alone) = (new(), new());
            short.grow(5);
            alone.grow(5);
            short.add_short(&values, &runs);
            let slots = RowSlots { of: slots, repeated: Vec::new() };
            alone.add_scattered(&values, None, &slots);
            prop_assert_eq!(format!("{short:?}"), format!("{alone:?}"));
        }

        #[test]
        fn rows_that_repeat_are_added_as_others_are(
            parts in prop::collection::vec((0usize..50, 0usize..40, 1usize..9), 0..5),
            seed in any::<u64>(),
            floats in any::<bool>(),
        ) {
            let (mut of, mut repeated) = (Vec::new(), Vec::new());
            for (before, count, period) in parts {
                of.extend((0..before).map(|row| seed.rotate_left(row as u32) as u32 % 9));
                // Also the same slot several times in a period.
                let slots: Vec<u32> = (0..period as u32).map(|at| at * 5 % 7).collect();
                let rows = of.len()..of.len() + count * period;
                of.extend(slots.repeat(count));
                if count > 0 {
                    repeated.push(Repeated { rows, period });
                }
            }
            let value = |row: usize| (seed.rotate_left(row as u32 * 7) % 100) as i64 - 50;
            let integers: Vec<i64> = (0..of.len()).map(value).collect();
            let float = |value: &i64| if *value == 7 { f64::NAN } else { *value as f64 };
            let slots = RowSlots { of: of.clone(), repeated };
            let one_by_one = RowSlots { of, repeated: Vec::new() };
            let parts = Parts { sum: !floats, min: true, max: true, ..Parts::default() };
            macro_rules! totals {
                ($values:expr, $slots:expr) => {{
                    let mut totals = NumberTotals::new(parts, false);
                    totals.grow(9);
                    totals.add_scattered($values, None, $slots);
                    format!("{totals:?}")
                }};
            }
            if floats {
                let floats: Vec<f64> = integers.iter().map(float).collect();
                prop_assert_eq!(totals!(&floats, &slots), totals!(&floats, &one_by_one));
            } else {
                prop_assert_eq!(totals!(&integers, &slots), totals!(&integers, &one_by_one));
            }
        }

        #[test]
        fn scattered_rows_are_added_as_runs_are(
            rows in prop::collection::vec(
                (prop::option::weighted(0.8, -9i64..9), prop::option::weighted(0.9, 0u32..5)), 0..60),
        ) {
            let values: Vec<i64> = rows.iter().map(|(value, _)| value.unwrap_or(0)).collect();
            let valid: Bitmap = rows.iter().map(|(value, _)| value.is_some()).collect();
            let validity = Some(&valid).filter(|valid| valid.count_ones() < rows.len());
            let parts = Parts { sum: true, min: true, max: true, ..Parts::default() };
            let (mut scattered, mut alone) =
                (NumberTotals::new(parts, false), NumberTotals::new(parts, false));
            scattered.grow(5);
            alone.grow(5);
            let slots: Vec<u32> = rows.iter().map(|(_, slot)| slot.unwrap_or(NOWHERE)).collect();
            let row_slots = RowSlots { of: slots.clone(), repeated: Vec::new() };
            scattered.add_scattered(&values, validity, &row_slots);
            let runs = (0..).zip(&slots).filter(|(_, slot)| **slot != NOWHERE);
            let runs = runs.map(|(row, slot)| Run { slot: *slot, start: row, end: row + 1, series: 0 });
            let runs: Vec<Run> = runs.collect();
            alone.add_valid(&values, &valid, &[], &runs, true);
            prop_assert_eq!(format!("{scattered:?}"), format!("{alone:?}"));
        }
    }
}
