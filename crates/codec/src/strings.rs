//! Pages of strings: arbitrary bytes, addressed by offsets as in Arrow; decoded to places in a text, which equal
//! strings may share.
//!
//! Encodings: one string; lengths and bytes; characters of an alphabet; a dictionary and codes; lengths and compressed blocks; templates
//! and what varies in them.
//! Lengths and codes are integer pages, so that equal lengths and runs of codes cost next to
//! nothing.
//!
//! Invariant: nothing is allocated for a decoded size before that size was checked against the
//! caller's limit.

mod alphabet;
mod blocks;
mod dictionary;
mod search;
mod templates;
mod wanted;

#[cfg(test)]
mod tests;

use std::ops::Range;

pub use self::search::{TextFinder, Wants, are_searched_apart, search_strings};
use self::wanted::Wanted;
use crate::{
    encoding::{Effort, id},
    error::{DecodeError, Result, check_range},
    int::{decode_u64_range, encode_u64},
    wire::{Reader, put_length_prefixed},
};

/// Smaller pages are not worth a compressor's set-up.
const COMPRESS_BYTES_MIN: usize = 512;

/// Strings as offsets into bytes: string `i` is `bytes[offsets[i]..offsets[i + 1]]`.
#[derive(Clone, Copy)]
struct Strings<'a> {
    offsets: &'a [u32],
    bytes: &'a [u8],
}

impl<'a> Strings<'a> {
    fn len(self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    fn get(self, index: usize) -> &'a [u8] {
        &self.bytes[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }

    fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        self.offsets.windows(2).map(move |pair| &self.bytes[pair[0] as usize..pair[1] as usize])
    }

    /// All strings, one after the other.
    fn concatenated(self) -> &'a [u8] {
        match (self.offsets.first(), self.offsets.last()) {
            (Some(&first), Some(&last)) => &self.bytes[first as usize..last as usize],
            _ => &[],
        }
    }

    fn lengths(self) -> Vec<u64> {
        self.offsets.windows(2).map(|pair| u64::from(pair[1] - pair[0])).collect()
    }
}

/// Strings one after the other.
struct Gathered {
    offsets: Vec<u32>,
    bytes: Vec<u8>,
}

impl Default for Gathered {
    fn default() -> Self {
        Self { offsets: vec![0], bytes: Vec::new() }
    }
}

impl Gathered {
    fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.offsets.push(self.bytes.len() as u32);
    }

    fn strings(&self) -> Strings<'_> {
        Strings { offsets: &self.offsets, bytes: &self.bytes }
    }
}

/// What a page of strings is part of: it has no pages of strings like those it is within.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Nesting {
    /// Nothing.
    Outermost,
    /// Templates: it is a column of words.
    Column,
    /// The entries of a dictionary, or the pieces of templates.
    Innermost,
}

/// Appends one page with the strings `bytes[offsets[i]..offsets[i + 1]]`.
///
/// # Panics
/// If the offsets do not ascend within `bytes`, or there are more strings than
/// [`crate::PAGE_COUNT_MAX`].
pub fn encode_strings(offsets: &[u32], bytes: &[u8], effort: Effort, out: &mut Vec<u8>) {
    assert!(offsets.windows(2).all(|pair| pair[0] <= pair[1]), "BUG: offsets must ascend");
    let strings = Strings { offsets, bytes };
    assert!(strings.len() <= crate::PAGE_COUNT_MAX, "BUG: a page of {} strings", strings.len());
    encode_page(strings, effort, Nesting::Outermost, out);
}

/// A dictionary that is at most such a part of the strings is taken at once, unless the page is for keeping: a compressor takes
/// as long as all else.
const DICTIONARY_PART: usize = 6;

