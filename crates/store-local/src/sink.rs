//! Rows of series after series on their way into a segment.

use std::ops::Range;

use model::{FieldType, Name, SeriesId};
use segment::{SegmentRows, SegmentWriter, SparseColumn};
use store::StoreError;

use crate::error::segment_error;
use crate::scan::Piece;

/// Rows that are gathered before the writer gets them, or fewer that take so much memory.
const GATHER_ROWS: usize = 16 << 10;
const GATHER_BYTES: usize = 4 << 20;

/// Feeds a segment writer.
#[derive(Debug)]
pub(crate) struct SegmentSink<'a> {
    writer: &'a mut SegmentWriter,
    rows: SegmentRows,
    /// Memory of their values, about.
    bytes: usize,
}

impl<'a> SegmentSink<'a> {
    /// Starts a measurement. Names ascend from one to the next, and so do the fields'.
    pub(crate) fn new(
        writer: &'a mut SegmentWriter,
        measurement: &Name,
        fields: &[(Name, FieldType)],
    ) -> Result<Self, StoreError> {
        writer.begin_measurement(measurement, fields).map_err(segment_error)?;
        Ok(Self { writer, rows: SegmentRows::empty(fields), bytes: 0 })
    }

    /// Adds rows of a series, later ones than any added before.
    pub(crate) fn add(&mut self, series: SeriesId, piece: &Piece) -> Result<(), StoreError> {
        let rows = 0..piece.times.len();
        self.add_times(series, &piece.times);
        for (mine, theirs) in self.rows.columns.iter_mut().zip(&piece.columns) {
            mine.extend_from_column(theirs, rows.clone());
            self.bytes += theirs.values.memory_bytes();
        }
        self.pass_on_enough()
    }

    /// The same, some rows of columns without gaps.
    pub(crate) fn add_sparse(
        &mut self,
        series: SeriesId,
        (times, columns): (&[i64], &[SparseColumn]),
        rows: Range<usize>,
    ) -> Result<(), StoreError> {
        self.add_times(series, &times[rows.clone()]);
        for (mine, theirs) in self.rows.columns.iter_mut().zip(columns) {
            let had = mine.values.len();
            mine.extend_from(theirs, rows.clone());
            let (added, all) = (mine.values.len() - had, theirs.values.len().max(1));
            self.bytes += theirs.values.memory_bytes() / all * added + rows.len() / 8;
        }
        self.pass_on_enough()
    }

    fn add_times(&mut self, series: SeriesId, times: &[i64]) {
        let rows = times.len() as u32;
        match self.rows.runs.last_mut() {
            Some((last, count)) if *last == series => *count += rows,
            _ if rows > 0 => self.rows.runs.push((series, rows)),
            _ => {}
        }
        self.rows.times.extend_from_slice(times);
    }

    fn pass_on_enough(&mut self) -> Result<(), StoreError> {
        if self.rows.times.len() >= GATHER_ROWS || self.bytes >= GATHER_BYTES {
            self.pass_on()?;
        }
        Ok(())
    }

    /// Ends the measurement.
    pub(crate) fn finish(mut self) -> Result<(), StoreError> {
        self.pass_on()
    }

    fn pass_on(&mut self) -> Result<(), StoreError> {
        if self.rows.times.is_empty() {
            return Ok(());
        }
        self.writer.append(&self.rows).map_err(segment_error)?;
        self.rows.clear();
        self.bytes = 0;
        Ok(())
    }
}
