//! Maxima and sums of integers, told from what they can be at all.
//!
//! A span of `n` values between `min` and `min + reach` has a sum of differences from `min` between `reach`
//! (one value is `min + reach`) and `(n - 1) * reach` (one is `min`). The reach itself is no more than the largest
//! of all spans, and does not lead beyond the largest maximum. Within such bounds a number takes as many
//! bits as the bounds are worth, or one less: a *centered minimal code* gives the shorter codes to
//! the middle, where sums are most often (the code is that of interpolative coding: A. Moffat and L. Stuiver, 2000).
//!
//! Invariants
//! - Everything here is relative to the minimum of the span, in arithmetic that wraps.
//! - A span of one value or none has no bits.

use crate::input::{Input, Malformed, put_varint};

/// A larger reach is not coded so: sums of as many differences as a block has rows stay below 2^56.
const REACH_MAX: u64 = 1 << 36;

/// What is coded, span by span.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Bounded {
    /// Maximum less minimum.
    pub(super) reaches: Vec<u64>,
    /// Sum less the minimum times the number of values.
    pub(super) sums: Vec<u64>,
}

/// Appends `largest reach, highest maximum, bits`; `None` if a reach is too large. `heights` are the minima less the
/// smallest of them.
pub(super) fn encode(counts: &[u64], heights: &[u64], bounded: &Bounded) -> Option<Vec<u8>> {
    let spans = || counts.iter().zip(heights).zip(bounded.reaches.iter().zip(&bounded.sums));
    let reach_max = bounded.reaches.iter().copied().max()?;
    if reach_max > REACH_MAX {
        return None;
    }
    let tops = spans()
        .filter(|((n, _), _)| **n > 0)
        .map(|((_, height), (reach, _))| height.checked_add(*reach));
    let top = tops.collect::<Option<Vec<_>>>()?.into_iter().max()?;
    let mut out = Vec::new();
    put_varint(&mut out, reach_max);
    put_varint(&mut out, top);
    let mut bits = Bits::default();
    for ((n, height), (reach, sum)) in spans().filter(|((n, _), _)| **n > 1) {
        bits.put(*reach, reach_max.min(top - height));
        bits.put(sum - reach, (n - 2) * reach);
    }
    out.extend_from_slice(&bits.finish());
    Some(out)
}

/// Reads to the end of `input`.
pub(super) fn decode(
    counts: impl Iterator<Item = u64>,
    heights: &[u64],
    input: &mut Input<'_>,
) -> Result<Bounded, Malformed> {
    let reach_max = input.bounded(REACH_MAX, "the reach of a span")? as u64;
    let top = input.varint()?;
    let mut bits = BitsIn::new(input.rest());
    let mut bounded = Bounded::default();
    for (n, height) in counts.zip(heights) {
        let (mut reach, mut sum) = (0, 0);
        if n > 1 {
            let room = top.checked_sub(*height);
            let room = room.ok_or_else(|| input.fail("a minimum above all maxima"))?;
            reach = bits.get(reach_max.min(room));
            sum = reach + bits.get((n - 2) * reach);
        }
        bounded.reaches.push(reach);
        bounded.sums.push(sum);
    }
    if bits.at.div_ceil(8) != bits.len {
        return Err(input.fail("sums that take more or fewer bytes than there are"));
    }
    Ok(bounded)
}

/// How numbers from 0 to `last` are coded: `short` of them, in the middle, in `width` bits, the others in one more.
struct Code {
    n: u64,
    width: u32,
    short: u64,
    /// The first of the short ones.
    middle: u64,
}

impl Code {
    fn of(last: u64) -> Self {
        let n = last + 1;
        let width = n.ilog2();
        let short = (2 << width) - n;
        Self { n, width, short, middle: (n - short) / 2 }
    }
}

/// Writes bits, least significant first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    /// Fewer than eight bits that are no byte yet.
    word: u64,
    filled: u32,
}

impl Bits {
    /// A number from 0 to `last`.
    fn put(&mut self, number: u64, last: u64) {
        let Code { n, width, short, middle } = Code::of(last);
        let turned = if number < middle { number + n - middle } else { number - middle };
        if turned < short {
            self.append(turned, width);
        } else {
            // The lowest bit last: a reader finds by the others that there is one more.
            self.append((turned + short) >> 1, width);
            self.append((turned + short) & 1, 1);
        }
    }

