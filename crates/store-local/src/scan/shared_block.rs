//! Rows of many series out of the block they share, handed out as they stand there.
//!
//! Series with a handful of rows share blocks of thousands. Asked for one by one, each costs a walk to the block, a
//! search in it and copies of its few rows: more than the rows themselves. Where nothing else has rows of the time range,
//! the block's columns are the batch, and the series are its runs.
//!
//! Nothing here is needed for an answer to be right: what is not read like this is read series by series.

use std::ops::Range;
use std::sync::Arc;

use codec::kernels;
use model::{Bitmap, ColumnBatch, CompareOp, SeriesId, SeriesRun, TimeRange};
use segment::{Block, Edge, Runs};
use store::{StoreError, TimeOrder};

use super::counters::Counters;
use super::filter;
use super::piece::Piece;
use super::series_left::SeriesLeft;
use super::series_reader::SeriesReader;
use super::series_walk::SeriesWalk;
use super::source::{SegmentSource, Source, same};
use super::summarise::{SpanSummaries, in_one_window, summarise};
use crate::error::segment_error;

/// Finding a few rows of one series takes as long as decoding so many cells.
pub(super) const CELLS_OF_A_SERIES: usize = 4096;

/// So many series are read one by one where they turned out not to share their block with others, and where fewer are
/// left.
pub(super) const READ_ALONE: usize = 32;

/// Rows of a series in one window that are better handed out as its rows than joined with those of others.
const LONG_RUN_ROWS: i128 = 16;

/// Rows of series are picked one by one, unless they have so many each that their stretches are copied.
const COPIED_TOGETHER_ROWS: usize = 16;

/// What was read of several series.
#[derive(Debug, Default)]
pub(super) struct ManyRows {
    pub(super) rows: Option<ColumnBatch>,
    /// In place of rows: whose they are, or of all of them together.
    pub(super) summaries: Vec<(u32, SpanSummaries)>,
    /// Series that are done, of those that were wanted.
    pub(super) done: usize,
    /// The last of these, if the blocks behind may have more of its rows.
    pub(super) unfinished: Option<SeriesId>,
    /// Where the last of these was left, if not at its end.
    pub(super) last: Option<SeriesWalk>,
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
pub(super) struct Wanted {
    /// Ordinals, and rows in the block: ascending, disjoint.
    pub(super) runs: Vec<(u32, Range<usize>)>,
    pub(super) done: usize,
    pub(super) unfinished: Option<SeriesId>,
}

impl SeriesReader {
    /// Whether rows of many series may be read at once, and they have so few that it matters.
    pub(super) fn reads_many(&self) -> bool {
        let in_some_way = if self.reads_shared_blocks() {
            self.reads_whole_blocks() || self.reads_short_time() || self.looks_for_few()
        } else {
            self.may_gather()
        };
        in_some_way || self.looks_for_ends()
    }

    fn may_gather(&self) -> bool {
        self.gathered > 0 && self.gathers()
    }

    /// Whether series have so few rows that blocks which they share may be read as a whole.
    fn reads_whole_blocks(&self) -> bool {
        self.has_short_series || self.shares_blocks
    }

    /// Reads the first of the series that are `left` together with others, if that is better. So many of them were looked
    /// ahead for.
    ///
    /// # Panics
    /// Unless [`Self::reads_many`].
    pub(super) fn read_many(
        &mut self,
        left: &SeriesLeft<'_>,
        looked_ahead: usize,
    ) -> Result<ManyRows, StoreError> {
        if self.looks_for_ends()
            && let Some(many) = self.read_ends(left)?
        {
            return Ok(many);
        }
        if !self.reads_shared_blocks() {
            return if self.may_gather() { self.gather(left) } else { Ok(self.none_together()) };
        }
        if self.looks_for_few()
            && self.behind.is_none()
            && let Some(many) = self.read_few_found(left)?
        {
            return Ok(many);
        }
        if self.reads_short_time()
            && self.behind.is_none()
            && let Some(many) = self.read_within(left, looked_ahead)?
        {
            return Ok(many);
        }
        if !self.reads_whole_blocks() {
            return Ok(self.none_together());
        }
        let Some((_, first)) = left.iter().next() else { return Ok(ManyRows::none(1)) };
        let behind = self.behind.take();
        let mut many = self.read_shared_block(first, left, behind)?;
        if let (Some(place), 0, None) = (behind, many.done, self.behind) {
            // Its rows in this block were handed out: only what is behind it is left.
            self.only_segment(0).near = place;
            (many.done, many.unfinished) = (1, Some(first));
        }
        Ok(many)
    }

