//! Spans whose times overlap, but whose rows do not: each is read by itself, where the order of rows does not matter.
//!
//! Late rows lie between those that came in time, and few or none have the time of another. What a block has is then what it
//! was before they came: its summaries do, and nothing has to be merged. Only spans that share a time with another must be.

use std::collections::BTreeMap;
use std::ops::Range;

use model::TimeRange;
use segment::Block;
use store::StoreError;

use super::apart::apart;
use super::nearest::take_nearest;
use super::source::{SegmentSource, Source};
use super::span::{Cluster, Span, SpanRows};
use super::sweep::numbers_by_sharing;
use crate::error::segment_error;

/// Times that are looked through at once: 8 MB.
const TIMES_MAX: usize = 1 << 20;

/// Puts spans together that share times, and leaves the others by themselves. The first are looked through, so many as can be
/// at once; those behind them are one cluster, of which nothing is known. Clusters come in no order.
pub(super) fn by_sharing(
    sources: &mut [Source],
    mut spans: Vec<Span>,
) -> Result<Vec<Cluster>, StoreError> {
    let count = (TIMES_MAX / spans.len()).max(1);
    let nearest = take_nearest(sources, &mut spans, count, false)?;
    let mut decoded = Vec::with_capacity(nearest.len());
    for (span, within) in nearest.iter().zip(reached_by_others(&nearest)) {
        decoded.push(match (&span.rows, &mut sources[span.source]) {
            (SpanRows::Block(block, rows), Source::Segment(segment)) if !within.is_empty() => {
                segment.times_within(block, rows, within)?
            }
            _ => Vec::new(),
        });
    }
    let times: Vec<&[i64]> = nearest
        .iter()
        .zip(&decoded)
        .map(|(span, decoded)| match &span.rows {
            SpanRows::Held(piece) => piece.times.as_slice(),
            SpanRows::Block(..) => decoded,
        })
        .collect();
    let numbers = numbers_by_sharing(&times);
    let mut together: BTreeMap<u32, Vec<Span>> = BTreeMap::new();
    for (number, span) in numbers.into_iter().zip(nearest) {
        together.entry(number).or_default().push(span);
    }
    let left = (!spans.is_empty()).then(|| Cluster::of(spans));
    let mut clusters: Vec<Cluster> = left.into_iter().collect();
    for mut spans in together.into_values() {
        if spans.len() == 1 {
            clusters.extend(spans.pop().map(Cluster::of_one));
            continue;
        }
        // The end of a block that was sent twice is merged, not what is before it.
        let parts = apart(sources, spans)?.into_iter();
        clusters.extend(parts.map(|cluster| Cluster { is_shared: true, ..cluster }));
    }
    Ok(clusters)
}

/// Of each span the times that others reach: only there can it share some.
fn reached_by_others(spans: &[Span]) -> Vec<TimeRange> {
    let (mut starts, mut ends): (Vec<i64>, Vec<i64>) =
        spans.iter().map(|span| (span.time.min, span.time.max)).unzip();
    starts.sort_unstable();
    ends.sort_unstable();
    let ([first, second, ..], [.., before_last, last]) = (&starts[..], &ends[..]) else {
        return vec![TimeRange::EMPTY; spans.len()];
    };
    let of_others = |span: &Span| TimeRange {
        min: if span.time.min > *first { *first } else { *second },
        max: if span.time.max < *last { *last } else { *before_last },
    };
    spans.iter().map(|span| span.time.intersect(&of_others(span))).collect()
}

impl SegmentSource {
    /// Times within `time` of some rows of one series.
    fn times_within(
        &mut self,
        block: &Block,
        rows: &Range<usize>,
        time: TimeRange,
    ) -> Result<Vec<i64>, StoreError> {
        let mut times = Vec::new();
        if self.keeps_times(block) {
            return Ok(self.run_times(block, rows, &mut times)?.to_vec());
        }
        let rows = self.reader.rows_in(block, rows.clone(), time).map_err(segment_error)?;
        self.reader.times(block, rows, &mut times).map_err(segment_error)?;
        Ok(times)
    }
}
