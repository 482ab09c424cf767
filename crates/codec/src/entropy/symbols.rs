//! Numbers as symbols with raw bits.
//!
//! Numbers below `DIRECT` are their own symbol. A larger one has its highest set bit at some place
//! `e`; the symbol names `e` and the two bits below it, the remaining `e - 2` bits are raw. The
//! probability within such a range is nearly flat, so little is lost by not modelling it.

use crate::bit_stream::{BitReader, BitWriter};
use crate::error::Result;
use crate::simd::multiversion;
use crate::wire::unzigzag;

/// Numbers below this are symbols without raw bits.
pub(super) const DIRECT: u64 = 16;
/// Every `u64` has a symbol below this.
pub(super) const N_SYMBOLS_MAX: usize = 256;

const _: () = assert!(split(u64::MAX).symbol as usize == N_SYMBOLS_MAX - 1);

/// A number as it is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) symbol: u8,
    pub(super) raw_width: u32,
    pub(super) raw_value: u64,
}

#[inline]
pub(super) const fn split(value: u64) -> Split {
    if value < DIRECT {
        return Split { symbol: value as u8, raw_width: 0, raw_value: 0 };
    }
    let highest = 63 - value.leading_zeros();
    let raw_width = highest - 2;
    let symbol = highest * 4 + ((value >> raw_width) & 3) as u32;
    Split { symbol: symbol as u8, raw_width, raw_value: value & ((1 << raw_width) - 1) }
}

multiversion! {
    /// Writes the symbols of numbers, and what is raw in them.
    pub(super) fn split_all / split_all_at(numbers: &[u64], symbols: &mut [u8], raw: &mut BitWriter) {
        for (slots, numbers) in symbols.chunks_mut(GROUP).zip(numbers.chunks(GROUP)) {
            let mut seen = 0;
            for (slot, &number) in slots.iter_mut().zip(numbers) {
                seen |= number;
                *slot = number as u8;
            }
            // Where large numbers are rare most groups have none.
            if seen < DIRECT {
                continue;
            }
            for (slot, &number) in slots.iter_mut().zip(numbers) {
                let Split { symbol, raw_width, raw_value } = split(number);
                *slot = symbol;
                raw.put(raw_value, raw_width);
            }
        }
    }
}