    /// None: the next series is read by itself if the ends of those behind it may be read together, if not several are.
    fn none_together(&self) -> ManyRows {
        ManyRows::none(if self.looks_for_ends() { 1 } else { READ_ALONE })
    }

    /// Whether the next series was read in part.
    pub(super) fn is_behind(&self) -> bool {
        self.behind.is_some()
    }

    /// Whether rows of many series may be read out of the block they share: one segment has all of them, and none is
    /// hidden.
    pub(super) fn reads_shared_blocks(&self) -> bool {
        let [partition] = self.partitions.as_slice() else { return false };
        let [Source::Segment(segment)] = partition.sources.as_slice() else { return false };
        !segment.has_tombstones()
    }

    /// Reads the block that the first of the series that are `left` is in, or the one after that at `behind`, if it is
    /// shared by several of them.
    fn read_shared_block(
        &mut self,
        first: SeriesId,
        left: &SeriesLeft<'_>,
        behind: Option<usize>,
    ) -> Result<ManyRows, StoreError> {
        let time = self.time.intersect(&self.partitions[0].time);
        let (has_windows, few) = (self.windows.is_some(), self.rows_per_series.is_some());
        let is_backwards = self.order == TimeOrder::Descending;
        let segment = self.only_segment(0);
        let mut walk = segment.walk(first, time);
        let mut block = segment.next_block(&mut walk, Edge::First)?;
        if behind.is_some() {
            if block.as_ref().map(Block::place) == behind {
                block = segment.next_block(&mut walk, Edge::First)?;
            }
            if block.is_none() {
                return Ok(ManyRows { done: 1, ..ManyRows::default() });
            }
        }
        let Some(block) = block else {
            return Ok(ManyRows { done: segment.skip(left, 0, time)?, ..ManyRows::default() });
        };
        if !is_shared(&block, has_windows) {
            return Ok(ManyRows::none(1));
        }
        if self.joins_series
            && time.covers(&block.time())
            && let Some(many) = self.sum_up_shared(&block, left)?
        {
            return Ok(self.with_next_block(many, &block));
        }
        if let Some(many) = self.read_few_within(&block, left, time)? {
            return Ok(many);
        }
        let forward = self.joins_series && !is_backwards;
        let joins = forward && !self.has_long_runs(&block);
        if self.picks_rows()
            && let Some(many) = self.pick_shared(&block, left, time)?
        {
            return Ok(many);
        }
        let segment = self.only_segment(0);
        let whole = if joins { Wanted::whole(&block, left) } else { None };
        let wanted = match whole {
            Some(whole) => Some(whole),
            None => {
                let runs = segment.reader.runs(&block).map_err(segment_error)?;
                Wanted::among(&runs, left)
            }
        };
        let Some(mut wanted) = wanted else { return Ok(ManyRows::none(READ_ALONE)) };
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
        let rows = if segment.may_have_wanted(&block)? {
            let piece = segment.whole(&block)?;
            let kept = self.kept(&piece, (time, block.time()));
            self.cut(piece, &runs, kept.as_ref(), joins)
        } else {
            None
        };
        let many = ManyRows { rows, done, unfinished, alone, ..ManyRows::default() };
        Ok(if forward { self.with_next_block(many, &block) } else { many })
    }

