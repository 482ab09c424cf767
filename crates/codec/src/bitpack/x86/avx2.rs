//! Narrow values with AVX2: eight at a time, in 32-bit lanes, which take half the registers of 64-bit ones.
//!
//! Eight values are in two loads of 16 bytes: from the byte the first begins in, and from that of the fifth. They are
//! written, added up, or compared where they are.

use std::arch::x86_64::*;

use super::super::compare::{Bits, COMPARED_MAX, PackedRows};
use super::super::{low_mask, packed_len};
use super::{DIFFERENCES, NARROW_WIDTH_MAX, NOTHING, NarrowLayout, VALUES, by_kinds};
use crate::kernels::Comparison;

const LANES: usize = 8;

/// Where the first four of eight values are in one load, the others in another.
type Layout = NarrowLayout<LANES, 32>;
static LAYOUTS: [Layout; NARROW_WIDTH_MAX as usize + 1] = NarrowLayout::all(4);

/// Takes eight values at a time out of a packed stream.
struct Unpacker {
    shuffle: __m256i,
    shift: __m256i,
    mask: __m256i,
    width: usize,
}

impl Unpacker {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(width: u32) -> Self {
        let NarrowLayout { shuffle, shift } = &LAYOUTS[width as usize];
        // SAFETY: both arrays are whole registers.
        let (shuffle, shift) = unsafe {
            (_mm256_loadu_si256(shuffle.as_ptr().cast()), _mm256_loadu_si256(shift.as_ptr().cast()))
        };
        let mask = _mm256_set1_epi32(low_mask(width) as i32);
        Self { shuffle, shift, mask, width: width as usize }
    }

    /// How many bytes are read for eight values.
    #[inline]
    fn reach(&self) -> usize {
        self.width / 2 + 16
    }

    /// The first eight values of a stream, as far as it has so many.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn first(&self, bytes: &[u8]) -> __m256i {
        if bytes.len() >= self.reach() {
            // SAFETY: so many bytes are readable.
            return unsafe { self.whole(bytes.as_ptr()) };
        }
        let mut last = [0; NARROW_WIDTH_MAX as usize / 2 + 16];
        last[..bytes.len()].copy_from_slice(bytes);
        // SAFETY: no width reaches farther.
        unsafe { self.whole(last.as_ptr()) }
    }

    /// # Safety
    /// So many bytes are readable as [`Self::reach`] says.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn whole(&self, source: *const u8) -> __m256i {
        // SAFETY: the second load ends where the reach does.
        let (low, high) = unsafe {
            (_mm_loadu_si128(source.cast()), _mm_loadu_si128(source.add(self.width / 2).cast()))
        };
        let both = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high);
        let window = _mm256_shuffle_epi8(both, self.shuffle);
        _mm256_and_si256(_mm256_srlv_epi32(window, self.shift), self.mask)
    }
}

/// Lanes of 32 bits as unsigned ones of 64, the first four and the others.
#[inline]
#[target_feature(enable = "avx2")]
fn widened(x: __m256i) -> (__m256i, __m256i) {
    let low = _mm256_cvtepu32_epi64(_mm256_castsi256_si128(x));
    (low, _mm256_cvtepu32_epi64(_mm256_extracti128_si256::<1>(x)))
}

/// Each lane becomes the sum of all up to it.
#[inline]
#[target_feature(enable = "avx2")]
fn added_up(x: __m256i) -> __m256i {
    let x = _mm256_add_epi32(x, _mm256_slli_si256::<4>(x));
    let x = _mm256_add_epi32(x, _mm256_slli_si256::<8>(x));
    // Zeros, and the sum of the lower half.
    let low_sum = _mm256_shuffle_epi32::<0xff>(_mm256_permute2x128_si256::<0x08>(x, x));
    _mm256_add_epi32(x, low_sum)
}

/// Unpacks values from the start of `bytes`; returns how many, which is all of them.
pub(in crate::bitpack) fn unpack(bytes: &[u8], width: u32, out: &mut [u64]) -> usize {
    assert!(width <= NARROW_WIDTH_MAX, "BUG: width {width}");
    assert!(bytes.len() >= packed_len(out.len(), width), "BUG: packed stream too short");
    // SAFETY: the caller dispatches here only when AVX2 was detected.
    unsafe { unpack_groups(bytes, width, out) };
    out.len()
}

#[target_feature(enable = "avx2")]
fn unpack_groups(bytes: &[u8], width: u32, out: &mut [u64]) {
    let unpacker = Unpacker::new(width);
    write_groups(bytes, &unpacker, out, |x| widened(x));
}

