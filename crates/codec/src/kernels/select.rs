//! Picking values by bitmap or by index.

use crate::{
    int::{as_i64, as_u64},
    simd::SimdLevel,
};

/// A chunk's worth of picked values, with room for one register of overshoot.
type Picked = [u64; 64 + 8];

/// Moves the values whose bit is set to the front of `picked`; returns how many.
fn compact(level: SimdLevel, chunk: &[u64], word: u64, picked: &mut Picked) -> usize {
    match level {
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 => x86::compact(chunk, word, picked),
        _ => compact_portable(chunk, word, picked),
    }
}

fn compact_portable(chunk: &[u64], word: u64, picked: &mut Picked) -> usize {
    let mut n = 0;
    for (bit, value) in chunk.iter().enumerate() {
        picked[n] = *value;
        n += (word >> bit & 1) as usize;
    }
    n
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    use std::arch::x86_64::{_mm512_loadu_si512, _mm512_maskz_compress_epi64, _mm512_storeu_si512};

    use super::Picked;

    pub(super) fn compact(chunk: &[u64], word: u64, picked: &mut Picked) -> usize {
        // SAFETY: dispatched only after AVX-512 was detected.
        unsafe { compact_avx512(chunk, word, picked) }
    }

    #[target_feature(enable = "avx512f,popcnt")]
    fn compact_avx512(chunk: &[u64], word: u64, picked: &mut Picked) -> usize {
        assert!(chunk.len() <= 64, "BUG: chunk larger than a word");
        let mut n = 0;
        let (groups, rest) = chunk.as_chunks::<8>();
        for (i, group) in groups.iter().enumerate() {
            let mask = (word >> (i * 8)) as u8;
            // SAFETY: `n` is at most 56 here, and `picked` has eight values more than that.
            unsafe {
                let values = _mm512_loadu_si512(group.as_ptr().cast());
                let front = _mm512_maskz_compress_epi64(mask, values);
                _mm512_storeu_si512(picked.as_mut_ptr().add(n).cast(), front);
            }
            n += mask.count_ones() as usize;
        }
        for (i, value) in rest.iter().enumerate() {
            picked[n] = *value;
            n += (word >> (groups.len() * 8 + i) & 1) as usize;
        }
        n
    }
}

pub(crate) fn filter_level(
    level: SimdLevel,
    values: &[u64],
    mask: &[u64],
    mut emit: impl FnMut(&[u64]),
) {
    assert!(mask.len() >= values.len().div_ceil(64), "BUG: mask shorter than the values");
    let mut picked: Picked = [0; 72];
    for (chunk, &word) in values.chunks(64).zip(mask) {
        match word {
            0 => {}
            u64::MAX => emit(chunk),
            _ => {
                let n = compact(level, chunk, word, &mut picked);
                emit(&picked[..n]);
            }
        }
    }
}

/// Appends the values whose bit is set.
///
/// # Panics
/// If there are fewer bits than values.
pub fn filter_u64(values: &[u64], mask: &[u64], out: &mut Vec<u64>) {
    filter_level(SimdLevel::detect(), values, mask, |picked| out.extend_from_slice(picked));
}

/// Appends the values whose bit is set.
///
/// # Panics
/// If there are fewer bits than values.
pub fn filter_i64(values: &[i64], mask: &[u64], out: &mut Vec<i64>) {
    filter_level(SimdLevel::detect(), as_u64(values), mask, |picked| {
        out.extend_from_slice(as_i64(picked));
    });
}

/// Appends the values whose bit is set.
///
/// # Panics
/// If there are fewer bits than values.
pub fn filter_f64(values: &[f64], mask: &[u64], out: &mut Vec<f64>) {
    filter_level(SimdLevel::detect(), crate::float::as_bits(values), mask, |picked| {
        out.extend_from_slice(crate::float::as_f64(picked));
    });
}

macro_rules! gathers {
    ($type:ty, $name:ident) => {
        /// Appends `values[index]` for every index.
        ///
        /// # Panics
        /// If an index is past the end.
        pub fn $name(values: &[$type], indices: &[u32], out: &mut Vec<$type>) {
            out.extend(indices.iter().map(|&index| values[index as usize]));
        }
    };
}

gathers!(u64, gather_u64);
gathers!(i64, gather_i64);
gathers!(f64, gather_f64);
