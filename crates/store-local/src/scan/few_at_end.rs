//! Few rows of a block that several series share, or of a memtable: of each series those at the end that is read first.
//!
//! The latest value of each of thousands is asked for whenever a map or a list of them is drawn. Series by series, each costs
//! a walk to its block, a search for its end, and columns of one row, ten times what reading the row takes. Where the ends of
//! the next series stand in one block, or in a memtable, they are read together.
//!
//! Invariant: a series is read here only if that has all rows that are wanted of it. The first that is not so, or whose
//! rows lack the values that are asked for, is read by itself.

use std::ops::Range;
use std::sync::Arc;

use codec::kernels;
use model::{Bitmap, SeriesId, TimeRange};
use segment::{Block, Edge, Runs};
use store::StoreError;

use super::few_found::SERIES_MIN;
use super::memtable_source::MemtableSource;
use super::piece::Piece;
use super::series_left::SeriesLeft;
use super::series_reader::SeriesReader;
use super::shared_block::ManyRows;
use super::source::{SegmentSource, Source, same};
use super::within_time::{CELLS_AT_ONCE, has_long_runs};
use crate::error::segment_error;

/// Of each series no more rows are few.
const FEW_ROWS: u64 = 64;

/// Where the rows of each series are so few, all of them are decoded faster than those at the end are looked for.
const STRETCH_ROWS: usize = 512;

/// Series that are read at once at most; of a memtable the first time.
const SERIES_MAX: usize = 2048;
const TRIED_SERIES: usize = 64;

/// What was read of some series.
struct Ends {
    piece: Piece,
    /// Ordinals, and rows of the piece. Of the first of those that were asked for, as far as there are as many as are wanted.
    runs: Vec<(u32, Range<usize>)>,
    /// So many series were asked for.
    asked: usize,
}

impl SeriesReader {
    /// Whether a few rows at one end of each series are wanted, whatever their values, and one source has all rows of the time
    /// that is read first.
    pub(super) fn looks_for_ends(&self) -> bool {
        let are_few = self.rows_per_series.is_some_and(|rows| (1..=FEW_ROWS).contains(&rows));
        let any_value = self.filters.is_empty() && self.windows.is_none() && self.only.is_none();
        are_few && any_value && self.findings.are_few() && self.has_one_source_first()
    }

    /// Whether one source has all rows of the time that is read first, none of them hidden.
    fn has_one_source_first(&self) -> bool {
        if self.partitions.is_empty() {
            return false;
        }
        match self.partitions[self.partition_at(0)].sources.as_slice() {
            [Source::Segment(segment)] => !segment.has_tombstones(),
            [Source::Memtable(memtable)] => {
                memtable.tombstones.is_empty() && memtable.few.is_some()
            }
            _ => false,
        }
    }

    /// Reads the ends of the first of the series that are `left`: as many as follow one another in one block, if several share
    /// it, or in a memtable.
    ///
    /// # Panics
    /// Unless [`Self::looks_for_ends`].
    pub(super) fn read_ends(
        &mut self,
        left: &SeriesLeft<'_>,
    ) -> Result<Option<ManyRows>, StoreError> {
        let at = self.partition_at(0);
        let time = self.time.intersect(&self.partitions[at].time);
        let few = self.rows_per_series.map_or(1, |rows| rows as usize);
        let ends = match self.partitions[at].sources.as_slice() {
            [Source::Segment(_)] => self.ends_of_block(left, (at, time, few))?,
            [Source::Memtable(memtable)] => {
                // Until it is known that they are there.
                let most = if self.findings.were_few() { SERIES_MAX } else { TRIED_SERIES };
                let most = most.min(series_at_once(memtable.places.columns(), few));
                Some(ends_of_memtable(memtable, left, (time, most)))
            }
            _ => panic!("BUG: looks_for_ends was not asked"),
        };
        let Some(Ends { piece, mut runs, asked }) = ends else {
            self.findings.add(false);
            return Ok(None);
        };
        if asked < SERIES_MIN {
            return Ok(Some(ManyRows::none(asked.max(1))));
        }
        if runs.is_empty() {
            self.findings.add(false);
            return Ok(Some(ManyRows::none(1)));
        }
        // Those that lack a value may have it further from the end.
        let have = piece.rows_with_values(self.with_any.as_deref());
        let has_enough = |rows: &Range<usize>| {
            have.as_ref().map_or(rows.len(), |have| have.count_ones_in(rows.clone())) >= few
        };
        let done = runs.iter().take_while(|(_, rows)| has_enough(rows)).count();
        runs.truncate(done);
        self.findings.add(done * 2 >= asked);
        let rows = self.cut(piece, &runs, have.as_ref(), false);
        // The next one is another.
        let alone = usize::from(done < asked);
        Ok(Some(ManyRows { rows, done, alone, ..ManyRows::default() }))
    }

