//! A fixed-length sequence of bits: validity of a column, values of a boolean column, selections.

/// Bits in 64-bit words, least significant first (Arrow's order). Bits past `len` are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    /// An empty bitmap.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// `len` bits, all `value`.
    #[must_use]
    pub fn filled(len: usize, value: bool) -> Self {
        let mut map = Self { words: vec![if value { u64::MAX } else { 0 }; len.div_ceil(64)], len };
        map.clear_tail();
        map
    }

    /// Takes over `words` as the first `len` bits; bits past `len` are cleared.
    ///
    /// # Panics
    /// If `words` is not exactly as long as `len` needs.
    #[must_use]
    pub fn from_words(words: Vec<u64>, len: usize) -> Self {
        assert_eq!(words.len(), len.div_ceil(64), "BUG: words do not fit the length");
        let mut map = Self { words, len };
        map.clear_tail();
        map
    }

    /// A bit for each of `values`, 64 at a time.
    pub fn of<T: Copy>(values: &[T], mut test: impl FnMut(T) -> bool) -> Self {
        let word = |values: &[T]| {
            values.iter().enumerate().fold(0, |word, (at, v)| word | u64::from(test(*v)) << at)
        };
        Self::from_words(values.chunks(64).map(word).collect(), values.len())
    }

    /// Removes all bits and keeps their memory for others.
    pub fn clear(&mut self) {
        self.words.clear();
        self.len = 0;
    }

    /// Number of bits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The words, `len / 64` rounded up.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The bit at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> bool {
        assert!(index < self.len, "BUG: bit {index} of {}", self.len);
        self.words[index / 64] >> (index % 64) & 1 == 1
    }

    /// Sets the bit at `index`.
    pub fn set(&mut self, index: usize, value: bool) {
        assert!(index < self.len, "BUG: bit {index} of {}", self.len);
        let mask = 1 << (index % 64);
        if value {
            self.words[index / 64] |= mask;
        } else {
            self.words[index / 64] &= !mask;
        }
    }

    /// Adds one bit.
    pub fn push(&mut self, value: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        if value {
            self.words[self.len / 64] |= 1 << (self.len % 64);
        }
        self.len += 1;
    }

    /// Adds `count` equal bits.
    pub fn extend_filled(&mut self, count: usize, value: bool) {
        let (from, to) = (self.len, self.len + count);
        self.words.resize(to.div_ceil(64), 0);
        self.len = to;
        if !value || count == 0 {
            return;
        }
        let (first, last) = (from / 64, (to - 1) / 64);
        let low = u64::MAX << (from % 64);
        if first == last {
            let width = to - from;
            let ones = if width == 64 { u64::MAX } else { (1 << width) - 1 };
            self.words[first] |= ones << (from % 64);
            return;
        }
        self.words[first] |= low;
        self.words[first + 1..last].fill(u64::MAX);
        self.words[last] = u64::MAX;
        self.clear_tail();
    }

    /// Adds the bits `range` of `other`.
    pub fn extend_from(&mut self, other: &Self, range: std::ops::Range<usize>) {
        assert!(range.end <= other.len, "BUG: range past the end of a bitmap");
        let mut at = range.start;
        while at < range.end {
            let take = (range.end - at).min(64);
            let (word, shift) = (at / 64, at % 64);
            let mut bits = other.words[word] >> shift;
            if shift != 0 && word + 1 < other.words.len() {
                bits |= other.words[word + 1] << (64 - shift);
            }
            self.push_bits(bits, take);
            at += take;
        }
    }

    /// Number of set bits in `range`.
    #[must_use]
    pub fn count_ones_in(&self, range: std::ops::Range<usize>) -> usize {
        if range.is_empty() {
            return 0;
        }
        let words = &self.words;
        let (first, last) = (range.start / 64, (range.end - 1) / 64);
        let low = u64::MAX << (range.start % 64);
        let high = u64::MAX >> (63 - (range.end - 1) % 64);
        if first == last {
            return (words[first] & low & high).count_ones() as usize;
        }
        let inner: u32 = words[first + 1..last].iter().map(|w| w.count_ones()).sum();
        ((words[first] & low).count_ones() + inner + (words[last] & high).count_ones()) as usize
    }

    /// The last set bit in `range`.
    ///
    /// # Panics
    /// If the range goes past the end.
    #[must_use]
    pub fn last_one_in(&self, range: std::ops::Range<usize>) -> Option<usize> {
        assert!(range.end <= self.len, "BUG: range past the end of a bitmap");
        let mut end = range.end;
        while end > range.start {
            let word = (end - 1) / 64;
            let bits = self.words[word] & u64::MAX >> (63 - (end - 1) % 64);
            if bits != 0 {
                let found = word * 64 + 63 - bits.leading_zeros() as usize;
                return (found >= range.start).then_some(found);
            }
            end = word * 64;
        }
        None
    }

    /// The first set bit in `range`.
    ///
    /// # Panics
    /// If the range goes past the end.
    #[must_use]
    pub fn first_one_in(&self, range: std::ops::Range<usize>) -> Option<usize> {
        assert!(range.end <= self.len, "BUG: range past the end of a bitmap");
        let mut start = range.start;
        while start < range.end {
            let bits = self.words[start / 64] & u64::MAX << (start % 64);
            if bits != 0 {
                let found = start / 64 * 64 + bits.trailing_zeros() as usize;
                return (found < range.end).then_some(found);
            }
            start = (start / 64 + 1) * 64;
        }
        None
    }

    /// Puts defaults among the values from `at` on, which are those of the set bits in `range`: one for each other bit.
    ///
    /// # Panics
    /// If there are not as many values as set bits.
    pub fn spread<T: Copy + Default>(
        &self,
        range: std::ops::Range<usize>,
        values: &mut Vec<T>,
        at: usize,
    ) {
        let mut source = values.len();
        values.resize(at + range.len(), T::default());
        // Backwards, so that no value is overwritten before it has moved.
        let mut end = range.end;
        while end > range.start && source - at < end - range.start {
            let start = ((end - 1) / 64 * 64).max(range.start);
            let len = end - start;
            let mask = u64::MAX >> (64 - len);
            let mut word = self.words[start / 64] >> (start % 64) & mask;
            let count = word.count_ones() as usize;
            source -= count;
            if word == mask {
                let target = at + (start - range.start);
                values.copy_within(source..source + len, target);
            } else {
                // They may lie where others go to.
                let mut moved = [T::default(); 64];
                moved[..count].copy_from_slice(&values[source..source + count]);
                let target = &mut values[at + (start - range.start)..][..len];
                target.fill(T::default());
                for value in &moved[..count] {
                    target[word.trailing_zeros() as usize] = *value;
                    word &= word - 1;
                }
            }
            end = start;
        }
        assert!(source >= at, "BUG: fewer values than rows that have one");
    }

    /// The bits that are set in both.
    ///
    /// # Panics
    /// If they are not of one length.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        assert_eq!(self.len(), other.len(), "BUG: bitmaps of two lengths");
        let words = self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect();
        Self::from_words(words, self.len())
    }

    /// Number of set bits.
    #[must_use]
    pub fn count_ones(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// The indexes of the set bits, ascending.
    pub fn ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                if left == 0 {
                    return None;
                }
                let bit = left.trailing_zeros() as usize;
                left &= left - 1;
                Some(at * 64 + bit)
            })
        })
    }

    /// Adds the first `count` bits of some words.
    ///
    /// # Panics
    /// If the words have fewer.
    pub fn extend_from_words(&mut self, words: &[u64], count: usize) {
        let words = &words[..count.div_ceil(64)];
        let whole = count / 64;
        if self.len.is_multiple_of(64) {
            self.words.extend_from_slice(&words[..whole]);
            self.len += whole * 64;
        } else {
            words[..whole].iter().for_each(|word| self.push_bits(*word, 64));
        }
        if let Some(last) = words.get(whole) {
            self.push_bits(*last, count % 64);
        }
    }

    /// Adds the lowest `count` bits, at most 64.
    pub fn push_bits(&mut self, bits: u64, count: usize) {
        assert!(count <= 64, "BUG: {count} bits of a word");
        if count == 0 {
            return;
        }
        let bits = if count == 64 { bits } else { bits & ((1 << count) - 1) };
        let shift = self.len % 64;
        if shift == 0 {
            self.words.push(bits);
        } else {
            *self.words.last_mut().expect("BUG: a partial word exists") |= bits << shift;
            if shift + count > 64 {
                self.words.push(bits >> (64 - shift));
            }
        }
        self.len += count;
    }

    fn clear_tail(&mut self) {
        if !self.len.is_multiple_of(64) {
            let last = self.words.len() - 1;
            self.words[last] &= (1 << (self.len % 64)) - 1;
        }
    }
}

