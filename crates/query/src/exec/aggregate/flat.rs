//! Groups that have a row each: their rows are made together, and are parts of one batch.

use std::sync::Arc;

use influxql::Fill;
use model::{ColumnBatch, Name, Reservation, Strings};

use super::Aggregate;
use crate::QueryError;
use crate::exec::accumulate::flat::GroupRows;
use crate::exec::stream::{Part, outputs};
use crate::exec::unit::Unit;
use crate::plan::Select;

/// Rows of groups, one each.
pub(super) struct Flat {
    /// How many groups were read.
    pub(super) read: usize,
    /// The group of each row.
    groups: Vec<usize>,
    batch: Arc<ColumnBatch>,
    /// The next row.
    at: usize,
    _held: Reservation,
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
        let of_group = |group: &usize| self.unit.groups.first_series(*group);
        let series = self.flat.groups.iter().map(of_group);
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
            let flat = self.read_flat(unit)?;
            self.done += flat.read;
            if !flat.groups.is_empty() {
                let unit = &self.units[0];
                return Ok(Some(Together { unit, select: &self.select, flat }));
            }
        }
    }

    /// Whether every group has a row at most, which needs nothing but itself.
    pub(super) fn has_row_each(&self) -> bool {
        let select = &self.select;
        select.windows.is_none()
            && select.ascending
            && (select.limit, select.offset) == (0, 0)
            && matches!(select.fill, Fill::Null | Fill::None)
            && self.inner.iter().all(Option::is_none)
            && matches!(self.passes.as_slice(), [pass] if pass.recipe.has_row_each())
    }

    /// Reads the next groups of a unit.
    pub(super) fn read_flat(&self, unit: &Unit) -> Result<Flat, QueryError> {
        let run = self.run(&self.passes[0], unit);
        let read = run.groups_at_once(self.done);
        let groups = self.done..self.done + read;
        let state = run.read_state(groups.clone(), run.read_range(), None)?;
        let GroupRows { groups: with_rows, block } = state.rows_of_groups();
        let rows = block.times.len();
        let columns = outputs(&self.select, block);
        let batch = ColumnBatch { rows, runs: Vec::new(), columns };
        let bytes = batch.memory_bytes() + rows * size_of::<usize>();
        let held = self.context.budget.reserve(bytes)?;
        let groups = with_rows.into_iter().map(|group| groups.start + group as usize).collect();
        Ok(Flat { read, groups, batch: Arc::new(batch), at: 0, _held: held })
    }

    /// The row of the next group.
    pub(super) fn next_flat(&mut self) -> Result<Option<Part>, QueryError> {
        let (Some(flat), Some(unit)) = (&mut self.flat, self.units.front()) else {
            return Ok(None);
        };
        let Some(group) = flat.groups.get(flat.at) else {
            self.flat = None;
            return Ok(None);
        };
        if flat.at.is_multiple_of(CHECKED_ROWS) {
            self.context.interrupt.check()?;
        }
        let header = unit.header(*group, &self.select);
        let range = flat.at..flat.at + 1;
        flat.at += 1;
        Ok(Some(Part { header, batch: Arc::clone(&flat.batch), range }))
    }
}

/// Whether somebody wants to stop is asked once in so many rows.
const CHECKED_ROWS: usize = 1024;
