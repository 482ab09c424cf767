//! Choosing windows for a block, and cutting its rows into spans.

use codec::Effort;
use model::SeriesId;

use crate::input::{put_bytes, put_varint};

const SECOND_NS: i64 = 1_000_000_000;
const MINUTE_NS: i64 = 60 * SECOND_NS;
const HOUR_NS: i64 = 60 * MINUTE_NS;

/// Lengths that windows can have, each a multiple of the one before: an interval that people group
/// by is nearly always a multiple of several of them.
const LADDER_NS: [i64; 9] = [
    SECOND_NS,
    10 * SECOND_NS,
    MINUTE_NS,
    5 * MINUTE_NS,
    10 * MINUTE_NS,
    30 * MINUTE_NS,
    HOUR_NS,
    6 * HOUR_NS,
    24 * HOUR_NS,
];

/// The spans of a block that is being written.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WindowPlan {
    pub(crate) window_ns: i64,
    pub(crate) windows: Vec<i64>,
    /// One past the last row of each span.
    pub(crate) ends: Vec<u32>,
}

impl WindowPlan {
    /// The spans of rows with these runs and times, of the shortest windows that have `rows_min`
    /// rows on average. `None` if the rows are too sparse for any.
    pub(crate) fn choose(runs: &[(SeriesId, u32)], times: &[i64], rows_min: u32) -> Option<Self> {
        let spans_max = times.len() / (rows_min.max(1) as usize);
        if spans_max < runs.len() {
            return None;
        }
        let window_ns = LADDER_NS
            .into_iter()
            .find(|window_ns| spans_at_most(runs, times, *window_ns) <= spans_max as u64)?;
        Self::cut(runs, times, window_ns)
    }

    /// `None` if a window would reach beyond the times there are.
    fn cut(runs: &[(SeriesId, u32)], times: &[i64], window_ns: i64) -> Option<Self> {
        let mut plan = Self { window_ns, ..Self::default() };
        let mut at = 0;
        for (_, rows) in runs {
            let run_end = at + *rows as usize;
            while at < run_end {
                let window = times[at].div_euclid(window_ns);
                window.checked_mul(window_ns)?;
                let next_start = window.checked_add(1)?.checked_mul(window_ns)?;
                at += times[at..run_end].partition_point(|t| *t < next_start);
                plan.windows.push(window);
                plan.ends.push(at as u32);
            }
        }
        Some(plan)
    }

    pub(crate) fn encode(&self, effort: Effort, out: &mut Vec<u8>) {
        let mut encoded = Vec::new();
        codec::encode_i64(&self.windows, effort, &mut encoded);
        put_varint(out, self.window_ns as u64);
        put_varint(out, self.windows.len() as u64);
        put_bytes(out, &encoded);
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let rows: Vec<u64> =
            self.ends.iter().zip(starts).map(|(end, start)| u64::from(end - start)).collect();
        codec::encode_u64(&rows, effort, out);
    }
}

/// An upper bound of the spans that windows of this length make, from the ends of the runs alone.
fn spans_at_most(runs: &[(SeriesId, u32)], times: &[i64], window_ns: i64) -> u64 {
    let mut at = 0;
    let mut spans = 0u64;
    for (_, rows) in runs {
        let last = at + *rows as usize - 1;
        let windows = times[last].div_euclid(window_ns).abs_diff(times[at].div_euclid(window_ns));
        spans = spans.saturating_add(windows.saturating_add(1).min(u64::from(*rows)));
        at = last + 1;
    }
    spans
}

#[cfg(test)]
mod tests;
