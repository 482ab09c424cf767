//! Streams side by side, each with its eight states in one register.
//!
//! Symbols are looked up with loads and inserts, not with a gather: that takes longer on some
//! processors, and much longer on those that were mended against its leaks.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, _mm_cvtsi32_si128, _mm_insert_epi8, _mm_loadu_si128, _mm_storel_epi64,
    _mm256_add_epi32, _mm256_and_si256, _mm256_cmplt_epu32_mask, _mm256_cvtepu8_epi32,
    _mm256_cvtepu16_epi32, _mm256_i32gather_epi32, _mm256_loadu_si256, _mm256_mask_or_epi32,
    _mm256_maskz_expand_epi32, _mm256_mullo_epi32, _mm256_permutex2var_epi32, _mm256_set1_epi32,
    _mm256_slli_epi32, _mm256_srli_epi32, _mm256_storeu_si256, _mm256_sub_epi32,
};

use super::{LANES, PROBABILITY_BITS, PROBABILITY_ONE, STATE_LOW, STREAMS_TOGETHER, Stream, Table};

/// Advances streams as far as whole steps go that cannot leave their words.
pub(super) fn advance(mut streams: Vec<&mut Stream<'_>>) {
    loop {
        streams.retain(|stream| stream.out.len() >= LANES && stream.words.len() >= LANES);
        let next = streams.len().min(STREAMS_TOGETHER);
        let next = &mut streams[..next];
        let is_small = next.iter().all(|stream| !stream.table.has_raw_symbols());
        // SAFETY: dispatched only after AVX-512 was detected.
        unsafe {
            match (next, is_small) {
                ([], _) => return,
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
    }
}

/// Takes steps of eight symbols of each stream, at least one, until one of them has no room for another
/// or fewer words than a step can need. With `SMALL` no table has more than sixteen symbols.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
fn run<const N: usize, const SMALL: bool>(mut streams: [&mut &mut Stream<'_>; N]) {
    let tables: [&Table; N] = std::array::from_fn(|k| streams[k].table);
    // SAFETY: there are more than sixteen ranges, and eight states.
    let load = |from: &[u32]| unsafe { _mm256_loadu_si256(from[..LANES].as_ptr().cast()) };
    let ranges = tables.map(|t| [load(&t.ranges), load(&t.ranges[LANES..])]);
    let mut states: [__m256i; N] = std::array::from_fn(|k| load(&streams[k].states));
    let words: [&[[u8; 2]]; N] = std::array::from_fn(|k| streams[k].words);
    let outs = streams.each_mut().map(|stream| std::mem::take(&mut stream.out));
    let steps = outs.iter().map(|out| out.len() / LANES).min().unwrap_or(0);
    let (mut taken, mut done) = ([0; N], 0);
    while done < steps && (0..N).all(|k| taken[k] + LANES <= words[k].len()) {
        for k in 0..N {
            let out = outs[k][done * LANES..].first_chunk_mut().expect("BUG: steps too many");
            // SAFETY: eight words are left, as was just seen.
            let window = unsafe { _mm_loadu_si128(words[k].as_ptr().add(taken[k]).cast()) };
            let window = _mm256_cvtepu16_epi32(window);
            let (next, words_taken) = step::<SMALL>(tables[k], ranges[k], states[k], window, out);
            states[k] = next;
            taken[k] += words_taken;
        }
        done += 1;
    }
    for (k, (stream, out)) in streams.into_iter().zip(outs).enumerate() {
        // SAFETY: there are eight states.
        unsafe { _mm256_storeu_si256(stream.states.as_mut_ptr().cast(), states[k]) };
        stream.words = &words[k][taken[k]..];
        stream.out = &mut out[done * LANES..];
    }
}

/// The next symbol of each state. `window` has the next eight words; gives how many were taken in.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
fn step<const SMALL: bool>(
    table: &Table,
    [low_ranges, high_ranges]: [__m256i; 2],
    states: __m256i,
    window: __m256i,
    out: &mut [u8; LANES],
) -> (__m256i, usize) {
    let slots = _mm256_and_si256(states, _mm256_set1_epi32(PROBABILITY_ONE as i32 - 1));
    let mut slot = [0u32; LANES];
    // SAFETY: eight slots.
    unsafe { _mm256_storeu_si256(slot.as_mut_ptr().cast(), slots) };
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
    let symbols = _mm256_cvtepu8_epi32(symbols);
    let ranges = if SMALL {
        _mm256_permutex2var_epi32(low_ranges, symbols, high_ranges)
    } else {
        // SAFETY: there is a range for each value of a byte.
        unsafe { _mm256_i32gather_epi32::<4>(table.ranges.as_ptr().cast(), symbols) }
    };
    let starts = _mm256_and_si256(ranges, _mm256_set1_epi32(0xffff));
    let product = _mm256_mullo_epi32(
        _mm256_srli_epi32::<16>(ranges),
        _mm256_srli_epi32::<{ PROBABILITY_BITS as i32 }>(states),
    );
    let next = _mm256_add_epi32(product, _mm256_sub_epi32(slots, starts));
    let low = _mm256_cmplt_epu32_mask(next, _mm256_set1_epi32(STATE_LOW as i32));
    let words = _mm256_maskz_expand_epi32(low, window);
    let next = _mm256_mask_or_epi32(next, low, _mm256_slli_epi32::<16>(next), words);
    (next, low.count_ones() as usize)
}
