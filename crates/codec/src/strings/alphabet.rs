//! Strings of one length that differ in few characters: identifiers of traces, sessions and requests, digests, tokens, in
//! hexadecimal digits or in base 32 or 64.
//!
//! Such characters are noise, of which a compressor saves no more than the bits that nobody uses, and which it takes long for.
//! Here each takes as many bits as the page's alphabet needs, a string is found by its number, and looked for as it is packed
//! (`search`). Some begin with a time, which is no noise: numbers that ascend, mostly (`heads`).
//!
//! Layout: the length of a string (uvarint); what is at each of its places: the byte that all strings have there, or [`VARIES`];
//! the number of characters that stand where strings vary (one byte), and these, ascending; the number of words that heads
//! have (one byte), and for each an integer page, after its length: of each string its characters' numbers at the places that
//! vary, at the first ones for the first word and so on, as many as 64 bits hold, each in as many bits as the highest number has,
//! the last in the lowest bits; then the strings, each from a byte on: for each other place that varies the number of its
//! character, in as many bits, the first in the lowest bits. Bits that are left over are zero.

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2;
mod heads;
mod search;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86;

use std::ops::Range;

use self::heads::Heads;
pub(super) use self::search::search;
use super::wanted::Wanted;
use super::{Output, Strings};
use crate::{
    bitpack::bits_of,
    encoding::{Effort, id},
    error::{DecodeError, Result},
    simd::SimdLevel,
    wire::{Reader, put_length_prefixed, put_uvarint},
};

/// A place where strings vary.
const VARIES: u8 = 0;

/// Longer strings are no identifiers; two of the longest digests in use.
const LENGTH_MAX: usize = 256;

/// The most characters: what a register holds, and as many as six bits tell apart.
const CHARACTERS_MAX: usize = 64;

/// So many strings mostly have all characters, and tell whether these are few.
const SAMPLED: usize = 64;

/// What [`encode`] made.
pub(super) struct Encoded {
    pub(super) page: Vec<u8>,
    /// Whether all that varies are decimal digits, as in numbers.
    pub(super) are_digits: bool,
}

/// A page, if strings are such ones and differ.
pub(super) fn encode(strings: Strings<'_>, effort: Effort) -> Option<Encoded> {
    encode_at(SimdLevel::detect(), strings, effort)
}

fn encode_at(level: SimdLevel, strings: Strings<'_>, effort: Effort) -> Option<Encoded> {
    let (pattern, alphabet) = shape_of(level, strings)?;
    let mut shape = Shape::new(&pattern, &alphabet).ok()?;
    let mut page = vec![id::STRINGS_ALPHABET];
    put_uvarint(&mut page, pattern.len() as u64);
    page.extend_from_slice(&pattern);
    page.push(alphabet.len() as u8);
    page.extend_from_slice(&alphabet);
    let heads = heads::encode(strings, &shape, effort);
    shape.head_words = heads.len();
    page.push(heads.len() as u8);
    heads.iter().for_each(|of_word| put_length_prefixed(&mut page, of_word));
    pack_at(level, strings.concatenated(), &shape, &mut page);
    Some(Encoded { page, are_digits: alphabet.iter().all(u8::is_ascii_digit) })
}

