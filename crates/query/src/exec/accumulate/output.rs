//! From the state of groups to points, in the order of the result.

use model::{Column, FieldType, Scalar, Values};

use super::collect::{Finished, Origin};
use super::pick::Pick;
use super::points::Points;
use super::tally::Tally;
use super::{Accumulator, Kind, State, combination};
use crate::exec::column::{self, cast_scalar};
use crate::exec::input::{ColumnSource, Input};
use crate::functions::Function;
use crate::functions::integral::{Cut, integral};
use crate::plan::{CallPlan, Select};

/// Makes points of finished state.
pub(super) struct PointsOutput<'b> {
    pub(super) accumulator: &'b Accumulator<'b>,
    pub(super) inputs: &'b [Input],
    pub(super) finished: &'b [Option<Finished<'b>>],
}

impl PointsOutput<'_> {
    /// The points of every group; of one that has none, nothing: of very many groups few may have some.
    pub(super) fn of_groups(&self) -> Vec<Vec<Points>> {
        let groups = self.accumulator.groups;
        let listed = self.accumulator.slots.listed_groups(groups);
        let is_there = |group: usize| match &listed {
            Some(listed) => listed.get(group),
            None => self.accumulator.slots.grid_of_group(group).any(|slot| self.has(slot)),
        };
        let points = |group| if is_there(group) { self.of_group(group) } else { Vec::new() };
        (0..groups).map(points).collect()
    }

    /// Whether a function may have a point in a slot.
    fn has(&self, slot: usize) -> bool {
        let states = self.accumulator.states.iter().zip(self.finished);
        self.accumulator.recipe.kinds.iter().zip(states).any(|(kind, of_call)| {
            match (kind, of_call) {
                (Kind::Totals(index), _) => self.accumulator.totals[*index].count(slot) > 0,
                // That is not kept by slot.
                (Kind::CollectGroup, _) => true,
                (_, (State::Tally(tally), _)) => tally.has(slot),
                (_, (State::Pick(pick), _)) => pick.has(slot),
                (_, (_, Some(finished))) => finished.has(slot),
                _ => false,
            }
        })
    }

    /// The points of every function.
    fn of_group(&self, group: usize) -> Vec<Points> {
        let select = self.accumulator.select;
        let mut slots = self.accumulator.slots.of_group(group as u32, whole_time(select));
        if !select.ascending {
            slots.reverse();
        }
        let own_times = has_own_times(select);
        let each = select.calls.iter().zip(&self.accumulator.recipe.kinds).enumerate();
        each.map(|(at, (call, kind))| {
            let aux_types = || select.aux.iter().map(|aux| aux.kind.field_type());
            match (kind, &self.accumulator.states[at], &self.finished[at]) {
                (Kind::Totals(index), ..) => self.totals(*index, &call.function, &slots),
                (Kind::CollectGroup, _, Some(finished)) if call.function == Function::Values => {
                    self.values(group, finished)
                }
                (Kind::CollectGroup, _, Some(finished)) => self.integral(group, call, finished),
                (_, State::Tally(tally), _) => self.tallied(tally, call.result, &slots),
                (_, State::Pick(pick), _) => self.picked(pick, call.result, &slots, own_times),
                (_, _, Some(finished)) => {
                    let own =
                        call.function.keeps_times() || (own_times && call.function.is_selector());
                    self.collected(finished, call.result, &slots, own)
                }
                _ => Points::none(call.result, aux_types()),
            }
        })
        .collect()
    }

    fn totals(&self, index: usize, function: &Function, slots: &[(usize, i64)]) -> Points {
        let totals = &self.accumulator.totals[index];
        // Mostly every window has rows, and slots lie side by side.
        let (times, values) = match totals.all_counted(slots) {
            Some(rows) => {
                (slots.iter().map(|slot| slot.1).collect(), totals.results(function, rows))
            }
            None => {
                let mut rows = Vec::with_capacity(slots.len());
                let mut times = Vec::with_capacity(slots.len());
                for (slot, start) in slots.iter().filter(|(slot, _)| totals.count(*slot) > 0) {
                    rows.push(*slot);
                    times.push(*start);
                }
                (times, totals.results(function, rows.into_iter()))
            }
        };
        Points { times, values, aux: Vec::new() }
    }

    fn picked(
        &self,
        pick: &Pick,
        result: FieldType,
        slots: &[(usize, i64)],
        own_times: bool,
    ) -> Points {
        let aux = self.accumulator.select.aux.iter().map(|aux| aux.kind.field_type());
        let with = || slots.iter().filter(|(slot, _)| pick.has(*slot));
        let mut starts = with().map(|(_, start)| *start);
        let with = with().map(|(slot, _)| *slot);
        Points::none(result, aux).of_picked(pick, with, |slot| match own_times {
            true => pick.time(slot),
            false => starts.next().expect("BUG: every slot has a start"),
        })
    }

    fn tallied(&self, tally: &Tally, result: FieldType, slots: &[(usize, i64)]) -> Points {
        let select = self.accumulator.select;
        let mut points = Points::none(result, std::iter::empty());
        for (slot, start) in slots {
            for value in tally.results(*slot, select.ascending) {
                points.times.push(*start);
                points.values.push(cast_scalar(&value, result).as_ref());
            }
        }
        points
    }

    fn collected(
        &self,
        finished: &Finished<'_>,
        result: FieldType,
        slots: &[(usize, i64)],
        own_times: bool,
    ) -> Points {
        let select = self.accumulator.select;
        let combinations = self.accumulator.combinations;
        let key = |origin: Origin| combination(combinations, origin);
        let aux_types = select.aux.iter().map(|aux| aux.kind.field_type());
        let mut points = Points::none(result, aux_types);
        for (slot, start) in slots {
            for found in finished.results(*slot, &key) {
                let Some(row) = found.row else {
                    points.times.push(*start);
                    let value = found.value.and_then(|value| cast_scalar(&value, result));
                    points.values.push(value.as_ref());
                    points.aux.iter_mut().for_each(|column| column.extend_missing(1));
                    continue;
                };
                points.times.push(if own_times { finished.time(row) } else { *start });
                let value = finished.values().get(row as usize);
                points.values.push(value.as_ref());
                let origin = finished.origin(row);
                let input = &self.inputs[origin.input as usize];
                for (at, column) in points.aux.iter_mut().enumerate() {
                    let cell = match input.aux[at] {
                        ColumnSource::Tag { at, blank } => input.tag_cell(at, blank, origin.series),
                        ColumnSource::RowSeries => Some(Scalar::Unsigned(origin.series.into())),
                        ColumnSource::RowTime => Some(Scalar::Integer(finished.time(row))),
                        _ => finished.aux(at).get(row as usize),
                    };
                    column.push(cell.as_ref());
                }
            }
        }
        points
    }

    /// All points as they are.
    fn values(&self, group: usize, finished: &Finished<'_>) -> Points {
        let mut rows = finished.rows(group);
        if !self.accumulator.select.ascending {
            rows.reverse();
        }
        Points {
            times: rows.iter().map(|row| finished.time(*row)).collect(),
            values: column::take(finished.values(), &rows),
            aux: Vec::new(),
        }
    }

    fn integral(&self, group: usize, call: &CallPlan, finished: &Finished<'_>) -> Points {
        let select = self.accumulator.select;
        let Function::Integral { unit_ns } = call.function else {
            panic!("BUG: only integrals are collected by group");
        };
        let windows = select.windows.as_ref();
        let cut = Cut { windows, unit_ns, ascending: select.ascending };
        macro_rules! areas {
            ($values:expr) => {{
                let (values, times) = finished.in_order($values, group, select.ascending);
                integral(&values, &times, &cut)
            }};
        }
        let areas = match &finished.values().values {
            Values::Float(v) => areas!(v),
            Values::Integer(v) => areas!(v),
            Values::Unsigned(v) => areas!(v),
            _ => Vec::new(),
        };
        Points {
            times: areas.iter().map(|area| area.time).collect(),
            values: Column::new(Values::Float(areas.iter().map(|area| area.value).collect())),
            aux: Vec::new(),
        }
    }
}

/// Whether a value that is one of the points is shown with its own time.
pub(super) fn has_own_times(select: &Select) -> bool {
    select.windows.is_none() && select.calls.len() == 1
}

/// The time of results over the whole range.
pub(super) fn whole_time(select: &Select) -> i64 {
    if select.has_lower_bound() { select.bound } else { 0 }
}
