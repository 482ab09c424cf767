//! Groups that have a row each, or one a window: their rows are made together, and are parts of one batch.

use std::ops::Range;
use std::sync::Arc;

use influxql::Fill;
use model::{ColumnBatch, Name, Reservation, SeriesHeader, Strings};

use super::{Aggregate, Points};
use crate::QueryError;
use crate::exec::accumulate::flat::GroupRows;
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
    Points(Range<usize>, Vec<Vec<Points>>),
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
        let state = run.read_state(groups.clone(), run.read_range(), None)?;
        let (fills, range) = (self.select.fill != Fill::None, self.select.range);
        let filled =
            |all: &Windows| fills.then(|| (all.at(range.min).start, all.at(range.max).start));
        let rows = match &self.select.windows {
            None => Ok(state.rows_of_groups()),
            Some(windows) => state.rows_of_windows(filled(windows)),
        };
        let found = match rows {
            Ok(rows) => Read::Flat(self.flat_of(rows)?),
            Err(state) => Read::Points(groups, state.finish(&unit.inputs, |_, points| points)),
        };
        Ok((read, found))
    }

    fn flat_of(&self, rows: GroupRows) -> Result<Flat, QueryError> {
        let GroupRows { groups, ends, block } = rows;
        let rows = block.times.len();
        let columns = outputs(&self.select, block);
        let batch = ColumnBatch { rows, runs: Vec::new(), columns };
        let bytes = batch.memory_bytes() + groups.len() * 2 * size_of::<u32>();
        let held = self.context.budget.reserve(bytes)?;
        Ok(Flat {
            first: self.done,
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

/// Whether somebody wants to stop is asked once in so many groups.
const CHECKED_GROUPS: usize = 1024;
