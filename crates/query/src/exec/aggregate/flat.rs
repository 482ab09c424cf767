//! Rows of several groups as parts of one batch.
//!
//! Groups that have a row each, or one a window, have their rows made together of totals. Of other functions the points of each
//! group are put one behind the other, where they are the rows as they are: no window lacks one, and functions have them at the
//! same times.

use std::ops::Range;
use std::sync::Arc;

use influxql::Fill;
use model::{ColumnBatch, FieldType, Name, Reservation, SeriesHeader, Strings};

use super::{Aggregate, Points, beside};
use crate::QueryError;
use crate::exec::accumulate::flat::GroupRows;
use crate::exec::rows::Block;
use crate::exec::stream::{Part, outputs};
use crate::exec::unit::Unit;
use crate::exec::window::Windows;
use crate::plan::{CallPlan, Select};

/// Rows of groups.
pub(super) struct Flat {
    /// The groups that have rows, from the first that was read on.
    first: usize,
    groups: Vec<u32>,
    /// Of each group where its rows end.
    ends: Vec<u32>,
    batch: Arc<ColumnBatch>,
    /// The next group, and its next row.
    at: usize,
    row: usize,
    /// The group whose rows are not all handed out.
    header: Option<Arc<SeriesHeader>>,
    _held: Reservation,
}

/// What was read of groups.
pub(super) enum Read {
    Flat(Flat),
    /// Points of groups, where rows do not come together.
    Points(Range<usize>, GroupPoints),
}

/// Points of groups: of each what each function has.
pub(super) struct GroupPoints {
    pub(super) of_groups: Vec<Vec<Points>>,
    /// Whether nothing is left to do to them before they are rows.
    pub(super) are_transformed: bool,
}

/// Rows of some groups of a unit, one each.
pub(crate) struct Together<'a> {
    unit: &'a Unit,
    select: &'a Select,
    flat: Flat,
}

impl Together<'_> {
    /// The measurement's name.
    pub(crate) fn name(&self) -> &Name {
        &self.unit.name
    }

    /// The rows: the time, then the outputs.
    pub(crate) fn batch(&self) -> &Arc<ColumnBatch> {
        &self.flat.batch
    }

    /// For each row the value of a tag, by its place among those that there are; `None`: the rows have no such tag.
    pub(crate) fn tag(&self, key: &Name) -> Option<(&Arc<Strings>, impl Iterator<Item = u32>)> {
        let at = self.select.dimensions.iter().position(|dimension| dimension == key)?;
        let input = self.unit.inputs.first()?;
        let column = &input.scan.series().tags[input.dimensions[at]];
        let of_group = |group: usize| self.unit.groups.first_series(group);
        let series = self.flat.groups.iter().map(|group| self.flat.first + *group as usize);
        let series = series.map(of_group);
        Some((&column.values, series.map(|series| column.codes[series as usize])))
    }
}

