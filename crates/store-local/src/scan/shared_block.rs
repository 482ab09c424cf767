//! Rows of many series out of the block they share, handed out as they stand there.
//!
//! Series with a handful of rows share blocks of thousands. Asked for one by one, each costs a walk to the block, a
//! search in it and copies of its few rows: more than the rows themselves. Where nothing else has rows of the time range,
//! the block's columns are the batch, and the series are its runs.
//!
//! Nothing here is needed for an answer to be right: what is not read like this is read series by series.

use std::ops::Range;
use std::sync::Arc;

use model::{Bitmap, ColumnBatch, SeriesId, SeriesRun, TimeRange};
use segment::{Block, Edge, Runs};
use store::{StoreError, TimeOrder};

use super::filter;
use super::piece::Piece;
use super::series_reader::{Emitted, SeriesReader};
use super::source::{SegmentSource, Source, same};
use crate::error::segment_error;

/// Finding a few rows of one series takes as long as decoding so many cells.
pub(super) const CELLS_OF_A_SERIES: usize = 4096;

/// So many series are read one by one where they turned out not to share their block with others, and where fewer are
/// left.
pub(super) const READ_ALONE: usize = 32;

/// Rows of series are picked one by one, unless they have so many each that their stretches are copied.
const COPIED_TOGETHER_ROWS: usize = 16;

/// What was read of several series.
#[derive(Debug, Default)]
pub(super) struct ManyRows {
    pub(super) rows: Option<ColumnBatch>,
    /// Series that are done, of those that were wanted.
    pub(super) done: usize,
    /// The last of these, if the blocks behind may have more of its rows.
    pub(super) unfinished: Option<SeriesId>,
    /// So many behind them are better read by themselves.
    pub(super) alone: usize,
}

impl ManyRows {
    /// None are: so many are better read by themselves.
    pub(super) fn none(alone: usize) -> Self {
        Self { alone, ..Self::default() }
    }
}

/// Rows of a block that are wanted, by series.
struct Wanted {
    /// Ordinals, and rows in the block: ascending, disjoint.
    runs: Vec<(u32, Range<usize>)>,
    done: usize,
    unfinished: Option<SeriesId>,
}

impl SeriesReader {
    /// Whether rows of many series may be read at once, and they have so few that it matters.
    pub(super) fn reads_many(&self) -> bool {
        self.gathered > 0 && (self.reads_shared_blocks() || self.gathers())
    }

    /// Reads the first of `series`, which ascend and come with their ordinals, together with others, if that is better.
    ///
    /// # Panics
    /// Unless [`Self::reads_many`].
    pub(super) fn read_many(
        &mut self,
        series: &mut dyn Iterator<Item = (u32, SeriesId)>,
    ) -> Result<ManyRows, StoreError> {
        if self.reads_shared_blocks() {
            self.read_shared_block(series)
        } else {
            self.gather(series)
        }
    }

    /// Whether rows of many series may be read out of the block they share: one segment has all of them, and none is
    /// hidden.
    fn reads_shared_blocks(&self) -> bool {
        let [partition] = self.partitions.as_slice() else { return false };
        let [Source::Segment(segment)] = partition.sources.as_slice() else { return false };
        !segment.has_tombstones() && (self.filters.is_empty() || self.filter_columns.is_some())
    }

    /// Reads the block that the first of `series` is in, which ascend and come with their ordinals, if it is shared by
    /// several of them.
    fn read_shared_block(
        &mut self,
        series: &mut dyn Iterator<Item = (u32, SeriesId)>,
    ) -> Result<ManyRows, StoreError> {
        let Some(first) = series.next() else { return Ok(ManyRows::none(1)) };
        let time = self.time.intersect(&self.partitions[0].time);
        let (has_windows, few) = (self.windows.is_some(), self.rows_per_series.is_some());
        let is_backwards = self.order == TimeOrder::Descending;
        let segment = self.only_segment(0);
        if !segment.may_have(first.1, time) {
            return Ok(ManyRows::none(1));
        }
        let mut walk = segment.walk(first.1, time);
        let block = segment.next_block(&mut walk, Edge::First)?;
        let Some(block) = block.filter(|block| is_shared(block, has_windows)) else {
            return Ok(ManyRows::none(1));
        };
        let runs = segment.reader.runs(&block).map_err(segment_error)?;
        let Some(mut wanted) = Wanted::among(&runs, first, series) else {
            return Ok(ManyRows::none(READ_ALONE));
        };
        let mut alone = 0;
        if wanted.unfinished.is_some() && (few || is_backwards) {
            // Of its rows those behind the block may be the first ones.
            wanted.runs.pop();
            wanted.done -= 1;
            wanted.unfinished = None;
            alone = 1;
        }
        if few && wanted.runs.len() * CELLS_OF_A_SERIES < block.rows() * segment.fields.len() {
            return Ok(ManyRows::none(READ_ALONE));
        }
        segment.near = block.place();
        let Wanted { runs, done, unfinished } = wanted;
        let rows = if segment.has_values(&block, None) {
            let piece = segment.whole(&block)?;
            let kept = self.kept(&piece, (time, block.time()));
            self.cut(piece, &runs, kept.as_ref())
        } else {
            None
        };
        Ok(ManyRows { rows, done, unfinished, alone })
    }