fn encode_page(strings: Strings<'_>, effort: Effort, nesting: Nesting, out: &mut Vec<u8>) {
    if strings.len() > 0 {
        let first = strings.get(0);
        if strings.concatenated().len() == first.len() * strings.len()
            && strings.iter().all(|string| string == first)
        {
            out.push(id::STRINGS_CONSTANT);
            out.extend_from_slice(first);
            return;
        }
    }
    let dictionary = match nesting {
        Nesting::Innermost => None,
        _ => dictionary::encode(strings, effort),
    };
    if let Some(page) = &dictionary
        && effort != Effort::Cold
        && page.len() * DICTIONARY_PART <= strings.concatenated().len()
    {
        out.extend_from_slice(page);
        return;
    }
    let start = out.len();
    let is_regular = encode_without_strings(strings, effort, out);
    let len = out.len() - start;
    // Codes answer a filter without touching the strings: a dictionary may be a little larger.
    let better = dictionary.filter(|page| page.len() < len * 5 / 4);
    let better = match (better, nesting) {
        (None, Nesting::Outermost) if is_regular && effort == Effort::Cold => {
            templates::encode(strings, effort).filter(|page| page.len() <= len)
        }
        (better, _) => better,
    };
    if let Some(page) = better {
        out.truncate(start);
        out.extend_from_slice(&page);
    }
}

/// Appends a page that has no pages of strings in it. Gives whether strings have something in common, so that templates may
/// take less.
fn encode_without_strings(strings: Strings<'_>, effort: Effort, out: &mut Vec<u8>) -> bool {
    let bytes = strings.concatenated();
    let is_long = bytes.len() >= COMPRESS_BYTES_MIN;
    let codec = (effort != Effort::Fast && is_long).then(|| blocks::Codec::of(effort));
    let Some(packed) = alphabet::encode(strings, effort) else {
        return encode_plain_or_blocks(strings, effort, codec, out);
    };
    // That characters are noise takes a compressor long to find: the first block tells.
    let is_noise = codec.is_some_and(|codec| {
        let block = blocks::first(bytes);
        let compressed = codec.compress(block).len() as u64;
        packed.page.len() as u64 * block.len() as u64 <= compressed * bytes.len() as u64
    });
    let start = out.len();
    if !is_noise {
        encode_plain_or_blocks(strings, effort, codec, out);
        // Packed strings are read one by one, and looked for as they are: they may be a little larger.
        if packed.page.len() >= (out.len() - start) * 9 / 8 {
            return out[start] != id::STRINGS_PLAIN;
        }
        out.truncate(start);
    }
    out.extend_from_slice(&packed.page);
    // Templates know numbers.
    packed.are_digits
}

/// Appends a page of strings as they are, unless they are much shorter compressed; whether they are.
fn encode_plain_or_blocks(
    strings: Strings<'_>,
    effort: Effort,
    codec: Option<blocks::Codec>,
    out: &mut Vec<u8>,
) -> bool {
    let mut lengths = Vec::new();
    encode_u64(&strings.lengths(), effort, &mut lengths);
    let bytes = strings.concatenated();
    if let Some(codec) = codec {
        let compressed = codec.compress(bytes);
        if compressed.len() <= bytes.len() * 7 / 8 {
            out.push(codec.id());
            put_length_prefixed(out, &lengths);
            out.extend_from_slice(&compressed);
            return true;
        }
    }
    out.push(id::STRINGS_PLAIN);
    put_length_prefixed(out, &lengths);
    out.extend_from_slice(bytes);
    false
}

/// Whether strings of a page, of so many bytes in all, take about as long to read one here and one there as all of them, and are
/// not much larger with their lengths in a page of short pieces, in which they do not.
///
/// Some are compressed together, of others what they are made of is counted from the first on. Codes of a dictionary may be slow too,
/// but it says of all strings which are equal, and a piece only of its own.
#[must_use]
pub fn are_slow_apart(page: &[u8], text_bytes: usize) -> bool {
    let is_slow =
        matches!(page.first(), Some(&(id::STRINGS_LZ4 | id::STRINGS_ZSTD | id::STRINGS_TEMPLATES)));
    is_slow && text_bytes <= page.len().saturating_mul(TEXT_PER_BYTE)
}

