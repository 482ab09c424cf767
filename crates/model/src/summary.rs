//! What a store may say of some rows instead of handing them out.

use crate::{FieldType, Values};

/// Summaries of spans of rows: entry `s` of `fields[f]` sums up requested field `f` over span `s`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SummaryBatch {
    /// The spans.
    pub spans: Vec<SummarySpan>,
    /// One a requested field, each of all spans.
    pub fields: Vec<FieldSummaries>,
}

/// Some rows of one series that lie in one window of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummarySpan {
    /// Ordinal of the series in the scan's series table.
    pub series: u32,
    /// No row is earlier, nanoseconds.
    pub min_time: i64,
    /// No row is later, nanoseconds; in the same window.
    pub max_time: i64,
}

/// One field over some spans, a column a part. `counts` has an entry a span; so have the parts that the
/// request uses, the others may be empty. Where a count is 0 the other parts are unspecified, and of texts sums, smallest and largest
/// values are always.
///
/// The values have the field's type; sums of integers wrap.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldSummaries {
    /// Numbers of values.
    pub counts: Vec<u64>,
    /// Sums of the values.
    pub sums: Values,
    /// Smallest values.
    pub mins: Values,
    /// Largest values.
    pub maxs: Values,
    /// The values at the earliest times.
    pub firsts: TimedValues,
    /// The values at the latest times.
    pub lasts: TimedValues,
}

/// Values with the times they were written for.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedValues {
    /// Nanoseconds since 1970-01-01 UTC.
    pub times: Vec<i64>,
    /// As many values.
    pub values: Values,
}

impl FieldSummaries {
    /// Summaries of no spans of a field of type `field_type`.
    #[must_use]
    pub fn empty(field_type: FieldType) -> Self {
        let none = || Values::empty(field_type);
        let timed = || TimedValues { times: Vec::new(), values: none() };
        Self {
            counts: Vec::new(),
            sums: none(),
            mins: none(),
            maxs: none(),
            firsts: timed(),
            lasts: timed(),
        }
    }

    /// No spans of the same field, with room for as many.
    #[must_use]
    pub fn empty_like(&self) -> Self {
        let timed = |ends: &TimedValues| TimedValues {
            times: Vec::with_capacity(ends.times.len()),
            values: ends.values.empty_like(),
        };
        Self {
            counts: Vec::with_capacity(self.counts.len()),
            sums: self.sums.empty_like(),
            mins: self.mins.empty_like(),
            maxs: self.maxs.empty_like(),
            firsts: timed(&self.firsts),
            lasts: timed(&self.lasts),
        }
    }

    /// Bytes of memory the entries take, for budgets.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let values = [&self.sums, &self.mins, &self.maxs, &self.firsts.values, &self.lasts.values];
        let times = self.firsts.times.capacity() + self.lasts.times.capacity();
        (self.counts.capacity() + times) * 8
            + values.map(Values::memory_bytes).iter().sum::<usize>()
    }
}
