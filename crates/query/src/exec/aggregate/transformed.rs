//! Points of groups on their way through transformations, all of a group at once.
//!
//! Where windows are not filled first, what transformations are given is known, and so is about how much they give. Then no group
//! needs a pipeline of its own (`exec::transform`), threads take groups in turn, and the points may be rows as they are. Where windows
//! are filled, or memory is short, points pass a block at a time.

use influxql::Fill;

use super::by_group::part_by_part;
use super::{Aggregate, Points};
use crate::QueryError;
use crate::exec::transform::{Batch, Steps};
use crate::functions::Function;
use crate::functions::transform::Transform;
use crate::plan::{CallPlan, Select};

/// Several threads are worth it for so many points.
const POINTS_SHARED_MIN: usize = 1 << 16;

/// A time and a number.
const POINT_BYTES: usize = 16;

/// So many chunks of groups for each thread.
const CHUNKS: usize = 8;

impl Aggregate {
    /// Transforms the points of groups, where that can be done at once; whether they are as the query wants them now.
    pub(super) fn transform(&self, points: &mut Vec<Vec<Points>>) -> Result<bool, QueryError> {
        let fills = |inner: &Select| inner.windows.is_some() && inner.fill != Fill::None;
        let inner = || self.inner.iter().flatten();
        if inner().next().is_none() {
            return Ok(true);
        }
        // A pipeline makes no more than is wanted.
        let is_limited = (self.select.limit, self.select.offset) != (0, 0);
        if points.len() < 2 || is_limited || inner().any(|inner| fills(inner)) {
            return Ok(false);
        }
        let known: usize = points.iter().flatten().map(Points::memory_bytes).sum();
        let forecast: usize =
            self.select.calls.iter().map(forecast_bytes).fold(0, usize::saturating_add);
        let bytes = known.saturating_add(forecast.saturating_mul(points.len()));
        let Ok(_held) = self.context.budget.reserve(bytes) else { return Ok(false) };
        let count: usize = points.iter().flatten().map(|points| points.times.len()).sum();
        let is_much = count >= POINTS_SHARED_MIN || forecast > 0;
        let threads = if is_much { self.context.threads.max(1) } else { 1 };
        let chunks: Vec<&[Vec<Points>]> =
            points.chunks(points.len().div_ceil(threads * CHUNKS).max(1)).collect();
        let found = part_by_part(threads, &chunks, |chunk| {
            chunk
                .iter()
                .map(|of_group| self.transform_group(of_group))
                .collect::<Result<Vec<_>, _>>()
        })?;
        *points = found.into_iter().flatten().collect();
        Ok(true)
    }

    fn transform_group(&self, of_group: &[Points]) -> Result<Vec<Points>, QueryError> {
        if of_group.iter().all(|points| points.times.is_empty()) {
            return Ok(of_group.to_vec());
        }
        let transform = |(at, points): (usize, &Points)| {
            let mut points = points.clone();
            if self.inner[at].is_none() {
                return Ok(points);
            }
            if self.select.calls[at].function == Function::Stddev {
                points.name_missing();
            }
            let mut steps = Steps::new(&self.select, at, &self.context)?;
            Ok(steps.all(Batch::of(points.times, points.values))?.into_points())
        };
        of_group.iter().enumerate().map(transform).collect()
    }
}

/// Bytes of the points that a function adds to those of each group: as many as it is asked to forecast.
fn forecast_bytes(call: &CallPlan) -> usize {
    let added = |transform: &Transform| match transform {
        Transform::HoltWinters(arguments) => arguments.count.saturating_mul(POINT_BYTES),
        _ => 0,
    };
    call.transforms.iter().map(added).fold(0, usize::saturating_add)
}
