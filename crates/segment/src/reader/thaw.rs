//! Entropy-coded pages of which a few rows are read again and again.
//!
//! Compaction writes the smallest pages; of those, reading one row costs as much as reading
//! thousands, the first time. Whoever does leaves marks, and others go on from the nearest of them: a few
//! hundred rows too many. Once some rows of such a page were wanted often enough to pay for it, it
//! is bit-packed anew, in short pieces, and that form stays in the cache: some times the size, but any
//! rows can be read for what they cost alone. Pages that are read once, or as a whole, are left as they are.
//!
//! What a query about many fields of a block waits for then is memory, not decoding. So the thawed
//! pages of neighbouring fields are one entry of the cache, and each is one allocation.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use codec::{Effort, Marks};
use model::{Column, FieldType};

use super::SegmentReader;
use super::column::{self, PageShape};
use super::pieces::Pieces;
use super::source::Kind;
use crate::directory::Block;
use crate::format::Extent;
use crate::input::{Input, Malformed};
use crate::writer::block::encode_page;

/// Rows that are encoded together: what stands before the wanted ones has to be added up.
pub(super) const PIECE_ROWS: usize = 512;
/// What the table says of a piece: its values and where its bytes end, four bytes each.
const PIECE_ENTRY_LEN: usize = 8;
/// What a processor fetches from memory together, of those this runs on.
const CACHE_LINE_LEN: usize = 64;
/// Pages of a block that share an entry of the cache: as many as a query is likely to ask for, and few
/// enough to be worth keeping if it does not.
pub(super) const GROUP_PAGES: usize = 16;
/// Looks at a page before the one that thaws it. Thawing takes 20 to 30 us, a look from a mark on 1 to 4 us
/// more than one at a thawed page: after so many looks as much was lost as thawing costs, and whoever
/// waits that long never pays more than twice what would have been right in hindsight.
pub(super) const LOOKS_BEFORE: u32 = 8;

/// A page in pieces that are each fast to read in parts.
#[derive(Debug)]
pub(super) struct Thawed {
    rows: usize,
    /// A table of the pieces, then the pieces, each laid out as any page.
    bytes: Box<[u8]>,
}

