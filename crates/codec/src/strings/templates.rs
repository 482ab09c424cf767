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
mod fit;
mod room;
mod search;
mod words;

use std::ops::Range;

pub(super) use self::encode::encode;
use self::room::{Padded, Room};
pub(super) use self::search::search;
use self::words::{Column, Words};
use super::wanted::Wanted;
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
    codes_page: &'a [u8],
    /// The template of each string; empty until [`Page::count`] decodes them.
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

/// A stretch has at most so many strings.
const STRETCH_STRINGS: usize = 8192;

/// As few stretches of one length as so many strings need; the last may be shorter.
fn stretches(count: usize) -> impl Iterator<Item = Range<usize>> {
    let len = count.div_ceil(count.div_ceil(STRETCH_STRINGS).max(1)).max(1);
    (0..count).step_by(len).map(move |start| start..count.min(start + len))
}

/// Calls `visit` with each stretch that has some of the wanted strings: its bytes, how many strings it has and which are wanted.
fn each_stretch<'a>(
    mut reader: Reader<'a>,
    count: usize,
    wanted: &Wanted<'_>,
    mut visit: impl FnMut(Reader<'a>, usize, &Wanted<'_>) -> Result<()>,
) -> Result<()> {
    for stretch in stretches(count) {
        let bytes = reader.length_prefixed()?;
        let within = wanted.within(&stretch);
        if !within.range().is_empty() {
            visit(Reader::new(bytes), stretch.len(), &within)?;
        }
    }
    reader.finish()
}

/// Texts of a template's strings lie together, so that few of the processor's guesses fail where templates take turns.
pub(super) fn decode(
    reader: Reader<'_>,
    count: usize,
    wanted: &Wanted<'_>,
    output: &mut Output<'_>,
) -> Result<()> {
    let (mut max_bytes, before) = (output.max_bytes, output.bytes.len());
    each_stretch(reader, count, wanted, |reader, count, wanted| {
        let Output { places, bytes, .. } = &mut *output;
        decode_stretch(reader, count, wanted, &mut Output { places, bytes, max_bytes })?;
        max_bytes = output.max_bytes - (output.bytes.len() - before);
        Ok(())
    })
}

fn decode_stretch(
    reader: Reader<'_>,
    count: usize,
    wanted: &Wanted<'_>,
    output: &mut Output<'_>,
) -> Result<()> {
    let runs = wanted.runs();
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return Ok(()) };
    let range = first.start..last.end;
    let mut page = Page::read(reader, count, output.max_bytes)?;
    page.count(count, &range)?;
    let chosen = Chosen::of(&page, range, &runs);
    let (n_before, bytes_before) = (output.places.len(), output.bytes.len());
    output.places.resize(n_before + chosen.ranks.len(), (0, 0));
    for code in 0..page.templates.len() {
        let (ranks, strings) = chosen.of_template(code);
        let max_bytes = output.max_bytes - (output.bytes.len() - bytes_before);
        let mut strings = strings.iter();
        page.append(code, ranks, max_bytes, output.bytes, |place| {
            if let Some(string) = strings.next() {
                output.places[n_before + *string as usize] = place;
            }
        })?;
    }
    Ok(())
}

/// The strings that are wanted, template by template.
struct Chosen {
    /// Of each its place among those of its template that the range has, and its place among those that are wanted.
    ranks: Vec<u32>,
    strings: Vec<u32>,
    /// Where those of each template end.
    ends: Vec<usize>,
}

impl Chosen {
    fn of(page: &Page<'_>, range: Range<usize>, runs: &[Range<usize>]) -> Self {
        let mut ends = vec![0usize; page.templates.len()];
        let chosen = runs.iter().flat_map(|run| &page.codes[run.clone()]);
        chosen.for_each(|code| ends[*code as usize] += 1);
        let mut all = 0;
        for end in &mut ends {
            // Where they begin, which is where they end once they are there.
            all += std::mem::replace(end, all);
        }
        let (mut ranks, mut strings) = (vec![0; all], vec![0; all]);
        let mut passed = vec![0u32; page.templates.len()];
        let (mut at, mut string) = (range.start, 0);
        for run in runs {
            page.codes[at..run.start].iter().for_each(|code| passed[*code as usize] += 1);
            for code in &page.codes[run.clone()] {
                let (next, rank) = (&mut ends[*code as usize], &mut passed[*code as usize]);
                (ranks[*next], strings[*next]) = (*rank, string);
                *next += 1;
                *rank += 1;
                string += 1;
            }
            at = run.end;
        }
        Self { ranks, strings, ends }
    }

    /// The ranks of a template's strings, and which of the wanted ones these are.
    fn of_template(&self, code: usize) -> (&[u32], &[u32]) {
        let start = if code == 0 { 0 } else { self.ends[code - 1] };
        let range = start..self.ends[code];
        (&self.ranks[range.clone()], &self.strings[range])
    }
}

