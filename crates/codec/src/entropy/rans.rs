//! Range asymmetric numeral systems: symbols to bits at the cost their frequencies deserve.
//!
//! Symbol `i` of a stream belongs to state `i % LANES`. A state is in `STATE_LOW .. 2^32`; decoding
//! a symbol shrinks it, and when it falls below `STATE_LOW` it takes in the next 16-bit word. The
//! encoder works from the last symbol to the first, so that the decoder goes forward.

use super::symbols::{DIRECT, N_SYMBOLS_MAX};
use crate::{
    bitpack::{pack, packed_len, unpack},
    error::{DecodeError, Result},
    wire::Reader,
};

/// Interleaved states: enough independent work to hide the latency of a table lookup and a
/// multiplication.
const LANES: usize = 8;
const PROBABILITY_BITS: u32 = 12;
const PROBABILITY_ONE: u32 = 1 << PROBABILITY_BITS;
const STATE_LOW: u32 = 1 << 16;
/// Bytes of the states at the head of a stream.
pub(super) const STATE_BYTES: usize = LANES * 4;

/// Symbol frequencies that add up to `PROBABILITY_ONE`, none of them all of it.
#[derive(Clone, Debug)]
pub(super) struct Frequencies {
    of: [u16; N_SYMBOLS_MAX],
}

impl Frequencies {
    /// Scales counts, of which at least one is not zero.
    pub(super) fn normalize(histogram: &[u32; N_SYMBOLS_MAX]) -> Self {
        let total: u64 = histogram.iter().map(|&count| u64::from(count)).sum();
        let mut of = [0u16; N_SYMBOLS_MAX];
        for (slot, &count) in of.iter_mut().zip(histogram) {
            let exact = u64::from(count) * u64::from(PROBABILITY_ONE);
            let rounded = ((exact + total / 2) / total.max(1)) as u16;
            *slot = if count == 0 { 0 } else { rounded.max(1) };
        }
        // Twelve bits must be able to write the frequency of a symbol that is alone.
        let single = of.iter().filter(|f| **f > 0).count() == 1;
        if single {
            let other = usize::from(of[0] != 0);
            of[other] = 1;
        }
        let mut sum: i64 = of.iter().map(|&f| i64::from(f)).sum();
        while sum != i64::from(PROBABILITY_ONE) {
            let step: i64 = if sum < i64::from(PROBABILITY_ONE) { 1 } else { -1 };
            let best = best_adjustment(histogram, &of, step);
            of[best] = (i64::from(of[best]) + step) as u16;
            sum += step;
        }
        Self { of }
    }

    /// The bits that the symbols of `histogram` take.
    pub(super) fn cost_bits(&self, histogram: &[u32; N_SYMBOLS_MAX]) -> u64 {
        let bits: f64 = histogram
            .iter()
            .zip(&self.of)
            .filter(|(count, _)| **count > 0)
            .map(|(&count, &f)| {
                f64::from(count) * (f64::from(PROBABILITY_ONE) / f64::from(f)).log2()
            })
            .sum();
        bits as u64 + 12 * self.n_symbols() as u64
    }

    fn n_symbols(&self) -> usize {
        self.of.iter().rposition(|&f| f > 0).map_or(0, |last| last + 1)
    }

    /// The number of symbols minus one (one byte) and their frequencies, twelve bits each.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let n = self.n_symbols();
        out.push((n - 1) as u8);
        let words: Vec<u64> = self.of[..n].iter().map(|&f| u64::from(f)).collect();
        pack(&words, PROBABILITY_BITS, out);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let n = usize::from(reader.u8()?) + 1;
        let packed = reader.take(packed_len(n, PROBABILITY_BITS))?;
        let mut words = [0u64; N_SYMBOLS_MAX];
        unpack(packed, 0, PROBABILITY_BITS, &mut words[..n]);
        if words.iter().sum::<u64>() != u64::from(PROBABILITY_ONE) {
            return Err(DecodeError::Corrupt("symbol frequencies do not add up"));
        }
        Ok(Self { of: words.map(|f| f as u16) })
    }

    fn starts(&self) -> [u32; N_SYMBOLS_MAX] {
        let mut sum = 0;
        self.of.map(|f| {
            let start = sum;
            sum += u32::from(f);
            start
        })
    }

    /// What the decoder looks up: for each of the possible low bits of a state, the symbol.
    pub(super) fn into_table(self) -> Table {
        let mut slots = Box::new([Slot::default(); PROBABILITY_ONE as usize]);
        let starts = self.starts();
        for (symbol, (&frequency, &start)) in self.of.iter().zip(&starts).enumerate() {
            for offset in 0..frequency {
                slots[start as usize + usize::from(offset)] =
                    Slot::new(symbol as u8, frequency, offset);
            }
        }
        Table { slots, has_raw_symbols: self.n_symbols() as u64 > DIRECT }
    }
}

