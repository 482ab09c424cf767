//! Time: i64 nanoseconds since 1970-01-01 UTC, and ranges of it.

/// The earliest time a row can have. The two values below it are kept free, as InfluxDB does.
pub const MIN_TIME_NS: i64 = i64::MIN + 2;
/// The latest time a row can have.
pub const MAX_TIME_NS: i64 = i64::MAX - 1;

/// Seconds from 0001-01-01 to 1970-01-01: InfluxDB aligns shard groups to the former.
const YEAR_ONE_S: i128 = 62_135_596_800;

/// A range of times, both ends included: no end needs a value beyond the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeRange {
    /// First time inside, nanoseconds.
    pub min: i64,
    /// Last time inside, nanoseconds. Less than `min`: the range is empty.
    pub max: i64,
}

impl TimeRange {
    /// Every time a row can have.
    pub const ALL: Self = Self { min: MIN_TIME_NS, max: MAX_TIME_NS };
    /// No time at all.
    pub const EMPTY: Self = Self { min: 0, max: -1 };

    /// The range from `min` to `max`, both included.
    #[must_use]
    pub fn new(min: i64, max: i64) -> Self {
        Self { min, max }
    }

    /// Whether no time is inside.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.min > self.max
    }

    /// Whether `time_ns` is inside.
    #[must_use]
    pub fn contains(&self, time_ns: i64) -> bool {
        self.min <= time_ns && time_ns <= self.max
    }

    /// Whether every time of `other` is inside.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        other.is_empty() || (self.min <= other.min && other.max <= self.max)
    }

    /// Whether some time is in both.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        !self.is_empty() && !other.is_empty() && self.min <= other.max && other.min <= self.max
    }

    /// The times in both.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        Self { min: self.min.max(other.min), max: self.max.min(other.max) }
    }

    /// Whether no more than one in `parts` of the times of `whole` is inside; at least 1.
    #[must_use]
    pub fn is_short_part(&self, whole: &Self, parts: usize) -> bool {
        let inside = self.intersect(whole);
        let len = |range: &Self| i128::from(range.max) - i128::from(range.min) + 1;
        inside.is_empty() || len(&inside) <= len(whole) / parts.max(1) as i128
    }

    /// The smallest range holding both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        if self.is_empty() {
            return *other;
        }
        if other.is_empty() {
            return *self;
        }
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// The partition (InfluxDB: shard group) that holds `time_ns`: its range, both ends included and
/// clipped to the times a row can have.
///
/// Partitions of one duration are aligned to 0001-01-01 as InfluxDB's are, so that a week starts
/// on a Monday.
///
/// # Panics
/// If `duration_ns` is not positive: the caller resolves the default first.
#[must_use]
pub fn partition_range(time_ns: i64, duration_ns: i64) -> TimeRange {
    assert!(duration_ns > 0, "BUG: a partition needs a positive duration");
    let duration = i128::from(duration_ns);
    let since_year_one = i128::from(time_ns) + YEAR_ONE_S * 1_000_000_000;
    let start = i128::from(time_ns) - since_year_one.rem_euclid(duration);
    let end = start + duration - 1;
    let clip = |t: i128| t.clamp(i128::from(MIN_TIME_NS), i128::from(MAX_TIME_NS)) as i64;
    TimeRange { min: clip(start), max: clip(end) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: i64 = 3_600_000_000_000;

    #[test]
    fn a_part_of_a_range_is_short_if_it_is_no_more_than_asked_for() {
        let range = TimeRange::new;
        let whole = range(0, 99);
        assert!(
            range(10, 19).is_short_part(&whole, 10) && !range(10, 20).is_short_part(&whole, 10)
        );
        assert!(range(90, 500).is_short_part(&whole, 10), "what is outside does not count");
        assert!(
            range(200, 500).is_short_part(&whole, 10) && TimeRange::EMPTY.is_short_part(&whole, 10)
        );
        assert!(!range(i64::MIN, i64::MAX).is_short_part(&range(i64::MIN, i64::MAX), usize::MAX));
    }

    #[test]
    fn weeks_start_on_monday() {
        let range = partition_range(0, 168 * HOUR);
        // 1969-12-29, a Monday.
        assert_eq!(range.min, -3 * 24 * HOUR);
        assert_eq!(range.max, 4 * 24 * HOUR - 1);
    }

    #[test]
    fn extremes_do_not_overflow() {
        assert_eq!(partition_range(MIN_TIME_NS, 168 * HOUR).min, MIN_TIME_NS);
        assert_eq!(partition_range(MAX_TIME_NS, i64::MAX).max, MAX_TIME_NS);
    }

    proptest! {
        #[test]
        fn a_partition_holds_its_time_and_its_ends_agree(
            time in MIN_TIME_NS..=MAX_TIME_NS,
            duration in 1i64..=i64::MAX,
        ) {
            let range = partition_range(time, duration);
            prop_assert!(range.contains(time));
            prop_assert_eq!(partition_range(range.min, duration), range);
            prop_assert_eq!(partition_range(range.max, duration), range);
        }
    }
}
