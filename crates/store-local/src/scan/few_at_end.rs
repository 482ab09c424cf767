//! Few rows of a block that several series share: of each those at the end that is read first.
//!
//! The latest value of each of thousands is asked for whenever a map or a list of them is drawn. Series by series, each costs
//! a walk to its block, a search for its end, and columns of one row, ten times what reading the row takes. Where the ends of
//! the next series stand in one block they are read together.
//!
//! Invariant: a series is read here only if this block has all rows that are wanted of it. The first that is not so, or whose
//! rows lack the values that are asked for, is read by itself.

use std::ops::Range;

use codec::kernels;
use model::{Bitmap, TimeRange};
use segment::{Block, Edge, Runs};
use store::StoreError;

use super::series_left::SeriesLeft;
use super::series_reader::SeriesReader;
use super::shared_block::ManyRows;
use super::source::{SegmentSource, Source};
use super::within_time::has_long_runs;
use crate::error::segment_error;

/// Of each series no more rows are few.
const FEW_ROWS: u64 = 64;

/// Fewer series are read one by one.
const SERIES_MIN: usize = 4;

/// Cells that are read at once, about: few enough for a core's cache.
const CELLS_AT_ONCE: usize = 1 << 13;

impl SeriesReader {
    /// Whether a few rows at one end of each series are wanted, whatever their values, and one segment has all rows of the time
    /// that is read first.
    pub(super) fn looks_for_ends(&self) -> bool {
        let are_few = self.rows_per_series.is_some_and(|rows| (1..=FEW_ROWS).contains(&rows));
        let any_value = self.filters.is_empty() && self.windows.is_none() && self.only.is_none();
        are_few && any_value && self.findings.are_few() && self.first_segment().is_some()
    }

    /// The segment that has all rows of the time that is read first, none of them hidden.
    fn first_segment(&self) -> Option<(usize, &SegmentSource)> {
        let at = (!self.partitions.is_empty()).then(|| self.partition_at(0))?;
        let [Source::Segment(segment)] = self.partitions[at].sources.as_slice() else {
            return None;
        };
        (!segment.has_tombstones()).then_some((at, segment))
    }

    /// Reads the ends of the first of the series that are `left`, as many as follow one another in one block, if it is shared.
    ///
    /// # Panics
    /// Unless [`Self::looks_for_ends`].
    pub(super) fn read_ends(
        &mut self,
        left: &SeriesLeft<'_>,
    ) -> Result<Option<ManyRows>, StoreError> {
        let (at, segment) = self.first_segment().expect("BUG: looks_for_ends was not asked");
        let (time, edge) = (self.time.intersect(&self.partitions[at].time), self.edge());
        let few = self.rows_per_series.map_or(1, |rows| rows as usize);
        let mut walk = segment.walk(left.at(0).1, time);
        let block = segment.next_block(&mut walk, edge)?;
        let Some(block) = block.filter(|b| segment.may_share_ends(b, self.with_any.as_deref()))
        else {
            self.findings.many += 1;
            return Ok(None);
        };
        let runs = segment.reader.runs(&block).map_err(segment_error)?;
        if !has_long_runs(&block, &runs) {
            self.findings.many += 1;
            return Ok(None);
        }
        let most = (CELLS_AT_ONCE / (segment.fields.len() + 1) / few).max(SERIES_MIN);
        let mut wanted = next_in(&runs, left, (edge, most));
        let asked = wanted.len();
        if asked < SERIES_MIN {
            return Ok(None);
        }
        segment.cut_to_ends(&block, &mut wanted, (time, edge, few))?;
        let mut many = None;
        if !wanted.is_empty() {
            let mut words = vec![0; block.rows().div_ceil(64)];
            wanted.iter().for_each(|(_, rows)| kernels::set_bit_range(&mut words, rows.clone()));
            let ends = Bitmap::from_words(words, block.rows());
            let segment = self.only_segment(at);
            segment.near = block.place();
            let piece = segment.read_selected(&block, ends, None)?;
            // Those that lack a value may have it further from the end.
            if let Some(have) = piece.rows_with_values(self.with_any.as_deref()) {
                wanted.truncate(first_missing(&have) / few);
            }
            let of_piece = wanted.iter().zip((0..).step_by(few));
            let in_piece: Vec<_> = of_piece.map(|((n, _), at)| (*n, at..at + few)).collect();
            let rows = self.cut(piece, &in_piece, None, false);
            many = rows.map(|rows| ManyRows {
                rows: Some(rows),
                done: wanted.len(),
                ..ManyRows::default()
            });
        }
        if wanted.len() * 2 < asked {
            self.findings.many += 1;
        } else {
            self.findings.few += 1;
        }
        Ok(many)
    }
}

/// Of the series that are `left` the first ones, no more than `most`, as far as a block has rows of each, and no other block may
/// have rows nearer to the end: with all their rows in it.
fn next_in(
    runs: &Runs,
    left: &SeriesLeft<'_>,
    (edge, most): (Edge, usize),
) -> Vec<(u32, Range<usize>)> {
    let mut wanted = Vec::new();
    // The last series may go on in the block behind. The first may have begun in the one before, but if it is the first that is
    // wanted its end was looked for.
    let end = if edge == Edge::Last { runs.len() - 1 } else { runs.len() };
    let mut at = 0;
    for (ordinal, series) in left.iter().take(most) {
        at = if wanted.is_empty() { runs.index_from(series) } else { runs.index_near(at, series) };
        if at >= end || runs.series(at) != series {
            break;
        }
        wanted.push((ordinal, runs.rows(at)));
    }
    wanted
}

/// The first bit that is not set.
fn first_missing(bits: &Bitmap) -> usize {
    (0..bits.len()).find(|at| !bits.get(*at)).unwrap_or(bits.len())
}

impl SegmentSource {
    /// Whether several series share a block, which has values of one of these requested fields, or of any.
    fn may_share_ends(&self, block: &Block, with_any: Option<&[usize]>) -> bool {
        !block.has_one_series() && self.has_values(block, with_any)
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
}
