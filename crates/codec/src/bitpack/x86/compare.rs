//! What `bitpack::compare` says, for AVX-512: packed values are spread over bytes and compared 64 at a time, sums over 32 bits
//! and sixteen at a time.

use std::arch::x86_64::*;

use super::super::compare::{Bits, COMPARED_MAX};
use super::{RUNNING, RunningLayout};
use crate::kernels::Comparison;

/// For each width, the bytes that eight values in a row begin at, for eight times eight values.
static GROUPS: [[u8; 64]; 9] = {
    let mut all = [[0; 64]; 9];
    let mut width = 0;
    while width < all.len() {
        let mut at = 0;
        while at < 64 {
            // Eight values of at most eight bits are in the first bytes of eight.
            let from = at / 8 * width + at % 8;
            all[width][at] = if from < 64 { from as u8 } else { 0 };
            at += 1;
        }
        width += 1;
    }
    all
};

macro_rules! by_comparison {
    ($comparison:expr, $function:ident($($argument:expr),*)) => {
        match $comparison {
            Comparison::Equal => $function::<_MM_CMPINT_EQ>($($argument),*),
            Comparison::NotEqual => $function::<_MM_CMPINT_NE>($($argument),*),
            Comparison::Less => $function::<_MM_CMPINT_LT>($($argument),*),
            Comparison::LessOrEqual => $function::<_MM_CMPINT_LE>($($argument),*),
            Comparison::Greater => $function::<_MM_CMPINT_NLE>($($argument),*),
            Comparison::GreaterOrEqual => $function::<_MM_CMPINT_NLT>($($argument),*),
        }
    };
}

/// Compares the first `n` values, at most [`COMPARED_MAX`], of a width of `1..=8`.
pub(in crate::bitpack) fn bytes(
    bytes: &[u8],
    (n, width): (usize, u32),
    comparison: Comparison,
    scalar: u8,
) -> Bits {
    assert!(n <= COMPARED_MAX && (1..=8).contains(&width), "BUG: {n} of {width} bits");
    // SAFETY: the caller dispatches here only when AVX-512 with VBMI was detected.
    unsafe { by_comparison!(comparison, compare_bytes(bytes, n, width, scalar)) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi")]
fn compare_bytes<const OP: i32>(bytes: &[u8], n: usize, width: u32, scalar: u8) -> Bits {
    // Where each of eight values begins in its eight bytes, in bits.
    let starts = (0..8).fold(0u64, |all, at| all | u64::from(at * width) << (8 * at));
    // SAFETY: the array is a whole register.
    let groups = unsafe { _mm512_loadu_si512(GROUPS[width as usize].as_ptr().cast()) };
    let starts = _mm512_set1_epi64(starts.cast_signed());
    let mask = _mm512_set1_epi8(super::super::low_mask(width) as i8);
    let scalar = _mm512_set1_epi8(scalar.cast_signed());
    let stride = 8 * width as usize;
    let mut bits = Bits::default();
    for (word, at) in bits.iter_mut().take(n.div_ceil(64)).zip((0..).step_by(stride)) {
        let rest = &bytes[at..];
        // SAFETY: 64 bytes are readable, or those that the mask names, which are fewer.
        let loaded = unsafe {
            match rest.len() {
                64.. => _mm512_loadu_si512(rest.as_ptr().cast()),
                len => _mm512_maskz_loadu_epi8((1 << len) - 1, rest.as_ptr().cast()),
            }
        };
        let apart = _mm512_multishift_epi64_epi8(starts, _mm512_permutexvar_epi8(groups, loaded));
        *word = _mm512_cmp_epu8_mask::<OP>(_mm512_and_si512(apart, mask), scalar);
    }
    bits
}

/// Compares the sums of the first `n` values, at most [`COMPARED_MAX`], whose layout [`RUNNING`] has and which add up within
/// 32 bits.
pub(in crate::bitpack) fn sums(
    bytes: &[u8],
    (n, width): (usize, u32),
    step: i32,
    comparison: Comparison,
    scalar: i32,
) -> Bits {
    assert!(n <= COMPARED_MAX && width > 0, "BUG: {n} of {width} bits");
    // SAFETY: the caller dispatches here only when AVX-512 with VBMI was detected.
    unsafe { by_comparison!(comparison, compare_sums(bytes, n, width, step, scalar)) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi")]
fn compare_sums<const OP: i32>(bytes: &[u8], n: usize, width: u32, step: i32, scalar: i32) -> Bits {
    let stride = 2 * width as usize;
    let RunningLayout { shuffle, shift } = &RUNNING[width as usize];
    let ramp: [i32; 16] = std::array::from_fn(|lane| step * (lane as i32 + 1));
    // SAFETY: all these arrays are whole registers.
    let (shuffle, shift, ramp) = unsafe {
        (
            _mm512_loadu_si512(shuffle.as_ptr().cast()),
            _mm512_loadu_si512(shift.as_ptr().cast()),
            _mm512_loadu_si512(ramp.as_ptr().cast()),
        )
    };
    let (zero, last) = (_mm512_setzero_si512(), _mm512_set1_epi32(15));
    let mask = _mm512_set1_epi32(super::super::low_mask(width) as i32);
    let scalar = _mm512_set1_epi32(scalar);
    let mut start = zero;
    let mut bits = Bits::default();
    for group in 0..n.div_ceil(16) {
        let rest = &bytes[group * stride..];
        // SAFETY: 64 bytes are readable, or those that the mask names, which are fewer.
        let loaded = unsafe {
            match rest.len() {
                64.. => _mm512_loadu_si512(rest.as_ptr().cast()),
                len => _mm512_maskz_loadu_epi8((1 << len) - 1, rest.as_ptr().cast()),
            }
        };
        let window = _mm512_permutexvar_epi8(shuffle, loaded);
        let x = _mm512_and_si512(_mm512_srlv_epi32(window, shift), mask);
        let x = _mm512_add_epi32(x, _mm512_alignr_epi32::<15>(x, zero));
        let x = _mm512_add_epi32(x, _mm512_alignr_epi32::<14>(x, zero));
        let x = _mm512_add_epi32(x, _mm512_alignr_epi32::<12>(x, zero));
        let x = _mm512_add_epi32(x, _mm512_alignr_epi32::<8>(x, zero));
        let sums = _mm512_add_epi32(_mm512_add_epi32(x, ramp), start);
        start = _mm512_permutexvar_epi32(last, sums);
        let holds = _mm512_cmp_epi32_mask::<OP>(sums, scalar);
        bits[group / 4] |= u64::from(holds) << (group % 4 * 16);
    }
    bits
}
