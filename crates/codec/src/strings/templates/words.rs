//! What varies in strings of a template: columns of words, decoded, and how they come into the strings.

use std::ops::Range;

use super::room::{Padded, Room};
use super::{Nesting, Output, Template, TextPlace, Wanted, decode_page};
use crate::error::Result;
use crate::int::decode_u64_range;
use crate::simd::multiversion;

/// A column of words, not decoded yet.
pub(super) struct Column<'a> {
    /// The least number of digits; 0 if words are texts.
    pub(super) digits_min: usize,
    pub(super) page: &'a [u8],
}

/// Some words of a column.
pub(super) enum Words {
    /// Numbers with so few digits that all of them are made, and written, at once: the digits of each, as [`show`] makes
    /// them, and how many they are.
    Short {
        digits: Vec<u64>,
        lens: Vec<u8>,
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
    pub(super) fn is_number(&self) -> bool {
        self.digits_min > 0
    }

    /// The numbers that some of those strings of a template have here which the range has.
    pub(super) fn numbers(&self, template: &Template, within: Range<usize>) -> Result<Vec<u64>> {
        let range = template.before + within.start..template.before + within.end;
        let mut numbers = Vec::with_capacity(range.len());
        decode_u64_range(self.page, template.strings, range, &mut numbers)?;
        Ok(numbers)
    }

    /// The words of some of those strings of a template that the range has, `within` which all of them are.
    pub(super) fn words(
        &self,
        template: &Template,
        within: Range<usize>,
        ranks: impl ExactSizeIterator<Item = usize>,
        max_bytes: usize,
    ) -> Result<Words> {
        let (first, are_all) = (within.start, ranks.len() == within.len());
        let places = ranks.map(|rank| rank - first);
        if self.is_number() {
            let all = self.numbers(template, within)?;
            let numbers = if are_all { all } else { places.map(|at| all[at]).collect() };
            return Ok(Words::of_numbers(numbers, self.digits_min));
        }
        let range = template.before + within.start..template.before + within.end;
        let (mut all, mut text) = (Vec::with_capacity(range.len()), Vec::new());
        let mut into = Output { places: &mut all, bytes: &mut text, max_bytes };
        decode_page(self.page, template.strings, &Wanted::all(range), Nesting::Column, &mut into)?;
        let places = if are_all { all } else { places.map(|at| all[at]).collect() };
        Ok(Words::Texts { places, text: Padded::new(text) })
    }
}

impl Words {
    /// Numbers of which so many digits are shown at least.
    pub(super) fn of_numbers(numbers: Vec<u64>, digits_min: usize) -> Self {
        let are_below = |end: u64| numbers.iter().all(|number| *number < end);
        // Told from all bits together, many at once, of most columns.
        let bits = numbers.iter().fold(0, |bits, number| bits | number);
        let are_short = bits < 1 << TEN_TO_EIGHT.ilog2() || are_below(TEN_TO_EIGHT);
        if digits_min > EIGHT || !are_short {
            return Self::Numbers { numbers, digits_min };
        }
        let (mut digits, mut lens) = (numbers, Vec::new());
        lens.resize(digits.len(), 0);
        show(&mut digits, digits_min as u64, &mut lens);
        Self::Short { digits, lens }
    }

    /// The length of all of them together.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Short { lens, .. } => lens.iter().map(|len| u64::from(*len)).sum(),
            Self::Numbers { numbers, digits_min } => {
                numbers.iter().map(|number| n_digits(*number, *digits_min) as u64).sum()
            }
            Self::Texts { places, .. } => places.iter().map(|place| u64::from(place.1)).sum(),
        }
    }

    /// Appends a word.
    #[inline(always)]
    pub(super) fn append(&self, at: usize, room: &mut Room<'_>) {
        match self {
            Self::Short { digits, lens } => {
                room.push_bytes(digits[at].to_le_bytes(), lens[at].into());
            }
            Self::Texts { places, text } => room.push(text, places[at]),
            Self::Numbers { numbers, digits_min } => {
                let (digits, len) = digits(numbers[at], *digits_min);
                room.push_bytes(digits, len);
            }
        }
    }

    /// The words, one after another, if they are texts or made such.
    pub(super) fn into_texts(self) -> (Vec<TextPlace>, Padded) {
        let count = match self {
            Self::Texts { places, text } => return (places, text),
            Self::Short { ref lens, .. } => lens.len(),
            Self::Numbers { ref numbers, .. } => numbers.len(),
        };
        let (mut places, mut text) = (Vec::with_capacity(count), Vec::new());
        let mut room = Room::new(&mut text, self.bytes() as usize);
        for at in 0..count {
            let start = room.len();
            self.append(at, &mut room);
            places.push((start as u32, (room.len() - start) as u32));
        }
        room.finish();
        (places, Padded::new(text))
    }
}