    /// Whether series have so many rows of a block in one window that it is better to know where each of them ends: within
    /// a series windows follow one another, of joined rows each is looked at for its window.
    fn has_long_runs(&self, block: &Block) -> bool {
        let Some(every_ns) = self.windows.and_then(|windows| windows.every_ns) else {
            return false;
        };
        let series = block.last().0.0.saturating_sub(block.first().0.0).saturating_add(1);
        let span = i128::from(block.time().max) - i128::from(block.time().min);
        let windows = span / i128::from(every_ns) + 1;
        block.rows() as i128 / i128::from(series) / windows >= LONG_RUN_ROWS
    }

    /// Where it does not matter whose a row is, what is left of the last series of a block is read with the block behind it.
    pub(super) fn with_next_block(&mut self, mut many: ManyRows, block: &Block) -> ManyRows {
        if many.unfinished.take().is_some() {
            self.behind = Some(block.place());
            many.done -= 1;
        }
        many
    }

    /// Whether filters choose among all rows, of which it matters whose they are.
    fn picks_rows(&self) -> bool {
        let are_all_wanted = self.rows_per_series.is_none() && self.order == TimeOrder::Ascending;
        !self.filters.is_empty() && are_all_wanted && !self.joins_series
    }

    /// Reads what filters leave of a block, if all its series are the next ones that are `left`: then only of rows that are
    /// left it matters which series they are of.
    fn pick_shared(
        &mut self,
        block: &Block,
        left: &SeriesLeft<'_>,
        time: TimeRange,
    ) -> Result<Option<ManyRows>, StoreError> {
        let (first, last) = (block.first().0, block.last().0);
        let segment = self.only_segment(0);
        if !segment.may_have_wanted(block)? {
            return Ok(None);
        }
        let Some((count, ordinal)) =
            left.count_between(first, last).and_then(|n| Some((n, left.side_by_side(n)?)))
        else {
            return Ok(None);
        };
        segment.near = block.place();
        let runs = segment.reader.runs(block).map_err(segment_error)?;
        let (mut piece, read) = match segment.few_found(block)? {
            Some((piece, found)) => (piece, Some(found)),
            None => (segment.whole(block)?, None),
        };
        let kept = self.kept(&piece, (time, block.time()));
        let kept = kept.unwrap_or_else(|| Bitmap::filled(piece.times.len(), true));
        let left = read.map(|read| ones_of(&read, &kept));
        let of_block = left.as_ref().unwrap_or(&kept);
        let picked = runs_of(&runs, of_block, |series| ordinal + (series.0 - first.0) as u32);
        let rows = (!picked.is_empty()).then(|| {
            piece.select(&kept);
            piece.into_batch(picked)
        });
        let unfinished = Some(last);
        Ok(Some(ManyRows { rows, done: count, unfinished, ..ManyRows::default() }))
    }

