//! Rows of all groups at once: no list of points is made for each of them. Without windows that is a row a group at most, by
//! windows as many as these are.

use std::ops::Range;

use influxql::Fill;
use model::{Bitmap, Column, Values};

use super::output::whole_time;
use super::points::Points;
use super::slots::SlotMap;
use super::totals::Totals;
use super::{Accumulator, Kind, Recipe, State};
use crate::exec::column::{ABSENT, fill_missing, missing, take};
use crate::exec::rows::{Block, number};
use crate::exec::window::Windows;
use crate::functions::Function;
use crate::plan::CallPlan;

/// If there are more windows around those that were looked at than these and so many, rows are better made one after another.
const AROUND_MIN: usize = 4;

/// Rows of groups.
pub(crate) struct GroupRows {
    /// The groups that have rows, ascending.
    pub groups: Vec<u32>,
    /// Of each group where its rows end in the block.
    pub ends: Vec<u32>,
    pub block: Block,
}

impl GroupRows {
    /// A row for each of these groups.
    fn one_each(groups: Vec<u32>, block: Block) -> Self {
        let ends = (1..=groups.len() as u32).collect();
        Self { groups, ends, block }
    }
}

impl Recipe {
    /// Whether each group has a row at most without windows: totals and picks give one.
    pub(crate) fn has_row_each(&self) -> bool {
        let is_one = |kind: &Kind| matches!(kind, Kind::Totals(_) | Kind::Pick | Kind::Nothing);
        self.kinds.iter().all(is_one)
    }

    /// Whether windows have a row at most each, which totals say.
    pub(crate) fn are_totals(&self) -> bool {
        self.kinds.iter().all(|kind| matches!(kind, Kind::Totals(_) | Kind::Nothing))
    }
}

impl Accumulator<'_> {
    /// The rows of all groups, when all rows were added.
    ///
    /// # Panics
    /// With windows, or unless [`Recipe::has_row_each`].
    pub(crate) fn rows_of_groups(mut self) -> GroupRows {
        let is_whole = matches!(self.slots, SlotMap::Whole { .. });
        assert!(is_whole && self.recipe.has_row_each(), "BUG: groups of many rows");
        let count = self.slots.len();
        self.totals.iter_mut().for_each(|totals| totals.grow(count));
        for state in &mut self.states {
            if let State::Pick(pick) = state {
                pick.grow(count);
            }
        }
        let calls = 0..self.select.calls.len();
        let mut found: Vec<(Vec<u32>, Points)> = calls.map(|at| self.of_call(at)).collect();
        if let [_] = found.as_slice()
            && let Some((groups, points)) = found.pop()
        {
            let slots = std::iter::once(points.values).chain(points.aux).collect();
            return GroupRows::one_each(groups, Block { times: points.times, slots });
        }
        let is_there = |group: &u32| found.iter().any(|(of, _)| of.binary_search(group).is_ok());
        let all_have_it = found.windows(2).all(|pair| pair[0].0 == pair[1].0);
        let groups: Vec<u32> = match (all_have_it, found.first()) {
            (true, Some((groups, _))) => groups.clone(),
            _ => (0..self.groups as u32).filter(is_there).collect(),
        };
        let column = |(of, points): (Vec<u32>, Points)| {
            if of == groups {
                return points.values;
            }
            let row = |group: &u32| of.binary_search(group).map_or(ABSENT, |row| row as u32);
            take(&points.values, &groups.iter().map(row).collect::<Vec<u32>>())
        };
        let times = vec![whole_time(self.select); groups.len()];
        let slots = found.into_iter().map(column).collect();
        GroupRows::one_each(groups, Block { times, slots })
    }

    /// The rows of all groups by windows, when all rows were added. With `filled`, the starts of a first and a last window,
    /// each group that has a value at all has a row for every window from one to the other. `Err`: the state as it was, if
    /// windows are no grid, or most rows would be of empty ones.
    ///
    /// # Panics
    /// Unless [`Recipe::are_totals`].
    pub(crate) fn rows_of_windows(
        mut self,
        filled: Option<(i64, i64)>,
    ) -> Result<GroupRows, Box<Self>> {
        assert!(self.recipe.are_totals(), "BUG: windows of many rows");
        let SlotMap::Grid { windows, per_group, .. } = &self.slots else {
            return Err(Box::new(self));
        };
        let starts: Vec<i64> = self.slots.of_group(0, 0).into_iter().map(|slot| slot.1).collect();
        let Some(around) = Around::of(&starts, filled, windows) else { return Err(Box::new(self)) };
        let per_group = *per_group;
        let count = self.slots.len();
        self.totals.iter_mut().for_each(|totals| totals.grow(count));

        let mut laid_out = LaidOut::default();
        for group in 0..self.groups {
            let slots = group * per_group..(group + 1) * per_group;
            match &around {
                Some(around) if self.has_values(slots.clone()) => {
                    laid_out.add_filled(slots, around);
                }
                Some(_) => continue,
                None => {
                    let with = slots.clone().filter(|slot| self.has_values(*slot..slot + 1));
                    laid_out.add(with.map(|slot| (slot as u32, starts[slot - slots.start])));
                }
            }
            laid_out.end_group(group);
        }
        let fill = self.select.fill;
        let column = |(call, kind): (&CallPlan, &Kind)| {
            let mut column = match kind {
                Kind::Totals(at) => laid_out.column(&self.totals[*at], &call.function, fill),
                _ => missing(call.result, laid_out.slots.len()),
            };
            if let Some(value) = number(fill).filter(|_| call.is_known) {
                fill_missing(&mut column, &value);
            }
            column
        };
        let slots = self.select.calls.iter().zip(&self.recipe.kinds).map(column);
        let slots = slots.collect();
        let LaidOut { groups, ends, times, .. } = laid_out;
        Ok(GroupRows { groups, ends, block: Block { times, slots } })
    }

    /// Whether a function has a value in one of these slots.
    fn has_values(&self, slots: Range<usize>) -> bool {
        self.totals.iter().any(|totals| slots.clone().any(|slot| totals.count(slot) > 0))
    }

    /// What a function found, and in which groups.
    fn of_call(&self, at: usize) -> (Vec<u32>, Points) {
        let select = self.select;
        let (call, start) = (&select.calls[at], whole_time(select));
        let groups: Range<u32> = 0..self.groups as u32;
        let none = || Points::none(call.result, select.aux.iter().map(|aux| aux.kind.field_type()));
        match (&self.recipe.kinds[at], &self.states[at]) {
            (Kind::Totals(index), _) => {
                let totals = &self.totals[*index];
                let with: Vec<u32> =
                    groups.filter(|group| totals.count(*group as usize) > 0).collect();
                let slots = with.iter().map(|group| *group as usize);
                let values = totals.results(&call.function, slots);
                (with, Points { times: vec![start; values.len()], values, aux: Vec::new() })
            }
            (_, State::Pick(pick)) => {
                let with: Vec<u32> = groups.filter(|group| pick.has(*group as usize)).collect();
                let slots = with.iter().map(|group| *group as usize);
                let own_times = select.calls.len() == 1;
                let points = none().of_picked(pick, slots, |slot| match own_times {
                    true => pick.time(slot),
                    false => start,
                });
                (with, points)
            }
            _ => (Vec::new(), none()),
        }
    }
}

