//! Range asymmetric numeral systems: symbols to bits at the cost their frequencies deserve (J. Duda, 2013;
//! interleaved as in F. Giesen, 2014).
//!
//! Symbol `i` of a stream belongs to state `i % LANES`. A state is in `STATE_LOW .. 2^32`; decoding
//! a symbol shrinks it, and when it falls below `STATE_LOW` it takes in the next 16-bit word. The
//! encoder works from the last symbol to the first, so that the decoder (`streams`) goes forward.
//!
//! An encoder's states cannot be empty when it begins: sixteen bits of each would be told of nothing. They hold
//! the end of the stream, its last symbols as one number of 128 bits, which is coded by the same rule with one state
//! that is never cut.

#[cfg(target_arch = "x86_64")]
mod x86;

use super::frequencies::Frequencies;
use super::symbols::{DIRECT, N_SYMBOLS_MAX};
use crate::{
    bit_stream::{BitReader, BitWriter},
    error::{DecodeError, Result},
    simd::SimdLevel,
    wire::Reader,
};

/// Interleaved states: enough independent work to hide the latency of a table lookup and a
/// multiplication.
pub(super) const LANES: usize = 8;
pub(super) const PROBABILITY_BITS: u32 = 12;
pub(super) const PROBABILITY_ONE: u32 = 1 << PROBABILITY_BITS;
pub(super) const STATE_LOW: u32 = 1 << 16;

/// Symbols a stream's end can have: their number is a byte.
pub(super) const END_SYMBOLS_MAX: usize = u8::MAX as usize;

/// One for each of the low bits a state can have. Some more, so that the place does not end with a page
/// of memory: short fills use masked stores, which take microseconds where they would reach, did the
/// mask not keep them from it, into a page that is not there.
const SLOTS: usize = PROBABILITY_ONE as usize + 64;

/// The lookup tables of a page. Small, since those of several pages are in use at once, and made anew
/// for each page that is read.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// For each of the possible low bits of a state, the symbol.
    pub(super) symbols: Box<[u8; SLOTS]>,
    /// Of each symbol: its frequency in the upper half, the sum of those before it in the lower.
    pub(super) ranges: [u32; N_SYMBOLS_MAX],
    /// Symbols from this one on do not occur.
    pub(super) n_symbols: usize,
}

impl Table {
    pub(super) fn new(frequencies: &Frequencies) -> Box<Self> {
        let each = frequencies.each();
        let mut symbols = Vec::with_capacity(SLOTS);
        let mut ranges = [0; N_SYMBOLS_MAX];
        for (symbol, &frequency) in each.iter().enumerate() {
            ranges[symbol] = u32::from(frequency) << 16 | symbols.len() as u32;
            symbols.resize(symbols.len() + usize::from(frequency), symbol as u8);
        }
        symbols.resize(SLOTS, 0);
        let symbols = symbols.into_boxed_slice().try_into();
        let symbols = symbols.expect("BUG: frequencies do not add up");
        // Whoever has it is handed around: in a box that costs nothing.
        Box::new(Self { symbols, ranges, n_symbols: each.len() })
    }

    /// Whether any symbol is followed by raw bits.
    pub(super) fn has_raw_symbols(&self) -> bool {
        self.n_symbols as u64 > DIRECT
    }

    /// The first of the symbols that are in the number of a stream's end, and the number of the others.
    #[inline]
    pub(super) fn next_of_end(&self, number: u128) -> (u8, u128) {
        let slot = number as u32 % PROBABILITY_ONE;
        let symbol = self.symbols[slot as usize];
        let range = self.ranges[usize::from(symbol)];
        let rest = u128::from(range >> 16) * (number >> PROBABILITY_BITS);
        (symbol, rest + u128::from(slot - (range & 0xffff)))
    }
}

/// The states a decoder starts from, of a page that is no longer written: four bytes each.
pub(super) fn read_wide_states(reader: &mut Reader<'_>) -> Result<[u32; LANES]> {
    let mut states = [0; LANES];
    for state in &mut states {
        *state = u32::from_le_bytes(reader.array()?);
    }
    Ok(states)
}

