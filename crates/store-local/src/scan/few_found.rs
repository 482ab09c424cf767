//! Few rows of a block that several series share: those that filters find.
//!
//! Whether a machine of thousands was too hot today is asked of rows of which hardly any was. Asked series by series, each costs
//! a walk to its block, spans, stretches and columns, far more than comparing its values does in the form they are packed in. Here
//! those of all series of a block are compared one behind the other, and only what was found is read.
//!
//! Where filters turn out to leave more, series are read one by one, or in whatever way is best without filters.

use std::ops::Range;

use codec::kernels;
use model::{Bitmap, SeriesRun, TimeRange};
use segment::{Block, Edge};
use store::{StoreError, TimeOrder};

use super::few_within::runs_of;
use super::series_left::SeriesLeft;
use super::series_reader::SeriesReader;
use super::shared_block::{ManyRows, Wanted};
use super::source::SegmentSource;
use super::within_time::has_long_runs;
use crate::error::segment_error;

/// Of the rows that are looked at this part is few.
const FEW_PART: usize = 64;

/// And no more for each series than cost less, each read by itself, than what is saved: of a short time, and otherwise.
const FEW_OF_SHORT_TIME: usize = 2;
const FEW_OF_SERIES: usize = 8;

/// A block of fewer series is read one by one.
pub(super) const SERIES_MIN: usize = 4;

/// How often it was worth reading few rows of a block together, and how often not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Findings {
    few: u32,
    many: u32,
}

impl Findings {
    /// Says whether it was worth it.
    pub(super) fn add(&mut self, was_worth_it: bool) {
        *(if was_worth_it { &mut self.few } else { &mut self.many }) += 1;
    }

    /// Whether it was worth it so far.
    pub(super) fn were_few(self) -> bool {
        self.few > 0
    }

    /// Whether it is worth another look: one block may be unlike the others.
    pub(super) fn are_few(self) -> bool {
        self.many <= self.few + 1
    }
}

impl SeriesReader {
    /// Whether filters may leave few of the rows that are wanted, all those of each series.
    pub(super) fn looks_for_few(&self) -> bool {
        let wants_all = self.rows_per_series.is_none() && self.only.is_none();
        let is_forward = self.order == TimeOrder::Ascending;
        !self.filters.is_empty() && wants_all && is_forward && self.findings.are_few()
    }

    /// Reads what filters leave of the next block that the first of the series that are `left` has rows in, if that is little.
    ///
    /// # Panics
    /// Unless one segment has all rows.
    pub(super) fn read_few_found(
        &mut self,
        left: &SeriesLeft<'_>,
    ) -> Result<Option<ManyRows>, StoreError> {
        let time = self.time.intersect(&self.partitions[0].time);
        let joins = self.joins_series;
        let few_of_each = if self.reads_short_time() { FEW_OF_SHORT_TIME } else { FEW_OF_SERIES };
        let segment = self.only_segment(0);
        let (_, first) = left.at(0);
        let mut walk = segment.walk(first, time);
        let Some(block) = segment.next_block(&mut walk, Edge::First)? else {
            return Ok(Some(ManyRows {
                done: segment.skip(left, 0, time)?,
                ..ManyRows::default()
            }));
        };
        if block.has_one_series() {
            return Ok(None);
        }
        let runs = segment.reader.runs(&block).map_err(segment_error)?;
        if !has_long_runs(&block, &runs) {
            return Ok(None);
        }
        let Some(wanted) =
            Wanted::among(&runs, left).filter(|wanted| wanted.runs.len() >= SERIES_MIN)
        else {
            return Ok(None);
        };
        let of_series: Vec<_> = wanted.runs.iter().map(|(_, rows)| rows.clone()).collect();
        let Some((selection, looked_at)) = segment.found_within(&block, &of_series, time)? else {
            self.findings.add(false);
            return Ok(None);
        };
        let found = selection.count_ones();
        if found * FEW_PART > looked_at || found > wanted.runs.len() * few_of_each {
            self.findings.add(false);
            return Ok(None);
        }
        segment.near = block.place();
        let mut rows = None;
        if found > 0 {
            let all = vec![(SeriesRun::SEVERAL, 0..found)];
            let runs = if joins { all } else { runs_of(&selection, &runs, left) };
            let piece = segment.read_selected(&block, selection, None)?;
            let kept = self.kept(&piece, (time, time));
            rows = self.cut(piece, &runs, kept.as_ref(), joins);
        }
        self.findings.add(true);
        let Wanted { done, unfinished, .. } = wanted;
        Ok(Some(ManyRows { rows, done, unfinished, ..ManyRows::default() }))
    }
}

impl SegmentSource {
    /// Which rows of a block satisfy the filters, of those that some series have within `time`, and how many were looked at; of each
    /// series all rows are given. `None`: they would have to be decoded to tell.
    pub(super) fn found_within(
        &self,
        block: &Block,
        series: &[Range<usize>],
        time: TimeRange,
    ) -> Result<Option<(Bitmap, usize)>, StoreError> {
        let mut wanted = vec![0; block.rows().div_ceil(64)];
        let mut looked_at = 0;
        if self.may_have_wanted(block)? {
            for rows in self.reader.parts_within(block, series, time).map_err(segment_error)? {
                looked_at += rows.len();
                kernels::set_bit_range(&mut wanted, rows);
            }
        }
        let told = self.told(block, Bitmap::from_words(wanted, block.rows()))?;
        Ok(told.map(|selection| (selection, looked_at)))
    }
}
