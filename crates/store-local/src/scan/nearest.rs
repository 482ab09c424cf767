//! A few rows from one end of spans whose times overlap, without reading the others.
//!
//! A row that was sent twice, or a late one, makes a memtable and the last block of a segment overlap: the
//! latest row of the series is then among a few of both, not among all rows of the block.
//!
//! Of the spans that have more rows than are wanted, one has the nearest row of that number: from that row's time
//! to the end there are enough, and what all spans have there is complete.

use std::ops::Range;

use model::TimeRange;
use store::StoreError;

use super::piece::Piece;
use super::source::Source;
use super::span::{Span, SpanRows};
use crate::error::segment_error;

/// Takes from the cluster `rest` all rows from the end that is read from to some time, `count` rows of different
/// times at least if there are as many.
pub(super) fn take_nearest(
    sources: &[Source],
    rest: &mut Vec<Span>,
    count: usize,
    descending: bool,
) -> Result<Vec<Span>, StoreError> {
    let mut bound: Option<i64> = None;
    for span in &*rest {
        let time = sources[span.source].time_of_nth(&span.rows, count, descending)?;
        let nearer = |a: i64, b: i64| if descending { a.max(b) } else { a.min(b) };
        bound = bound.map_or(time, |bound| Some(time.map_or(bound, |time| nearer(bound, time))));
    }
    let Some(bound) = bound else { return Ok(std::mem::take(rest)) };
    let mut taken = Vec::with_capacity(rest.len());
    for span in std::mem::take(rest) {
        let source = &sources[span.source];
        let (near, far) = if descending {
            let (far, near) = source.cut(span, bound)?;
            (near, far)
        } else {
            source.cut(span, bound.saturating_add(1))?
        };
        taken.extend(near);
        rest.extend(far);
    }
    Ok(taken)
}

impl Source {
    /// The time of the row that is number `count` from one end of a span's rows; `None` if there are no more
    /// than so many.
    fn time_of_nth(
        &self,
        rows: &SpanRows,
        count: usize,
        from_end: bool,
    ) -> Result<Option<i64>, StoreError> {
        let len = match rows {
            SpanRows::Held(piece) => piece.times.len(),
            SpanRows::Block(_, rows) => rows.len(),
        };
        if len <= count {
            return Ok(None);
        }
        let at = if from_end { len - count } else { count - 1 };
        match (self, rows) {
            (_, SpanRows::Held(piece)) => Ok(Some(piece.times[at])),
            (Self::Segment(segment), SpanRows::Block(block, rows)) => {
                let row = rows.start + at;
                Ok(Some(segment.bounds(block, &(row..row + 1))?.min))
            }
            (Self::Memtable(_), SpanRows::Block(..)) => panic!("BUG: a block of a memtable"),
        }
    }

    /// Cuts a span in two: its rows before a time that can be stored, and those from it on.
    pub(super) fn cut(
        &self,
        span: Span,
        time_ns: i64,
    ) -> Result<(Option<Span>, Option<Span>), StoreError> {
        let Span { source, time, rows, hidden } = span;
        let before = TimeRange { min: i64::MIN, max: time_ns.saturating_sub(1) };
        let behind = TimeRange { min: time_ns, max: i64::MAX };
        let (first, second) = match (self, rows) {
            (_, SpanRows::Held(mut piece)) => {
                let at = piece.times.partition_point(|time| *time < time_ns);
                let second = piece.split_off(at);
                let held =
                    |piece: Piece| (!piece.times.is_empty()).then_some(SpanRows::Held(piece));
                (held(piece), held(second))
            }
            (Self::Segment(segment), SpanRows::Block(block, rows)) => {
                let first = segment.reader.rows_in(&block, rows.clone(), before);
                let at = first.map_err(segment_error)?.end;
                let of_block = |rows: Range<usize>| {
                    (!rows.is_empty()).then(|| SpanRows::Block(block.clone(), rows))
                };
                (of_block(rows.start..at), of_block(at..rows.end))
            }
            (Self::Memtable(_), SpanRows::Block(..)) => panic!("BUG: a block of a memtable"),
        };
        let span = |rows: Option<SpanRows>, within: TimeRange| {
            let (time, hidden) = (time.intersect(&within), hidden.clone());
            rows.map(|rows| Span { source, time, rows, hidden })
        };
        Ok((span(first, before), span(second, behind)))
    }
}
