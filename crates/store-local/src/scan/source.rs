//! Sources of rows, as seen by one cursor: a segment, or a memtable (`memtable_source`).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use model::{Column, FieldFilter, FieldType, Holds, Name, SeriesId, TimeRange, Values};
use segment::{
    Block, BlockWalk, Directory, Edge, Expected, FieldCondition, FoundRows, SegmentReader,
};
use store::{StoreError, Windows};

use super::ahead::{Ahead, Asked};
use super::counters::Counters;
use super::edge::edge_of;
use super::kept::SharedBlock;
use super::memtable_source::MemtableSource;
use super::piece::Piece;
use super::selected::Searched;
use super::span::{Span, SpanRows, hidden_within};
use super::sparse::SparseRows;
use super::summarise::{Cut, summarise};
use crate::error::segment_error;
use crate::tombstone::TombstoneSet;
use crate::view::Segment;

/// Reads the rows of one measurement out of one source.
#[derive(Debug)]
pub(crate) enum Source {
    Memtable(Box<MemtableSource>),
    Segment(Box<SegmentSource>),
}

/// A segment as a source.
#[derive(Debug)]
pub(crate) struct SegmentSource {
    segment: Arc<Segment>,
    pub(super) reader: SegmentReader,
    pub(super) directory: Arc<Directory>,
    /// Per requested field its number in the directory and its type.
    pub(super) fields: Vec<(Option<usize>, FieldType)>,
    pub(super) tombstones: TombstoneSet,
    /// Place of the block that was found last: series are read in their order.
    pub(super) near: usize,
    /// The next series, as far as was looked ahead.
    pub(super) ahead: VecDeque<Ahead>,
    /// What is read of most blocks, if that is known.
    pub(super) expected: Option<Expected>,
    pub(super) asked: Asked,
    /// Of each series only a few rows are wanted: whole columns of shared blocks are not.
    pub(super) few: bool,
    /// Of values it matters only whether they are there.
    pub(super) only_counts: bool,
    /// What the filters say of fields of the segment, those about texts before the others; `None`: no row satisfies them.
    pub(super) conditions: Option<Vec<FieldCondition>>,
    pub(super) shared: Option<SharedBlock>,
    /// The rows that were looked for last, and their block: their times are mostly read by then.
    pub(super) found: Option<(Block, FoundRows)>,
    /// What was found in texts last.
    pub(super) searched: RefCell<Option<Searched>>,
    /// Everything is read once, to be written again.
    pub(super) merges: bool,
    /// The block that was read last for that, if its rows have few of the fields.
    pub(super) sparse: Option<SparseRows>,
    /// All rows of the block that was read as a whole last.
    pub(super) held: Option<(Block, Arc<Piece>)>,
    pub(super) counters: Arc<Counters>,
}

/// Cells of a series, missing ones included, that are copied at once: 8 MB of numbers.
const PIECE_CELLS_MAX: usize = 1 << 20;

/// So many rows of a series are read by themselves, not with those of all series of their block.
const FEW_ROWS: u64 = 256;

impl Source {
    /// Adds the spans of a series within `time`, ascending.
    pub(crate) fn spans(
        &mut self,
        source: usize,
        series: SeriesId,
        time: TimeRange,
        out: &mut Vec<Span>,
    ) -> Result<(), StoreError> {
        match self {
            Self::Memtable(memtable) => {
                memtable.spans(source, series, time, out);
                Ok(())
            }
            Self::Segment(segment) => segment.spans(source, series, time, out),
        }
    }

    /// Says what will be read of most blocks, if the source has some.
    pub(super) fn expect(&mut self, expected: Expected) {
        if let Self::Segment(segment) = self {
            let is_row = matches!(expected, Expected::Row(_));
            let is_known =
                !segment.has_tombstones() && segment.few == is_row && segment.conditions.is_some();
            segment.expected = is_known.then_some(expected);
        }
    }

