//! Writes line protocol.

use model::key::push_escaped;

/// Appends a measurement and tags, without those that are empty.
pub(crate) fn push_series<'a>(
    line: &mut Vec<u8>,
    measurement: &str,
    tags: impl IntoIterator<Item = &'a (String, String)>,
) {
    push_escaped(line, measurement.as_bytes(), b", ");
    for (key, value) in tags.into_iter().filter(|(_, value)| !value.is_empty()) {
        line.push(b',');
        push_key(line, key);
        line.push(b'=');
        push_key(line, value);
    }
}

/// Appends a tag key, a tag value or a field key.
pub(crate) fn push_key(line: &mut Vec<u8>, name: &str) {
    push_escaped(line, name.as_bytes(), b",= ");
}

/// Appends a text as a field's value.
pub(crate) fn push_text(line: &mut Vec<u8>, text: &str) {
    line.push(b'"');
    push_escaped(line, text.as_bytes(), b"\"\\");
    line.push(b'"');
}