/// More than any number has.
const DIGITS: usize = 20;

fn n_digits(number: u64, digits_min: usize) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1).max(digits_min)
}

/// The digits of a number, at least so many, and how many they are.
#[inline]
fn digits(number: u64, digits_min: usize) -> ([u8; DIGITS], usize) {
    let len = n_digits(number, digits_min);
    if len > 2 * EIGHT {
        return many_digits(number, len);
    }
    let halves = [number / TEN_TO_EIGHT, number % TEN_TO_EIGHT].map(eight_digits);
    let all = u128::from(halves[1]) << u64::BITS | u128::from(halves[0]);
    let shown = (all >> (8 * (2 * EIGHT - len))).to_le_bytes();
    let mut digits = [0; DIGITS];
    for (digit, shown) in digits.iter_mut().zip(shown) {
        *digit = b'0' | shown;
    }
    (digits, len)
}

#[cold]
fn many_digits(number: u64, len: usize) -> ([u8; DIGITS], usize) {
    let (mut rest, mut digits) = (number, [b'0'; DIGITS]);
    for digit in digits[..len].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    (digits, len)
}

/// Digits that are made at once.
const EIGHT: usize = 8;
const TEN_TO_EIGHT: u64 = 100_000_000;

multiversion! {
    /// Makes digits of numbers below 10^8: one a byte, the first in the lowest, at least so many of each number. Says how many they are.
    fn show / show_at(numbers: &mut [u64], digits_min: u64, lens: &mut [u8]) {
        for (number, len) in numbers.iter_mut().zip(lens) {
            let longer = |power: u64| u64::from(*number >= power);
            let digits = 1
                + longer(10)
                + longer(100)
                + longer(1000)
                + longer(10_000)
                + longer(100_000)
                + longer(1_000_000)
                + longer(10_000_000);
            let shown = digits.max(digits_min);
            *len = shown as u8;
            *number = (eight_digits(*number) | 0x3030_3030_3030_3030) >> (8 * (EIGHT as u64 - shown));
        }
    }
}

/// The eight digits of a number below 10^8, one a byte, the first in the lowest: halves, quarters and eighths of the number
/// are divided side by side in one word.
#[inline(always)]
fn eight_digits(number: u64) -> u64 {
    // x * 3518437209 >> 45 is x / 10^4 for x below 2^32, x * 10486 >> 20 is x / 100 for x below 10^4, x * 103 >> 10 is x / 10 for
    // x below 100: products that a processor has many of at once.
    let thousands = (number * 3_518_437_209) >> 45;
    let fours = thousands + ((number - 10_000 * thousands) << 32);
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
            step in 1usize..4,
        ) {
            let limit = if is_short { TEN_TO_EIGHT } else { u64::MAX };
            let numbers: Vec<u64> = numbers.iter().map(|(n, shift)| (n >> shift) % limit).collect();
            let mut page = Vec::new();
            encode_u64(&numbers, Effort::Cold, &mut page);
            let template = Template { strings: numbers.len(), ..Template::default() };
            let start = start.index(numbers.len());
            let column = Column { digits_min, page: &page };
            let within = start..numbers.len();
            let ranks = within.clone().step_by(step);
            let words = column.words(&template, within, ranks.clone(), 0).unwrap();
            let shown: Vec<u64> = ranks.map(|rank| numbers[rank]).collect();
            let is_short = digits_min <= EIGHT && shown.iter().all(|n| *n < TEN_TO_EIGHT);
            prop_assert_eq!(matches!(words, Words::Short { .. }), is_short);
            let expected: Vec<String> = shown.iter().map(|n| format!("{n:0digits_min$}")).collect();
            let (places, text) = words.into_texts();
            prop_assert_eq!(places.len(), expected.len());
            for (place, expected) in places.iter().zip(&expected) {
                prop_assert_eq!(text.get(*place), expected.as_bytes());
            }
            prop_assert_eq!(text.len(), expected.concat().len());
        }
    }
}
