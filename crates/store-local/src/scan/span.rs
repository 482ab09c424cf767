//! Spans: rows of one series that lie together in one source, not read yet.

use std::ops::Range;
use std::sync::Arc;

use model::TimeRange;
use segment::Block;

use super::piece::Piece;

/// Rows of one series in one source, ascending in time.
#[derive(Debug)]
pub(crate) struct Span {
    /// Which source of the partition; greater is newer.
    pub(crate) source: usize,
    /// Times of its first and last row.
    pub(crate) time: TimeRange,
    pub(crate) rows: SpanRows,
    /// Times of rows that are hidden, ascending, if some may be among these rows.
    pub(crate) hidden: Option<Arc<[i64]>>,
}

/// `hidden`, if it has a time within `range`.
pub(crate) fn hidden_within(hidden: Option<&Arc<[i64]>>, range: TimeRange) -> Option<Arc<[i64]>> {
    hidden.filter(|times| has_time_within(times, range)).cloned()
}

/// Whether one of `times`, which ascend, is within `range`.
pub(crate) fn has_time_within(times: &[i64], range: TimeRange) -> bool {
    let from = times.partition_point(|time| *time < range.min);
    times.get(from).is_some_and(|time| *time <= range.max)
}

/// Where the rows are.
#[derive(Debug)]
pub(crate) enum SpanRows {
    /// Copied out of a memtable.
    Held(Piece),
    /// Rows of a block of a segment.
    Block(Block, Range<usize>),
}

/// Spans of one series that are read together, ordered by source, oldest first, and those of a source by time.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) spans: Vec<Span>,
    /// It is known that rows of them share times.
    pub(super) is_shared: bool,
}

impl Cluster {
    pub(super) fn of_one(span: Span) -> Self {
        Self::of(vec![span])
    }

    /// Of which it is not known whether rows share times.
    pub(super) fn of(spans: Vec<Span>) -> Self {
        Self { spans, is_shared: false }
    }
}

/// Sorts spans by time and cuts them into clusters: rows of different clusters share no time.
pub(crate) fn clusters(mut spans: Vec<Span>) -> Vec<Cluster> {
    spans.sort_by_key(|span| (span.time.min, span.source));
    let mut clusters: Vec<Cluster> = Vec::with_capacity(spans.len());
    let mut reaches = i64::MIN;
    for span in spans {
        let joins = !clusters.is_empty() && span.time.min <= reaches;
        reaches = if joins { reaches.max(span.time.max) } else { span.time.max };
        match clusters.last_mut() {
            Some(last) if joins => last.spans.push(span),
            _ => clusters.push(Cluster::of_one(span)),
        }
    }
    for cluster in &mut clusters {
        cluster.spans.sort_by_key(|span| span.source);
    }
    clusters
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(source: usize, min: i64, max: i64) -> Span {
        let rows = SpanRows::Held(Piece::default());
        Span { source, time: TimeRange::new(min, max), rows, hidden: None }
    }

    #[test]
    fn spans_that_share_times_are_clustered() {
        let spans =
            vec![span(0, 0, 9), span(0, 10, 19), span(1, 15, 30), span(2, 18, 18), span(1, 40, 50)];
        let shape: Vec<Vec<(usize, i64)>> = clusters(spans)
            .iter()
            .map(|c| c.spans.iter().map(|s| (s.source, s.time.min)).collect())
            .collect();
        assert_eq!(shape, [vec![(0, 0)], vec![(0, 10), (1, 15), (2, 18)], vec![(1, 40)]]);
    }
}