/// The states a decoder starts from: of each four bits with the place of its highest bit, then the bits below.
pub(super) fn read_states(reader: &mut Reader<'_>) -> Result<[u32; LANES]> {
    let places = u32::from_le_bytes(reader.array()?);
    let n_bits = |lane: usize| STATE_LOW.ilog2() + (places >> (4 * lane) & 15);
    let total: u32 = (0..LANES).map(n_bits).sum();
    let mut bits = BitReader::new(reader.take(total.div_ceil(8) as usize)?, 0);
    Ok(std::array::from_fn(|lane| 1 << n_bits(lane) | bits.get(n_bits(lane)) as u32))
}

fn write_states(states: &[u32; LANES], out: &mut Vec<u8>) {
    let mut bits = BitWriter::default();
    let mut places = 0;
    for (lane, state) in states.iter().enumerate() {
        let highest = state.ilog2();
        places |= (highest - STATE_LOW.ilog2()) << (4 * lane);
        bits.put(u64::from(state ^ 1 << highest), highest);
    }
    out.extend_from_slice(&places.to_le_bytes());
    out.extend_from_slice(&bits.finish());
}

/// Quotient and remainder, 32 bits after the other: the divisor is small.
fn divide(number: u128, by: u32) -> (u128, u32) {
    let (mut whole, mut left) = (0, 0u64);
    let n_limbs = (u128::BITS - number.leading_zeros()).div_ceil(32);
    for limb in (0..n_limbs).rev() {
        left = left << 32 | (number >> (32 * limb)) as u64 & 0xffff_ffff;
        whole = whole << 32 | u128::from(left / u64::from(by));
        left %= u64::from(by);
    }
    (whole, left as u32)
}

/// The last symbols of a stream as one number, and how many they are: as many as go into it.
fn encode_end(symbols: &[u8], frequencies: &Frequencies, starts: &[u32]) -> (u8, u128) {
    let (mut n, mut number) = (0, 0u128);
    for &symbol in symbols.iter().rev().take(END_SYMBOLS_MAX) {
        let (whole, part) = divide(number, frequencies.of(symbol));
        if whole >> (u128::BITS - PROBABILITY_BITS) != 0 {
            break;
        }
        number = (whole << PROBABILITY_BITS) + u128::from(part + starts[usize::from(symbol)]);
        n += 1;
    }
    (n, number)
}

/// The states that the encoder of all before a stream's end begins with, which hold that end: sixteen bits each.
fn states_of_end(number: u128) -> [u32; LANES] {
    std::array::from_fn(|lane| STATE_LOW | (number >> (16 * lane)) as u32 & 0xffff)
}

/// The end that states hold, when all before it is decoded.
pub(super) fn end_of_states(states: &[u32; LANES]) -> Result<u128> {
    if states.iter().any(|state| state >> 16 != 1) {
        return Err(DecodeError::Corrupt("symbol stream does not end where it should"));
    }
    let lanes = states.iter().enumerate();
    Ok(lanes.map(|(lane, state)| u128::from(state & 0xffff) << (16 * lane)).sum())
}

/// What coding a symbol takes.
#[derive(Clone, Copy, Default)]
struct Step {
    /// `2^44 / frequency`, rounded up. The product with a state is below `2^64`, and its upper twenty bits are the quotient,
    /// exactly: a state is below `frequency * 2^20` then, and a frequency below `2^12`.
    reciprocal: u64,
    /// States from here on would leave 32 bits.
    limit: u32,
    /// `PROBABILITY_ONE - frequency`.
    rest: u16,
    start: u16,
}

const RECIPROCAL_BITS: u32 = 44;

