//! Sorting rows by keys of few bits: digit by digit from the least (LSD radix sort), each pass stable.
//!
//! Of rows of many series comparisons take one pass over all of them for each doubling of the series; this
//! takes one for eleven bits of the key, whatever the order of the rows.

use std::ops::Range;

/// Bits of a digit: its counters fit the first-level cache.
const DIGIT_BITS: u32 = 11;
/// With more digits comparisons are as fast.
const DIGITS_MAX: u32 = 3;
/// So few rows are compared.
const ROWS_MIN: usize = 512;

/// Passes over all rows that sorting by so many bits takes.
pub(in crate::exec) fn digits(bits: u32) -> u32 {
    bits.div_ceil(DIGIT_BITS)
}

/// Sorts by these bits of the keys. They ascend in the bits below, and have none above.
pub(in crate::exec) fn sort(keys: &mut Vec<u64>, bits: Range<u32>) {
    if digits(bits.end - bits.start) > DIGITS_MAX || keys.len() < ROWS_MIN || keys.is_sorted() {
        keys.sort_unstable();
        return;
    }
    let mut sorted = vec![0; keys.len()];
    for shift in bits.step_by(DIGIT_BITS as usize) {
        let digit = |key: u64| (key >> shift) as usize % (1 << DIGIT_BITS);
        let mut places = vec![0u32; 1 << DIGIT_BITS];
        keys.iter().for_each(|key| places[digit(*key)] += 1);
        let mut before = 0;
        for place in &mut places {
            before += std::mem::replace(place, before);
        }
        for key in keys.iter() {
            let place = &mut places[digit(*key)];
            sorted[*place as usize] = *key;
            *place += 1;
        }
        std::mem::swap(keys, &mut sorted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sorts_as_comparisons_do(
            keys in prop::collection::vec(any::<u64>(), 0..3000),
            bits in 0u32..52,
        ) {
            let keys = keys.iter().zip(0..).map(|(key, row)| ((key % (1 << bits)) << 12) | row);
            let mut keys: Vec<u64> = keys.collect();
            let mut expected = keys.clone();
            expected.sort_unstable();
            sort(&mut keys, 12..12 + bits);
            prop_assert_eq!(keys, expected);
        }
    }
}
