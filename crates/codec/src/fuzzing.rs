//! Drives every decoder with arbitrary bytes: a fuzz target is one call.

use crate::{
    decode_bool_range, decode_f64_range, decode_i64_range, decode_strings_range, decode_u64,
    decode_validity,
};

/// Decodes `data` as a page of every type; its first bytes pick the count and the range.
///
/// Decoders may refuse; they may not panic, and they may not allocate out of proportion to the
/// count. Whatever is accepted must have the number of values asked for.
#[doc(hidden)]
pub fn fuzz_decode(data: &[u8]) {
    let Some((&[count_low, count_high, from, to], page)) = data.split_first_chunk::<4>() else {
        return;
    };
    let count = usize::from(u16::from_le_bytes([count_low, count_high]));
    let from = count * usize::from(from) / 255;
    let to = count * usize::from(to) / 255;
    let range = from.min(to)..from.max(to);

    let mut integers = Vec::new();
    if decode_i64_range(page, count, range.clone(), &mut integers).is_ok() {
        assert_eq!(integers.len(), range.len(), "BUG: wrong number of integers");
    }
    let mut integers = Vec::new();
    if decode_u64(page, count, &mut integers).is_ok() {
        assert_eq!(integers.len(), count, "BUG: wrong number of integers");
    }
    let mut floats = Vec::new();
    if decode_f64_range(page, count, range.clone(), &mut floats).is_ok() {
        assert_eq!(floats.len(), range.len(), "BUG: wrong number of floats");
    }
    let mut words = Vec::new();
    if decode_bool_range(page, count, range.clone(), &mut words).is_ok() {
        assert_eq!(words.len(), range.len().div_ceil(64), "BUG: wrong number of words");
    }
    let mut words = Vec::new();
    if decode_validity(page, count, &mut words).is_ok() {
        assert_eq!(words.len(), count.div_ceil(64), "BUG: wrong number of words");
    }
    let (mut offsets, mut bytes) = (Vec::new(), Vec::new());
    let max_bytes = 1 << 16;
    if decode_strings_range(page, count, range.clone(), max_bytes, &mut offsets, &mut bytes).is_ok()
    {
        assert_eq!(offsets.len(), range.len() + 1, "BUG: wrong number of strings");
        assert!(bytes.len() <= max_bytes, "BUG: limit exceeded");
    }
}