/// Writes what `of_group` makes of each eight values of `bytes`.
#[inline]
#[target_feature(enable = "avx2")]
fn write_groups(
    bytes: &[u8],
    unpacker: &Unpacker,
    out: &mut [u64],
    mut of_group: impl FnMut(__m256i) -> (__m256i, __m256i),
) {
    let whole_loads = match bytes.len().checked_sub(unpacker.reach()) {
        Some(last_start) => (last_start / unpacker.width.max(1) + 1).min(out.len() / LANES),
        None => 0,
    };
    let (whole, rest) = out.split_at_mut(whole_loads * LANES);
    let (groups, _) = whole.as_chunks_mut::<LANES>();
    let mut source = bytes.as_ptr();
    for group in groups {
        // SAFETY: so many loads are within `bytes`; a group is two registers.
        unsafe {
            let (low, high) = of_group(unpacker.whole(source));
            _mm256_storeu_si256(group.as_mut_ptr().cast(), low);
            _mm256_storeu_si256(group.as_mut_ptr().add(4).cast(), high);
            source = source.wrapping_add(unpacker.width);
        }
    }
    for (at, group) in rest.chunks_mut(LANES).enumerate() {
        let (low, high) = of_group(unpacker.first(&bytes[(whole_loads + at) * unpacker.width..]));
        let mut last = [0u64; LANES];
        // SAFETY: two registers.
        unsafe {
            _mm256_storeu_si256(last.as_mut_ptr().cast(), low);
            _mm256_storeu_si256(last.as_mut_ptr().add(4).cast(), high);
        }
        group.copy_from_slice(&last[..group.len()]);
    }
}

/// Unpacks values from the start of `bytes` and adds them up, as `prefix_sum` would; returns the last sum.
pub(in crate::bitpack) fn unpack_running(
    bytes: &[u8],
    width: u32,
    out: &mut [u64],
    start: u64,
    step: u64,
) -> u64 {
    assert!(width <= NARROW_WIDTH_MAX, "BUG: width {width}");
    assert!(bytes.len() >= packed_len(out.len(), width), "BUG: packed stream too short");
    // SAFETY: the caller dispatches here only when AVX2 was detected.
    unsafe { unpack_running_groups(bytes, width, out, start, step) };
    out.last().copied().unwrap_or(start)
}

#[target_feature(enable = "avx2")]
fn unpack_running_groups(bytes: &[u8], width: u32, out: &mut [u64], start: u64, step: u64) {
    let unpacker = Unpacker::new(width);
    let start_of = |lane: u64| start.wrapping_add(step.wrapping_mul(lane + 1)).cast_signed();
    let mut low_start = _mm256_setr_epi64x(start_of(0), start_of(1), start_of(2), start_of(3));
    let mut high_start = _mm256_setr_epi64x(start_of(4), start_of(5), start_of(6), start_of(7));
    let steps = _mm256_set1_epi64x(step.wrapping_mul(LANES as u64).cast_signed());
    let sums_of = |x| {
        let (low, high) = widened(added_up(x));
        let sums = (_mm256_add_epi64(low, low_start), _mm256_add_epi64(high, high_start));
        let total = _mm256_add_epi64(_mm256_permute4x64_epi64::<0xff>(high), steps);
        low_start = _mm256_add_epi64(low_start, total);
        high_start = _mm256_add_epi64(high_start, total);
        sums
    };
    write_groups(bytes, &unpacker, out, sums_of);
}

/// So many groups add up within 32 bits in each lane.
const GROUPS_ADDED_MAX: usize = 128;

/// Adds up the first `n` values of `bytes`; `width` is at most [`NARROW_WIDTH_MAX`].
pub(in crate::bitpack) fn sum(bytes: &[u8], n: usize, width: u32) -> u64 {
    assert!(width <= NARROW_WIDTH_MAX, "BUG: width {width}");
    // SAFETY: the caller dispatches here only when AVX2 was detected.
    unsafe { sum_groups(bytes, n, width) }
}

