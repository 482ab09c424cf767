//! Which pieces of a table a cursor reads, chosen by what they cost.
//!
//! A server turns conditions on the key into one stretch of keys and reads all of it. So series whose
//! ids lie close together are read together, one piece for each range of time, merged by series; the
//! rows between them that nobody asked for are thrown away. Close is what costs less than another call:
//! series of few rows are read together over wide gaps, long ones only with their neighbours, unless
//! every series of the measurement is asked for: then there are no such rows. Series far from others,
//! the few of a small request, and those of which only the first or last rows are wanted are read one
//! by one. So are those of which only a part of each range of time is wanted, if the rest is long: a
//! stretch of keys of several series has all of their times. And so are, over many ranges, series of
//! many rows; those of few are gathered, as many as there is memory for. Backwards every series is read
//! by itself, since servers read forwards only.

use std::ops::Range;
use std::sync::Arc;

use model::{TagExpr, TimeRange};
use store::{ScanSlice, StoreError, TimeOrder};

use super::View;

/// Requests for so few series read one by one.
const FEW_SERIES: usize = 8;
/// Rows that a server reads and sends in the time of a call that finds nothing (measured with ten columns
/// of integers, 7 M rows a second against 0.4 ms).
const CALL_ROWS: u64 = 3000;
/// Rows of a series in a range that are thrown away at most, because their time is not wanted (measured
/// with one column of integers on disk, 25 M rows a second against 0.4 ms for another call).
const UNWANTED_MAX: u64 = 10_000;
/// Series in between that are thrown away at most, however few their rows seem to be: an estimate.
const GAP_MAX: u64 = 1000;
/// Ranges merged at a time; with more, series are gathered or read one by one.
const RANGES_MERGED_MAX: usize = 24;
/// Series read together.
const GROUP_MAX: usize = 4096;
/// Rows read together, so that several servers and connections have something to do.
const GROUP_ROWS: u64 = 100_000;
/// Values of a list that servers are sent.
const LIST_MAX: usize = 200;
/// Rows per series up to which reading a series by itself pays.
const FIRST_ROWS_MAX: u64 = 1000;

/// Series that are read together.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) bucket: u32,
    /// Ids, ascending.
    pub(super) ids: Arc<[i64]>,
    /// Their ordinals.
    pub(super) ordinals: Vec<u32>,
    /// Whether servers should be told which ids between the first and the last are meant.
    pub(super) sparse: bool,
    /// Stretches of time, ascending: a piece for each. One for all if the group is one series.
    pub(super) times: Vec<TimeRange>,
    /// Whether one piece gathers all stretches.
    pub(super) gathers: bool,
}

/// The groups of a slice, in the order of ordinals. `gather_bytes`: memory for the rows of a group
/// that is gathered, if there is so much.
pub(super) fn groups(
    view: &View,
    slice: &ScanSlice,
    gather_bytes: Option<usize>,
) -> Result<Vec<Group>, StoreError> {
    let time = view.request.time.intersect(&slice.time);
    let cut = |range: &TimeRange| range.intersect(&time);
    let times: Vec<TimeRange> = view.ranges.iter().map(cut).filter(|r| !r.is_empty()).collect();
    let all = view.series.len();
    let ordinals: Vec<u32> = match &slice.series {
        None => (0..all as u32).collect(),
        Some(some) => some.to_vec(),
    };
    if let Some(bad) = ordinals.iter().find(|ordinal| **ordinal as usize >= all) {
        return Err(StoreError::Invalid(format!("the scan has no series {bad}")));
    }
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return Ok(Vec::new()) };
    let whole = TimeRange::new(first.min, last.max);
    let request = &view.request;
    let one_by_one = ordinals.len() <= FEW_SERIES
        || request.order == TimeOrder::Descending
        || slice.rows_per_series.is_some_and(|rows| rows <= FIRST_ROWS_MAX)
        || view.narrow.as_ref().is_some_and(|narrow| !narrow.is_aligned);
    let rows_per_series = rows_per_series(view, &times);
    let ranges = times.len() as u64;
    let unwanted = rows_of_series(view).saturating_mul(ranges).saturating_sub(rows_per_series);
    let one_by_one = one_by_one || unwanted > UNWANTED_MAX * ranges;
    let gap_max = gap_max(rows_per_series, view.shared.buckets);
    let no_strangers = matches!(request.series, TagExpr::True);
    let together = |a: u32, b: u32| {
        let is_next = no_strangers && b == a + 1;
        let (a, b) = (view.series[a as usize], view.series[b as usize]);
        a.0 == b.0 && (is_next || b.1 - a.1 <= gap_max)
    };
    let many_ranges = times.len() > RANGES_MERGED_MAX;
    let rows_max = match many_ranges {
        // Half of the memory, as the number of rows is a guess.
        true => gather_bytes.unwrap_or(0) as u64 / 2 / row_bytes(view),
        false => GROUP_ROWS,
    };
    let series_max = match one_by_one {
        true => 1,
        false => (rows_max / rows_per_series.max(1)).clamp(1, GROUP_MAX as u64) as usize,
    };
    let mut groups = Vec::new();
    for range in runs(&ordinals, series_max, together) {
        let ordinals = ordinals[range].to_vec();
        let Some(head) = ordinals.first() else { continue };
        let ids: Vec<i64> = ordinals.iter().map(|o| view.series[*o as usize].1).collect();
        let forwards = request.order == TimeOrder::Ascending;
        groups.push(Group {
            bucket: view.series[*head as usize].0,
            sparse: is_sparse(&ids, view.shared.buckets),
            times: if ids.len() == 1 && forwards { vec![whole] } else { times.clone() },
            gathers: ids.len() > 1 && many_ranges,
            ids: ids.into(),
            ordinals,
        });
    }
    Ok(groups)
}

