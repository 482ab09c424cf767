//! Rows of many series within a short time, block after block.
//!
//! The last minutes of every host are a few rows of each of thousands of series. Asked for one by one, each costs a walk to
//! its block, lists of spans and of pieces, and columns of its own: far more than its rows. Here rows of one block are found
//! together and decoded one behind the other, into the columns of one batch.
//!
//! Where most of a block is wanted it is read as a whole instead (`shared_block`). Nothing here is needed for an answer to be
//! right: what is not read like this is read series by series.

use std::ops::Range;
use std::sync::Arc;

use model::{Column, FieldType, Name, SeriesId, TimeRange, Values};
use segment::{Block, BlockWalk, Edge, Runs};
use store::{StoreError, TimeOrder, Windows};

use super::counters::Counters;
use super::length;
use super::piece::Piece;
use super::series_left::SeriesLeft;
use super::series_reader::SeriesReader;
use super::shared_block::ManyRows;
use super::source::{SegmentSource, may_satisfy, same};
use super::summarise::{SpanSummaries, summarise};
use crate::error::segment_error;

/// So many rows of each series, on average, are a short time.
const SHORT_TIME_ROWS: u64 = 512;

/// So many cells of each series take as long to read as a few of its rows to find.
const FEW_CELLS: u64 = 256;

/// To find the rows of one field takes as long as to read so many; and so many cells of each series are read beside those that
/// filters are about though most may turn out not to be wanted.
const PART_CELLS: u64 = 256;
const CELLS_BESIDE_FILTERS: u64 = 1024;

/// Where several series share a block and have fewer rows in it than this, decoding all of them takes less than finding some.
const RUN_ROWS_MIN: usize = 64;

/// Cells that are read at once, about: few enough for a core's cache.
pub(super) const CELLS_AT_ONCE: usize = 1 << 13;

/// Series with blocks of their own that are read at once, about.
const OWN_BLOCKS: usize = 8;

/// So many times as much is read where a series must be read to its end.
const WHOLE_PARTS: usize = 16;

/// Cells of a block that are read at once at most, about.
const BLOCK_CELLS_MAX: f64 = (1 << 18) as f64;

/// Rows of each series from which on they are handed out as its rows, even if it does not matter whose they are: windows
/// follow one another then.
const LONG_RUN_ROWS: usize = 16;

/// What was read.
struct Within {
    piece: Piece,
    /// Ordinals, and rows of the piece: ascending, disjoint, all of them.
    runs: Vec<(u32, Range<usize>)>,
    summaries: Vec<(u32, SpanSummaries)>,
    /// The block that is read next, and the series of which rows in it are wanted: ordinals, and all rows of each.
    next: Option<NextBlock>,
    series: Vec<u32>,
    rows_of: Vec<Range<usize>>,
    /// Rows that are enough.
    rows_max: usize,
}

/// What is asked of each series.
struct Asked {
    time: TimeRange,
    /// Summaries do as well.
    windows: Option<Windows>,
    with_any: Option<Arc<[usize]>>,
    /// What a series has in one block may be handed out before what it has in others is read.
    in_parts: bool,
}

/// A series of which some blocks were read, the next one, and a walk over those behind it.
type Behind = (SeriesId, Block, BlockWalk);

/// A block to be read.
struct NextBlock {
    block: Block,
    /// Which rows are whose, if several series share it.
    runs: Option<Arc<Runs>>,
}

/// Whether it is a short time in which each series has so many rows, about, if a `few` are enough or all are wanted, of so
/// many fields.
pub(super) fn is_short_time(rows_each: u64, few: Option<u64>, fields: usize) -> bool {
    let cells_each = rows_each.saturating_mul(fields as u64);
    rows_each <= SHORT_TIME_ROWS && (few.is_none() || cells_each <= FEW_CELLS)
}

/// Whether reading so many rows of a series, all of these fields, takes longer than to find out first which of them filters
/// about so many of them leave: texts are searched where they stand.
pub(super) fn is_in_vain(rows: u64, fields: &[(Name, FieldType)], filtered: usize) -> bool {
    let others = fields.len().saturating_sub(filtered) as u64;
    let are_many = others.saturating_mul(rows.saturating_add(PART_CELLS)) > CELLS_BESIDE_FILTERS;
    filtered > 0 && (are_many || fields.iter().any(|(_, t)| *t == FieldType::String))
}

impl SeriesReader {
    /// Whether rows of a short time are wanted, all or a few.
    pub(super) fn reads_short_time(&self) -> bool {
        self.is_short_time && self.only.is_none()
    }

