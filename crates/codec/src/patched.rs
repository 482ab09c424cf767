//! A bit-packed sequence with exceptions: the body of most integer pages.
//!
//! Layout: base (ivarint), width (one byte, top bit = has exceptions), packed `value - base`, then
//! the exceptions, if any: their number, and for each the distance from the position after the
//! previous one (uvarint) and its `value - base` (ivarint, any 64-bit value), which is added to what
//! is packed there (an encoder packs zero).
//! The body is always the last field of a page, so it ends where the page ends.
//!
//! All arithmetic wraps: a sequence is any `u64`s, and the window `base .. base + 2^width` may lie
//! across either end of the number line.

use std::ops::Range;

use crate::{
    bitpack::{
        BLOCK, bits_of, check_packed, low_mask, pack, packed_len, sum, unpack, unpack_running,
        value_at,
    },
    error::{DecodeError, Result},
    prefix::prefix_sum,
    simd::multiversion,
    wire::{Reader, put_ivarint, put_uvarint, uvarint_len, zigzag},
};

const HAS_EXCEPTIONS: u8 = 0x80;

/// Pages up to here use a buffer that costs less to clear than they cost to encode.
const SMALL: usize = 128;

/// What one exception costs besides its value, in bits: its position, and a price on decoding it
/// one by one.
const EXCEPTION_BITS: u64 = 28;

/// Which window of values is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) base: u64,
    pub(crate) width: u32,
    /// Expected size of the body.
    pub(crate) bits: u64,
}

impl Plan {
    /// The window that holds every value: no exceptions.
    pub(crate) fn whole(count: usize, min: i64, max: i64) -> Self {
        let width = bits_of(max.wrapping_sub(min) as u64);
        let bits = count as u64 * u64::from(width) + header_bits(min);
        Self { base: min as u64, width, bits }
    }

    /// The cheapest window for a sequence of `count` values in `min..=max`, judged by `sample`.
    pub(crate) fn cheapest(sample: &[u64], count: usize, min: i64, max: i64) -> Self {
        let mut best = Self::whole(count, min, max);
        // A narrower window saves at most a bit a value for each bit; exceptions never pay when
        // there is next to nothing to save.
        if best.width == 0 || sample.is_empty() {
            return best;
        }
        let center = median(sample);
        let mut around_center = [0u32; 65];
        let mut above_min = [0u32; 65];
        for &value in sample {
            let distance = zigzag(value.wrapping_sub(center) as i64);
            around_center[bits_of(distance) as usize] += 1;
            above_min[bits_of(value.wrapping_sub(min as u64)) as usize] += 1;
        }
        for (needed, from_center) in [(&around_center, true), (&above_min, false)] {
            let (width, bits) = cheapest_width(needed, count);
            let base = match (from_center, width) {
                (false, _) => min as u64,
                (true, 0) => center,
                (true, _) => center.wrapping_sub(1 << (width - 1)),
            };
            let bits = bits + header_bits(base as i64);
            if bits < best.bits {
                best = Self { base, width, bits };
            }
        }
        best
    }
}

fn header_bits(base: i64) -> u64 {
    8 * (1 + uvarint_len(zigzag(base)) as u64)
}

/// A middle value of up to 63 values of `sample`.
pub(crate) fn median(sample: &[u64]) -> u64 {
    let mut picked = [0i64; 63];
    let n = sample.len().min(picked.len());
    let step = sample.len() / n;
    for (slot, value) in picked.iter_mut().zip(sample.iter().step_by(step)) {
        *slot = *value as i64;
    }
    *picked[..n].select_nth_unstable(n / 2).1 as u64
}

/// From how many sampled values need how many bits, the width with the fewest bits in total.
fn cheapest_width(needed: &[u32; 65], count: usize) -> (u32, u64) {
    let sampled: u32 = needed.iter().sum();
    let scale = count as f64 / f64::from(sampled);
    let widest = needed.iter().rposition(|&n| n > 0).unwrap_or(0) as u32;
    let mut best = (64, u64::MAX);
    let mut exception_bits = 0u64;
    for width in (0..=widest).rev() {
        let bits = count as u64 * u64::from(width) + (exception_bits as f64 * scale) as u64;
        if bits <= best.1 {
            best = (width, bits);
        }
        let value_bits = 8 * u64::from((width + 1).div_ceil(7));
        exception_bits += u64::from(needed[width as usize]) * (EXCEPTION_BITS + value_bits);
    }
    best
}

