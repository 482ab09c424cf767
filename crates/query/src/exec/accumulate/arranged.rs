//! Rows of series with a handful of rows each: what adds row by row does so, for the others rows are put in the order of
//! their slots, so that there is one run a slot and not one for each series and window.

use model::{Column, ColumnBatch, SeriesRun};

use super::slots::{NOWHERE, ROWS_A_SLOT, RowSlots, Run, SEVERAL, SlotMap};
use super::totals::{ShortRun, Totals};
use super::{Accumulator, State, combination};
use crate::QueryError;
use crate::exec::accumulate::collect::{FOLD_ROWS_MIN, Origin};
use crate::exec::column::take;
use crate::exec::input::{ColumnSource, Input};

/// Fewer rows of a series in a window are put together with those of other series: values that differ are then counted, where
/// they would be looked up, ...
const FEW_TALLIED: usize = 16;
/// ... and what is kept of a run takes less than the run.
const FEW_COLLECTED: usize = 4;

impl Accumulator<'_> {
    /// Whether rows of a batch are better added without a look at which series they are of.
    pub(super) fn scatters(&self, rows: usize, series: &[SeriesRun]) -> bool {
        self.ignores_series
            && (self.slots.scatters(rows, series) || self.gathers(rows, series.len()))
    }

    /// Whether so many rows of so many series are better added together: there are many in each slot, but few of a series in
    /// each window.
    pub(crate) fn gathers(&self, rows: usize, series: usize) -> bool {
        let has_tally = self.states.iter().any(|state| matches!(state, State::Tally(_)));
        let few = if has_tally { FEW_TALLIED } else { FEW_COLLECTED };
        let has_others =
            self.states.iter().any(|state| !matches!(state, State::Totals | State::Nothing));
        self.ignores_series && has_others && self.slots.fills_windows(rows, series, few)
    }

    /// Adds rows of an input to their slots; `false`, and nothing is added: their slots are too many.
    pub(super) fn add_scattered(
        &mut self,
        at: usize,
        input: &Input,
        batch: &ColumnBatch,
        group_of: impl Fn(u32) -> Option<u32>,
    ) -> Result<bool, QueryError> {
        let has_others =
            self.states.iter().any(|state| !matches!(state, State::Totals | State::Nothing));
        if !has_others && matches!(self.slots, SlotMap::Whole { .. }) {
            self.add_short(input, batch, group_of);
            return self.reserve().map(|()| true);
        }
        let mut slots = std::mem::take(&mut self.row_slots);
        self.slots.of_rows(batch.times(), &batch.runs, group_of, &mut slots);
        if has_others && self.add_folded(input, batch, &slots) {
            self.row_slots = slots;
            return self.reserve().map(|()| true);
        }
        let order = if has_others { by_slot(&slots.of, &mut self.runs) } else { Some(Vec::new()) };
        if let Some(order) = &order {
            self.add_to_totals(input, batch, |totals, column| totals.add_scattered(column, &slots));
            if has_others {
                self.add_arranged(at, input, batch, order);
            }
        }
        self.row_slots = slots;
        self.reserve()?;
        Ok(order.is_some())
    }

    /// Adds rows to their slots, if none of them need be kept; whether they were.
    fn add_folded(&mut self, input: &Input, batch: &ColumnBatch, row_slots: &RowSlots) -> bool {
        let (table, count) = (input.scan.series(), self.slots.len());
        let slots = row_slots.of.as_slice();
        let is_tally = |state: &State| matches!(state, State::Tally(_));
        if count.saturating_mul(FOLD_ROWS_MIN as usize) > slots.len()
            || self.states.iter().any(is_tally)
            || slots.contains(&NOWHERE)
        {
            return false;
        }
        let mut counts = vec![0u32; count];
        slots.iter().for_each(|slot| counts[*slot as usize] += 1);
        let is_there = |source: &ColumnSource| matches!(source, ColumnSource::Column { .. });
        let folds = |(state, source): (&State, &ColumnSource)| match state {
            State::Totals | State::Nothing => true,
            State::Collect(collect) if is_there(source) => {
                collect.folds(&source.column(batch, table), &counts)
            }
            _ => false,
        };
        if !self.states.iter().zip(&input.calls).all(folds) {
            return false;
        }
        for (state, source) in self.states.iter_mut().zip(&input.calls) {
            if let State::Collect(collect) = state {
                collect.add_folded(&source.column(batch, table), slots, &counts);
            }
        }
        self.add_to_totals(input, batch, |totals, column| totals.add_scattered(column, row_slots));
        true
    }

    /// Adds to each of the totals what its column has.
    fn add_to_totals(
        &mut self,
        input: &Input,
        batch: &ColumnBatch,
        add: impl Fn(&mut Totals, &Column),
    ) {
        for (totals, plan) in self.totals.iter_mut().zip(&self.recipe.totals) {
            totals.grow(self.slots.len());
            if let source @ ColumnSource::Column { .. } = &input.calls[plan.call] {
                add(totals, &source.column(batch, input.scan.series()));
            }
        }
    }

    /// Adds rows whose slots are their groups to totals, run by run.
    fn add_short(
        &mut self,
        input: &Input,
        batch: &ColumnBatch,
        group_of: impl Fn(u32) -> Option<u32>,
    ) {
        let short = |run: &SeriesRun| (group_of(run.series).unwrap_or(NOWHERE), run.rows);
        let runs: Vec<ShortRun> = batch.runs.iter().map(short).collect();
        self.add_to_totals(input, batch, |totals, column| totals.add_short(column, &runs));
    }

    /// Adds rows in an order in which they are those of `self.runs`.
    fn add_arranged(&mut self, at: usize, input: &Input, batch: &ColumnBatch, order: &[u32]) {
        let (times, table) = (batch.times(), input.scan.series());
        let needs_times = |state: &State| match state {
            State::Collect(collect) => collect.has_times(),
            state => matches!(state, State::Tally(_)),
        };
        let times: Vec<i64> = match self.states.iter().any(needs_times) {
            true => order.iter().map(|row| times[*row as usize]).collect(),
            false => Vec::new(),
        };
        let (combinations, slots) = (self.combinations, self.slots.len());
        let key = |origin: Origin| combination(combinations, origin);
        for (state, source) in self.states.iter_mut().zip(&input.calls) {
            let ColumnSource::Column { .. } = source else { continue };
            let column = || take(&source.column(batch, table), order);
            match state {
                State::Tally(tally) => tally.add_rows(&column(), &times, &self.runs),
                State::Collect(collect) => {
                    collect.add_rows(&column(), &times, &self.runs, at as u32, &[], &key);
                    collect.prune(slots, &key);
                }
                State::Totals | State::Nothing => {}
                State::Pick(_) => panic!("BUG: it matters which series a picked row is of"),
            }
        }
    }
}

