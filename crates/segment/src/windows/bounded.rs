//! Minima, maxima and sums of integers, told from what they can be at all.
//!
//! A window begins near where the one before ended: its minimum is within some distance of the maximum before. The
//! *reach* of a span (maximum less minimum) is no more than the largest of all, and does not lead beyond the largest
//! maximum. The sum of `n` differences from the minimum is between `reach` (one value is the maximum) and `(n - 1) *
//! reach` (one is the minimum). Within such bounds a number takes as many
//! bits as the bounds are worth, or one less: a *centered minimal code* gives the shorter codes to
//! the middle, where sums are most often (the code is that of interpolative coding: A. Moffat and L. Stuiver, 2000).
//!
//! Invariants
//! - Reaches and sums are relative to the minimum of the span, in arithmetic that wraps.
//! - A span without values has no bits and is all zeros, one of a single value has those of its minimum alone.

use codec::{BitReader, BitWriter};

use crate::input::{Input, Malformed, put_varint, put_zigzag};

/// A larger reach is not coded so: sums of as many differences as a block has rows stay below 2^56.
const REACH_MAX: u64 = 1 << 36;
/// Nor are maxima that are further above the smallest minimum.
const TOP_MAX: u64 = 1 << 56;

/// What is coded, span by span.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Bounded {
    /// Minima, of which the order is that of the bits with `sign` turned.
    pub(super) mins: Vec<u64>,
    /// Maximum less minimum.
    pub(super) reaches: Vec<u64>,
    /// Sum less the minimum times the number of values.
    pub(super) sums: Vec<u64>,
}

/// What holds for all spans with values. Heights are above the smallest minimum.
#[derive(Debug, Default)]
struct Bounds {
    smallest: u64,
    /// The height of the largest maximum.
    top: u64,
    reach: u64,
    /// How far a minimum is at most below and above the maximum of the span before.
    fall: u64,
    rise: u64,
}

impl Bounds {
    /// `None` if there are no values, or if they are too far apart.
    fn of(counts: &[u64], bounded: &Bounded, sign: u64) -> Option<Self> {
        let spans = || with_values(counts, bounded, sign);
        let smallest = spans().map(|(_, min, ..)| min).min()?;
        let mut bounds = Self { smallest, ..Self::default() };
        let mut before = None;
        for (_, min, reach, _) in spans() {
            let height = min - smallest;
            let end = height.checked_add(reach)?;
            bounds.top = bounds.top.max(end);
            bounds.reach = bounds.reach.max(reach);
            let before = before.replace(end).unwrap_or(height);
            bounds.fall = bounds.fall.max(before.saturating_sub(height));
            bounds.rise = bounds.rise.max(height.saturating_sub(before));
        }
        (bounds.top <= TOP_MAX && bounds.reach <= REACH_MAX).then_some(bounds)
    }

    fn read(input: &mut Input<'_>, sign: u64) -> Result<Self, Malformed> {
        let smallest = input.zigzag()?.cast_unsigned() ^ sign;
        let top = input.bounded(TOP_MAX, "the height of a maximum")? as u64;
        let reach = input.bounded(REACH_MAX, "the reach of a span")? as u64;
        Ok(Self { smallest, top, reach, fall: input.varint()?, rise: input.varint()? })
    }

    fn write(&self, sign: u64, out: &mut Vec<u8>) {
        put_zigzag(out, (self.smallest ^ sign).cast_signed());
        for number in [self.top, self.reach, self.fall, self.rise] {
            put_varint(out, number);
        }
    }

    /// The least height of a minimum, and how far it can be above that, behind a span with its maximum at `before`.
    fn height(&self, before: Option<u64>) -> (u64, u64) {
        let Some(before) = before else { return (0, self.top) };
        let least = before.saturating_sub(self.fall);
        (least, before.saturating_add(self.rise).min(self.top) - least)
    }

    /// The largest reach above a minimum.
    fn reach(&self, height: u64) -> u64 {
        self.reach.min(self.top - height)
    }
}

/// Number of values, minimum (as an unsigned number of that order), reach and sum of the spans that have values.
fn with_values<'a>(
    counts: &'a [u64],
    bounded: &'a Bounded,
    sign: u64,
) -> impl Iterator<Item = (u64, u64, u64, u64)> + 'a {
    let Bounded { mins, reaches, sums } = bounded;
    let numbers = mins.iter().zip(reaches).zip(sums);
    let spans = counts
        .iter()
        .zip(numbers)
        .map(move |(n, ((min, reach), sum))| (*n, *min ^ sign, *reach, *sum));
    spans.filter(|(n, ..)| *n > 0)
}

