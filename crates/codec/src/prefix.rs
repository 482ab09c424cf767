//! Running sums in place: the inverse of differences.

use crate::simd::SimdLevel;

/// Replaces `values[i]` by `start + sum(values[0..=i] + step)`, wrapping; returns the last one.
pub(crate) fn prefix_sum(values: &mut [u64], start: u64, step: u64) -> u64 {
    prefix_sum_at(SimdLevel::detect(), values, start, step)
}

pub(crate) fn prefix_sum_at(level: SimdLevel, values: &mut [u64], start: u64, step: u64) -> u64 {
    match level {
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 => x86::avx512(values, start, step),
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 => x86::avx2(values, start, step),
        SimdLevel::Portable => portable(values, start, step),
    }
}

fn portable(values: &mut [u64], start: u64, step: u64) -> u64 {
    let mut sum = start;
    for value in values {
        sum = sum.wrapping_add(*value).wrapping_add(step);
        *value = sum;
    }
    sum
}

/// Sums within a register by doubling distances; only one addition per register depends on the
/// register before, so the chain between registers is a single cycle long.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _mm_cvtsi128_si64, _mm256_add_epi64, _mm256_blend_epi32, _mm256_extract_epi64,
        _mm256_loadu_si256, _mm256_permute4x64_epi64, _mm256_set1_epi64x, _mm256_setzero_si256,
        _mm256_slli_si256, _mm256_storeu_si256, _mm512_add_epi64, _mm512_alignr_epi64,
        _mm512_castsi512_si128, _mm512_loadu_si512, _mm512_permutexvar_epi64, _mm512_set1_epi64,
        _mm512_setzero_si512, _mm512_storeu_si512,
    };

    pub(super) fn avx512(values: &mut [u64], start: u64, step: u64) -> u64 {
        // SAFETY: dispatched only after AVX-512 was detected.
        unsafe { avx512_inner(values, start, step) }
    }

    #[target_feature(enable = "avx512f")]
    fn avx512_inner(values: &mut [u64], start: u64, step: u64) -> u64 {
        let zero = _mm512_setzero_si512();
        let steps = _mm512_set1_epi64(step as i64);
        let last = _mm512_set1_epi64(7);
        let mut carry = _mm512_set1_epi64(start as i64);
        let (groups, rest) = values.as_chunks_mut::<8>();
        for group in groups {
            // SAFETY: a group is 64 bytes.
            let x = unsafe { _mm512_loadu_si512(group.as_ptr().cast()) };
            let x = _mm512_add_epi64(x, steps);
            let x = _mm512_add_epi64(x, _mm512_alignr_epi64::<7>(x, zero));
            let x = _mm512_add_epi64(x, _mm512_alignr_epi64::<6>(x, zero));
            let x = _mm512_add_epi64(x, _mm512_alignr_epi64::<4>(x, zero));
            // SAFETY: a group is 64 bytes.
            unsafe {
                _mm512_storeu_si512(group.as_mut_ptr().cast(), _mm512_add_epi64(x, carry));
            }
            carry = _mm512_add_epi64(carry, _mm512_permutexvar_epi64(last, x));
        }
        let sum = _mm_cvtsi128_si64(_mm512_castsi512_si128(carry)) as u64;
        super::portable(rest, sum, step)
    }

    pub(super) fn avx2(values: &mut [u64], start: u64, step: u64) -> u64 {
        // SAFETY: dispatched only after AVX2 was detected.
        unsafe { avx2_inner(values, start, step) }
    }

    #[target_feature(enable = "avx2")]
    fn avx2_inner(values: &mut [u64], start: u64, step: u64) -> u64 {
        let steps = _mm256_set1_epi64x(step as i64);
        let mut carry = _mm256_set1_epi64x(start as i64);
        let (groups, rest) = values.as_chunks_mut::<4>();
        for group in groups {
            let place: *mut __m256i = group.as_mut_ptr().cast();
            // SAFETY: a group is 32 bytes.
            let x = unsafe { _mm256_loadu_si256(place) };
            let x = _mm256_add_epi64(x, steps);
            let x = _mm256_add_epi64(x, _mm256_slli_si256::<8>(x));
            // The sum of the lower half, in both lanes of the upper half.
            let low_sum = _mm256_permute4x64_epi64::<0b01_01_00_00>(x);
            let x = _mm256_add_epi64(
                x,
                _mm256_blend_epi32::<0b1111_0000>(_mm256_setzero_si256(), low_sum),
            );
            // SAFETY: a group is 32 bytes.
            unsafe { _mm256_storeu_si256(place, _mm256_add_epi64(x, carry)) };
            carry = _mm256_add_epi64(carry, _mm256_permute4x64_epi64::<0b11_11_11_11>(x));
        }
        let sum = _mm256_extract_epi64::<0>(carry) as u64;
        super::portable(rest, sum, step)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_level_equals_scalar(
            values in prop::collection::vec(any::<u64>(), 0..70), start: u64, step: u64,
        ) {
            let mut expected = values.clone();
            let last = portable(&mut expected, start, step);
            for level in SimdLevel::available() {
                let mut got = values.clone();
                prop_assert_eq!(prefix_sum_at(level, &mut got, start, step), last);
                prop_assert_eq!(&got, &expected, "{:?}", level);
            }
        }
    }
}