impl Step {
    fn all(frequencies: &Frequencies, starts: &[u32; N_SYMBOLS_MAX]) -> [Self; N_SYMBOLS_MAX] {
        let mut all = [Self::default(); N_SYMBOLS_MAX];
        for (symbol, &frequency) in frequencies.each().iter().enumerate().filter(|(_, f)| **f > 0) {
            all[symbol] = Self {
                reciprocal: (1u64 << RECIPROCAL_BITS).div_ceil(u64::from(frequency)),
                limit: u32::from(frequency) << (32 - PROBABILITY_BITS),
                rest: PROBABILITY_ONE as u16 - frequency,
                start: starts[symbol] as u16,
            };
        }
        all
    }

    /// `1 / frequency`, of a symbol that occurs.
    #[cfg(target_arch = "x86_64")]
    fn inverse(&self) -> f64 {
        f64::from(PROBABILITY_ONE as u16 - self.rest).recip()
    }

    /// The state with the symbol in it, and whether its low word had to go before.
    #[inline]
    fn code(&self, state: u32) -> (u32, bool) {
        // Whether it has to is as random as the data: arithmetic instead of a branch.
        let is_cut = state >= self.limit;
        let state = state >> (16 * u32::from(is_cut));
        let quotient = ((u64::from(state) * self.reciprocal) >> RECIPROCAL_BITS) as u32;
        (state + quotient * u32::from(self.rest) + u32::from(self.start), is_cut)
    }
}

/// Words that are written from the last to the first.
struct Words {
    /// One more than can come, for the one that is written though it does not count.
    all: Vec<[u8; 2]>,
    first: usize,
}

impl Words {
    fn new(n_max: usize) -> Self {
        Self { all: vec![[0; 2]; n_max + 1], first: n_max + 1 }
    }

    #[inline]
    fn push_if(&mut self, counts: bool, word: u16) {
        self.all[self.first - 1] = word.to_le_bytes();
        self.first -= usize::from(counts);
    }
}

/// The number of symbols in the stream's end, the states, then the words, in the order the decoder needs them.
pub(super) fn encode(symbols: &[u8], frequencies: &Frequencies, out: &mut Vec<u8>) {
    encode_at(SimdLevel::detect(), symbols, frequencies, out);
}

pub(super) fn encode_at(
    level: SimdLevel,
    symbols: &[u8],
    frequencies: &Frequencies,
    out: &mut Vec<u8>,
) {
    let starts = frequencies.starts();
    let (n_end, end) = encode_end(symbols, frequencies, &starts);
    let mut states = states_of_end(end);
    let before_end = &symbols[..symbols.len() - usize::from(n_end)];
    let mut words = Words::new(before_end.len());
    let steps = Step::all(frequencies, &starts);
    let (groups, last) = before_end.as_chunks::<LANES>();
    code(last, &steps, &mut states, &mut words);
    encode_groups(level, groups, frequencies, &steps, &mut states, &mut words);
    out.push(n_end);
    write_states(&states, out);
    out.extend_from_slice(words.all[words.first..].as_flattened());
}

fn encode_groups(
    level: SimdLevel,
    groups: &[[u8; LANES]],
    frequencies: &Frequencies,
    steps: &[Step; N_SYMBOLS_MAX],
    states: &mut [u32; LANES],
    words: &mut Words,
) {
    #[cfg(target_arch = "x86_64")]
    if let Some(first) = steps.first_chunk()
        && x86::encode(level, groups, first, frequencies.each().len(), states, words)
    {
        return;
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (level, frequencies);
    for group in groups.iter().rev() {
        code(group, steps, states, words);
    }
}

/// Codes up to eight symbols, the last first.
#[inline]
fn code(
    symbols: &[u8],
    steps: &[Step; N_SYMBOLS_MAX],
    states: &mut [u32; LANES],
    words: &mut Words,
) {
    for (state, symbol) in states.iter_mut().zip(symbols).rev() {
        let word = *state as u16;
        let (next, is_cut) = steps[usize::from(*symbol)].code(*state);
        words.push_if(is_cut, word);
        *state = next;
    }
}
