//! Blocks of rows that have few of their fields.
//!
//! A query about one of these fields gets the rows that have it. Merges pass blocks on without gaps, as their pages have
//! them: with room made for what is missing, rows of a thousand fields that have one each were a thousand times as large
//! on their way from file to file.

use std::ops::Range;

use model::Column;
use segment::{Block, SparseColumn};
use store::StoreError;

use super::piece::Piece;
use super::source::{SegmentSource, same};
use crate::error::segment_error;

/// Blocks are passed on like this if less than one in so many of their cells has a value: then room for the others costs
/// more than finding where the values of a series are.
const SPARSITY_MIN: usize = 4;

/// A field is rare in a block if less than one in so many rows has it, and no more than so many do: then its page is soon
/// decoded as a whole, and there is no other form of it that is better.
const RARITY_MIN: usize = 8;
const RARE_VALUES_MAX: usize = 4096;
/// Of fewer rows the room that is made does not matter.
const RARE_ROWS_MIN: usize = 256;

/// All rows of a block.
#[derive(Debug)]
pub(crate) struct SparseRows {
    block: Block,
    pub(crate) times: Vec<i64>,
    /// The requested fields.
    pub(crate) columns: Vec<SparseColumn>,
}

/// Some of them, of one series.
#[derive(Debug)]
pub(crate) struct SparsePart<'a> {
    pub(crate) all: &'a SparseRows,
    pub(crate) rows: Range<usize>,
}

impl SegmentSource {
    /// Those of most rows of a block, `rows`, that have a value, where one field is asked for and few have: no room is made for
    /// the others, which nobody wants.
    pub(super) fn read_rare(
        &mut self,
        block: &Block,
        rows: &Range<usize>,
    ) -> Result<Option<Piece>, StoreError> {
        let [(Some(field), field_type)] = *self.fields.as_slice() else { return Ok(None) };
        let values = block.values_of(field);
        let is_rare = values <= RARE_VALUES_MAX && values * RARITY_MIN <= block.rows();
        // A smaller part is read from pieces of the page, or decoded alone.
        let are_most = rows.len() > block.rows() / 2;
        let is_worth_it = is_rare && are_most && rows.len() >= RARE_ROWS_MIN;
        if !is_worth_it || self.keeps(block) || self.only_counts {
            return Ok(None);
        }
        let wanted = [(Some(field), field_type)];
        let mut columns = self.reader.sparse_columns(block, &wanted).map_err(segment_error)?;
        self.count_read(block, [field]);
        let whole = columns.remove(0);
        let mut column = SparseColumn::empty(field_type);
        column.extend_from(&whole, rows.clone());
        let mut times = Vec::with_capacity(rows.len());
        self.reader.times(block, rows.clone(), &mut times).map_err(segment_error)?;
        if let Some(present) = &column.present {
            times = present.ones().map(|row| times[row]).collect();
        }
        Ok(Some(Piece { times, columns: vec![Column::new(column.values)] }))
    }

    /// The rows `rows` of a block, if the source is one of a merge and they have few of the fields. Each has one: the fields
    /// that are asked for are all there are.
    pub(super) fn read_sparse(
        &mut self,
        block: &Block,
        rows: &Range<usize>,
    ) -> Result<Option<SparsePart<'_>>, StoreError> {
        let known = self.fields.iter().filter(|(field, _)| field.is_some()).count();
        let cells = block.rows() * known;
        let is_whole = known == self.directory.fields().len();
        if !self.merges || !is_whole || block.values().saturating_mul(SPARSITY_MIN) > cells {
            return Ok(None);
        }
        if !self.sparse.as_ref().is_some_and(|held| same(&held.block, block)) {
            let mut times = Vec::with_capacity(block.rows());
            self.reader.times(block, 0..block.rows(), &mut times).map_err(segment_error)?;
            let columns = self.reader.sparse_columns(block, &self.fields).map_err(segment_error)?;
            self.sparse = Some(SparseRows { block: block.clone(), times, columns });
        }
        Ok(self.sparse.as_ref().map(|all| SparsePart { all, rows: rows.clone() }))
    }
}
