//! Decoding streams of symbols, several at once.
//!
//! Each symbol of a state needs the one before it: a lookup, a multiplication, a word taken in. The eight
//! states of one stream do not fill that time, those of several streams do. So streams of whatever
//! is read together (chunks of a page, pages of a block) advance side by side as far as they go; the
//! rest of each is decoded alone.
//!
//! Invariants
//! - A stream gives the same symbols, or error, whatever it is decoded beside.
//! - Places are noted before the stream's end (the few symbols that no words are for), not in it.

#[cfg(target_arch = "x86_64")]
mod x86;

use super::Layout;
use super::marks::MARK_SYMBOLS;
use super::rans::{
    LANES, PROBABILITY_BITS, PROBABILITY_ONE, STATE_LOW, Table, end_of_states, read_states,
    read_wide_states,
};
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
    /// Symbols that are still to be decoded: from the words, and from the stream's end.
    out: &'a mut [u8],
    end: &'a mut [u8],
    /// Whether what comes from the words is all that does; and whether the end is all there is of it.
    reaches_end: bool,
    is_whole: bool,
    /// Where each `MARK_SYMBOLS` end, and how many symbols there are until the next of these.
    passed: Option<&'a mut Vec<Place>>,
    until_passed: usize,
}

impl<'a> Stream<'a> {
    /// Starts at the head of a stream, or at a place that was noted. As many symbols as `out` has room for will
    /// be decoded, of the `left` from there on.
    pub(super) fn new(
        table: &'a Table,
        layout: Layout,
        stream: &'a [u8],
        from: Option<&Place>,
        left: usize,
        out: &'a mut [u8],
    ) -> Result<Self> {
        let mut reader = Reader::new(stream);
        let (n_end, states) = match layout {
            Layout::Wide => (0, read_wide_states(&mut reader)?),
            Layout::Tight => (usize::from(reader.u8()?), read_states(&mut reader)?),
        };
        let (words, odd) = reader.rest().as_chunks::<2>();
        if !odd.is_empty() {
            return Err(DecodeError::Corrupt("half a word in the symbol stream"));
        }
        let before_end = left.checked_sub(n_end);
        let before_end =
            before_end.ok_or(DecodeError::Corrupt("an end of more symbols than there are"))?;
        let (n_words, is_whole) = (words.len(), out.len() == left);
        let reaches_end = is_whole || out.len() > before_end;
        let (out, end) = out.split_at_mut(before_end.min(out.len()));
        let mut new = Self {
            table,
            states,
            words,
            n_words,
            out,
            end,
            reaches_end,
            is_whole,
            passed: None,
            until_passed: usize::MAX,
        };
        if let Some(place) = from {
            new.states = place.states;
            let words = words.get(place.word..);
            new.words = words.ok_or(DecodeError::Corrupt("a mark of another page"))?;
        }
        Ok(new)
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

    /// Decodes what is left of the symbols that words are for; gives the stream's end if that is wanted.
    fn decode_alone(&mut self) -> Result<Option<End<'a>>> {
        while !self.out.is_empty() {
            let ready = self.ready();
            let (out, rest) = std::mem::take(&mut self.out).split_at_mut(ready);
            self.out = rest;
            self.decode_to(out)?;
            self.decoded(ready);
        }
        if !self.reaches_end {
            return Ok(None);
        }
        // By now every word was used, and the states are what the encoder began with.
        if !self.words.is_empty() {
            return Err(DecodeError::TrailingBytes(2 * self.words.len()));
        }
        let (number, out) = (end_of_states(&self.states)?, std::mem::take(&mut self.end));
        Ok(Some(End { table: self.table, number, out, is_whole: self.is_whole }))
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

/// The last symbols of a stream, as a number; how many are wanted, and whether that is all.
#[derive(Debug)]
struct End<'a> {
    table: &'a Table,
    number: u128,
    out: &'a mut [u8],
    is_whole: bool,
}

impl End<'_> {
    fn check(&self) -> Result<()> {
        if self.is_whole && self.number != 0 {
            return Err(DecodeError::Corrupt("symbol stream does not end where it should"));
        }
        Ok(())
    }
}

/// Each symbol of an end needs the one before it, so ends advance side by side as well.
fn decode_ends<K>(ends: &mut [(K, End<'_>)]) {
    let longest = ends.iter().map(|(_, end)| end.out.len()).max().unwrap_or(0);
    for at in 0..longest {
        for (_, end) in &mut *ends {
            if let Some(symbol) = end.out.get_mut(at) {
                (*symbol, end.number) = end.table.next_of_end(end.number);
            }
        }
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
    let mut ends = Vec::new();
    for (owner, stream) in streams {
        match stream.decode_alone() {
            Ok(end) => ends.extend(end.map(|end| (*owner, end))),
            Err(error) => failed(*owner, error),
        }
    }
    ends.chunks_mut(STREAMS_TOGETHER).for_each(decode_ends);
    for (owner, end) in &ends {
        if let Err(error) = end.check() {
            failed(*owner, error);
        }
    }
}
