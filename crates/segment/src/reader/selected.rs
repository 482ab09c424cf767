//! Texts of those rows of a block that a filter found: others are not put together.

use std::ops::Range;

use model::{Bitmap, Column, FieldType, Values};

use super::SegmentReader;
use super::column;
use super::fields::shape;
use super::pieces::is_in_pieces;
use super::thaw::{Groups, are_few};
use crate::SegmentError;
use crate::directory::Block;
use crate::input::Malformed;

/// Texts of so small a part of a page are read faster from short pieces, each from its own, than out of all of it.
const APART_PART: usize = 128;

impl SegmentReader {
    /// Adds the texts that a field has in those of some rows of a block whose bit is set, the first bit being that of the first
    /// row, of which at least one is. `false`, with nothing added: they are better read in parts ([`SegmentReader::columns`]), since these are few and
    /// stay in memory.
    ///
    /// # Errors
    /// If the disk fails or the page is damaged.
    ///
    /// # Panics
    /// As [`SegmentReader::column`], or if the field is none of texts.
    pub fn selected_texts(
        &self,
        block: &Block,
        field: usize,
        (rows, selected): (Range<usize>, &Bitmap),
        out: &mut Column,
    ) -> Result<bool, SegmentError> {
        assert!(rows.end <= block.rows() && selected.len() == rows.len(), "BUG: not a bit a row");
        let Some((place, page)) = block.page_place(field) else {
            out.extend_missing(selected.count_ones());
            return Ok(true);
        };
        let shape = shape(block, page);
        let source = &self.shared.source;
        let malformed = |e: Malformed| source.malformed(page.extent.offset, &e);
        let mut groups = Groups::new(self, block);
        let are_apart = self.keep_pages
            && is_in_pieces(shape, FieldType::String)
            && selected.count_ones() * APART_PART <= shape.rows;
        if are_apart
            && let Some(group) = groups.of(place)
            && let Some(pieces) = group.pieces(place, std::slice::from_ref(&rows))
        {
            let done = pieces.decode_selected(shape.rows, &rows, selected, out);
            return done.map_err(malformed).map(|()| true);
        }
        let ends =
            || Some((selected.first_one_in(0..rows.len())?, selected.last_one_in(0..rows.len())?));
        let wanted = ends().map_or(0, |(first, last)| last + 1 - first);
        if self.keep_pages && are_few(shape, wanted) && is_in_pieces(shape, FieldType::String) {
            return Ok(false);
        }
        let bytes = source.page(&page.extent, self.keep_pages)?;
        if are_apart && column::are_slow_apart(&bytes, shape) {
            let read = || {
                let mut whole = Column::new(Values::empty(FieldType::String));
                column::decode(&bytes, shape, 0..shape.rows, &mut whole).map(|()| whole)
            };
            if let Some(whole) = groups.read_all_pieces(place, read).map_err(malformed)? {
                let texts = selected.ones().map(|at| rows.start + at);
                texts.for_each(|row| out.extend_from(&whole, row..row + 1));
                return Ok(true);
            }
        }
        column::decode_selected(&bytes, shape, rows, selected, out).map_err(malformed)?;
        Ok(true)
    }
}
