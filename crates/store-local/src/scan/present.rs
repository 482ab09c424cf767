//! Which series can have rows at the times of a request, where series come and go.
//!
//! Of a day of pods that live for an hour each, a request for the last hour is about a few of them: to look each up in each
//! source took twelve times as long as reading their rows. Series have their numbers in the order they came, so those of one
//! time lie side by side in a segment, and times of blocks leave out the others. Of users that come once in a while each block has
//! all times; where rows of a short time are found without decoding all of them, they say which series.
//!
//! A hint: of the series that are left, some may have no rows all the same.

use std::sync::Arc;

use model::{SeriesId, TimeRange};
use roaring::RoaringTreemap;
use segment::LONG_SERIES_ROWS;
use store::StoreError;

use crate::error::segment_error;
use crate::schema::Measurement;
use crate::view::{Partition, Segment};

/// Fewer series are looked up one by one.
const SERIES_MIN: u64 = 64;

/// A memtable with more than so many times as many series is not looked through.
const LOOKED_THROUGH: u64 = 8;

/// Series of a block are listed where so many times as many lie between its first and its last.
const SPREAD: u64 = 2;

/// Rows of a short time are looked for if they are likely to be of one series in so many at most.
const LEFT_OUT: u64 = 4;

/// Leaves out of `ids` those that have no rows in `partitions` within `time`, if these are half of them at least and series
/// have few rows each: of all `total` that the measurement has.
pub(crate) fn leave_out_absent(
    ids: RoaringTreemap,
    total: u64,
    measurement: &Measurement,
    partitions: &[Arc<Partition>],
    time: TimeRange,
) -> Result<RoaringTreemap, StoreError> {
    if ids.len() < SERIES_MIN {
        return Ok(ids);
    }
    let rows_each = rows_if_cut(partitions, measurement, time).map(|rows| rows / total.max(1));
    let Some(rows_each) = rows_each.filter(|rows| *rows < u64::from(LONG_SERIES_ROWS)) else {
        return Ok(ids);
    };
    let wanted = Wanted { measurement: &measurement.name, ids: &ids, rows_each: rows_each.max(1) };
    let most = ids.len() / 2;
    let mut present = RoaringTreemap::new();
    for partition in partitions {
        let time = time.intersect(&partition.time);
        for segment in &partition.segments {
            if segment.meta.time.overlaps(&time)
                && !wanted.add_segment(segment, time, most, &mut present)?
            {
                return Ok(ids);
            }
        }
        for table in partition.frozen.iter().map(|f| &f.table).chain(&partition.active) {
            if !table.may_have(measurement.no, time) {
                continue;
            }
            // A few series of very many are sooner looked up.
            if table.series_count() as u64 > ids.len().saturating_mul(LOOKED_THROUGH) {
                return Ok(ids);
            }
            table.series_within(measurement.no, time, &mut present);
        }
        if present.len() > most && present.intersection_len(&ids) > most {
            return Ok(ids);
        }
    }
    Ok(ids & present)
}

/// About how many rows of a measurement there are, if `time` has a part of those of a source.
fn rows_if_cut(
    partitions: &[Arc<Partition>],
    measurement: &Measurement,
    time: TimeRange,
) -> Option<u64> {
    let (mut rows, mut is_cut) = (0, false);
    for partition in partitions {
        for segment in &partition.segments {
            if let Some((of_segment, count)) = segment.measurement(&measurement.name) {
                rows += count;
                is_cut |= !time.covers(&of_segment);
            }
        }
        for table in partition.frozen.iter().map(|f| &f.table).chain(&partition.active) {
            rows += table.rows() as u64;
            is_cut |= !time.covers(&table.time());
        }
    }
    is_cut.then_some(rows)
}

struct Wanted<'a> {
    measurement: &'a str,
    ids: &'a RoaringTreemap,
    /// Rows that a series has, about.
    rows_each: u64,
}

impl Wanted<'_> {
    /// Adds the series of blocks that have rows within `time`; `false`: more than `most`.
    fn add_segment(
        &self,
        segment: &Segment,
        time: TimeRange,
        most: u64,
        present: &mut RoaringTreemap,
    ) -> Result<bool, StoreError> {
        let (Some(min), Some(max)) = (self.ids.min(), self.ids.max()) else { return Ok(true) };
        let reader = segment.reader()?;
        let Some(directory) = reader.directory(self.measurement).map_err(segment_error)? else {
            return Ok(true);
        };
        let mut added = 0;
        for block in reader.blocks(&directory, &(SeriesId(min)..=SeriesId(max)), time) {
            let block = block.map_err(segment_error)?;
            let series = block.first().0.0..=block.last().0.0;
            let between = self.ids.range_cardinality(series.clone());
            // Where most series are likely to have a row then, nothing is gained by looking.
            let parts = (LEFT_OUT * block.rows() as u64).div_ceil(between.max(1)) as usize;
            if time.is_short_part(&block.time(), parts)
                && let Some(rows) = reader.short_time_rows(&block, time).map_err(segment_error)?
            {
                let runs = reader.runs(&block).map_err(segment_error)?;
                let mut at = 0;
                for row in rows {
                    at = runs.index_at_from(at, row as usize);
                    added += u64::from(present.insert(runs.series(at).0));
                }
                continue;
            }
            // Between series that live long and those of their time are many others.
            if between * self.rows_each > SPREAD * block.rows() as u64 {
                let runs = reader.runs(&block).map_err(segment_error)?;
                added += runs.len() as u64;
                present.extend((0..runs.len()).map(|at| runs.series(at).0));
            } else {
                added += between;
                present.insert_range(series);
            }
            if added > most {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