multiversion! {
    /// Subtracts the base; returns the bits that lie outside the window in any value.
    fn subtract / subtract_at(values: &mut [u64], base: u64, outside: u64) -> u64 {
        let mut seen = 0;
        for value in values.iter_mut() {
            *value = value.wrapping_sub(base);
            seen |= *value & outside;
        }
        seen
    }
}

/// Appends a body of `count` values that `fill(first, block)` produces in order.
///
/// Gives up and leaves `out` as it was when it grows past `bytes_max`: the sample that made the plan
/// was not like the rest.
pub(crate) fn encode(
    count: usize,
    plan: &Plan,
    bytes_max: usize,
    out: &mut Vec<u8>,
    mut fill: impl FnMut(usize, &mut [u64]),
) -> bool {
    let start = out.len();
    out.reserve(packed_len(count, plan.width) + 32);
    put_ivarint(out, plan.base as i64);
    let flags_at = out.len();
    out.push(plan.width as u8);
    let outside = !low_mask(plan.width);
    let mut exceptions = ExceptionList::default();
    let (mut small, mut large);
    let block: &mut [u64] = if count <= SMALL {
        small = [0u64; SMALL];
        &mut small
    } else {
        large = [0u64; BLOCK];
        &mut large
    };
    for first in (0..count).step_by(BLOCK) {
        let block = &mut block[..BLOCK.min(count - first)];
        fill(first, block);
        if subtract(block, plan.base, outside) != 0 {
            for (i, value) in block.iter_mut().enumerate().filter(|(_, v)| **v & outside != 0) {
                exceptions.push(first + i, *value);
                *value = 0;
            }
        }
        pack(block, plan.width, out);
        if out.len() - start + exceptions.byte_len() > bytes_max {
            out.truncate(start);
            return false;
        }
    }
    if !exceptions.is_empty() {
        out[flags_at] |= HAS_EXCEPTIONS;
        exceptions.write(out);
    }
    true
}

/// Whether the body that is read next has exceptions.
pub(crate) fn has_exceptions(reader: &mut Reader<'_>) -> bool {
    reader.ivarint().and_then(|_| reader.u8()).is_ok_and(|flags| flags & HAS_EXCEPTIONS != 0)
}

/// Differences of neighbours, to be added up.
pub(crate) trait Differences {
    /// Gives the running sums of the values from `start` on, and the last of them. `first` only moves forward.
    fn read_sums(&mut self, first: usize, start: u64, out: &mut [u64]) -> Result<u64>;

    /// The sum of the values of some rows, the first of which is a multiple of eight. Those of later ones can be
    /// asked for then.
    fn sum(&mut self, rows: Range<usize>) -> Result<u64>;

    /// After the last row was read: nothing may be left.
    fn finish(self) -> Result<()>;
}

/// A body without exceptions, as most of few rows are. It fits into registers: a [`Body`] that was just put together is
/// copied, and such a copy waits until all that was written before is in the cache, the values of the page before it too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain<'a> {
    pub(crate) base: u64,
    pub(crate) width: u32,
    pub(crate) packed: &'a [u8],
    bytes_left: usize,
}

impl<'a> Plain<'a> {
    /// `None`: there are exceptions.
    #[inline]
    pub(crate) fn read(mut reader: Reader<'a>, count: usize) -> Result<Option<Self>> {
        let base = reader.ivarint()? as u64;
        let width = u32::from(reader.u8()?);
        if width > 64 {
            return Ok(None);
        }
        let packed = reader.take(packed_len(count, width))?;
        Ok(Some(Self { base, width, packed, bytes_left: reader.remaining() }))
    }
}

impl Differences for Plain<'_> {
    #[inline]
    fn read_sums(&mut self, first: usize, start: u64, out: &mut [u64]) -> Result<u64> {
        Ok(unpack_running(self.packed, first, self.width, out, start, self.base))
    }

    #[inline]
    fn sum(&mut self, rows: Range<usize>) -> Result<u64> {
        // A group of eight begins at a whole byte.
        let packed =
            sum(&self.packed[rows.start / 8 * self.width as usize..], rows.len(), self.width);
        Ok(packed.wrapping_add(self.base.wrapping_mul(rows.len() as u64)))
    }

    #[inline]
    fn finish(self) -> Result<()> {
        if self.bytes_left == 0 { Ok(()) } else { Err(DecodeError::TrailingBytes(self.bytes_left)) }
    }
}