/// Rows that a series may have in a range, roughly.
fn rows_of_series(view: &View) -> u64 {
    view.rows_per_range / view.series.len().max(1) as u64
}

/// Rows that a series may have within `times`, roughly.
fn rows_per_series(view: &View, times: &[TimeRange]) -> u64 {
    let length = |time: &TimeRange| i128::from(time.max) - i128::from(time.min) + 1;
    let share = |time: &TimeRange| {
        let range = view.registered.iter().find(|range| range.overlaps(time));
        range.map_or(1.0, |range| (length(time) as f64 / length(range) as f64).min(1.0))
    };
    let ranges: f64 = times.iter().map(share).sum();
    (view.rows_per_range as f64 / view.series.len().max(1) as f64 * ranges) as u64
}

/// How far apart ids may be that are read together: the rows of series in between, one in so many
/// buckets, cost less than a call.
fn gap_max(rows_per_series: u64, buckets: u32) -> i64 {
    let series = (CALL_ROWS / rows_per_series.max(1)).min(GAP_MAX) + 1;
    series.saturating_mul(buckets.into()).cast_signed()
}

/// Whether fewer than half of the ids in between are meant, and they fit a list.
fn is_sparse(ids: &[i64], buckets: u32) -> bool {
    let (Some(first), Some(last)) = (ids.first(), ids.last()) else { return false };
    let between = (last - first) / i64::from(buckets.max(1)) + 1;
    ids.len() > 1 && ids.len() <= LIST_MAX && (ids.len() as i64) < between / 2
}

/// Memory that a row takes, bytes, about.
fn row_bytes(view: &View) -> u64 {
    (view.request.fields.len() as u64 + 2) * 8
}

/// Cuts a list where neighbours do not belong together, and parts that are too long.
fn runs(list: &[u32], max: usize, together: impl Fn(u32, u32) -> bool) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut start = 0;
    for at in 1..=list.len() {
        let goes_on = at < list.len() && at - start < max && together(list[at - 1], list[at]);
        if !goes_on {
            runs.push(start..at);
            start = at;
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_cost_less_than_calls() {
        assert_eq!(gap_max(4320, 2), 2, "half a day of a row every ten seconds: neighbours alone");
        assert_eq!(gap_max(360, 1), 9);
        assert_eq!(gap_max(0, 1), 1001);
        assert_eq!(gap_max(u64::MAX, u32::MAX), i64::from(u32::MAX));
    }

    #[test]
    fn lists_are_cut() {
        assert!(runs(&[], 9, |_, _| true).is_empty());
        assert_eq!(runs(&[1, 2, 9, 10], 9, |a, b| b - a < 3), [0..2, 2..4]);
        assert_eq!(runs(&[1, 2], 9, |_, _| false), [0..1, 1..2]);
        assert_eq!(runs(&[1, 2, 3], 2, |_, _| true), [0..2, 2..3]);
        assert!(!is_sparse(&[1, 2, 3], 2) && !is_sparse(&[1], 2) && is_sparse(&[1, 40], 2));
    }
}
