//! A page in pieces that are each fast to read in parts: the thawed form of one that was slow in parts.
//!
//! In memory: an entry a piece, then the pieces, each laid out as any page of few rows. An entry says where its piece
//! ends, how many values it has, and how far some of them are from the first, so that of a row's differences only
//! those from the last such waypoint on are added up.

use std::ops::Range;

use codec::kernels::Comparison;
use codec::{ComparedBits, Effort, Waypoint};
use model::{Column, FieldType, Scalar, Values};

use super::column::{self, PageShape};
use crate::input::Malformed;
use crate::sparse::SparseView;
use crate::writer::block::encode_page;

/// Rows that are encoded together: what stands before the wanted ones has to be added up. With 256, ranges of hours
/// take a tenth more and ends of them as long; with 1024, a row has twice as many before it.
pub(super) const PIECE_ROWS: usize = 512;
const WAYPOINTS: usize = 3;
const WAYPOINT_ROWS: usize = PIECE_ROWS / (WAYPOINTS + 1);
/// In place of a waypoint's distance: it does not fit, or there is none.
const UNKNOWN: i16 = i16::MIN;
/// Four bytes for the end, two for the number of values, two a waypoint.
const ENTRY_LEN: usize = 4 + 2 + 2 * WAYPOINTS;
/// What a processor fetches from memory together, of those this runs on.
const CACHE_LINE_LEN: usize = 64;

/// The thawed form of a page.
#[derive(Debug)]
pub(super) struct Thawed {
    rows: usize,
    bytes: Box<[u8]>,
}

/// What is said of a piece.
struct Entry {
    end: usize,
    count: usize,
    waypoints: [i16; WAYPOINTS],
}

impl Entry {
    fn write(&self, out: &mut [u8]) {
        let end = u32::try_from(self.end).expect("BUG: a page of 4 GiB");
        out[..4].copy_from_slice(&end.to_le_bytes());
        out[4..6].copy_from_slice(&(self.count as u16).to_le_bytes());
        for (out, distance) in out[6..].chunks_exact_mut(2).zip(self.waypoints) {
            out.copy_from_slice(&distance.to_le_bytes());
        }
    }

    fn read(bytes: &[u8]) -> Self {
        let pair = |at: usize| [bytes[at], bytes[at + 1]];
        let end = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
        let waypoints = [6, 8, 10].map(|at| i16::from_le_bytes(pair(at)));
        Self { end, count: usize::from(u16::from_le_bytes(pair(4))), waypoints }
    }

    /// The last waypoint at a row of the piece or before it.
    fn waypoint(&self, row: usize) -> Waypoint {
        let at = (row / WAYPOINT_ROWS).checked_sub(1);
        match at.map(|at| self.waypoints[at]).filter(|distance| *distance != UNKNOWN) {
            Some(distance) => {
                let (row, distance) = (row / WAYPOINT_ROWS * WAYPOINT_ROWS, distance.into());
                Waypoint { row, distance, ..Waypoint::default() }
            }
            None => Waypoint::default(),
        }
    }
}

/// The waypoints of so many rows that are a piece and have these values of a column.
fn waypoints(whole: &Values, rows: usize, found: &Range<usize>) -> [i16; WAYPOINTS] {
    let distance = |at: usize| -> Option<i16> {
        if found.len() < rows || at >= rows {
            return None;
        }
        let (first, at) = (found.start, found.start + at);
        let distance = match whole {
            Values::Integer(v) => v[at].wrapping_sub(v[first]),
            Values::Unsigned(v) => v[at].wrapping_sub(v[first]).cast_signed(),
            _ => return None,
        };
        i16::try_from(distance).ok()
    };
    std::array::from_fn(|at| distance((at + 1) * WAYPOINT_ROWS).unwrap_or(UNKNOWN))
}

impl Thawed {
    /// Of the page that these rows of a column are.
    pub(super) fn new(column: SparseView<'_>, page: Range<usize>) -> Self {
        let rows = page.len();
        let mut first = column.values_before(page.start);
        let mut bytes = vec![0; rows.div_ceil(PIECE_ROWS) * ENTRY_LEN];
        for (piece, start) in page.clone().step_by(PIECE_ROWS).enumerate() {
            // So few rows are packed well without a search for what stands out of them.
            let rows = start..page.end.min(start + PIECE_ROWS);
            let count = encode_page(column, rows.clone(), first, Effort::Fast, &mut bytes);
            let waypoints = waypoints(column.values, rows.len(), &(first..first + count));
            first += count;
            let entry = Entry { end: bytes.len(), count, waypoints };
            entry.write(&mut bytes[piece * ENTRY_LEN..(piece + 1) * ENTRY_LEN]);
        }
        Self { rows, bytes: bytes.into() }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.len()
    }

