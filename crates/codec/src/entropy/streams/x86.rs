//! Streams side by side, each with its eight states in one register.
//!
//! Symbols are looked up with loads and inserts, not with a gather: that takes longer on some
//! processors, and much longer on those that were mended against its leaks.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, _mm_cvtsi32_si128, _mm_cvtsi64_si128, _mm_insert_epi8, _mm_loadu_si128,
    _mm_storel_epi64, _mm256_add_epi32, _mm256_and_si256, _mm256_blendv_epi8, _mm256_blendv_ps,
    _mm256_castps_si256, _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_cmplt_epu32_mask,
    _mm256_cvtepu8_epi32, _mm256_cvtepu16_epi32, _mm256_i32gather_epi32, _mm256_loadu_si256,
    _mm256_mask_or_epi32, _mm256_maskz_expand_epi32, _mm256_movemask_ps, _mm256_mullo_epi32,
    _mm256_or_si256, _mm256_permutevar8x32_epi32, _mm256_permutex2var_epi32, _mm256_set1_epi32,
    _mm256_setzero_si256, _mm256_slli_epi32, _mm256_srli_epi32, _mm256_storeu_si256,
    _mm256_sub_epi32,
};

use super::{LANES, PROBABILITY_BITS, PROBABILITY_ONE, STATE_LOW, STREAMS_TOGETHER, Stream, Table};
use crate::entropy::symbols::N_SYMBOLS_MAX;
use crate::simd::SimdLevel;

/// Advances streams as far as whole steps go that cannot leave their words; not at all where that is not
/// faster than without these instructions.
pub(super) fn advance(level: SimdLevel, mut streams: Vec<&mut Stream<'_>>) {
    loop {
        streams.retain(|stream| stream.ready() >= LANES && stream.words.len() >= LANES);
        let next = streams.len().min(STREAMS_TOGETHER);
        let next = &mut streams[..next];
        if next.is_empty() {
            return;
        }
        match level {
            // SAFETY: a level is only made after its features were detected.
            SimdLevel::Avx512 => unsafe { avx512::advance(next) },
            // SAFETY: as above.
            SimdLevel::Avx2 if next.len() > 1 => unsafe { avx2::advance(next) },
            SimdLevel::Avx2 | SimdLevel::Portable => return,
        }
    }
}

