//! How often symbols occur, in 4096ths, and how that is written at the head of a page.
//!
//! Invariants
//! - Frequencies add up to `PROBABILITY_ONE`. None is all of it.
//! - What is coded with frequencies is decoded with the same: they are rounded before either.

use super::rans::{PROBABILITY_BITS, PROBABILITY_ONE};
use super::symbols::{DIRECT, N_SYMBOLS_MAX};
use crate::{
    bit_stream::{BitReader, BitWriter},
    bitpack::{packed_len, unpack},
    error::{DecodeError, Result},
    wire::{Reader, unzigzag, zigzag},
};

/// Bits of a rounded frequency that are written, below the highest, which is always set; and what the number of
/// values times the least frequency of so many bits is from which on there is one more. One bit more or
/// less in a frequency `f` of `n` values costs or saves `n * f / 4096 / 2700` bits of their symbols (the mean of
/// squared errors, by the second derivative of the logarithm).
const SHOWN_BITS: u32 = 3;
const SHOWN_MORE_FROM: u64 = 1 << 23;
/// What the first number of bits is told from: a common one of the symbols next to the most frequent.
const FIRST_BITS: u32 = 10;
/// Steps between numbers of bits are at most 25 in zigzag form, and one.
const RANK_MAX: u32 = 4;

const fn bits_of(frequency: u16) -> u32 {
    u16::BITS - frequency.leading_zeros()
}

/// Bits below the highest that are written of a frequency of so many bits, in a page of `count` values.
fn shown_bits(n_bits: u32, count: usize) -> u32 {
    let Some(below) = n_bits.checked_sub(1) else { return 0 };
    let deserves_more = (count as u64) << below >= SHOWN_MORE_FROM;
    below.min(SHOWN_BITS + u32::from(deserves_more))
}

/// Low bits of a frequency that are zero once it is rounded.
fn lost_bits(frequency: u16, count: usize) -> u32 {
    let n_bits = bits_of(frequency);
    n_bits.saturating_sub(1 + shown_bits(n_bits, count))
}