    /// Reads the first of the series that are `left`; of those with blocks of their own no more than were `looked_ahead` for.
    /// `None` if that is not better than to read their blocks as a whole.
    ///
    /// # Panics
    /// Unless one segment has all rows.
    pub(super) fn read_within(
        &mut self,
        left: &SeriesLeft<'_>,
        looked_ahead: usize,
    ) -> Result<Option<ManyRows>, StoreError> {
        let asked = Asked {
            time: self.time.intersect(&self.partitions[0].time),
            windows: self.windows.filter(|_| self.filters.is_empty()),
            with_any: self.with_any.clone(),
            in_parts: self.rows_per_series.is_none() && self.order == TimeOrder::Ascending,
        };
        let segment = self.only_segment(0);
        let mut within = Within::of(segment);
        let (done, behind) = within.read_series(segment, left, looked_ahead, &asked)?;
        if done == 0 {
            return Ok(None);
        }
        let mut last = None;
        if let Some((id, block, mut walk)) = behind {
            let mut spans = Vec::new();
            segment.block_span(0, id, asked.time, block, &mut spans)?;
            while let Some(block) = segment.next_block(&mut walk, Edge::First)? {
                segment.block_span(0, id, asked.time, block, &mut spans)?;
            }
            last = Some(self.begin_at(id, self.partitions.len(), spans));
        }
        let Within { piece, runs, summaries, .. } = within;
        let joins = self.joins_series && piece.times.len() < runs.len() * LONG_RUN_ROWS;
        let kept = self.kept(&piece, (asked.time, asked.time));
        let rows = self.cut(piece, &runs, kept.as_ref(), joins);
        Ok(Some(ManyRows { rows, summaries, done, last, ..ManyRows::default() }))
    }
}

impl Within {
    fn of(segment: &SegmentSource) -> Self {
        let columns = segment.fields.iter().map(|(_, t)| Column::new(Values::empty(*t)));
        Self {
            piece: Piece { times: Vec::new(), columns: columns.collect() },
            runs: Vec::new(),
            summaries: Vec::new(),
            next: None,
            series: Vec::new(),
            rows_of: Vec::new(),
            rows_max: CELLS_AT_ONCE / (segment.fields.len() + 1),
        }
    }

    /// Reads the first of the series that are `left`. How many are done, and what is left of the last of them.
    fn read_series(
        &mut self,
        segment: &mut SegmentSource,
        left: &SeriesLeft<'_>,
        looked_ahead: usize,
        asked: &Asked,
    ) -> Result<(usize, Option<Behind>), StoreError> {
        let mut done = 0;
        while done < left.len() {
            if self.rows() >= self.rows_max || done >= looked_ahead && self.has_own_blocks() {
                break;
            }
            let (ordinal, id) = left.at(done);
            let mut is_begun = false;
            if segment.may_have(id, asked.time) {
                let mut walk = segment.begin(id, asked.time, Edge::First);
                while let Some(block) = segment.next_block(&mut walk, Edge::First)? {
                    if !self.is_next(&block)
                        && let Some(block) = self.begin_block(segment, block, is_begun, asked)?
                    {
                        if is_begun && asked.in_parts {
                            return Ok((done + 1, Some((id, block, walk))));
                        }
                        self.forget(ordinal);
                        return Ok((done, None));
                    }
                    self.add(ordinal, id);
                    is_begun = true;
                }
            }
            if !is_begun {
                done = segment.skip(left, done, asked.time)?;
                continue;
            }
            done += 1;
            // Of those between the first and the last one of a block it has all rows.
            while done < left.len() && self.has_all_of(left.at(done).1) {
                let (ordinal, id) = left.at(done);
                self.add(ordinal, id);
                done += 1;
            }
        }
        self.read(segment, asked)?;
        Ok((done, None))
    }

    /// Reads the block before and makes this one the next, whether series begin in it or the last one `goes_on`. Gives it
    /// back if it is better read by somebody else, or there are enough rows.
    fn begin_block(
        &mut self,
        segment: &mut SegmentSource,
        block: Block,
        goes_on: bool,
        asked: &Asked,
    ) -> Result<Option<Block>, StoreError> {
        self.read(segment, asked)?;
        let parts = if goes_on && !asked.in_parts { WHOLE_PARTS } else { 1 };
        if self.rows() >= self.rows_max * parts || !segment.has_parts_within(&block, asked.time) {
            return Ok(Some(block));
        }
        let mut runs = None;
        if !block.has_one_series() {
            let of_block = segment.reader.runs(&block).map_err(segment_error)?;
            if !has_long_runs(&block, &of_block) {
                return Ok(Some(block));
            }
            runs = Some(of_block);
        }
        self.next = Some(NextBlock { block, runs });
        Ok(None)
    }

    /// Takes back what was read of the last series.
    fn forget(&mut self, ordinal: u32) {
        self.runs.pop_if(|(last, _)| *last == ordinal);
        while self.summaries.pop_if(|(last, _)| *last == ordinal).is_some() {}
    }

    /// Rows that were read.
    fn rows(&self) -> usize {
        self.piece.times.len()
    }

    fn is_next(&self, block: &Block) -> bool {
        self.next.as_ref().is_some_and(|next| same(&next.block, block))
    }

    /// Whether the last series has a block of its own.
    fn has_own_blocks(&self) -> bool {
        self.next.as_ref().is_some_and(|next| next.runs.is_none())
    }

    /// Whether no other block can have rows of a series, which is behind one that was added.
    fn has_all_of(&self, series: SeriesId) -> bool {
        let runs = self.next.as_ref().and_then(|next| next.runs.as_ref());
        runs.is_some_and(|runs| series < runs.series(runs.len() - 1))
    }