    fn entry(&self, piece: usize) -> Entry {
        Entry::read(&self.bytes[piece * ENTRY_LEN..(piece + 1) * ENTRY_LEN])
    }

    /// Where the bytes of a piece are.
    fn range(&self, piece: usize) -> Range<usize> {
        let table = self.rows.div_ceil(PIECE_ROWS) * ENTRY_LEN;
        piece.checked_sub(1).map_or(table, |before| self.entry(before).end)..self.entry(piece).end
    }

    /// Asks for the entry of the piece that rows from `row` on start in, so that it is on its way from memory while
    /// those of other pages are looked for: what is done with it could not begin before.
    pub(super) fn prefetch_entry(&self, row: usize) {
        let at = row.min(self.rows.saturating_sub(1)) / PIECE_ROWS * ENTRY_LEN;
        self.bytes.get(at).into_iter().for_each(codec::prefetch);
    }

    /// The same for the pieces that rows start and end in.
    pub(super) fn prefetch_ends(&self, rows: &Range<usize>) {
        if rows.is_empty() {
            return;
        }
        self.prefetch_entry(rows.start);
        if rows.len() > PIECE_ROWS {
            self.prefetch_entry(rows.end - 1);
        }
    }

    /// Asks for the piece that `rows` start in, as far as they need it.
    pub(super) fn prefetch(&self, rows: &Range<usize>) {
        if rows.is_empty() || rows.start >= self.rows {
            return;
        }
        let piece = rows.start / PIECE_ROWS;
        let bytes = &self.bytes[self.range(piece)];
        // What stands before the rows is added up; about so many bytes have as many of them.
        let within = (rows.end - piece * PIECE_ROWS).min(PIECE_ROWS);
        let needed = (bytes.len() * within / PIECE_ROWS + CACHE_LINE_LEN).min(bytes.len());
        bytes[..needed].iter().step_by(CACHE_LINE_LEN).for_each(codec::prefetch);
    }

    /// The same for the pieces that rows start and end in: most ranges have no others, or so many that what they wait
    /// for hardly counts.
    pub(super) fn prefetch_pieces(&self, rows: &Range<usize>) {
        self.prefetch(rows);
        let last = rows.end.saturating_sub(1) / PIECE_ROWS * PIECE_ROWS;
        if last > rows.start {
            self.prefetch(&(last..rows.end));
        }
    }

    /// The same for what [`Self::bits`] reads of a row: the head of its piece, and from a waypoint on.
    pub(super) fn prefetch_row(&self, row: usize) {
        if row >= self.rows {
            return;
        }
        let (piece, within) = (row / PIECE_ROWS, row % PIECE_ROWS);
        let bytes = &self.bytes[self.range(piece)];
        let from = bytes.len() * (within / WAYPOINT_ROWS) / (WAYPOINTS + 1);
        let lines = [0, from, from + CACHE_LINE_LEN, from + 2 * CACHE_LINE_LEN];
        lines.iter().filter_map(|at| bytes.get(*at)).for_each(codec::prefetch);
    }

    /// The bits of one entry; `None`: it has no value. The page is one of numbers.
    pub(super) fn bits(&self, row: usize, field_type: FieldType) -> Result<Option<u64>, Malformed> {
        let (piece, within) = (row / PIECE_ROWS, row % PIECE_ROWS);
        let (entry, bytes) = (self.entry(piece), &self.bytes[self.range(piece)]);
        if bytes.is_empty() {
            return Ok(None);
        }
        let rows = PIECE_ROWS.min(self.rows - piece * PIECE_ROWS);
        let shape = PageShape { rows, count: entry.count };
        column::bits_at(bytes, shape, within, field_type, entry.waypoint(within))
    }