    /// At most 57 bits.
    fn append(&mut self, bits: u64, width: u32) {
        self.word |= bits << self.filled;
        self.filled += width;
        let whole = self.filled / 8;
        self.bytes.extend_from_slice(&self.word.to_le_bytes()[..whole as usize]);
        self.word = self.word.unbounded_shr(8 * whole);
        self.filled %= 8;
    }

    fn finish(mut self) -> Vec<u8> {
        if self.filled > 0 {
            self.bytes.push(self.word as u8);
        }
        self.bytes
    }
}

/// Reads what `Bits` wrote; past the end there are zeros.
struct BitsIn {
    padded: Vec<u8>,
    len: usize,
    at: usize,
}

impl BitsIn {
    fn new(bytes: &[u8]) -> Self {
        let mut padded = Vec::with_capacity(bytes.len() + 8);
        padded.extend_from_slice(bytes);
        padded.extend_from_slice(&[0; 8]);
        Self { padded, len: bytes.len(), at: 0 }
    }

    fn get(&mut self, last: u64) -> u64 {
        let Code { n, width, short, middle } = Code::of(last);
        let word = self.padded.get(self.at / 8..).and_then(|rest| rest.first_chunk());
        let word = u64::from_le_bytes(word.copied().unwrap_or_default()) >> (self.at % 8);
        let head = word & ((1 << width) - 1);
        let is_long = head >= short;
        let turned = if is_long { (head << 1 | word >> width & 1) - short } else { head };
        self.at += (width + u32::from(is_long)) as usize;
        if turned >= n - middle { turned + middle - n } else { turned + middle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn codes_are_as_short_as_documented() {
        let coded = |number, last| {
            let mut bits = Bits::default();
            bits.put(number, last);
            (bits.filled, bits.finish().first().copied().unwrap_or(0))
        };
        assert_eq!(coded(0, 0), (0, 0));
        let of_five: Vec<_> = (0..5).map(|number| coded(number, 4)).collect();
        assert_eq!(of_five, [(3, 0b111), (2, 0b00), (2, 0b01), (2, 0b10), (3, 0b011)]);
    }

    proptest! {
        #[test]
        fn numbers_come_back(
            numbers in prop::collection::vec((any::<u64>(), any::<u64>(), 0u32..56), 0..50),
        ) {
            let numbers: Vec<(u64, u64)> = numbers.into_iter().map(|(number, last, width)| {
                let last = last & ((1 << width) - 1);
                (number % (last + 1), last)
            }).collect();
            let mut bits = Bits::default();
            numbers.iter().for_each(|(number, last)| bits.put(*number, *last));
            let n_bits = 8 * bits.bytes.len() + bits.filled as usize;
            let mut read = BitsIn::new(&bits.finish());
            for (number, last) in &numbers {
                prop_assert_eq!(read.get(*last), *number);
            }
            prop_assert_eq!(read.at, n_bits);
        }

        #[test]
        fn spans_come_back(
            spans in prop::collection::vec(
                (0u64..1000, prop::collection::vec(0u64..1 << 40, 0..5), 0u32..40), 1..40,
            ),
        ) {
            let (mut counts, mut heights, mut bounded) = (vec![], vec![], Bounded::default());
            for (height, values, shift) in spans {
                let values: Vec<u64> = values.iter().map(|value| value >> shift).collect();
                let min = values.iter().copied().min().unwrap_or(0);
                counts.push(values.len() as u64);
                heights.push(if values.is_empty() { 0 } else { height + min });
                bounded.reaches.push(values.iter().copied().max().unwrap_or(0) - min);
                bounded.sums.push(values.iter().map(|value| value - min).sum());
            }
            let is_small = bounded.reaches.iter().all(|reach| *reach <= REACH_MAX);
            let encoded = encode(&counts, &heights, &bounded);
            prop_assert_eq!(encoded.is_some(), is_small && counts.iter().any(|n| *n > 0));
            if let Some(bytes) = encoded {
                let read = decode(counts.iter().copied(), &heights, &mut Input::new(&bytes)).unwrap();
                prop_assert_eq!(read, bounded);
                let short = &bytes[..bytes.len() - 1];
                let read = decode(counts.iter().copied(), &heights, &mut Input::new(short));
                prop_assert!(read.is_err() || counts.iter().all(|n| *n < 2));
            }
        }
    }
}
