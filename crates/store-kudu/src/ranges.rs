//! Ranges of time that tables are cut into: which a write needs, and how they travel.
//!
//! Pure functions: what changes tables is in `data`.

use kudu_client::{RangePartition, Value};
use model::{FieldType, MAX_TIME_NS, MIN_TIME_NS, TimeRange, partition_range};
use store::Policy;

/// Ranges added by one request to the master.
pub(crate) const RANGES_PER_REQUEST: usize = 16;

/// What a write needs of a table.
#[derive(Debug)]
pub(crate) struct Needs<'a> {
    pub(crate) policy: Policy,
    /// Columns and their types.
    pub(crate) columns: &'a [(String, FieldType)],
    /// Times of the rows.
    pub(crate) times: &'a [i64],
    /// The wall clock.
    pub(crate) now_ns: i64,
}

/// The range that holds a time.
pub(crate) fn range_at(ranges: &[TimeRange], time_ns: i64) -> Option<TimeRange> {
    let after = ranges.partition_point(|range| range.min <= time_ns);
    ranges[..after].last().copied().filter(|range| range.contains(time_ns))
}

/// The partition of a time that no range holds: it gives way to its neighbours.
fn range_for(ranges: &[TimeRange], time_ns: i64, partition_ns: i64) -> TimeRange {
    let after = ranges.partition_point(|range| range.min <= time_ns);
    let free = TimeRange {
        min: ranges[..after].last().map_or(MIN_TIME_NS, |range| range.max.saturating_add(1)),
        max: ranges.get(after).map_or(MAX_TIME_NS, |range| range.min - 1),
    };
    partition_range(time_ns, partition_ns).intersect(&free)
}

/// A time soon to be written for which there is no range yet: rows come for now, and the second half
/// of their partition has begun.
pub(crate) fn ahead(ranges: &[TimeRange], needs: &Needs<'_>) -> Option<i64> {
    let current = range_at(ranges, needs.now_ns)?;
    let half = current.min.midpoint(current.max);
    let next = current.max.checked_add(1).filter(|next| *next <= MAX_TIME_NS)?;
    let live = needs.now_ns > half && needs.times.iter().any(|time| current.contains(*time));
    (live && range_at(ranges, next).is_none()).then_some(next)
}

/// Ranges of `there` that a write needs and that are not among `have`.
pub(crate) fn lacking(
    have: &[TimeRange],
    there: &[TimeRange],
    needs: &Needs<'_>,
) -> Vec<TimeRange> {
    let wanted = needs.times.iter();
    let mut found: Vec<TimeRange> = wanted.filter_map(|time| range_at(there, *time)).collect();
    found.sort_unstable_by_key(|range| range.min);
    found.dedup();
    found.retain(|range| !have.contains(range));
    found
}

/// Ranges that a write needs and that are not among `have`, ascending: the first ones met,
/// as many as one request can add. Those that another table of the measurement has are taken over.
pub(crate) fn missing_ranges(
    have: &[TimeRange],
    of_others: &[TimeRange],
    needs: &Needs<'_>,
) -> Vec<TimeRange> {
    let mut ranges = have.to_vec();
    let mut missing = Vec::new();
    let mut add = |ranges: &mut Vec<TimeRange>, time: i64| {
        if missing.len() < RANGES_PER_REQUEST && range_at(ranges, time).is_none() {
            let is_free = |other: &&TimeRange| ranges.iter().all(|r| r.intersect(other).is_empty());
            let theirs = of_others.iter().filter(|other| other.contains(time)).find(is_free);
            let own = || range_for(ranges, time, needs.policy.partition_ns);
            let range = theirs.copied().unwrap_or_else(own);
            ranges.push(range);
            ranges.sort_unstable_by_key(|range| range.min);
            missing.push(range);
        }
    };
    needs.times.iter().for_each(|time| add(&mut ranges, *time));
    missing.sort_unstable_by_key(|range| range.min);
    missing
}

