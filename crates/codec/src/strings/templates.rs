//! Strings as templates and what varies in them: messages of a program, in which a few texts recur with other numbers and
//! names.
//!
//! A string is the pieces of its template with a word between each two. Words at one place of one template are a column of
//! their own: numbers as an integer page, others as a page of strings (the idea of CLP, Rodrigues et al., OSDI 2021, with
//! columns for variables and without dictionaries that outlive a page). Decoding is copying, several times as fast as a
//! compressor's, and rows can be read from anywhere.
//!
//! Strings are cut into stretches of one length, the least number of these with at most `STRETCH_STRINGS` each, the last with the
//! rest, so that a range of rows needs only those it lies in.
//!
//! Layout: each stretch after its length (uvarint). A stretch: the number of templates (uvarint); the number of words in each (integer page after its length); the pieces, one
//! more than words of each template (page of strings after its length); the column of each word: the least number of its
//! digits, 0 if it is a page of strings (uvarint), the page (after its length); the template of each string (integer page).
//! A number with fewer digits has zeros before it. A column has a value for each string of its template, in order.

mod encode;
mod room;
mod search;

use std::ops::Range;

pub(super) use self::encode::encode;
use self::room::{Padded, Room};
pub(super) use self::search::search;
use super::{Nesting, Output, TextPlace, decode as decode_page};
use crate::{
    error::{DecodeError, Result},
    int::decode_u64_range,
    wire::Reader,
};

/// Numbers of more digits are texts: they might not fit.
const DIGITS_MAX: usize = 19;

/// What the strings of a stretch are made of, not decoded yet.
struct Page<'a> {
    templates: Vec<Template>,
    /// One more than words of each template, one template's after the other's.
    pieces: Vec<TextPlace>,
    pieces_text: Padded,
    columns: Vec<Column<'a>>,
    /// The template of each string.
    codes: Vec<u64>,
}

#[derive(Clone, Copy, Default)]
struct Template {
    /// Its first column; its first piece is as many places further as it has templates before it.
    first: usize,
    words: usize,
    /// How many strings have it: in the page, before the range, and within it.
    strings: usize,
    before: usize,
    within: usize,
    /// Bytes of its pieces.
    bytes: u64,
}

struct Column<'a> {
    digits_min: usize,
    page: &'a [u8],
}

/// A stretch has at most so many strings.
const STRETCH_STRINGS: usize = 8192;

/// As few stretches of one length as so many strings need; the last may be shorter.
fn stretches(count: usize) -> impl Iterator<Item = Range<usize>> {
    let len = count.div_ceil(count.div_ceil(STRETCH_STRINGS).max(1)).max(1);
    (0..count).step_by(len).map(move |start| start..count.min(start + len))
}

/// Calls `visit` with each stretch that has some of the strings `range`: its bytes, how many strings it has and which are wanted.
fn each_stretch<'a>(
    mut reader: Reader<'a>,
    count: usize,
    range: &Range<usize>,
    mut visit: impl FnMut(Reader<'a>, usize, Range<usize>) -> Result<()>,
) -> Result<()> {
    for stretch in stretches(count) {
        let bytes = reader.length_prefixed()?;
        let (start, end) = (range.start.max(stretch.start), range.end.min(stretch.end));
        if start < end {
            let within = start - stretch.start..end - stretch.start;
            visit(Reader::new(bytes), stretch.len(), within)?;
        }
    }
    reader.finish()
}

pub(super) fn decode(
    reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    output: &mut Output<'_>,
) -> Result<()> {
    let (mut max_bytes, before) = (output.max_bytes, output.bytes.len());
    each_stretch(reader, count, &range, |reader, count, range| {
        let Output { places, bytes, .. } = &mut *output;
        decode_stretch(reader, count, range, &mut Output { places, bytes, max_bytes })?;
        max_bytes = output.max_bytes - (output.bytes.len() - before);
        Ok(())
    })
}

fn decode_stretch(
    reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    output: &mut Output<'_>,
) -> Result<()> {
    let page = Page::read(reader, count, &range, output.max_bytes)?;
    let words = Words::decode(&page, output.max_bytes, |_| true)?;
    let of_pieces = page.templates.iter().map(|t| t.bytes.saturating_mul(t.within as u64));
    let of_words = words.places.iter().map(|(_, len)| u64::from(*len)).sum::<u64>();
    let total = of_pieces.fold(of_words, u64::saturating_add);
    output.check(total)?;
    output.places.reserve(range.len());
    let mut room = Room::new(output.bytes, total as usize);
    let mut next = words.starts.clone();
    for code in &page.codes[range] {
        let start = room.len();
        page.append(*code as usize, &words, &mut next, &mut room);
        output.places.push((start as u32, (room.len() - start) as u32));
    }
    Ok(())
}