/// Appends strings, which lie one behind the other, packed without their heads.
fn pack_at(level: SimdLevel, text: &[u8], shape: &Shape<'_>, page: &mut Vec<u8>) {
    if shape.packed_places().is_empty() {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if level == SimdLevel::Avx512 && shape.alphabet.is_ascii() {
        return x86::pack(text, shape, page);
    }
    let _ = level;
    let (numbers, places) = (shape.numbers(), shape.packed_places());
    let strings = text.len() / shape.pattern.len();
    let end = page.len() + strings * shape.stride();
    let mut at = page.len();
    // Words are written whole.
    page.resize(end + size_of::<u64>(), 0);
    for string in text.chunks_exact(shape.pattern.len()) {
        for places in places.chunks(8) {
            let mut eight = [0; 8];
            for (number, place) in eight.iter_mut().zip(places) {
                *number = numbers[string[usize::from(*place)] as usize];
            }
            let word = side_by_side(u64::from_le_bytes(eight), shape.width);
            page[at..at + size_of::<u64>()].copy_from_slice(&word.to_le_bytes());
            at += (places.len() * shape.width as usize).div_ceil(8);
        }
    }
    page.truncate(end);
}

/// Eight bytes, of which only so many low bits are set, as a number of eight times as many bits.
#[inline]
fn side_by_side(bytes: u64, width: u32) -> u64 {
    let pairs = bytes & 0x00ff_00ff_00ff_00ff | (bytes >> 8 & 0x00ff_00ff_00ff_00ff) << width;
    let fours = pairs & 0xffff_0000_ffff | (pairs >> 16 & 0xffff_0000_ffff) << (2 * width);
    fours & 0xffff_ffff | (fours >> 32) << (4 * width)
}

/// What is at each place of all strings, and which characters are where they vary.
fn shape_of(level: SimdLevel, strings: Strings<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
    let first = strings.iter().next()?;
    let (length, text) = (first.len(), strings.concatenated());
    if !(1..=LENGTH_MAX).contains(&length)
        || text.len() != length * strings.len()
        || strings.iter().any(|string| string.len() != length)
    {
        return None;
    }
    // In which bits strings differ from the first one, place by place.
    let mut differ = vec![0u8; length];
    for string in text.chunks_exact(length) {
        let places = differ.iter_mut().zip(string).zip(first);
        places.for_each(|((differ, byte), first)| *differ |= byte ^ first);
    }
    let mut used = characters(&text[..text.len().min(length * SAMPLED)], &differ);
    // If the others have too many, no shape has them.
    if used.iter().filter(|is_used| **is_used).count() > CHARACTERS_MAX {
        return None;
    }
    if !are_all_known_at(level, text, &differ, &used) {
        used = characters(text, &differ);
    }
    let pattern = differ.iter().zip(first).map(|(differ, byte)| match (*differ, *byte) {
        (0, VARIES) => None,
        (0, byte) => Some(byte),
        _ => Some(VARIES),
    });
    let alphabet = (0..=u8::MAX).filter(|byte| used[*byte as usize]).collect();
    Some((pattern.collect::<Option<_>>()?, alphabet))
}

/// Which bytes strings have where they differ.
fn characters(text: &[u8], differ: &[u8]) -> [bool; 256] {
    let mut used = [false; 256];
    for string in text.chunks_exact(differ.len()) {
        let places = differ.iter().zip(string);
        places.for_each(|(differ, byte)| used[*byte as usize] |= *differ != 0);
    }
    used
}

/// Whether it is clear without a look at each byte that strings have no others where they differ.
fn are_all_known_at(level: SimdLevel, text: &[u8], differ: &[u8], known: &[bool; 256]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if level == SimdLevel::Avx512 {
        return x86::are_all_known(text, differ, known);
    }
    let _ = level;
    let unknown: [u8; 256] = std::array::from_fn(|byte| if known[byte] { 0 } else { u8::MAX });
    let of_string = |string: &[u8]| {
        let places = differ.iter().zip(string);
        places.fold(0, |all, (differ, byte)| all | differ & unknown[usize::from(*byte)])
    };
    text.chunks_exact(differ.len()).fold(0, |all, string| all | of_string(string)) == 0
}

/// What strings have in common, and what they can have where they vary.
struct Shape<'a> {
    pattern: &'a [u8],
    alphabet: &'a [u8],
    /// The places that vary.
    places: Vec<u16>,
    /// Words of a head.
    head_words: usize,
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
        Ok(Self { pattern, alphabet, places, head_words: 0, width })
    }

    /// The places of a word.
    fn word_places(&self) -> usize {
        (u64::BITS / self.width) as usize
    }

    /// How many of the places that vary heads have.
    fn head_places(&self) -> usize {
        self.places.len().min(self.head_words * self.word_places())
    }

    /// The places that heads do not have.
    fn packed_places(&self) -> &[u16] {
        &self.places[self.head_places()..]
    }

    /// The places of a word of heads, and by how many bits the number of each is shifted there.
    fn places_of_word(&self, word: usize) -> impl Iterator<Item = (usize, u32)> {
        let places = self.places.chunks(self.word_places()).nth(word).unwrap_or_default();
        let shifts = (0..places.len() as u32).rev().map(|behind| behind * self.width);
        places.iter().map(|place| usize::from(*place)).zip(shifts)
    }

    /// Bits of a packed string.
    fn packed_bits(&self) -> usize {
        self.packed_places().len() * self.width as usize
    }

    /// Bytes of a packed string.
    fn stride(&self) -> usize {
        self.packed_bits().div_ceil(8)
    }

    /// The number of each character.
    fn numbers(&self) -> [u8; 256] {
        let mut numbers = [0; 256];
        for (number, character) in (0u8..).zip(self.alphabet) {
            numbers[*character as usize] = number;
        }
        numbers
    }
}