    /// Rows that are copied at once: of thousands of columns fewer.
    pub(crate) fn rows_at_once(&self) -> usize {
        let columns = match self {
            Self::Memtable(memtable) => memtable.places.columns(),
            Self::Segment(segment) => segment.fields.len(),
        };
        (PIECE_CELLS_MAX / columns.max(1)).max(1)
    }

    /// Reads a span's rows but the `hidden`; if `is_filtered`, of a segment only those that satisfy the filters, `None` if
    /// none does.
    pub(crate) fn read(
        &mut self,
        rows: SpanRows,
        hidden: Option<&[i64]>,
        is_filtered: bool,
    ) -> Result<Option<Piece>, StoreError> {
        match (self, rows) {
            (Self::Segment(source), SpanRows::Block(block, range)) => {
                let mut piece = source.read(&block, range, is_filtered)?;
                if let (Some(piece), Some(hidden)) = (&mut piece, hidden) {
                    piece.drop_times(hidden);
                }
                Ok(piece)
            }
            // Filters are a hint; rows of memtables are few and already copied.
            (_, SpanRows::Held(piece)) => Ok(Some(piece)),
            (Self::Memtable(_), SpanRows::Block(..)) => panic!("BUG: a block of a memtable"),
        }
    }
}

impl Source {
    /// Cuts the rows of a span into summaries and rows; `None` if there is nothing to sum up.
    pub(crate) fn summarise(
        &self,
        span: &Span,
        windows: &Windows,
    ) -> Result<Option<Cut>, StoreError> {
        let (Self::Segment(source), SpanRows::Block(block, range)) = (self, &span.rows) else {
            return Ok(None);
        };
        let reader = &source.reader;
        let cut = summarise(reader, block, (range, span.time), &source.fields, windows)?;
        if cut.is_some() {
            Counters::add(&source.counters.pages_summarised, source.fields.len() as u64);
        }
        Ok(cut)
    }
}

impl SegmentSource {
    /// A source over the rows of one measurement; `None` if the segment has none of it.
    pub(crate) fn open(
        segment: &Arc<Segment>,
        measurement: &str,
        fields: &[(Name, FieldType)],
        tombstones: TombstoneSet,
        counters: &Arc<Counters>,
    ) -> Result<Option<Self>, StoreError> {
        let reader = segment.reader()?;
        let directory = reader.directory(measurement).map_err(segment_error)?;
        let Some(directory) = directory else { return Ok(None) };
        // A field that has another type here belongs to a measurement of the same name that was
        // dropped since: all of its rows are hidden.
        let number = |name: &Name, t: FieldType| {
            directory.field(name).filter(|at| directory.fields()[*at].1 == t)
        };
        let fields = fields.iter().map(|(name, t)| (number(name, *t), *t)).collect();
        Ok(Some(Self {
            segment: Arc::clone(segment),
            reader: SegmentReader::clone(reader),
            directory,
            fields,
            tombstones,
            near: 0,
            ahead: VecDeque::new(),
            expected: None,
            asked: Asked::default(),
            few: false,
            only_counts: false,
            conditions: Some(Vec::new()),
            shared: None,
            found: None,
            searched: RefCell::new(None),
            merges: false,
            sparse: None,
            held: None,
            counters: Arc::clone(counters),
        }))
    }

    /// The same source, of whose series so many rows are wanted.
    pub(crate) fn for_rows(mut self, rows_per_series: Option<u64>) -> Self {
        self.few = rows_per_series.is_some_and(|rows| rows <= FEW_ROWS);
        self
    }

    /// The same source, of whose values it matters only whether they are there, if `only_counts`.
    pub(crate) fn for_counts(mut self, only_counts: bool) -> Self {
        self.only_counts = only_counts;
        self
    }

