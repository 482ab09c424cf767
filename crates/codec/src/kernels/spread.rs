//! Making room for values that are missing, and leaving out bits: what turns values without gaps into those of rows, and
//! the rows' bits into those of picked rows.

use std::ops::Range;

use super::{copy_bits, count_ones_prefix};
use crate::simd::SimdLevel;

/// Puts defaults among the values from `at` on, which are those of the set bits in `range`: one for each other bit.
fn spread<T: Copy + Default>(
    level: SimdLevel,
    bits: &[u64],
    range: Range<usize>,
    values: &mut Vec<T>,
    at: usize,
) {
    let mut of_range = vec![0; range.len().div_ceil(64)];
    copy_bits(bits, range.start, range.len(), &mut of_range);
    let count = count_ones_prefix(&of_range, range.len());
    assert_eq!(values.len(), at + count, "BUG: not a value for each set bit");
    values.resize(at + range.len(), T::default());
    let values = &mut values[at..];
    match level {
        SimdLevel::Portable => {
            spread_rows(&of_range, values, 0..values.len(), count);
        }
        #[cfg(target_arch = "x86_64")]
        _ => x86::spread(level, &of_range, values, count),
    }
}

/// Moves values to `rows`, of which `source` have one; these stand at the beginning. Backwards, so that none is written over
/// before it has moved. Returns how many have not moved.
fn spread_rows<T: Copy + Default>(
    bits: &[u64],
    values: &mut [T],
    rows: Range<usize>,
    mut source: usize,
) -> usize {
    for row in rows.rev() {
        let is_there = bits[row / 64] >> (row % 64) & 1 == 1;
        source -= usize::from(is_there);
        values[row] = if is_there { values[source] } else { T::default() };
    }
    source
}

/// Appends those of the first `len` bits whose bit in `mask` is set, side by side, to whole words; returns how many. The rest
/// of the last word is zero.
///
/// # Panics
/// If either has fewer bits than `len`.
pub fn filter_bits(bits: &[u64], mask: &[u64], len: usize, out: &mut Vec<u64>) -> usize {
    filter_bits_level(SimdLevel::detect(), bits, mask, len, out)
}

pub(super) fn filter_bits_level(
    level: SimdLevel,
    bits: &[u64],
    mask: &[u64],
    len: usize,
    out: &mut Vec<u64>,
) -> usize {
    let words = len.div_ceil(64);
    let (bits, mask) = (&bits[..words], &mask[..words]);
    match level {
        SimdLevel::Portable => append_extracted(bits, mask, len, out, extract),
        #[cfg(target_arch = "x86_64")]
        _ => x86::filter_bits(bits, mask, len, out),
    }
}

#[inline]
fn append_extracted(
    bits: &[u64],
    mask: &[u64],
    len: usize,
    out: &mut Vec<u64>,
    extract: impl Fn(u64, u64) -> u64,
) -> usize {
    let tail = match len % 64 {
        0 => u64::MAX,
        rest => (1 << rest) - 1,
    };
    let (mut found, mut filled) = (0, 0u64);
    let mut last = 0;
    for (at, (&bits, &mask)) in bits.iter().zip(mask).enumerate() {
        let mask = if (at + 1) * 64 > len { mask & tail } else { mask };
        let (some, count) = (extract(bits, mask), u64::from(mask.count_ones()));
        last |= some << filled;
        if filled + count >= 64 {
            out.push(last);
            // All of them were taken if the word was empty.
            last = some.checked_shr(64 - filled as u32).unwrap_or(0);
        }
        filled = (filled + count) % 64;
        found += count;
    }
    if filled > 0 {
        out.push(last);
    }
    found as usize
}

