//! Comparing packed values with a scalar in the width they have, or what their sums are, without writing either to memory.

#[cfg(target_arch = "x86_64")]
use super::x86;
use super::{packed_len, unpack_at, unpack_running_at};
use crate::kernels::Comparison;
use crate::simd::{SimdLevel, multiversion};

/// The most values that are compared at once.
pub(crate) const COMPARED_MAX: usize = 512;

/// A bit for each of some values, the first in the lowest bit of the first word.
pub(crate) type Bits = [u64; COMPARED_MAX / 64];

/// More than any value that AVX2 takes in 32 bits.
#[cfg(target_arch = "x86_64")]
const NARROW_BEYOND: u64 = 1 << x86::NARROW_WIDTH_MAX;

/// Which of the first `n` values stand to `scalar` as asked; bits behind them are undefined.
///
/// # Panics
/// If these are more than [`COMPARED_MAX`], or the stream is shorter.
pub(crate) fn compare_at(
    level: SimdLevel,
    bytes: &[u8],
    (n, width): (usize, u32),
    comparison: Comparison,
    scalar: u64,
) -> Bits {
    assert!(n <= COMPARED_MAX && bytes.len() >= packed_len(n, width), "BUG: {n} values packed");
    #[cfg(target_arch = "x86_64")]
    if level == SimdLevel::Avx512
        && (1..=8).contains(&width)
        && let Ok(scalar) = u8::try_from(scalar)
    {
        return x86::compare::bytes(bytes, (n, width), comparison, scalar);
    }
    #[cfg(target_arch = "x86_64")]
    if level == SimdLevel::Avx2 && width <= x86::NARROW_WIDTH_MAX {
        let values = PackedRows { bytes, width, step: None };
        let scalar = scalar.min(NARROW_BEYOND) as i32;
        return x86::avx2::rows(n, values, comparison, None, scalar);
    }
    let mut bits = Bits::default();
    let mut values = [0; 64];
    for (first, word) in (0..n).step_by(64).zip(&mut bits) {
        let values = &mut values[..64.min(n - first)];
        unpack_at(level, bytes, first, width, values);
        *word = word_at(level, values, comparison, scalar);
    }
    bits
}

// A bit for each of at most 64 values.
multiversion! {
    fn / word_at(values: &[u64], comparison: Comparison, scalar: u64) -> u64 {
        let holds = |value: &u64| u64::from(comparison.holds(value.cmp(&scalar)));
        values.iter().rev().fold(0, |word, value| word << 1 | holds(value))
    }
}

/// Values are this wide at most, and what is added to each difference is this far from zero at most, for [`compare_rows_at`]:
/// no row is 2^29 or more away from what all are counted from.
const ROW_WIDTH_MAX: u32 = 19;
const STEP_MAX: i64 = 1 << 19;
/// Beyond this all rows, and what they differ by, are on the same side.
const DISTANCE_MAX: i128 = (1 << 30) + 1;

/// Rows as a page has them packed, counted from its base or its first row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedRows<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) width: u32,
    /// What is packed are differences between neighbours, each less this; otherwise the rows.
    pub(crate) step: Option<i64>,
}

impl PackedRows<'_> {
    /// Zeros.
    #[cfg(target_arch = "x86_64")]
    pub(super) const NONE: Self = Self { bytes: &[], width: 0, step: None };

    /// Whether they are for [`compare_rows_at`].
    fn fit(&self) -> bool {
        let is_small = |step: i64| (-STEP_MAX..=STEP_MAX).contains(&step);
        self.width <= ROW_WIDTH_MAX && self.step.is_none_or(is_small)
    }

    fn packed_len(&self, rows: usize) -> usize {
        packed_len(rows - usize::from(self.step.is_some()), self.width)
    }

    /// How far each row is from what all are counted from.
    fn distances(&self, level: SimdLevel, out: &mut [u64]) {
        match self.step.map(i64::cast_unsigned) {
            None => unpack_at(level, self.bytes, 0, self.width, out),
            Some(step) => {
                out[0] = 0;
                unpack_running_at(level, self.bytes, 0, self.width, &mut out[1..], 0, step);
            }
        }
    }
}

/// Which of some rows, 1 to [`COMPARED_MAX`], stand as asked to a number, or to other rows and that number together; bits behind
/// them are undefined. `None`: rows may be too far from one another.
///
/// # Panics
/// As [`compare_at`].
pub(crate) fn compare_rows_at(
    level: SimdLevel,
    rows: usize,
    left: PackedRows<'_>,
    comparison: Comparison,
    right: (Option<PackedRows<'_>>, i128),
) -> Option<Bits> {
    assert!((1..=COMPARED_MAX).contains(&rows), "BUG: {rows} rows");
    let (others, number) = right;
    for side in std::iter::once(&left).chain(&others) {
        assert!(side.bytes.len() >= side.packed_len(rows), "BUG: packed stream too short");
        if !side.fit() {
            return None;
        }
    }
    let number = number.clamp(-DISTANCE_MAX, DISTANCE_MAX) as i32;
    #[cfg(target_arch = "x86_64")]
    match level {
        SimdLevel::Portable => {}
        SimdLevel::Avx2 => {
            return Some(x86::avx2::rows(rows, left, comparison, others, number));
        }
        SimdLevel::Avx512 => {
            return Some(x86::compare::rows(rows, left, comparison, others, number));
        }
    }
    let (mut a, mut b) = ([0; COMPARED_MAX], [0; COMPARED_MAX]);
    left.distances(level, &mut a[..rows]);
    if let Some(others) = others {
        others.distances(level, &mut b[..rows]);
    }
    let mut bits = Bits::default();
    for (word, (a, b)) in bits.iter_mut().zip(a[..rows].chunks(64).zip(b.chunks(64))) {
        *word = word_of_pairs_at(level, a, comparison, b, number.into());
    }
    Some(bits)
}

// A bit for each of at most 64 values, which are compared with others and a number together.
multiversion! {
    fn / word_of_pairs_at(a: &[u64], comparison: Comparison, b: &[u64], number: i64) -> u64 {
        let pairs = a.iter().zip(b).rev();
        pairs.fold(0, |word, (a, b)| {
            let right = b.cast_signed() + number;
            word << 1 | u64::from(comparison.holds(a.cast_signed().cmp(&right)))
        })
    }
}
