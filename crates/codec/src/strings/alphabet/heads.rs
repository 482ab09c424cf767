//! The first characters of strings as numbers: those of identifiers that begin with a time (`ULID`, `UUIDv7`, `ObjectId`, `KSUID`)
//! ascend with it, so that an integer page has fewer bits for them, and a compressor as well. So it may go on, with a process,
//! and what that counts.
//!
//! A word is what its characters' numbers are put together, the first one in the highest bits: in order as the strings are.

use super::{Shape, Strings, Wanted};
use crate::encoding::Effort;
use crate::error::{DecodeError, Result};
use crate::int::{decode_u64_range, encode_u64};
use crate::wire::Reader;

/// So many strings tell whether a word is worth it: those that are noise are not all looked at.
const SAMPLED: usize = 128;

/// A page for each of the first words, as far as these are shorter than to pack them.
pub(super) fn encode(strings: Strings<'_>, shape: &Shape<'_>, effort: Effort) -> Vec<Vec<u8>> {
    let numbers = shape.numbers();
    let word_of = |string: &[u8], places: &[u16]| {
        let number = |place: &u16| u64::from(numbers[string[usize::from(*place)] as usize]);
        places.iter().map(number).fold(0, |word, number| word << shape.width | number)
    };
    let page_if_short = |places: &[u16], count: usize| {
        let words: Vec<u64> =
            strings.iter().take(count).map(|string| word_of(string, places)).collect();
        let mut page = Vec::new();
        encode_u64(&words, effort, &mut page);
        let packed = words.len() * places.len() * shape.width as usize / 8;
        (page.len() < packed * 7 / 8).then_some(page)
    };
    let page = |places: &[u16]| {
        let page = page_if_short(places, SAMPLED)?;
        if strings.len() <= SAMPLED { Some(page) } else { page_if_short(places, strings.len()) }
    };
    shape.places.chunks(shape.word_places()).map_while(page).collect()
}

/// The words of heads of a page's strings, encoded.
#[derive(Clone, Debug)]
pub(super) struct Heads<'a> {
    /// Of each word its page, and the bits that it has.
    pages: Vec<(&'a [u8], u32)>,
    count: usize,
}

impl<'a> Heads<'a> {
    pub(super) fn read(reader: &mut Reader<'a>, shape: &Shape<'_>, count: usize) -> Result<Self> {
        let of_words = shape.places.chunks(shape.word_places());
        if shape.head_words > of_words.len() {
            return Err(DecodeError::Corrupt("words of heads"));
        }
        let page =
            |places: &[u16]| Ok((reader.length_prefixed()?, places.len() as u32 * shape.width));
        let pages = of_words.take(shape.head_words).map(page).collect::<Result<_>>()?;
        Ok(Self { pages, count })
    }

    /// The words of some strings' heads, string by string.
    pub(super) fn of(&self, wanted: &Wanted<'_>) -> Result<Vec<u64>> {
        let of_word = |word: usize| {
            let mut numbers = self.word(word, wanted)?;
            wanted.keep(&mut numbers);
            Ok(numbers)
        };
        match self.pages.len() {
            0 => Ok(Vec::new()),
            1 => of_word(0),
            words => {
                let of_words = (0..words).map(of_word).collect::<Result<Vec<_>>>()?;
                let strings = 0..of_words[0].len();
                Ok(strings.flat_map(|at| of_words.iter().map(move |of| of[at])).collect())
            }
        }
    }

    /// One of the words of the strings from the first one that is wanted to the last.
    pub(super) fn word(&self, word: usize, wanted: &Wanted<'_>) -> Result<Vec<u64>> {
        let (page, bits) = self.pages[word];
        let mut numbers = Vec::new();
        decode_u64_range(page, self.count, wanted.range(), &mut numbers)?;
        if numbers.iter().any(|number| number.checked_shr(bits).unwrap_or(0) != 0) {
            return Err(DecodeError::Corrupt("a word of a head with more bits than it has"));
        }
        Ok(numbers)
    }
}