/// Symbol frequencies.
#[derive(Clone, Debug)]
pub(super) struct Frequencies {
    of: [u16; N_SYMBOLS_MAX],
    /// The one that is not written, since it has what the others leave: the first of the most frequent, before
    /// they are rounded.
    top: usize,
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
        // No frequency is all of them, not even that of a symbol that is alone.
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
        Self::new(of)
    }

    fn new(of: [u16; N_SYMBOLS_MAX]) -> Self {
        let most = of.iter().max();
        let top = of.iter().position(|f| Some(f) == most).unwrap_or(0);
        Self { of, top }
    }

    /// The bits that the symbols of `histogram` take, not counting the table.
    pub(super) fn cost_bits(&self, histogram: &[u32; N_SYMBOLS_MAX]) -> u64 {
        let bits: f64 = histogram
            .iter()
            .zip(&self.of)
            .filter(|(count, _)| **count > 0)
            .map(|(&count, &f)| {
                f64::from(count) * (f64::from(PROBABILITY_ONE) / f64::from(f)).log2()
            })
            .sum();
        bits as u64
    }

    fn n_symbols(&self) -> usize {
        self.of.iter().rposition(|&f| f > 0).map_or(0, |last| last + 1)
    }

    /// Rounds all but the largest to numbers that are written in few bits, for a page of `count` values.
    pub(super) fn rounded(&self, count: usize) -> Self {
        let top = self.top;
        let mut of = self.of;
        // The largest takes what the others gain or lose: no more than that it stays the largest, nearly.
        let bound = i32::from(of[top]) / 32;
        let mut gained = 0;
        let occurring = of[..self.n_symbols()].iter_mut().enumerate();
        for (_, f) in occurring.filter(|(symbol, _)| *symbol != top) {
            let lost = lost_bits(*f, count);
            let below = *f >> lost << lost;
            let above = below + (1 << lost);
            let is_nearer_below = *f - below < above - *f;
            let takes_below = match gained {
                _ if below == *f || gained > bound => true,
                _ if gained < -bound => false,
                _ => is_nearer_below,
            };
            let rounded = if takes_below { below } else { above };
            gained += i32::from(rounded) - i32::from(*f);
            *f = rounded;
        }
        of[top] = (i32::from(of[top]) - gained) as u16;
        Self { of, top }
    }

    /// The number of symbols minus one, the most frequent one, and of the others the rounded frequencies:
    /// each as the number of its bits, told from the one before, and the bits below the highest.
    pub(super) fn write(&self, count: usize, out: &mut Vec<u8>) {
        let (n, top) = (self.n_symbols(), self.top);
        out.extend_from_slice(&[(n - 1) as u8, top as u8]);
        let mut bits = BitWriter::default();
        let mut before = FIRST_BITS;
        for &f in self.of[..n].iter().enumerate().filter(|(i, _)| *i != top).map(|(_, f)| f) {
            let n_bits = bits_of(f);
            let step = zigzag(i64::from(n_bits) - i64::from(before)) + 1;
            let rank = step.ilog2();
            bits.put(1 << rank, rank + 1);
            bits.put(step & ((1 << rank) - 1), rank);
            let shown = shown_bits(n_bits, count);
            bits.put(u64::from(f >> lost_bits(f, count)) & ((1 << shown) - 1), shown);
            before = n_bits;
        }
        out.extend_from_slice(&bits.finish());
    }

    /// Reads what `write` wrote.
    pub(super) fn read(reader: &mut Reader<'_>, count: usize) -> Result<Self> {
        let n = usize::from(reader.u8()?) + 1;
        let top = usize::from(reader.u8()?);
        if top >= n {
            return Err(DecodeError::Corrupt("a most frequent symbol that there is not"));
        }
        let mut rest = *reader;
        let mut bits = BitReader::new(rest.rest(), 0);
        let mut of = [0; N_SYMBOLS_MAX];
        let mut before = FIRST_BITS;
        for (_, f) in of[..n].iter_mut().enumerate().filter(|(symbol, _)| *symbol != top) {
            let rank = (0..=RANK_MAX).find(|_| bits.get(1) == 1);
            let rank = rank.ok_or(DecodeError::Corrupt("a frequency of too many bits"))?;
            let step = 1 << rank | bits.get(rank);
            let n_bits = i64::from(before) + unzigzag(step - 1);
            before = match u32::try_from(n_bits) {
                Ok(n_bits) if n_bits <= PROBABILITY_BITS => n_bits,
                _ => return Err(DecodeError::Corrupt("a frequency of too many bits")),
            };
            if before > 0 {
                let shown = shown_bits(before, count);
                let highest = 1 << shown | bits.get(shown) as u16;
                *f = highest << (before - 1 - shown);
            }
        }
        bits.check()?;
        reader.take(bits.bit().div_ceil(8))?;
        let others: u32 = of.iter().map(|f| u32::from(*f)).sum();
        match PROBABILITY_ONE.checked_sub(others) {
            None | Some(0 | PROBABILITY_ONE) => {
                Err(DecodeError::Corrupt("symbol frequencies do not add up"))
            }
            Some(left) => {
                of[top] = left as u16;
                Ok(Self { of, top })
            }
        }
    }

    /// Reads the number of symbols minus one (one byte) and their frequencies, twelve bits each: they were
    /// written so until they were rounded.
    pub(super) fn read_exact(reader: &mut Reader<'_>) -> Result<Self> {
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
        Ok(Self::new(of))
    }

    /// Whether any symbol is followed by raw bits.
    pub(super) fn have_raw_symbols(&self) -> bool {
        self.n_symbols() as u64 > DIRECT
    }

    /// Of symbols in ascending order, the frequency.
    pub(super) fn each(&self) -> &[u16] {
        &self.of[..self.n_symbols()]
    }

    pub(super) fn of(&self, symbol: u8) -> u32 {
        u32::from(self.of[usize::from(symbol)])
    }

    /// Of each symbol the sum of the frequencies before it.
    pub(super) fn starts(&self) -> [u32; N_SYMBOLS_MAX] {
        let mut sum = 0;
        self.of.map(|f| {
            let start = sum;
            sum += u32::from(f);
            start
        })
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
