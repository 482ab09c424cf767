//! Groups that have a row each: their rows are made together, and are parts of one batch.

use std::sync::Arc;

use influxql::Fill;
use model::{ColumnBatch, Reservation};

use super::Aggregate;
use crate::QueryError;
use crate::exec::accumulate::flat::GroupRows;
use crate::exec::stream::{Part, outputs};
use crate::exec::unit::Unit;

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

impl Aggregate {
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