/// A parsed body.
#[derive(Clone, Debug)]
pub(crate) struct Body<'a> {
    pub(crate) base: u64,
    pub(crate) width: u32,
    pub(crate) packed: &'a [u8],
    exceptions: Exceptions<'a>,
}

impl<'a> Body<'a> {
    pub(crate) fn read(reader: Reader<'a>, count: usize) -> Result<Self> {
        Self::read_from(reader, count, ExceptionPlace::default())
    }

    /// The same with the exceptions from a place in this very body on.
    pub(crate) fn read_from(
        mut reader: Reader<'a>,
        count: usize,
        place: ExceptionPlace,
    ) -> Result<Self> {
        let base = reader.ivarint()? as u64;
        let flags = reader.u8()?;
        let width = u32::from(flags & !HAS_EXCEPTIONS);
        if width > 64 {
            return Err(DecodeError::Corrupt("bit width above 64"));
        }
        let packed = reader.take(packed_len(count, width))?;
        check_packed(packed, count, width)?;
        let has_exceptions = flags & HAS_EXCEPTIONS != 0;
        let exceptions = Exceptions::read(reader, has_exceptions, count, place)?;
        Ok(Self { base, width, packed, exceptions })
    }

    /// For every `rows` values the place of the first exception among them or behind them; `None` if there are less than so many.
    pub(crate) fn places(
        mut self,
        rows: usize,
        exceptions_min: u64,
    ) -> Result<Option<Box<[ExceptionPlace]>>> {
        let exceptions = &mut self.exceptions;
        let number = exceptions.remaining + u64::from(exceptions.next.is_some());
        if number < exceptions_min {
            return Ok(None);
        }
        let count = exceptions.count;
        let mut places = vec![ExceptionPlace::default(); count.div_ceil(rows)];
        let (mut place, mut next_place) = (ExceptionPlace::default(), 0);
        while let Some((position, _)) = exceptions.next {
            let until = position / rows + 1;
            places[next_place..until].fill(place);
            next_place = until;
            place = ExceptionPlace {
                passed: (number - exceptions.remaining) as u32,
                bytes_left: exceptions.reader.remaining() as u32,
                position: position as u32 + 1,
            };
            exceptions.advance(position + 1)?;
        }
        places[next_place..].fill(place);
        Ok(Some(places.into()))
    }

    /// Gives the values that are exceptions among some rows, with their rows; rows only move forward.
    pub(crate) fn each_exception(
        &mut self,
        rows: Range<usize>,
        mut each: impl FnMut(usize, u64),
    ) -> Result<()> {
        while let Some((row, value)) = self.exceptions.next_before(rows.end) {
            if row >= rows.start {
                let packed = value_at(self.packed, row, self.width);
                each(row, value.wrapping_add(packed).wrapping_add(self.base));
            }
            self.exceptions.advance(row + 1)?;
        }
        Ok(())
    }

    /// Gives `value - base` for rows `first .. first + out.len()`; rows only move forward.
    pub(crate) fn read_block(&mut self, first: usize, out: &mut [u64]) -> Result<()> {
        unpack(self.packed, first, self.width, out);
        self.exceptions.add(first, out)
    }
}

impl Differences for Body<'_> {
    fn read_sums(&mut self, first: usize, start: u64, out: &mut [u64]) -> Result<u64> {
        let end = first + out.len();
        if self.exceptions.are_dense && self.exceptions.next_before(end).is_some() {
            self.read_block(first, out)?;
            return Ok(prefix_sum(out, start, self.base));
        }
        let mut last = unpack_running(self.packed, first, self.width, out, start, self.base);
        // An exception moves all sums behind it; each stretch between two is moved once.
        let mut moved = 0u64;
        while let Some((position, value)) = self.exceptions.next_before(end) {
            self.exceptions.advance(position + 1)?;
            if position < first {
                continue;
            }
            moved = moved.wrapping_add(value);
            last = last.wrapping_add(value);
            let until = self.exceptions.next_before(end).map_or(end, |(next, _)| next);
            for sum in &mut out[position - first..until - first] {
                *sum = sum.wrapping_add(moved);
            }
        }
        Ok(last)
    }

    fn sum(&mut self, rows: Range<usize>) -> Result<u64> {
        // A group of eight begins at a whole byte.
        let packed = &self.packed[rows.start / 8 * self.width as usize..];
        let packed = sum(packed, rows.len(), self.width);
        let mut sum = packed.wrapping_add(self.base.wrapping_mul(rows.len() as u64));
        while let Some((position, value)) = self.exceptions.next_before(rows.end) {
            if position >= rows.start {
                sum = sum.wrapping_add(value);
            }
            self.exceptions.advance(position + 1)?;
        }
        Ok(sum)
    }

    fn finish(self) -> Result<()> {
        self.exceptions.finish()
    }
}

