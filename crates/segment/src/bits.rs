//! Counting and spreading by validity bitmaps.

use std::ops::Range;

use model::Bitmap;

/// Number of set bits in `range`.
pub(crate) fn count_ones(bits: &Bitmap, range: Range<usize>) -> usize {
    if range.is_empty() {
        return 0;
    }
    let words = bits.words();
    let (first, last) = (range.start / 64, (range.end - 1) / 64);
    let low = u64::MAX << (range.start % 64);
    let high = u64::MAX >> (63 - (range.end - 1) % 64);
    if first == last {
        return (words[first] & low & high).count_ones() as usize;
    }
    let inner: u32 = words[first + 1..last].iter().map(|w| w.count_ones()).sum();
    ((words[first] & low).count_ones() + inner + (words[last] & high).count_ones()) as usize
}

/// Spreads the values from `at` on, which are those of the set bits in `range`, so that there is one
/// entry for every bit; the others get the default.
pub(crate) fn spread<T: Copy + Default>(
    values: &mut Vec<T>,
    at: usize,
    bits: &Bitmap,
    range: Range<usize>,
) {
    let mut source = values.len();
    values.resize(at + range.len(), T::default());
    let words = bits.words();
    // Backwards, so that no value is overwritten before it has moved.
    let mut end = range.end;
    while end > range.start && source - at < end - range.start {
        let start = ((end - 1) / 64 * 64).max(range.start);
        let len = end - start;
        let mask = u64::MAX >> (64 - len);
        let mut word = words[start / 64] >> (start % 64) & mask;
        let target = at + (start - range.start);
        if word == mask {
            values.copy_within(source - len..source, target);
            source -= len;
        } else {
            for entry in (0..len).rev() {
                let bit = 1 << entry;
                values[target + entry] = if word & bit == 0 {
                    T::default()
                } else {
                    source -= 1;
                    values[source]
                };
                word &= !bit;
            }
        }
        end = start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counting_and_spreading_follow_the_bits(
            bools in prop::collection::vec(prop::bool::weighted(0.8), 0..400),
            dense in any::<bool>(),
            cut in any::<(u16, u16)>(),
        ) {
            let bits: Bitmap = bools.iter().map(|b| *b || dense).collect();
            let n = bits.len();
            let (a, b) = (cut.0 as usize % (n + 1), cut.1 as usize % (n + 1));
            let range = a.min(b)..a.max(b);
            let expected: Vec<u64> = std::iter::once(7)
                .chain(range.clone().map(|i| if bits.get(i) { i as u64 + 1 } else { 0 }))
                .collect();
            let mut values: Vec<u64> = std::iter::once(7)
                .chain(range.clone().filter(|i| bits.get(*i)).map(|i| i as u64 + 1))
                .collect();
            prop_assert_eq!(count_ones(&bits, range.clone()), values.len() - 1);
            spread(&mut values, 1, &bits, range);
            prop_assert_eq!(values, expected);
        }
    }
}
