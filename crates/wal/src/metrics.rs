//! What a log did, for the owner's metrics.

use std::time::Duration;

/// Buckets of the histograms in [`WalMetrics`].
pub const HISTOGRAM_BUCKETS: usize = 24;

/// Counters since the log was opened.
///
/// Bucket `i` of a histogram counts values below `2^i` that did not fit bucket `i - 1`; the last
/// takes everything larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalMetrics {
    /// Records appended.
    pub appends: u64,
    /// Bytes appended, with the records' headers.
    pub append_bytes: u64,
    /// Bytes of fills, which spare the next write a page.
    pub fill_bytes: u64,
    /// Appends that found no room in memory and waited.
    pub append_waits: u64,
    /// Writes, each of all records that were waiting.
    pub writes: u64,
    /// Syncs of log files.
    pub syncs: u64,
    /// Time spent in syncs.
    pub sync_ns: u64,
    /// Microseconds a sync took.
    pub sync_us_histogram: [u64; HISTOGRAM_BUCKETS],
    /// Records a write took.
    pub group_records_histogram: [u64; HISTOGRAM_BUCKETS],
    /// Files begun.
    pub files: u64,
    /// Times the log could not grow because the disk was full.
    pub disk_full: u64,
    /// Bytes of the log on the disk, with space allocated ahead and files kept for reuse.
    pub disk_bytes: u64,
}

fn bucket(value: u64) -> usize {
    let bits = u64::BITS - value.leading_zeros();
    (bits as usize).min(HISTOGRAM_BUCKETS - 1)
}

impl WalMetrics {
    pub(crate) fn add_write(&mut self, records: u64) {
        self.writes += 1;
        self.group_records_histogram[bucket(records)] += 1;
    }

    pub(crate) fn add_sync(&mut self, took: Duration) {
        self.syncs += 1;
        self.sync_ns += u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.sync_us_histogram[bucket(us)] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_goes_to_the_first_bucket_whose_bound_is_above_it() {
        for (value, expected) in [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (1023, 10), (1024, 11)] {
            assert_eq!(bucket(value), expected, "{value}");
        }
        assert_eq!(bucket(u64::MAX), HISTOGRAM_BUCKETS - 1);
    }
}
