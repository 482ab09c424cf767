//! Decoding parts of fields' pages, missing values included.

use std::ops::Range;

use codec::kernels;
use codec::{DecodeError, Mark, Marks, NumbersOut, TextFinder, TextPlace, Waypoint, Waypoints};
use model::{Bitmap, Column, FieldType, Strings, Values};

use crate::format::BLOCK_TEXT_LIMIT;
use crate::input::{Input, Malformed};

/// What the directory says of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageShape {
    /// Rows of the block.
    pub(crate) rows: usize,
    /// Values in the page.
    pub(crate) count: usize,
}

/// Adds the entries `rows` of a page to `out`.
pub(crate) fn decode(
    page: &[u8],
    shape: PageShape,
    rows: Range<usize>,
    out: &mut Column,
) -> Result<(), Malformed> {
    decode_from(page, shape, rows, None, out)
}

/// The same from a waypoint on, if the page is one of numbers without gaps.
pub(crate) fn decode_from(
    page: &[u8],
    shape: PageShape,
    rows: Range<usize>,
    waypoint: Option<Waypoint>,
    out: &mut Column,
) -> Result<(), Malformed> {
    if rows.is_empty() {
        return Ok(());
    }
    if shape.count == shape.rows {
        // Not as a part: what was just put together would be copied, which waits for all that was written before.
        let added = rows.len();
        let values = &mut out.values;
        match waypoint {
            None => decode_values(Input::new(page), shape.count, rows, values)?,
            Some(waypoint) => decode_numbers(page, shape.count, rows, waypoint, values)?,
        }
        if let Some(validity) = &mut out.validity {
            validity.extend_filled(added, true);
        }
        return Ok(());
    }
    let part = PagePart::new(page, shape, rows)?;
    let had = out.len();
    if !part.values.is_empty() {
        decode_values(part.input, shape.count, part.values.clone(), &mut out.values)?;
    }
    part.finish(had, out);
    Ok(())
}

/// Adds entries that have a value, but any.
pub(crate) fn extend_present(count: usize, out: &mut Column) {
    out.values.extend_missing(count);
    if let Some(validity) = &mut out.validity {
        validity.extend_filled(count, true);
    }
}

/// Adds the entries `rows` of a page where it has values, but any in their place.
pub(crate) fn presence(
    page: &[u8],
    shape: PageShape,
    rows: Range<usize>,
    out: &mut Column,
) -> Result<(), Malformed> {
    let present = decode_present(&mut Input::new(page), shape)?;
    let had = out.len();
    out.values.extend_missing(rows.len());
    out.validity.get_or_insert_with(|| Bitmap::filled(had, true)).extend_from(&present, rows);
    Ok(())
}

/// The bits of one entry of a page of numbers; `None`: it has no value. Only a page without gaps has waypoints besides
/// its first entry.
pub(crate) fn bits_at(
    page: &[u8],
    shape: PageShape,
    row: usize,
    field_type: FieldType,
    waypoint: Waypoint,
) -> Result<Option<u64>, Malformed> {
    let part = PagePart::new(page, shape, row..row + 1)?;
    if part.values.is_empty() {
        return Ok(None);
    }
    let (bytes, at) = (part.input.rest(), part.values.start);
    let bits = match field_type {
        FieldType::Float => codec::float_at(bytes, shape.count, at),
        FieldType::Integer | FieldType::Unsigned => {
            codec::integer_from(bytes, shape.count, at, waypoint)
        }
        FieldType::Boolean | FieldType::String => panic!("BUG: not a field of numbers"),
    };
    bits.map(Some).map_err(|e| Malformed { at: part.input.at(), what: e.to_string() })
}

/// Some entries of a page of numbers, and where they go.
pub(crate) struct NumbersPart<'a> {
    pub(crate) page: &'a [u8],
    pub(crate) shape: PageShape,
    pub(crate) rows: Range<usize>,
    pub(crate) out: &'a mut Column,
    /// What is known of the page, if more of it shall be.
    pub(crate) marks: Option<&'a Marks>,
}

