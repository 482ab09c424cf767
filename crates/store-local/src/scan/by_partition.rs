//! Partition by partition, where it does not matter which series a row is of.
//!
//! Series by series, each partition is looked into for each series: of daily prices of thirty years, in sixteen
//! partitions, the mean took 21 ms, nearly all of it looking. One partition alone is mostly one segment, whose blocks
//! are read as they lie, or answered by their summaries.
//!
//! But series that a partition has no rows of are looked for by themselves there, which takes longer than to leave them out
//! among many partitions: where each partition has series of its own (containers that live for a day) it took seventeen times
//! as long. So neighbours that have few rows for as many series are read together.

use std::ops::Range;

use store::{ScanCursor, ScanItem, StoreError, TimeOrder};

use super::shared_block::READ_ALONE;
use super::{LocalCursor, OpenSlice, ScanPlan};

/// Rows for each series of the measurement that make looking for all of them in a partition by itself worth it: reading
/// so many takes as long.
const ROWS_EACH_MIN: u64 = 64;

/// Reads a slice some partitions after others.
#[derive(Debug)]
pub(super) struct ByPartition {
    slice: OpenSlice,
    /// Those partitions of the plan that are read together, in the order they are read.
    stretches: std::vec::IntoIter<Range<usize>>,
    current: Option<LocalCursor>,
}

impl ByPartition {
    /// Takes a slice that may be read so, if it is worth it; or gives it back.
    pub(super) fn new(slice: OpenSlice) -> Result<Self, OpenSlice> {
        let plan = &slice.plan;
        let may = plan.joins_series && slice.slice.rows_per_series.is_none();
        if !may || slice.series() < READ_ALONE {
            return Err(slice);
        }
        let mut stretches = stretches(plan);
        if stretches.len() < 2 {
            return Err(slice);
        }
        if plan.order == TimeOrder::Descending {
            stretches.reverse();
        }
        Ok(Self { slice, stretches: stretches.into_iter(), current: None })
    }
}

/// Partitions with many rows of each series by themselves, runs of others together.
fn stretches(plan: &ScanPlan) -> Vec<Range<usize>> {
    let mut stretches: Vec<Range<usize>> = Vec::new();
    let mut joins = false;
    for (at, partition) in plan.partitions.iter().enumerate() {
        let is_alone = plan.rows_each(std::slice::from_ref(partition)) >= ROWS_EACH_MIN;
        match stretches.last_mut().filter(|_| joins && !is_alone) {
            Some(last) => last.end = at + 1,
            None => stretches.push(at..at + 1),
        }
        joins = !is_alone;
    }
    stretches
}

impl ScanCursor for ByPartition {
    fn next(&mut self) -> Result<Option<ScanItem>, StoreError> {
        loop {
            if let Some(cursor) = &mut self.current
                && let Some(item) = cursor.next()?
            {
                return Ok(Some(item));
            }
            let Some(stretch) = self.stretches.next() else { return Ok(None) };
            let cursor = self.slice.cursor(&self.slice.plan.partitions[stretch])?;
            // Where nothing has rows for the slice no series need be asked for them.
            self.current = Some(cursor).filter(|cursor| !cursor.reader.partitions.is_empty());
        }
    }
}