impl<'a> Page<'a> {
    fn read(
        mut reader: Reader<'a>,
        count: usize,
        range: &Range<usize>,
        max_bytes: usize,
    ) -> Result<Self> {
        let n_templates = reader.uvarint()?;
        if n_templates == 0 || n_templates > count as u64 {
            return Err(DecodeError::Corrupt("number of templates"));
        }
        let n_templates = n_templates as usize;
        let mut words = Vec::new();
        decode_u64_range(reader.length_prefixed()?, n_templates, 0..n_templates, &mut words)?;
        let mut templates = Vec::with_capacity(n_templates);
        let mut n_columns = 0usize;
        for words in words {
            // A column takes two bytes at least.
            if words > (reader.remaining() - n_columns) as u64 {
                return Err(DecodeError::Corrupt("number of words in a template"));
            }
            let words = words as usize;
            templates.push(Template { first: n_columns, words, ..Template::default() });
            n_columns += words;
        }
        let (mut pieces, mut pieces_text) = (Vec::new(), Vec::new());
        let n_pieces = n_columns + n_templates;
        let mut into = Output { places: &mut pieces, bytes: &mut pieces_text, max_bytes };
        let page = reader.length_prefixed()?;
        decode_page(page, n_pieces, 0..n_pieces, Nesting::Innermost, &mut into)?;
        let mut columns = Vec::with_capacity(n_columns);
        for _ in 0..n_columns {
            let digits_min = reader.uvarint()?;
            if digits_min > DIGITS_MAX as u64 {
                return Err(DecodeError::Corrupt("number of digits"));
            }
            let page = reader.length_prefixed()?;
            columns.push(Column { digits_min: digits_min as usize, page });
        }
        let mut codes = Vec::new();
        decode_u64_range(reader.rest(), count, 0..count, &mut codes)?;
        for code in &codes {
            let Some(template) = templates.get_mut(*code as usize) else {
                return Err(DecodeError::Corrupt("string without a template"));
            };
            template.strings += 1;
        }
        codes[..range.start].iter().for_each(|code| templates[*code as usize].before += 1);
        codes[range.clone()].iter().for_each(|code| templates[*code as usize].within += 1);
        let pieces_text = Padded::new(pieces_text);
        let mut page = Self { templates, pieces, pieces_text, columns, codes };
        for code in 0..n_templates {
            let bytes = page.pieces(code).iter().map(|(_, len)| u64::from(*len)).sum();
            page.templates[code].bytes = bytes;
        }
        Ok(page)
    }

    /// The pieces of a template.
    fn pieces(&self, code: usize) -> &[TextPlace] {
        let template = &self.templates[code];
        &self.pieces[template.first + code..][..=template.words]
    }

    /// The length of a string of a template; `next` says for each column where its word is.
    fn string_len(&self, code: usize, words: &Words, next: &[usize]) -> usize {
        let Template { first, words: n_words, bytes, .. } = self.templates[code];
        let lens = next[first..first + n_words].iter().map(|next| words.places[*next].1 as usize);
        bytes as usize + lens.sum::<usize>()
    }

    /// Appends a string of a template; `next` says for each column where its word is, and then where the next one is.
    fn append(&self, code: usize, words: &Words, next: &mut [usize], out: &mut Room<'_>) {
        let Template { first, words: n_words, .. } = self.templates[code];
        let pieces = self.pieces(code);
        for (next, piece) in next[first..first + n_words].iter_mut().zip(pieces) {
            out.push(&self.pieces_text, *piece);
            out.push(&words.text, words.places[*next]);
            *next += 1;
        }
        out.push(&self.pieces_text, pieces[n_words]);
    }
}

/// The words of the strings of a range.
struct Words {
    /// Column by column.
    places: Vec<TextPlace>,
    text: Padded,
    /// Of each column its first place.
    starts: Vec<usize>,
}

