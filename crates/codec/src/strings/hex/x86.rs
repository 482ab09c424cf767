//! Writing strings of digits with AVX-512: a string a register.

use std::arch::x86_64::{
    _mm_loadu_si128, _mm512_and_si512, _mm512_broadcast_i32x4, _mm512_loadu_si512,
    _mm512_mask_blend_epi8, _mm512_mask_shuffle_epi8, _mm512_mask_storeu_epi8,
    _mm512_maskz_loadu_epi8, _mm512_permutexvar_epi8, _mm512_set1_epi8, _mm512_srli_epi16,
};
use std::mem::MaybeUninit;

use super::{CHARACTERS, Pattern, UPPER};

/// Longer strings do not fit into a register.
pub(super) const LENGTH_MAX: usize = 64;

/// Appends strings, as the portable loop does.
pub(super) fn append(pattern: &Pattern<'_>, packed: &[u8], out: &mut Vec<u8>) {
    let (length, stride) = (pattern.bytes.len(), pattern.stride());
    assert!(length <= LENGTH_MAX, "BUG: strings of {length} bytes in a register");
    let added = packed.len() / stride * length;
    out.reserve(added);
    let room = &mut out.spare_capacity_mut()[..added];
    // SAFETY: the caller dispatches here only when AVX-512 with VBMI was detected.
    unsafe { write_strings(pattern, packed, room) }
    // SAFETY: there is room for so many, and all of them were written: `length` bytes for each `stride` of the digits.
    unsafe { out.set_len(out.len() + added) }
}

/// Writes strings one behind the other, all of `room`.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn write_strings(pattern: &Pattern<'_>, packed: &[u8], room: &mut [MaybeUninit<u8>]) {
    let (length, stride) = (pattern.bytes.len(), pattern.stride());
    // Of each place which byte has its digit.
    let (mut byte_of, mut common) = ([0u8; LENGTH_MAX], [0u8; LENGTH_MAX]);
    common[..length].copy_from_slice(pattern.bytes);
    let (mut is_digit, mut is_low, mut is_upper) = (0u64, 0u64, 0u64);
    for (digit, place) in pattern.places.iter().enumerate() {
        let place = usize::from(*place);
        byte_of[place] = (digit / 2) as u8;
        is_digit |= 1 << place;
        is_low |= ((digit % 2) as u64) << place;
        is_upper |= u64::from(pattern.bytes[place] == UPPER) << place;
    }
    // SAFETY: the arrays are whole registers, those of characters a quarter of one.
    let (byte_of, common, lower, upper) = unsafe {
        (
            _mm512_loadu_si512(byte_of.as_ptr().cast()),
            _mm512_loadu_si512(common.as_ptr().cast()),
            _mm512_broadcast_i32x4(_mm_loadu_si128(CHARACTERS[0].as_ptr().cast())),
            _mm512_broadcast_i32x4(_mm_loadu_si128(CHARACTERS[1].as_ptr().cast())),
        )
    };
    let half = _mm512_set1_epi8(15);
    let (of_string, of_digits) = (low_bits(length), low_bits(stride));
    for (string, digits) in room.chunks_exact_mut(length).zip(packed.chunks_exact(stride)) {
        // SAFETY: the mask names the bytes of the slice.
        let digits = unsafe { _mm512_maskz_loadu_epi8(of_digits, digits.as_ptr().cast()) };
        let low = _mm512_permutexvar_epi8(byte_of, digits);
        let high = _mm512_srli_epi16::<4>(low);
        let values = _mm512_and_si512(_mm512_mask_blend_epi8(is_low, high, low), half);
        let text = _mm512_mask_shuffle_epi8(common, is_digit, lower, values);
        let text = _mm512_mask_shuffle_epi8(text, is_upper, upper, values);
        // SAFETY: as above.
        unsafe { _mm512_mask_storeu_epi8(string.as_mut_ptr().cast(), of_string, text) };
    }
}

/// So many of the low bits, at most 64.
fn low_bits(n: usize) -> u64 {
    if n == 64 { u64::MAX } else { (1 << n) - 1 }
}