/// Adds some entries of several pages of numbers, each to its column, as [`decode`] would one by one. If
/// a page is damaged, says which.
pub(crate) fn decode_together(pages: &mut [NumbersPart<'_>]) -> Result<(), (usize, Malformed)> {
    let mut parts = Vec::with_capacity(pages.len());
    for (at, page) in pages.iter().enumerate() {
        let part = PagePart::new(page.page, page.shape, page.rows.clone()).map_err(|e| (at, e))?;
        parts.push((part, page.out.len()));
    }
    let mut passed: Vec<Vec<Mark>> = vec![Vec::new(); pages.len()];
    let numbers =
        parts.iter().zip(&mut *pages).zip(&mut passed).map(|(((part, _), page), passed)| {
            let out = match &mut page.out.values {
                Values::Integer(v) => NumbersOut::I64(v),
                Values::Unsigned(v) => NumbersOut::U64(v),
                Values::Float(v) => NumbersOut::F64(v),
                _ => panic!("BUG: not a column of numbers"),
            };
            let (bytes, range) = (part.input.rest(), part.values.clone());
            let mut numbers = codec::PagePart::new(bytes, page.shape.count, range, out);
            if let Some(marks) = page.marks {
                numbers.from = marks.before(numbers.range.start);
                numbers.passed = Some(passed);
            }
            numbers
        });
    codec::decode_together(&mut numbers.collect::<Vec<_>>()).map_err(|(at, error)| {
        let what = error.to_string();
        (at, Malformed { at: parts[at].0.input.at(), what })
    })?;
    for (((part, had), page), passed) in parts.into_iter().zip(pages).zip(passed) {
        part.finish(had, page.out);
        if let Some(marks) = page.marks {
            marks.add(&passed);
        }
    }
    Ok(())
}

/// Some rows of a page, and which of its values they have.
struct PagePart<'a> {
    rows: Range<usize>,
    /// Where the values begin.
    input: Input<'a>,
    values: Range<usize>,
    /// Which rows of the page have a value, if not all do.
    present: Option<Bitmap>,
}

impl<'a> PagePart<'a> {
    fn new(page: &'a [u8], shape: PageShape, rows: Range<usize>) -> Result<Self, Malformed> {
        let mut input = Input::new(page);
        if shape.count == shape.rows {
            return Ok(Self { values: rows.clone(), rows, input, present: None });
        }
        let present = decode_present(&mut input, shape)?;
        let before = present.count_ones_in(0..rows.start);
        let values = before..before + present.count_ones_in(rows.clone());
        Ok(Self { rows, input, values, present: Some(present) })
    }

    /// Completes `out`, which had so many entries and to which the values were added.
    fn finish(self, had: usize, out: &mut Column) {
        let rows = self.rows;
        let Some(present) = self.present else {
            if let Some(validity) = &mut out.validity {
                validity.extend_filled(rows.len(), true);
            }
            return;
        };
        if self.values.is_empty() {
            out.extend_missing(rows.len());
            return;
        }
        let complete = self.values.len() == rows.len();
        if !complete {
            spread(&mut out.values, had, &present, rows.clone());
        }
        if !complete || out.validity.is_some() {
            let validity = out.validity.get_or_insert_with(|| Bitmap::filled(had, true));
            validity.extend_from(&present, rows);
        }
    }
}

/// Which rows have a value.
pub(crate) fn decode_present(input: &mut Input<'_>, shape: PageShape) -> Result<Bitmap, Malformed> {
    let mut words = Vec::new();
    codec::decode_validity(input.bytes()?, shape.rows, &mut words)?;
    let present = Bitmap::from_words(words, shape.rows);
    if present.count_ones() != shape.count {
        return Err(input.fail("a page does not have the values its directory says"));
    }
    Ok(present)
}