/// How often each symbol occurs.
pub(super) fn count(symbols: &[u8]) -> [u32; N_SYMBOLS_MAX] {
    // Four counts of each, so that equal neighbours do not wait for each other's increment.
    let mut counts = [[0u32; N_SYMBOLS_MAX]; 4];
    let (groups, rest) = symbols.as_chunks::<4>();
    for group in groups {
        for (counts, symbol) in counts.iter_mut().zip(group) {
            counts[usize::from(*symbol)] += 1;
        }
    }
    for symbol in rest {
        counts[0][usize::from(*symbol)] += 1;
    }
    let [mut sums, others @ ..] = counts;
    for counts in &others {
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    sums
}

/// How many raw bits follow a symbol.
#[inline]
pub(super) const fn raw_width(symbol: u8) -> u32 {
    if (symbol as u64) < DIRECT { 0 } else { symbol as u32 / 4 - 2 }
}

/// The least number of a symbol.
#[inline]
const fn least(symbol: u8) -> u64 {
    if (symbol as u64) < DIRECT {
        return symbol as u64;
    }
    (4 | (symbol % 4) as u64) << raw_width(symbol)
}

/// Turns symbols into `unzigzag`ged numbers.
pub(super) fn join(symbols: &[u8], raw: &mut BitReader<'_>, out: &mut [u64]) -> Result<()> {
    raw.bit = join_all(symbols, raw.bytes, raw.bit, out);
    raw.check()
}

/// Of each symbol how many raw bits follow it, and its least number.
static WIDTHS: [u8; N_SYMBOLS_MAX] = widths();
static LEASTS: [u64; N_SYMBOLS_MAX] = leasts();

const fn widths() -> [u8; N_SYMBOLS_MAX] {
    let mut widths = [0; N_SYMBOLS_MAX];
    let mut symbol = 0;
    while symbol < N_SYMBOLS_MAX {
        widths[symbol] = raw_width(symbol as u8) as u8;
        symbol += 1;
    }
    widths
}

const fn leasts() -> [u64; N_SYMBOLS_MAX] {
    let mut leasts = [0; N_SYMBOLS_MAX];
    let mut symbol = 0;
    while symbol < N_SYMBOLS_MAX {
        leasts[symbol] = least(symbol as u8);
        symbol += 1;
    }
    leasts
}

/// Symbols that are split or joined together.
const GROUP: usize = 16;
/// The last symbol whose raw bits are in eight bytes, at whichever bit they begin.
const NEAR_MAX: u8 = 4 * (57 + 2) + 3;
/// Bytes that the raw bits of such a group are in, and eight from the last of them on.
const GROUP_BYTES: usize = GROUP * 57 / 8 + 1 + 8;

multiversion! {
    /// Joins symbols with their raw bits, from a bit on; past the end of `bytes` there are zeros. Gives the bit
    /// behind the last one.
    pub(super) fn join_all / join_all_at(
        symbols: &[u8],
        bytes: &[u8],
        bit: usize,
        out: &mut [u64],
    ) -> usize {
        let mut raw = BitReader::new(bytes, bit);
        for (slots, symbols) in out.chunks_mut(GROUP).zip(symbols.chunks(GROUP)) {
            let largest = symbols.iter().fold(0, |seen, symbol| seen.max(*symbol));
            // Where large numbers are rare most groups have none.
            if largest < DIRECT as u8 {
                for (slot, &symbol) in slots.iter_mut().zip(symbols) {
                    *slot = i64::from(unzigzag_small(symbol)) as u64;
                }
                continue;
            }
            let from = raw.bit / 8;
            match bytes.get(from..).and_then(|rest| rest.first_chunk::<GROUP_BYTES>()) {
                Some(window) if largest <= NEAR_MAX => {
                    let mut bit = raw.bit % 8;
                    for (slot, &symbol) in slots.iter_mut().zip(symbols) {
                        let width = u32::from(WIDTHS[usize::from(symbol)]);
                        let word = window[bit / 8..].first_chunk().expect("BUG: a short window");
                        let word = u64::from_le_bytes(*word) >> (bit % 8);
                        let number = LEASTS[usize::from(symbol)] | word & ((1 << width) - 1);
                        *slot = unzigzag(number) as u64;
                        bit += width as usize;
                    }
                    raw.bit = from * 8 + bit;
                }
                _ => {
                    for (slot, &symbol) in slots.iter_mut().zip(symbols) {
                        *slot = unzigzag(least(symbol) | raw.get(raw_width(symbol))) as u64;
                    }
                }
            }
        }
        raw.bit
    }
}

multiversion! {
    /// The same when every symbol is its number.
    pub(super) fn join_small / join_small_at(symbols: &[u8], out: &mut [u64]) {
        for (slot, &symbol) in out.iter_mut().zip(symbols) {
            *slot = i64::from(unzigzag_small(symbol)) as u64;
        }
    }
}

multiversion! {
    /// The sum of what `join_small` gives.
    pub(super) fn sum_small / sum_small_at(symbols: &[u8]) -> u64 {
        // Symbols below `DIRECT` stand for -8 to 7: 4,096 of them add up in 16 bits.
        let sums = symbols.chunks(4096).map(|symbols| {
            let sum: i16 = symbols.iter().map(|symbol| i16::from(unzigzag_small(*symbol))).sum();
            i64::from(sum) as u64
        });
        sums.fold(0, u64::wrapping_add)
    }
}

/// What a symbol that is its number stands for.
#[inline]
fn unzigzag_small(symbol: u8) -> i8 {
    (symbol >> 1) as i8 ^ -((symbol & 1) as i8)
}
