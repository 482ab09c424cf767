//! JSON strings as Go writes them: `<`, `>`, `&` and the two line separators of Unicode escaped.

use crate::output::Output;

/// What a byte becomes: 0 itself, `u` a `\u00xx`, `?` perhaps a line separator, else `\` and this.
static ESCAPES: [u8; 256] = escapes();

const fn escapes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = b'u';
        byte += 1;
    }
    table[b'\n' as usize] = b'n';
    table[b'\r' as usize] = b'r';
    table[b'\t' as usize] = b't';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table[b'<' as usize] = b'u';
    table[b'>' as usize] = b'u';
    table[b'&' as usize] = b'u';
    // First byte of U+2000 to U+2FFF.
    table[0xe2] = b'?';
    table
}

/// How many bytes from the start certainly stand for themselves: found many at a time.
fn plain_len(text: &[u8]) -> usize {
    let (chunks, rest) = text.as_chunks::<16>();
    let plain = chunks.iter().take_while(|chunk| is_plain(chunk)).count() * 16;
    if rest.is_empty() || plain < chunks.len() * 16 {
        return plain;
    }
    let mut last = [b' '; 16];
    last[..rest.len()].copy_from_slice(rest);
    if is_plain(&last) { text.len() } else { plain }
}

/// Whether all of some bytes certainly stand for themselves.
fn is_plain(chunk: &[u8; 16]) -> bool {
    let is_special =
        |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&' | 0xe2);
    // No early end: this is one comparison of all bytes.
    !chunk.iter().fold(false, |any, byte| any | is_special(byte))
}

/// Writes `text` (UTF-8) with quotes.
pub(crate) fn push_string(out: &mut impl Output, text: &[u8]) {
    out.put(b"\"");
    let mut plain_from = 0;
    for (at, byte) in text.iter().enumerate().skip(plain_len(text)) {
        let escape = ESCAPES[usize::from(*byte)];
        if escape == 0 {
            continue;
        }
        if escape == b'?' {
            let separator = match text.get(at + 1..at + 3) {
                Some([0x80, 0xa8]) => b"\\u2028",
                Some([0x80, 0xa9]) => b"\\u2029",
                _ => continue,
            };
            out.put(&text[plain_from..at]);
            out.put(separator);
            plain_from = at + 3;
            continue;
        }
        out.put(&text[plain_from..at]);
        plain_from = at + 1;
        if escape == b'u' {
            let hex = |digit: u8| b"0123456789abcdef"[usize::from(digit)];
            out.put(&[b'\\', b'u', b'0', b'0', hex(byte >> 4), hex(byte & 15)]);
        } else {
            out.put(&[b'\\', escape]);
        }
    }
    out.put(&text[plain_from..]);
    out.put(b"\"");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        push_string(&mut out, text.as_bytes());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn escapes_as_go_does() {
        assert_eq!(written("a<b>&\u{e9}/"), "\"a\\u003cb\\u003e\\u0026\u{e9}/\"");
        assert_eq!(written("\n\r\t\"\\"), r#""\n\r\t\"\\""#);
        assert_eq!(
            written("\u{8}\u{c}\u{0}\u{1f}\u{7f}"),
            "\"\\u0008\\u000c\\u0000\\u001f\u{7f}\""
        );
        assert_eq!(
            written("\u{2028}x\u{2029}\u{2027}\u{20ac}"),
            "\"\\u2028x\\u2029\u{2027}\u{20ac}\""
        );
    }

    proptest! {
        #[test]
        fn json_reads_it_back(
            text in prop_oneof![any::<String>(), "[a-z]{0,60}[<>&\"\n\u{2028}\u{20ac}]?[a-z]{0,60}"],
        ) {
            let written = written(&text);
            let read: String = serde_json::from_str(&written).unwrap();
            prop_assert_eq!(read, text);
            let is_escaped = !written.contains(['<', '>', '&', '\u{2028}']);
            prop_assert!(is_escaped);
        }
    }
}