    /// Sums up all rows of a block, if all its series are the next ones that are `left`.
    fn sum_up_shared(
        &mut self,
        block: &Block,
        left: &SeriesLeft<'_>,
    ) -> Result<Option<ManyRows>, StoreError> {
        let Some(windows) = self.windows else { return Ok(None) };
        let (time, is_filtered) = (block.time(), !self.filters.is_empty());
        if !in_one_window(&windows, time.min, time.max) {
            return Ok(None);
        }
        let last = block.last().0;
        let segment = self.only_segment(0);
        let done = match left.count_between(block.first().0, last) {
            Some(done) => done,
            None => {
                let runs = segment.reader.runs(block).map_err(segment_error)?;
                match Wanted::among(&runs, left) {
                    Some(wanted) if wanted.runs.len() == runs.len() => wanted.done,
                    _ => return Ok(None),
                }
            }
        };
        let rows = 0..block.rows();
        let summaries = if is_filtered {
            let summed = segment.sum_up(block, (&rows, time), &windows)?;
            Some(summed.summaries).filter(|_| summed.left.is_empty())
        } else {
            let fields = &segment.fields;
            let cut = summarise(&segment.reader, block, (&rows, time), fields, &windows)?;
            let cut = cut.filter(|cut| cut.rows.is_empty());
            if cut.is_some() {
                Counters::add(&segment.counters.pages_summarised, fields.len() as u64);
            }
            cut.map(|cut| cut.summaries.into_iter().collect())
        };
        let Some(summaries) = summaries else { return Ok(None) };
        let of_all = |summaries| (SeriesRun::SEVERAL, summaries);
        let summaries = summaries.into_iter().map(of_all).collect();
        segment.near = block.place();
        let unfinished = Some(last);
        Ok(Some(ManyRows { summaries, done, unfinished, ..ManyRows::default() }))
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
                    Some(kept) => kept.and(&found),
                    None => found,
                });
            }
        };
        if !time.covers(&of_block) {
            let within = |op, bound| filter::times(&piece.times, op, bound);
            keep(within(CompareOp::GreaterOrEqual, time.min));
            keep(within(CompareOp::LessOrEqual, time.max));
        }
        piece.rows_with_values(self.with_any.as_deref()).into_iter().for_each(&mut keep);
        for (filter, column) in self.filters.iter().zip(&self.filter_columns) {
            keep(column.matching(filter, &piece.columns));
        }
        kept
    }

    /// Of `kept` rows those in one of `runs`, as many of each as are wanted and in the reader's order, joined to one run if
    /// all are and forward; `None` if there are none.
    pub(super) fn cut(
        &self,
        mut piece: Piece,
        runs: &[(u32, Range<usize>)],
        kept: Option<&Bitmap>,
        joins: bool,
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
            if joins {
                return Some(piece.into_batch(vec![run(SeriesRun::SEVERAL, in_runs)]));
            }
            let runs = runs.iter().map(|(series, rows)| run(*series, rows.len()));
            return Some(piece.into_batch(runs.collect()));
        }
        if few == usize::MAX && forward {
            let rows = piece.times.len();
            let mut words = vec![0; rows.div_ceil(64)];
            for (_, rows) in runs {
                kernels::set_bit_range(&mut words, rows.clone());
            }
            let mut wanted = Bitmap::from_words(words, rows);
            if let Some(kept) = kept {
                wanted = kept.and(&wanted);
            }
            let runs: Vec<SeriesRun> = if joins {
                vec![run(SeriesRun::SEVERAL, wanted.count_ones())]
            } else {
                let rows_left = |rows: &Range<usize>| match kept {
                    Some(_) => wanted.count_ones_in(rows.clone()),
                    None => rows.len(),
                };
                runs.iter().map(|(series, rows)| run(*series, rows_left(rows))).collect()
            };
            let runs: Vec<SeriesRun> = runs.into_iter().filter(|run| run.rows > 0).collect();
            piece.select(&wanted);
            return (!runs.is_empty()).then(|| piece.into_batch(runs));
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

    /// Before the rows of a series that are behind the block that [`Self::read_shared_block`] read last.
    pub(super) fn begin_behind_block(
        &mut self,
        series: SeriesId,
    ) -> Result<SeriesWalk, StoreError> {
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
        Ok(self.begin_at(series, self.partitions.len(), spans))
    }
}

/// The bits of `all` that are set and whose place among those that are is set in `of_ones`.
fn ones_of(all: &Bitmap, of_ones: &Bitmap) -> Bitmap {
    let mut left = Bitmap::new();
    for (row, at) in all.ones().zip(0..) {
        if of_ones.get(at) {
            left.extend_filled(row - left.len(), false);
            left.extend_filled(1, true);
        }
    }
    left.extend_filled(all.len() - left.len(), false);
    left
}