/// The times of all windows of a group, and the rows before the first that was looked at.
struct Around {
    times: Vec<i64>,
    before: usize,
}

impl Around {
    /// Around windows with these starts, if they are `filled`; outer `None`: too many are empty, or out of the order that
    /// calculation gives.
    fn of(starts: &[i64], filled: Option<(i64, i64)>, windows: &Windows) -> Option<Option<Self>> {
        let Some((first, last)) = filled else { return Some(None) };
        let (start, end) = (*starts.first()?, *starts.last()?);
        // At the ends of time windows are shorter.
        if first <= model::MIN_TIME_NS || start <= model::MIN_TIME_NS {
            return None;
        }
        let before = usize::try_from(windows.steps(first, start)).ok()?;
        let after = usize::try_from(windows.steps(end, last)).ok()?;
        if before.saturating_add(after) > starts.len() + AROUND_MIN {
            return None;
        }
        // What is in the range fits, whatever the product does.
        let of_window = |at: usize| first.wrapping_add(windows.every_ns.wrapping_mul(at as i64));
        let times = (0..before + starts.len() + after).map(of_window).collect();
        Some(Some(Self { times, before }))
    }
}

/// Rows, group by group.
#[derive(Default)]
struct LaidOut {
    groups: Vec<u32>,
    ends: Vec<u32>,
    times: Vec<i64>,
    /// The slot of each row, or [`ABSENT`].
    slots: Vec<u32>,
}

impl LaidOut {
    fn add(&mut self, rows: impl Iterator<Item = (u32, i64)>) {
        for (slot, time) in rows {
            self.slots.push(slot);
            self.times.push(time);
        }
    }

    fn add_filled(&mut self, slots: Range<usize>, around: &Around) {
        let after = around.times.len() - around.before - slots.len();
        self.times.extend_from_slice(&around.times);
        self.slots.extend(std::iter::repeat_n(ABSENT, around.before));
        self.slots.extend(slots.map(|slot| slot as u32));
        self.slots.extend(std::iter::repeat_n(ABSENT, after));
    }

    /// The rows of a group were added.
    fn end_group(&mut self, group: usize) {
        let end = self.slots.len() as u32;
        if self.ends.last().copied().unwrap_or(0) < end {
            self.groups.push(group as u32);
            self.ends.push(end);
        }
    }

    /// What a function has in the rows. The number of values in empty windows is 0, unless the group has none at all.
    fn column(&self, totals: &Totals, function: &Function, fill: Fill) -> Column {
        let carried = (fill == Fill::Previous).then(|| self.carried(totals));
        let slots = carried.as_ref().unwrap_or(&self.slots);
        let count = |slot: u32| if slot == ABSENT { 0 } else { totals.count(slot as usize) };
        let mut validity = Bitmap::of(slots, |slot| count(slot) > 0);
        let values = if *function == Function::Count {
            Values::Integer(slots.iter().map(|slot| count(*slot).cast_signed()).collect())
        } else {
            let some = |slot: &u32| if *slot == ABSENT { 0 } else { *slot as usize };
            totals.results(function, slots.iter().map(some)).values
        };
        if fill == Fill::Null && *function == Function::Count {
            validity = self.of_groups(&validity);
        }
        let has_all = validity.count_ones() == validity.len();
        Column { values, validity: (!has_all).then_some(validity) }
    }

    /// The slots of rows, in place of those without values the last before them of the same group.
    fn carried(&self, totals: &Totals) -> Vec<u32> {
        let mut carried = Vec::with_capacity(self.slots.len());
        for end in &self.ends {
            let mut last = ABSENT;
            for slot in &self.slots[carried.len()..*end as usize] {
                if *slot != ABSENT && totals.count(*slot as usize) > 0 {
                    last = *slot;
                }
                carried.push(last);
            }
        }
        carried
    }

    /// The rows of groups of which a row is among `rows`.
    fn of_groups(&self, rows: &Bitmap) -> Bitmap {
        let mut all = Bitmap::new();
        for end in &self.ends {
            let of_group = all.len()..*end as usize;
            let has_one = rows.count_ones_in(of_group.clone()) > 0;
            all.extend_filled(of_group.len(), has_one);
        }
        all
    }
}
