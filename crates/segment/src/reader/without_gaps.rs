//! All rows of a block, in columns without gaps: as pages have them, nothing is made room for.
//!
//! For merging blocks of thousands of fields of which rows have a handful, and for pages of a few values. What was thawed
//! is not looked at: merges read pages once, and such pages are soon decoded.

use std::sync::Arc;

use model::{Bitmap, Column, FieldType, Values};
use platform::Page;

use super::SegmentReader;
use super::column::{self, NumbersPart, PageShape, decode_present};
use super::fields::{READ_TOGETHER_BYTES, shape};
use crate::SegmentError;
use crate::directory::{Block, PageEntry};
use crate::input::{Input, Malformed};
use crate::sparse::SparseColumn;

/// A page, and which of the wanted columns it is.
type Wanted<'a> = (usize, &'a PageEntry);

/// See [`SegmentReader::sparse_columns`].
pub(super) fn columns(
    reader: &SegmentReader,
    block: &Block,
    fields: &[(Option<usize>, FieldType)],
) -> Result<Vec<SparseColumn>, SegmentError> {
    let mut out = Vec::with_capacity(fields.len());
    let mut wanted: Vec<Wanted<'_>> = Vec::new();
    for (at, (field, field_type)) in fields.iter().enumerate() {
        let mut column = SparseColumn::empty(*field_type);
        match field.and_then(|field| block.page(field)) {
            Some(page) => {
                let stored = block.field_type(page.field as usize);
                assert_eq!(stored, *field_type, "BUG: a field of another type");
                wanted.push((at, page));
            }
            None => column.present = Some(Bitmap::filled(block.rows(), false)),
        }
        out.push(column);
    }
    let mut rest = wanted.as_slice();
    while !rest.is_empty() {
        let mut bytes = 0;
        let is_one_more = |(_, page): &&Wanted<'_>| {
            let fits = bytes < READ_TOGETHER_BYTES;
            bytes += page.extent.len as usize;
            fits
        };
        let (now, later) = rest.split_at(rest.iter().take_while(is_one_more).count());
        read(reader, block, now, &mut out)?;
        rest = later;
    }
    Ok(out)
}

/// Reads pages that are together in memory.
fn read(
    reader: &SegmentReader,
    block: &Block,
    wanted: &[Wanted<'_>],
    out: &mut [SparseColumn],
) -> Result<(), SegmentError> {
    let source = &reader.shared.source;
    let extents: Vec<_> = wanted.iter().map(|(_, page)| page.extent).collect();
    let pages: Vec<Arc<Page>> = source.pages(&extents, reader.keep_pages)?;
    let mut columns = Vec::with_capacity(wanted.len());
    let mut values = Vec::with_capacity(wanted.len());
    for ((at, page), bytes) in wanted.iter().zip(&pages) {
        let malformed = |e: Malformed| source.malformed(page.extent.offset, &e);
        let (mut input, shape) = (Input::new(bytes), shape(block, page));
        if shape.count < shape.rows {
            out[*at].present = Some(decode_present(&mut input, shape).map_err(malformed)?);
        }
        // As if it was a page of nothing but rows with values.
        let (bytes, shape) = (input.rest(), PageShape { rows: shape.count, count: shape.count });
        let field_type = block.field_type(page.field as usize);
        let mut column = Column::new(Values::empty(field_type));
        if !field_type.is_numeric() {
            column::decode(bytes, shape, 0..shape.rows, &mut column).map_err(malformed)?;
        }
        values.push((bytes, shape, field_type));
        columns.push(column);
    }
    let (mut numbers, mut page_of) = (Vec::new(), Vec::new());
    for (at, ((page, shape, field_type), out)) in values.into_iter().zip(&mut columns).enumerate() {
        if field_type.is_numeric() {
            numbers.push(NumbersPart { page, shape, rows: 0..shape.rows, out, marks: None });
            page_of.push(at);
        }
    }
    column::decode_together(&mut numbers)
        .map_err(|(at, e)| source.malformed(wanted[page_of[at]].1.extent.offset, &e))?;
    for ((at, _), column) in wanted.iter().zip(columns) {
        out[*at].values = column.values;
    }
    Ok(())
}
