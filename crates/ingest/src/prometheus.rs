//! Prometheus' remote write and the request of remote read: protocol buffers, unpacked already.
//!
//! The mapping is InfluxDB 1.x': a metric is a measurement with one float field `value`, every
//! label (the metric's name included) is a tag, milliseconds become nanoseconds. Values that line
//! protocol has no notation for (NaN, infinities) are left out without a word.
//!
//! Series are decoded one at a time, so a small body cannot become a large tree in memory.
//!
//! Not here: snappy, HTTP; metadata, exemplars and histograms, which are skipped.

mod message;
mod rows;

use std::fmt;

pub use message::{LabelMatcher, MatchKind, ReadQuery, read_queries};
pub use rows::{ROW_BYTES_FACTOR, write_rows};

/// The label that names the metric.
pub const NAME_LABEL: &str = "__name__";

/// The field that values are in.
pub const VALUE_FIELD: &str = "value";

/// The measurement of series without a name.
pub const NAMELESS: &str = "prom_metric_not_specified";

/// Why a body cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// It is not what it should be.
    Malformed(String),
    /// It would take far more memory than its length allows for.
    TooLarge,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(text) => f.write_str(text),
            Self::TooLarge => f.write_str("the body has too many empty parts"),
        }
    }
}

impl std::error::Error for BodyError {}

impl From<prost::DecodeError> for BodyError {
    fn from(error: prost::DecodeError) -> Self {
        Self::Malformed(error.to_string())
    }
}
