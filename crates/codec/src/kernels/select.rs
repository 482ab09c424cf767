//! Picking values by bitmap or by index.

use crate::float::as_bits;
use crate::int::as_u64;
use crate::simd::SimdLevel;

/// Values written together behind those that were picked; the next ones are written over what is too many.
const OVERSHOOT: usize = 8;
/// A chunk's worth of picked values, with room for one register of overshoot.
type Picked = [u64; 64 + OVERSHOOT];

/// Moves the values whose bit is set to the front of `picked`; returns how many.
fn compact(level: SimdLevel, chunk: &[u64], word: u64, picked: &mut Picked) -> usize {
    match level {
        SimdLevel::Portable => compact_portable(chunk, word, picked),
        #[cfg(target_arch = "x86_64")]
        _ => x86::compact(level, chunk, word, picked),
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

/// For each mask of four values, which halves of others a permutation takes: those of the values in the mask, side by side, or, if it
/// `spreads`, for each value in the mask those of the next of four that stand side by side. Then their highest bit is set; no
/// permutation looks at it.
#[cfg(target_arch = "x86_64")]
pub(super) const fn halves_by_mask(spreads: bool) -> [[u32; 8]; 16] {
    let mut all = [[0; 8]; 16];
    let mut mask = 0;
    while mask < all.len() {
        let (mut at, mut lane) = (0, 0);
        while lane < 4 {
            if mask >> lane & 1 == 1 {
                let (to, from) = if spreads {
                    (lane, (1 << 31) | (2 * at as u32))
                } else {
                    (at, 2 * lane as u32)
                };
                all[mask][2 * to] = from;
                all[mask][2 * to + 1] = from + 1;
                at += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    all
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    use std::arch::x86_64::{
        _mm256_loadu_si256, _mm256_permutevar8x32_epi32, _mm256_storeu_si256, _mm512_loadu_si512,
        _mm512_maskz_compress_epi64, _mm512_storeu_si512,
    };

    use super::{OVERSHOOT, Picked, halves_by_mask};
    use crate::kernels::count_ones_prefix;
    use crate::simd::SimdLevel;

    pub(super) fn compact(
        level: SimdLevel,
        chunk: &[u64],
        word: u64,
        picked: &mut Picked,
    ) -> usize {
        assert!(chunk.len() <= 64, "BUG: chunk larger than a word");
        // SAFETY: dispatched only for what was detected; a chunk is 64 values, and `picked` has eight more.
        unsafe {
            match level {
                SimdLevel::Avx512 => compact_avx512(chunk, word, picked.as_mut_ptr()),
                _ => compact_avx2(chunk, word, picked.as_mut_ptr()),
            }
        }
    }

    /// Appends the values whose bit is set; they are as wide as words.
    pub(super) fn append<T: Copy>(
        level: SimdLevel,
        values: &[u64],
        mask: &[u64],
        out: &mut Vec<T>,
    ) {
        assert_eq!((size_of::<T>(), align_of::<T>()), (8, 8), "BUG: values unlike words");
        out.reserve(count_ones_prefix(mask, values.len()) + OVERSHOOT);
        // SAFETY: dispatched only for what was detected; room was made for all that is picked and a register
        // more; what was picked are values of that type, seen as words.
        unsafe {
            let room = out.as_mut_ptr().add(out.len()).cast();
            let picked = match level {
                SimdLevel::Avx512 => append_avx512(values, mask, room),
                _ => append_avx2(values, mask, room),
            };
            out.set_len(out.len() + picked);
        }
    }

    macro_rules! append {
        ($name:ident, $compact:ident, $features:literal) => {
            /// # Safety
            /// `out` has room for the values whose bit is set and for `OVERSHOOT` more.
            #[target_feature(enable = $features)]
            unsafe fn $name(values: &[u64], mask: &[u64], out: *mut u64) -> usize {
                let mut n = 0;
                for (chunk, &word) in values.chunks(64).zip(mask) {
                    if word != 0 {
                        // SAFETY: there is room for those that were not picked yet.
                        n += unsafe { $compact(chunk, word, out.add(n)) };
                    }
                }
                n
            }
        };
    }

    append!(append_avx512, compact_avx512, "avx512f,popcnt");
    append!(append_avx2, compact_avx2, "avx2,bmi1,popcnt");

    /// # Safety
    /// `out` has room for the values whose bit is set and for `OVERSHOOT` more.
    #[target_feature(enable = "avx512f,popcnt")]
    unsafe fn compact_avx512(chunk: &[u64], word: u64, out: *mut u64) -> usize {
        let mut n = 0;
        let (groups, rest) = chunk.as_chunks::<8>();
        for (i, group) in groups.iter().enumerate() {
            let mask = (word >> (i * 8)) as u8;
            // SAFETY: a register is written behind what was picked.
            unsafe {
                let values = _mm512_loadu_si512(group.as_ptr().cast());
                let front = _mm512_maskz_compress_epi64(mask, values);
                _mm512_storeu_si512(out.add(n).cast(), front);
            }
            n += mask.count_ones() as usize;
        }
        // SAFETY: as above.
        n + unsafe { compact_rest(rest, word.unbounded_shr(groups.len() as u32 * 8), out.add(n)) }
    }

    /// # Safety
    /// `out` has room for all of `rest`, which are less than a register.
    #[inline]
    unsafe fn compact_rest(rest: &[u64], mut word: u64, out: *mut u64) -> usize {
        let mut n = 0;
        for value in rest {
            // SAFETY: no more were written than there are.
            unsafe { out.add(n).write(*value) };
            n += (word & 1) as usize;
            word >>= 1;
        }
        n
    }

    /// For each mask of four values, the halves of those that are picked, side by side.
    static FRONTS: [[u32; 8]; 16] = halves_by_mask(false);

    /// If no more values than this are picked of a word's, each is fetched for itself: that takes 0.8 ns, a word of permutations 28
    /// (one core of a Zen 3).
    const FEW_PICKED: u32 = 32;

    /// # Safety
    /// As [`compact_avx512`].
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    unsafe fn compact_avx2(chunk: &[u64], word: u64, out: *mut u64) -> usize {
        let mut n = 0;
        if chunk.len() == 64 && word.count_ones() <= FEW_PICKED {
            let mut left = word;
            while left != 0 {
                // SAFETY: as above; places of bits are below 64.
                unsafe { out.add(n).write(chunk[left.trailing_zeros() as usize]) };
                left &= left - 1;
                n += 1;
            }
            return n;
        }
        let (groups, rest) = chunk.as_chunks::<4>();
        for (i, group) in groups.iter().enumerate() {
            let mask = (word >> (i * 4)) as usize & 15;
            // SAFETY: a register is written behind what was picked, half of what there is room for.
            unsafe {
                let values = _mm256_loadu_si256(group.as_ptr().cast());
                let front = _mm256_loadu_si256(FRONTS[mask].as_ptr().cast());
                let front = _mm256_permutevar8x32_epi32(values, front);
                _mm256_storeu_si256(out.add(n).cast(), front);
            }
            n += mask.count_ones() as usize;
        }
        // SAFETY: as above.
        n + unsafe { compact_rest(rest, word.unbounded_shr(groups.len() as u32 * 4), out.add(n)) }
    }
}

/// Hands the values whose bit is set to `emit`, up to 64 at a time.
pub(crate) fn filter_level(
    level: SimdLevel,
    values: &[u64],
    mask: &[u64],
    mut emit: impl FnMut(&[u64]),
) {
    assert!(mask.len() >= values.len().div_ceil(64), "BUG: mask shorter than the values");
    let mut picked: Picked = [0; 64 + OVERSHOOT];
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
pub(crate) fn append_level<T: Copy>(
    level: SimdLevel,
    values: &[u64],
    mask: &[u64],
    from_bits: impl Fn(u64) -> T,
    out: &mut Vec<T>,
) {
    assert!(mask.len() >= values.len().div_ceil(64), "BUG: mask shorter than the values");
    match level {
        SimdLevel::Portable => filter_level(level, values, mask, |picked| {
            out.extend(picked.iter().map(|bits| from_bits(*bits)));
        }),
        #[cfg(target_arch = "x86_64")]
        _ => x86::append(level, values, mask, out),
    }
}

macro_rules! filters {
    ($type:ty, $name:ident, $to_bits:path, $from_bits:expr) => {
        /// Appends the values whose bit is set. Makes room for them, and for a few values more.
        ///
        /// # Panics
        /// If there are fewer bits than values.
        pub fn $name(values: &[$type], mask: &[u64], out: &mut Vec<$type>) {
            append_level(SimdLevel::detect(), $to_bits(values), mask, $from_bits, out);
        }
    };
}

filters!(u64, filter_u64, std::convert::identity, |bits| bits);
filters!(i64, filter_i64, as_u64, u64::cast_signed);
filters!(f64, filter_f64, as_bits, f64::from_bits);

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
