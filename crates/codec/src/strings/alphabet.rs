//! Strings of one length that differ in few characters: identifiers of traces, sessions and requests, digests, tokens, in
//! hexadecimal digits or in base 32 or 64.
//!
//! Such characters are noise, of which a compressor saves no more than the bits that nobody uses, and which it takes long for.
//! Here each takes as many bits as the page's alphabet needs, a string is found by its number, and looked for as it is packed.
//!
//! Layout: the length of a string (uvarint); what is at each of its places: the byte that all strings have there, or [`VARIES`];
//! the number of characters that stand where strings vary (one byte), and these, ascending; then the strings, each from a byte
//! on: for each of its places that varies the number of its character in the alphabet, in as many bits as the highest number
//! has, the first in the lowest bits. Bits that are left over are zero.

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86;

use std::ops::Range;

use super::search::{TextFinder, Wants};
use super::wanted::Wanted;
use super::{Output, Strings};
use crate::{
    bitpack::bits_of,
    encoding::id,
    error::{DecodeError, Result},
    simd::SimdLevel,
    wire::{Reader, put_uvarint},
};

/// A place where strings vary.
const VARIES: u8 = 0;

/// Longer strings are no identifiers; two of the longest digests in use.
const LENGTH_MAX: usize = 256;

/// The most characters: what a register holds, and as many as six bits tell apart.
const CHARACTERS_MAX: usize = 64;

/// Strings between two looks at whether it is worth going on.
const LOOKED_AT_TOGETHER: usize = 64;

/// What [`encode`] made.
pub(super) struct Encoded {
    pub(super) page: Vec<u8>,
    /// Whether all that varies are decimal digits, as in numbers.
    pub(super) are_digits: bool,
}

/// A page, if strings are such ones and differ.
pub(super) fn encode(strings: Strings<'_>) -> Option<Encoded> {
    let (pattern, alphabet) = shape_of(strings)?;
    let shape = Shape::new(&pattern, &alphabet).ok()?;
    let mut page = vec![id::STRINGS_ALPHABET];
    put_uvarint(&mut page, pattern.len() as u64);
    page.extend_from_slice(&pattern);
    page.push(alphabet.len() as u8);
    page.extend_from_slice(&alphabet);
    page.reserve(strings.len() * shape.stride());
    let numbers = shape.numbers();
    for string in strings.iter() {
        let (mut word, mut filled) = (0u64, 0);
        for place in &shape.places {
            let number = numbers[string[usize::from(*place)] as usize];
            word |= u64::from(number) << filled;
            filled += shape.width;
            if filled >= u32::BITS {
                page.extend_from_slice(&(word as u32).to_le_bytes());
                (word, filled) = (word >> u32::BITS, filled - u32::BITS);
            }
        }
        page.extend_from_slice(&word.to_le_bytes()[..filled.div_ceil(8) as usize]);
    }
    Some(Encoded { page, are_digits: alphabet.iter().all(u8::is_ascii_digit) })
}

/// What is at each place of all strings, and which characters are where they vary.
fn shape_of(strings: Strings<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
    let first = strings.iter().next()?;
    let length = first.len();
    if !(1..=LENGTH_MAX).contains(&length)
        || strings.concatenated().len() != length * strings.len()
        || strings.iter().any(|string| string.len() != length)
    {
        return None;
    }
    // In which bits strings differ from the first one, place by place.
    let mut differ = [0u8; LENGTH_MAX];
    let differ = &mut differ[..length];
    let mut used = [false; 256];
    for together in strings.concatenated().chunks(length * LOOKED_AT_TOGETHER) {
        for string in together.chunks_exact(length) {
            let places = differ.iter_mut().zip(string).zip(first);
            places.for_each(|((differ, byte), first)| *differ |= byte ^ first);
        }
        // A place may come to vary later, with what it has here in all strings: that of the first one.
        for string in together.chunks_exact(length) {
            let places = differ.iter().zip(string);
            places.for_each(|(differ, byte)| used[*byte as usize] |= *differ != 0);
        }
        let varying = differ.iter().zip(first).filter(|(differ, _)| **differ != 0);
        varying.for_each(|(_, first)| used[*first as usize] = true);
        if used.iter().filter(|is_used| **is_used).count() > CHARACTERS_MAX {
            return None;
        }
    }
    let pattern = differ.iter().zip(first).map(|(differ, byte)| match (*differ, *byte) {
        (0, VARIES) => None,
        (0, byte) => Some(byte),
        _ => Some(VARIES),
    });
    let alphabet = (0..=u8::MAX).filter(|byte| used[*byte as usize]).collect();
    Some((pattern.collect::<Option<_>>()?, alphabet))
}

