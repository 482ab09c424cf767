//! The first value of each field of some series, from one end: see [`store::Scan::field_ends`].
//!
//! Partition after partition from that end, and in each the sources, newest first: what is written last to a time is met
//! first. Of a block only pages are read of which a value may still count, without room for what is missing in them.
//!
//! Not here: series that have all fields in their first row, which is read as rows are.

use std::ops::Range;
use std::sync::Arc;

use model::{FieldSummaries, Scalar, SeriesId, SummaryBatch, SummarySpan, TimeRange, TimedValues};
use segment::{Block, Edge, SparseColumn};
use store::{ScanContext, StoreError, TimeOrder};

use super::counters::Counters;
use super::source::{SegmentSource, Source, same};
use super::{ScanPlan, open_some};
use crate::error::segment_error;
use crate::memtable::FieldEnds;

/// See [`store::Scan::field_ends`].
pub(super) fn field_ends(
    plan: &ScanPlan,
    (series, time): (&[u32], TimeRange),
    context: &ScanContext,
    counters: &Arc<Counters>,
) -> Result<Option<SummaryBatch>, StoreError> {
    if !plan.filters.is_empty() {
        return Ok(None);
    }
    let from_end = plan.order == TimeOrder::Descending;
    let cells = series.len() * plan.fields.len();
    let _memory = context.budget.reserve(cells * size_of::<Option<(i64, Scalar)>>())?;
    let time = plan.time.intersect(&time);
    let mut partitions = open_some(plan, &plan.partitions, time, (Some(1), None), counters)?;
    if from_end {
        partitions.reverse();
    }
    let mut ends: Vec<FieldEnds> =
        series.iter().map(|_| FieldEnds::new(plan.fields.len(), from_end)).collect();
    for partition in &mut partitions {
        let time = time.intersect(&partition.time);
        let mut blocks: Vec<Option<BlockColumns>> = Vec::new();
        blocks.resize_with(partition.sources.len(), || None);
        for (ordinal, ends) in series.iter().zip(&mut ends).filter(|(_, e)| !e.is_complete()) {
            context.interrupt.check()?;
            let series = plan.series.at(*ordinal as usize);
            let sources = partition.sources.iter_mut().zip(&mut blocks).rev();
            for (source, block) in sources {
                match source {
                    Source::Memtable(memtable) => memtable.field_ends(series, time, ends),
                    Source::Segment(segment) => segment.field_ends(series, time, block, ends)?,
                }
            }
        }
    }
    Ok(Some(batch(plan, series, &ends)))
}

/// What was found, as summaries.
fn batch(plan: &ScanPlan, series: &[u32], ends: &[FieldEnds]) -> SummaryBatch {
    let mut fields: Vec<FieldSummaries> =
        plan.fields.iter().map(|(_, t)| FieldSummaries::empty(*t)).collect();
    let mut spans = Vec::with_capacity(series.len());
    for (series, ends) in series.iter().zip(ends) {
        let times = || ends.found().iter().flatten().map(|(time, _)| *time);
        let (Some(min_time), Some(max_time)) = (times().min(), times().max()) else { continue };
        spans.push(SummarySpan { series: *series, min_time, max_time });
        for (field, found) in fields.iter_mut().zip(ends.found()) {
            field.counts.push(u64::from(found.is_some()));
            let ends = if ends.from_end { &mut field.lasts } else { &mut field.firsts };
            push(ends, found.as_ref());
        }
    }
    SummaryBatch { spans, fields }
}

/// Adds a value, or something in the place of one.
fn push(ends: &mut TimedValues, found: Option<&(i64, Scalar)>) {
    match found {
        Some((time, value)) => {
            ends.times.push(*time);
            ends.values.push(value);
        }
        None => {
            ends.times.push(0);
            ends.values.extend_missing(1);
        }
    }
}

/// Columns of the block that was looked at last, as far as they were.
#[derive(Debug)]
struct BlockColumns {
    block: Block,
    times: Vec<i64>,
    columns: Vec<Option<SparseColumn>>,
}

