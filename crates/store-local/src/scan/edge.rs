//! The rows at the ends of blocks, which the directory of a segment keeps: the latest row of a series
//! is found without reading a page.

use std::ops::Range;

use segment::{Block, Edge};

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
