//! AVX2 and AVX-512 bit unpacking, and packing of narrow values with BMI2.
//!
//! A group of eight values fills `width` bytes. A byte shuffle moves the eight bytes around each
//! value into its lane, a variable shift drops the bits below, a mask the bits above. A value of at
//! most 57 bits lies within eight bytes whatever its bit offset; wider ones are left to the caller.

#![allow(unsafe_code)]

pub(super) mod avx2;
pub(super) mod compare;

use std::arch::x86_64::{
    __m128i, __m256i, __m512i, _mm_loadu_si128, _mm256_and_si256, _mm256_castsi128_si256,
    _mm256_inserti128_si256, _mm256_loadu_si256, _mm256_set1_epi64x, _mm256_shuffle_epi8,
    _mm256_srlv_epi64, _mm256_storeu_si256, _mm512_add_epi32, _mm512_add_epi64,
    _mm512_alignr_epi32, _mm512_and_si512, _mm512_castsi512_si256, _mm512_cvtepu32_epi64,
    _mm512_extracti64x4_epi64, _mm512_loadu_si512, _mm512_mask_add_epi32, _mm512_mask_add_epi64,
    _mm512_mask_storeu_epi64, _mm512_maskz_loadu_epi8, _mm512_permutexvar_epi8,
    _mm512_permutexvar_epi64, _mm512_reduce_add_epi64, _mm512_set1_epi32, _mm512_set1_epi64,
    _mm512_setzero_si512, _mm512_srlv_epi32, _mm512_srlv_epi64, _mm512_storeu_si512, _pext_u64,
};

use crate::simd::SimdLevel;

/// The widest value that an eight-byte window holds at any bit offset.
pub(super) const WIDTH_MAX: u32 = 57;

/// Where the bytes of each of eight 64-bit lanes are in a load, and how far to shift them.
#[repr(align(64))]
struct Layout {
    shuffle: [u8; 64],
    shift: [u64; 8],
}

impl Layout {
    /// `lanes_per_load` values share one load that starts at the byte of the first of them.
    const fn new(width: usize, lanes_per_load: usize) -> Self {
        let mut layout = Self { shuffle: [0; 64], shift: [0; 8] };
        let mut lane = 0;
        while lane < 8 {
            let origin_bits = lane / lanes_per_load * lanes_per_load * width / 8 * 8;
            let bit = lane * width - origin_bits;
            layout.shift[lane] = (bit % 8) as u64;
            let mut byte = 0;
            while byte < 8 {
                layout.shuffle[lane * 8 + byte] = (bit / 8 + byte) as u8;
                byte += 1;
            }
            lane += 1;
        }
        layout
    }

    const fn all(lanes_per_load: usize) -> [Self; WIDTH_MAX as usize + 1] {
        let mut all = [const { Self { shuffle: [0; 64], shift: [0; 8] } }; WIDTH_MAX as usize + 1];
        let mut width = 0;
        while width < all.len() {
            all[width] = Self::new(width, lanes_per_load);
            width += 1;
        }
        all
    }
}

/// By width, for loads of 64 bytes. Building a layout takes as long as unpacking a hundred values.
static WHOLE_GROUP: [Layout; WIDTH_MAX as usize + 1] = Layout::all(8);
/// By width, for loads of 16 bytes.
static PAIRS: [Layout; WIDTH_MAX as usize + 1] = Layout::all(2);

/// The same for lanes of 32 bits.
#[repr(align(64))]
struct NarrowLayout<const LANES: usize, const BYTES: usize> {
    shuffle: [u8; BYTES],
    shift: [u32; LANES],
}

impl<const LANES: usize, const BYTES: usize> NarrowLayout<LANES, BYTES> {
    /// By width; so many values share one load, which starts at the byte of the first of them.
    const fn all(lanes_per_load: usize) -> [Self; NARROW_WIDTH_MAX as usize + 1] {
        let mut all = [const { Self { shuffle: [0; BYTES], shift: [0; LANES] } };
            NARROW_WIDTH_MAX as usize + 1];
        let mut width = 0;
        while width < all.len() {
            let mut lane = 0;
            while lane < LANES {
                let origin_bits = lane / lanes_per_load * lanes_per_load * width / 8 * 8;
                let bit = lane * width - origin_bits;
                all[width].shift[lane] = (bit % 8) as u32;
                let mut byte = 0;
                while byte < 4 {
                    all[width].shuffle[lane * 4 + byte] = (bit / 8 + byte) as u8;
                    byte += 1;
                }
                lane += 1;
            }
            width += 1;
        }
        all
    }
}