impl SegmentSource {
    /// Adds what each field has first in a series within `time`.
    fn field_ends(
        &mut self,
        series: SeriesId,
        time: TimeRange,
        kept: &mut Option<BlockColumns>,
        ends: &mut FieldEnds,
    ) -> Result<(), StoreError> {
        if !self.may_have(series, time) {
            return Ok(());
        }
        let edge = if ends.from_end { Edge::Last } else { Edge::First };
        let mut seen = self.tombstones.visible(series, time);
        if ends.from_end {
            seen.parts.reverse();
        }
        let hidden = seen.hidden.as_deref().unwrap_or_default();
        for part in seen.parts {
            let mut walk = self.walk(series, part);
            while let Some(block) = self.next_block(&mut walk, edge)? {
                self.near = block.place();
                let nearest = if ends.from_end { block.time().max } else { block.time().min };
                let mut wanted = self.wanted_fields(ends, nearest);
                if wanted.is_empty() {
                    return Ok(());
                }
                wanted.retain(|at| self.fields[*at].0.is_some_and(|field| block.has_values(field)));
                let rows = self.rows_within(&block, series, part)?;
                if !wanted.is_empty() && !rows.is_empty() {
                    let columns = self.columns_of(block, &wanted, kept)?;
                    columns.field_ends(&wanted, &rows, hidden, ends);
                }
            }
        }
        Ok(())
    }

    /// The fields of which a value of this time counts.
    fn wanted_fields(&self, ends: &FieldEnds, time_ns: i64) -> Vec<usize> {
        let there = self.fields.iter().enumerate().filter(|(_, (field, _))| field.is_some());
        there.map(|(at, _)| at).filter(|at| ends.wants(*at, time_ns)).collect()
    }

    /// The rows of a series within `time` that a block has.
    fn rows_within(
        &mut self,
        block: &Block,
        series: SeriesId,
        time: TimeRange,
    ) -> Result<Range<usize>, StoreError> {
        let rows = if block.has_one_series() {
            0..block.rows()
        } else {
            self.share(block, series)?.unwrap_or(0..0)
        };
        if rows.is_empty() || time.covers(&block.time()) {
            return Ok(rows);
        }
        self.reader.rows_in(block, rows, time).map_err(segment_error)
    }

    /// The columns of a block, of which some are wanted now: those that are not there yet are read.
    fn columns_of<'k>(
        &self,
        block: Block,
        wanted: &[usize],
        kept: &'k mut Option<BlockColumns>,
    ) -> Result<&'k BlockColumns, StoreError> {
        let mut known = match kept.take() {
            Some(known) if same(&known.block, &block) => known,
            _ => {
                let mut times = Vec::with_capacity(block.rows());
                self.reader.times(&block, 0..block.rows(), &mut times).map_err(segment_error)?;
                let mut columns = Vec::new();
                columns.resize_with(self.fields.len(), || None);
                BlockColumns { block, times, columns }
            }
        };
        let missing: Vec<usize> =
            wanted.iter().copied().filter(|at| known.columns[*at].is_none()).collect();
        let fields: Vec<_> = missing.iter().map(|at| self.fields[*at]).collect();
        let columns = self.reader.sparse_columns(&known.block, &fields).map_err(segment_error)?;
        self.count_read(&known.block, fields.into_iter().filter_map(|(field, _)| field));
        for (at, column) in missing.into_iter().zip(columns) {
            known.columns[at] = Some(column);
        }
        Ok(kept.insert(known))
    }
}

impl BlockColumns {
    /// Adds what fields have first in some rows of a series, but those with `hidden` times.
    fn field_ends(
        &self,
        fields: &[usize],
        rows: &Range<usize>,
        hidden: &[i64],
        ends: &mut FieldEnds,
    ) {
        for field in fields {
            let column = self.columns[*field].as_ref().expect("BUG: it was read");
            let mut rows = rows.clone();
            while let Some(row) = end_row(column, &rows, ends.from_end) {
                let time = self.times[row];
                if hidden.binary_search(&time).is_err() {
                    if ends.wants(*field, time) {
                        ends.put(*field, time, column.values.get(column.values_before(row)));
                    }
                    break;
                }
                rows = if ends.from_end { rows.start..row } else { row + 1..rows.end };
            }
        }
    }
}

/// The first of some rows that has a value, from one end.
fn end_row(column: &SparseColumn, rows: &Range<usize>, from_end: bool) -> Option<usize> {
    match &column.present {
        Some(present) if from_end => present.last_one_in(rows.clone()),
        Some(present) => present.first_one_in(rows.clone()),
        None if rows.is_empty() => None,
        None => Some(if from_end { rows.end - 1 } else { rows.start }),
    }
}
