//! The eight states of an encoder in one register, for symbols below 32: what is needed of them is then in registers
//! too. Elsewhere the same is done a state at a time.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, __m512i, _mm_cvtsi64_si128, _mm_mask_storeu_epi16, _mm256_loadu_si256,
    _mm256_storeu_si256, _mm512_add_epi64, _mm512_castsi512_pd, _mm512_cmpge_epu64_mask,
    _mm512_cvtepi64_epi16, _mm512_cvtepi64_epi32, _mm512_cvtepu8_epi64, _mm512_cvtepu32_epi64,
    _mm512_cvtepu64_pd, _mm512_cvttpd_epu64, _mm512_fmadd_pd, _mm512_loadu_si512,
    _mm512_mask_blend_epi64, _mm512_mask_srli_epi64, _mm512_maskz_compress_epi64, _mm512_mul_epu32,
    _mm512_mul_pd, _mm512_permutex2var_epi64, _mm512_set1_epi64, _mm512_set1_pd, _mm512_srli_epi64,
    _mm512_test_epi64_mask,
};

use super::{LANES, Step, Words};
use crate::simd::SimdLevel;

/// Symbols of which everything is in registers.
pub(super) const SMALL: usize = 4 * LANES;

/// Four registers with a number for each symbol; of the last two nothing is used if symbols are below sixteen.
type Table = [__m512i; SMALL / LANES];

struct Tables {
    limits: Table,
    /// `1 / frequency`, a float.
    inverses: Table,
    /// `rest` below, `start` above.
    additions: Table,
}

impl Tables {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(steps: &[Step; SMALL]) -> Self {
        Self {
            limits: load(steps.map(|step| u64::from(step.limit))),
            inverses: load(steps.map(|step| step.inverse().to_bits())),
            additions: load(steps.map(|s| u64::from(s.rest) | u64::from(s.start) << 32)),
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(numbers: [u64; SMALL]) -> Table {
    let (lanes, _) = numbers.as_chunks::<LANES>();
    // SAFETY: eight numbers.
    std::array::from_fn(|part| unsafe { _mm512_loadu_si512(lanes[part].as_ptr().cast()) })
}

/// The numbers of eight symbols. With `FEW` they are below sixteen.
#[inline]
#[target_feature(enable = "avx512f")]
fn look_up<const FEW: bool>([a, b, c, d]: Table, symbols: __m512i) -> __m512i {
    let low = _mm512_permutex2var_epi64(a, symbols, b);
    if FEW {
        return low;
    }
    let are_high = _mm512_test_epi64_mask(symbols, _mm512_set1_epi64(2 * LANES as i64));
    _mm512_mask_blend_epi64(are_high, low, _mm512_permutex2var_epi64(c, symbols, d))
}

/// Codes symbols, the last first, if the instructions for it are there.
pub(super) fn encode(
    level: SimdLevel,
    groups: &[[u8; LANES]],
    steps: &[Step; SMALL],
    n_symbols: usize,
    states: &mut [u32; LANES],
    words: &mut Words,
) -> bool {
    match level {
        // SAFETY: a level is only made after its features were detected.
        SimdLevel::Avx512 if n_symbols <= SMALL / 2 => unsafe {
            encode_avx512::<true>(groups, steps, states, words);
        },
        // SAFETY: as above.
        SimdLevel::Avx512 if n_symbols <= SMALL => unsafe {
            encode_avx512::<false>(groups, steps, states, words);
        },
        _ => return false,
    }
    true
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
fn encode_avx512<const FEW: bool>(
    groups: &[[u8; LANES]],
    steps: &[Step; SMALL],
    states: &mut [u32; LANES],
    words: &mut Words,
) {
    let tables = Tables::new(steps);
    // SAFETY: eight numbers of 32 bits.
    let mut all = _mm512_cvtepu32_epi64(unsafe { _mm256_loadu_si256(states.as_ptr().cast()) });
    for group in groups.iter().rev() {
        let symbols = _mm512_cvtepu8_epi64(_mm_cvtsi64_si128(i64::from_le_bytes(*group)));
        let limits = look_up::<FEW>(tables.limits, symbols);
        let are_cut = _mm512_cmpge_epu64_mask(all, limits);
        let cut = _mm512_cvtepi64_epi16(_mm512_maskz_compress_epi64(are_cut, all));
        put(cut, are_cut.count_ones() as usize, words);
        all = _mm512_mask_srli_epi64::<16>(all, are_cut, all);
        let inverses = _mm512_castsi512_pd(look_up::<FEW>(tables.inverses, symbols));
        // (state + 1/2) / frequency: no nearer to the next integer than 2^-13, the error is below 2^-30.
        let halves = _mm512_mul_pd(inverses, _mm512_set1_pd(0.5));
        let quotients = _mm512_fmadd_pd(_mm512_cvtepu64_pd(all), inverses, halves);
        let quotients = _mm512_cvttpd_epu64(quotients);
        let additions = look_up::<FEW>(tables.additions, symbols);
        let starts = _mm512_srli_epi64::<32>(additions);
        let product = _mm512_mul_epu32(quotients, additions);
        all = _mm512_add_epi64(product, _mm512_add_epi64(all, starts));
    }
    // SAFETY: as above.
    unsafe { _mm256_storeu_si256(states.as_mut_ptr().cast(), _mm512_cvtepi64_epi32(all)) };
}

/// Puts the first `n` of eight words before those that are there.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl")]
fn put(eight: __m128i, n: usize, words: &mut Words) {
    words.first -= n;
    let place = &mut words.all[words.first..words.first + n];
    let mask = ((1u16 << n) - 1) as u8;
    // SAFETY: the mask has as many bits as there are words in `place`.
    unsafe { _mm_mask_storeu_epi16(place.as_mut_ptr().cast(), mask, eight) };
}