/// Text of more than so many times the bytes of its page is much larger.
const TEXT_PER_BYTE: usize = 8;

/// Where a decoded string is: its first byte and its length.
pub type TextPlace = (u32, u32);

/// Appends the `count` strings of a page; as [`decode_strings_range`].
pub fn decode_strings(
    bytes: &[u8],
    count: usize,
    max_bytes: usize,
    out_places: &mut Vec<TextPlace>,
    out_bytes: &mut Vec<u8>,
) -> Result<()> {
    decode_strings_range(bytes, count, 0..count, max_bytes, out_places, out_bytes)
}

/// Appends the given strings of a page of `count`.
///
/// Every string appends its place in `out_bytes`. Strings of a dictionary share its text, unless theirs is less. Nothing
/// larger than `max_bytes` is decoded: neither the strings, as if none were shared, nor, where there is one, the
/// dictionary. Both vectors are left as they were on error.
pub fn decode_strings_range(
    bytes: &[u8],
    count: usize,
    range: Range<usize>,
    max_bytes: usize,
    out_places: &mut Vec<TextPlace>,
    out_bytes: &mut Vec<u8>,
) -> Result<()> {
    decode_wanted(bytes, count, &Wanted::all(range), max_bytes, (out_places, out_bytes))
}

/// Appends those of the strings `range` of a page of `count` whose bit is set in `selected`, which begins with that of the
/// range's first; as [`decode_strings_range`].
///
/// # Panics
/// If there is not a bit for each string of the range.
pub fn decode_selected_strings(
    bytes: &[u8],
    count: usize,
    (range, selected): (Range<usize>, &[u64]),
    max_bytes: usize,
    out_places: &mut Vec<TextPlace>,
    out_bytes: &mut Vec<u8>,
) -> Result<()> {
    assert!(selected.len() * 64 >= range.len(), "BUG: not a bit for each string");
    let wanted = Wanted::selected(range, selected);
    decode_wanted(bytes, count, &wanted, max_bytes, (out_places, out_bytes))
}

fn decode_wanted(
    bytes: &[u8],
    count: usize,
    wanted: &Wanted<'_>,
    max_bytes: usize,
    (out_places, out_bytes): (&mut Vec<TextPlace>, &mut Vec<u8>),
) -> Result<()> {
    check_range(&wanted.range(), count)?;
    let before = (out_places.len(), out_bytes.len());
    let room = (u32::MAX as usize).saturating_sub(out_bytes.len());
    let mut output =
        Output { places: out_places, bytes: out_bytes, max_bytes: max_bytes.min(room) };
    decode(bytes, count, wanted, Nesting::Outermost, &mut output).inspect_err(|_| {
        out_places.truncate(before.0);
        out_bytes.truncate(before.1);
    })
}

/// Where decoded strings go.
struct Output<'a> {
    places: &'a mut Vec<TextPlace>,
    bytes: &'a mut Vec<u8>,
    /// What may still be appended; keeps every place below 2^32.
    max_bytes: usize,
}

impl Output<'_> {
    fn check(&self, bytes: u64) -> Result<()> {
        if bytes > self.max_bytes as u64 {
            return Err(DecodeError::TooManyBytes { bytes, max: self.max_bytes as u64 });
        }
        Ok(())
    }

    /// Appends the places of the wanted ones of strings with some lengths, whose bytes shall follow what is there. Gives where these are
    /// in the concatenation of all: a span for each run of strings.
    fn push_wanted(
        &mut self,
        mut lengths: Vec<u64>,
        wanted: &Wanted<'_>,
    ) -> Result<Vec<Range<u64>>> {
        let (mut at, mut end) = (0, 0);
        let mut sum = |to: usize| {
            end += lengths[at..to].iter().sum::<u64>();
            at = to;
            end
        };
        let spans =
            wanted.runs().iter().map(|run| sum(run.start)..sum(run.end)).collect::<Vec<_>>();
        self.check(spans.iter().map(|span| span.end - span.start).sum())?;
        let range = wanted.range();
        lengths.truncate(range.end);
        lengths.drain(..range.start);
        wanted.keep(&mut lengths);
        let mut start = self.bytes.len() as u32;
        self.places.extend(lengths.iter().map(|length| {
            let place = (start, *length as u32);
            start += place.1;
            place
        }));
        Ok(spans)
    }
}