/// The widest value that four bytes hold at any bit offset; sixteen of them add up within 32 bits and lie within one load.
pub(super) const NARROW_WIDTH_MAX: u32 = 25;

type RunningLayout = NarrowLayout<16, 64>;
static RUNNING: [RunningLayout; NARROW_WIDTH_MAX as usize + 1] = NarrowLayout::all(16);

/// What rows that are compared are put together from, in the type of a function.
const NOTHING: u8 = 0;
const VALUES: u8 = 1;
const DIFFERENCES: u8 = 2;

/// Calls `$compare!(left, right)` with what both sides are put together from.
macro_rules! by_kinds {
    ($left:expr, $right:expr, $compare:ident) => {
        match ($left.step, $right.map(|right| right.step)) {
            (None, None) => $compare!(VALUES, NOTHING),
            (Some(_), None) => $compare!(DIFFERENCES, NOTHING),
            (None, Some(None)) => $compare!(VALUES, VALUES),
            (None, Some(Some(_))) => $compare!(VALUES, DIFFERENCES),
            (Some(_), Some(None)) => $compare!(DIFFERENCES, VALUES),
            (Some(_), Some(Some(_))) => $compare!(DIFFERENCES, DIFFERENCES),
        }
    };
}
use by_kinds;

/// Unpacks values from the start of `bytes`; returns how many were written, all or none.
pub(super) fn unpack_avx512(bytes: &[u8], width: u32, out: &mut [u64]) -> usize {
    if width > WIDTH_MAX {
        return 0;
    }
    // SAFETY: the caller dispatches here only when AVX-512 with VBMI was detected.
    unsafe { unpack_groups_avx512(bytes, width, out) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn unpack_groups_avx512(bytes: &[u8], width: u32, out: &mut [u64]) -> usize {
    let layout = &WHOLE_GROUP[width as usize];
    assert!(bytes.len() >= super::packed_len(out.len(), width), "BUG: packed stream too short");
    // SAFETY: both arrays are 64 bytes long.
    let (shuffle, shift) = unsafe {
        (
            _mm512_loadu_si512(layout.shuffle.as_ptr().cast()),
            _mm512_loadu_si512(layout.shift.as_ptr().cast()),
        )
    };
    let mask = _mm512_set1_epi64(super::low_mask(width) as i64);
    let n_whole_loads = match bytes.len().checked_sub(64) {
        Some(last_start) => (last_start / width as usize + 1).min(out.len() / 8),
        None => 0,
    };
    let written = out.len();
    let (whole, rest) = out.split_at_mut(n_whole_loads * 8);
    let (groups, _) = whole.as_chunks_mut::<8>();
    let mut source = bytes.as_ptr();
    for group in groups {
        // SAFETY: 64 bytes are readable at `source` (n_whole_loads), 64 writable in `group`.
        unsafe {
            let window = _mm512_permutexvar_epi8(shuffle, _mm512_loadu_si512(source.cast()));
            let values = _mm512_and_si512(_mm512_srlv_epi64(window, shift), mask);
            _mm512_storeu_si512(group.as_mut_ptr().cast(), values);
            source = source.add(width as usize);
        }
    }
    for (i, group) in rest.chunks_mut(8).enumerate() {
        let tail = &bytes[(n_whole_loads + i) * width as usize..];
        let readable = super::low_mask(tail.len().min(64) as u32);
        let lanes = super::low_mask(group.len() as u32) as u8;
        // SAFETY: the masked load and store touch only the bytes of `tail` and the values of `group`.
        unsafe {
            let loaded = _mm512_maskz_loadu_epi8(readable, tail.as_ptr().cast());
            let window = _mm512_permutexvar_epi8(shuffle, loaded);
            let values = _mm512_and_si512(_mm512_srlv_epi64(window, shift), mask);
            _mm512_mask_storeu_epi64(group.as_mut_ptr().cast(), lanes, values);
        }
    }
    written
}

/// Unpacks whole groups of eight from the start of `bytes`; returns how many values were written.
pub(super) fn unpack_avx2(bytes: &[u8], width: u32, out: &mut [u64]) -> usize {
    if width > WIDTH_MAX {
        return 0;
    }
    // SAFETY: the caller dispatches here only when AVX2 was detected.
    unsafe { unpack_groups_avx2(bytes, width, out) }
}

#[target_feature(enable = "avx2")]
fn unpack_groups_avx2(bytes: &[u8], width: u32, out: &mut [u64]) -> usize {
    let layout = &PAIRS[width as usize];
    let pair_start: [usize; 4] = std::array::from_fn(|pair| pair * 2 * width as usize / 8);
    // The last load of a group starts at `pair_start[3]` and reads 16 bytes.
    let group_reach = pair_start[3] + 16;
    let n_groups = match bytes.len().checked_sub(group_reach) {
        Some(last_start) => (last_start / width as usize + 1).min(out.len() / 8),
        None => 0,
    };
    let mask = _mm256_set1_epi64x(super::low_mask(width) as i64);
    // SAFETY: the arrays are 64 bytes long, two registers each.
    let (shuffles, shifts): ([__m256i; 2], [__m256i; 2]) = unsafe {
        let shuffle: *const __m256i = layout.shuffle.as_ptr().cast();
        let shift: *const __m256i = layout.shift.as_ptr().cast();
        (
            [_mm256_loadu_si256(shuffle), _mm256_loadu_si256(shuffle.add(1))],
            [_mm256_loadu_si256(shift), _mm256_loadu_si256(shift.add(1))],
        )
    };
    let (groups, _) = out.as_chunks_mut::<8>();
    for (index, group) in groups.iter_mut().take(n_groups).enumerate() {
        for half in 0..2 {
            // SAFETY: `index < n_groups`, so every load ends within `bytes`; each half of `group`
            // is one register.
            unsafe {
                let source = bytes.as_ptr().add(index * width as usize);
                let load = |pair: usize| -> __m128i {
                    _mm_loadu_si128(source.add(pair_start[pair]).cast())
                };
                let both = _mm256_inserti128_si256::<1>(
                    _mm256_castsi128_si256(load(half * 2)),
                    load(half * 2 + 1),
                );
                let window = _mm256_shuffle_epi8(both, shuffles[half]);
                let values = _mm256_and_si256(_mm256_srlv_epi64(window, shifts[half]), mask);
                _mm256_storeu_si256(group.as_mut_ptr().cast::<__m256i>().add(half), values);
            }
        }
    }
    n_groups * 8
}

/// Unpacks values from the start of `bytes` and adds them up, as `prefix_sum` would; returns the last sum.
///
/// Sums within a group of sixteen are taken in 32-bit lanes, half the work of 64-bit ones. `width` is in
/// `1..=NARROW_WIDTH_MAX`.
pub(super) fn unpack_running_avx512(
    bytes: &[u8],
    width: u32,
    out: &mut [u64],
    start: u64,
    step: u64,
) -> u64 {
    assert!((1..=NARROW_WIDTH_MAX).contains(&width), "BUG: width {width}");
    assert!(bytes.len() >= super::packed_len(out.len(), width), "BUG: packed stream too short");
    // SAFETY: the caller dispatches here only when AVX-512 with VBMI was detected.
    unsafe { unpack_running_groups(bytes, width, out, start, step) };
    out.last().copied().unwrap_or(start)
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi")]
fn unpack_running_groups(bytes: &[u8], width: u32, out: &mut [u64], start: u64, step: u64) {
    let stride = 2 * width as usize;
    let whole_loads = match bytes.len().checked_sub(64) {
        Some(last_start) => (last_start / stride + 1).min(out.len() / 16),
        None => 0,
    };
    let RunningLayout { shuffle, shift } = &RUNNING[width as usize];
    let ramp: [u64; 16] = std::array::from_fn(|lane| step.wrapping_mul(lane as u64 + 1));
    // SAFETY: all these arrays are whole registers.
    let (shuffle, shift, mut low_start, mut high_start) = unsafe {
        (
            _mm512_loadu_si512(shuffle.as_ptr().cast()),
            _mm512_loadu_si512(shift.as_ptr().cast()),
            _mm512_loadu_si512(ramp.as_ptr().cast()),
            _mm512_loadu_si512(ramp.as_ptr().add(8).cast()),
        )
    };
    let start_all = _mm512_set1_epi64(start as i64);
    low_start = _mm512_add_epi64(low_start, start_all);
    high_start = _mm512_add_epi64(high_start, start_all);
    let zero = _mm512_setzero_si512();
    let mask = _mm512_set1_epi32(super::low_mask(width) as i32);
    let last = _mm512_set1_epi64(7);
    let steps = _mm512_set1_epi64(step.wrapping_mul(16) as i64);
    // The sums of the group in `loaded`; moves the starts to the next one.
    let mut sums_of = |loaded| {
        let window = _mm512_permutexvar_epi8(shuffle, loaded);
        let x = _mm512_and_si512(_mm512_srlv_epi32(window, shift), mask);
        let x = _mm512_add_epi32(x, _mm512_alignr_epi32::<15>(x, zero));
        let x = _mm512_add_epi32(x, _mm512_alignr_epi32::<14>(x, zero));
        let x = _mm512_add_epi32(x, _mm512_alignr_epi32::<12>(x, zero));
        let x = _mm512_add_epi32(x, _mm512_alignr_epi32::<8>(x, zero));
        let low = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(x));
        let high = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64::<1>(x));
        let sums = (_mm512_add_epi64(low, low_start), _mm512_add_epi64(high, high_start));
        let total = _mm512_add_epi64(_mm512_permutexvar_epi64(last, high), steps);
        low_start = _mm512_add_epi64(low_start, total);
        high_start = _mm512_add_epi64(high_start, total);
        sums
    };
    let (whole, rest) = out.split_at_mut(whole_loads * 16);
    let (groups, _) = whole.as_chunks_mut::<16>();
    let mut source = bytes.as_ptr();
    for group in groups {
        // SAFETY: 64 bytes are readable at `source` (`whole_loads`); a group is two registers.
        unsafe {
            let (low, high) = sums_of(_mm512_loadu_si512(source.cast()));
            let target = group.as_mut_ptr();
            _mm512_storeu_si512(target.cast(), low);
            _mm512_storeu_si512(target.add(8).cast(), high);
            source = source.wrapping_add(stride);
        }
    }
    // The last bytes are no whole load, and the last values no whole group.
    for (index, group) in rest.chunks_mut(16).enumerate() {
        let tail = &bytes[(whole_loads + index) * stride..];
        let readable = super::low_mask(tail.len().min(64) as u32);
        let lanes = super::low_mask(group.len() as u32);
        // SAFETY: masked loads and stores touch only the bytes of `tail` and the values of `group`.
        unsafe {
            let loaded = _mm512_maskz_loadu_epi8(readable, tail.as_ptr().cast());
            let (low, high) = sums_of(loaded);
            let target = group.as_mut_ptr();
            _mm512_mask_storeu_epi64(target.cast(), lanes as u8, low);
            _mm512_mask_storeu_epi64(target.wrapping_add(8).cast(), (lanes >> 8) as u8, high);
        }
    }
}

/// So many values of such a width add up within 32 bits in each of sixteen lanes.
pub(super) const SUM_COUNT_MAX: usize = 4096;
pub(super) const SUM_WIDTH_MAX: u32 = 24;

/// Adds up the first `n` values of `bytes`, at most [`SUM_COUNT_MAX`]; `width` is in `1..=SUM_WIDTH_MAX`.
pub(super) fn sum_avx512(bytes: &[u8], n: usize, width: u32) -> u64 {
    assert!(n <= SUM_COUNT_MAX && (1..=SUM_WIDTH_MAX).contains(&width), "BUG: {n} of {width} bits");
    // SAFETY: the caller dispatches here only when AVX-512 with VBMI was detected.
    unsafe { sum_groups(bytes, n, width) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi")]
fn sum_groups(bytes: &[u8], n: usize, width: u32) -> u64 {
    let stride = 2 * width as usize;
    let RunningLayout { shuffle, shift } = &RUNNING[width as usize];
    // SAFETY: both arrays are whole registers.
    let (shuffle, shift) = unsafe {
        (_mm512_loadu_si512(shuffle.as_ptr().cast()), _mm512_loadu_si512(shift.as_ptr().cast()))
    };
    let mask = _mm512_set1_epi32(super::low_mask(width) as i32);
    let mut sums = _mm512_setzero_si512();
    for group in 0..n.div_ceil(16) {
        let loaded = load_first(&bytes[group * stride..]);
        let window = _mm512_permutexvar_epi8(shuffle, loaded);
        let x = _mm512_and_si512(_mm512_srlv_epi32(window, shift), mask);
        let lanes = match n - group * 16 {
            16.. => u16::MAX,
            left => (1 << left) - 1,
        };
        sums = _mm512_mask_add_epi32(sums, lanes, sums, x);
    }
    let low = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(sums));
    let high = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64::<1>(sums));
    _mm512_reduce_add_epi64(_mm512_add_epi64(low, high)) as u64
}

/// The first 64 of some bytes; zeros behind them if they are fewer.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn load_first(bytes: &[u8]) -> __m512i {
    // SAFETY: 64 bytes are readable, or those that the mask names, which are fewer.
    unsafe {
        match bytes.len() {
            64.. => _mm512_loadu_si512(bytes.as_ptr().cast()),
            len => _mm512_maskz_loadu_epi8((1 << len) - 1, bytes.as_ptr().cast()),
        }
    }
}

