//! Few rows of a block that many series share: those within a short time.
//!
//! Of very many series with a handful of rows each, a minute has one row in hundreds of a block. Its times tell which; of its
//! fields, texts above all, others need not be decoded for them. And only of rows that were found it matters which series they
//! are of.

use std::ops::Range;

use model::{Bitmap, CompareOp, FieldType, SeriesRun, TimeRange};
use segment::{Block, Runs};
use store::{StoreError, TimeOrder};

use super::filter;
use super::piece::filter_times;
use super::series_left::SeriesLeft;
use super::series_reader::SeriesReader;
use super::shared_block::ManyRows;
use super::source::SegmentSource;
use crate::error::segment_error;

/// Of the rows of a block this part is few: of more most is decoded anyway.
const FEW_PART: usize = 64;
/// The same if texts are among what is read of them.
const FEW_PART_OF_TEXTS: usize = 8;

impl SeriesReader {
    /// Reads those rows of the series that are `left` which a block has within `time`, if they are few among all of its rows.
    pub(super) fn read_few_within(
        &mut self,
        block: &Block,
        left: &SeriesLeft<'_>,
        time: TimeRange,
    ) -> Result<Option<ManyRows>, StoreError> {
        let is_backwards = self.order == TimeOrder::Descending;
        let takes_ends = is_backwards || self.rows_per_series.is_some();
        let joins = self.joins_series && !is_backwards;
        let segment = self.only_segment(0);
        let part = if segment.reads_texts() { FEW_PART_OF_TEXTS } else { FEW_PART };
        // If they come evenly.
        if !time.is_short_part(&block.time(), part) {
            return Ok(None);
        }
        // To tell of rows whether they have a value takes no more than to decode their times.
        let decodes = !(joins && segment.only_counts);
        let (mut times, mut wanted) = (Vec::new(), Bitmap::new());
        if segment.may_have_wanted(block)? {
            let rows_max = block.rows() / part;
            let Some(found) = segment.few_rows_within(block, time, (rows_max, decodes))? else {
                return Ok(None);
            };
            (wanted, times) = found;
        }
        // To look for a text in all of a page takes less than to decode some.
        if wanted.count_ones() > 0
            && let Some(told) = segment.told(block, wanted.clone())?
        {
            let are_told = wanted.ones().map(|row| told.get(row)).collect();
            (wanted, times) = (told, filter_times(&times, &are_told));
        }
        let found = wanted.count_ones();
        let (first, last) = (block.first().0, block.last().0);
        let mut many = ManyRows { done: left.count_until(last), ..ManyRows::default() };
        if many.done == 0 {
            return Ok(None);
        }
        many.unfinished = Some(last).filter(|last| left.at(many.done - 1).1 == *last);
        let mut runs = Vec::new();
        if found > 0 && joins && left.count_between(first, last).is_some() {
            runs.push((SeriesRun::SEVERAL, 0..found));
        } else if found > 0 {
            runs = runs_of(&wanted, &*segment.reader.runs(block).map_err(segment_error)?, left);
        }
        if takes_ends && many.unfinished.take().is_some() {
            // Of its rows those behind the block may be the first ones.
            (many.done, many.alone) = (many.done - 1, 1);
            let ordinal = left.at(many.done).0;
            runs.pop_if(|(of_run, _)| *of_run == ordinal);
        }
        segment.near = block.place();
        if !runs.is_empty() {
            let piece = segment.read_selected(block, wanted, Some(times))?;
            let kept = self.kept(&piece, (time, time));
            many.rows = self.cut(piece, &runs, kept.as_ref(), joins);
        }
        Ok(Some(if joins { self.with_next_block(many, block) } else { many }))
    }
}

impl SegmentSource {
    /// The rows of a block within a time, and the times of these; `None`: they are more than so many, or are not found without
    /// decoding all times and that shall not be.
    fn few_rows_within(
        &self,
        block: &Block,
        time: TimeRange,
        (rows_max, decodes): (usize, bool),
    ) -> Result<Option<(Bitmap, Vec<i64>)>, StoreError> {
        if let Some(found) = self.reader.short_time(block, time).map_err(segment_error)? {
            let mut rows = Bitmap::filled(block.rows(), false);
            found.rows.iter().for_each(|row| rows.set(*row as usize, true));
            return Ok((found.rows.len() <= rows_max).then_some((rows, found.times)));
        }
        if !decodes {
            return Ok(None);
        }
        let mut times = Vec::with_capacity(block.rows());
        self.reader.times(block, 0..block.rows(), &mut times).map_err(segment_error)?;
        let rows = within(&times, time);
        if rows.count_ones() > rows_max {
            return Ok(None);
        }
        let of_rows = filter_times(&times, &rows);
        Ok(Some((rows, of_rows)))
    }

    /// Whether texts are read, or looked for.
    fn reads_texts(&self) -> bool {
        self.fields.iter().any(|(_, field_type)| *field_type == FieldType::String)
    }
}

/// Which of some times lie within another.
fn within(times: &[i64], time: TimeRange) -> Bitmap {
    let from = filter::times(times, CompareOp::GreaterOrEqual, time.min);
    from.and(&filter::times(times, CompareOp::LessOrEqual, time.max))
}

/// The series of some rows of a block, of those that are `left`, as ordinals, and the places of each one's rows among all of
/// the rows.
pub(super) fn runs_of(
    rows: &Bitmap,
    runs: &Runs,
    left: &SeriesLeft<'_>,
) -> Vec<(u32, Range<usize>)> {
    let mut found: Vec<(u32, Range<usize>)> = Vec::new();
    let (mut at, mut of_run) = (0, 0..0);
    let mut is_wanted = false;
    for (place, row) in rows.ones().enumerate() {
        if row < of_run.end {
            if let Some((_, places)) = found.last_mut().filter(|_| is_wanted) {
                places.end += 1;
            }
            continue;
        }
        at = runs.index_at_from(at, row);
        of_run = runs.rows(at);
        let ordinal = left.ordinal_of(runs.series(at));
        is_wanted = ordinal.is_some();
        found.extend(ordinal.map(|ordinal| (ordinal, place..place + 1)));
    }
    found
}