    /// Which rows of a piece have a value that stands to a constant as asked; bits behind them are zero. `None`: it has to be decoded to
    /// be compared.
    pub(super) fn compare(
        &self,
        piece: usize,
        comparison: Comparison,
        constant: &Scalar,
    ) -> Result<Option<ComparedBits>, Malformed> {
        let rows = PIECE_ROWS.min(self.rows - piece * PIECE_ROWS);
        if self.entry(piece).count < rows {
            return Ok(None);
        }
        let bytes = &self.bytes[self.range(piece)];
        match constant {
            Scalar::Integer(constant) => {
                Ok(codec::compare_page_i64(bytes, rows, comparison, *constant)?)
            }
            Scalar::Unsigned(constant) => {
                Ok(codec::compare_page_u64(bytes, rows, comparison, *constant)?)
            }
            Scalar::Float(constant) => {
                Ok(codec::compare_page_f64(bytes, rows, comparison, *constant)?)
            }
            _ => Ok(None),
        }
    }

    /// The same of those that stand as asked to the rows of another page of the block, of the same type.
    pub(super) fn compare_with(
        &self,
        other: &Self,
        piece: usize,
        comparison: Comparison,
        field_type: FieldType,
    ) -> Result<Option<ComparedBits>, Malformed> {
        let rows = PIECE_ROWS.min(self.rows - piece * PIECE_ROWS);
        if self.entry(piece).count < rows || other.entry(piece).count < rows {
            return Ok(None);
        }
        let (a, b) = (&self.bytes[self.range(piece)], &other.bytes[other.range(piece)]);
        match field_type {
            FieldType::Integer => Ok(codec::compare_pages_i64(a, b, rows, comparison)?),
            FieldType::Unsigned => Ok(codec::compare_pages_u64(a, b, rows, comparison)?),
            FieldType::Float => Ok(codec::compare_pages_f64(a, b, rows, comparison)?),
            _ => Ok(None),
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
            let shape = PageShape { rows: rows_here, count: self.entry(piece).count };
            let bytes = &self.bytes[self.range(piece)];
            let to = rows.end.min(first + shape.rows);
            // The next piece is on its way while this one is decoded.
            self.prefetch(&(to..rows.end));
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

#[cfg(test)]
mod tests {
    use model::Bitmap;
    use proptest::prelude::*;

    use super::*;
    use crate::sparse::SparseColumn;

    proptest! {
        #[test]
        fn any_rows_come_back(
            // Values, or stretches without any, which may be longer than a piece.
            stretches in prop::collection::vec((any::<bool>(), 1usize..900), 1..8),
            // Differences that fit waypoints, and some that do not.
            step in prop_oneof![Just(1i64), Just(400), Just(i64::MAX / 50)],
            unsigned in any::<bool>(),
            before in 0usize..600,
            ends in any::<(prop::sample::Index, prop::sample::Index)>(),
        ) {
            let validity: Bitmap =
                stretches.iter().flat_map(|(is_there, len)| vec![*is_there; *len]).collect();
            let rows = validity.len();
            let value = |row: usize| ((row * row % 97) as i64).wrapping_mul(step);
            let values: Vec<i64> = (0..rows).map(|row| if validity.get(row) { value(row) } else { 0 }).collect();
            let expected = values.clone();
            let (values, field_type) = if unsigned {
                (Values::Unsigned(values.into_iter().map(i64::cast_unsigned).collect()), FieldType::Unsigned)
            } else {
                (Values::Integer(values), FieldType::Integer)
            };
            let has_all = validity.count_ones() == rows;
            let whole = Column { values, validity: (!has_all).then_some(validity) };
            let (a, b) = (ends.0.index(rows + 1), ends.1.index(rows + 1));
            let range = a.min(b)..a.max(b);
            // The page may be in the middle of a column.
            let mut around = Column::new(Values::empty(field_type));
            around.extend_missing(before);
            around.extend_from(&whole, 0..rows);
            around.extend_missing(3);
            let mut found = Column::new(Values::empty(field_type));
            let around = SparseColumn::from(around);
            let thawed = Thawed::new(around.view(), before..before + rows);
            thawed.prefetch_ends(&range);
            thawed.prefetch_pieces(&range);
            thawed.decode(range.clone(), &mut found).unwrap();
            prop_assert_eq!(found.len(), range.len());
            for (at, row) in range.enumerate() {
                thawed.prefetch_row(row);
                let bits = whole.is_valid(row).then(|| expected[row].cast_unsigned());
                prop_assert_eq!(thawed.bits(row, field_type).unwrap(), bits);
                prop_assert_eq!(found.is_valid(at), whole.is_valid(row));
                let found = match &found.values {
                    Values::Integer(found) => found[at],
                    Values::Unsigned(found) => found[at].cast_signed(),
                    _ => panic!("numbers"),
                };
                prop_assert_eq!(found, expected[row]);
            }
        }
    }
}
