//! The first rows of several series, for LIMIT: stretches of time from the first on, until they have enough.
//!
//! Of each series as many rows as are wanted of all could be the first ones. Where series are about alike a share of them
//! each is: the latest 1000 of 30,000 lines of a hundred hosts were all of them read.

use std::sync::Arc;

use model::{Reservation, TimeRange};
use store::ScanSlice;

use super::first::merged;
use super::gather::Gathered;
use crate::exec::rows::Block;
use crate::exec::unit::Unit;
use crate::plan::Select;
use crate::{QueryContext, QueryError};

/// How many times as many rows as are missing a stretch is to have, by what is known: it may turn out to have fewer.
const MARGIN: u64 = 2;

/// A stretch with fewer rows takes as long to read: each series is looked at.
const ROWS_MIN: u64 = 64;

/// How many times as many rows the next stretch is to have, where one had none.
const GROWTH: u64 = 16;

/// Stretches that are read: if these do not have enough rows, they are not where they were thought to be.
const STRETCHES_MAX: usize = 4;

/// The first rows of some series of the only input, or of all, within a time, as many as LIMIT and OFFSET want, and their
/// memory; `None`: they were not found soon.
pub(super) fn read(
    select: &Select,
    context: &QueryContext,
    unit: &Unit,
    (series, within): (Option<&Arc<[u32]>>, TimeRange),
) -> Result<Option<(Block, Reservation)>, QueryError> {
    let wanted = usize::try_from(select.limit.saturating_add(select.offset)).unwrap_or(usize::MAX);
    let all = u64::from(unit.inputs[0].scan.series().len).max(1);
    let some = series.map_or(all, |series| series.len() as u64).max(1);
    // Where there are more at once than was thought, to read some series takes less.
    let rows_max = context.tuning.gather_rows.saturating_mul(2).max(wanted as u64);
    let rows_max = usize::try_from(rows_max).unwrap_or(usize::MAX);
    let mut held = context.budget.reserve(0)?;
    let mut best = Block { times: Vec::new(), slots: Vec::new() };
    // Rows of all series, since that is what the extent is about.
    let stretch = (wanted as u64).saturating_mul(MARGIN).max(ROWS_MIN);
    let mut stretch = stretch.saturating_mul(all) / some;
    // Nothing is on this side of what rows may be within.
    let mut done = match select.ascending {
        true => within.min.checked_sub(1),
        false => within.max.checked_add(1),
    };
    for _ in 0..STRETCHES_MAX {
        let is_behind = |done: i64| match select.ascending {
            true => done >= within.max,
            false => done <= within.min,
        };
        if done.is_some_and(is_behind) {
            return Ok(Some((best, held)));
        }
        let Some(time) = unit.extent.slice(done, stretch, select.ascending) else {
            return Ok(Some((best, held)));
        };
        done = Some(if select.ascending { time.max } else { time.min });
        let slice = ScanSlice {
            series: series.cloned(),
            time: time.intersect(&within),
            rows_per_series: unit.inputs[0].rows_per_series,
            ..ScanSlice::all()
        };
        let rows = (unit.rows_within(0, &slice) as u64, rows_max);
        let found = match Gathered::read_slices(select, context, unit, vec![(0, slice)], rows) {
            Ok(Some(found)) => found,
            Ok(None) | Err(QueryError::OverBudget(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let (found, ..) = found.sorted(select.ascending);
        let count = found.times.len() as u64;
        best = merged(best, &found, select.ascending, wanted);
        held.resize(best.memory_bytes())?;
        let missing = (wanted - best.times.len()) as u64;
        if missing == 0 {
            return Ok(Some((best, held)));
        }
        stretch = match count {
            0 => stretch.saturating_mul(GROWTH),
            _ => (stretch / count + 1).saturating_mul(missing).saturating_mul(MARGIN),
        };
    }
    Ok(None)
}
