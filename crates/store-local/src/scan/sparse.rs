//! Blocks of rows that have few of their fields: decoded once, as their pages have them, without gaps.
//!
//! Merges pass them on like that: with room made for what is missing, rows of a thousand fields that have one each were a
//! thousand times as large on their way from file to file. Queries that read so many columns that a block is
//! copied part by part make that room for a part at a time.

use std::ops::Range;

use segment::{Block, SparseColumn};
use store::StoreError;

use super::piece::Piece;
use super::source::{SegmentSource, same};
use crate::error::segment_error;

/// Blocks are read like this if less than one in so many of their cells has a value: then room for the others costs
/// more than finding where the values of a series are.
const SPARSITY_MIN: usize = 4;

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
    /// The rows `rows` of a block, if the source is one of a merge and they have few of the fields. Each has one: the fields
    /// that are asked for are all there are.
    pub(super) fn read_sparse(
        &mut self,
        block: &Block,
        rows: &Range<usize>,
    ) -> Result<Option<SparsePart<'_>>, StoreError> {
        if !self.merges || self.known_fields() < self.directory.fields().len() {
            return Ok(None);
        }
        let held = self.hold_sparse(block)?;
        Ok(held.map(|all| SparsePart { all, rows: rows.clone() }))
    }

    /// The rows `rows` of a block of which others are read before or after, if they have few of the fields.
    pub(super) fn read_part(
        &mut self,
        block: &Block,
        rows: &Range<usize>,
    ) -> Result<Option<Piece>, StoreError> {
        let held = self.hold_sparse(block)?;
        Ok(held.map(|all| Piece {
            times: all.times[rows.clone()].to_vec(),
            columns: all.columns.iter().map(|column| column.with_room(rows.clone())).collect(),
        }))
    }

    fn known_fields(&self) -> usize {
        self.fields.iter().filter(|(field, _)| field.is_some()).count()
    }

    /// All rows of a block, if they have few of the fields.
    fn hold_sparse(&mut self, block: &Block) -> Result<Option<&SparseRows>, StoreError> {
        let cells = block.rows() * self.known_fields();
        if block.values().saturating_mul(SPARSITY_MIN) > cells {
            return Ok(None);
        }
        if !self.sparse.as_ref().is_some_and(|held| same(&held.block, block)) {
            let mut times = Vec::with_capacity(block.rows());
            self.reader.times(block, 0..block.rows(), &mut times).map_err(segment_error)?;
            let columns = self.reader.sparse_columns(block, &self.fields).map_err(segment_error)?;
            self.sparse = Some(SparseRows { block: block.clone(), times, columns });
        }
        Ok(self.sparse.as_ref())
    }
}
