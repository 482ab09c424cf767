//! Entry points for fuzz targets.

use crate::SeriesKey;

/// Reads `data` as a raw series key. What is accepted must have one canonical notation, and that must
/// name the same series.
///
/// # Panics
/// When that is not so, which is a bug.
pub fn series_key(data: &[u8]) {
    let Ok(key) = SeriesKey::parse(data) else { return };
    let canonical = key.to_string();
    let again = SeriesKey::parse(canonical.as_bytes()).expect("BUG: a canonical key is refused");
    assert_eq!(again, key, "BUG: a key changed");
    assert_eq!(again.to_string(), canonical, "BUG: a key has two canonical notations");
    for (name, value) in &key.tags {
        assert_eq!(key.tag(name), &**value, "BUG: a tag is not found");
    }
}
