//! Reading fields of a block: from the thawed form of a page, from its bytes, or nothing.

use std::ops::Range;

use model::{Column, Values};

use super::SegmentReader;
use super::column::{self, PageShape};
use super::thaw::{Groups, is_entropy_coded, may_thaw};
use crate::SegmentError;
use crate::directory::{Block, PageEntry};
use crate::input::Malformed;
use crate::rows::fits;

/// See [`SegmentReader::column`].
pub(super) fn column(
    reader: &SegmentReader,
    block: &Block,
    field: usize,
    rows: Range<usize>,
    out: &mut Column,
) -> Result<(), SegmentError> {
    check(block, std::slice::from_ref(&rows));
    let mut groups = Groups::new(reader, block);
    let (parts, out) = (std::slice::from_ref(&rows), std::slice::from_mut(out));
    read(&mut groups, field, parts, out)
}

/// See [`SegmentReader::columns`].
pub(super) fn columns(
    reader: &SegmentReader,
    block: &Block,
    parts: &[Range<usize>],
    fields: &mut [(Option<usize>, Vec<Column>)],
) -> Result<(), SegmentError> {
    check(block, parts);
    let mut groups = Groups::new(reader, block);
    // Each field's pages are behind several pointers that are not in the processor's cache. Followed for
    // all fields before any is decoded, they are waited for together.
    let (wanted, mut touched) = (wanted(parts), 0);
    for (field, _) in fields.iter() {
        let Some((place, page)) = field.and_then(|field| block.page_place(field)) else { continue };
        let field_type = block.field_type(page.field as usize);
        if may_thaw(reader, shape(block, page), wanted, field_type)
            && let Some(thawed) = groups.of(place).and_then(|group| group.page(place))
        {
            parts.iter().for_each(|rows| touched ^= thawed.touch(rows));
        }
    }
    std::hint::black_box(touched);
    for (field, out) in fields {
        match field {
            Some(field) => read(&mut groups, *field, parts, out)?,
            None => parts.iter().zip(out).for_each(|(rows, out)| out.extend_missing(rows.len())),
        }
    }
    Ok(())
}

fn check(block: &Block, parts: &[Range<usize>]) {
    let inside = |rows: &Range<usize>| rows.start <= rows.end && rows.end <= block.rows();
    assert!(parts.iter().all(inside), "BUG: rows outside of a block");
    assert!(parts.is_sorted_by(|a, b| a.end <= b.start), "BUG: parts that do not ascend");
}

fn wanted(parts: &[Range<usize>]) -> usize {
    parts.iter().map(Range::len).sum()
}

fn shape(block: &Block, page: &PageEntry) -> PageShape {
    PageShape { rows: block.rows(), count: page.count as usize }
}

/// Reads parts of one field.
fn read(
    groups: &mut Groups<'_>,
    field: usize,
    parts: &[Range<usize>],
    out: &mut [Column],
) -> Result<(), SegmentError> {
    let (reader, block) = (groups.reader, groups.block);
    let field_type = block.field_type(field);
    assert!(out.iter().all(|c| fits(&c.values, field_type)), "BUG: a column of another type");
    let Some((place, page)) = block.page_place(field) else {
        parts.iter().zip(out).for_each(|(rows, out)| out.extend_missing(rows.len()));
        return Ok(());
    };
    let (source, shape) = (&reader.shared.source, shape(block, page));
    let decoded = decode(groups, (place, page), shape, parts, out)?;
    decoded.map_err(|e| source.malformed(page.extent.offset, &e))
}

fn decode(
    groups: &mut Groups<'_>,
    (place, page): (usize, &PageEntry),
    shape: PageShape,
    parts: &[Range<usize>],
    out: &mut [Column],
) -> Result<Result<(), Malformed>, SegmentError> {
    let (reader, field_type) = (groups.reader, groups.block.field_type(page.field as usize));
    let mut each = parts.iter().cloned().zip(out);
    let may_thaw = may_thaw(reader, shape, wanted(parts), field_type);
    if may_thaw && let Some(thawed) = groups.of(place).and_then(|group| group.page(place)) {
        return Ok(each.try_for_each(|(rows, out)| thawed.decode(rows, out)));
    }
    let bytes = reader.shared.source.page(&page.extent, reader.keep_pages)?;
    let is_tight = field_type.is_numeric() && is_entropy_coded(&bytes, shape);
    if may_thaw && is_tight {
        match groups.thaw((place, page), &bytes, shape) {
            Err(malformed) => return Ok(Err(malformed)),
            Ok(None) => {}
            Ok(Some(group)) => {
                let thawed = group.page(place).expect("BUG: thawed just now");
                return Ok(each.try_for_each(|(rows, out)| thawed.decode(rows, out)));
            }
        }
    }
    if let ([first, .., last], true) = (parts, is_tight) {
        let all = first.start..last.end;
        let mut whole = Column::new(Values::empty(field_type));
        let decoded = column::decode(&bytes, shape, all.clone(), &mut whole);
        return Ok(decoded.map(|()| {
            each.for_each(|(rows, out)| {
                out.extend_from(&whole, rows.start - all.start..rows.end - all.start);
            });
        }));
    }
    Ok(each.try_for_each(|(rows, out)| column::decode(&bytes, shape, rows, out)))
}
