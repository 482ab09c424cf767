//! `LineBatch`: parsed rows on their way from a wire format to a store.

use std::borrow::Cow;

use crate::FieldType;

/// Rows in the order they were sent.
///
/// Rows with the same measurement and the same fields in the same order share a [`Layout`], so a
/// store looks each layout up once and not each field of each row. A row's series is named by the
/// raw bytes it was sent with (tags in any order, escapes as sent) and their hash: a store that
/// knows the hash need not look at the bytes. Bytes that a store does not know yet may be no legal
/// key; it finds out when it makes a [`crate::SeriesKey`] of them.
#[derive(Debug, Default)]
pub struct LineBatch<'a> {
    /// What rows refer to by offset: raw keys, and whole lines for error messages.
    pub text: LineText<'a>,
    /// The distinct layouts.
    pub layouts: Vec<Layout<'a>>,
    /// The rows.
    pub rows: Vec<LineRow>,
    /// Values, row after row, one slot a field of the row's layout. A slot holds the bits of the
    /// value; booleans are 0 or 1; strings are a [`string_slot`] into `strings`.
    pub values: Vec<u64>,
    /// Text of string values, escapes removed. UTF-8.
    pub strings: Vec<u8>,
}

/// Text in pieces, as it came over the wire; offsets count through all of them as if they were one.
#[derive(Clone, Debug, Default)]
pub struct LineText<'a> {
    /// Each with its offset.
    pieces: Vec<(u32, Cow<'a, [u8]>)>,
    len: usize,
}

impl<'a> LineText<'a> {
    /// Adds a piece behind the others; gives its offset.
    ///
    /// # Panics
    /// If that is 4 GiB or more.
    pub fn push(&mut self, piece: impl Into<Cow<'a, [u8]>>) -> u32 {
        let piece = piece.into();
        let start = u32::try_from(self.len).expect("BUG: a text of 4 GiB or more");
        self.len += piece.len();
        self.pieces.push((start, piece));
        start
    }

    /// Length of all pieces, bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// `len` bytes from offset `start` on, which lie in one piece.
    fn part(&self, start: u32, len: u32) -> &[u8] {
        let behind = self.pieces.partition_point(|(of_piece, _)| *of_piece <= start);
        let (of_piece, bytes) = &self.pieces[behind - 1];
        let start = (start - of_piece) as usize;
        &bytes[start..start + len as usize]
    }
}

impl<'a, T: Into<Cow<'a, [u8]>>> From<T> for LineText<'a> {
    fn from(text: T) -> Self {
        let mut pieces = Self::default();
        pieces.push(text);
        pieces
    }
}

/// The measurement and the fields that some rows have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout<'a> {
    /// Measurement, escapes removed.
    pub measurement: Cow<'a, str>,
    /// Fields in the order of the values; no name twice.
    pub fields: Vec<LayoutField<'a>>,
}

/// One field of a layout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LayoutField<'a> {
    /// Name, escapes removed.
    pub name: Cow<'a, str>,
    /// Type of its values.
    pub field_type: FieldType,
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRow {
    /// [`crate::key_hash`] of the raw key.
    pub key_hash: u128,
    /// Nanoseconds since 1970-01-01 UTC.
    pub time_ns: i64,
    /// Where the line (and the raw key, its first part) starts in `text`.
    pub line_start: u32,
    /// Length of the whole line, without its line end.
    pub line_len: u32,
    /// Length of the raw key.
    pub key_len: u32,
    /// Index into `layouts`.
    pub layout: u32,
    /// Index of the first value in `values`.
    pub values_start: u32,
}

impl LineBatch<'_> {
    /// The raw key of `row`.
    #[must_use]
    pub fn raw_key(&self, row: &LineRow) -> &[u8] {
        self.text.part(row.line_start, row.key_len)
    }

    /// The whole line of `row`, for messages.
    #[must_use]
    pub fn line(&self, row: &LineRow) -> &[u8] {
        self.text.part(row.line_start, row.line_len)
    }

    /// The values of `row`, in its layout's order.
    #[must_use]
    pub fn row_values(&self, row: &LineRow) -> &[u64] {
        let start = row.values_start as usize;
        &self.values[start..start + self.layouts[row.layout as usize].fields.len()]
    }

    /// The text of a string value.
    #[must_use]
    pub fn string(&self, slot: u64) -> &[u8] {
        let (start, len) = string_slot_parts(slot);
        &self.strings[start as usize..start as usize + len as usize]
    }
}

/// The slot of a string of `len` bytes that starts at `start`.
#[must_use]
pub fn string_slot(start: u32, len: u32) -> u64 {
    u64::from(start) << 32 | u64::from(len)
}

/// Start and length of the string that `slot` stands for.
#[must_use]
pub fn string_slot_parts(slot: u64) -> (u32, u32) {
    ((slot >> 32) as u32, slot as u32)
}