/// Adds values without missing ones.
fn decode_values(
    mut input: Input<'_>,
    count: usize,
    range: Range<usize>,
    out: &mut Values,
) -> Result<(), Malformed> {
    let at = input.at();
    let expected = out.len() + range.len();
    match out {
        Values::Integer(v) => codec::decode_i64_range(input.rest(), count, range, v),
        Values::Unsigned(v) => codec::decode_u64_range(input.rest(), count, range, v),
        Values::Float(v) => codec::decode_f64_range(input.rest(), count, range, v),
        Values::Boolean(v) => {
            let mut words = Vec::new();
            let len = range.len();
            let decoded = codec::decode_bool_range(input.rest(), count, range, &mut words);
            decoded.map(|()| v.extend_from(&Bitmap::from_words(words, len), 0..len))
        }
        Values::String(v) => return decode_strings(&mut input, count, range, v),
        Values::Time(_) | Values::Dictionary(..) => panic!("BUG: not a column of a field"),
    }
    .map_err(|e| Malformed { at, what: e.to_string() })?;
    assert_eq!(out.len(), expected, "BUG: a decoder gave another number of values");
    Ok(())
}

/// Adds numbers of a page without gaps, from a waypoint on.
fn decode_numbers(
    page: &[u8],
    count: usize,
    range: Range<usize>,
    waypoint: Waypoint,
    out: &mut Values,
) -> Result<(), Malformed> {
    match out {
        Values::Integer(v) => codec::decode_i64_from(page, count, range, waypoint, v),
        Values::Unsigned(v) => codec::decode_u64_from(page, count, range, waypoint, v),
        Values::Float(v) => codec::decode_f64_from(page, count, range, waypoint, v),
        _ => panic!("BUG: not a column of numbers"),
    }
    .map_err(|e| Malformed { at: 0, what: e.to_string() })
}

/// Whether waypoints may help to read a few rows of a page.
pub(crate) fn is_guided(page: &[u8], shape: PageShape, field_type: FieldType) -> bool {
    let help = match field_type {
        FieldType::Float => Waypoints::help_f64,
        FieldType::Integer | FieldType::Unsigned => Waypoints::help_i64,
        FieldType::Boolean | FieldType::String => return false,
    };
    shape.count == shape.rows && help(page, shape.count)
}

/// Whether texts of a page take as long to read one here and one there as all of it, and are not much larger in pieces.
pub(crate) fn are_slow_apart(page: &[u8], shape: PageShape) -> bool {
    let mut input = Input::new(page);
    if shape.count < shape.rows && input.bytes().is_err() {
        return false;
    }
    text_bytes(&mut input).is_ok_and(|bytes| codec::are_slow_apart(input.rest(), bytes))
}

/// The bytes of a page's text.
fn text_bytes(input: &mut Input<'_>) -> Result<usize, Malformed> {
    input.bounded(BLOCK_TEXT_LIMIT as u64, "the length of a page's text")
}

/// Waypoints of a page of numbers without gaps, if they help.
pub(crate) fn waypoints(page: &[u8], shape: PageShape, field_type: FieldType) -> Option<Waypoints> {
    match field_type {
        FieldType::Float => Waypoints::of_f64(page, shape.count),
        FieldType::Integer | FieldType::Unsigned => Waypoints::of_i64(page, shape.count),
        FieldType::Boolean | FieldType::String => None,
    }
}

fn decode_strings(
    input: &mut Input<'_>,
    count: usize,
    range: Range<usize>,
    out: &mut Strings,
) -> Result<(), Malformed> {
    let rows = range.len();
    decode_texts(input, rows, out, |page, text_bytes, places, bytes| {
        codec::decode_strings_range(page, count, range, text_bytes, places, bytes)
    })
}

/// Adds so many texts of a page, as `decode` decodes them.
fn decode_texts(
    input: &mut Input<'_>,
    rows: usize,
    out: &mut Strings,
    decode: impl FnOnce(&[u8], usize, &mut Vec<TextPlace>, &mut Vec<u8>) -> Result<(), DecodeError>,
) -> Result<(), Malformed> {
    let text_bytes = text_bytes(input)?;
    let (mut places, mut bytes) = (Vec::new(), Vec::new());
    decode(input.rest(), text_bytes, &mut places, &mut bytes)
        .map_err(|e| input.fail(e.to_string()))?;
    let strings = Strings::from_places(places, bytes);
    let strings = strings.filter(|s| s.len() == rows);
    let strings = strings.ok_or_else(|| input.fail("a string is not UTF-8"))?;
    if out.is_empty() {
        *out = strings;
    } else {
        out.extend_from(&strings, 0..rows);
    }
    Ok(())
}

