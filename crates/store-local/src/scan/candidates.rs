//! Which series can have rows that satisfy filters, partition by partition, from the blocks as they lie.
//!
//! Series by series, each was looked for in each partition, and the summaries of its block looked at again for each series
//! that shares it: of daily prices of a thousand stocks in sixteen partitions, two rows of great volume took 8 ms. Blocks are
//! few: summaries leave a few of them, and a few of their series.
//!
//! A hint: series that are not left out are read, and filtered, as ever.

use std::ops::Range;
use std::sync::Arc;

use model::{Interrupt, SeriesId, TimeRange};
use segment::LONG_SERIES_ROWS;
use store::StoreError;

use super::ScanPlan;
use super::series_reader::PartitionSources;
use super::shared_block::READ_ALONE;
use super::source::{SegmentSource, Source};
use super::within_time::has_long_runs;
use crate::error::segment_error;
use crate::view::Partition;

/// After so many blocks, if more than half of them may have rows, nothing more is left out: they would be looked at twice.
const TRIED_BLOCKS: usize = 16;

/// Blocks that were looked at.
#[derive(Debug, Default)]
struct Tried {
    all: usize,
    /// Those of them that may have rows.
    matched: usize,
}

impl Tried {
    fn is_in_vain(&self) -> bool {
        self.all >= TRIED_BLOCKS && self.matched * 2 > self.all
    }
}

/// Leaves out, of partitions with series of few rows each, those of which no row can satisfy the filters. `series` lie
/// between the first and the last that are read, which are so many.
pub(super) fn leave_out(
    plan: &ScanPlan,
    all: &[Arc<Partition>],
    partitions: &mut [PartitionSources],
    (series, count): ((SeriesId, SeriesId), usize),
    interrupt: &Interrupt,
) -> Result<(), StoreError> {
    if plan.filters.is_empty() || partitions.len() < 2 || count < READ_ALONE {
        return Ok(());
    }
    let mut tried = Tried::default();
    // Both ascend.
    let mut all = all.iter();
    for opened in partitions {
        if tried.is_in_vain() {
            break;
        }
        interrupt.check()?;
        let partition = all.find(|partition| partition.time == opened.time);
        let is_short = |partition: &Arc<Partition>| {
            plan.rows_each(std::slice::from_ref(partition)) < u64::from(LONG_SERIES_ROWS)
        };
        // A row that fails in an older source may satisfy a filter with what was written later.
        if let [Source::Segment(segment)] = opened.sources.as_slice()
            && partition.is_some_and(is_short)
        {
            let time = plan.time.intersect(&opened.time);
            opened.candidates = candidates(segment, series, time, &mut tried)?;
        }
    }
    Ok(())
}

/// The series of which rows satisfy the filters, as far as is told by summaries, or by values in the form they are packed in,
/// ascending; `None`: too many.
fn candidates(
    segment: &SegmentSource,
    series: (SeriesId, SeriesId),
    time: TimeRange,
    tried: &mut Tried,
) -> Result<Option<Vec<SeriesId>>, StoreError> {
    let mut found: Vec<SeriesId> = Vec::new();
    let blocks = segment.reader.blocks(&segment.directory, &(series.0..=series.1), time);
    for block in blocks {
        let block = block.map_err(segment_error)?;
        tried.all += 1;
        let stretches = segment.sift(&block, &(0..block.rows()))?;
        if stretches.is_empty() {
            continue;
        }
        tried.matched += 1;
        if tried.is_in_vain() {
            return Ok(None);
        }
        if block.has_one_series() {
            found.push(block.first().0);
            continue;
        }
        let (had, runs) = (found.len(), segment.reader.runs(&block).map_err(segment_error)?);
        let of_series: Vec<Range<usize>> = (0..runs.len()).map(|at| runs.rows(at)).collect();
        if has_long_runs(&block, &runs)
            && let Some((selection, _)) = segment.found_within(&block, &of_series, time)?
        {
            let satisfy = |at: &usize| selection.count_ones_in(of_series[*at].clone()) > 0;
            found.extend((0..runs.len()).filter(satisfy).map(|at| runs.series(at)));
            if (found.len() - had) * 2 <= runs.len() {
                // Little of it is looked at twice.
                tried.matched -= 1;
            }
            continue;
        }
        for stretch in stretches.into_iter().filter(|stretch| !stretch.rows.is_empty()) {
            let (first, last) = (stretch.rows.start, stretch.rows.end - 1);
            found.extend((runs.index_at(first)..=runs.index_at(last)).map(|at| runs.series(at)));
        }
    }
    // A series may go on from block to block, and stretches meet within one.
    found.dedup();
    Ok(Some(found))
}

impl PartitionSources {
    /// Whether rows of a series may be wanted.
    pub(super) fn may_have(&self, series: SeriesId) -> bool {
        self.candidates
            .as_ref()
            .is_none_or(|series_with| series_with.binary_search(&series).is_ok())
    }
}