    /// The rows of a block that matter, of whatever series: within `time`, with values, and those that filters leave;
    /// `None`: all.
    pub(super) fn kept(
        &self,
        piece: &Piece,
        (time, of_block): (TimeRange, TimeRange),
    ) -> Option<Bitmap> {
        let mut kept: Option<Bitmap> = None;
        let mut keep = |found: Bitmap| {
            if found.count_ones() < found.len() {
                kept = Some(match &kept {
                    Some(kept) => filter::both(kept, &found),
                    None => found,
                });
            }
        };
        if !time.covers(&of_block) {
            keep(piece.times.iter().map(|at| time.contains(*at)).collect());
        }
        piece.rows_with_values(self.with_any.as_deref()).into_iter().for_each(&mut keep);
        for (filter, column) in self.filters.iter().zip(self.filter_columns.iter().flatten()) {
            keep(column.matching(filter, &piece.columns));
        }
        kept
    }

    /// Of `kept` rows those in one of `runs`, as many of each as are wanted and in the reader's order; `None` if there are
    /// none.
    pub(super) fn cut(
        &self,
        mut piece: Piece,
        runs: &[(u32, Range<usize>)],
        kept: Option<&Bitmap>,
    ) -> Option<ColumnBatch> {
        let few = self.rows_per_series.map_or(usize::MAX, |few| few as usize);
        let in_runs: usize = runs.iter().map(|(_, rows)| rows.len()).sum();
        let forward = self.order == TimeOrder::Ascending;
        let run = |series: u32, rows: usize| SeriesRun { series, rows: rows as u32 };
        let are_all_wanted = kept.is_none() && few == usize::MAX && forward;
        let is_whole = in_runs == piece.times.len();
        if are_all_wanted && (is_whole || in_runs >= runs.len() * COPIED_TOGETHER_ROWS) {
            if !is_whole {
                piece = piece.parts(runs.iter().map(|(_, rows)| rows.clone()), in_runs);
            }
            let runs = runs.iter().map(|(series, rows)| run(*series, rows.len()));
            return Some(piece.into_batch(runs.collect()));
        }
        let (mut left, mut order) = (Vec::with_capacity(runs.len()), Vec::with_capacity(in_runs));
        let is_kept = |row: &u32| kept.is_none_or(|kept| kept.get(*row as usize));
        for (series, rows) in runs {
            let (before, rows) = (order.len(), rows.start as u32..rows.end as u32);
            if forward {
                order.extend(rows.filter(is_kept).take(few));
            } else {
                order.extend(rows.rev().filter(is_kept).take(few));
            }
            if order.len() > before {
                left.push(run(*series, order.len() - before));
            }
        }
        piece.take(&order);
        (!left.is_empty()).then(|| piece.into_batch(left))
    }

    /// Reads the rows of a series that are behind the block that [`Self::read_shared_block`] read last.
    pub(super) fn read_behind_block(
        &mut self,
        series: SeriesId,
        emit: &mut dyn FnMut(Emitted<'_>),
    ) -> Result<(), StoreError> {
        let time = self.time.intersect(&self.partitions[0].time);
        let segment = self.only_segment(0);
        let place = segment.near;
        let mut walk = segment.walk(series, time);
        let mut spans = Vec::new();
        let mut is_behind = false;
        while let Some(block) = segment.next_block(&mut walk, Edge::First)? {
            if std::mem::replace(&mut is_behind, true) || block.place() != place {
                segment.block_span(0, series, time, block, &mut spans)?;
            }
        }
        let mut all = usize::MAX;
        spans.into_iter().try_for_each(|span| self.read_alone(0, span, &mut all, emit))
    }
}

/// Whether several series share a block, and rows of it are wanted, not summaries.
pub(super) fn is_shared(block: &Block, has_windows: bool) -> bool {
    !(block.has_one_series() || has_windows && block.has_windows())
}

impl SegmentSource {
    /// All rows of a block, of whatever series; of the block that was asked for last without reading it again.
    pub(super) fn held_whole(&mut self, block: &Block) -> Result<Arc<Piece>, StoreError> {
        match &self.held {
            Some((held, piece)) if same(held, block) => Ok(Arc::clone(piece)),
            _ => {
                let piece = Arc::new(self.whole(block)?);
                self.held = Some((block.clone(), Arc::clone(&piece)));
                Ok(piece)
            }
        }
    }

    /// All rows of a block, of whatever series.
    fn whole(&self, block: &Block) -> Result<Piece, StoreError> {
        let rows = 0..block.rows();
        let mut times = Vec::with_capacity(block.rows());
        self.reader.times(block, rows.clone(), &mut times).map_err(segment_error)?;
        let columns = self.columns(block, std::slice::from_ref(&rows), &self.fields)?;
        Ok(Piece { times, columns })
    }
}

impl Wanted {
    /// Which of a block's runs are wanted; `None` if there are less than two.
    fn among(
        runs: &Runs,
        first: (u32, SeriesId),
        others: &mut dyn Iterator<Item = (u32, SeriesId)>,
    ) -> Option<Self> {
        let last = runs.series(runs.len() - 1);
        let mut wanted = Self { runs: Vec::new(), done: 0, unfinished: None };
        let mut at = runs.index_from(first.1);
        for (ordinal, series) in std::iter::once(first).chain(others) {
            if series > last {
                break;
            }
            wanted.done += 1;
            at = runs.index_near(at, series);
            if runs.series(at) == series {
                wanted.runs.push((ordinal, runs.rows(at)));
            }
            if series == last {
                wanted.unfinished = Some(series);
                break;
            }
        }
        (wanted.runs.len() > 1).then_some(wanted)
    }
}
