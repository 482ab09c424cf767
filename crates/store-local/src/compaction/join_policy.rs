//! Which partitions become one: a pure function of what there is.
//!
//! A partition is as long as its policy says when its first row comes, and nobody knows then how many rows will follow:
//! daily prices of thirty years are 1566 weeks of five rows a series. Each is a file, a search for each series in it, and
//! blocks that are mostly what says where they are. So neighbours that rest and are small become one, as segments do
//! when they are merged: several at once (eight, if the store's options say nothing else) of similar size, so that each
//! row is rewritten at most log([`JOINED_BYTES_MAX`] / size of a partition) / log(5) times.
//!
//! - The latest partition of a policy is left alone: rows are to come.
//! - None gets longer than a part of the time that its rows are kept, as partitions are dropped whole.
//! - No gap in it is a large part of it: a row with a wrong time does not make one of fifty years, into which everything
//!   would go that is ever written between.

use std::ops::Range;

use model::TimeRange;

/// How long a policy keeps its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// For ever.
    ForEver,
    /// For so many nanoseconds.
    ForNs(i64),
}

/// Partitions joined at once: each is a file that is read beside the others, with a block in memory.
const FAN_IN_MAX: usize = 32;
/// The least that joining is worth it for: the bytes of all as a multiple of the largest, for each of the least number that
/// is joined.
const GROWTH: (u64, u64) = (5, 8);
/// Partitions do not get larger by being joined. A query over all times looks for each series in each partition,
/// about a microsecond each; of this size it reads for a hundred times as long.
const JOINED_BYTES_MAX: u64 = 64 << 20;
/// A partition's length is at most the time that its rows are kept divided by this.
const KEPT_PARTS: i64 = 8;
/// Gaps between those that are joined are at most the length of the whole divided by this.
const GAP_PARTS: i128 = 4;

/// What the policy looks at of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Neighbour {
    pub(crate) time: TimeRange,
    pub(crate) bytes: u64,
    /// Nobody writes to it or works on it, and there is nothing left to merge.
    pub(crate) rests: bool,
}

/// Chooses what to join next of a policy's partitions, which ascend: `fan_in_min` or more.
pub(crate) fn choose_to_join(
    partitions: &[Neighbour],
    fan_in_min: usize,
    kept: Kept,
) -> Option<Range<usize>> {
    let old = &partitions[..partitions.len().saturating_sub(1)];
    (0..old.len()).find_map(|start| longest_from(old, start, fan_in_min, kept))
}

/// The longest run of neighbours from `start` that is worth joining.
fn longest_from(
    partitions: &[Neighbour],
    start: usize,
    fan_in_min: usize,
    kept: Kept,
) -> Option<Range<usize>> {
    let growth = GROWTH.0 * fan_in_min as u64;
    let first = partitions[start].time;
    let (mut bytes, mut largest, mut gap, mut longest) = (0, 0, 0, None);
    let mut before = first;
    for (end, partition) in (start + 1..).zip(&partitions[start..]).take(FAN_IN_MAX) {
        bytes += partition.bytes;
        let time = TimeRange::new(first.min, partition.time.max);
        let is_kept_longer = match kept {
            Kept::ForEver => true,
            Kept::ForNs(ns) => length(time) <= i128::from(ns / KEPT_PARTS),
        };
        if !partition.rests || bytes > JOINED_BYTES_MAX || !is_kept_longer {
            break;
        }
        largest = largest.max(partition.bytes);
        gap = gap.max(i128::from(partition.time.min) - i128::from(before.max) - 1);
        before = partition.time;
        let worth = end - start >= fan_in_min && bytes * GROWTH.1 >= largest * growth;
        if worth && gap * GAP_PARTS <= length(time) {
            longest = Some(start..end);
        }
    }
    longest
}

