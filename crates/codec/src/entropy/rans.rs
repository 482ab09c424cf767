//! Range asymmetric numeral systems: symbols to bits at the cost their frequencies deserve.
//!
//! Symbol `i` of a stream belongs to state `i % LANES`. A state is in `STATE_LOW .. 2^32`; decoding
//! a symbol shrinks it, and when it falls below `STATE_LOW` it takes in the next 16-bit word. The
//! encoder works from the last symbol to the first, so that the decoder (`streams`) goes forward.

use super::symbols::{DIRECT, N_SYMBOLS_MAX};
use crate::{
    bitpack::{pack, packed_len, unpack},
    error::{DecodeError, Result},
    wire::Reader,
};

/// Interleaved states: enough independent work to hide the latency of a table lookup and a
/// multiplication.
pub(super) const LANES: usize = 8;
pub(super) const PROBABILITY_BITS: u32 = 12;
pub(super) const PROBABILITY_ONE: u32 = 1 << PROBABILITY_BITS;
pub(super) const STATE_LOW: u32 = 1 << 16;
/// Bytes of the states at the head of a stream.
pub(super) const STATE_BYTES: usize = LANES * 4;

/// One for each of the low bits a state can have. Some more, so that the place does not end with a page
/// of memory: short fills use masked stores, which take microseconds where they would reach, did the
/// mask not keep them from it, into a page that is not there.
const SLOTS: usize = PROBABILITY_ONE as usize + 64;

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
        let words = &mut words[..n];
        unpack(packed, 0, PROBABILITY_BITS, words);
        if words.iter().sum::<u64>() != u64::from(PROBABILITY_ONE) {
            return Err(DecodeError::Corrupt("symbol frequencies do not add up"));
        }
        let mut of = [0; N_SYMBOLS_MAX];
        of.iter_mut().zip(words).for_each(|(of, frequency)| *of = *frequency as u16);
        Ok(Self { of })
    }

    fn starts(&self) -> [u32; N_SYMBOLS_MAX] {
        let mut sum = 0;
        self.of.map(|f| {
            let start = sum;
            sum += u32::from(f);
            start
        })
    }

    /// What the decoder looks up.
    pub(super) fn into_table(self) -> Box<Table> {
        let n_symbols = self.n_symbols();
        let mut symbols = Vec::with_capacity(SLOTS);
        let mut ranges = [0; N_SYMBOLS_MAX];
        for (symbol, &frequency) in self.of[..n_symbols].iter().enumerate() {
            ranges[symbol] = u32::from(frequency) << 16 | symbols.len() as u32;
            symbols.resize(symbols.len() + usize::from(frequency), symbol as u8);
        }
        symbols.resize(SLOTS, 0);
        let symbols = symbols.into_boxed_slice().try_into();
        let symbols = symbols.expect("BUG: frequencies do not add up");
        // Whoever has it is handed around: in a box that costs nothing.
        Box::new(Table { symbols, ranges, n_symbols })
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
    /// Whether any symbol is followed by raw bits.
    pub(super) fn has_raw_symbols(&self) -> bool {
        self.n_symbols as u64 > DIRECT
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
