//! One pass over a page that tells which encodings are worth a closer look.

use crate::simd::multiversion;

/// What the encodings need to know of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stats {
    pub(super) min: i64,
    pub(super) max: i64,
    /// Least and greatest difference of neighbours, wrapping.
    pub(super) delta_min: i64,
    pub(super) delta_max: i64,
    /// Places where a value differs from the one before it.
    pub(super) changes: u64,
}

multiversion! {
    /// `values` holds at least two values.
    pub(super) fn gather / gather_at(values: &[i64]) -> Stats {
        let mut stats = Stats {
            min: values[0],
            max: values[0],
            delta_min: i64::MAX,
            delta_max: i64::MIN,
            changes: 0,
        };
        for (previous, value) in values.iter().zip(&values[1..]) {
            let delta = value.wrapping_sub(*previous);
            stats.min = stats.min.min(*value);
            stats.max = stats.max.max(*value);
            stats.delta_min = stats.delta_min.min(delta);
            stats.delta_max = stats.delta_max.max(delta);
            stats.changes += u64::from(delta != 0);
        }
        stats
    }
}

/// Values that a sample of a long sequence holds.
pub(super) const SAMPLE: usize = 1024;
/// Neighbouring values taken together; a stretch stays in a few cache lines.
const STRETCH: usize = 64;

/// Collects a sample of `0..len` by calling `take` with stretches of it, all of it when short.
pub(super) fn sample(len: usize, mut take: impl FnMut(std::ops::Range<usize>)) {
    if len <= SAMPLE {
        take(0..len);
        return;
    }
    let stretches = SAMPLE / STRETCH;
    for i in 0..stretches {
        let start = (len - STRETCH) * i / (stretches - 1);
        take(start..start + STRETCH);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simd::SimdLevel;

    proptest! {
        #[test]
        fn every_level_gives_the_same_stats(
            values in prop::collection::vec(any::<i64>(), 2..200), narrow: bool,
        ) {
            let values: Vec<i64> =
                values.iter().map(|v| if narrow { v % 3 } else { *v }).collect();
            let deltas: Vec<i64> = values.windows(2).map(|w| w[1].wrapping_sub(w[0])).collect();
            let expected = Stats {
                min: *values.iter().min().unwrap(),
                max: *values.iter().max().unwrap(),
                delta_min: *deltas.iter().min().unwrap(),
                delta_max: *deltas.iter().max().unwrap(),
                changes: deltas.iter().filter(|d| **d != 0).count() as u64,
            };
            for level in SimdLevel::available() {
                prop_assert_eq!(gather_at(level, &values), expected);
            }
        }

        #[test]
        fn samples_stay_inside(len in 0usize..200_000) {
            let mut taken = 0;
            sample(len, |range| {
                assert!(range.end <= len);
                taken += range.len();
            });
            prop_assert_eq!(taken, len.min(SAMPLE));
        }
    }
}
