//! The rows of a partition that are read first where few are wanted, apart from the others, if one source has them all.
//!
//! While rows come, the latest ones are in memory, or in the segment that was written last, and no other source has rows as
//! late. The latest row of each series is mostly there: the other sources, of which a partition that is written to has a
//! handful, need not be looked into for it.

use model::{Name, TimeRange};
use store::TimeOrder;

use crate::rows::MeasurementNo;
use crate::view::Partition;

/// Cuts `time` in two, ascending, if only one source of a partition has rows of a measurement in what is read first.
pub(super) fn cut(
    partition: &Partition,
    (name, number): (&Name, MeasurementNo),
    order: TimeOrder,
    time: TimeRange,
) -> Vec<TimeRange> {
    let of_segments = partition.segments.iter().filter_map(|segment| segment.measurement(name));
    let memtables = partition.frozen.iter().map(|frozen| &frozen.table).chain(&partition.active);
    let of_memtables = memtables.filter(|table| table.may_have(number, time)).map(|t| t.time());
    let sources = of_segments.map(|(time, _)| time).chain(of_memtables);
    cut_apart(sources.map(|source| source.intersect(&time)), order, time)
}

/// The same of sources that have rows at some times within `time`.
fn cut_apart(
    sources: impl Iterator<Item = TimeRange>,
    order: TimeOrder,
    time: TimeRange,
) -> Vec<TimeRange> {
    let sources = sources.filter(|source| !source.is_empty());
    // The two that reach farthest towards the end that is read first.
    if order == TimeOrder::Descending {
        let mut ends = (i64::MIN, i64::MIN);
        sources.for_each(|s| ends = (ends.0.max(s.max), ends.1.max(ends.0.min(s.max))));
        let (farthest, second) = ends;
        if time.min <= second && second < farthest {
            return vec![TimeRange::new(time.min, second), TimeRange::new(second + 1, time.max)];
        }
    } else {
        let mut ends = (i64::MAX, i64::MAX);
        sources.for_each(|s| ends = (ends.0.min(s.min), ends.1.min(ends.0.max(s.min))));
        let (farthest, second) = ends;
        if farthest < second && second <= time.max {
            return vec![TimeRange::new(time.min, second - 1), TimeRange::new(second, time.max)];
        }
    }
    vec![time]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(sources: &[(i64, i64)], order: TimeOrder, time: (i64, i64)) -> Vec<(i64, i64)> {
        let time = TimeRange::new(time.0, time.1);
        let within = |(min, max): &(i64, i64)| TimeRange::new(*min, *max).intersect(&time);
        let cut = cut_apart(sources.iter().map(within), order, time);
        cut.iter().map(|part| (part.min, part.max)).collect()
    }

    #[test]
    fn what_one_source_has_at_the_end_that_is_read_first_is_apart() {
        let sources = [(0, 40), (35, 60), (10, 20)];
        assert_eq!(parts(&sources, TimeOrder::Descending, (0, 99)), [(0, 40), (41, 99)]);
        assert_eq!(parts(&sources, TimeOrder::Ascending, (0, 99)), [(0, 9), (10, 99)]);
        // Of some times.
        assert_eq!(parts(&sources, TimeOrder::Descending, (0, 40)), [(0, 40)], "two have the last");
        assert_eq!(parts(&sources, TimeOrder::Descending, (21, 34)), [(21, 34)], "one has all");
        assert_eq!(parts(&sources, TimeOrder::Ascending, (21, 99)), [(21, 34), (35, 99)]);
        assert_eq!(parts(&sources, TimeOrder::Ascending, (10, 99)), [(10, 99)]);
        // Of few sources.
        assert_eq!(parts(&sources[..1], TimeOrder::Descending, (0, 99)), [(0, 99)]);
        assert_eq!(parts(&[], TimeOrder::Ascending, (0, 99)), [(0, 99)]);
        let whole = (i64::MIN, i64::MAX);
        assert_eq!(parts(&[whole, whole], TimeOrder::Descending, whole), [whole]);
    }
}
