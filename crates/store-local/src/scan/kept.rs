//! What a source keeps of the block of several series that it read last, so that its columns are decoded once for all of
//! them. Which rows are wanted of it `source` says.

use std::ops::Range;
use std::sync::Arc;

use model::{Column, SeriesId, Values};
use segment::{Block, FoundRows, Runs};
use store::StoreError;

use super::source::{SegmentSource, same};
use crate::error::segment_error;

/// Where one in so many rows is wanted, or more, from the first of several series in a block to the last that was asked for,
/// whole columns are decoded.
const WHOLE_PART: usize = 8;
/// To find rows of a series takes as long as to read so many.
const FOUND_ROWS: usize = 8;

/// The block of several series that was read last. The first series of it that is asked for is
/// decoded alone; if a second one follows, whole columns are decoded and kept, unless few rows of each are wanted.
#[derive(Debug)]
pub(super) struct SharedBlock {
    block: Block,
    runs: Arc<Runs>,
    last_series: SeriesId,
    several: bool,
    /// The series that were asked for, all rows from those of the first to those of the last of them, how many rows of theirs lie
    /// in a time range whose ends were looked for among all their times, and of how many fields were wanted: no summary is
    /// as good.
    series: usize,
    stretch: Option<Range<usize>>,
    within: usize,
    wanted: usize,
    times: Option<Vec<i64>>,
    columns: Vec<Option<Column>>,
}

impl SharedBlock {
    /// Counts a series that was asked for, which has these rows of the block.
    pub(super) fn count(&mut self, rows: &Range<usize>) {
        self.series += 1;
        let start = self.stretch.as_ref().map_or(rows.start, |stretch| stretch.start);
        self.stretch = Some(start..rows.end);
    }

    /// Counts rows of it that were found to be in the time range by reading all its times.
    pub(super) fn count_within(&mut self, rows: usize) {
        self.within += rows;
    }

    /// Whether columns of the block are worth keeping of which so many rows are wanted: what is asked for behind them will be
    /// as close together.
    fn is_worth_keeping(&self, wanted: usize) -> bool {
        let rows = self.stretch.as_ref().map_or(0, Range::len);
        self.several && wanted.max(self.series * FOUND_ROWS) * WHOLE_PART >= rows
    }
}

impl SegmentSource {
    /// Makes `block` the shared block; returns the rows of `series` in it.
    pub(super) fn share(
        &mut self,
        block: &Block,
        series: SeriesId,
    ) -> Result<Option<Range<usize>>, StoreError> {
        match &mut self.shared {
            Some(shared) if same(&shared.block, block) => {
                shared.several |= shared.last_series != series;
                shared.last_series = series;
            }
            _ => {
                let runs = self.reader.runs(block).map_err(segment_error)?;
                self.shared = Some(SharedBlock {
                    block: block.clone(),
                    runs,
                    last_series: series,
                    several: false,
                    series: 0,
                    stretch: None,
                    within: 0,
                    wanted: 0,
                    times: None,
                    columns: vec![None; self.fields.len()],
                });
            }
        }
        let shared = self.shared.as_ref().expect("BUG: set above");
        Ok(shared.runs.rows_of(series))
    }

    /// Counts rows of `block` that are wanted, if it is shared.
    pub(super) fn want(&mut self, block: &Block, rows: usize) {
        if let Some(shared) = self.shared.as_mut().filter(|shared| same(&shared.block, block)) {
            shared.wanted += rows;
        }
    }

    /// Whether whole columns of `block` are worth keeping: not if a small part of each series is wanted.
    pub(super) fn keeps(&self, block: &Block) -> bool {
        self.shares(block).is_some_and(|shared| shared.is_worth_keeping(shared.wanted))
    }

    /// Whether all its times are: they may have to be read where values need not be.
    pub(super) fn keeps_times(&self, block: &Block) -> bool {
        let most = |shared: &SharedBlock| shared.wanted.max(shared.within);
        self.shares(block).is_some_and(|shared| shared.is_worth_keeping(most(shared)))
    }

    /// Whether they are there.
    pub(super) fn has_times(&self, block: &Block) -> bool {
        let are_read = self.shares(block).is_some_and(|shared| shared.times.is_some());
        are_read && self.keeps_times(block)
    }

    fn shares(&self, block: &Block) -> Option<&SharedBlock> {
        self.shared.as_ref().filter(|shared| !self.few && same(&shared.block, block))
    }

    /// Times of some rows of one series: of the whole block, if these are kept.
    pub(super) fn run_times<'a>(
        &'a mut self,
        block: &Block,
        run: &Range<usize>,
        decoded: &'a mut Vec<i64>,
    ) -> Result<&'a [i64], StoreError> {
        let reader = &self.reader;
        if !self.keeps_times(block) {
            let is_this = |(of, _): &&(Block, FoundRows)| same(of, block);
            if let Some((_, found)) = self.found.as_ref().filter(is_this)
                && let Some(times) = found.times(run)
            {
                return Ok(times);
            }
            reader.times(block, run.clone(), decoded).map_err(segment_error)?;
            return Ok(decoded);
        }
        let shared = self.shared.as_mut().expect("BUG: keeps_times says so");
        if shared.times.is_none() {
            let mut times = Vec::with_capacity(block.rows());
            reader.times(block, 0..block.rows(), &mut times).map_err(segment_error)?;
            shared.times = Some(times);
        }
        let times = shared.times.as_ref().expect("BUG: set above");
        Ok(&times[run.clone()])
    }

    /// One requested field of some rows.
    pub(super) fn column(
        &mut self,
        block: &Block,
        rows: &Range<usize>,
        at: usize,
    ) -> Result<Column, StoreError> {
        let (field, field_type) = self.fields[at];
        let mut column = Column::new(Values::empty(field_type));
        let Some(field) = field else {
            column.extend_missing(rows.len());
            return Ok(column);
        };
        if !self.keeps(block) {
            self.decode(block, rows, field, &mut column)?;
            return Ok(column);
        }
        let kept = self.shared.as_ref().expect("BUG: keeps says so").columns[at].is_some();
        if !kept {
            let mut whole = Column::new(Values::empty(field_type));
            self.decode(block, &(0..block.rows()), field, &mut whole)?;
            self.shared.as_mut().expect("BUG: keeps says so").columns[at] = Some(whole);
        }
        let shared = self.shared.as_ref().expect("BUG: keeps says so");
        column.extend_from(shared.columns[at].as_ref().expect("BUG: set above"), rows.clone());
        Ok(column)
    }
}