/// The series that rows of a block are of, and how many of each.
fn runs_of(runs: &Runs, rows: &Bitmap, ordinal: impl Fn(SeriesId) -> u32) -> Vec<SeriesRun> {
    let mut found: Vec<SeriesRun> = Vec::new();
    let (mut at, mut of_run) = (0, 0..0);
    for row in rows.ones() {
        if let Some(last) = found.last_mut().filter(|_| row < of_run.end) {
            last.rows += 1;
            continue;
        }
        // Where most rows are left it is mostly the next one.
        at = if row == of_run.end && row > 0 { at + 1 } else { runs.index_at(row) };
        of_run = runs.rows(at);
        found.push(SeriesRun { series: ordinal(runs.series(at)), rows: 1 });
    }
    found
}

/// Whether several series share a block, and rows of it are wanted, not summaries.
pub(super) fn is_shared(block: &Block, has_windows: bool) -> bool {
    !(block.has_one_series() || has_windows && block.has_windows())
}

impl SegmentSource {
    /// The place, among series that are `left`, of the first one behind one that has no rows within `time` which may have some.
    pub(super) fn skip(
        &self,
        left: &SeriesLeft<'_>,
        place: usize,
        time: TimeRange,
    ) -> Result<usize, StoreError> {
        let behind = SeriesId(left.at(place).1.0.saturating_add(1));
        let all = behind..=SeriesId(u64::MAX);
        let mut walk = self.reader.walk(&self.directory, &all, time, self.near);
        Ok(match self.next_block(&mut walk, Edge::First)? {
            Some(block) => left.count_before(block.first().0).max(place + 1),
            None => left.len(),
        })
    }

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

    /// Whether rows of a block may be wanted, as far as summaries tell.
    pub(super) fn may_have_wanted(&self, block: &Block) -> Result<bool, StoreError> {
        let is_filtered = self.conditions.as_ref().is_none_or(|all| !all.is_empty());
        Ok(self.has_values(block, None)
            && (!is_filtered || !self.sift(block, &(0..block.rows()))?.is_empty()))
    }

    /// All rows of a block, of whatever series.
    fn whole(&self, block: &Block) -> Result<Piece, StoreError> {
        self.stretch(block, 0..block.rows())
    }

    /// Some rows of a block, one behind the other, of whatever series.
    pub(super) fn stretch(&self, block: &Block, rows: Range<usize>) -> Result<Piece, StoreError> {
        let mut times = Vec::with_capacity(rows.len());
        self.reader.times(block, rows.clone(), &mut times).map_err(segment_error)?;
        let columns = self.columns(block, std::slice::from_ref(&rows), &self.fields)?;
        Ok(Piece { times, columns })
    }
}

impl Wanted {
    /// All rows of a block, whichever series they are of, if its series are the next ones that are left.
    fn whole(block: &Block, left: &SeriesLeft<'_>) -> Option<Self> {
        let (first, last) = (block.first().0, block.last().0);
        let done = left.count_between(first, last)?;
        let runs = vec![(SeriesRun::SEVERAL, 0..block.rows())];
        Some(Self { runs, done, unfinished: Some(last) })
    }

    /// Which of a block's runs are wanted; `None` if there are less than two.
    pub(super) fn among(runs: &Runs, left: &SeriesLeft<'_>) -> Option<Self> {
        let last = runs.series(runs.len() - 1);
        let mut wanted = Self { runs: Vec::new(), done: 0, unfinished: None };
        let mut at = runs.index_from(left.iter().next()?.1);
        let count = runs.len() - at;
        // Mostly all series are wanted.
        if let Some(first) = left.side_by_side(count).filter(|_| count > 1)
            && runs.ends_with(at, left.from(first, count))
        {
            wanted.runs = (first..).zip((at..runs.len()).map(|at| runs.rows(at))).collect();
            return Some(Self { done: count, unfinished: Some(last), ..wanted });
        }
        for (ordinal, series) in left.iter() {
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