    /// The same source, with these filters.
    pub(crate) fn with_filters(mut self, filters: &[FieldFilter]) -> Self {
        let conditions = filters.iter().map(|filter| self.directory.condition(filter));
        self.conditions = conditions.collect::<Option<Vec<_>>>().map(|mut conditions| {
            conditions.sort_by_key(|condition| !condition.is_of_texts());
            conditions
        });
        self
    }

    /// The same source, for a merge: everything is read once, the page cache stays as it is.
    pub(crate) fn for_merge(mut self) -> Self {
        self.reader = self.reader.streaming();
        self.merges = true;
        self
    }

    fn spans(
        &mut self,
        source: usize,
        series: SeriesId,
        time: TimeRange,
        out: &mut Vec<Span>,
    ) -> Result<(), StoreError> {
        if !self.may_have(series, time) {
            return Ok(());
        }
        if self.tombstones.is_empty() {
            let mut walk = self.begin(series, time, Edge::First);
            let mut is_first = true;
            while let Some(block) = self.next_block(&mut walk, Edge::First)? {
                if std::mem::take(&mut is_first) && walk.may_have_more() {
                    self.read_ahead_of(series, time, &block);
                }
                if self.has_values(&block, None) {
                    self.block_span(source, series, time, block, out)?;
                }
            }
            return Ok(());
        }
        let seen = self.tombstones.visible(series, time);
        let before = out.len();
        for part in seen.parts {
            let mut walk = self.walk(series, part);
            while let Some(block) = self.next_block(&mut walk, Edge::First)? {
                if self.has_values(&block, None) {
                    self.block_span(source, series, part, block, out)?;
                }
            }
        }
        for span in &mut out[before..] {
            span.hidden = hidden_within(seen.hidden.as_ref(), span.time);
        }
        Ok(())
    }

