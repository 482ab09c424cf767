//! Bitmaps as words.

use std::ops::Range;

use crate::simd::multiversion;

multiversion! {
    /// `target &= other`, over the words that both have.
    pub fn and_words / and_words_at(target: &mut [u64], other: &[u64]) {
        for (a, b) in target.iter_mut().zip(other) {
            *a &= b;
        }
    }
}

multiversion! {
    /// `target |= other`, over the words that both have.
    pub fn or_words / or_words_at(target: &mut [u64], other: &[u64]) {
        for (a, b) in target.iter_mut().zip(other) {
            *a |= b;
        }
    }
}

multiversion! {
    /// `target &= !other`, over the words that both have.
    pub fn and_not_words / and_not_words_at(target: &mut [u64], other: &[u64]) {
        for (a, b) in target.iter_mut().zip(other) {
            *a &= !b;
        }
    }
}

/// Flips the first `len` bits; the bits after them become zero.
pub fn not_words(target: &mut [u64], len: usize) {
    for word in target.iter_mut() {
        *word = !*word;
    }
    let whole = len / 64;
    if let Some(last) = target.get_mut(whole) {
        *last &= (1 << (len % 64)) - 1;
    }
    if let Some(rest) = target.get_mut(whole + 1..) {
        rest.fill(0);
    }
}

multiversion! {
    /// Number of set bits.
    pub fn count_ones / count_ones_at(words: &[u64]) -> usize {
        words.iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// Number of set bits among the first `len`.
///
/// # Panics
/// If there are fewer bits than `len`.
#[must_use]
pub fn count_ones_prefix(words: &[u64], len: usize) -> usize {
    let whole = count_ones(&words[..len / 64]);
    match len % 64 {
        0 => whole,
        rest => whole + (words[len / 64] & ((1 << rest) - 1)).count_ones() as usize,
    }
}

/// Sets the bits of `range`.
///
/// # Panics
/// If `range` reaches past the words.
pub fn set_bit_range(words: &mut [u64], range: Range<usize>) {
    if range.is_empty() {
        return;
    }
    let (first, last) = (range.start / 64, (range.end - 1) / 64);
    let head = u64::MAX << (range.start % 64);
    let tail = u64::MAX >> (63 - (range.end - 1) % 64);
    if first == last {
        words[first] |= head & tail;
        return;
    }
    words[first] |= head;
    words[first + 1..last].fill(u64::MAX);
    words[last] |= tail;
}

/// Copies bits `from .. from + len` of `source` to the start of `target`; the rest of the last word
/// written becomes zero.
///
/// # Panics
/// If either has fewer bits than that.
pub fn copy_bits(source: &[u64], from: usize, len: usize, target: &mut [u64]) {
    let n_words = len.div_ceil(64);
    let (start, shift) = (from / 64, from % 64);
    if n_words == 0 {
        return;
    }
    assert!(source.len() * 64 >= from + len, "BUG: bits copied from past the end");
    if shift == 0 {
        target[..n_words].copy_from_slice(&source[start..start + n_words]);
    } else {
        for (i, slot) in target[..n_words].iter_mut().enumerate() {
            let high = source.get(start + i + 1).map_or(0, |word| word << (64 - shift));
            *slot = source[start + i] >> shift | high;
        }
    }
    if !len.is_multiple_of(64) {
        target[n_words - 1] &= (1 << (len % 64)) - 1;
    }
}

/// Appends the first `source_len` bits of `source` to a bitmap of `target_len` bits.
///
/// # Panics
/// If `target` does not have exactly the words that `target_len` bits need, or `source` too few.
pub fn append_bits(target: &mut Vec<u64>, target_len: usize, source: &[u64], source_len: usize) {
    assert_eq!(target.len(), target_len.div_ceil(64), "BUG: words do not fit the length");
    let shift = target_len % 64;
    let n_words = source_len.div_ceil(64);
    let tail_mask = match source_len % 64 {
        0 => u64::MAX,
        rest => (1 << rest) - 1,
    };
    for (i, &word) in source[..n_words].iter().enumerate() {
        let word = if i + 1 == n_words { word & tail_mask } else { word };
        if shift == 0 {
            target.push(word);
        } else {
            if let Some(last) = target.last_mut() {
                *last |= word << shift;
            }
            target.push(word >> (64 - shift));
        }
    }
    target.truncate((target_len + source_len).div_ceil(64));
}

/// The positions of the set bits, ascending.
pub fn set_bits(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(i, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let bit = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            Some(i * 64 + bit)
        })
    })
}