fn decode(
    bytes: &[u8],
    count: usize,
    wanted: &Wanted<'_>,
    nesting: Nesting,
    output: &mut Output<'_>,
) -> Result<()> {
    let mut reader = Reader::new(bytes);
    match reader.u8()? {
        id::STRINGS_CONSTANT if count > 0 => decode_constant(reader.rest(), wanted, output),
        id::STRINGS_PLAIN => {
            let (lengths, total) = read_lengths(&mut reader, count)?;
            let bytes = reader.rest();
            check_total(bytes.len() as u64, total)?;
            for span in output.push_wanted(lengths, wanted)? {
                output.bytes.extend_from_slice(&bytes[span.start as usize..span.end as usize]);
            }
            Ok(())
        }
        id @ (id::STRINGS_LZ4 | id::STRINGS_ZSTD) => {
            let (lengths, total) = read_lengths(&mut reader, count)?;
            let spans = output.push_wanted(lengths, wanted)?;
            let codec = blocks::Codec::from_id(id);
            codec.decompress(reader, total, &spans, output.bytes)
        }
        id::STRINGS_ALPHABET if count > 0 => alphabet::decode(reader, count, wanted, output),
        id::STRINGS_DICTIONARY if nesting < Nesting::Innermost && count > 0 => {
            dictionary::decode(reader, count, wanted, output)
        }
        id::STRINGS_TEMPLATES if nesting == Nesting::Outermost && count > 0 => {
            templates::decode(reader, count, wanted, output)
        }
        id::STRINGS_CONSTANT
        | id::STRINGS_ALPHABET
        | id::STRINGS_DICTIONARY
        | id::STRINGS_TEMPLATES => Err(DecodeError::Corrupt("a string page that may not be here")),
        id => Err(DecodeError::WrongEncoding { id, expected: "strings" }),
    }
}

fn decode_constant(string: &[u8], wanted: &Wanted<'_>, output: &mut Output<'_>) -> Result<()> {
    let n_wanted = wanted.runs().iter().map(Range::len).sum::<usize>();
    output.check((string.len() as u64).saturating_mul(n_wanted as u64))?;
    let place = (output.bytes.len() as u32, string.len() as u32);
    if n_wanted > 0 {
        output.bytes.extend_from_slice(string);
    }
    output.places.resize(output.places.len() + n_wanted, place);
    Ok(())
}

fn check_total(present: u64, total: u64) -> Result<()> {
    match present.cmp(&total) {
        std::cmp::Ordering::Less => Err(DecodeError::Truncated { needed: total - present }),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(DecodeError::TrailingBytes((present - total) as usize)),
    }
}

/// The lengths of the strings, and that of their concatenation.
fn read_lengths(reader: &mut Reader<'_>, count: usize) -> Result<(Vec<u64>, u64)> {
    let page = reader.length_prefixed()?;
    let mut lengths = Vec::new();
    decode_u64_range(page, count, 0..count, &mut lengths)?;
    let total = lengths.iter().fold(0u64, |all, length| all.saturating_add(*length));
    // Offsets are 32 bits wide everywhere.
    if total > u64::from(u32::MAX) {
        return Err(DecodeError::Corrupt("strings of more than 4 GiB"));
    }
    Ok((lengths, total))
}
