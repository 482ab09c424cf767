//! With a LIMIT, time is read in slices in the order of the result, from small to large, until every group has enough rows: of windows,
//! or of what is computed from one row to the next.
//!
//! Invariants
//! - What comes later in the order of the result changes nothing of the rows before it: of a transformed row so it is, of a
//!   window whose rows were all read too.

use std::ops::Range;

use influxql::Fill;
use model::TimeRange;

use super::{Points, Run};
use crate::QueryError;
use crate::exec::input::Input;
use crate::exec::transform::{Batch, Steps};
use crate::exec::window::Windows;
use crate::functions::Function;
use crate::plan::CallPlan;

/// Where no windows are, slices pay if there are so many times the rows that are wanted.
const ROWS_OF_WANTED: u64 = 4;

/// How many times as many rows the next slice has,
const GROWTH: u64 = 4;
/// and with a condition.
const GROWTH_SIFTED: u64 = 32;

impl Run<'_> {
    /// Whether the points of `groups` are found slice by slice.
    pub(super) fn reads_in_slices(&self, groups: &Range<usize>, range: TimeRange) -> bool {
        let wanted = self.wanted();
        if self.select.limit == 0 {
            return false;
        }
        if self.select.windows.is_none() {
            let wanted = wanted.saturating_mul(groups.len() as u64);
            let tuning = &self.context.tuning;
            let few = wanted.max(tuning.first_slice_rows).saturating_mul(ROWS_OF_WANTED);
            // Of short series a page has all rows of many: each slice would decode it.
            let series = self.unit.groups.series_count(groups.clone()) as u64;
            let least = few.max(series.saturating_mul(tuning.slice_series_rows));
            // A subquery would be worked out again for each slice.
            let are_stored = self.unit.inputs.iter().all(|input| input.request.is_some());
            return are_stored && self.shows_every_point() && self.unit.extent.rows() > least;
        }
        self.windows_within(range) > wanted.saturating_mul(4).saturating_add(16)
            // Areas and transformations reach over the edges of slices.
            && !self.select.calls.iter().any(|call| {
                matches!(call.function, Function::Integral { .. }) || !call.transforms.is_empty()
            })
    }

    /// Reads slices of time until every group has the rows that LIMIT wants.
    pub(super) fn read_slices(
        &self,
        groups: Range<usize>,
        range: TimeRange,
    ) -> Result<Vec<Vec<Points>>, QueryError> {
        let aux_types = || self.select.aux.iter().map(|aux| aux.kind.field_type());
        let none = || {
            let calls = self.select.calls.iter();
            calls.map(|call| Points::none(call.result, aux_types())).collect::<Vec<_>>()
        };
        let mut points: Vec<Vec<Points>> = groups.clone().map(|_| none()).collect();
        let mut only = vec![true; groups.len()];
        let ascending = self.select.ascending;
        let mut done = None;
        let first = self.context.tuning.first_slice_rows;
        let mut rows = match self.select.windows {
            Some(_) => first,
            None => first.max(self.wanted().saturating_mul(2 * groups.len() as u64)),
        };
        // No group has enough with fewer windows than it is to have rows.
        let mut windows_least = self.wanted();
        while let Some(slice) = self.unit.extent.slice(done, rows, ascending) {
            let slice = self.whole_windows(slice.intersect(&range), windows_least, range);
            done = Some(if ascending { slice.max } else { slice.min });
            rows = rows.saturating_mul(self.slice_growth());
            if slice.is_empty() {
                if slice.min > range.max && ascending || slice.max < range.min && !ascending {
                    break;
                }
                continue;
            }
            windows_least = 1;
            let more = self.read(groups.clone(), slice, Some(&only))?;
            for (mine, more) in points.iter_mut().zip(&more) {
                mine.iter_mut().zip(more).for_each(|(mine, more)| mine.append(more));
            }
            for (only, points) in only.iter_mut().zip(&points) {
                *only = !self.has_enough(points)?;
            }
            if !only.contains(&true) {
                break;
            }
        }
        Ok(points)
    }

    /// How many times as many rows the next slice has. Where a condition leaves a few of very many rows, going through series again
    /// is what slices cost.
    fn slice_growth(&self) -> u64 {
        let is_sifted = |input: &Input| {
            let request = input.request.as_ref();
            input.filter.is_some() || request.is_some_and(|request| !request.filters.is_empty())
        };
        match self.select.windows.is_none() && self.unit.inputs.iter().any(is_sifted) {
            true => GROWTH_SIFTED,
            false => GROWTH,
        }
    }

    /// The slice, widened to whole windows in the direction of reading, about `least` of them at least.
    pub(super) fn whole_windows(
        &self,
        slice: TimeRange,
        least: u64,
        range: TimeRange,
    ) -> TimeRange {
        let Some(windows) = &self.select.windows else { return slice };
        if slice.is_empty() {
            return slice;
        }
        let further = i64::try_from(least.saturating_sub(1)).unwrap_or(i64::MAX);
        let widened = if self.select.ascending {
            let max = windows.moved(slice.min, further).clamp(slice.max, range.max);
            TimeRange::new(slice.min, windows.at(max).end.saturating_sub(1).max(max))
        } else {
            let min = windows.moved(slice.max, -further).clamp(range.min, slice.min);
            TimeRange::new(windows.at(min).start.min(min), slice.max)
        };
        widened.intersect(&range)
    }

    /// Whether LIMIT cuts the rows before the last point of every function.
    fn has_enough(&self, points: &[Points]) -> Result<bool, QueryError> {
        match &self.select.windows {
            Some(windows) => Ok(self.has_enough_windows(windows, points)),
            None => self.has_enough_rows(points),
        }
    }

    fn has_enough_windows(&self, windows: &Windows, points: &[Points]) -> bool {
        let enough = |(points, call): (&Points, &CallPlan)| {
            let rows = match (points.times.first(), points.times.last()) {
                _ if call.input.is_none() => return true,
                (Some(first), Some(last)) => {
                    let filled = self.select.fill != Fill::None && call.function.is_filled();
                    let from = match (self.select.ascending, self.select.has_lower_bound()) {
                        (true, true) => windows.at(self.select.range.min).start,
                        (true, false) => *first,
                        (false, _) => windows.at(self.select.range.max).start,
                    };
                    let windows = windows.steps(from, *last).unsigned_abs() as u64;
                    if filled { windows } else { points.times.len() as u64 }
                }
                _ => 0,
            };
            rows >= self.wanted()
        };
        points.iter().zip(&self.select.calls).all(enough)
    }

    /// The same without windows. LIMIT counts the points of each function.
    fn has_enough_rows(&self, points: &[Points]) -> Result<bool, QueryError> {
        let wanted = self.wanted();
        for (at, points) in points.iter().enumerate() {
            if (points.times.len() as u64) < wanted {
                return Ok(false);
            }
            let _held = self.context.budget.reserve(2 * points.memory_bytes())?;
            let mut steps = Steps::new(self.select, at, self.context)?;
            let Points { times, values, .. } = points.clone();
            // What comes at the end of all points is none of the first.
            if (steps.apply(Batch::of(times, values))?.times.len() as u64) < wanted {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Rows of a group up to the last that LIMIT leaves.
    fn wanted(&self) -> u64 {
        self.select.limit.saturating_add(self.select.offset)
    }
}
