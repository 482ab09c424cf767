//! NEON bit unpacking: two values a register, by table lookup, variable shift and mask.

#![allow(unsafe_code)]

use std::arch::aarch64::{
    int64x2_t, uint8x16_t, vandq_u64, vdupq_n_u64, vld1q_s64, vld1q_u8, vqtbl1q_u8,
    vreinterpretq_u64_u8, vshlq_u64, vst1q_u64,
};

/// Unpacks whole groups of eight from the start of `bytes`; returns how many values were written.
///
/// Values wider than 57 bits do not fit an eight-byte window at every bit offset: none is written.
pub(super) fn unpack(bytes: &[u8], width: u32, out: &mut [u64]) -> usize {
    if width == 0 || width > 57 {
        return 0;
    }
    let width_bits = width as usize;
    let pair_start: [usize; 4] = std::array::from_fn(|pair| pair * 2 * width_bits / 8);
    let n_groups = match bytes.len().checked_sub(pair_start[3] + 16) {
        Some(last_start) => (last_start / width_bits + 1).min(out.len() / 8),
        None => 0,
    };
    let mut shuffles = [[0u8; 16]; 4];
    // NEON shifts right by shifting left by a negative amount.
    let mut shifts = [[0i64; 2]; 4];
    for lane in 0..8 {
        let bit = lane * width_bits - pair_start[lane / 2] * 8;
        shifts[lane / 2][lane % 2] = -((bit % 8) as i64);
        for byte in 0..8 {
            shuffles[lane / 2][lane % 2 * 8 + byte] = (bit / 8 + byte) as u8;
        }
    }
    let (groups, _) = out.as_chunks_mut::<8>();
    // SAFETY: NEON is part of the AArch64 baseline; every load ends within `bytes` because the
    // group index is below `n_groups`; each pair of a group is one register.
    unsafe {
        let mask = vdupq_n_u64(super::low_mask(width));
        let tables: [uint8x16_t; 4] = std::array::from_fn(|p| vld1q_u8(shuffles[p].as_ptr()));
        let amounts: [int64x2_t; 4] = std::array::from_fn(|p| vld1q_s64(shifts[p].as_ptr()));
        for (index, group) in groups.iter_mut().take(n_groups).enumerate() {
            let source = bytes.as_ptr().add(index * width_bits);
            for pair in 0..4 {
                let window = vqtbl1q_u8(vld1q_u8(source.add(pair_start[pair])), tables[pair]);
                let shifted = vshlq_u64(vreinterpretq_u64_u8(window), amounts[pair]);
                vst1q_u64(group.as_mut_ptr().add(pair * 2), vandq_u64(shifted, mask));
            }
        }
    }
    n_groups * 8
}
