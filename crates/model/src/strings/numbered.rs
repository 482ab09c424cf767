//! Numbers for strings that share their text: what is asked of each text is asked once, not for every row.

use super::{Strings, TextPlace};

/// A number for each string of a column, the same for those with the same place.
#[derive(Debug)]
pub struct Numbered {
    /// Of each string, in order.
    pub numbers: Vec<u32>,
    /// The place of each number's strings. Two may have the same text.
    pub places: Vec<TextPlace>,
}

impl Numbered {
    /// `None` if the strings have more than half as much text as if none were shared.
    pub(super) fn of(strings: &Strings) -> Option<Self> {
        let rows = strings.places.len();
        if strings.bytes.len() * 2 > strings.text_bytes {
            return None;
        }
        let mut numbered = Self { numbers: Vec::with_capacity(rows), places: Vec::new() };
        // A place for each first byte: that of two strings is one only if one is empty, or they overlap.
        let slots = strings.bytes.len().min(rows.next_power_of_two().max(SLOTS_MIN)) + 1;
        let slot_of = |start: u32| match slots > strings.bytes.len() {
            true => start as usize,
            // Fibonacci hashing; slots are one more than a power of two then.
            false => {
                (start.wrapping_mul(0x9e37_79b1) >> (32 - (slots - 1).trailing_zeros())) as usize
            }
        };
        let mut known = vec![u32::MAX; slots];
        for place in &strings.places {
            let slot = &mut known[slot_of(place.0)];
            if numbered.places.get(*slot as usize) != Some(place) {
                *slot = numbered.places.len() as u32;
                numbered.places.push(*place);
            }
            numbered.numbers.push(*slot);
        }
        Some(numbered)
    }
}

/// The fewest slots of a table that has not one for each byte of the text.
const SLOTS_MIN: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// More text than rows: two texts may then have one slot, and get new numbers whenever they take turns.
    #[test]
    fn long_texts_have_numbers_too() {
        let texts: Vec<String> =
            (0..40).map(|at| format!("{at}-{}", "x".repeat(100 + at))).collect();
        let texts: Strings = texts.iter().map(String::as_str).collect();
        let shared = texts.take((0..400).map(|row| row * 7 % 40));
        let numbered = shared.numbered().unwrap();
        assert_eq!(numbered.numbers.len(), 400);
        assert!(numbered.places.len() < 400, "{} numbers", numbered.places.len());
        for (row, number) in numbered.numbers.iter().enumerate() {
            assert_eq!(numbered.places[*number as usize], shared.places()[row]);
        }
        assert!(texts.numbered().is_none());
    }
}