/// Behind some exceptions of a body. The default is before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExceptionPlace {
    /// How many these are.
    passed: u32,
    /// What stands behind them.
    bytes_left: u32,
    /// The position behind the last of them.
    position: u32,
}

/// A cursor over the exceptions of a body, in ascending order of position.
#[derive(Clone, Debug)]
struct Exceptions<'a> {
    reader: Reader<'a>,
    /// Exceptions still in `reader`, not counting `next`.
    remaining: u64,
    /// Position and value of the exception to be applied next.
    next: Option<(usize, u64)>,
    /// More than a few in every block.
    are_dense: bool,
    count: usize,
}

impl<'a> Exceptions<'a> {
    fn read(
        mut reader: Reader<'a>,
        present: bool,
        count: usize,
        from: ExceptionPlace,
    ) -> Result<Self> {
        let number = if present { reader.uvarint()? } else { 0 };
        if present && (number == 0 || number > count as u64) {
            return Err(DecodeError::Corrupt("number of exceptions"));
        }
        let are_dense = number.saturating_mul(256) > count as u64;
        let mut exceptions = Self { reader, remaining: number, next: None, are_dense, count };
        if from.passed > 0 {
            exceptions.pass(from).ok_or(DecodeError::Corrupt("a place behind the exceptions"))?;
        }
        exceptions.advance(from.position as usize)?;
        Ok(exceptions)
    }

    /// Goes on at a place; `None`: it is none of this page.
    fn pass(&mut self, place: ExceptionPlace) -> Option<()> {
        self.remaining = self.remaining.checked_sub(place.passed.into())?;
        let bytes = self.reader.remaining().checked_sub(place.bytes_left as usize)?;
        self.reader.take(bytes).ok()?;
        (place.position as usize <= self.count).then_some(())
    }

    fn advance(&mut self, from: usize) -> Result<()> {
        if self.remaining == 0 {
            self.next = None;
            return Ok(());
        }
        self.remaining -= 1;
        let gap = self.reader.uvarint()?;
        if gap >= (self.count - from) as u64 {
            return Err(DecodeError::Corrupt("exception position past the end"));
        }
        self.next = Some((from + gap as usize, self.reader.ivarint()? as u64));
        Ok(())
    }

    fn next_before(&self, end: usize) -> Option<(usize, u64)> {
        self.next.filter(|(position, _)| *position < end)
    }

    /// Adds the exceptions among the rows of `out`, which starts at row `first`.
    fn add(&mut self, first: usize, out: &mut [u64]) -> Result<()> {
        while let Some((position, value)) = self.next_before(first + out.len()) {
            if position >= first {
                out[position - first] = out[position - first].wrapping_add(value);
            }
            self.advance(position + 1)?;
        }
        Ok(())
    }

    fn finish(self) -> Result<()> {
        match self.next {
            Some(_) => Err(DecodeError::Corrupt("exceptions left over")),
            None => self.reader.finish(),
        }
    }
}

/// Collects exceptions in the form that `Exceptions` reads.
#[derive(Debug, Default)]
struct ExceptionList {
    bytes: Vec<u8>,
    number: u64,
    next_position: usize,
}

impl ExceptionList {
    /// Positions must ascend.
    fn push(&mut self, position: usize, value: u64) {
        put_uvarint(&mut self.bytes, (position - self.next_position) as u64);
        put_ivarint(&mut self.bytes, value as i64);
        self.next_position = position + 1;
        self.number += 1;
    }

    fn is_empty(&self) -> bool {
        self.number == 0
    }

    fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends the number of exceptions and the exceptions.
    fn write(&self, out: &mut Vec<u8>) {
        put_uvarint(out, self.number);
        out.extend_from_slice(&self.bytes);
    }
}

const _: () = assert!(BLOCK.is_multiple_of(8), "blocks must join into one packed stream");