/// Counters that take turns: of the few there are one would have to wait for what the code before did to it.
const COUNTERS: usize = 4;

/// How often each of `n` codes, which are all below that, is among some.
fn occurrences(codes: &[u64], n: usize) -> Vec<usize> {
    let mut counts = vec![[0usize; COUNTERS]; n];
    let mut turns = codes.chunks_exact(COUNTERS);
    for turn in &mut turns {
        for (at, code) in turn.iter().enumerate() {
            counts[*code as usize][at] += 1;
        }
    }
    turns.remainder().iter().for_each(|code| counts[*code as usize][0] += 1);
    counts.into_iter().map(|counts| counts.iter().sum()).collect()
}

impl<'a> Page<'a> {
    fn read(mut reader: Reader<'a>, count: usize, max_bytes: usize) -> Result<Self> {
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
        decode_page(page, n_pieces, &Wanted::all(0..n_pieces), Nesting::Innermost, &mut into)?;
        let mut columns = Vec::with_capacity(n_columns);
        for _ in 0..n_columns {
            let digits_min = reader.uvarint()?;
            if digits_min > DIGITS_MAX as u64 {
                return Err(DecodeError::Corrupt("number of digits"));
            }
            let page = reader.length_prefixed()?;
            columns.push(Column { digits_min: digits_min as usize, page });
        }
        let (pieces_text, codes_page) = (Padded::new(pieces_text), reader.rest());
        let mut page =
            Self { templates, pieces, pieces_text, columns, codes_page, codes: Vec::new() };
        for code in 0..n_templates {
            let bytes = page.pieces(code).iter().map(|(_, len)| u64::from(*len)).sum();
            page.templates[code].bytes = bytes;
        }
        Ok(page)
    }

    /// Finds the template of each string, and so how many strings of each are in the page, before the range and within it.
    fn count(&mut self, count: usize, range: &Range<usize>) -> Result<()> {
        let codes = &mut self.codes;
        decode_u64_range(self.codes_page, count, 0..count, codes)?;
        let n_templates = self.templates.len();
        if codes.iter().fold(0, |most, code| most.max(*code)) >= n_templates as u64 {
            return Err(DecodeError::Corrupt("string without a template"));
        }
        let before = occurrences(&codes[..range.start], n_templates);
        let within = occurrences(&codes[range.clone()], n_templates);
        let behind = occurrences(&codes[range.end..], n_templates);
        for (code, template) in self.templates.iter_mut().enumerate() {
            (template.before, template.within) = (before[code], within[code]);
            template.strings = before[code] + within[code] + behind[code];
        }
        Ok(())
    }

    /// The columns of a template's words.
    fn columns(&self, code: usize) -> &[Column<'a>] {
        let template = &self.templates[code];
        &self.columns[template.first..template.first + template.words]
    }

    /// The pieces of a template.
    fn pieces(&self, code: usize) -> &[TextPlace] {
        let template = &self.templates[code];
        &self.pieces[template.first + code..][..=template.words]
    }

    /// Appends strings of a template, those with some ranks among those that the range has, in order; `place` is told where each is.
    fn append(
        &self,
        code: usize,
        ranks: &[u32],
        max_bytes: usize,
        out: &mut Vec<u8>,
        mut place: impl FnMut(TextPlace),
    ) -> Result<()> {
        let (Some(first), Some(last)) = (ranks.first(), ranks.last()) else { return Ok(()) };
        let (template, pieces) = (&self.templates[code], self.pieces(code));
        let span = *first as usize..*last as usize + 1;
        // Only a word that is a whole string can be empty.
        let (cells, max) =
            (span.len() as u64 * template.words as u64, (max_bytes + span.len()) as u64);
        if cells > max {
            return Err(DecodeError::TooManyBytes { bytes: cells, max });
        }
        let ranks = || ranks.iter().map(|rank| *rank as usize);
        let words: Vec<Words> = self
            .columns(code)
            .iter()
            .map(|column| column.words(template, span.clone(), ranks(), max_bytes))
            .collect::<Result<_>>()?;
        let of_pieces = template.bytes.saturating_mul(ranks().len() as u64);
        let total = words.iter().map(Words::bytes).fold(of_pieces, u64::saturating_add);
        if total > max_bytes as u64 {
            return Err(DecodeError::TooManyBytes { bytes: total, max: max_bytes as u64 });
        }
        let mut room = Room::new(out, total as usize);
        for at in 0..ranks().len() {
            let start = room.len();
            for (words, piece) in words.iter().zip(pieces) {
                room.push(&self.pieces_text, *piece);
                words.append(at, &mut room);
            }
            room.push(&self.pieces_text, pieces[template.words]);
            place((start as u32, (room.len() - start) as u32));
        }
        room.finish();
        Ok(())
    }
}
