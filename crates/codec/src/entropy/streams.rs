//! Decoding streams of symbols, several at once.
//!
//! Each symbol of a state needs the one before it: a lookup, a multiplication, a word taken in. The eight
//! states of one stream do not fill that time, those of several streams do. So streams of whatever
//! is read together (chunks of a page, pages of a block) advance side by side as far as they go; the
//! rest of each is decoded alone.
//!
//! Invariants
//! - A stream gives the same symbols, or error, whatever it is decoded beside.

#[cfg(target_arch = "x86_64")]
mod x86;

use super::marks::MARK_SYMBOLS;
use super::rans::{LANES, PROBABILITY_BITS, PROBABILITY_ONE, STATE_LOW, Table};
use crate::{
    error::{DecodeError, Result},
    simd::SimdLevel,
    wire::Reader,
};

/// Streams that advance side by side: with more, registers run out. So many pages, or chunks of pages, gain
/// from being decoded together.
pub const STREAMS_TOGETHER: usize = 4;

/// A place in a stream: its states, and how many of its words they took in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) states: [u32; LANES],
    pub(super) word: usize,
}

/// The rest of a stream, and the place for its symbols.
#[derive(Debug)]
pub(super) struct Stream<'a> {
    table: &'a Table,
    states: [u32; LANES],
    words: &'a [[u8; 2]],
    n_words: usize,
    /// Symbols that are still to be decoded, and whether that is all there are.
    out: &'a mut [u8],
    is_whole: bool,
    /// Where each `MARK_SYMBOLS` end, and how many symbols there are until the next of these.
    passed: Option<&'a mut Vec<Place>>,
    until_passed: usize,
}

impl<'a> Stream<'a> {
    /// Starts at the head of a stream. As many symbols as `out` has room for will be decoded;
    /// `is_whole` says that it has no more.
    pub(super) fn new(
        table: &'a Table,
        stream: &'a [u8],
        is_whole: bool,
        out: &'a mut [u8],
    ) -> Result<Self> {
        let mut reader = Reader::new(stream);
        let mut states = [0; LANES];
        for state in &mut states {
            *state = u32::from_le_bytes(reader.array()?);
        }
        let (words, odd) = reader.rest().as_chunks::<2>();
        if !odd.is_empty() {
            return Err(DecodeError::Corrupt("half a word in the symbol stream"));
        }
        let (n_words, until_passed) = (words.len(), usize::MAX);
        Ok(Self { table, states, words, n_words, out, is_whole, passed: None, until_passed })
    }

    /// Goes on from a place of the stream, not from its head.
    pub(super) fn go_on(&mut self, place: &Place) -> Result<()> {
        let words = self.words.get(place.word..);
        self.words = words.ok_or(DecodeError::Corrupt("a mark of another page"))?;
        self.states = place.states;
        Ok(())
    }

    /// Notes where each `MARK_SYMBOLS` from here on end.
    pub(super) fn note(&mut self, passed: &'a mut Vec<Place>) {
        (self.passed, self.until_passed) = (Some(passed), MARK_SYMBOLS);
    }

    /// Symbols that can be decoded without passing a place to note.
    fn ready(&self) -> usize {
        self.out.len().min(self.until_passed)
    }

    /// So many symbols, at most those that are ready, were decoded, and left the stream as it is now.
    fn decoded(&mut self, symbols: usize) {
        if let Some(passed) = &mut self.passed {
            self.until_passed -= symbols;
            if self.until_passed == 0 {
                let word = self.n_words - self.words.len();
                passed.push(Place { states: self.states, word });
                self.until_passed = MARK_SYMBOLS;
            }
        }
    }

    /// Decodes what is left of the symbols.
    fn decode_alone(&mut self) -> Result<()> {
        while !self.out.is_empty() {
            let ready = self.ready();
            let (out, rest) = std::mem::take(&mut self.out).split_at_mut(ready);
            self.out = rest;
            self.decode_to(out)?;
            self.decoded(ready);
        }
        // After the last symbol every word was used, and the states are where the encoder began.
        if self.is_whole && !self.words.is_empty() {
            return Err(DecodeError::TrailingBytes(2 * self.words.len()));
        }
        if self.is_whole && self.states != [STATE_LOW; LANES] {
            return Err(DecodeError::Corrupt("symbol stream does not end where it should"));
        }
        Ok(())
    }

    /// Decodes symbols: whole steps, unless they are the last.
    fn decode_to(&mut self, out: &mut [u8]) -> Result<()> {
        let (symbols, ranges) = (&*self.table.symbols, &self.table.ranges);
        let (mut states, mut words) = (self.states, self.words);
        for step in out.chunks_mut(LANES) {
            // Words past the end read as zero; they are counted, and refused below.
            let mut padded = [[0u8; 2]; LANES];
            let window = match words.first_chunk::<LANES>() {
                Some(window) => window,
                None => {
                    padded[..words.len()].copy_from_slice(words);
                    &padded
                }
            };
            let mut taken = 0;
            for (state, symbol) in states.iter_mut().zip(step) {
                let slot = *state % PROBABILITY_ONE;
                *symbol = symbols[slot as usize];
                let range = ranges[*symbol as usize];
                let next = (range >> 16) * (*state >> PROBABILITY_BITS) + slot - (range & 0xffff);
                // Never more than LANES words a step; the mask spares a bounds check.
                let word = u32::from(u16::from_le_bytes(window[taken % LANES]));
                // Whether to take in a word is as random as the data: arithmetic instead of a branch.
                let low = u32::from(next < STATE_LOW);
                *state = next << (16 * low) | word & low.wrapping_neg();
                taken += low as usize;
            }
            let Some(left) = words.get(taken..) else {
                return Err(DecodeError::Truncated { needed: 2 * (taken - words.len()) as u64 });
            };
            words = left;
        }
        (self.states, self.words) = (states, words);
        Ok(())
    }
}

/// Decodes the symbols of all streams; `failed` hears of those that are damaged, by their owners.
pub(super) fn decode<K: Copy>(streams: &mut [(K, Stream<'_>)], failed: impl FnMut(K, DecodeError)) {
    decode_at(SimdLevel::detect(), streams, failed);
}

pub(super) fn decode_at<K: Copy>(
    level: SimdLevel,
    streams: &mut [(K, Stream<'_>)],
    mut failed: impl FnMut(K, DecodeError),
) {
    #[cfg(not(target_arch = "x86_64"))]
    let _ = level;
    #[cfg(target_arch = "x86_64")]
    x86::advance(level, streams.iter_mut().map(|(_, stream)| stream).collect());
    for (owner, stream) in streams {
        if let Err(error) = stream.decode_alone() {
            failed(*owner, error);
        }
    }
}
