//! Column encodings and all SIMD of Nyala.
//!
//! A *page* is one encoded run of one column. Its first byte names the encoding; the number of
//! values is known to whoever stored the page and is passed back in. docs/formats/encodings.md is
//! normative for the bytes; docs/decisions/0003-encodings.md says why these encodings and no others.
//!
//! Invariants
//! - Decoding gives back exactly what was encoded, bit for bit.
//! - No decoder panics or allocates out of proportion to the requested count, whatever the bytes.
//! - Every SIMD path gives the same bits as its scalar specification.
//!
//! Not here: checksums, null handling (validity is its own page), files.

mod ahead;
mod bit_stream;
mod bitpack;
mod bits;
mod encoding;
mod entropy;
mod error;
mod float;
pub mod fuzzing;
mod int;
pub mod kernels;
mod patched;
mod prefix;
mod simd;
mod strings;
mod together;
mod wire;

pub use ahead::prefetch;
pub use bit_stream::{BitReader, BitWriter};
pub use bits::{
    decode_bool, decode_bool_range, decode_validity, decode_validity_range, encode_bool,
    encode_validity,
};
pub use encoding::{Effort, encoding_name};
pub use entropy::{MARK_REACH, Mark, Marks, STREAMS_TOGETHER, is_entropy_coded, is_slow_in_parts};
pub use error::DecodeError;
pub use float::{
    compare_page_f64, compare_pages_f64, decode_f64, decode_f64_from, decode_f64_range, encode_f64,
    float_at, from_decimals, to_decimals, visit_f64,
};
pub use int::{
    COMPARED_ROWS_MAX, ComparedBits, ExceptionPlaces, PageComparison, RESTART_ROWS, Waypoint,
    Waypoints, compare_page_i64, compare_page_u64, compare_pages_i64, compare_pages_u64,
    decode_i64, decode_i64_from, decode_i64_range, decode_u64, decode_u64_from, decode_u64_range,
    encode_i64, encode_u64, integer_at, integer_from, regular_i64, restarts_i64, visit_i64,
};
pub use patched::ExceptionPlace;
pub use simd::simd_name;
pub use strings::{
    TextFinder, TextPlace, Wants, are_searched_apart, are_slow_apart, decode_selected_strings,
    decode_strings, decode_strings_range, encode_strings, search_strings,
};
pub use together::{NumbersOut, PagePart, decode_together};

/// The most values one page may hold.
pub const PAGE_COUNT_MAX: usize = 1 << 24;