/// Bounds and bits; `None` if there are no values, or if they are too far apart. `sign` is the highest bit for
/// signed integers, and nothing for unsigned ones.
pub(super) fn encode(counts: &[u64], bounded: &Bounded, sign: u64) -> Option<Vec<u8>> {
    let bounds = Bounds::of(counts, bounded, sign)?;
    let mut out = Vec::new();
    bounds.write(sign, &mut out);
    let (mut bits, mut before) = (BitWriter::default(), None);
    for (n, min, reach, sum) in with_values(counts, bounded, sign) {
        let height = min - bounds.smallest;
        let (least, room) = bounds.height(before);
        put(&mut bits, height - least, room);
        if n > 1 {
            put(&mut bits, reach, bounds.reach(height));
            put(&mut bits, sum - reach, (n - 2) * reach);
        }
        before = Some(height + reach);
    }
    out.extend_from_slice(&bits.finish());
    Some(out)
}

/// Reads to the end of `input`.
pub(super) fn decode(
    counts: impl ExactSizeIterator<Item = u64>,
    input: &mut Input<'_>,
    sign: u64,
) -> Result<Bounded, Malformed> {
    let bounds = Bounds::read(input, sign)?;
    let (mut bits, mut before) = (BitReader::new(input.rest(), 0), None);
    let room = || Vec::with_capacity(counts.len());
    let mut bounded = Bounded { mins: room(), reaches: room(), sums: room() };
    for n in counts {
        let (mut min, mut reach, mut sum) = (0, 0, 0);
        if n > 0 {
            let (least, room) = bounds.height(before);
            let height = least + get(&mut bits, room);
            if n > 1 {
                reach = get(&mut bits, bounds.reach(height));
                sum = reach + get(&mut bits, (n - 2) * reach);
            }
            min = bounds.smallest.wrapping_add(height) ^ sign;
            before = Some(height + reach);
        }
        bounded.mins.push(min);
        bounded.reaches.push(reach);
        bounded.sums.push(sum);
    }
    bits.finish()?;
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

/// Writes a number from 0 to `last`, which is at most 2^56.
fn put(bits: &mut BitWriter, number: u64, last: u64) {
    let Code { n, width, short, middle } = Code::of(last);
    let turned = if number < middle { number + n - middle } else { number - middle };
    if turned < short {
        bits.put(turned, width);
    } else {
        // The lowest bit last: a reader finds by the others that there is one more.
        bits.put((turned + short) >> 1, width);
        bits.put((turned + short) & 1, 1);
    }
}

/// Reads a number from 0 to `last`.
#[inline]
fn get(bits: &mut BitReader<'_>, last: u64) -> u64 {
    let Code { n, width, short, middle } = Code::of(last);
    let head = bits.get(width);
    let turned = if head < short { head } else { (head << 1 | bits.get(1)) - short };
    if turned >= n - middle { turned + middle - n } else { turned + middle }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn codes_are_as_short_as_documented() {
        let coded = |number, last| {
            let mut bits = BitWriter::default();
            put(&mut bits, number, last);
            let bytes = bits.finish();
            let mut read = BitReader::new(&bytes, 0);
            assert_eq!(get(&mut read, last), number);
            (read.bit(), bytes.first().copied().unwrap_or(0))
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
            let mut bits = BitWriter::default();
            numbers.iter().for_each(|(number, last)| put(&mut bits, *number, *last));
            let bytes = bits.finish();
            let mut read = BitReader::new(&bytes, 0);
            for (number, last) in &numbers {
                prop_assert_eq!(get(&mut read, *last), *number);
            }
            prop_assert_eq!(read.finish(), Ok(()));
        }

        #[test]
        fn spans_come_back(
            spans in prop::collection::vec(
                (0u64..1000, prop::collection::vec(0u64..1 << 40, 0..5), 0u32..40), 1..40,
            ),
            smallest: u64,
            is_signed: bool,
        ) {
            let sign = u64::from(is_signed) << 63;
            let (mut counts, mut bounded) = (vec![], Bounded::default());
            for (height, values, shift) in spans {
                let values: Vec<u64> = values.iter().map(|value| value >> shift).collect();
                let min = values.iter().copied().min().unwrap_or(0);
                let base = (smallest >> 1) + height;
                counts.push(values.len() as u64);
                bounded.mins.push(if values.is_empty() { 0 } else { (base + min) ^ sign });
                bounded.reaches.push(values.iter().copied().max().unwrap_or(0) - min);
                bounded.sums.push(values.iter().map(|value| value - min).sum());
            }
            let is_small = bounded.reaches.iter().all(|reach| *reach <= REACH_MAX);
            let encoded = encode(&counts, &bounded, sign);
            prop_assert_eq!(encoded.is_some(), is_small && counts.iter().any(|n| *n > 0));
            if let Some(bytes) = encoded {
                let read = decode(counts.iter().copied(), &mut Input::new(&bytes), sign).unwrap();
                prop_assert_eq!(read, bounded);
                let longer = [&bytes[..], &[0]].concat();
                prop_assert!(decode(counts.iter().copied(), &mut Input::new(&longer), sign).is_err());
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..60),
            counts in prop::collection::vec(0u64..1 << 20, 0..20),
        ) {
            drop(decode(counts.into_iter(), &mut Input::new(&bytes), 0));
        }
    }
}