/// A page that was opened.
struct Page<'a> {
    shape: Shape<'a>,
    heads: Heads<'a>,
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
        let mut shape = Shape::new(pattern, reader.take(characters.into())?)?;
        shape.head_words = reader.u8()?.into();
        let heads = Heads::read(&mut reader, &shape, count)?;
        let packed = reader.take(count * shape.stride())?;
        reader.finish()?;
        Ok(Self { shape, heads, packed })
    }

    /// Some strings, packed.
    fn strings(&self, strings: Range<usize>) -> Result<&'a [u8]> {
        let stride = self.shape.stride();
        let packed = &self.packed[strings.start * stride..strings.end * stride];
        let left = stride * 8 - self.shape.packed_bits();
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
    let words = page.heads.of(wanted)?;
    let mut words = words.as_slice();
    let place = |string: usize| ((had + string * length) as u32, length as u32);
    output.places.extend((0..n_wanted).map(place));
    output.bytes.reserve(length * n_wanted);
    let writer = Writer::new(&page.shape, n_wanted);
    for run in runs {
        let of_run = words.split_off(..run.len() * page.shape.head_words).unwrap_or_default();
        let parts = Parts { strings: run.len(), words: of_run, packed: page.strings(run)? };
        writer.append(parts, output.bytes)?;
    }
    Ok(())
}

/// Some strings: the words of their heads, string by string, and the rest of them packed.
#[derive(Clone, Copy)]
struct Parts<'a> {
    strings: usize,
    words: &'a [u64],
    packed: &'a [u8],
}

impl Parts<'_> {
    /// The parts of a string.
    #[inline]
    fn of(&self, string: usize, shape: &Shape<'_>, stride: usize) -> (&[u64], &[u8]) {
        let words = &self.words[string * shape.head_words..][..shape.head_words];
        (words, &self.packed[string * stride..][..stride])
    }
}

/// Writes strings of a shape, with what its instructions need to know of the shape.
struct Writer<'a> {
    shape: &'a Shape<'a>,
    layout: Layout,
}

/// What instructions need to know of a shape.
enum Layout {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Layout),
    #[cfg(target_arch = "x86_64")]
    Avx512(x86::Layout),
}

/// With AVX2 fewer strings are written sooner than a layout is made.
#[cfg(target_arch = "x86_64")]
const AVX2_STRINGS_MIN: usize = 8;

impl<'a> Writer<'a> {
    /// For so many strings in all.
    fn new(shape: &'a Shape<'a>, strings: usize) -> Self {
        match SimdLevel::detect() {
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 if strings < AVX2_STRINGS_MIN => Self::at(SimdLevel::Portable, shape),
            level => {
                let _ = strings;
                Self::at(level, shape)
            }
        }
    }

    fn at(level: SimdLevel, shape: &'a Shape<'a>) -> Self {
        let layout = match level {
            SimdLevel::Portable => Layout::Portable,
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 => Layout::Avx2(avx2::Layout::new(shape)),
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512 => Layout::Avx512(x86::Layout::new(shape)),
        };
        Self { shape, layout }
    }

    /// Appends strings.
    fn append(&self, parts: Parts<'_>, out: &mut Vec<u8>) -> Result<()> {
        match &self.layout {
            Layout::Portable => append_portable(self.shape, parts, out),
            #[cfg(target_arch = "x86_64")]
            Layout::Avx2(layout) => avx2::append(self.shape, layout, parts, out),
            #[cfg(target_arch = "x86_64")]
            Layout::Avx512(layout) => x86::append(self.shape, layout, parts, out),
        }
    }
}

fn append_portable(shape: &Shape<'_>, parts: Parts<'_>, out: &mut Vec<u8>) -> Result<()> {
    let (width, stride, mask) = (shape.width as usize, shape.stride(), (1u16 << shape.width) - 1);
    let character = |number: u16| shape.alphabet.get(usize::from(number)).copied().ok_or(OUTSIDE);
    for string in 0..parts.strings {
        let (words, packed) = parts.of(string, shape, stride);
        let start = out.len();
        out.extend_from_slice(shape.pattern);
        for (word, at) in words.iter().zip(0..) {
            for (place, shift) in shape.places_of_word(at) {
                out[start + place] = character((word >> shift) as u16 & mask)?;
            }
        }
        for (bit, place) in (0..).step_by(width).zip(shape.packed_places()) {
            let window = [packed[bit / 8], packed.get(bit / 8 + 1).copied().unwrap_or(0)];
            let number = u16::from_le_bytes(window) >> (bit % 8) & mask;
            out[start + usize::from(*place)] = character(number)?;
        }
    }
    Ok(())
}

const OUTSIDE: DecodeError = DecodeError::Corrupt("a character outside the alphabet");

#[cfg(test)]
mod tests;
