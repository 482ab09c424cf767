//! Which strings of an alphabet are some text, begin or end with one, or have one in them.
//!
//! All but the last is told by bits of the strings as they are packed, and of their heads.

use std::ops::Range;

use super::{Page, Parts, Shape, VARIES, Wanted, Writer};
use crate::error::Result;
use crate::strings::search::{TextFinder, Wants, filled};
use crate::wire::Reader;

/// A bit for each string of the range whether it is wanted.
pub(in crate::strings) fn search(
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
    let packed = page.strings(range.clone())?;
    let wanted = Wanted::all(range);
    let mut words: Vec<Option<Vec<u64>>> = vec![None; page.shape.head_words];
    for text in finder.texts {
        let sought = place(text.len(), length).and_then(|at| Sought::new(&page.shape, text, at));
        let Some(sought) = sought else { continue };
        let mut found = sought.find(packed, wanted.range().len());
        for ((numbers, of_head), word) in words.iter_mut().zip(&sought.words).zip(0..) {
            if of_head.known == 0 || found.iter().all(|found| *found == 0) {
                continue;
            }
            let numbers = match numbers {
                Some(numbers) => numbers,
                None => numbers.insert(page.heads.word(word, &wanted)?),
            };
            of_head.keep(numbers, &mut found);
        }
        bits.iter_mut().zip(found).for_each(|(bits, found)| *bits |= found);
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
    let words = page.heads.of(&Wanted::all(range.clone()))?;
    let packed = page.strings(range.clone())?;
    let writer = Writer::new(&page.shape, range.len());
    let mut text = Vec::new();
    let mut bits = Vec::with_capacity(range.len().div_ceil(64));
    for start in (0..range.len()).step_by(WRITTEN_TOGETHER) {
        let strings = range.len().min(start + WRITTEN_TOGETHER) - start;
        let words = &words[start * page.shape.head_words..][..strings * page.shape.head_words];
        let packed = &packed[start * stride..][..strings * stride];
        text.clear();
        writer.append(Parts { strings, words, packed }, &mut text)?;
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

/// What strings have that have a text at a place.
#[derive(Debug, PartialEq)]
pub(super) struct Sought {
    /// Packed.
    bits: Vec<u8>,
    /// Which of these bits are; the others may be any.
    known: Vec<u8>,
    /// The same of heads, word by word.
    pub(super) words: Vec<SoughtWord>,
}

/// What a word of heads has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SoughtWord {
    bits: u64,
    known: u64,
}

impl SoughtWord {
    /// Clears the bits of strings that have another one.
    pub(super) fn keep(&self, words: &[u64], found: &mut [u64]) {
        for (found, words) in found.iter_mut().zip(words.chunks(64)) {
            let is_it = |word: &u64| word & self.known == self.bits;
            *found &= words.iter().rev().fold(0, |bits, word| bits << 1 | u64::from(is_it(word)));
        }
    }
}

impl Sought {
    /// `None` if no string of the shape can have the text there.
    pub(super) fn new(shape: &Shape<'_>, text: &[u8], at: usize) -> Option<Self> {
        let fits = |(byte, pattern): (&u8, &u8)| match *pattern {
            VARIES => shape.alphabet.binary_search(byte).is_ok(),
            pattern => *byte == pattern,
        };
        if !text.iter().zip(shape.pattern.get(at..at + text.len())?).all(fits) {
            return None;
        }
        let (numbers, mask) = (shape.numbers(), (1u16 << shape.width) - 1);
        let number = |place: usize| {
            let byte = place.checked_sub(at).and_then(|at| text.get(at))?;
            Some(u16::from(numbers[*byte as usize]))
        };
        let of_word = |word: usize| {
            let mut sought = SoughtWord::default();
            for (place, shift) in shape.places_of_word(word) {
                if let Some(number) = number(place) {
                    sought.bits |= u64::from(number) << shift;
                    sought.known |= u64::from(mask) << shift;
                }
            }
            sought
        };
        let words = (0..shape.head_words).map(of_word).collect();
        let mut sought =
            Self { bits: vec![0; shape.stride()], known: vec![0; shape.stride()], words };
        for (bit, place) in (0..).step_by(shape.width as usize).zip(shape.packed_places()) {
            let Some(number) = number(usize::from(*place)) else { continue };
            let put = |bytes: &mut [u8], number: u16| {
                let [low, high] = (number << (bit % 8)).to_le_bytes();
                bytes[bit / 8] |= low;
                bytes.iter_mut().skip(bit / 8 + 1).take(1).for_each(|byte| *byte |= high);
            };
            put(&mut sought.bits, number);
            put(&mut sought.known, mask);
        }
        Some(sought)
    }

    /// A bit for each of so many packed strings whether it has that, whatever its head is.
    pub(super) fn find(&self, packed: &[u8], strings: usize) -> Vec<u64> {
        let stride = self.bits.len();
        if self.known.iter().all(|known| *known == 0) {
            return filled(strings, u64::MAX);
        }
        // Eight bytes of a string mostly tell: the first ones, or the last.
        let from = if self.known[0] == 0 { stride.saturating_sub(8) } else { 0 };
        let (value, mask) = (word(&self.bits[from..]), word(&self.known[from..]));
        let is_it = |string: usize| {
            let of_one = &packed[string * stride..];
            word(&of_one[from..]) & mask == value && {
                let mut bytes = of_one.iter().zip(&self.known).zip(&self.bits);
                bytes.all(|((byte, known), bits)| byte & known == *bits)
            }
        };
        let of_word = |first: usize| {
            let together = first..strings.min(first + 64);
            together.rev().fold(0, |bits, string| bits << 1 | u64::from(is_it(string)))
        };
        (0..strings).step_by(64).map(of_word).collect()
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