impl Thawed {
    pub(super) fn new(whole: &Column) -> Self {
        let rows = whole.len();
        let mut bytes = vec![0; rows.div_ceil(PIECE_ROWS) * PIECE_ENTRY_LEN];
        for (piece, start) in (0..rows).step_by(PIECE_ROWS).enumerate() {
            // So few rows are packed well without a search for what stands out of them.
            let rows = start..rows.min(start + PIECE_ROWS);
            let count = encode_page(whole, rows, Effort::Fast, &mut bytes);
            let end = u32::try_from(bytes.len()).expect("BUG: a page of 4 GiB");
            let (count, entry) = ((count as u32).to_le_bytes(), piece * PIECE_ENTRY_LEN);
            bytes[entry..entry + 4].copy_from_slice(&count);
            bytes[entry + 4..entry + 8].copy_from_slice(&end.to_le_bytes());
        }
        Self { rows, bytes: bytes.into() }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Values of a piece and where its bytes end.
    fn entry(&self, piece: usize) -> (usize, usize) {
        let at = piece * PIECE_ENTRY_LEN;
        let number = |at: usize| {
            let bytes = self.bytes[at..at + 4].try_into().expect("BUG: four bytes");
            u32::from_le_bytes(bytes) as usize
        };
        (number(at), number(at + 4))
    }

    /// Where the bytes of a piece are.
    fn range(&self, piece: usize) -> Range<usize> {
        let table = self.rows.div_ceil(PIECE_ROWS) * PIECE_ENTRY_LEN;
        piece.checked_sub(1).map_or(table, |before| self.entry(before).1)..self.entry(piece).1
    }

    /// Looks at what the table says of the piece that `rows` start in, so that it is on its way from memory
    /// while those of other pages are looked for: what is done with it could not begin before. What it gives stands
    /// for nothing but keeps that from being left out.
    pub(super) fn touch_table(&self, rows: &Range<usize>) -> u8 {
        let at = rows.start.min(self.rows.saturating_sub(1)) / PIECE_ROWS * PIECE_ENTRY_LEN;
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// Looks at the piece that `rows` start in, as far as they need it, so that it is on its way from memory
    /// while others are looked for. What it gives stands for nothing but keeps that from being left out.
    pub(super) fn touch(&self, rows: &Range<usize>) -> u8 {
        if rows.start >= self.rows {
            return 0;
        }
        let piece = rows.start / PIECE_ROWS;
        let bytes = &self.bytes[self.range(piece)];
        // What stands before the rows is added up; about so many bytes have as many of them.
        let within = (rows.end - piece * PIECE_ROWS).min(PIECE_ROWS);
        let needed = (bytes.len() * within / PIECE_ROWS + CACHE_LINE_LEN).min(bytes.len());
        let Some(last) = needed.checked_sub(1) else { return 0 };
        // A branch on how many lines there are would be guessed, often wrongly, and wait for the table.
        let lines = [0, 1, 2, 3].map(|line| bytes[last.min(line * CACHE_LINE_LEN)]);
        let more = bytes[..needed].iter().skip(4 * CACHE_LINE_LEN).step_by(CACHE_LINE_LEN);
        more.chain(&lines).fold(0, |all, byte| all ^ byte)
    }

    /// The bits of one entry; `None`: it has no value. The page is one of numbers.
    pub(super) fn bits(&self, row: usize, field_type: FieldType) -> Result<Option<u64>, Malformed> {
        let piece = row / PIECE_ROWS;
        let first = piece * PIECE_ROWS;
        let shape =
            PageShape { rows: PIECE_ROWS.min(self.rows - first), count: self.entry(piece).0 };
        match &self.bytes[self.range(piece)] {
            [] => Ok(None),
            bytes => column::bits_at(bytes, shape, row - first, field_type),
        }
    }

    /// Adds the entries `rows` to `out`.
    pub(super) fn decode(&self, rows: Range<usize>, out: &mut Column) -> Result<(), Malformed> {
        // Room is made once, not piece by piece.
        out.values.reserve(rows.len());
        let mut from = rows.start;
        while from < rows.end {
            let piece = from / PIECE_ROWS;
            let first = piece * PIECE_ROWS;
            let rows_here = PIECE_ROWS.min(self.rows - first);
            let shape = PageShape { rows: rows_here, count: self.entry(piece).0 };
            let bytes = &self.bytes[self.range(piece)];
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
}

/// Neighbouring pages of a block, as far as they were thawed.
#[derive(Debug, Default)]
pub(super) struct ThawedPages {
    pages: [ThawedPage; GROUP_PAGES],
}

#[derive(Debug, Default)]
struct ThawedPage {
    /// How often some rows of the page were wanted that were not there thawed.
    looks: AtomicU32,
    /// There from the first of these looks on.
    marks: OnceLock<Marks>,
    thawed: OnceLock<Thawed>,
    /// What is there of a page that is not entropy-coded.
    pieces: OnceLock<Pieces>,
}

impl ThawedPages {
    /// The marks of the page at a place of the block, if it is known to be entropy-coded.
    pub(super) fn marks(&self, place: usize) -> Option<&Marks> {
        self.pages[place % GROUP_PAGES].marks.get()
    }

    /// The thawed form of the page at a place of the block, if there is one.
    pub(super) fn page(&self, place: usize) -> Option<&Thawed> {
        self.pages[place % GROUP_PAGES].thawed.get()
    }

    /// The pieces of the page at a place of the block, if all of them are there that some rows lie in.
    pub(super) fn pieces(&self, place: usize, parts: &[Range<usize>]) -> Option<&Pieces> {
        let pieces = self.pages[place % GROUP_PAGES].pieces.get()?;
        parts.iter().all(|rows| pieces.have(rows)).then_some(pieces)
    }
}

/// Whether reading so many rows of a page counts as a look, or makes pieces of it.
pub(super) fn may_thaw(reader: &SegmentReader, shape: PageShape, rows: usize) -> bool {
    reader.keep_pages && rows * 2 <= shape.rows
}

/// The groups of a block that were looked for.
pub(super) struct Groups<'a> {
    pub(super) reader: &'a SegmentReader,
    pub(super) block: &'a Block,
    found: Vec<(usize, Option<Arc<ThawedPages>>)>,
}

impl<'a> Groups<'a> {
    pub(super) fn new(reader: &'a SegmentReader, block: &'a Block) -> Self {
        Self { reader, block, found: Vec::new() }
    }

    /// The group of the page at a place of the block, if any of it was touched.
    pub(super) fn of(&mut self, place: usize) -> Option<&Arc<ThawedPages>> {
        self.slot(place / GROUP_PAGES).as_ref()
    }

    fn slot(&mut self, group: usize) -> &mut Option<Arc<ThawedPages>> {
        let at = self.found.iter().position(|(known, _)| *known == group).unwrap_or_else(|| {
            let source = &self.reader.shared.source;
            let found = source.cached(Kind::Thawed, extent_of(self.block, group));
            self.found.push((group, found));
            self.found.len() - 1
        });
        &mut self.found[at].1
    }

    /// Says that some rows of the entropy-coded page at a place are wanted and are not there thawed. What is
    /// known of its group, and whether the page shall be thawed now.
    pub(super) fn touch(&mut self, place: usize) -> (Arc<ThawedPages>, bool) {
        let group = self.open(place);
        let page = &group.pages[place % GROUP_PAGES];
        let looks = page.looks.fetch_add(1, Ordering::Relaxed);
        let mut bytes_added = 0;
        page.marks.get_or_init(|| {
            let marks = Marks::new(self.block.pages()[place].count as usize);
            bytes_added = marks.memory_bytes();
            marks
        });
        if bytes_added > 0 {
            self.grew(place, &group, bytes_added);
        }
        (group, looks >= LOOKS_BEFORE)
    }

    /// Says that some rows of the page at a place are wanted, which is not entropy-coded, and are not there in
    /// pieces. From the second time on its pieces are kept: what is read then, by `read`, whose result are the
    /// bytes of memory that it takes.
    pub(super) fn read_pieces<E>(
        &mut self,
        place: usize,
        read: impl FnOnce(&Pieces) -> Result<usize, E>,
    ) -> Option<Result<(), E>> {
        let group = self.open(place);
        let page = &group.pages[place % GROUP_PAGES];
        if page.looks.fetch_add(1, Ordering::Relaxed) == 0 {
            return None;
        }
        let mut bytes_added = 0;
        let pieces = page.pieces.get_or_init(|| {
            let pieces = Pieces::new(self.block.rows());
            bytes_added = pieces.memory_bytes();
            pieces
        });
        let done = read(pieces).map(|bytes| bytes_added += bytes);
        if bytes_added > 0 {
            self.grew(place, &group, bytes_added);
        }
        Some(done)
    }

    /// The group of the page at a place, made if none of it was touched.
    pub(super) fn open(&mut self, place: usize) -> Arc<ThawedPages> {
        let source = &self.reader.shared.source;
        let of_group = extent_of(self.block, place / GROUP_PAGES);
        let slot = self.slot(place / GROUP_PAGES);
        Arc::clone(slot.get_or_insert_with(|| source.entry(Kind::Thawed, of_group)))
    }

    /// Keeps the page at a place, whose group was opened and which has these values, in its thawed form. Gives
    /// the bytes of memory it takes.
    pub(super) fn keep(&mut self, place: usize, whole: &Column) -> usize {
        let thawed = Thawed::new(whole);
        let bytes_added = thawed.memory_bytes();
        let group = Arc::clone(self.of(place).expect("BUG: a page of a group nobody has opened"));
        if group.pages[place % GROUP_PAGES].thawed.set(thawed).is_ok() {
            self.grew(place, &group, bytes_added);
        }
        bytes_added
    }

    fn grew(&self, place: usize, group: &Arc<ThawedPages>, bytes_added: usize) {
        let of_group = extent_of(self.block, place / GROUP_PAGES);
        self.reader.shared.source.grew(Kind::Thawed, of_group, group, bytes_added);
    }
}

/// What a group goes by: the first of its pages.
fn extent_of(block: &Block, group: usize) -> &Extent {
    &block.pages()[group * GROUP_PAGES].extent
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
    use model::{Bitmap, FieldType, Values};
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
            let thawed = Thawed::new(&whole);
            std::hint::black_box(thawed.touch(&range));
            thawed.decode(range.clone(), &mut found).unwrap();
            for row in range.clone() {
                let Values::Integer(values) = &whole.values else { panic!("integers") };
                let expected = whole.is_valid(row).then(|| values[row].cast_unsigned());
                prop_assert_eq!(thawed.bits(row, FieldType::Integer).unwrap(), expected);
            }
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
