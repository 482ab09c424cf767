//! What `bitpack::compare` says, for AVX-512: packed values are spread over bytes and compared 64 at a time, or over 32 bits,
//! added up there, and compared sixteen at a time.

use std::arch::x86_64::*;

use super::super::compare::{Bits, COMPARED_MAX, PackedRows};
use super::{DIFFERENCES, NOTHING, RUNNING, RunningLayout, VALUES, by_kinds};
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
    ($comparison:expr, $function:ident[$($kind:expr),*]($($argument:expr),*)) => {
        match $comparison {
            Comparison::Equal => $function::<_MM_CMPINT_EQ, $($kind),*>($($argument),*),
            Comparison::NotEqual => $function::<_MM_CMPINT_NE, $($kind),*>($($argument),*),
            Comparison::Less => $function::<_MM_CMPINT_LT, $($kind),*>($($argument),*),
            Comparison::LessOrEqual => $function::<_MM_CMPINT_LE, $($kind),*>($($argument),*),
            Comparison::Greater => $function::<_MM_CMPINT_NLE, $($kind),*>($($argument),*),
            Comparison::GreaterOrEqual => $function::<_MM_CMPINT_NLT, $($kind),*>($($argument),*),
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
    unsafe { by_comparison!(comparison, compare_bytes[](bytes, n, width, scalar)) }
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

/// Compares some rows, at most [`COMPARED_MAX`], with others and a number together, or with the number alone. No row is 2^29 or more
/// away from zero, nor the number 2^30 + 2.
pub(in crate::bitpack) fn rows(
    rows: usize,
    left: PackedRows<'_>,
    comparison: Comparison,
    right: Option<PackedRows<'_>>,
    number: i32,
) -> Bits {
    assert!(rows <= COMPARED_MAX, "BUG: {rows} rows");
    let others = right.unwrap_or(PackedRows::NONE);
    macro_rules! compare {
        ($left:expr, $right:expr) => {
            by_comparison!(comparison, compare_rows[$left, $right](rows, left, others, number))
        };
    }
    // SAFETY: the caller dispatches here only when AVX-512 with VBMI was detected.
    unsafe { by_kinds!(left, right, compare) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi")]
fn compare_rows<const OP: i32, const LEFT: u8, const RIGHT: u8>(
    rows: usize,
    left: PackedRows<'_>,
    right: PackedRows<'_>,
    number: i32,
) -> Bits {
    let number = _mm512_set1_epi32(number);
    let (mut left, mut right) = (Lanes::new(left), Lanes::new(right));
    let mut bits = Bits::default();
    for group in 0..rows.div_ceil(16) {
        let (left, right) = (left.next::<LEFT>(), right.next::<RIGHT>());
        let holds = _mm512_cmp_epi32_mask::<OP>(left, _mm512_add_epi32(right, number));
        bits[group / 4] |= u64::from(holds) << (group % 4 * 16);
    }
    bits
}

/// Rows in 32 bits each, sixteen at a time.
struct Lanes<'a> {
    /// From the next sixteen on.
    bytes: &'a [u8],
    stride: usize,
    shuffle: __m512i,
    shift: __m512i,
    mask: __m512i,
    /// What the steps add up to.
    ramp: __m512i,
    /// The sums of the sixteen differences before.
    before: __m512i,
}

impl<'a> Lanes<'a> {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi")]
    fn new(rows: PackedRows<'a>) -> Self {
        let RunningLayout { shuffle, shift } = &RUNNING[rows.width as usize];
        let step = rows.step.unwrap_or(0) as i32;
        let ramp: [i32; 16] = std::array::from_fn(|lane| step * (lane as i32 + 1));
        // SAFETY: all these arrays are whole registers.
        let (shuffle, shift, ramp) = unsafe {
            (
                _mm512_loadu_si512(shuffle.as_ptr().cast()),
                _mm512_loadu_si512(shift.as_ptr().cast()),
                _mm512_loadu_si512(ramp.as_ptr().cast()),
            )
        };
        let mask = _mm512_set1_epi32(super::super::low_mask(rows.width) as i32);
        let (bytes, stride) = (rows.bytes, 2 * rows.width as usize);
        Self { bytes, stride, shuffle, shift, mask, ramp, before: _mm512_setzero_si512() }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi")]
    fn next<const KIND: u8>(&mut self) -> __m512i {
        let zero = _mm512_setzero_si512();
        if KIND == NOTHING {
            return zero;
        }
        // SAFETY: 64 bytes are readable, or those that the mask names, which are fewer.
        let loaded = unsafe {
            match self.bytes.len() {
                64.. => _mm512_loadu_si512(self.bytes.as_ptr().cast()),
                len => _mm512_maskz_loadu_epi8((1 << len) - 1, self.bytes.as_ptr().cast()),
            }
        };
        self.bytes = &self.bytes[self.stride.min(self.bytes.len())..];
        let window = _mm512_permutexvar_epi8(self.shuffle, loaded);
        let x = _mm512_and_si512(_mm512_srlv_epi32(window, self.shift), self.mask);
        if KIND == VALUES {
            return x;
        }
        let x = _mm512_add_epi32(x, _mm512_alignr_epi32::<15>(x, zero));
        let x = _mm512_add_epi32(x, _mm512_alignr_epi32::<14>(x, zero));
        let x = _mm512_add_epi32(x, _mm512_alignr_epi32::<12>(x, zero));
        let x = _mm512_add_epi32(x, _mm512_alignr_epi32::<8>(x, zero));
        let start = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), self.before);
        let sums = _mm512_add_epi32(_mm512_add_epi32(x, self.ramp), start);
        // Each row is what comes before its difference to the next.
        let rows = _mm512_alignr_epi32::<15>(sums, self.before);
        self.before = sums;
        rows
    }
}
