//! What a request says of the form of its answer.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::sink::Sink;
use crate::{csv, json, msgpack};

/// The form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The notation.
    pub format: Format,
    /// Times of the first column as whole numbers of this unit, not as text.
    pub epoch: Option<Epoch>,
    /// One document for so many rows of a series, not one for the whole answer.
    pub chunk_rows: Option<NonZeroUsize>,
    /// Rows of the whole answer at most; the rest is cut off. Without effect on chunked answers.
    pub max_rows: Option<NonZeroUsize>,
}

/// A notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON; `pretty` is indented by four spaces.
    Json {
        /// Whether it is indented.
        pretty: bool,
    },
    /// Comma-separated values.
    Csv,
    /// MessagePack.
    MessagePack,
}

impl Default for Format {
    fn default() -> Self {
        Self::Json { pretty: false }
    }
}

impl Format {
    /// The whole body that says why a request failed.
    #[must_use]
    pub fn error(self, text: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len() + 16);
        match self {
            Self::Json { pretty } => json::error_document(&mut out, text, pretty),
            Self::Csv => csv::error_lines(&mut out, text),
            Self::MessagePack => msgpack::error_map(&mut out, text),
        }
        out
    }

    pub(crate) fn sink(self, epoch: Option<Epoch>) -> Box<dyn Sink> {
        match self {
            Self::Json { pretty } => Box::new(json::JsonSink::new(pretty, epoch)),
            Self::Csv => Box::new(csv::CsvSink::new(epoch)),
            Self::MessagePack => Box::new(msgpack::MessagePackSink::new(epoch)),
        }
    }
}

/// The unit of times that are written as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epoch {
    /// Nanoseconds.
    Nanoseconds,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// Minutes.
    Minutes,
    /// Hours.
    Hours,
}

impl Epoch {
    /// The unit that a request's `epoch` parameter names: nanoseconds unless it is a known one,
    /// none at all if it is empty.
    #[must_use]
    pub fn from_parameter(text: &str) -> Option<Self> {
        Some(match text {
            "" => return None,
            "u" => Self::Microseconds,
            "ms" => Self::Milliseconds,
            "s" => Self::Seconds,
            "m" => Self::Minutes,
            "h" => Self::Hours,
            _ => Self::Nanoseconds,
        })
    }

    /// A time in this unit, cut towards 1970.
    pub(crate) fn convert(self, time_ns: i64) -> i64 {
        // Each divisor in a branch of its own: dividing by a constant is a multiplication.
        match self {
            Self::Nanoseconds => time_ns,
            Self::Microseconds => time_ns / 1_000,
            Self::Milliseconds => time_ns / 1_000_000,
            Self::Seconds => time_ns / 1_000_000_000,
            Self::Minutes => time_ns / 60_000_000_000,
            Self::Hours => time_ns / 3_600_000_000_000,
        }
    }
}

/// A time zone: how many seconds local time is ahead of UTC at a time (nanoseconds).
#[derive(Clone)]
pub struct ZoneOffset(Arc<dyn Fn(i64) -> i32 + Send + Sync>);

impl ZoneOffset {
    /// The zone that `offset_s` describes.
    #[must_use]
    pub fn new(offset_s: impl Fn(i64) -> i32 + Send + Sync + 'static) -> Self {
        Self(Arc::new(offset_s))
    }

    pub(crate) fn offset_s(&self, time_ns: i64) -> i32 {
        (self.0)(time_ns)
    }
}

impl fmt::Debug for ZoneOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ZoneOffset")
    }
}
