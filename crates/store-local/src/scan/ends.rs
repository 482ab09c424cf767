//! Where series begin, in the order of a scan: known from the directory for most, so that whoever wants the first rows of many
//! series reads those of a few.

use std::sync::Arc;

use model::{SeriesId, TimeRange};
use segment::Edge;
use store::{StoreError, TimeOrder};

use super::counters::Counters;

use super::series_reader::SeriesReader;
use super::source::{SegmentSource, Source};
use super::span::Span;
use super::{ScanPlan, open_some};
use crate::memtable::Few;

/// Of more series it takes as long as reading rows of some.
const SERIES_MAX: usize = 4096;

/// Where each of some series begins, see [`store::Scan::ends`].
pub(super) fn ends(
    plan: &ScanPlan,
    series: Option<&[u32]>,
) -> Result<Option<Vec<i64>>, StoreError> {
    let len = series.map_or(plan.series.len(), <[u32]>::len);
    if len > SERIES_MAX || !plan.filters.is_empty() {
        return Ok(None);
    }
    let from_end = plan.order == TimeOrder::Descending;
    let few = Few { rows: 1, from_end, with_any: None, is_alone: false };
    // Nobody is told what was read for this.
    let counters = Arc::<Counters>::default();
    let partitions = open_some(plan, plan.time, (Some(1), Some(&few)), &counters)?;
    let mut reader = SeriesReader { order: plan.order, ..SeriesReader::new(partitions, plan.time) };
    let at = |place: usize| plan.series.at(series.map_or(place, |series| series[place] as usize));
    let ends: Result<Vec<i64>, StoreError> = (0..len).map(|place| reader.end(at(place))).collect();
    ends.map(Some)
}

impl SeriesReader {
    /// A time that no row of a series comes before, in the reader's order.
    fn end(&mut self, series: SeriesId) -> Result<i64, StoreError> {
        let edge = self.edge();
        let nearest = |a: i64, b: i64| if edge == Edge::First { a.min(b) } else { a.max(b) };
        let none = if edge == Edge::First { i64::MAX } else { i64::MIN };
        let count = self.partitions.len();
        let mut spans = Vec::new();
        for at in 0..count {
            let at = if edge == Edge::First { at } else { count - 1 - at };
            let partition = &mut self.partitions[at];
            let time = self.time.intersect(&partition.time);
            for (number, source) in partition.sources.iter_mut().enumerate() {
                match source {
                    Source::Segment(segment) if !segment.has_tombstones() => {
                        segment.end_span((number, series), time, edge, &mut spans)?;
                    }
                    source => source.spans(number, series, time, &mut spans)?,
                }
            }
            let ends = spans.drain(..).map(|span| match edge {
                Edge::First => span.time.min,
                Edge::Last => span.time.max,
            });
            if let Some(end) = ends.reduce(nearest) {
                return Ok(end);
            }
        }
        Ok(none)
    }
}

impl SegmentSource {
    /// Adds the span of a series within `time` that comes first from an end.
    fn end_span(
        &mut self,
        (source, series): (usize, SeriesId),
        time: TimeRange,
        edge: Edge,
        out: &mut Vec<Span>,
    ) -> Result<(), StoreError> {
        if !self.may_have(series, time) {
            return Ok(());
        }
        let before = out.len();
        let mut walk = self.begin(series, time, edge);
        while out.len() == before
            && let Some(block) = self.next_block(&mut walk, edge)?
        {
            if self.has_values(&block, None) {
                self.block_span(source, series, time, block, out)?;
            }
        }
        Ok(())
    }
}
