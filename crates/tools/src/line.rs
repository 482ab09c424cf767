//! Writes line protocol.

/// Appends a measurement.
pub(crate) fn push_measurement(line: &mut Vec<u8>, name: &str) {
    push_escaped(line, name, b", ");
}

/// Appends a tag key, a tag value or a field key.
pub(crate) fn push_key(line: &mut Vec<u8>, name: &str) {
    push_escaped(line, name, b",= ");
}

/// Appends a text as a field's value.
pub(crate) fn push_text(line: &mut Vec<u8>, text: &str) {
    line.push(b'"');
    push_escaped(line, text, b"\"\\");
    line.push(b'"');
}

fn push_escaped(line: &mut Vec<u8>, text: &str, special: &[u8]) {
    for &byte in text.as_bytes() {
        if special.contains(&byte) {
            line.push(b'\\');
        }
        line.push(byte);
    }
}
