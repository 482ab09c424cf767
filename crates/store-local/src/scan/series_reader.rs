//! Reads one series after another: gathers what each source has, lets later writes win, and hands
//! out rows in time order.

use std::sync::Arc;

use model::{FieldFilter, SeriesId, TimeRange};
use segment::{Edge, Expected};
use store::{StoreError, TimeOrder, Windows};

use super::few_found::Findings;
use super::filter::FilterColumns;
use super::merge::merge;
use super::nearest::take_nearest;
use super::piece::Piece;
use super::series_walk::SeriesWalk;
use super::sharing::by_sharing;
use super::source::{SegmentSource, Source};
use super::span::{Cluster, Span, SpanRows};
use super::sparse::SparsePart;
use super::summarise::{Cut, SpanSummaries};

/// The sources of one partition, oldest first.
#[derive(Debug)]
pub(crate) struct PartitionSources {
    pub(crate) time: TimeRange,
    pub(crate) sources: Vec<Source>,
    /// Series that have rows which may satisfy the filters, ascending; `None`: any may.
    pub(super) candidates: Option<Vec<SeriesId>>,
}

impl PartitionSources {
    /// Of which every series may have rows that are wanted.
    pub(crate) fn new(time: TimeRange, sources: Vec<Source>) -> Self {
        Self { time, sources, candidates: None }
    }
}

/// How series are read.
#[derive(Debug)]
pub(crate) struct SeriesReader {
    /// Ascending in time.
    pub(crate) partitions: Vec<PartitionSources>,
    pub(crate) time: TimeRange,
    pub(crate) order: TimeOrder,
    pub(crate) filters: Vec<FieldFilter>,
    /// Of each series no more rows than this are needed, of those that satisfy the filters.
    pub(crate) rows_per_series: Option<u64>,
    /// Only rows matter that have a value in one of these columns, if not in any.
    pub(crate) with_any: Option<Arc<[usize]>>,
    /// For each filter the columns it is about.
    pub(crate) filter_columns: Vec<FilterColumns>,
    /// Rows are aggregated by these windows: summaries do as well.
    pub(crate) windows: Option<Windows>,
    /// It does not matter which series a row is of.
    pub(crate) joins_series: bool,
    /// The row that was handed out last by itself; empty at first.
    pub(crate) row: Vec<Option<u64>>,
    /// Only rows with these times are wanted, which ascend; others may come along.
    pub(crate) only: Option<Vec<i64>>,
    /// So many series are read at once if they have few rows each within the time; 0: they have too many.
    pub(crate) gathered: usize,
    /// Whether they have few rows at all.
    pub(crate) has_short_series: bool,
    /// Whether series may share blocks though they have too many rows to be gathered, and `joins_series`.
    pub(crate) shares_blocks: bool,
    /// Of each series a short time is wanted (`within_time`).
    pub(crate) is_short_time: bool,
    /// How often few rows were wanted of blocks that were read so far.
    pub(crate) findings: Findings,
    /// The series that is read next was read as far as it is in the block at this place.
    pub(crate) behind: Option<usize>,
}

