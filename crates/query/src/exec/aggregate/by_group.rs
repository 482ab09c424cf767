//! How many groups are read together: as many as fit into memory; of functions that keep values fewer, and on each thread
//! others.
//!
//! Where each thread reads some series for all groups, what the threads kept is put together afterwards, results are made by one of
//! them, and nothing fits into a cache: of a deviation by group a third was moving values. Groups share no values, so that a thread
//! can read a few of them, finish them, and forget what it kept.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use model::TimeRange;

use super::{Points, Run, unit};
use crate::QueryError;

/// If as many series as this have the rows that are read at once, these are too few of each.
const SERIES_AT_ONCE_MAX: u64 = 256;

impl Run<'_> {
    /// How many groups fit into memory together.
    pub(super) fn groups_at_once(&self, done: usize) -> usize {
        let range = self.read_range();
        let left = self.unit.groups.len() - done;
        let share = (self.memory_left() as u64 / 4).min(self.context.tuning.state_bytes);
        let total = self.unit.groups.len() as u64;
        let rows = self.unit.rows_estimate(0..self.unit.groups.len()) / total.max(1);
        // No more windows can have rows than there are rows.
        let windows = self.windows_within(range).min(rows.saturating_mul(4).saturating_add(16));
        let slots = windows.saturating_mul(self.recipe.slot_bytes() as u64);
        let values = rows.saturating_mul(self.recipe.row_bytes(self.select) as u64);
        let each = slots.saturating_add(values).max(1);
        ((share / each).max(1) as usize).min(left)
    }

    /// How many groups are read at once, if they are better read apart.
    pub(super) fn groups_apart(&self, groups: &Range<usize>) -> Option<usize> {
        let keeps_values = self.recipe.row_bytes(self.select) > 0;
        let rows = self.unit.rows_estimate(groups.clone());
        let rows_at_once = self.context.tuning.kept_rows;
        if !keeps_values || rows < 2 * rows_at_once {
            return None;
        }
        // Short series are read with all that share a block with them, whichever groups they are of.
        let series: u64 =
            self.unit.inputs.iter().map(|input| u64::from(input.scan.series().len)).sum();
        let of_block = self.unit.extent.parts().iter().map(|part| part.rows).max().unwrap_or(0);
        if of_block / series.max(1) < rows_at_once / SERIES_AT_ONCE_MAX {
            return None;
        }
        let each = (rows / groups.len().max(1) as u64).max(1);
        let at_once = (rows_at_once / each).max(1) as usize;
        (at_once * 2 <= groups.len()).then_some(at_once)
    }

    /// The points of `groups`, `at_once` at a time.
    pub(super) fn read_apart(
        &self,
        groups: Range<usize>,
        at_once: usize,
        range: TimeRange,
    ) -> Result<Vec<Vec<Points>>, QueryError> {
        let parts: Vec<Range<usize>> = groups
            .clone()
            .step_by(at_once)
            .map(|start| start..groups.end.min(start + at_once))
            .collect();
        let next = AtomicUsize::new(0);
        // Some groups have many more rows than others: who is done takes the next part. After an error nobody does.
        let work = |_: &()| {
            let mut done = Vec::new();
            while let Some(part) = parts.get(next.fetch_add(1, Relaxed)) {
                let points = self.read_part(part.clone(), range);
                let points = points.inspect_err(|_| next.store(parts.len(), Relaxed))?;
                done.push((part.start, points));
            }
            Ok(done)
        };
        let threads = vec![(); self.context.threads.clamp(1, parts.len())];
        let mut done = unit::on_threads(&threads, work)?.concat();
        done.sort_unstable_by_key(|(start, _)| *start);
        Ok(done.into_iter().flat_map(|(_, points)| points).collect())
    }

    /// The points of some groups, read by one thread.
    fn read_part(
        &self,
        groups: Range<usize>,
        range: TimeRange,
    ) -> Result<Vec<Vec<Points>>, QueryError> {
        let mut state = self.accumulator(groups.len(), range)?;
        for at in 0..self.unit.inputs.len() {
            if let Some(slice) = self.unit.slice(at, groups.clone(), range) {
                self.read_share(&mut state, at, &slice, groups.clone(), None)?;
            }
        }
        Ok(state.finish(&self.unit.inputs, |_, points| points))
    }
}