/// What strings have in common, and what they can have where they vary.
struct Shape<'a> {
    pattern: &'a [u8],
    alphabet: &'a [u8],
    /// The places that vary.
    places: Vec<u16>,
    /// Bits of a character.
    width: u32,
}

impl<'a> Shape<'a> {
    fn new(pattern: &'a [u8], alphabet: &'a [u8]) -> Result<Self> {
        let places = (0u16..).zip(pattern).filter(|(_, byte)| **byte == VARIES).map(|(at, _)| at);
        let places: Vec<u16> = places.collect();
        let is_alphabet =
            (2..=CHARACTERS_MAX).contains(&alphabet.len()) && alphabet.is_sorted_by(|a, b| a < b);
        if places.is_empty() || !is_alphabet {
            return Err(DecodeError::Corrupt("what strings of one length are made of"));
        }
        let width = bits_of(alphabet.len() as u64 - 1);
        Ok(Self { pattern, alphabet, places, width })
    }

    /// Bytes of a string.
    fn stride(&self) -> usize {
        (self.places.len() * self.width as usize).div_ceil(8)
    }

    /// The number of each character.
    fn numbers(&self) -> [u8; 256] {
        let mut numbers = [0; 256];
        for (number, character) in (0u8..).zip(self.alphabet) {
            numbers[*character as usize] = number;
        }
        numbers
    }

    /// What strings have that have a text at a place, if strings of the shape can.
    fn pack(&self, text: &[u8], at: usize) -> Option<Packed> {
        let fits = |(byte, pattern): (&u8, &u8)| match *pattern {
            VARIES => self.alphabet.binary_search(byte).is_ok(),
            pattern => *byte == pattern,
        };
        if !text.iter().zip(self.pattern.get(at..at + text.len())?).all(fits) {
            return None;
        }
        let mut packed = Packed { bits: vec![0; self.stride()], known: vec![0; self.stride()] };
        let (numbers, mask) = (self.numbers(), (1u16 << self.width) - 1);
        for (bit, place) in (0..).step_by(self.width as usize).zip(&self.places) {
            let Some(byte) = usize::from(*place).checked_sub(at).and_then(|at| text.get(at)) else {
                continue;
            };
            let put = |bytes: &mut [u8], number: u16| {
                let [low, high] = (number << (bit % 8)).to_le_bytes();
                bytes[bit / 8] |= low;
                bytes.iter_mut().skip(bit / 8 + 1).take(1).for_each(|byte| *byte |= high);
            };
            put(&mut packed.bits, numbers[*byte as usize].into());
            put(&mut packed.known, mask);
        }
        Some(packed)
    }
}

/// What is looked for, as strings are packed.
#[derive(Debug, PartialEq)]
struct Packed {
    bits: Vec<u8>,
    /// Which of these bits are; the others may be any.
    known: Vec<u8>,
}

/// A page that was opened.
struct Page<'a> {
    shape: Shape<'a>,
    packed: &'a [u8],
}

impl<'a> Page<'a> {
    fn read(mut reader: Reader<'a>, count: usize) -> Result<Self> {
        let length = reader.uvarint()?;
        if length > LENGTH_MAX as u64 {
            return Err(DecodeError::Corrupt("length of strings of one length"));
        }
        let pattern = reader.take(length as usize)?;
        let characters = reader.u8()?;
        let shape = Shape::new(pattern, reader.take(characters.into())?)?;
        let packed = reader.take(count * shape.stride())?;
        reader.finish()?;
        Ok(Self { shape, packed })
    }

    /// Some strings, packed.
    fn strings(&self, strings: Range<usize>) -> Result<&'a [u8]> {
        let stride = self.shape.stride();
        let packed = &self.packed[strings.start * stride..strings.end * stride];
        let left = stride * 8 - self.shape.places.len() * self.shape.width as usize;
        let unused = !(u8::MAX >> left);
        if left > 0 && packed.chunks_exact(stride).any(|of_one| of_one[stride - 1] & unused != 0) {
            return Err(DecodeError::Corrupt("a character more than strings have"));
        }
        Ok(packed)
    }
}

/// Decodes the wanted ones of `count` strings.
pub(super) fn decode(
    reader: Reader<'_>,
    count: usize,
    wanted: &Wanted<'_>,
    output: &mut Output<'_>,
) -> Result<()> {
    let page = Page::read(reader, count)?;
    let runs = wanted.runs();
    let (length, had) = (page.shape.pattern.len(), output.bytes.len());
    let n_wanted = runs.iter().map(Range::len).sum::<usize>();
    output.check(length as u64 * n_wanted as u64)?;
    let place = |string: usize| ((had + string * length) as u32, length as u32);
    output.places.extend((0..n_wanted).map(place));
    output.bytes.reserve(length * n_wanted);
    for run in runs {
        append_at(SimdLevel::detect(), &page.shape, page.strings(run)?, output.bytes)?;
    }
    Ok(())
}

