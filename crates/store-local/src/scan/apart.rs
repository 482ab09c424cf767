//! Spans whose times overlap, cut so that what only one of them has is by itself.
//!
//! A few late rows in a memtable, or a flush while rows come out of order, make a source overlap a block of thousands
//! of rows. Only where they do must rows be merged; before and behind, the block's summaries stay what they are.

use model::TimeRange;
use store::StoreError;

use super::piece::Piece;
use super::source::Source;
use super::span::{Cluster, Span, SpanRows, clusters};

/// Sorts spans by time and cuts them into clusters, as [`clusters`] does, each of one span or of those that
/// share times.
pub(super) fn apart(sources: &[Source], spans: Vec<Span>) -> Result<Vec<Cluster>, StoreError> {
    let overlapping = clusters(spans);
    let mut all = Vec::with_capacity(overlapping.len() + 2);
    for cluster in overlapping {
        let is_held = |span: &Span| matches!(span.rows, SpanRows::Held(_));
        if cluster.spans.len() == 1 || cluster.spans.iter().all(is_held) {
            all.push(cluster);
            continue;
        }
        for cluster in clusters(cut_at_blocks(cluster.spans)) {
            cut_ends(sources, cluster.spans, &mut all)?;
        }
    }
    Ok(all)
}

/// Cuts rows that are at hand where a block begins and behind its end: what is between blocks overlaps none.
/// Nothing is hidden among them: a memtable leaves out what is.
fn cut_at_blocks(cluster: Vec<Span>) -> Vec<Span> {
    let is_block = |span: &&Span| matches!(span.rows, SpanRows::Block(..));
    let bounds = cluster.iter().filter(is_block);
    let mut bounds: Vec<i64> =
        bounds.flat_map(|span| [span.time.min, span.time.max.saturating_add(1)]).collect();
    bounds.sort_unstable();
    bounds.dedup();
    let mut spans = Vec::with_capacity(cluster.len() + bounds.len());
    for span in cluster {
        match span.rows {
            SpanRows::Held(piece) => spans.extend(cut_piece(&piece, span.source, &bounds)),
            SpanRows::Block(..) => spans.push(span),
        }
    }
    spans
}

/// The rows of a piece between some times, which ascend: each copied once.
fn cut_piece(piece: &Piece, source: usize, bounds: &[i64]) -> Vec<Span> {
    let ends = bounds.iter().map(|bound| piece.times.partition_point(|time| time < bound));
    let (mut start, mut spans) = (0, Vec::new());
    for end in ends.chain([piece.times.len()]) {
        if end > start {
            let time = TimeRange::new(piece.times[start], piece.times[end - 1]);
            let rows = SpanRows::Held(piece.part(start..end));
            spans.push(Span { source, time, rows, hidden: None });
        }
        start = end;
    }
    spans
}

/// Takes off what only the first of the spans has before the others begin, and only one behind the end of the
/// others. Rows that are at hand stay: to merge them is to copy them once.
fn cut_ends(
    sources: &[Source],
    mut cluster: Vec<Span>,
    out: &mut Vec<Cluster>,
) -> Result<(), StoreError> {
    let mut behind_all = None;
    let is_block = |span: &Span| matches!(span.rows, SpanRows::Block(..));
    if let Some((at, bound)) = two_smallest(cluster.iter().map(|span| span.time.min))
        && is_block(&cluster[at])
        && cluster[at].time.min < bound
    {
        let span = cluster.remove(at);
        let (before, rest) = sources[span.source].cut(span, bound)?;
        out.extend(before.map(Cluster::of_one));
        rest.into_iter().for_each(|span| cluster.insert(at, span));
    }
    if let Some((at, bound)) = two_smallest(cluster.iter().map(|span| !span.time.max))
        && is_block(&cluster[at])
        && cluster[at].time.max > !bound
    {
        let span = cluster.remove(at);
        let (rest, behind) = sources[span.source].cut(span, (!bound).saturating_add(1))?;
        behind_all = behind.map(Cluster::of_one);
        rest.into_iter().for_each(|span| cluster.insert(at, span));
    }
    if !cluster.is_empty() {
        out.push(Cluster::of(cluster));
    }
    out.extend(behind_all);
    Ok(())
}

/// The place of the smallest of some times, and the second smallest; `None` if there are not two.
fn two_smallest(times: impl Iterator<Item = i64>) -> Option<(usize, i64)> {
    let mut sorted: Vec<(i64, usize)> = times.enumerate().map(|(at, time)| (time, at)).collect();
    sorted.sort_unstable();
    match sorted.as_slice() {
        [(_, at), (second, _), ..] => Some((*at, *second)),
        _ => None,
    }
}