#[target_feature(enable = "avx2")]
fn sum_groups(bytes: &[u8], n: usize, width: u32) -> u64 {
    let unpacker = Unpacker::new(width);
    let mut sums = _mm256_setzero_si256();
    let numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for first in (0..n).step_by(GROUPS_ADDED_MAX * LANES) {
        let values = first..n.min(first + GROUPS_ADDED_MAX * LANES);
        let (from, groups) = (first / LANES, values.len() / LANES);
        let group = |at: usize| unpacker.first(&bytes[(from + at) * unpacker.width..]);
        let mut of_lanes = _mm256_setzero_si256();
        for at in 0..groups {
            of_lanes = _mm256_add_epi32(of_lanes, group(at));
        }
        let left = values.len() % LANES;
        if left > 0 {
            let are_values = _mm256_cmpgt_epi32(_mm256_set1_epi32(left as i32), numbers);
            of_lanes = _mm256_add_epi32(of_lanes, _mm256_and_si256(group(groups), are_values));
        }
        let (low, high) = widened(of_lanes);
        sums = _mm256_add_epi64(sums, _mm256_add_epi64(low, high));
    }
    let mut lanes = [0u64; 4];
    // SAFETY: a register.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sums) };
    lanes.iter().fold(0, |sum, lane| sum.wrapping_add(*lane))
}

/// How lanes are compared, in the type of a function: what is left of six comparisons once the others are said by what they are not.
const EQUAL: u8 = 0;
const GREATER: u8 = 1;
const LESS: u8 = 2;

/// As `compare::rows` with AVX-512.
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
            match comparison {
                Comparison::Equal | Comparison::NotEqual => {
                    compare_rows::<EQUAL, $left, $right>(rows, left, others, number)
                }
                Comparison::Greater | Comparison::LessOrEqual => {
                    compare_rows::<GREATER, $left, $right>(rows, left, others, number)
                }
                Comparison::Less | Comparison::GreaterOrEqual => {
                    compare_rows::<LESS, $left, $right>(rows, left, others, number)
                }
            }
        };
    }
    // SAFETY: the caller dispatches here only when AVX2 was detected.
    let mut bits = unsafe { by_kinds!(left, right, compare) };
    let is_opposite = matches!(
        comparison,
        Comparison::NotEqual | Comparison::LessOrEqual | Comparison::GreaterOrEqual
    );
    if is_opposite {
        bits.iter_mut().for_each(|word| *word = !*word);
    }
    bits
}

#[target_feature(enable = "avx2")]
fn compare_rows<const OP: u8, const LEFT: u8, const RIGHT: u8>(
    rows: usize,
    left: PackedRows<'_>,
    right: PackedRows<'_>,
    number: i32,
) -> Bits {
    let number = _mm256_set1_epi32(number);
    let (mut left, mut right) = (Lanes::new(left), Lanes::new(right));
    let mut bytes = [0u8; COMPARED_MAX / 8];
    for byte in &mut bytes[..rows.div_ceil(LANES)] {
        let left = left.next::<LEFT>();
        let right = _mm256_add_epi32(right.next::<RIGHT>(), number);
        let holds = match OP {
            EQUAL => _mm256_cmpeq_epi32(left, right),
            GREATER => _mm256_cmpgt_epi32(left, right),
            _ => _mm256_cmpgt_epi32(right, left),
        };
        *byte = _mm256_movemask_ps(_mm256_castsi256_ps(holds)) as u8;
    }
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|at| u64::from_le_bytes(words[at]))
}

/// Rows in 32 bits each, eight at a time.
struct Lanes<'a> {
    /// From the next eight on.
    bytes: &'a [u8],
    unpacker: Unpacker,
    /// What eight steps add up to.
    steps: __m256i,
    /// What the rows of differences begin with, and the steps before each.
    start: __m256i,
}

impl<'a> Lanes<'a> {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(rows: PackedRows<'a>) -> Self {
        let step = rows.step.unwrap_or(0) as i32;
        let numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let start = _mm256_mullo_epi32(numbers, _mm256_set1_epi32(step));
        let steps = _mm256_set1_epi32(step.wrapping_mul(LANES as i32));
        Self { bytes: rows.bytes, unpacker: Unpacker::new(rows.width), steps, start }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn next<const KIND: u8>(&mut self) -> __m256i {
        if KIND == NOTHING {
            return _mm256_setzero_si256();
        }
        let x = self.unpacker.first(self.bytes);
        self.bytes = &self.bytes[self.unpacker.width.min(self.bytes.len())..];
        if KIND == VALUES {
            return x;
        }
        let sums = added_up(x);
        // Each row is what comes before its difference to the next.
        let rows = _mm256_add_epi32(_mm256_sub_epi32(sums, x), self.start);
        let total = _mm256_permutevar8x32_epi32(sums, _mm256_set1_epi32(7));
        self.start = _mm256_add_epi32(self.start, _mm256_add_epi32(total, self.steps));
        rows
    }
}
