//! A row a group at most, of all groups at once: without windows no list of points is made for each of them.

use std::ops::Range;

use super::output::whole_time;
use super::points::Points;
use super::slots::SlotMap;
use super::{Accumulator, Kind, Recipe, State};
use crate::exec::column::{ABSENT, take};
use crate::exec::rows::Block;

/// Rows of groups.
pub(crate) struct GroupRows {
    /// The group of each row, ascending.
    pub groups: Vec<u32>,
    pub block: Block,
}

impl Recipe {
    /// Whether each group has a row at most without windows: totals and picks give one.
    pub(crate) fn has_row_each(&self) -> bool {
        let is_one = |kind: &Kind| matches!(kind, Kind::Totals(_) | Kind::Pick | Kind::Nothing);
        self.kinds.iter().all(is_one)
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
            return GroupRows { groups, block: Block { times: points.times, slots } };
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
        GroupRows { groups, block: Block { times, slots } }
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
