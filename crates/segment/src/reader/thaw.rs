//! Entropy-coded pages of which a few rows are read again and again.
//!
//! Compaction writes the smallest pages; of those, reading one row costs as much as reading
//! thousands. The second time that some rows of such a page are wanted, it is bit-packed anew, in short
//! pieces, and that form stays in the cache: some times the size, but any rows can be read for what
//! they cost alone. Pages that are read once, or as a whole, are left as they are.

use std::ops::Range;
use std::sync::Arc;

use codec::Effort;
use model::{Column, FieldType, Values};

use super::SegmentReader;
use super::column::{self, PageShape};
use super::source::Kind;
use crate::SegmentError;
use crate::format::Extent;
use crate::input::{Input, Malformed};
use crate::writer::block::encode_page;

/// Rows that are encoded together: what stands before the wanted ones has to be added up.
const PIECE_ROWS: usize = 512;

/// A page in pieces that are each fast to read in parts.
#[derive(Debug)]
pub(super) struct Thawed {
    rows: usize,
    /// Of each piece, its values and where its bytes end.
    pieces: Vec<(u32, u32)>,
    /// The pieces, each laid out as any page.
    bytes: Vec<u8>,
}

impl Thawed {
    fn new(whole: &Column) -> Self {
        let rows = whole.len();
        let (mut pieces, mut bytes) = (Vec::with_capacity(rows.div_ceil(PIECE_ROWS)), Vec::new());
        for start in (0..rows).step_by(PIECE_ROWS) {
            // So few rows are packed well without a search for what stands out of them.
            let piece = start..rows.min(start + PIECE_ROWS);
            let count = encode_page(whole, piece, Effort::Fast, &mut bytes);
            pieces.push((count as u32, bytes.len() as u32));
        }
        bytes.shrink_to_fit();
        Self { rows, pieces, bytes }
    }

    /// Adds the entries `rows` to `out`.
    pub(super) fn decode(&self, rows: Range<usize>, out: &mut Column) -> Result<(), Malformed> {
        let mut from = rows.start;
        while from < rows.end {
            let piece = from / PIECE_ROWS;
            let first = piece * PIECE_ROWS;
            let shape = PageShape {
                rows: PIECE_ROWS.min(self.rows - first),
                count: self.pieces[piece].0 as usize,
            };
            let start = piece.checked_sub(1).map_or(0, |before| self.pieces[before].1 as usize);
            let bytes = &self.bytes[start..self.pieces[piece].1 as usize];
            let to = rows.end.min(first + shape.rows);
            if bytes.is_empty() {
                out.extend_missing(to - from);
            } else {
                column::decode(bytes, shape, from - first..to - first, out)?;
            }
            from = to;
        }
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.pieces.capacity() * size_of::<(u32, u32)>() + size_of::<Self>()
    }
}

/// Says that some rows of a page were wanted before.
#[derive(Debug)]
struct Touched;

/// Whether so many rows of a page may be read from its thawed form, if it has one.
pub(super) fn may_thaw(
    reader: &SegmentReader,
    shape: PageShape,
    rows: usize,
    field_type: FieldType,
) -> bool {
    reader.keep_pages && rows * 2 <= shape.rows && field_type.is_numeric()
}

/// The thawed form of a page, if there is one.
pub(super) fn found(reader: &SegmentReader, extent: &Extent) -> Option<Arc<Thawed>> {
    reader.shared.source.cached(Kind::Thawed, extent)
}

/// Thaws an entropy-coded page if it is worth it: `None` the first time.
pub(super) fn thaw(
    reader: &SegmentReader,
    extent: &Extent,
    shape: PageShape,
    field_type: FieldType,
) -> Result<Option<Arc<Thawed>>, SegmentError> {
    let source = &reader.shared.source;
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
        Ok(Thawed::new(&whole))
    };
    source.object(Kind::Thawed, extent, true, Thawed::memory_bytes, thaw).map(Some)
}

/// Whether the values of a page, which may come behind its validity, are entropy-coded.
pub(super) fn is_entropy_coded(page: &[u8], shape: PageShape) -> bool {
    let mut input = Input::new(page);
    if shape.count < shape.rows && input.bytes().is_err() {
        return false;
    }
    codec::is_entropy_coded(input.rest())
}

#[cfg(test)]
mod tests {
    use model::Bitmap;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_rows_come_back(
            // Values, or stretches without any, which may be longer than a piece.
            stretches in prop::collection::vec((any::<bool>(), 1usize..900), 1..8),
            ends in any::<(prop::sample::Index, prop::sample::Index)>(),
        ) {
            let validity: Bitmap =
                stretches.iter().flat_map(|(is_there, len)| vec![*is_there; *len]).collect();
            let rows = validity.len();
            let values = (0..rows).map(|row| if validity.get(row) { (row * row % 97) as i64 } else { 0 });
            let values = Values::Integer(values.collect());
            let has_all = validity.count_ones() == rows;
            let whole = Column { values, validity: (!has_all).then_some(validity) };
            let (a, b) = (ends.0.index(rows + 1), ends.1.index(rows + 1));
            let range = a.min(b)..a.max(b);
            let mut found = Column::new(Values::empty(FieldType::Integer));
            Thawed::new(&whole).decode(range.clone(), &mut found).unwrap();
            prop_assert_eq!(found.len(), range.len());
            for (at, row) in range.enumerate() {
                prop_assert_eq!(found.is_valid(at), whole.is_valid(row));
                let (Values::Integer(found), Values::Integer(whole)) = (&found.values, &whole.values) else {
                    panic!("integers")
                };
                prop_assert_eq!(found[at], whole[row]);
            }
        }
    }
}