/// What is handed out of a series.
#[derive(Debug)]
pub(crate) enum Emitted<'a> {
    Rows(Piece),
    /// One row: its time and the bits of a number, or nothing, of each field.
    Row(i64, &'a [Option<u64>]),
    Summaries(SpanSummaries),
    /// Rows of a series that have few of the fields, for merges.
    Sparse(SparsePart<'a>),
}

/// How much more is read of a span when its first rows turned out not to be enough.
const GROWTH: usize = 8;

/// Whether a row has a value in one of these columns, or in any.
fn has_any(row: &[Option<u64>], columns: Option<&[usize]>) -> bool {
    match columns {
        None => row.iter().any(Option::is_some),
        Some(columns) => columns.iter().any(|column| row[*column].is_some()),
    }
}

/// Rows that are read first where some may not matter: fewer take as long.
const FILTERED_ROWS_MIN: usize = 64;

impl SeriesReader {
    /// Reads all rows of `partitions` within `time`, forward.
    pub(crate) fn new(partitions: Vec<PartitionSources>, time: TimeRange) -> Self {
        Self {
            partitions,
            time,
            order: TimeOrder::Ascending,
            filters: Vec::new(),
            rows_per_series: None,
            with_any: None,
            filter_columns: Vec::new(),
            windows: None,
            joins_series: false,
            row: Vec::new(),
            only: None,
            gathered: 0,
            has_short_series: false,
            shares_blocks: false,
            findings: Findings::default(),
            is_short_time: false,
            behind: None,
        }
    }

    /// The same reader, whose segments know what will be read of most of their blocks.
    pub(crate) fn expecting(mut self) -> Self {
        let edge = self.edge();
        let expected = match (self.rows_per_series, &self.windows) {
            (None, None) => Expected::Rows,
            (None, Some(windows)) => Expected::Summaries(windows.every_ns.unwrap_or(i64::MAX)),
            (Some(1), None) => Expected::Row(edge),
            (Some(_), _) => return self,
        };
        let is_row = matches!(expected, Expected::Row(_));
        // One row is mostly in the first partition, if it is read from one end there at all.
        let first = if edge == Edge::First { 0 } else { self.partitions.len().saturating_sub(1) };
        for (at, partition) in self.partitions.iter_mut().enumerate() {
            if is_row && (first != at || partition.sources.len() > 1) {
                continue;
            }
            partition.sources.iter_mut().for_each(|source| source.expect(expected));
        }
        self
    }

    /// Gets ready for `series` to be read, one after another. Says whether what they wait for is all in memory, as far as
    /// is seen.
    pub(crate) fn look_ahead(&mut self, series: &[SeriesId]) -> bool {
        let mut is_there = true;
        self.each_segment(|segment, time| is_there &= segment.look_ahead(series, time));
        is_there
    }

    /// Asks the disk for what will be read of `series`, which are read next.
    pub(crate) fn read_ahead(&mut self, series: &[SeriesId]) {
        self.each_segment(|segment, time| segment.read_ahead(series, time));
    }

    fn each_segment(&mut self, mut each: impl FnMut(&mut SegmentSource, TimeRange)) {
        for partition in &mut self.partitions {
            let time = self.time.intersect(&partition.time);
            for source in &mut partition.sources {
                if let Source::Segment(segment) = source {
                    each(segment, time);
                }
            }
        }
    }

    /// The end of a series that is read first.
    pub(super) fn edge(&self) -> Edge {
        if self.order == TimeOrder::Descending { Edge::Last } else { Edge::First }
    }

    /// Reads a few rows of a partition that is a segment and nothing else: block by block from the
    /// wanted end, until there are enough.
    pub(super) fn read_end(
        &mut self,
        at: usize,
        series: SeriesId,
        time: TimeRange,
        wanted: &mut usize,
        emit: &mut dyn FnMut(Emitted<'_>),
    ) -> Result<(), StoreError> {
        let edge = self.edge();
        let mut walk = self.only_segment(at).begin(series, time, edge);
        let mut spans = Vec::new();
        let mut row = std::mem::take(&mut self.row);
        let (may_be_edge, with_any) = (self.filters.is_empty(), self.with_any.clone());
        while *wanted > 0 {
            let segment = self.only_segment(at);
            let Some(block) = segment.next_block(&mut walk, edge)? else { break };
            if !segment.has_values(&block, with_any.as_deref()) {
                continue;
            }
            if *wanted == 1 && may_be_edge {
                let found = if time.covers(&block.time()) {
                    segment.edge_values(&block, edge, &mut row)
                } else {
                    segment.end_values(&block, time, edge, &mut row)?
                };
                if let Some(time) = found.filter(|_| has_any(&row, with_any.as_deref())) {
                    *wanted = 0;
                    emit(Emitted::Row(time, &row));
                    break;
                }
            }
            segment.block_span(0, series, time, block, &mut spans)?;
            for span in spans.drain(..) {
                self.read_alone(at, span, wanted, emit)?;
            }
        }
        self.row = row;
        Ok(())
    }

    /// Reads a few rows of a partition that is a memtable and nothing else, of those that satisfy the filters: so many
    /// from the wanted end, and more as long as not enough of them do.
    pub(super) fn read_memtable_end(
        &self,
        at: usize,
        series: SeriesId,
        mut time: TimeRange,
        wanted: &mut usize,
        emit: &mut dyn FnMut(Emitted<'_>),
    ) {
        let [Source::Memtable(memtable)] = self.partitions[at].sources.as_slice() else {
            panic!("BUG: the partition was looked at before")
        };
        let from_end = self.order == TimeOrder::Descending;
        let mut take = self.first_take(*wanted);
        while *wanted > 0 && !time.is_empty() {
            let Some(piece) = memtable.end(series, time, take, from_end) else { break };
            let (Some(first), Some(last)) = (piece.times.first(), piece.times.last()) else {
                break;
            };
            if piece.times.len() < take {
                time = TimeRange::EMPTY;
            } else if from_end {
                time.max = first.saturating_sub(1);
            } else {
                time.min = last.saturating_add(1);
            }
            self.hand_out(piece, wanted, emit);
            take = take.saturating_mul(GROWTH);
        }
    }

    pub(super) fn only_segment(&mut self, at: usize) -> &mut SegmentSource {
        match self.partitions[at].sources.as_mut_slice() {
            [Source::Segment(segment)] => segment,
            _ => panic!("BUG: the partition was looked at before"),
        }
    }

    /// Reads spans whose times may overlap, or the first of their rows; what is left is read next.
    pub(super) fn read_cluster(
        &mut self,
        at: usize,
        cluster: Cluster,
        walk: &mut SeriesWalk,
        emit: &mut dyn FnMut(Emitted<'_>),
    ) -> Result<(), StoreError> {
        let Cluster { mut spans, is_shared } = cluster;
        if spans.len() == 1 {
            let span = spans.remove(0);
            let rest = self.read_alone(at, span, &mut walk.wanted, emit)?;
            walk.clusters.extend(rest.map(Cluster::of_one));
            return Ok(());
        }
        if !is_shared && self.is_any_order() {
            let sources = &mut self.partitions[at].sources;
            walk.clusters.extend(by_sharing(sources, spans)?);
            return Ok(());
        }
        let descending = self.order == TimeOrder::Descending;
        let mut take = self.first_take(walk.wanted);
        while !spans.is_empty() && walk.wanted > 0 {
            let sources = &self.partitions[at].sources;
            // Each span may have as many.
            let at_once = sources[spans[0].source].rows_at_once() / spans.len();
            let count = take.min(at_once.max(1));
            let nearest = take_nearest(sources, &mut spans, count, descending)?;
            self.read_together(at, nearest, &mut walk.wanted, emit)?;
            if self.rows_per_series.is_none() {
                break;
            }
            take = take.saturating_mul(GROWTH);
        }
        if !spans.is_empty() {
            walk.clusters.push(Cluster { spans, is_shared });
        }
        Ok(())
    }

    /// Whether rows of a series may be handed out in any order: they are only added up.
    pub(super) fn is_any_order(&self) -> bool {
        let adds_up = |windows: Windows| !windows.parts.first_last;
        self.windows.is_some_and(adds_up)
            && self.rows_per_series.is_none()
            && self.order == TimeOrder::Ascending
    }

    /// Reads spans whose times may overlap.
    fn read_together(
        &mut self,
        at: usize,
        cluster: Vec<Span>,
        wanted: &mut usize,
        emit: &mut dyn FnMut(Emitted<'_>),
    ) -> Result<(), StoreError> {
        // No filters here: a row that fails one in an older source may pass with a later write.
        let mut pieces = Vec::with_capacity(cluster.len());
        for span in cluster {
            let source = &mut self.partitions[at].sources[span.source];
            pieces.extend(source.read(span.rows, span.hidden.as_deref(), false)?);
        }
        self.hand_out(merge(&pieces), wanted, emit);
        Ok(())
    }

    /// Reads a span that no other source has rows for, or the first of its rows; gives what is left.
    fn read_alone(
        &mut self,
        at: usize,
        span: Span,
        wanted: &mut usize,
        emit: &mut dyn FnMut(Emitted<'_>),
    ) -> Result<Option<Span>, StoreError> {
        let source = &mut self.partitions[at].sources[span.source];
        let hidden = span.hidden.as_deref();
        if let (Source::Segment(segment), SpanRows::Block(block, rows), None) =
            (&mut *source, &span.rows, hidden)
            && let Some(part) = segment.read_sparse(block, rows)?
        {
            emit(Emitted::Sparse(part));
            return Ok(None);
        }
        let is_filtered = !self.filters.is_empty();
        if let Some(windows) = &self.windows
            && hidden.is_none()
        {
            if is_filtered {
                if let Source::Segment(segment) = source
                    && let SpanRows::Block(block, rows) = &span.rows
                {
                    let summed = segment.sum_up(block, (rows, span.time), windows)?;
                    summed.summaries.into_iter().for_each(|some| emit(Emitted::Summaries(some)));
                    if !summed.left.is_empty()
                        && let Some(piece) = segment.read_satisfying(block, rows, &summed.left)?
                    {
                        self.hand_out(piece, wanted, emit);
                    }
                    return Ok(None);
                }
            } else if let Some(cut) = source.summarise(&span, windows)? {
                return self.read_cut(at, span, cut, wanted, emit).map(|()| None);
            }
        }
        if let (SpanRows::Block(block, _), Source::Segment(segment)) = (&span.rows, &*source)
            && !segment.has_values(block, self.with_any.as_deref())
        {
            return Ok(None);
        }
        let at_once = source.rows_at_once();
        let (block, mut rows) = match span.rows {
            SpanRows::Block(block, rows) if rows.len() > at_once.min(*wanted) => (block, rows),
            rows => {
                if let Some(piece) = source.read(rows, hidden, is_filtered)? {
                    self.hand_out(piece, wanted, emit);
                }
                return Ok(None);
            }
        };
        // More than are copied at once, or a few rows from one end of a long run: what is read grows until they are found.
        let mut take = self.first_take(*wanted);
        while !rows.is_empty() && *wanted > 0 {
            let count = take.min(at_once).min(rows.len());
            let part = if self.order == TimeOrder::Ascending {
                let cut = rows.start + count;
                std::mem::replace(&mut rows.start, cut)..cut
            } else {
                let cut = rows.end - count;
                cut..std::mem::replace(&mut rows.end, cut)
            };
            let source = &mut self.partitions[at].sources[span.source];
            let part = SpanRows::Block(block.clone(), part);
            if let Some(piece) = source.read(part, hidden, is_filtered)? {
                self.hand_out(piece, wanted, emit);
            }
            if self.rows_per_series.is_none() {
                break;
            }
            take = take.saturating_mul(GROWTH);
        }
        // Those that were wanted are there, or all.
        if rows.is_empty() || self.rows_per_series.is_some() {
            return Ok(None);
        }
        let Source::Segment(segment) = &self.partitions[at].sources[span.source] else {
            panic!("BUG: only blocks are read in parts")
        };
        let time = segment.bounds(&block, &rows)?;
        let rows = SpanRows::Block(block, rows);
        Ok(Some(Span { source: span.source, time, rows, hidden: span.hidden }))
    }

    /// So many rows are read first to find those that are wanted.
    fn first_take(&self, wanted: usize) -> usize {
        let all_matter = self.filters.is_empty() && self.with_any.is_none();
        if all_matter { wanted } else { wanted.max(FILTERED_ROWS_MIN) }
    }

    /// Leaves only rows that satisfy every filter, so that they can be counted.
    fn drop_unwanted(&self, piece: &mut Piece) {
        for (filter, column) in self.filters.iter().zip(&self.filter_columns) {
            let found = column.matching(filter, &piece.columns);
            if found.count_ones() < piece.times.len() {
                piece.select(&found);
            }
        }
    }

    /// Hands out the summaries of a span that was cut, and reads its other rows.
    fn read_cut(
        &mut self,
        at: usize,
        span: Span,
        cut: Cut,
        wanted: &mut usize,
        emit: &mut dyn FnMut(Emitted<'_>),
    ) -> Result<(), StoreError> {
        let (SpanRows::Block(block, _), Source::Segment(source)) =
            (span.rows, &mut self.partitions[at].sources[span.source])
        else {
            panic!("BUG: only blocks are cut")
        };
        if let Some(summaries) = cut.summaries {
            emit(Emitted::Summaries(summaries));
        }
        let mut pieces = source.read_parts(&block, &cut.rows)?;
        if self.order == TimeOrder::Descending {
            pieces.reverse();
        }
        pieces.into_iter().for_each(|piece| self.hand_out(piece, wanted, emit));
        Ok(())
    }

    fn hand_out(&self, mut piece: Piece, wanted: &mut usize, emit: &mut dyn FnMut(Emitted<'_>)) {
        piece.drop_empty_rows(self.with_any.as_deref());
        if self.rows_per_series.is_some() {
            self.drop_unwanted(&mut piece);
        }
        if piece.times.is_empty() || *wanted == 0 {
            return;
        }
        if self.order == TimeOrder::Descending {
            piece.reverse();
        }
        // A memtable that was asked for a few rows leaves out later ones, which others may have as they
        // were before: only the first rows are known to be what they are.
        piece.truncate(*wanted);
        *wanted -= piece.times.len();
        emit(Emitted::Rows(piece));
    }
}
