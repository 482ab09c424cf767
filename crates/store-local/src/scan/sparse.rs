//! Blocks of rows that have few of their fields, for merges: passed on without gaps, as their pages have them.
//!
//! With room made for what is missing, rows of a thousand fields that have one each were a thousand times as large on
//! their way from file to file.

use std::ops::Range;

use segment::{Block, SparseColumn};
use store::StoreError;

use super::source::{SegmentSource, same};
use crate::error::segment_error;

/// Blocks are passed on like this if less than one in so many of their cells has a value: then room for the others costs
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