impl Words {
    /// Those of the templates that are wanted.
    fn decode(page: &Page<'_>, max_bytes: usize, wants: impl Fn(usize) -> bool) -> Result<Self> {
        let wanted = |(code, template): (usize, &Template)| match wants(code) {
            true => template.within as u64 * template.words as u64,
            false => 0,
        };
        // Only a word that is a whole string can be empty.
        let cells: u64 = page.templates.iter().enumerate().map(wanted).sum();
        let strings: usize = page.templates.iter().map(|template| template.within).sum();
        let max = (max_bytes + strings) as u64;
        if cells > max {
            return Err(DecodeError::TooManyBytes { bytes: cells, max });
        }
        let (mut places, mut text) = (Vec::with_capacity(cells as usize), Vec::new());
        let mut starts = Vec::with_capacity(page.columns.len());
        for (code, template) in page.templates.iter().enumerate() {
            for column in &page.columns[template.first..template.first + template.words] {
                starts.push(places.len());
                if wants(code) {
                    let max_bytes = max_bytes - text.len();
                    let mut into = Output { places: &mut places, bytes: &mut text, max_bytes };
                    column.decode(template, &mut into)?;
                }
            }
        }
        Ok(Self { places, text: Padded::new(text), starts })
    }
}

impl Column<'_> {
    /// Appends the words that the strings of the range have here.
    fn decode(&self, template: &Template, output: &mut Output<'_>) -> Result<()> {
        let range = template.before..template.before + template.within;
        if range.is_empty() {
            return Ok(());
        }
        if self.digits_min == 0 {
            return decode_page(self.page, template.strings, range, Nesting::Column, output);
        }
        let mut numbers = Vec::with_capacity(range.len());
        decode_u64_range(self.page, template.strings, range, &mut numbers)?;
        write_numbers(&numbers, self.digits_min, output)
    }
}

/// Appends numbers in decimal digits, at least so many of each.
fn write_numbers(numbers: &[u64], digits_min: usize, output: &mut Output<'_>) -> Result<()> {
    output.check((numbers.len() * digits_min) as u64)?;
    let first = output.bytes.len();
    // Most have so few digits that all of them are made, and written, at once.
    if digits_min <= EIGHT && numbers.iter().fold(0, |all, number| all.max(*number)) < TEN_TO_EIGHT
    {
        output.bytes.resize(first + EIGHT * numbers.len(), 0);
        let mut end = first;
        for number in numbers {
            let digits = eight_digits(*number);
            let zeros = (digits.trailing_zeros() as usize / 8).min(EIGHT - digits_min);
            let shown = (digits | 0x3030_3030_3030_3030) >> (8 * zeros);
            output.bytes[end..end + EIGHT].copy_from_slice(&shown.to_le_bytes());
            output.places.push((end as u32, (EIGHT - zeros) as u32));
            end += EIGHT - zeros;
        }
        output.bytes.truncate(end);
    } else {
        for number in numbers {
            let start = output.bytes.len();
            let digits = number.checked_ilog10().map_or(1, |log| log as usize + 1).max(digits_min);
            let mut rest = *number;
            output.bytes.resize(start + digits, b'0');
            for place in output.bytes[start..].iter_mut().rev() {
                *place = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
            output.places.push((start as u32, digits as u32));
        }
    }
    let written = (output.bytes.len() - first) as u64;
    output.check(written)
}

/// Digits that are made at once.
const EIGHT: usize = 8;
const TEN_TO_EIGHT: u64 = 100_000_000;

/// The eight digits of a number below 10^8, one a byte, the first in the lowest: halves, quarters and eighths of the number
/// are divided side by side in one word.
fn eight_digits(number: u64) -> u64 {
    let fours = number / 10_000 + ((number % 10_000) << 32);
    // x * 10486 >> 20 is x / 100 for x below 10^4, x * 103 >> 10 is x / 10 for x below 100.
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = hundreds + ((fours - 100 * hundreds) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens + ((twos - 10 * tens) << 8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_written_in_decimal_digits(
            numbers in prop::collection::vec((any::<u64>(), 0u32..64), 0..50),
            is_short in any::<bool>(),
            digits_min in 1usize..20,
        ) {
            let limit = if is_short { TEN_TO_EIGHT } else { u64::MAX };
            let numbers: Vec<u64> = numbers.iter().map(|(n, shift)| (n >> shift) % limit).collect();
            let (mut places, mut bytes) = (Vec::new(), b"before".to_vec());
            let mut output = Output { places: &mut places, bytes: &mut bytes, max_bytes: 1 << 20 };
            write_numbers(&numbers, digits_min, &mut output).unwrap();
            let expected: Vec<String> = numbers.iter().map(|n| format!("{n:0digits_min$}")).collect();
            let all = expected.concat();
            prop_assert_eq!(&bytes[6..], all.as_bytes());
            for ((start, len), expected) in places.iter().zip(&expected) {
                prop_assert_eq!(&bytes[*start as usize..][..*len as usize], expected.as_bytes());
            }
            prop_assert_eq!(places.len(), expected.len());
        }
    }
}