/// The ranges in order, those that overlap as one.
pub(crate) fn united(mut ranges: Vec<TimeRange>) -> Vec<TimeRange> {
    ranges.sort_unstable_by_key(|range| range.min);
    let mut all: Vec<TimeRange> = Vec::new();
    for range in ranges {
        match all.last_mut() {
            Some(last) if range.min <= last.max => last.max = last.max.max(range.max),
            _ => all.push(range),
        }
    }
    all
}

/// A range as a range partition.
pub(crate) fn partition_of(range: TimeRange) -> RangePartition {
    RangePartition::between(range.min, range.max + 1)
}

/// A range partition as the times in it.
pub(crate) fn range_of(partition: &RangePartition) -> TimeRange {
    let bound = |values: &[Value], otherwise: i64| match values.first() {
        Some(Value::Int(value)) => i64::try_from(*value).unwrap_or(otherwise),
        _ => otherwise,
    };
    let max = bound(&partition.upper, i64::MAX);
    TimeRange { min: bound(&partition.lower, i64::MIN), max: max.saturating_sub(1) }
}

#[cfg(test)]
mod tests {
    use model::{DatabaseId, PolicyId};

    use super::*;

    fn needs(times: &[i64], now_ns: i64) -> Needs<'_> {
        let policy = Policy {
            database: DatabaseId(1),
            id: PolicyId(1),
            partition_ns: 10_000_000_000,
            retention_ns: None,
        };
        Needs { policy, columns: &[], times, now_ns }
    }

    #[test]
    fn ranges_are_made_where_rows_are_and_wanted_ahead_of_them() {
        const S: i64 = 1_000_000_000;
        let first = partition_range(0, 10 * S);
        let (start, end) = (first.min, first.max);
        let missing = |have: &[TimeRange], needs: &Needs<'_>| missing_ranges(have, &[], needs);
        assert_eq!(missing(&[], &needs(&[0, 1, end], i64::MIN)), [first]);
        let theirs = [TimeRange::new(start - 5, start + 5)];
        let taken =
            |have: &[TimeRange]| missing_ranges(have, &theirs, &needs(&[start + 1], i64::MIN));
        assert_eq!(
            (taken(&[]), taken(&[TimeRange::new(start - 9, start)])[0].max),
            (theirs.to_vec(), end)
        );
        assert_eq!(missing(&[first], &needs(&[0], i64::MIN)), []);
        let early = start + 2 * S;
        assert_eq!(missing(&[first], &needs(&[early], early)), []);
        let late = start + 7 * S;
        assert_eq!(missing(&[first], &needs(&[late], late)), []);
        assert_eq!(ahead(&[first], &needs(&[late], late)), Some(end + 1));
        assert_eq!(ahead(&[first], &needs(&[early], early)), None);
        let next = partition_range(end + 1, 10 * S);
        assert_eq!(missing(&[first], &needs(&[end + 1], i64::MIN)), [next]);
        assert_eq!(ahead(&[first, next], &needs(&[late], late)), None);
        // It gives way to neighbours.
        let odd = [TimeRange::new(start - 5, start + 5), TimeRange::new(start + 100, end + 7)];
        let cut = TimeRange::new(start + 6, start + 99);
        assert_eq!(missing(&odd, &needs(&[start + 50], i64::MIN)), [cut]);
        let ends = missing(&[], &needs(&[MIN_TIME_NS, MAX_TIME_NS], i64::MIN));
        assert_eq!((ends[0].min, ends[1].max), (MIN_TIME_NS, MAX_TIME_NS));
    }

    #[test]
    fn overlapping_ranges_are_one() {
        let range = TimeRange::new;
        let all = vec![range(20, 29), range(0, 9), range(5, 12), range(10, 11), range(13, 14)];
        assert_eq!(united(all), [range(0, 12), range(13, 14), range(20, 29)]);
    }

    #[test]
    fn partitions_and_ranges_are_the_same() {
        let range = TimeRange::new(-5, 7);
        assert_eq!(range_of(&partition_of(range)), range);
        assert_eq!(range_of(&partition_of(TimeRange::ALL)), TimeRange::ALL);
    }
}