/// Adds those of the entries `rows` of a page of texts whose bit is set, the first bit being that of the first row.
pub(crate) fn decode_selected(
    page: &[u8],
    shape: PageShape,
    rows: Range<usize>,
    selected: &Bitmap,
    out: &mut Column,
) -> Result<(), Malformed> {
    let Values::String(texts) = &mut out.values else { panic!("BUG: not a column of texts") };
    let mut part = PagePart::new(page, shape, rows)?;
    let (had, wanted) = (texts.len(), selected.count_ones());
    let (mut of_values, mut there) = (Bitmap::new(), Bitmap::filled(wanted, true));
    if let Some(present) = &part.present {
        there = Bitmap::new();
        for (row, bit) in part.rows.clone().zip(0..) {
            let (is_there, is_selected) = (present.get(row), selected.get(bit));
            if is_there {
                of_values.push(is_selected);
            }
            if is_selected {
                there.push(is_there);
            }
        }
    }
    let bits = if part.present.is_some() { &of_values } else { selected };
    let count = bits.count_ones();
    if count > 0 {
        let range = part.values.clone();
        decode_texts(&mut part.input, count, texts, |page, text_bytes, places, bytes| {
            let selected = (range, bits.words());
            codec::decode_selected_strings(page, shape.count, selected, text_bytes, places, bytes)
        })?;
    }
    if count < wanted {
        texts.spread(had, &there, 0..wanted);
    }
    if count < wanted || out.validity.is_some() {
        let validity = out.validity.get_or_insert_with(|| Bitmap::filled(had, true));
        validity.extend_from(&there, 0..wanted);
    }
    Ok(())
}

/// Whether some entries of a page of texts take as much shorter to search than all as they are fewer: where any are missing all
/// of them have to be counted.
pub(crate) fn are_searched_apart(page: &[u8], shape: PageShape) -> bool {
    let mut input = Input::new(page);
    shape.count == shape.rows
        && text_bytes(&mut input).is_ok()
        && codec::are_searched_apart(input.rest())
}

/// A bit for each of the entries `rows` of a page of texts: whether it has a text that the finder wants, or, if such are not
/// `wanted`, one that it does not. `None`: the page has to be decoded to tell.
pub(crate) fn search(
    page: &[u8],
    shape: PageShape,
    rows: Range<usize>,
    finder: &TextFinder<'_>,
    wanted: bool,
) -> Result<Option<Bitmap>, Malformed> {
    let mut part = PagePart::new(page, shape, rows)?;
    if part.values.is_empty() {
        return Ok(Some(Bitmap::filled(part.rows.len(), false)));
    }
    let (input, values) = (&mut part.input, part.values.clone());
    let text_bytes = text_bytes(input)?;
    let bits = codec::search_strings(input.rest(), shape.count, values, finder, text_bytes);
    let Some(mut words) = bits.map_err(|e| input.fail(e.to_string()))? else { return Ok(None) };
    if !wanted {
        words.iter_mut().for_each(|word| *word = !*word);
    }
    let found = Bitmap::from_words(words, part.values.len());
    let Some(present) = part.present else { return Ok(Some(found)) };
    let mut values = (0..found.len()).map(|at| found.get(at));
    let of_row = |row| present.get(row) && values.next().unwrap_or(false);
    Ok(Some(part.rows.map(of_row).collect()))
}

/// Makes room for missing values among those from `at` on.
fn spread(values: &mut Values, at: usize, present: &Bitmap, rows: Range<usize>) {
    match values {
        Values::Integer(v) => kernels::spread_i64(present.words(), rows, v, at),
        Values::Unsigned(v) => kernels::spread_u64(present.words(), rows, v, at),
        Values::Float(v) => kernels::spread_f64(present.words(), rows, v, at),
        Values::Boolean(v) => {
            let (mut all, mut next) = (Bitmap::new(), at);
            all.extend_from(v, 0..at);
            for row in rows {
                let value = present.get(row) && {
                    next += 1;
                    v.get(next - 1)
                };
                all.push(value);
            }
            *v = all;
        }
        Values::String(v) => v.spread(at, present, rows),
        Values::Time(_) | Values::Dictionary(..) => panic!("BUG: not a column of a field"),
    }
}
