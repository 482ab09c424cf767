//! `multipart/form-data`, as far as parameters need it.

use std::borrow::Cow;

use memchr::memmem;

/// One part of a form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    pub(crate) name: Cow<'a, str>,
    /// It came as a file.
    pub(crate) is_file: bool,
    pub(crate) content: &'a [u8],
}

/// Most parts that are looked at.
const PARTS_MAX: usize = 1000;

/// The boundary that a content type names.
pub(crate) fn boundary(content_type: &str) -> Option<String> {
    parameter(content_type, "boundary").filter(|boundary| !boundary.is_empty())
}

/// The parts of `body`. What is not as it should be ends the list.
pub(crate) fn parts<'a>(body: &'a [u8], boundary: &str) -> Vec<Part<'a>> {
    // Every delimiter but the first is at the start of a line, whose end before belongs to it.
    let delimiter = format!("\r\n--{boundary}");
    let finder = memmem::Finder::new(delimiter.as_bytes());
    let first = &delimiter.as_bytes()[2..];
    let mut rest = if body.starts_with(first) {
        &body[first.len()..]
    } else {
        match finder.find(body) {
            Some(at) => &body[at + delimiter.len()..],
            None => return Vec::new(),
        }
    };
    let mut parts = Vec::new();
    while parts.len() < PARTS_MAX && !rest.starts_with(b"--") {
        let Some(end) = finder.find(rest) else { break };
        let Some(part) = part(&rest[..end]) else { break };
        parts.extend(part);
        rest = &rest[end + delimiter.len()..];
    }
    parts
}

/// A part that follows its delimiter; nothing if it has no name.
fn part(text: &[u8]) -> Option<Option<Part<'_>>> {
    let padding = text.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
    let text = text[padding..].strip_prefix(b"\r\n")?;
    let (head, content) = match text.strip_prefix(b"\r\n") {
        Some(content) => (&b""[..], content),
        None => {
            let end = memmem::find(text, b"\r\n\r\n")?;
            (&text[..end], &text[end + 4..])
        }
    };
    let head = String::from_utf8_lossy(head);
    let disposition = head.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-disposition").then(|| value.trim())
    });
    let Some(disposition) = disposition else { return Some(None) };
    let Some(name) = parameter(disposition, "name") else { return Some(None) };
    let is_file = parameter(disposition, "filename").is_some();
    Some(Some(Part { name: Cow::Owned(name), is_file, content }))
}

/// The value of parameter `name` in a header like `form-data; name="q"`.
fn parameter(header: &str, name: &str) -> Option<String> {
    let (_, mut rest) = header.split_once(';')?;
    loop {
        rest = rest.trim_start();
        let (key, after) = rest.split_once('=')?;
        let (value, after) = value(after);
        if key.trim().eq_ignore_ascii_case(name) {
            return Some(value);
        }
        (_, rest) = after.split_once(';')?;
    }
}

/// A parameter's value, quotes and escapes removed, and what follows it.
fn value(text: &str) -> (String, &str) {
    let text = text.trim_start();
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(';').unwrap_or(text.len());
        return (text[..end].trim_end().to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn boundaries() {
        let of = |text| boundary(text);
        assert_eq!(of("multipart/form-data; boundary=abc"), Some("abc".to_owned()));
        assert_eq!(
            of("multipart/form-data; charset=x; Boundary=\"a b\\\"c\""),
            Some("a b\"c".to_owned())
        );
        assert_eq!(of("multipart/form-data"), None);
        assert_eq!(of("multipart/form-data; boundary="), None);
    }

    #[test]
    fn what_curl_sends() {
        let body = "--XX\r\nContent-Disposition: form-data; name=\"db\"\r\n\r\nmydb\r\n\
            --XX\r\nContent-Disposition: form-data; name=\"q\"; filename=\"q.txt\"\r\n\
            Content-Type: text/plain\r\n\r\nSELECT 1\r\n;\r\n--XX--\r\n";
        let found = parts(body.as_bytes(), "XX");
        let db = Part { name: "db".into(), is_file: false, content: b"mydb" };
        let q = Part { name: "q".into(), is_file: true, content: b"SELECT 1\r\n;" };
        assert_eq!(found, [db, q]);
    }

    proptest! {
        #[test]
        fn parts_come_back(
            written in proptest::collection::vec(
                ("[a-z]{1,8}", any::<bool>(), "[a-z=;\"\r\n-]{0,40}"), 0..5,
            ),
            preamble in any::<bool>(),
        ) {
            let mut body = if preamble { "to be ignored\r\n".to_owned() } else { String::new() };
            for (name, is_file, content) in &written {
                let file = if *is_file { "; filename=\"f\"" } else { "" };
                body += &format!(
                    "--B0UND\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{content}\r\n"
                );
            }
            body += "--B0UND--\r\n";
            let found = parts(body.as_bytes(), "B0UND");
            prop_assert_eq!(found.len(), written.len());
            for (part, (name, is_file, content)) in found.iter().zip(&written) {
                prop_assert_eq!(&*part.name, name);
                prop_assert_eq!(part.is_file, *is_file);
                prop_assert_eq!(part.content, content.as_bytes());
            }
        }

        #[test]
        fn any_bytes_will_do(body in "(--B|\r\n|[a-z:;=\"\\\\-]){0,60}", kind in ".{0,40}") {
            let _ = (parts(body.as_bytes(), "B"), boundary(&kind));
        }
    }
}