    /// The block that [`Self::next_block`] gives next from this end, left where it is.
    pub(super) fn peek_block<'w>(
        &self,
        walk: &'w mut BlockWalk,
        edge: Edge,
    ) -> Result<Option<&'w mut Block>, StoreError> {
        walk.peek_from(edge, &self.reader, &self.directory).map_err(segment_error)
    }

    /// Whether the segment can have rows of a series within `time`.
    pub(super) fn may_have(&self, series: SeriesId, time: TimeRange) -> bool {
        let (first, last) = self.segment.meta.series;
        (first..=last).contains(&series) && self.segment.meta.time.overlaps(&time)
    }

    /// Whether tombstones may hide rows.
    pub(crate) fn has_tombstones(&self) -> bool {
        !self.tombstones.is_empty()
    }

    /// A walk over the blocks that can have rows of a series within `time`.
    pub(crate) fn walk(&self, series: SeriesId, time: TimeRange) -> BlockWalk {
        self.reader.walk(&self.directory, &(series..=series), time, self.near)
    }

    /// The next block of a walk from one end.
    pub(crate) fn next_block(
        &self,
        walk: &mut BlockWalk,
        edge: Edge,
    ) -> Result<Option<Block>, StoreError> {
        walk.next_from(edge, &self.reader, &self.directory).map_err(segment_error)
    }

    /// Whether a block has values of one of these requested fields, or of any.
    pub(crate) fn has_values(&self, block: &Block, with_any: Option<&[usize]>) -> bool {
        let has = |(field, _): &(Option<usize>, FieldType)| {
            field.is_some_and(|field| block.has_values(field))
        };
        match with_any {
            None => self.fields.iter().any(has),
            Some(any) => any.iter().any(|field| has(&self.fields[*field])),
        }
    }

    /// Adds the rows of a series within `time` that a block has.
    pub(crate) fn block_span(
        &mut self,
        source: usize,
        series: SeriesId,
        time: TimeRange,
        block: Block,
        out: &mut Vec<Span>,
    ) -> Result<(), StoreError> {
        self.near = block.place();
        if block.has_one_series() && time.covers(&block.time()) {
            let rows = 0..block.rows();
            out.push(Span {
                source,
                time: block.time(),
                rows: SpanRows::Block(block, rows),
                hidden: None,
            });
            return Ok(());
        }
        if block.has_one_series() {
            let all = 0..block.rows();
            return self.found_span(source, block, all, time, out);
        }
        let Some(run) = self.share(&block, series)? else { return Ok(()) };
        if self.few {
            return self.found_span(source, block, run, time, out);
        }
        if let Some(shared) = &mut self.shared {
            shared.count(&run);
        }
        if !self.has_times(&block) {
            let found = self.reader.calculated_rows(&block, run.clone(), time);
            if let Some(found) = found.map_err(segment_error)? {
                self.add_found(source, block, found, out);
                return Ok(());
            }
        }
        let mut decoded = Vec::new();
        let times = self.run_times(&block, &run, &mut decoded)?;
        let from = times.partition_point(|t| *t < time.min);
        let to = times.partition_point(|t| *t <= time.max);
        let bounds = (from < to).then(|| TimeRange::new(times[from], times[to - 1]));
        if let Some(shared) = &mut self.shared {
            shared.count_within(to.saturating_sub(from));
        }
        if let Some(bounds) = bounds {
            let rows = run.start + from..run.start + to;
            out.push(Span {
                source,
                time: bounds,
                rows: SpanRows::Block(block, rows),
                hidden: None,
            });
        }
        Ok(())
    }

    /// Adds those of some rows of one series that lie within `time`.
    fn found_span(
        &mut self,
        source: usize,
        block: Block,
        rows: Range<usize>,
        time: TimeRange,
        out: &mut Vec<Span>,
    ) -> Result<(), StoreError> {
        let found = self.reader.find_rows(&block, rows, time).map_err(segment_error)?;
        self.add_found(source, block, found, out);
        Ok(())
    }

    fn add_found(&mut self, source: usize, block: Block, found: FoundRows, out: &mut Vec<Span>) {
        if !found.rows.is_empty() {
            let (time, rows) = (found.time, found.rows.clone());
            self.found = Some((block.clone(), found));
            out.push(Span { source, time, rows: SpanRows::Block(block, rows), hidden: None });
        }
    }

    /// The times of the first and the last of some rows.
    pub(super) fn bounds(
        &self,
        block: &Block,
        rows: &Range<usize>,
    ) -> Result<TimeRange, StoreError> {
        self.reader.bounds(block, rows).map_err(segment_error)
    }

    fn read(
        &mut self,
        block: &Block,
        rows: Range<usize>,
        is_filtered: bool,
    ) -> Result<Option<Piece>, StoreError> {
        if is_filtered {
            let stretches = self.sift(block, &rows)?;
            return self.read_satisfying(block, &rows, &stretches);
        }
        self.want(block, rows.len());
        match edge_of(block, &rows) {
            Some((edge, time)) => self.edge_row(block, &rows, edge, time).map(Some),
            None => match self.read_rare(block, &rows)? {
                Some(piece) => Ok(Some(piece)),
                None => self.read_all(block, &rows).map(Some),
            },
        }
    }

    /// Reads rows of one series, filtered or not.
    pub(super) fn read_all(
        &mut self,
        block: &Block,
        rows: &Range<usize>,
    ) -> Result<Piece, StoreError> {
        let mut decoded = Vec::new();
        let times = self.run_times(block, rows, &mut decoded)?.to_vec();
        let columns = if self.keeps(block) {
            (0..self.fields.len())
                .map(|at| self.column(block, rows, at))
                .collect::<Result<_, _>>()?
        } else {
            self.columns(block, std::slice::from_ref(rows), &self.fields)?
        };
        Ok(Piece { times, columns })
    }

    /// Reads several parts of the rows of one series in a block, which ascend.
    pub(super) fn read_parts(
        &mut self,
        block: &Block,
        parts: &[Range<usize>],
    ) -> Result<Vec<Piece>, StoreError> {
        let mut pieces = Vec::with_capacity(parts.len());
        // Whole columns that are kept are not decoded for each part.
        if parts.len() < 2 || self.keeps(block) {
            for rows in parts {
                pieces.extend(self.read(block, rows.clone(), false)?);
            }
            return Ok(pieces);
        }
        self.want(block, parts.iter().map(Range::len).sum());
        for rows in parts {
            let mut decoded = Vec::new();
            let times = self.run_times(block, rows, &mut decoded)?.to_vec();
            pieces.push(Piece { times, columns: Vec::with_capacity(self.fields.len()) });
        }
        for (at, column) in self.columns(block, parts, &self.fields)?.into_iter().enumerate() {
            pieces[at % parts.len()].columns.push(column);
        }
        Ok(pieces)
    }

    /// Fields of some parts of a block: all parts of the first field, then those of the second.
    pub(super) fn columns(
        &self,
        block: &Block,
        parts: &[Range<usize>],
        fields: &[(Option<usize>, FieldType)],
    ) -> Result<Vec<Column>, StoreError> {
        let mut columns = Vec::with_capacity(fields.len() * parts.len());
        for (_, field_type) in fields {
            columns.extend(parts.iter().map(|_| Column::new(Values::empty(*field_type))));
        }
        self.add_columns(block, parts, fields, &mut columns).map(|()| columns)
    }

    /// Adds fields of some parts of a block to a column each, as [`Self::columns`] orders them, or to one for each field.
    pub(super) fn add_columns(
        &self,
        block: &Block,
        parts: &[Range<usize>],
        fields: &[(Option<usize>, FieldType)],
        out: &mut [Column],
    ) -> Result<(), StoreError> {
        if parts.is_empty() || fields.is_empty() {
            return Ok(());
        }
        if !self.only_counts {
            self.count_read(block, fields.iter().filter_map(|(field, _)| *field));
            return self.reader.columns(block, parts, fields, out).map_err(segment_error);
        }
        let of_each = out.len() / fields.len();
        for ((field, _), of_field) in fields.iter().zip(out.chunks_mut(of_each)) {
            for (part, rows) in parts.iter().enumerate() {
                let column = &mut of_field[part.min(of_each - 1)];
                match field {
                    Some(field) => self.decode(block, rows, *field, column)?,
                    None => column.extend_missing(rows.len()),
                }
            }
        }
        Ok(())
    }

    /// Adds the values of some rows of a field, or, where they are only counted, any in their place.
    pub(super) fn decode(
        &self,
        block: &Block,
        rows: &Range<usize>,
        field: usize,
        column: &mut Column,
    ) -> Result<(), StoreError> {
        let read = if self.only_counts {
            self.reader.presence(block, field, rows.clone(), column)
        } else {
            self.reader.column(block, field, rows.clone(), column).map(|()| true)
        };
        match read.map_err(segment_error)? {
            true => self.count_read(block, [field]),
            false => Counters::add(&self.counters.pages_pruned, 1),
        }
        Ok(())
    }

    /// Counts pages of a block that were read.
    pub(super) fn count_read(&self, block: &Block, fields: impl IntoIterator<Item = usize>) {
        let (mut pages, mut bytes) = (0, 0);
        for field in fields {
            pages += 1;
            bytes += u64::from(block.page_bytes(field));
        }
        Counters::add(&self.counters.pages_read, pages);
        Counters::add(&self.counters.bytes_read, bytes);
    }
}

/// Whether a row of a block may satisfy all conditions, as far as its directory tells.
pub(super) fn may_satisfy(block: &Block, conditions: &[FieldCondition]) -> bool {
    conditions.iter().all(|condition| block.holds(condition) != Holds::Never)
}

/// Whether two blocks of one segment are the same: no two have a row in common.
pub(super) fn same(a: &Block, b: &Block) -> bool {
    a.first() == b.first()
}