impl FromIterator<bool> for Bitmap {
    fn from_iter<I: IntoIterator<Item = bool>>(bits: I) -> Self {
        let mut map = Self::new();
        for bit in bits {
            map.push(bit);
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_as_a_vec_of_bool(
            ops in prop::collection::vec((0u8..4, 0usize..200, any::<bool>(), any::<u64>()), 0..30)
        ) {
            let (mut map, mut model) = (Bitmap::new(), Vec::new());
            for (op, count, value, seed) in ops {
                match op {
                    0 => { map.push(value); model.push(value); }
                    1 => { map.extend_filled(count, value); model.extend(vec![value; count]); }
                    2 => {
                        let words: Vec<u64> = (0..4).map(|i| seed.rotate_left(i)).collect();
                        map.extend_from_words(&words, count);
                        model.extend((0..count).map(|at| words[at / 64] >> (at % 64) & 1 == 1));
                    }
                    _ => {
                        let other: Vec<bool> =
                            (0..count).map(|i| seed.rotate_left(i as u32) & 1 == 1).collect();
                        let from = count / 3;
                        map.extend_from(&other.iter().copied().collect(), from..count);
                        model.extend(&other[from..]);
                    }
                }
            }
            prop_assert_eq!(map.len(), model.len());
            prop_assert_eq!(&map, &model.iter().copied().collect::<Bitmap>());
            let ones: Vec<_> = (0..model.len()).filter(|i| model[*i]).collect();
            prop_assert_eq!(map.count_ones(), ones.len());
            let within = map.len() / 3..map.len() - map.len() / 7;
            let mut inner = ones.iter().copied().filter(|one| within.contains(one));
            prop_assert_eq!(map.first_one_in(within.clone()), inner.clone().next());
            prop_assert_eq!(map.last_one_in(within.clone()), inner.next_back());
            prop_assert_eq!(map.ones().collect::<Vec<_>>(), ones);
        }
    }

    proptest! {
        #[test]
        fn values_are_spread_by_the_bits(
            bools in prop::collection::vec(prop::bool::weighted(0.8), 0..400),
            kind in 0..3,
            cut in any::<(u16, u16)>(),
        ) {
            // Many, few, all.
            let bits: Bitmap = bools.iter().map(|b| (*b ^ (kind == 1)) || kind == 2).collect();
            let n = bits.len();
            let (a, b) = (cut.0 as usize % (n + 1), cut.1 as usize % (n + 1));
            let range = a.min(b)..a.max(b);
            let expected: Vec<u64> = std::iter::once(7)
                .chain(range.clone().map(|i| if bits.get(i) { i as u64 + 1 } else { 0 }))
                .collect();
            let mut values: Vec<u64> = std::iter::once(7)
                .chain(range.clone().filter(|i| bits.get(*i)).map(|i| i as u64 + 1))
                .collect();
            prop_assert_eq!(bits.count_ones_in(range.clone()), values.len() - 1);
            bits.spread(range, &mut values, 1);
            prop_assert_eq!(values, expected);
        }
    }
}
