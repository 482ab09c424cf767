//! Wire formats in: bytes from a client become a [`model::LineBatch`], or lines that do.
//!
//! Knows no store and reads no clock: whoever calls says what time rows without one get.

pub mod collectd;
#[doc(hidden)]
pub mod fuzzing;
pub mod graphite;
pub mod line_protocol;
pub mod opentsdb;
pub mod point;
pub mod prometheus;
