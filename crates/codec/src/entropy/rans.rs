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

use super::frequencies::Frequencies;
use super::symbols::{DIRECT, N_SYMBOLS_MAX};
use crate::{
    bit_stream::{BitReader, BitWriter},
    error::{DecodeError, Result},
    wire::Reader,
};

/// Interleaved states: enough independent work to hide the latency of a table lookup and a
/// multiplication.
pub(super) const LANES: usize = 8;
pub(super) const PROBABILITY_BITS: u32 = 12;
pub(super) const PROBABILITY_ONE: u32 = 1 << PROBABILITY_BITS;
pub(super) const STATE_LOW: u32 = 1 << 16;
/// The most bytes that the states take at the head of a stream.
pub(super) const STATE_BYTES_MAX: usize = LANES / 2 + (LANES * 31).div_ceil(8);

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
    for limb in (0..4).rev() {
        left = left << 32 | (number >> (32 * limb)) as u64 & 0xffff_ffff;
        whole = whole << 32 | u128::from(left / u64::from(by));
        left %= u64::from(by);
    }
    (whole, left as u32)
}

/// The last symbols of a stream as one number, and how many they are: as many as go into it.
fn encode_end(symbols: &[u8], frequencies: &Frequencies, starts: &[u32]) -> (u8, u128) {
    let (mut n, mut number) = (0, 0u128);
    for &symbol in symbols.iter().rev().take(usize::from(u8::MAX)) {
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

/// The number of symbols in the stream's end, the states, then the words, in the order the decoder needs them.
pub(super) fn encode(symbols: &[u8], frequencies: &Frequencies) -> Vec<u8> {
    let starts = frequencies.starts();
    let (n_end, end) = encode_end(symbols, frequencies, &starts);
    let mut states = states_of_end(end);
    let mut words: Vec<u16> = Vec::with_capacity(symbols.len() / 4 + LANES);
    let before_end = &symbols[..symbols.len() - usize::from(n_end)];
    for (i, &symbol) in before_end.iter().enumerate().rev() {
        let frequency = frequencies.of(symbol);
        let state = &mut states[i % LANES];
        // The state may not leave 32 bits when the symbol grows it.
        if u64::from(*state) >= u64::from(frequency) << (32 - PROBABILITY_BITS) {
            words.push(*state as u16);
            *state >>= 16;
        }
        *state = ((*state / frequency) << PROBABILITY_BITS)
            + *state % frequency
            + starts[symbol as usize];
    }
    let mut out = Vec::with_capacity(STATE_BYTES_MAX + 1 + words.len() * 2);
    out.push(n_end);
    write_states(&states, &mut out);
    for word in words.iter().rev() {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out
}
