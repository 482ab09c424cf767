//! Wire formats in: bytes from a client become a [`model::LineBatch`].
//!
//! Knows no store and reads no clock: whoever calls says what time rows without one get.

#[doc(hidden)]
pub mod fuzzing;
pub mod line_protocol;
pub mod prometheus;