/// The rows that have a slot, slot by slot, and the runs they are then; `None`: there are too many slots.
fn by_slot(slots: &[u32], runs: &mut Vec<Run>) -> Option<Vec<u32>> {
    let placed = || slots.iter().filter(|slot| **slot != NOWHERE);
    runs.clear();
    let (Some(least), Some(most)) = (placed().min(), placed().max()) else {
        return Some(Vec::new());
    };
    let count = (most - least) as usize + 1;
    if count.saturating_mul(ROWS_A_SLOT) > slots.len() {
        return None;
    }
    let mut ends = vec![0u32; count];
    placed().for_each(|slot| ends[(slot - least) as usize] += 1);
    let mut start = 0;
    for (end, slot) in ends.iter_mut().zip(*least..) {
        let rows = std::mem::replace(end, start);
        if rows > 0 {
            runs.push(Run { slot, start, end: start + rows, series: SEVERAL });
        }
        start += rows;
    }
    let mut order = vec![0; start as usize];
    for (row, slot) in (0..).zip(slots).filter(|(_, slot)| **slot != NOWHERE) {
        let next = &mut ends[(slot - least) as usize];
        order[*next as usize] = row;
        *next += 1;
    }
    Some(order)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_are_in_order_of_their_slots(
            slots in prop::collection::vec(prop_oneof![8 => 3u32..7, 1 => Just(NOWHERE)], 0..200),
        ) {
            let mut runs = Vec::new();
            let mut expected: Vec<u32> =
                (0..slots.len() as u32).filter(|row| slots[*row as usize] != NOWHERE).collect();
            expected.sort_by_key(|row| slots[*row as usize]);
            match by_slot(&slots, &mut runs) {
                None => prop_assert!(slots.len() < 4 * ROWS_A_SLOT),
                Some(order) => {
                    prop_assert_eq!(&order, &expected);
                    let of_runs = runs.iter().flat_map(|run| {
                        vec![(run.slot, run.series); (run.end - run.start) as usize]
                    });
                    let of_rows = order.iter().map(|row| (slots[*row as usize], SEVERAL));
                    prop_assert!(of_runs.eq(of_rows));
                }
            }
        }
    }
}
