//! Single rows: those at the ends of blocks, which the directory of a segment keeps, so that the latest row of a
//! series is found without reading a page, and the nearest to a time, whose values are picked out of pages.

use std::ops::Range;

use model::{Column, TimeRange, Values};
use segment::{Block, Edge};
use store::StoreError;

use super::counters::Counters;
use super::piece::Piece;
use super::source::SegmentSource;
use crate::error::segment_error;

/// Which end of a block of one series `rows` is, and its time, if it is just that row.
pub(crate) fn edge_of(block: &Block, rows: &Range<usize>) -> Option<(Edge, i64)> {
    if rows.len() != 1 || !block.has_one_series() {
        return None;
    }
    match rows.start {
        0 => Some((Edge::First, block.first().1)),
        at if at + 1 == block.rows() => Some((Edge::Last, block.last().1)),
        _ => None,
    }
}

impl SegmentSource {
    /// Puts the values of the row at an end of a block into `row`, by their bits, if the directory says them all.
    /// Returns the row's time.
    pub(crate) fn edge_values(
        &mut self,
        block: &Block,
        edge: Edge,
        row: &mut Vec<Option<u64>>,
    ) -> Option<i64> {
        if !block.has_one_series() {
            return None;
        }
        self.near = block.place();
        row.clear();
        for (field, _) in &self.fields {
            row.push(field.map_or(Some(None), |field| block.edge_bits(field, edge))?);
        }
        Counters::add(&self.counters.pages_summarised, row.len() as u64);
        Some(if edge == Edge::First { block.first().1 } else { block.last().1 })
    }

    /// Puts the values of the first or the last row that a block of one series has within `time` into `row`, by
    /// their bits, if they can be read by themselves at little cost. Returns the row's time.
    pub(crate) fn end_values(
        &mut self,
        block: &Block,
        time: TimeRange,
        edge: Edge,
        row: &mut Vec<Option<u64>>,
    ) -> Result<Option<i64>, StoreError> {
        if !block.has_one_series() {
            return Ok(None);
        }
        let Some((at, row_time)) = self.reader.end_row(block, time, edge).map_err(segment_error)?
        else {
            return Ok(None);
        };
        if !self.reader.row(block, &self.fields, at, row).map_err(segment_error)? {
            return Ok(None);
        }
        self.near = block.place();
        let pages = self.fields.iter().filter(|(field, _)| field.is_some()).count();
        Counters::add(&self.counters.pages_read, pages as u64);
        Ok(Some(row_time))
    }

    /// The row at an end of a block: from the directory, as far as that says it.
    pub(super) fn edge_row(
        &mut self,
        block: &Block,
        rows: &Range<usize>,
        edge: Edge,
        time: i64,
    ) -> Result<Piece, StoreError> {
        let mut columns = Vec::with_capacity(self.fields.len());
        for at in 0..self.fields.len() {
            let (field, field_type) = self.fields[at];
            let known = field.map_or(Some(None), |field| block.edge_bits(field, edge));
            columns.push(match known {
                Some(bits) => {
                    Counters::add(&self.counters.pages_summarised, 1);
                    let mut column = Column::new(Values::empty(field_type));
                    column.push_bits(bits);
                    column
                }
                None => self.column(block, rows, at)?,
            });
        }
        Ok(Piece { times: vec![time], columns })
    }
}
