//! Entropy-coded pages of which a few rows are read again and again.
//!
//! Compaction writes the smallest pages; of those, reading one row costs as much as reading
//! thousands. The second time that some rows of such a page are wanted, it is encoded anew as a flush
//! would have done it, and that form stays in the cache: three times the size, but any rows can be
//! read for what they cost alone. Pages that are read once, or as a whole, are left as they are.

use std::ops::Range;
use std::sync::Arc;

use codec::Effort;
use model::{Column, FieldType, Values};

use super::SegmentReader;
use super::column::{self, PageShape};
use super::source::Kind;
use crate::SegmentError;
use crate::format::Extent;
use crate::input::Input;
use crate::writer::block::encode_page;

/// A page in an encoding that is fast to read in parts; its layout is that of any page.
#[derive(Debug)]
pub(super) struct Thawed(pub(super) Vec<u8>);

impl Thawed {
    fn memory_bytes(&self) -> usize {
        self.0.capacity() + size_of::<Self>()
    }
}

/// Says that some rows of a page were wanted before.
#[derive(Debug)]
struct Touched;

/// The thawed form of a page, if `rows` are worth it.
pub(super) fn thawed(
    reader: &SegmentReader,
    extent: &Extent,
    page: &[u8],
    shape: PageShape,
    rows: &Range<usize>,
    field_type: FieldType,
) -> Result<Option<Arc<Thawed>>, SegmentError> {
    if !reader.keep_pages
        || rows.len() * 2 > shape.rows
        || !is_entropy_coded(page, shape, field_type)
    {
        return Ok(None);
    }
    let source = &reader.shared.source;
    if let Some(found) = source.cached(Kind::Thawed, extent) {
        return Ok(Some(found));
    }
    let mut first_time = false;
    source.object(
        Kind::Touched,
        extent,
        true,
        |_| size_of::<Touched>(),
        |_| {
            first_time = true;
            Ok(Touched)
        },
    )?;
    if first_time {
        return Ok(None);
    }
    let thaw = |page: &[u8]| {
        let mut whole = Column::new(Values::empty(field_type));
        column::decode(page, shape, 0..shape.rows, &mut whole)?;
        let mut bytes = Vec::new();
        encode_page(&whole, Effort::Hot, &mut bytes);
        bytes.shrink_to_fit();
        Ok(Thawed(bytes))
    };
    source.object(Kind::Thawed, extent, true, Thawed::memory_bytes, thaw).map(Some)
}

/// Whether the values of a page, which may come behind its validity, are entropy-coded.
fn is_entropy_coded(page: &[u8], shape: PageShape, field_type: FieldType) -> bool {
    if !field_type.is_numeric() {
        return false;
    }
    let mut input = Input::new(page);
    if shape.count < shape.rows && input.bytes().is_err() {
        return false;
    }
    codec::is_entropy_coded(input.rest())
}