/// Appends strings.
fn append_at(level: SimdLevel, shape: &Shape<'_>, packed: &[u8], out: &mut Vec<u8>) -> Result<()> {
    #[cfg(target_arch = "x86_64")]
    if level == SimdLevel::Avx512 {
        return x86::append(shape, packed, out);
    }
    let _ = level;
    let (width, mask) = (shape.width as usize, (1u16 << shape.width) - 1);
    for packed in packed.chunks_exact(shape.stride()) {
        let start = out.len();
        out.extend_from_slice(shape.pattern);
        for (bit, place) in (0..).step_by(width).zip(&shape.places) {
            let window = [packed[bit / 8], packed.get(bit / 8 + 1).copied().unwrap_or(0)];
            let number = u16::from_le_bytes(window) >> (bit % 8) & mask;
            let Some(character) = shape.alphabet.get(usize::from(number)) else {
                return Err(OUTSIDE);
            };
            out[start + usize::from(*place)] = *character;
        }
    }
    Ok(())
}

const OUTSIDE: DecodeError = DecodeError::Corrupt("a character outside the alphabet");

/// A bit for each string of the range whether it is wanted.
pub(super) fn search(
    reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    finder: &TextFinder<'_>,
) -> Result<Vec<u64>> {
    // Where a text of a length is in strings of another.
    let place: fn(usize, usize) -> Option<usize> = match finder.wants {
        Wants::Being => |text, string| (text == string).then_some(0),
        Wants::Starting => |_, _| Some(0),
        Wants::Ending => |text, string| string.checked_sub(text),
        // Anywhere.
        Wants::Having | Wants::Matching(_) => return search_text(reader, count, range, finder),
    };
    let page = Page::read(reader, count)?;
    let length = page.shape.pattern.len();
    let mut bits = vec![0u64; range.len().div_ceil(64)];
    let packed = page.strings(range)?;
    for text in finder.texts {
        if let Some(wanted) = place(text.len(), length).and_then(|at| page.shape.pack(text, at)) {
            find(packed, &wanted, &mut bits);
        }
    }
    Ok(bits)
}

/// The same where strings have to be written to tell.
fn search_text(
    reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    finder: &TextFinder<'_>,
) -> Result<Vec<u64>> {
    let page = Page::read(reader, count)?;
    let (length, stride) = (page.shape.pattern.len(), page.shape.stride());
    let mut text = Vec::new();
    let mut bits = Vec::with_capacity(range.len().div_ceil(64));
    for packed in page.strings(range)?.chunks(stride * WRITTEN_TOGETHER) {
        text.clear();
        append_at(SimdLevel::detect(), &page.shape, packed, &mut text)?;
        bits.extend(text.chunks(length * 64).map(|strings| {
            // Most texts are in none of them, nor where two meet.
            if !(finder.has_text)(strings) {
                return 0;
            }
            let strings = strings.chunks_exact(length).rev();
            strings.fold(0, |bits, string| bits << 1 | u64::from(finder.wants(string)))
        }));
    }
    Ok(bits)
}

/// Strings that are written to be looked at, a multiple of 64: few enough for a core's cache.
const WRITTEN_TOGETHER: usize = 256;

/// Sets the bits of those of some packed strings that are `wanted`.
fn find(packed: &[u8], wanted: &Packed, bits: &mut [u64]) {
    let stride = wanted.bits.len();
    // Eight bytes of a string mostly tell: the first ones, or the last.
    let from = if wanted.known[0] == 0 { stride.saturating_sub(8) } else { 0 };
    let (value, mask) = (word(&wanted.bits[from..]), word(&wanted.known[from..]));
    let strings = packed.len() / stride;
    for (at, bits) in bits.iter_mut().enumerate() {
        for string in at * 64..strings.min(at * 64 + 64) {
            let of_one = &packed[string * stride..];
            if word(&of_one[from..]) & mask == value {
                let mut bytes = of_one.iter().zip(&wanted.known).zip(&wanted.bits);
                let is_it = bytes.all(|((byte, known), bits)| byte & known == *bits);
                *bits |= u64::from(is_it) << (string % 64);
            }
        }
    }
}

/// The first eight of some bytes; zeros behind them if they are fewer.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

#[cfg(test)]
mod tests;
