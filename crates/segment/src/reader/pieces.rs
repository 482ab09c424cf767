//! Pieces of pages that are not entropy-coded numbers, and yet slow to read a few rows of: texts are compressed in
//! blocks of thousands, where some rows have no value every one has to be counted.
//!
//! What was decoded for a few rows stays in the cache, in short pieces, packed lightly; the second time rows of the
//! page are wanted. Where those of many series lie in a page, each of them reads its own piece from then on.
//! Entropy-coded numbers and long runs of them are thawed as a whole in place of this (`thaw`).

use std::ops::Range;
use std::sync::OnceLock;

use codec::Effort;
use model::{Bitmap, Column, FieldType, Values};

use super::column::{self, PageShape};
use super::thawed::PIECE_ROWS;
use crate::input::Malformed;
use crate::sparse::SparseView;
use crate::writer::block::encode_page;

/// The pieces of a page, as far as they were read.
#[derive(Debug)]
pub(super) struct Pieces(Box<[OnceLock<Piece>]>);

#[derive(Debug)]
struct Piece {
    /// Its values.
    count: usize,
    /// Laid out as any page; empty without values.
    bytes: Box<[u8]>,
}

/// Whether a few rows of a page, which is none that is thawed, are read from pieces.
pub(super) fn is_in_pieces(shape: PageShape, field_type: FieldType) -> bool {
    shape.rows > 2 * PIECE_ROWS && (shape.count < shape.rows || !field_type.is_numeric())
}

impl Pieces {
    /// Those of a page of so many rows: none is there.
    pub(super) fn new(rows: usize) -> Self {
        Self((0..rows.div_ceil(PIECE_ROWS)).map(|_| OnceLock::new()).collect())
    }

    /// Bytes of memory they take when none is there.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    /// Whether all pieces are there that `rows` lie in.
    pub(super) fn have(&self, rows: &Range<usize>) -> bool {
        touched(rows).all(|piece| self.0[piece].get().is_some())
    }

    /// Adds the entries `rows` of the page to `out`, whose pieces are all there.
    pub(super) fn decode(
        &self,
        page_rows: usize,
        rows: &Range<usize>,
        out: &mut Column,
    ) -> Result<(), Malformed> {
        out.values.reserve(rows.len());
        for piece in touched(rows) {
            let of_piece = range(piece, page_rows);
            let Piece { count, bytes } = self.0[piece].get().expect("BUG: a piece nobody has read");
            let wanted = rows.start.max(of_piece.start)..rows.end.min(of_piece.end);
            if bytes.is_empty() {
                out.extend_missing(wanted.len());
                continue;
            }
            let shape = PageShape { rows: of_piece.len(), count: *count };
            let within = wanted.start - of_piece.start..wanted.end - of_piece.start;
            column::decode(bytes, shape, within, out)?;
        }
        Ok(())
    }

    /// Adds those of the texts `rows` whose bit is set, the first bit being that of the first row; their pieces are all there.
    pub(super) fn decode_selected(
        &self,
        page_rows: usize,
        rows: &Range<usize>,
        selected: &Bitmap,
        out: &mut Column,
    ) -> Result<(), Malformed> {
        for piece in touched(rows) {
            let of_piece = range(piece, page_rows);
            let wanted = rows.start.max(of_piece.start)..rows.end.min(of_piece.end);
            let bits = wanted.start - rows.start..wanted.end - rows.start;
            let count_wanted = selected.count_ones_in(bits.clone());
            if count_wanted == 0 {
                continue;
            }
            let Piece { count, bytes } = self.0[piece].get().expect("BUG: a piece nobody has read");
            if bytes.is_empty() {
                out.extend_missing(count_wanted);
                continue;
            }
            let shape = PageShape { rows: of_piece.len(), count: *count };
            let within = wanted.start - of_piece.start..wanted.end - of_piece.start;
            let mut of_wanted = Bitmap::new();
            of_wanted.extend_from(selected, bits);
            column::decode_selected(bytes, shape, within, &of_wanted, out)?;
        }
        Ok(())
    }

    /// Reads the pieces that `rows` lie in, of which some are not there, and adds `rows` to `out`. Gives the bytes
    /// of memory that those take which are new.
    pub(super) fn read(
        &self,
        page: &[u8],
        (shape, field_type): (PageShape, FieldType),
        rows: &Range<usize>,
        out: &mut Column,
    ) -> Result<usize, Malformed> {
        if rows.is_empty() {
            return Ok(0);
        }
        let pieces = touched(rows);
        let all = range(pieces.start, shape.rows).start..range(pieces.end - 1, shape.rows).end;
        let mut whole = Column::new(Values::empty(field_type));
        column::decode(page, shape, all.clone(), &mut whole)?;
        let bytes_added = self.keep(&whole, shape.rows, all.start, pieces);
        out.extend_from(&whole, rows.start - all.start..rows.end - all.start);
        Ok(bytes_added)
    }