/// The symbol whose frequency changes by `step` at the least cost.
fn best_adjustment(
    histogram: &[u32; N_SYMBOLS_MAX],
    of: &[u16; N_SYMBOLS_MAX],
    step: i64,
) -> usize {
    let cost = |i: usize| -> f64 {
        let (before, after) = (f64::from(of[i]), f64::from(of[i]) + step as f64);
        f64::from(histogram[i]) * (before / after).log2()
    };
    (0..N_SYMBOLS_MAX)
        .filter(|&i| {
            let after = i64::from(of[i]) + step;
            of[i] > 0 && after >= 1 && after < i64::from(PROBABILITY_ONE)
        })
        .min_by(|&a, &b| cost(a).total_cmp(&cost(b)))
        .expect("BUG: at most 256 symbols share 4096 slots")
}

/// Symbol, frequency and offset within the symbol in one word: one load a symbol.
#[derive(Clone, Copy, Debug, Default)]
struct Slot(u32);

impl Slot {
    fn new(symbol: u8, frequency: u16, offset: u16) -> Self {
        Self(u32::from(symbol) | u32::from(offset) << 8 | u32::from(frequency) << 20)
    }

    #[inline]
    fn symbol(self) -> u8 {
        self.0 as u8
    }

    #[inline]
    fn offset(self) -> u32 {
        self.0 >> 8 & 0xfff
    }

    #[inline]
    fn frequency(self) -> u32 {
        self.0 >> 20
    }
}

/// The lookup table of a page.
#[derive(Clone, Debug)]
pub(super) struct Table {
    slots: Box<[Slot; PROBABILITY_ONE as usize]>,
    has_raw_symbols: bool,
}

impl Table {
    /// Whether any symbol is followed by raw bits.
    pub(super) fn has_raw_symbols(&self) -> bool {
        self.has_raw_symbols
    }
}

/// The states, then the words, in the order the decoder needs them.
pub(super) fn encode(symbols: &[u8], frequencies: &Frequencies) -> Vec<u8> {
    let starts = frequencies.starts();
    let mut states = [STATE_LOW; LANES];
    let mut words: Vec<u16> = Vec::with_capacity(symbols.len() / 4 + LANES);
    for (i, &symbol) in symbols.iter().enumerate().rev() {
        let frequency = u32::from(frequencies.of[symbol as usize]);
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
    let mut out = Vec::with_capacity(STATE_BYTES + words.len() * 2);
    for state in states {
        out.extend_from_slice(&state.to_le_bytes());
    }
    for word in words.iter().rev() {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out
}

/// Reads one stream from its start.
#[derive(Debug)]
pub(super) struct SymbolDecoder<'a> {
    table: &'a Table,
    states: [u32; LANES],
    words: &'a [[u8; 2]],
    /// The next word to take in.
    next: usize,
}

impl<'a> SymbolDecoder<'a> {
    pub(super) fn new(table: &'a Table, stream: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(stream);
        let mut states = [0; LANES];
        for state in &mut states {
            *state = u32::from_le_bytes(reader.array()?);
        }
        let (words, odd) = reader.rest().as_chunks::<2>();
        if !odd.is_empty() {
            return Err(DecodeError::Corrupt("half a word in the symbol stream"));
        }
        Ok(Self { table, states, words, next: 0 })
    }

    /// Decodes the next symbols; all calls but the last take a multiple of eight.
    pub(super) fn read(&mut self, out: &mut [u8]) -> Result<()> {
        let slots = &*self.table.slots;
        let mut states = self.states;
        let (steps, rest) = out.as_chunks_mut::<LANES>();
        let mut words = &self.words[self.next..];
        for step in steps {
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
                let slot = slots[(*state % PROBABILITY_ONE) as usize];
                *symbol = slot.symbol();
                let next = slot.frequency() * (*state >> PROBABILITY_BITS) + slot.offset();
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
        for (state, symbol) in states.iter_mut().zip(rest) {
            let slot = slots[(*state % PROBABILITY_ONE) as usize];
            *symbol = slot.symbol();
            *state = slot.frequency() * (*state >> PROBABILITY_BITS) + slot.offset();
            if *state < STATE_LOW {
                let Some((word, left)) = words.split_first() else {
                    return Err(DecodeError::Truncated { needed: 2 });
                };
                *state = *state << 16 | u32::from(u16::from_le_bytes(*word));
                words = left;
            }
        }
        self.next = self.words.len() - words.len();
        self.states = states;
        Ok(())
    }

    /// After the last symbol: every word was used, and the states are where the encoder began.
    pub(super) fn finish(self) -> Result<()> {
        if self.next != self.words.len() {
            return Err(DecodeError::TrailingBytes(2 * (self.words.len() - self.next)));
        }
        if self.states != [STATE_LOW; LANES] {
            return Err(DecodeError::Corrupt("symbol stream does not end where it should"));
        }
        Ok(())
    }
}