/// The bits whose bit in `mask` is set, side by side.
fn extract(bits: u64, mut mask: u64) -> u64 {
    let (mut found, mut count) = (0, 0);
    while mask != 0 {
        found |= (bits >> mask.trailing_zeros() & 1) << count;
        count += 1;
        mask &= mask - 1;
    }
    found
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    use std::arch::x86_64::{
        _mm256_and_si256, _mm256_loadu_si256, _mm256_permutevar8x32_epi32, _mm256_srai_epi32,
        _mm256_storeu_si256, _mm512_loadu_si512, _mm512_maskz_expand_epi64, _mm512_storeu_si512,
        _pext_u64,
    };

    use crate::kernels::select::halves_by_mask;
    use crate::simd::SimdLevel;

    pub(super) fn filter_bits(bits: &[u64], mask: &[u64], len: usize, out: &mut Vec<u64>) -> usize {
        // SAFETY: dispatched only after BMI2 and POPCNT were detected.
        unsafe { filter_bits_bmi2(bits, mask, len, out) }
    }

    #[target_feature(enable = "bmi2,popcnt")]
    fn filter_bits_bmi2(bits: &[u64], mask: &[u64], len: usize, out: &mut Vec<u64>) -> usize {
        super::append_extracted(bits, mask, len, out, |bits, mask| _pext_u64(bits, mask))
    }

    /// Values are as wide as words, and `count` of them stand at the beginning.
    pub(super) fn spread<T: Copy + Default>(
        level: SimdLevel,
        bits: &[u64],
        values: &mut [T],
        count: usize,
    ) {
        assert_eq!((size_of::<T>(), align_of::<T>()), (8, 8), "BUG: values unlike words");
        let whole = values.len() / 8 * 8;
        let count = super::spread_rows(bits, values, whole..values.len(), count);
        assert!(count <= whole && bits.len() >= whole.div_ceil(64), "BUG: more values than rows");
        let values = values.as_mut_ptr().cast();
        // SAFETY: dispatched only for what was detected; there are `whole` values, a bit for each, and values of that
        // type are moved as words or become zero, as their default is.
        unsafe {
            match level {
                SimdLevel::Avx512 => spread_avx512(bits, values, whole, count),
                _ => spread_avx2(bits, values, whole, count),
            }
        }
    }

    /// # Safety
    /// There are `whole` values, a multiple of eight, and a bit for each; `count` of these are set.
    #[target_feature(enable = "avx512f,popcnt")]
    unsafe fn spread_avx512(bits: &[u64], values: *mut u64, whole: usize, count: usize) {
        let (mut source, mut row) = (count, whole);
        // Where no row before lacks a value, all are in their places.
        while source < row {
            row -= 8;
            let present = (bits[row / 64] >> (row % 64)) as u8;
            source -= present.count_ones() as usize;
            // SAFETY: `source` is at most `row`, so that a register from there is within the values and has none that was
            // written.
            unsafe {
                let moved = _mm512_loadu_si512(values.add(source).cast());
                let moved = _mm512_maskz_expand_epi64(present, moved);
                _mm512_storeu_si512(values.add(row).cast(), moved);
            }
        }
    }

    /// For each mask of four rows, the halves of the value that each of them gets, and whether there is one.
    static PLACES: [[u32; 8]; 16] = halves_by_mask(true);

    /// # Safety
    /// As [`spread_avx512`].
    #[target_feature(enable = "avx2,popcnt")]
    unsafe fn spread_avx2(bits: &[u64], values: *mut u64, whole: usize, count: usize) {
        let (mut source, mut row) = (count, whole);
        while source < row {
            row -= 4;
            let present = (bits[row / 64] >> (row % 64)) as usize & 15;
            source -= present.count_ones() as usize;
            // SAFETY: as with AVX-512; only the low three bits of a place count.
            unsafe {
                let places = _mm256_loadu_si256(PLACES[present].as_ptr().cast());
                let moved = _mm256_loadu_si256(values.add(source).cast());
                let moved = _mm256_permutevar8x32_epi32(moved, places);
                let moved = _mm256_and_si256(moved, _mm256_srai_epi32::<31>(places));
                _mm256_storeu_si256(values.add(row).cast(), moved);
            }
        }
    }
}

macro_rules! spreads {
    ($type:ty, $name:ident) => {
        /// Puts zeros among the values from `at` on, which are those of the set bits in `range`: one for each other bit.
        ///
        /// # Panics
        /// If there are not as many values as set bits.
        pub fn $name(bits: &[u64], range: Range<usize>, values: &mut Vec<$type>, at: usize) {
            spread(SimdLevel::detect(), bits, range, values, at);
        }
    };
}

spreads!(u64, spread_u64);
spreads!(i64, spread_i64);
spreads!(f64, spread_f64);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(bits: &[bool]) -> Vec<u64> {
        let mut words = vec![0u64; bits.len().div_ceil(64)];
        for (at, bit) in bits.iter().enumerate() {
            words[at / 64] |= u64::from(*bit) << (at % 64);
        }
        words
    }

    /// Many bits, few, all or none.
    fn some_bits() -> impl Strategy<Value = Vec<bool>> {
        let share = prop::sample::select(vec![0.0, 0.05, 0.5, 0.95, 1.0]);
        share.prop_flat_map(|share| prop::collection::vec(prop::bool::weighted(share), 0..400))
    }

    proptest! {
        #[test]
        fn values_are_spread_by_the_bits(bits in some_bits(), cut in any::<(u16, u16)>()) {
            let n = bits.len();
            let (a, b) = (cut.0 as usize % (n + 1), cut.1 as usize % (n + 1));
            let range = a.min(b)..a.max(b);
            let value = |row: usize| row as u64 + 1;
            let expected: Vec<u64> = std::iter::once(7)
                .chain(range.clone().map(|row| if bits[row] { value(row) } else { 0 }))
                .collect();
            let there = range.clone().filter(|row| bits[*row]).map(value);
            let values: Vec<u64> = std::iter::once(7).chain(there).collect();
            for level in SimdLevel::available() {
                let mut values = values.clone();
                spread(level, &words(&bits), range.clone(), &mut values, 1);
                prop_assert_eq!(&values, &expected);
            }
            let mut floats: Vec<f64> = values.iter().map(|value| *value as f64).collect();
            spread_f64(&words(&bits), range, &mut floats, 1);
            prop_assert!(floats.iter().zip(&expected).all(|(a, b)| *a == *b as f64));
        }

        #[test]
        fn bits_are_filtered(
            (bits, mask) in some_bits().prop_flat_map(|mask| {
                (prop::collection::vec(any::<bool>(), mask.len()), Just(mask))
            }),
        ) {
            let picked: Vec<bool> =
                bits.iter().zip(&mask).filter(|(_, picked)| **picked).map(|(bit, _)| *bit).collect();
            // Bits past the end do not count.
            let mut mask_words = words(&mask);
            if mask.len() % 64 > 0 && let Some(last) = mask_words.last_mut() {
                *last |= u64::MAX << (mask.len() % 64);
            }
            for level in SimdLevel::available() {
                let mut out = vec![3];
                let found =
                    filter_bits_level(level, &words(&bits), &mask_words, bits.len(), &mut out);
                prop_assert_eq!(found, picked.len());
                prop_assert_eq!(&out[1..], words(&picked));
            }
        }
    }
}
