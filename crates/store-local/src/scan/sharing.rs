//! Spans whose times overlap, but whose rows do not: each is read by itself, where the order of rows does not matter.
//!
//! Late rows lie between those that came in time, and few or none have the time of another. What a block has is then what it
//! was before they came: its summaries do, and nothing has to be merged. Only spans that share a time with another must be.

use std::collections::BTreeMap;
use std::ops::Range;

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
    for span in &nearest {
        decoded.push(match (&span.rows, &mut sources[span.source]) {
            (SpanRows::Block(block, rows), Source::Segment(segment)) => {
                segment.times(block, rows)?
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

impl SegmentSource {
    /// Times of some rows of one series.
    fn times(&mut self, block: &Block, rows: &Range<usize>) -> Result<Vec<i64>, StoreError> {
        let mut times = Vec::new();
        if self.keeps(block) {
            return Ok(self.run_times(block, rows, &mut times)?.to_vec());
        }
        self.reader.times(block, rows.clone(), &mut times).map_err(segment_error)?;
        Ok(times)
    }
}