/// Nanoseconds from the first to the last.
fn length(time: TimeRange) -> i128 {
    i128::from(time.max) - i128::from(time.min) + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FAN_IN: usize = 8;
    const WEEK: i64 = 604_800_000_000_000;

    fn week(at: i64, bytes: u64) -> Neighbour {
        let time = TimeRange::new(at * WEEK, (at + 1) * WEEK - 1);
        Neighbour { time, bytes, rests: true }
    }

    fn weeks(of: Range<i64>, bytes: u64) -> Vec<Neighbour> {
        of.map(|at| week(at, bytes)).collect()
    }

    #[test]
    fn joins_small_neighbours_but_the_latest() {
        assert_eq!(choose_to_join(&[], FAN_IN, Kept::ForEver), None);
        assert_eq!(choose_to_join(&weeks(0..8, 9), FAN_IN, Kept::ForEver), None);
        assert_eq!(choose_to_join(&weeks(0..9, 9), FAN_IN, Kept::ForEver), Some(0..8));
        assert_eq!(choose_to_join(&weeks(-50..50, 9), FAN_IN, Kept::ForEver), Some(0..32));
        assert_eq!(choose_to_join(&weeks(0..50, 9 << 20), FAN_IN, Kept::ForEver), None);
        assert_eq!(choose_to_join(&weeks(0..50, 8 << 20), FAN_IN, Kept::ForEver), Some(0..8));
        let large = [vec![week(0, 40)], weeks(1..9, 9), vec![week(9, 90)]].concat();
        assert_eq!(choose_to_join(&large, FAN_IN, Kept::ForEver), Some(1..9));
    }

    #[test]
    fn what_does_not_rest_stays() {
        let mut partitions = weeks(0..40, 9);
        partitions[10].rests = false;
        assert_eq!(choose_to_join(&partitions, FAN_IN, Kept::ForEver), Some(0..10));
        partitions[5].rests = false;
        assert_eq!(choose_to_join(&partitions, FAN_IN, Kept::ForEver), Some(11..39));
    }

    #[test]
    fn none_gets_long_beside_the_time_that_rows_are_kept() {
        let partitions = weeks(0..100, 9);
        assert_eq!(choose_to_join(&partitions, FAN_IN, Kept::ForNs(63 * WEEK)), None);
        assert_eq!(choose_to_join(&partitions, FAN_IN, Kept::ForNs(64 * WEEK)), Some(0..8));
        assert_eq!(choose_to_join(&partitions, FAN_IN, Kept::ForNs(96 * WEEK)), Some(0..12));
    }

    #[test]
    fn no_gap_is_a_large_part() {
        let stray = [vec![week(0, 9)], weeks(2000..2020, 9)].concat();
        assert_eq!(choose_to_join(&stray, FAN_IN, Kept::ForEver), Some(1..20));
        let apart = [weeks(0..10, 9), weeks(2000..2050, 9)].concat();
        assert_eq!(choose_to_join(&apart, FAN_IN, Kept::ForEver), Some(0..10));
        let months: Vec<Neighbour> = (0..20).map(|at| week(at * 4, 9)).collect();
        assert_eq!(choose_to_join(&months, FAN_IN, Kept::ForEver), Some(0..19));
        let extremes = [i64::MIN, i64::MAX - 1].map(|at| Neighbour {
            time: TimeRange::new(at, at + 1),
            bytes: 1,
            rests: true,
        });
        let all = [&extremes[..1], &weeks(0..8, 9), &extremes[1..]].concat();
        assert_eq!(choose_to_join(&all, FAN_IN, Kept::ForEver), Some(1..9));
    }

    proptest! {
        #[test]
        fn partitions_become_few_and_rows_are_rewritten_a_few_times(
            sizes in prop::collection::vec(1u64..20, 1..600),
            unit in prop::sample::select(vec![1, 20 << 10, 1 << 20]),
        ) {
            let (mut partitions, mut written, mut all) = (Vec::new(), 0, 0);
            for (at, size) in (0..).zip(sizes) {
                partitions.push(week(at, size * unit));
                all += size * unit;
                while let Some(joined) = choose_to_join(&partitions, FAN_IN, Kept::ForEver) {
                    let inputs = &partitions[joined.clone()];
                    let bytes = inputs.iter().map(|p| p.bytes).sum();
                    let time = TimeRange::new(inputs[0].time.min, inputs[inputs.len() - 1].time.max);
                    prop_assert!(bytes <= JOINED_BYTES_MAX);
                    written += bytes;
                    partitions.splice(joined, [Neighbour { time, bytes, rests: true }]);
                }
            }
            prop_assert!(written <= all * 8, "{written} of {all}");
            let full = all / (JOINED_BYTES_MAX / FAN_IN as u64);
            prop_assert!(partitions.len() as u64 <= 60 + full * 2, "{} of {all}", partitions.len());
        }
    }
}