    /// Adds a series to those that are read of the next block.
    fn add(&mut self, ordinal: u32, series: SeriesId) {
        let Some(next) = &self.next else { return };
        let rows = match &next.runs {
            None => Some(0..next.block.rows()),
            Some(runs) => runs.rows_of(series),
        };
        if let Some(rows) = rows {
            self.series.push(ordinal);
            self.rows_of.push(rows);
        }
    }

    /// Reads the next block, if there is one.
    fn read(
        &mut self,
        segment: &mut SegmentSource,
        Asked { time, windows, with_any, .. }: &Asked,
    ) -> Result<(), StoreError> {
        let Some(NextBlock { block, runs }) = self.next.take() else { return Ok(()) };
        let (series, rows_of) =
            (std::mem::take(&mut self.series), std::mem::take(&mut self.rows_of));
        segment.near = block.place();
        let conditions = segment.conditions.as_deref();
        if !segment.has_values(&block, with_any.as_deref())
            || !conditions.is_some_and(|all| may_satisfy(&block, all))
        {
            return Ok(());
        }
        let (start, times) = (self.rows(), &mut self.piece.times);
        if start == 0 && runs.is_some() {
            times.reserve(self.rows_max);
        }
        let found =
            segment.reader.times_in(&block, &rows_of, *time, times).map_err(segment_error)?;
        let mut parts = Vec::with_capacity(found.len());
        // From where on are times of the next series, and from where on they are kept.
        let (mut from, mut to) = (start, start);
        for (ordinal, rows) in series.into_iter().zip(found) {
            let of_series = from..from + rows.len();
            from = of_series.end;
            let times = &self.piece.times[of_series.clone()];
            let (Some(first), Some(last)) = (times.first(), times.last()) else { continue };
            let cut = match windows {
                Some(windows) => {
                    let rows = (&rows, TimeRange::new(*first, *last));
                    summarise(&segment.reader, &block, rows, &segment.fields, windows)?
                }
                None => None,
            };
            let Some(cut) = cut else {
                self.keep(ordinal, of_series, &mut to);
                parts.push(rows);
                continue;
            };
            Counters::add(&segment.counters.pages_summarised, segment.fields.len() as u64);
            self.summaries.extend(cut.summaries.map(|summaries| (ordinal, summaries)));
            for part in cut.rows {
                let at = of_series.start + part.start - rows.start;
                self.keep(ordinal, at..at + part.len(), &mut to);
                parts.push(part);
            }
        }
        self.piece.times.truncate(to);
        if start == 0 {
            // As many are likely to come of the next ones.
            let likely = if runs.is_some() { self.rows_max } else { to * OWN_BLOCKS };
            self.piece.columns.iter_mut().for_each(|column| column.values.reserve(likely));
        }
        segment.add_columns(&block, &parts, &segment.fields, &mut self.piece.columns)
    }

    /// Moves times of a series to where those that are kept end.
    fn keep(&mut self, ordinal: u32, times: Range<usize>, to: &mut usize) {
        let end = *to + times.len();
        if times.start > *to {
            self.piece.times.copy_within(times, *to);
        }
        match self.runs.last_mut() {
            Some((last, rows)) if *last == ordinal => rows.end = end,
            _ => self.runs.push((ordinal, *to..end)),
        }
        *to = end;
    }
}

/// Whether finding some rows of each series of a block takes less than decoding all of it.
pub(super) fn has_long_runs(block: &Block, runs: &Runs) -> bool {
    block.rows() >= runs.len() * RUN_ROWS_MIN
}

impl SegmentSource {
    /// Whether the rows of a block within a time are better read than all of it, or than those of one series as a whole, and
    /// have few enough cells to be read at once.
    pub(super) fn has_parts_within(&self, block: &Block, time: TimeRange) -> bool {
        let part = length(&block.time().intersect(&time)) / length(&block.time());
        let cells = block.rows() as f64 * part * self.fields.len() as f64;
        let is_better = match block.has_one_series() {
            true => !self.few,
            false => !time.covers(&block.time()),
        };
        is_better && cells <= BLOCK_CELLS_MAX
    }

    /// The rows of a block within a time of several series, of which these are all rows, one behind the other; and which rows
    /// these are.
    pub(super) fn read_parts_within(
        &self,
        block: &Block,
        series: &[Range<usize>],
        time: TimeRange,
    ) -> Result<(Piece, Vec<Range<usize>>), StoreError> {
        let mut times = Vec::new();
        let found = self.reader.times_in(block, series, time, &mut times).map_err(segment_error)?;
        let columns = self.fields.iter().map(|(_, t)| Column::new(Values::empty(*t)));
        let mut piece = Piece { times, columns: columns.collect() };
        let parts: Vec<Range<usize>> =
            found.iter().filter(|rows| !rows.is_empty()).cloned().collect();
        self.add_columns(block, &parts, &self.fields, &mut piece.columns)?;
        Ok((piece, found))
    }
}
