//! Entry points for fuzz targets.

use super::predicate::equalities;

/// Reads `data` as the predicate of a delete. What was read must come back when it is quoted.
///
/// # Panics
/// When it does not, which is a bug.
pub fn delete_predicate(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(pairs) = equalities(text) else { return };
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let written = |(key, value): &(String, String)| {
        let (key, value) = (quoted(key), quoted(value));
        format!("\"{key}\"=\"{value}\"")
    };
    let again: Vec<String> = pairs.iter().map(written).collect();
    assert_eq!(equalities(&again.join(" AND ")), Ok(pairs), "BUG: quoting changed a predicate");
}