impl Aggregate {
    /// The rows of the next groups, as many as are read at once; `None`: there are no more, or rows of groups do not come
    /// together. Not after [`Self::next`].
    pub(crate) fn next_together(&mut self) -> Result<Option<Together<'_>>, QueryError> {
        let have_one_input = self.units.iter().all(|unit| unit.inputs.len() == 1);
        if !self.has_row_each() || !have_one_input {
            return Ok(None);
        }
        loop {
            self.context.interrupt.check()?;
            let Some(unit) = self.units.front() else { return Ok(None) };
            if self.done == unit.groups.len() {
                self.finish_unit();
                continue;
            }
            let (read, Read::Flat(flat)) = self.read_rows(unit)? else {
                panic!("BUG: groups without windows have a row each")
            };
            self.done += read;
            if !flat.groups.is_empty() {
                let unit = &self.units[0];
                return Ok(Some(Together { unit, select: &self.select, flat }));
            }
        }
    }

    /// Whether every group has a row at most, which needs nothing but itself.
    fn has_row_each(&self) -> bool {
        let select = &self.select;
        select.windows.is_none()
            && self.needs_nothing_else()
            && matches!(select.fill, Fill::Null | Fill::None)
            && matches!(self.passes.as_slice(), [pass] if pass.recipe.has_row_each())
    }

    /// Whether every window of a group has a row at most, which needs nothing but itself.
    fn has_row_a_window(&self) -> bool {
        let select = &self.select;
        let are_numbers = || {
            let is_number = |call: &CallPlan| call.shown == call.result && call.result.is_numeric();
            select.calls.iter().all(is_number)
        };
        let is_simple = match select.fill {
            Fill::None | Fill::Null | Fill::Previous => true,
            Fill::Integer(_) | Fill::Number(_) => are_numbers(),
            Fill::Linear => false,
        };
        let has_ends = select.fill == Fill::None
            || select.has_lower_bound() && select.calls.iter().all(CallPlan::is_filled);
        select.windows.as_ref().is_some_and(Windows::is_regular)
            && self.needs_nothing_else()
            && is_simple
            && has_ends
            && select.aux.is_empty()
            && matches!(self.passes.as_slice(), [pass] if pass.recipe.are_totals())
    }

    fn needs_nothing_else(&self) -> bool {
        let select = &self.select;
        select.ascending
            && (select.limit, select.offset) == (0, 0)
            && self.inner.iter().all(Option::is_none)
    }

    /// Reads the next groups of a unit, if their rows can come together. How many, and what is there of them.
    pub(super) fn read_together(&self, unit: &Unit) -> Result<Option<(usize, Read)>, QueryError> {
        // A group by itself has nobody to be together with.
        let come_together =
            unit.groups.len() > 1 && (self.has_row_each() || self.has_row_a_window());
        come_together.then(|| self.read_rows(unit)).transpose()
    }

    /// Reads the next groups of a unit, which have a row each, or one a window. How many, and what is there of them.
    fn read_rows(&self, unit: &Unit) -> Result<(usize, Read), QueryError> {
        let run = self.run(&self.passes[0], unit);
        let read = run.groups_at_once(self.done);
        let groups = self.done..self.done + read;
        if let Some(of_groups) = beside::points(&run, &groups)? {
            let points = GroupPoints { of_groups, are_transformed: true };
            return Ok((read, Read::Points(groups, points)));
        }
        let state = run.read_state(groups.clone(), run.read_range(), None)?;
        let (fills, range) = (self.select.fill != Fill::None, self.select.range);
        let filled =
            |all: &Windows| fills.then(|| (all.at(range.min).start, all.at(range.max).start));
        let rows = match &self.select.windows {
            None => Ok(state.rows_of_groups()),
            Some(windows) => state.rows_of_windows(filled(windows)),
        };
        let found = match rows {
            Ok(rows) => Read::Flat(self.flat_of(self.done, rows)?),
            Err(state) => {
                let of_groups = state.finish(&unit.inputs);
                Read::Points(groups, GroupPoints { of_groups, are_transformed: true })
            }
        };
        Ok((read, found))
    }

    /// What is handed out of groups whose points are known: the points, or their rows if points are rows.
    pub(super) fn rows_of_points(
        &self,
        groups: Range<usize>,
        mut points: Vec<Vec<Points>>,
    ) -> Result<Read, QueryError> {
        let are_transformed = self.transform(&mut points)?;
        let windows = self.filled_windows(&points);
        let are_rows = are_transformed
            && self.may_be_rows()
            && groups.len() > 1
            && windows.is_some_and(|windows| {
                points.iter().all(|of_group| are_rows(of_group, windows.as_deref()))
            });
        let as_points =
            |of_groups| Read::Points(groups.clone(), GroupPoints { of_groups, are_transformed });
        if !are_rows {
            return Ok(as_points(points));
        }
        let bytes = points.iter().flatten().map(Points::memory_bytes).sum();
        // They are there twice for a moment.
        let Ok(held) = self.context.budget.reserve(bytes) else {
            return Ok(as_points(points));
        };
        let mut numbers: Vec<u32> = (0..groups.len() as u32).collect();
        if !self.select.ascending {
            points.reverse();
            numbers.reverse();
        }
        let of_groups = numbers.into_iter().zip(points);
        let has_rows = |points: &Points| !points.times.is_empty();
        let mut with_rows =
            of_groups.filter(|(_, of_group)| of_group.first().is_some_and(has_rows));
        let Some((number, mut all)) = with_rows.next() else {
            return Ok(as_points(Vec::new()));
        };
        let (mut numbers, mut ends) = (vec![number], vec![all[0].times.len() as u32]);
        for (number, of_group) in with_rows {
            all.iter_mut().zip(&of_group).for_each(|(all, more)| all.append(more));
            numbers.push(number);
            ends.push(all[0].times.len() as u32);
        }
        let times = std::mem::take(&mut all[0].times);
        let aux = std::mem::take(&mut all[0].aux);
        let slots = all.into_iter().map(|points| points.values).chain(aux).collect();
        let rows = GroupRows { groups: numbers, ends, block: Block { times, slots } };
        drop(held);
        Ok(Read::Flat(self.flat_of(groups.start, rows)?))
    }

    /// Whether points of functions, once they are transformed, are rows where no window lacks one, as far as the query says.
    fn may_be_rows(&self) -> bool {
        let select = &self.select;
        let aux_as_they_are = matches!(select.fill, Fill::Null | Fill::None);
        (select.limit, select.offset) == (0, 0)
            && select.calls.iter().all(|call| {
                call.input.is_some() && ![call.result, call.shown].contains(&FieldType::String)
            })
            && (select.aux.is_empty()
                || aux_as_they_are
                    && select.aux.iter().all(|aux| aux.kind.field_type() != FieldType::String))
    }

    /// The windows that every group has a row for, in the order of the result; inner `None`: those that have a point. Outer
    /// `None`: others for each group, or more than the first group has points.
    fn filled_windows(&self, points: &[Vec<Points>]) -> Option<Option<Vec<i64>>> {
        let select = &self.select;
        let Some(windows) = select.windows.as_ref().filter(|_| select.fill != Fill::None) else {
            return Some(None);
        };
        if !select.calls.iter().any(CallPlan::is_filled) {
            return Some(None);
        }
        if !windows.is_regular() || !select.has_lower_bound() {
            return None;
        }
        let first = windows.at(select.range.min).start;
        let last = windows.at(select.range.max).start;
        let count =
            points.iter().flatten().map(|points| points.times.len()).find(|len| *len > 0)?;
        if windows.steps(first, last) + 1 != count as i128 {
            return None;
        }
        // What is in the range fits, whatever the product does.
        let start = |at: i64| first.wrapping_add(windows.every_ns.wrapping_mul(at));
        let mut starts: Vec<i64> = (0..count as i64).map(start).collect();
        if !select.ascending {
            starts.reverse();
        }
        Some(Some(starts))
    }

    /// Rows of groups, which are numbered from `first` on.
    fn flat_of(&self, first: usize, rows: GroupRows) -> Result<Flat, QueryError> {
        let GroupRows { groups, ends, block } = rows;
        let rows = block.times.len();
        let columns = outputs(&self.select, block);
        let batch = ColumnBatch { rows, runs: Vec::new(), columns };
        let bytes = batch.memory_bytes() + groups.len() * 2 * size_of::<u32>();
        let held = self.context.budget.reserve(bytes)?;
        Ok(Flat {
            first,
            groups,
            ends,
            batch: Arc::new(batch),
            at: 0,
            row: 0,
            header: None,
            _held: held,
        })
    }

    /// The next rows of the next group, at most `rows_max`.
    pub(super) fn next_flat(&mut self, rows_max: usize) -> Result<Option<Part>, QueryError> {
        let (Some(flat), Some(unit)) = (&mut self.flat, self.units.front()) else {
            return Ok(None);
        };
        let (Some(group), Some(end)) = (flat.groups.get(flat.at), flat.ends.get(flat.at)) else {
            self.flat = None;
            return Ok(None);
        };
        if flat.at.is_multiple_of(CHECKED_GROUPS) {
            self.context.interrupt.check()?;
        }
        let header = flat.header.take();
        let new = || unit.header(flat.first + *group as usize, &self.select);
        let header = header.unwrap_or_else(new);
        let end = *end as usize;
        let range = flat.row..end.min(flat.row.saturating_add(rows_max.max(1)));
        flat.row = range.end;
        if flat.row == end {
            flat.at += 1;
        } else {
            flat.header = Some(Arc::clone(&header));
        }
        Ok(Some(Part { header, batch: Arc::clone(&flat.batch), range }))
    }

    /// Whether rows are there, and nothing has to be read for them.
    pub(crate) fn is_ready(&self) -> bool {
        self.flat.as_ref().is_some_and(|flat| flat.at < flat.groups.len())
    }
}

/// Whether the points of a group are its rows: all functions have them at the same times, which are those of `windows`, if there
/// are such; or there are none.
fn are_rows(of_group: &[Points], windows: Option<&[i64]>) -> bool {
    let Some((first, others)) = of_group.split_first() else { return true };
    let are_all = windows.is_none_or(|windows| windows == first.times || first.times.is_empty());
    are_all && others.iter().all(|points| points.times == first.times)
}

/// Whether somebody wants to stop is asked once in so many groups.
const CHECKED_GROUPS: usize = 1024;
