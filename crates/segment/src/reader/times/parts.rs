//! Times of many parts of a block, whose page is looked for once.

use std::ops::Range;

use model::TimeRange;

use super::{CHUNK_ROWS, SegmentReader, Times, search, times_in};
use crate::SegmentError;
use crate::directory::Block;

impl SegmentReader {
    /// Adds the times of some parts of a block, which ascend, to `out`.
    ///
    /// # Errors
    /// If the disk fails or the page is damaged.
    ///
    /// # Panics
    /// If the block does not have these rows.
    pub fn times_of(
        &self,
        block: &Block,
        parts: &[Range<usize>],
        out: &mut Vec<i64>,
    ) -> Result<(), SegmentError> {
        let times = Times::open(self, block)?;
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Ok(()) };
        let all = first.start..last.end;
        let are_known = times.form.is_calculated() || times.learned().is_some();
        if are_known || parts.len() * CHUNK_ROWS < all.len() {
            return parts.iter().try_for_each(|rows| times.decode(rows.clone(), out));
        }
        let mut whole = Vec::with_capacity(all.len());
        times.decode(all.clone(), &mut whole)?;
        for rows in parts {
            out.extend_from_slice(&whole[rows.start - all.start..rows.end - all.start]);
        }
        Ok(())
    }

    /// The rows inside `time` among those of each of some series of a block, which ascend.
    ///
    /// # Errors
    /// If the disk fails or the page is damaged.
    ///
    /// # Panics
    /// If the block does not have these rows.
    pub fn parts_within(
        &self,
        block: &Block,
        series: &[Range<usize>],
        time: TimeRange,
    ) -> Result<Vec<Range<usize>>, SegmentError> {
        if time.covers(&block.time()) {
            return Ok(series.to_vec());
        }
        let times = Times::open(self, block)?;
        if times.form.is_calculated() || times.learned().is_some() {
            return series.iter().map(|rows| search(&times, rows.clone(), time)).collect();
        }
        times_in(self, block, series, time, &mut Vec::new())
    }
}