/// Adds up the first `n` values of `bytes`, modulo 2^64; `width` is in `1..=WIDTH_MAX`.
pub(super) fn sum_wide_avx512(bytes: &[u8], n: usize, width: u32) -> u64 {
    assert!((1..=WIDTH_MAX).contains(&width), "BUG: a sum of {width} bits");
    // SAFETY: the caller dispatches here only when AVX-512 with VBMI was detected.
    unsafe { sum_wide_groups(bytes, n, width) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi")]
fn sum_wide_groups(bytes: &[u8], n: usize, width: u32) -> u64 {
    let layout = &WHOLE_GROUP[width as usize];
    // SAFETY: both arrays are 64 bytes long.
    let (shuffle, shift) = unsafe {
        (
            _mm512_loadu_si512(layout.shuffle.as_ptr().cast()),
            _mm512_loadu_si512(layout.shift.as_ptr().cast()),
        )
    };
    let mask = _mm512_set1_epi64(super::low_mask(width) as i64);
    let mut sums = _mm512_setzero_si512();
    for group in 0..n.div_ceil(8) {
        let loaded = load_first(&bytes[group * width as usize..]);
        let window = _mm512_permutexvar_epi8(shuffle, loaded);
        let values = _mm512_and_si512(_mm512_srlv_epi64(window, shift), mask);
        let lanes = match n - group * 8 {
            8.. => u8::MAX,
            left => (1 << left) - 1,
        };
        sums = _mm512_mask_add_epi64(sums, lanes, sums, values);
    }
    _mm512_reduce_add_epi64(sums) as u64
}

/// Packs groups of eight values of at most eight bits: narrow to bytes, then squeeze with PEXT.
///
/// `target` has at least eight bytes more than the groups need.
pub(super) fn pack_narrow(level: SimdLevel, values: &[u64], width: u32, target: &mut [u8]) {
    debug_assert!(level != SimdLevel::Portable && (1..=8).contains(&width));
    // SAFETY: both levels above Portable include BMI2.
    unsafe { pack_narrow_bmi2(values, width, target) };
}

#[target_feature(enable = "avx2,bmi2")]
fn pack_narrow_bmi2(values: &[u64], width: u32, target: &mut [u8]) {
    let (groups, _) = values.as_chunks::<8>();
    let select = super::low_mask(width) * 0x0101_0101_0101_0101;
    let mut position = 0;
    for group in groups {
        let bytes = group.map(|value| value as u8);
        let word = _pext_u64(u64::from_le_bytes(bytes), select);
        target[position..position + 8].copy_from_slice(&word.to_le_bytes());
        position += width as usize;
    }
}
