//! What varies in strings of a template: columns of words, decoded, and how they come into the strings.

use std::ops::Range;

use super::room::{Padded, Room};
use super::{Nesting, Output, Template, TextPlace, Wanted, decode_page};
use crate::error::Result;
use crate::int::decode_u64_range;

/// A column of words, not decoded yet.
pub(super) struct Column<'a> {
    /// The least number of digits; 0 if words are texts.
    pub(super) digits_min: usize,
    pub(super) page: &'a [u8],
}

/// Some words of a column.
pub(super) enum Words {
    /// Numbers with so few digits that all of them are made, and written, at once.
    Short {
        numbers: Vec<u64>,
        digits_min: usize,
    },
    Numbers {
        numbers: Vec<u64>,
        digits_min: usize,
    },
    Texts {
        places: Vec<TextPlace>,
        text: Padded,
    },
}

impl Column<'_> {
    /// Some of the words of those strings of a template that the range has.
    pub(super) fn words(
        &self,
        template: &Template,
        within: Range<usize>,
        max_bytes: usize,
    ) -> Result<Words> {
        let range = template.before + within.start..template.before + within.end;
        let digits_min = self.digits_min;
        if digits_min == 0 {
            let (mut places, mut text) = (Vec::with_capacity(range.len()), Vec::new());
            let mut into = Output { places: &mut places, bytes: &mut text, max_bytes };
            let wanted = Wanted::all(range);
            decode_page(self.page, template.strings, &wanted, Nesting::Column, &mut into)?;
            return Ok(Words::Texts { places, text: Padded::new(text) });
        }
        let mut numbers = Vec::with_capacity(range.len());
        decode_u64_range(self.page, template.strings, range, &mut numbers)?;
        let are_short = digits_min <= EIGHT && numbers.iter().all(|number| *number < TEN_TO_EIGHT);
        Ok(match are_short {
            true => Words::Short { numbers, digits_min },
            false => Words::Numbers { numbers, digits_min },
        })
    }
}

impl Words {
    /// The length of some of the words, all together.
    pub(super) fn bytes_of(&self, words: impl Iterator<Item = usize>) -> u64 {
        match self {
            Self::Short { numbers, digits_min } => {
                words.map(|word| short_digits(numbers[word], *digits_min).1 as u64).sum()
            }
            Self::Numbers { numbers, digits_min } => {
                words.map(|word| n_digits(numbers[word], *digits_min) as u64).sum()
            }
            Self::Texts { places, .. } => words.map(|word| u64::from(places[word].1)).sum(),
        }
    }

    /// Appends a word.
    #[inline]
    pub(super) fn append(&self, word: usize, room: &mut Room<'_>) {
        match self {
            Self::Short { numbers, digits_min } => {
                let (digits, len) = short_digits(numbers[word], *digits_min);
                room.push_bytes(digits.to_le_bytes(), len);
            }
            Self::Numbers { numbers, digits_min } => {
                let (mut rest, mut digits) = (numbers[word], [b'0'; DIGITS]);
                let len = n_digits(rest, *digits_min);
                for digit in digits[..len].iter_mut().rev() {
                    *digit = b'0' + (rest % 10) as u8;
                    rest /= 10;
                }
                room.push_bytes(digits, len);
            }
            Self::Texts { places, text } => room.push(text, places[word]),
        }
    }

    /// The words, if they are numbers.
    pub(super) fn numbers(&self) -> Option<&[u64]> {
        match self {
            Self::Short { numbers, .. } | Self::Numbers { numbers, .. } => Some(numbers),
            Self::Texts { .. } => None,
        }
    }

    /// The words, one after another, if they are texts or made such.
    pub(super) fn into_texts(self) -> (Vec<TextPlace>, Padded) {
        let count = match self {
            Self::Texts { places, text } => return (places, text),
            Self::Short { ref numbers, .. } | Self::Numbers { ref numbers, .. } => numbers.len(),
        };
        let (mut places, mut text) = (Vec::with_capacity(count), Vec::new());
        let mut room = Room::new(&mut text, self.bytes_of(0..count) as usize);
        for word in 0..count {
            let start = room.len();
            self.append(word, &mut room);
            places.push((start as u32, (room.len() - start) as u32));
        }
        room.finish();
        (places, Padded::new(text))
    }
}

/// More than any number has.
const DIGITS: usize = 20;

pub(super) fn n_digits(number: u64, digits_min: usize) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1).max(digits_min)
}

/// Digits that are made at once.
const EIGHT: usize = 8;
const TEN_TO_EIGHT: u64 = 100_000_000;

/// The digits of a number below 10^8, one a byte, the first in the lowest, at least so many, and how many they are.
#[inline]
fn short_digits(number: u64, digits_min: usize) -> (u64, usize) {
    let digits = eight_digits(number);
    let zeros = (digits.trailing_zeros() as usize / 8).min(EIGHT - digits_min);
    ((digits | 0x3030_3030_3030_3030) >> (8 * zeros), EIGHT - zeros)
}

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
    use crate::encoding::Effort;
    use crate::int::encode_u64;

    proptest! {
        #[test]
        fn numbers_are_written_in_decimal_digits(
            numbers in prop::collection::vec((any::<u64>(), 0u32..64), 1..50),
            is_short in any::<bool>(),
            digits_min in 1usize..20,
            start in any::<prop::sample::Index>(),
        ) {
            let limit = if is_short { TEN_TO_EIGHT } else { u64::MAX };
            let numbers: Vec<u64> = numbers.iter().map(|(n, shift)| (n >> shift) % limit).collect();
            let mut page = Vec::new();
            encode_u64(&numbers, Effort::Cold, &mut page);
            let template = Template { strings: numbers.len(), ..Template::default() };
            let start = start.index(numbers.len());
            let column = Column { digits_min, page: &page };
            let words = column.words(&template, start..numbers.len(), 0).unwrap();
            prop_assert_eq!(matches!(words, Words::Short { .. }), digits_min <= EIGHT && numbers[start..].iter().all(|n| *n < TEN_TO_EIGHT));
            let expected: Vec<String> = numbers[start..].iter().map(|n| format!("{n:0digits_min$}")).collect();
            let (places, text) = words.into_texts();
            prop_assert_eq!(places.len(), expected.len());
            for (place, expected) in places.iter().zip(&expected) {
                prop_assert_eq!(text.get(*place), expected.as_bytes());
            }
            prop_assert_eq!(text.len(), expected.concat().len());
        }
    }
}
