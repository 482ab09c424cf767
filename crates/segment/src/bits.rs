//! Counting by validity bitmaps.

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counting_follows_the_bits(
            bools in prop::collection::vec(prop::bool::weighted(0.8), 0..400),
            cut in any::<(u16, u16)>(),
        ) {
            let bits: Bitmap = bools.iter().copied().collect();
            let (a, b) = (cut.0 as usize % (bits.len() + 1), cut.1 as usize % (bits.len() + 1));
            let range = a.min(b)..a.max(b);
            let expected = range.clone().filter(|i| bits.get(*i)).count();
            prop_assert_eq!(count_ones(&bits, range), expected);
        }
    }
}
