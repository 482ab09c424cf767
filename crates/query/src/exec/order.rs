//! Putting rows in order of time: keys of few bits are sorted digit by digit (`radix`), times as multiples of the
//! interval that rows come in (`step`).
//!
//! What decides between rows of equal times is whoever sorts' to say.

pub(super) mod radix;
mod step;

pub(super) use self::step::Step;

/// A number that orders as the signed one does.
pub(super) fn ordered(time: i64) -> u64 {
    time.cast_unsigned() ^ (1 << 63)
}

/// Bits that numbers up to `max` take.
pub(super) fn bits(max: u64) -> u32 {
    u64::BITS - max.leading_zeros()
}

/// Puts rows in order of their times, `time` of each; those of equal times stay as they are. They come in so many runs
/// that ascend by themselves.
pub(super) fn by_time(rows: &mut [u32], runs: usize, time: impl Fn(u32) -> i64) {
    let times = || rows.iter().map(|row| ordered(time(*row)));
    let (Some(least), Some(most)) = (times().min(), times().max()) else { return };
    let step = Step::of(times().map(|time| time - least));
    let (time_bits, place_bits) = (bits(step.exact(most - least)), bits(rows.len() as u64));
    if time_bits + place_bits > u64::BITS {
        let mut timed: Vec<(i64, u32)> = rows.iter().map(|row| (time(*row), *row)).collect();
        timed.sort_by_key(|(time, _)| *time);
        rows.iter_mut().zip(timed).for_each(|(row, (_, sorted))| *row = sorted);
        return;
    }
    let steps = times().map(|time| step.exact(time - least));
    let mut keys: Vec<u64> = steps.zip(0..).map(|(at, place)| at << place_bits | place).collect();
    if radix::digits(time_bits) <= runs.max(1).ilog2() {
        radix::sort(&mut keys, place_bits..place_bits + time_bits);
    } else {
        // Finds the runs and merges them: two by two, which takes no more passes.
        keys.sort();
    }
    let sorted = keys.into_iter().map(|key| rows[(key & ((1 << place_bits) - 1)) as usize]);
    let sorted: Vec<u32> = sorted.collect();
    rows.copy_from_slice(&sorted);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_are_in_order_of_time_and_then_as_they_came(
            runs in prop::collection::vec(prop::collection::btree_set(0u32..700, 1..90), 1..20),
            factor in prop_oneof![Just(1i64), Just(10_000_000_000), Just(i64::MAX / 700)],
            first in prop_oneof![Just(0), Just(-300), any::<i64>()],
        ) {
            let times: Vec<i64> =
                runs.iter().flatten().map(|at| first.saturating_add(i64::from(*at) * factor)).collect();
            let mut rows: Vec<u32> = (0..times.len() as u32).rev().collect();
            let mut expected = rows.clone();
            expected.sort_by_key(|row| times[*row as usize]);
            by_time(&mut rows, runs.len(), |row| times[row as usize]);
            prop_assert_eq!(rows, expected);
        }
    }
}