/// Defines a module for some instructions. `ranges_of` gives the ranges of symbols below sixteen, from
/// registers with eight each. `refill` takes words in: the new states, and how many.
macro_rules! kernel {
    ($name:ident, $features:literal, $ranges_of:ident, $refill:ident) => {
        mod $name {
            use super::*;

            /// One to four streams.
            #[target_feature(enable = $features)]
            pub(super) fn advance(streams: &mut [&mut Stream<'_>]) {
                let is_small = streams.iter().all(|stream| !stream.table.has_raw_symbols());
                match (streams, is_small) {
                    ([], _) => {}
                    ([a], true) => run::<1, true>([a]),
                    ([a], false) => run::<1, false>([a]),
                    ([a, b], true) => run::<2, true>([a, b]),
                    ([a, b], false) => run::<2, false>([a, b]),
                    ([a, b, c], true) => run::<3, true>([a, b, c]),
                    ([a, b, c], false) => run::<3, false>([a, b, c]),
                    ([a, b, c, d, ..], true) => run::<4, true>([a, b, c, d]),
                    ([a, b, c, d, ..], false) => run::<4, false>([a, b, c, d]),
                }
            }

            /// Takes steps of eight symbols of each stream, at least one, until one of them has no room
            /// for another, passes a place to note, or has fewer words than a step can need. With `SMALL` no table has more than
            /// sixteen symbols.
            #[target_feature(enable = $features)]
            fn run<const N: usize, const SMALL: bool>(mut streams: [&mut &mut Stream<'_>; N]) {
                let tables: [&Table; N] = std::array::from_fn(|k| streams[k].table);
                let ranges = tables.map(|t| [load(&t.ranges), load(&t.ranges[LANES..])]);
                let mut states: [__m256i; N] = std::array::from_fn(|k| load(&streams[k].states));
                let words: [&[[u8; 2]]; N] = std::array::from_fn(|k| streams[k].words);
                let steps = streams.iter().map(|s| s.ready() / LANES).min().unwrap_or(0);
                let outs = streams.each_mut().map(|stream| std::mem::take(&mut stream.out));
                let (mut taken, mut done) = ([0; N], 0);
                while done < steps && (0..N).all(|k| taken[k] + LANES <= words[k].len()) {
                    for k in 0..N {
                        let out = outs[k][done * LANES..].first_chunk_mut();
                        let out = out.expect("BUG: steps too many");
                        let window = words[k][taken[k]..].first_chunk();
                        let window = window.expect("BUG: fewer words than counted");
                        let next = step::<SMALL>(tables[k], ranges[k], states[k], out);
                        let (next, words_taken) = $refill(next, load_words(window));
                        states[k] = next;
                        taken[k] += words_taken;
                    }
                    done += 1;
                }
                for (k, (stream, out)) in streams.into_iter().zip(outs).enumerate() {
                    store(states[k], &mut stream.states);
                    stream.words = &words[k][taken[k]..];
                    stream.out = &mut out[done * LANES..];
                    stream.decoded(done * LANES);
                }
            }

            /// The next symbol of each state, and the states without it: words are to be taken in.
            #[inline]
            #[target_feature(enable = $features)]
            fn step<const SMALL: bool>(
                table: &Table,
                ranges: [__m256i; 2],
                states: __m256i,
                out: &mut [u8; LANES],
            ) -> __m256i {
                let slots = _mm256_and_si256(states, _mm256_set1_epi32(PROBABILITY_ONE as i32 - 1));
                let symbols = symbols_of(table, slots, out);
                let ranges = if SMALL {
                    $ranges_of(ranges, symbols)
                } else {
                    gather(&table.ranges, symbols)
                };
                let starts = _mm256_and_si256(ranges, _mm256_set1_epi32(0xffff));
                let product = _mm256_mullo_epi32(
                    _mm256_srli_epi32::<16>(ranges),
                    _mm256_srli_epi32::<{ PROBABILITY_BITS as i32 }>(states),
                );
                _mm256_add_epi32(product, _mm256_sub_epi32(slots, starts))
            }
        }
    };
}

kernel!(
    avx512,
    "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl",
    ranges_avx512,
    refill_avx512
);
kernel!(avx2, "avx2,bmi1,bmi2,lzcnt,popcnt", ranges_avx2, refill_avx2);

/// The first eight of some numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn load(from: &[u32]) -> __m256i {
    // SAFETY: the slice has eight numbers.
    unsafe { _mm256_loadu_si256(from[..LANES].as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(numbers: __m256i, to: &mut [u32; LANES]) {
    // SAFETY: there is room for eight numbers.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), numbers) }
}

/// A word a lane.
#[inline]
#[target_feature(enable = "avx2")]
fn load_words(words: &[[u8; 2]; LANES]) -> __m256i {
    // SAFETY: sixteen bytes.
    _mm256_cvtepu16_epi32(unsafe { _mm_loadu_si128(words.as_ptr().cast()) })
}

/// The ranges of symbols, which are bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn gather(ranges: &[u32; N_SYMBOLS_MAX], symbols: __m256i) -> __m256i {
    let symbols = _mm256_and_si256(symbols, _mm256_set1_epi32(0xff));
    // SAFETY: there is a range for each value of a byte.
    unsafe { _mm256_i32gather_epi32::<4>(ranges.as_ptr().cast(), symbols) }
}

/// Looks symbols up by the low bits of their states; they also go to `out`.
#[inline]
#[target_feature(enable = "avx2")]
fn symbols_of(table: &Table, slots: __m256i, out: &mut [u8; LANES]) -> __m256i {
    let mut slot = [0u32; LANES];
    store(slots, &mut slot);
    let symbol = |lane: usize| i32::from(table.symbols[(slot[lane] % PROBABILITY_ONE) as usize]);
    let mut symbols = _mm_cvtsi32_si128(symbol(0));
    symbols = _mm_insert_epi8::<1>(symbols, symbol(1));
    symbols = _mm_insert_epi8::<2>(symbols, symbol(2));
    symbols = _mm_insert_epi8::<3>(symbols, symbol(3));
    symbols = _mm_insert_epi8::<4>(symbols, symbol(4));
    symbols = _mm_insert_epi8::<5>(symbols, symbol(5));
    symbols = _mm_insert_epi8::<6>(symbols, symbol(6));
    symbols = _mm_insert_epi8::<7>(symbols, symbol(7));
    // SAFETY: eight bytes.
    unsafe { _mm_storel_epi64(out.as_mut_ptr().cast(), symbols) };
    _mm256_cvtepu8_epi32(symbols)
}

#[inline]
#[target_feature(enable = "avx2,avx512f,avx512vl")]
fn ranges_avx512([low, high]: [__m256i; 2], symbols: __m256i) -> __m256i {
    _mm256_permutex2var_epi32(low, symbols, high)
}

#[inline]
#[target_feature(enable = "avx2")]
fn ranges_avx2([low, high]: [__m256i; 2], symbols: __m256i) -> __m256i {
    let low = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(low, symbols));
    let high = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(high, symbols));
    // The sign decides: bit 3 of the symbol.
    let is_high = _mm256_castsi256_ps(_mm256_slli_epi32::<28>(symbols));
    _mm256_castps_si256(_mm256_blendv_ps(low, high, is_high))
}

#[inline]
#[target_feature(enable = "avx2,popcnt,avx512f,avx512vl")]
fn refill_avx512(states: __m256i, window: __m256i) -> (__m256i, usize) {
    let low = _mm256_cmplt_epu32_mask(states, _mm256_set1_epi32(STATE_LOW as i32));
    let words = _mm256_maskz_expand_epi32(low, window);
    let states = _mm256_mask_or_epi32(states, low, _mm256_slli_epi32::<16>(states), words);
    (states, low.count_ones() as usize)
}

#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn refill_avx2(states: __m256i, window: __m256i) -> (__m256i, usize) {
    let is_low = _mm256_cmpeq_epi32(_mm256_srli_epi32::<16>(states), _mm256_setzero_si256());
    let low = _mm256_movemask_ps(_mm256_castsi256_ps(is_low)) as usize;
    let order = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(WORD_OF_LANE[low] as i64));
    let words = _mm256_permutevar8x32_epi32(window, order);
    let refilled = _mm256_or_si256(_mm256_slli_epi32::<16>(states), words);
    (_mm256_blendv_epi8(states, refilled, is_low), low.count_ones() as usize)
}

/// For each set of lanes that take a word in: which word each of them takes, a byte a lane.
static WORD_OF_LANE: [u64; 256] = {
    let mut all = [0; 256];
    let mut set = 0;
    while set < all.len() {
        let (mut lane, mut word) = (0, 0);
        while lane < LANES {
            if set >> lane & 1 == 1 {
                all[set] |= word << (8 * lane);
                word += 1;
            }
            lane += 1;
        }
        set += 1;
    }
    all
};
