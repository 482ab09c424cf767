//! Fixed-width bit packing: value `i` occupies bits `i * width ..` of a little-endian bit stream.
//!
//! Eight values fill exactly `width` bytes, so any group of eight starts on a byte boundary. That
//! one property gives everything: pages of any length without padding, decoding from any row, and
//! SIMD that needs only a byte shuffle, a variable shift and a mask per register.
//!
//! The portable functions here are the specification; `x86` and `neon` must equal them.

mod compare;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;

pub(crate) use compare::{
    Bits as CompareBits, COMPARED_MAX, PackedRows, compare_at, compare_rows_at,
};

use crate::{
    error::{DecodeError, Result},
    prefix::prefix_sum_at,
    simd::{SimdLevel, multiversion},
};

/// Values that are packed or unpacked between two looks at anything else; a multiple of eight.
pub(crate) const BLOCK: usize = 1024;

/// Bytes that `count` values of `width` bits take.
#[inline]
pub(crate) fn packed_len(count: usize, width: u32) -> usize {
    // A page has at most 2^24 values of 64 bits: no overflow even on 32-bit targets.
    (count * width as usize).div_ceil(8)
}

/// The `width` low bits.
#[inline]
pub(crate) fn low_mask(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

/// Bits needed to write `value`.
#[inline]
pub(crate) fn bits_of(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// Appends the packed form of `values`, each less than 2^`width`.
///
/// Several calls in a row form one stream as long as all but the last have a multiple of eight
/// values.
pub(crate) fn pack(values: &[u64], width: u32, out: &mut Vec<u8>) {
    pack_at(SimdLevel::detect(), values, width, out);
}

pub(crate) fn pack_at(level: SimdLevel, values: &[u64], width: u32, out: &mut Vec<u8>) {
    debug_assert!(values.iter().all(|&v| v <= low_mask(width)), "BUG: value wider than {width}");
    match width {
        0 => return,
        64 => {
            out.reserve(values.len() * 8);
            for value in values {
                out.extend_from_slice(&value.to_le_bytes());
            }
            return;
        }
        _ => {}
    }
    let start = out.len();
    let len = packed_len(values.len(), width);
    // Eight spare bytes let every group be written with whole-word stores.
    out.resize(start + len + 16, 0);
    let target = &mut out[start..];
    let groups = values.len() / 8;
    let (whole, rest) = values.split_at(groups * 8);
    match level {
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 | SimdLevel::Avx512 if width <= 8 => {
            x86::pack_narrow(level, whole, width, target);
        }
        _ => pack_groups_at(level, whole, width, target),
    }
    let mut last = [0u64; 8];
    last[..rest.len()].copy_from_slice(rest);
    if !rest.is_empty() {
        let mut bytes = [0u8; 64 + 16];
        pack_groups_at(SimdLevel::Portable, &last, width, &mut bytes);
        let tail = packed_len(rest.len(), width);
        target[groups * width as usize..][..tail].copy_from_slice(&bytes[..tail]);
    }
    out.truncate(start + len);
}

// Packs groups of eight; `target` has at least eight bytes more than they need.
multiversion! {
    fn / pack_groups_at(values: &[u64], width: u32, target: &mut [u8]) {
        let (groups, _) = values.as_chunks::<8>();
        let mut position = 0;
        for group in groups {
            let mut word = 0u64;
            let mut filled = 0u32;
            let mut at = position;
            for &value in group {
                word |= value << filled;
                filled += width;
                if filled >= 64 {
                    target[at..at + 8].copy_from_slice(&word.to_le_bytes());
                    at += 8;
                    filled -= 64;
                    // When the value ended exactly at the word's end nothing of it is left.
                    word = if filled == 0 { 0 } else { value >> (width - filled) };
                }
            }
            target[at..at + 8].copy_from_slice(&word.to_le_bytes());
            position += width as usize;
        }
    }
}

/// Checks that `bytes` is exactly the stream of `count` values of `width` bits.
pub(crate) fn check_packed(bytes: &[u8], count: usize, width: u32) -> Result<()> {
    if width > 64 {
        return Err(DecodeError::Corrupt("bit width above 64"));
    }
    let needed = packed_len(count, width);
    if bytes.len() < needed {
        return Err(DecodeError::Truncated { needed: (needed - bytes.len()) as u64 });
    }
    Ok(())
}

/// Unpacks values `first .. first + out.len()`.
///
/// # Panics
/// If the stream is shorter than that; callers check with `check_packed` first.
pub(crate) fn unpack(bytes: &[u8], first: usize, width: u32, out: &mut [u64]) {
    unpack_at(SimdLevel::detect(), bytes, first, width, out);
}

pub(crate) fn unpack_at(level: SimdLevel, bytes: &[u8], first: usize, width: u32, out: &mut [u64]) {
    assert!(width <= 64, "BUG: bit width above 64");
    assert!(bytes.len() >= packed_len(first + out.len(), width), "BUG: packed stream too short");
    if width == 0 {
        out.fill(0);
        return;
    }
    let head = out.len().min(first.wrapping_neg() % 8);
    let (unaligned, out) = out.split_at_mut(head);
    for (i, slot) in unaligned.iter_mut().enumerate() {
        *slot = value_at(bytes, first + i, width);
    }
    let bytes = &bytes[((first + head) / 8 * width as usize).min(bytes.len())..];
    let done = match level {
        SimdLevel::Portable => 0,
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 if width <= x86::NARROW_WIDTH_MAX => x86::avx2::unpack(bytes, width, out),
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 => x86::unpack_avx2(bytes, width, out),
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 => x86::unpack_avx512(bytes, width, out),
    };
    #[cfg(target_arch = "aarch64")]
    let done = if done == 0 { neon::unpack(bytes, width, out) } else { done };
    unpack_portable(bytes, done, width, &mut out[done..]);
}

/// Unpacks values `first ..` and adds them up: `out[i] = start + sum(values[..=i] + step)`, wrapping.
/// Returns the last sum. `first` is a multiple of eight.
///
/// # Panics
/// As `unpack`.
pub(crate) fn unpack_running(
    bytes: &[u8],
    first: usize,
    width: u32,
    out: &mut [u64],
    start: u64,
    step: u64,
) -> u64 {
    unpack_running_at(SimdLevel::detect(), bytes, first, width, out, start, step)
}

pub(crate) fn unpack_running_at(
    level: SimdLevel,
    bytes: &[u8],
    first: usize,
    width: u32,
    out: &mut [u64],
    start: u64,
    step: u64,
) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if level != SimdLevel::Portable
        && first.is_multiple_of(8)
        && (1..=x86::NARROW_WIDTH_MAX).contains(&width)
    {
        let bytes = &bytes[(first / 8 * width as usize).min(bytes.len())..];
        return match level {
            SimdLevel::Avx512 => x86::unpack_running_avx512(bytes, width, out, start, step),
            _ => x86::avx2::unpack_running(bytes, width, out, start, step),
        };
    }
    unpack_at(level, bytes, first, width, out);
    prefix_sum_at(level, out, start, step)
}

/// The sum of the first `n` values of a packed stream, modulo 2^64.
pub(crate) fn sum(bytes: &[u8], n: usize, width: u32) -> u64 {
    sum_at(SimdLevel::detect(), bytes, n, width)
}

pub(crate) fn sum_at(level: SimdLevel, bytes: &[u8], n: usize, width: u32) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if level == SimdLevel::Avx512 && (1..=x86::WIDTH_MAX).contains(&width) {
        let is_narrow = n <= x86::SUM_COUNT_MAX && width <= x86::SUM_WIDTH_MAX;
        let sum = if is_narrow { x86::sum_avx512 } else { x86::sum_wide_avx512 };
        return sum(bytes, n, width);
    }
    #[cfg(target_arch = "x86_64")]
    if level == SimdLevel::Avx2 && width <= x86::NARROW_WIDTH_MAX {
        return x86::avx2::sum(bytes, n, width);
    }
    let mut block = [0u64; 64];
    (0..n).step_by(block.len()).fold(0, |sum, first| {
        let block = &mut block[..64.min(n - first)];
        unpack_at(level, bytes, first, width, block);
        block.iter().fold(sum, |sum, value| sum.wrapping_add(*value))
    })
}

fn unpack_portable(bytes: &[u8], first: usize, width: u32, out: &mut [u64]) {
    let mask = low_mask(width);
    let mut bit = first * width as usize;
    let mut done = 0;
    if width <= 57 {
        for slot in out.iter_mut() {
            let Some(word) = bytes[bit / 8..].first_chunk::<8>() else { break };
            *slot = u64::from_le_bytes(*word) >> (bit % 8) & mask;
            bit += width as usize;
            done += 1;
        }
    }
    for (i, slot) in out.iter_mut().enumerate().skip(done) {
        *slot = value_at(bytes, first + i, width);
    }
}

/// One value.
#[inline]
pub(crate) fn value_at(bytes: &[u8], index: usize, width: u32) -> u64 {
    let bit = index * width as usize;
    let from = &bytes[bit / 8..];
    if let Some(window) = from.first_chunk::<16>() {
        return (u128::from_le_bytes(*window) >> (bit % 8)) as u64 & low_mask(width);
    }
    let mut window = [0u8; 16];
    let len = from.len().min(9);
    window[..len].copy_from_slice(&from[..len]);
    (u128::from_le_bytes(window) >> (bit % 8)) as u64 & low_mask(width)
}
