//! What a store may say of some rows instead of handing them out.

use crate::Scalar;

/// Summaries of spans of rows: `fields[f][s]` sums up requested field `f` over span `s`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SummaryBatch {
    /// The spans.
    pub spans: Vec<SummarySpan>,
    /// One list a requested field, each as long as `spans`.
    pub fields: Vec<Vec<FieldSummary>>,
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

/// One field over one span. The values have the field's type; `sum` of integers wraps.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldSummary {
    /// Number of values. With 0 the rest is unspecified.
    pub count: u64,
    /// Sum of the values.
    pub sum: Scalar,
    /// Smallest value.
    pub min: Scalar,
    /// Largest value.
    pub max: Scalar,
    /// Value at the earliest time, and that time.
    pub first: (i64, Scalar),
    /// Value at the latest time, and that time.
    pub last: (i64, Scalar),
}