    /// The ends of those that follow one another in the block at the end of the first; `None` if that is not shared, or better
    /// read as a whole.
    fn ends_of_block(
        &mut self,
        left: &SeriesLeft<'_>,
        (at, time, few): (usize, TimeRange, usize),
    ) -> Result<Option<Ends>, StoreError> {
        let (edge, with_any) = (self.edge(), self.with_any.clone());
        // Blocks of series with few rows are read as a whole elsewhere, where no other source has rows of theirs.
        let are_elsewhere = self.reads_shared_blocks();
        let segment = self.only_segment(at);
        let shared = segment.shared_at_end(left.at(0).1, (time, edge), with_any.as_deref())?;
        let is_here =
            |(block, runs): &(Block, Arc<Runs>)| !are_elsewhere || has_long_runs(block, runs);
        let Some((block, runs)) = shared.filter(is_here) else { return Ok(None) };
        let mut wanted = next_in(&runs, left, series_at_once(segment.fields.len(), few));
        // The end of the first was looked for; the last may have rows in the block behind.
        if let [_, .., (_, rows)] = wanted.as_slice()
            && rows.end == block.rows()
            && edge == Edge::Last
            && !segment.ends_in(&block, runs.series(runs.len() - 1), (time, edge))?
        {
            wanted.pop();
        }
        let asked = wanted.len();
        let mut piece = Piece::default();
        if asked >= SERIES_MIN {
            segment.cut_to_ends(&block, &mut wanted, (time, edge, few))?;
        }
        if asked >= SERIES_MIN && !wanted.is_empty() {
            segment.near = block.place();
            piece = segment.read_ends_of(&block, &mut wanted)?;
        }
        Ok(Some(Ends { piece, runs: wanted, asked }))
    }
}

/// So many series are read at once, of each a few rows of some fields.
fn series_at_once(fields: usize, few: usize) -> usize {
    (CELLS_AT_ONCE / (fields + 1) / few).clamp(SERIES_MIN, SERIES_MAX)
}

/// The ends of the first of the series that are `left`.
fn ends_of_memtable(
    memtable: &MemtableSource,
    left: &SeriesLeft<'_>,
    (time, most): (TimeRange, usize),
) -> Ends {
    let wanted: Vec<(u32, SeriesId)> = left.iter().take(most).collect();
    let (piece, mut runs) = memtable.few_of_many(&wanted, time).unwrap_or_default();
    let are_there = runs.iter().zip(&wanted).take_while(|((a, _), (b, _))| a == b).count();
    runs.truncate(are_there);
    Ends { piece, runs, asked: wanted.len() }
}

/// Of the series that are `left` the first ones, no more than `most`, as far as a block has rows of each: with all of these.
fn next_in(runs: &Runs, left: &SeriesLeft<'_>, most: usize) -> Vec<(u32, Range<usize>)> {
    let mut wanted = Vec::new();
    let mut at = 0;
    for (ordinal, series) in left.iter().take(most) {
        at = if wanted.is_empty() { runs.index_from(series) } else { runs.index_near(at, series) };
        if at == runs.len() || runs.series(at) != series {
            break;
        }
        wanted.push((ordinal, runs.rows(at)));
    }
    wanted
}

impl SegmentSource {
    /// The block at an end of a series within `time`, if several share it and it has values of one of these requested fields, or
    /// of any.
    fn shared_at_end(
        &self,
        series: SeriesId,
        (time, edge): (TimeRange, Edge),
        with_any: Option<&[usize]>,
    ) -> Result<Option<(Block, Arc<Runs>)>, StoreError> {
        let block = self.next_block(&mut self.walk(series, time), edge)?;
        let is_wanted = |block: &Block| !block.has_one_series() && self.has_values(block, with_any);
        let Some(block) = block.filter(is_wanted) else { return Ok(None) };
        let runs = self.reader.runs(&block).map_err(segment_error)?;
        Ok(Some((block, runs)))
    }

    /// Whether no other block has rows of a series within `time` that are nearer to an end.
    fn ends_in(
        &self,
        block: &Block,
        series: SeriesId,
        (time, edge): (TimeRange, Edge),
    ) -> Result<bool, StoreError> {
        let at_end = self.next_block(&mut self.walk(series, time), edge)?;
        Ok(at_end.is_some_and(|at_end| same(&at_end, block)))
    }

    /// Cuts the rows of each series to the few nearest to an end of `time`, and leaves out the first that has fewer with all
    /// behind it.
    fn cut_to_ends(
        &self,
        block: &Block,
        wanted: &mut Vec<(u32, Range<usize>)>,
        (time, edge, few): (TimeRange, Edge, usize),
    ) -> Result<(), StoreError> {
        if !time.covers(&block.time()) {
            let all: Vec<Range<usize>> = wanted.iter().map(|(_, rows)| rows.clone()).collect();
            let within = self.reader.parts_within(block, &all, time).map_err(segment_error)?;
            wanted.iter_mut().zip(within).for_each(|((_, rows), within)| *rows = within);
        }
        let enough = wanted.iter().take_while(|(_, rows)| rows.len() >= few).count();
        wanted.truncate(enough);
        for (_, rows) in wanted {
            match edge {
                Edge::First => rows.end = rows.start + few,
                Edge::Last => rows.start = rows.end - few,
            }
        }
        Ok(())
    }

    /// Reads some rows of each of some series, and others if that is faster. Where they are then takes the place of where they
    /// were in the block.
    fn read_ends_of(
        &self,
        block: &Block,
        wanted: &mut [(u32, Range<usize>)],
    ) -> Result<Piece, StoreError> {
        let start = wanted.first().map_or(0, |(_, rows)| rows.start);
        let stretch = start..wanted.last().map_or(start, |(_, rows)| rows.end);
        if stretch.len() <= wanted.len() * STRETCH_ROWS {
            wanted.iter_mut().for_each(|(_, rows)| *rows = rows.start - start..rows.end - start);
            return self.stretch(block, stretch);
        }
        let mut words = vec![0; block.rows().div_ceil(64)];
        let mut end = 0;
        for (_, rows) in wanted {
            kernels::set_bit_range(&mut words, rows.clone());
            *rows = end..end + rows.len();
            end = rows.end;
        }
        self.read_selected(block, Bitmap::from_words(words, block.rows()), None)
    }
}