    /// Keeps all pieces of a page that are not there, whose rows these are. Gives the bytes of memory that they take.
    pub(super) fn keep_all(&self, whole: &Column) -> usize {
        self.keep(whole, whole.len(), 0, 0..self.0.len())
    }

    /// Keeps some pieces of a page of so many rows, those that are not there, of a part of it that begins at the row `start`.
    fn keep(&self, part: &Column, page_rows: usize, start: usize, pieces: Range<usize>) -> usize {
        let mut bytes_added = 0;
        SparseView::of(part, |values| {
            for piece in pieces {
                let of_piece = range(piece, page_rows);
                self.0[piece].get_or_init(|| {
                    let mut bytes = Vec::new();
                    let within = of_piece.start - start..of_piece.end - start;
                    let first = values.values_before(within.start);
                    let count = encode_page(values, within, first, Effort::Fast, &mut bytes);
                    bytes_added += bytes.len();
                    Piece { count, bytes: bytes.into() }
                });
            }
        });
        bytes_added
    }
}

/// The pieces that some rows lie in.
fn touched(rows: &Range<usize>) -> Range<usize> {
    if rows.is_empty() { 0..0 } else { rows.start / PIECE_ROWS..rows.end.div_ceil(PIECE_ROWS) }
}

/// The rows of a piece.
fn range(piece: usize, page_rows: usize) -> Range<usize> {
    piece * PIECE_ROWS..((piece + 1) * PIECE_ROWS).min(page_rows)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A page of texts, booleans or numbers, some of which are missing.
    fn column(kind: usize, stretches: &[(bool, usize)]) -> Column {
        let there = stretches.iter().flat_map(|(is_there, len)| vec![*is_there; *len]);
        let validity: Bitmap = there.enumerate().map(|(row, there)| there && row % 7 > 0).collect();
        let number = |row: usize| if validity.get(row) { row * row % 97 } else { 0 };
        let rows = 0..validity.len();
        let values = match kind {
            0 => Values::Integer(rows.map(|row| number(row) as i64).collect()),
            1 => Values::Boolean(rows.map(|row| number(row) > 50).collect()),
            2 => {
                let texts: Vec<String> = rows.map(|row| format!("text {row}")).collect();
                let text = |(row, text): (usize, &'_ String)| {
                    if validity.get(row) { text.clone() } else { String::new() }
                };
                let texts: Vec<String> = texts.iter().enumerate().map(text).collect();
                Values::String(texts.iter().map(String::as_str).collect())
            }
            _ => {
                let text = |row: usize| ["", "up", "down"][number(row) % 3];
                Values::String(rows.map(text).collect())
            }
        };
        Column { values, validity: Some(validity) }
    }

    proptest! {
        #[test]
        fn any_rows_come_back(
            kind in 0usize..4,
            stretches in prop::collection::vec((any::<bool>(), 1usize..900), 1..6),
            looks in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 1..6),
        ) {
            let whole = column(kind, &stretches);
            let mut page = Vec::new();
            let count = SparseView::of(&whole, |values| {
                encode_page(values, 0..whole.len(), 0, Effort::Cold, &mut page)
            });
            prop_assume!(count > 0 && count < whole.len());
            let shape = PageShape { rows: whole.len(), count };
            let field_type = match kind {
                0 => FieldType::Integer,
                1 => FieldType::Boolean,
                _ => FieldType::String,
            };
            let pieces = Pieces::new(shape.rows);
            for ends in looks {
                let [a, b] = ends.map(|end| end.index(shape.rows + 1));
                let rows = a.min(b)..a.max(b);
                let mut first = Column::new(Values::empty(field_type));
                let had_all = pieces.have(&rows);
                let bytes = pieces.read(&page, (shape, field_type), &rows, &mut first).unwrap();
                prop_assert!(pieces.have(&rows) && (!had_all || bytes == 0));
                let mut again = Column::new(Values::empty(field_type));
                pieces.decode(shape.rows, &rows, &mut again).unwrap();
                if field_type == FieldType::String {
                    let selected: Bitmap = rows.clone().map(|row| row % 601 < 3).collect();
                    let mut some = Column::new(Values::empty(field_type));
                    pieces.decode_selected(shape.rows, &rows, &selected, &mut some).unwrap();
                    let expected = selected.ones().map(|at| whole.get(rows.start + at));
                    prop_assert!((0..some.len()).map(|at| some.get(at)).eq(expected));
                }
                for (at, row) in rows.enumerate() {
                    prop_assert_eq!(first.get(at), whole.get(row));
                    prop_assert_eq!(again.get(at), whole.get(row));
                }
            }
        }
    }

    #[test]
    fn short_and_complete_pages_are_read_as_they_are() {
        let shape = |rows: usize, count: usize| PageShape { rows, count };
        assert!(!is_in_pieces(shape(1000, 10), FieldType::String));
        assert!(!is_in_pieces(shape(5000, 5000), FieldType::Float));
        assert!(is_in_pieces(shape(5000, 4999), FieldType::Float));
        assert!(is_in_pieces(shape(5000, 5000), FieldType::Boolean));
    }
}
