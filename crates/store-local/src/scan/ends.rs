//! Where series begin, in the order of a scan: known from the directory for most, so that whoever wants the first rows of many
//! series reads those of a few.

use std::sync::Arc;

use model::{SeriesId, TimeRange};
use segment::Edge;
use store::{StoreError, TimeOrder};

use super::counters::Counters;

use super::series_reader::{PartitionSources, SeriesReader};
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
    let mut partitions: Vec<TimeRange> = plan.partitions.iter().map(|p| p.time).collect();
    if from_end {
        partitions.reverse();
    }
    let mut partitions = partitions.into_iter();
    // Only the first partition is looked into: of series that have ended long ago it would be all of them.
    for time in partitions.by_ref() {
        let time = time.intersect(&plan.time);
        let opened = open_some(plan, &plan.partitions, time, (Some(1), Some(&few)), &counters)?;
        if opened.is_empty() {
            continue;
        }
        let behind = partitions.next().map(|time| time.intersect(&plan.time));
        let none = match (behind, from_end) {
            (Some(behind), true) => behind.max,
            (Some(behind), false) => behind.min,
            (None, true) => i64::MIN,
            (None, false) => i64::MAX,
        };
        let mut reader = SeriesReader { order: plan.order, ..SeriesReader::new(opened, time) };
        let at =
            |place: usize| plan.series.at(series.map_or(place, |series| series[place] as usize));
        let end = |place: usize| Ok(reader.end(at(place))?.unwrap_or(none));
        return (0..len).map(end).collect::<Result<_, _>>().map(Some);
    }
    Ok(None)
}

impl SeriesReader {
    /// A time that no row of a series comes before, in the reader's order; `None` if there is none.
    fn end(&mut self, series: SeriesId) -> Result<Option<i64>, StoreError> {
        let edge = self.edge();
        let nearest = |a: i64, b: i64| if edge == Edge::First { a.min(b) } else { a.max(b) };
        let mut spans = Vec::new();
        for at in 0..self.partitions.len() {
            let at = self.partition_at(at);
            let PartitionSources { time, sources, .. } = &mut self.partitions[at];
            let time = self.time.intersect(time);
            for (number, source) in sources.iter_mut().enumerate() {
                match source {
                    Source::Segment(segment) if !segment.has_tombstones() => {
                        segment.end_span((number, series), time, edge, &mut spans)?;
                    }
                    source => source.spans(number, series, time, &mut spans)?,
                }
            }
            if !spans.is_empty() {
                break;
            }
        }
        let ends = spans.into_iter().map(|span| match edge {
            Edge::First => span.time.min,
            Edge::Last => span.time.max,
        });
        Ok(ends.reduce(nearest))
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
