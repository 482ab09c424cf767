//! Hiding passwords in text that goes to a log.
//!
//! Works on any text, also on one that does not parse: whatever follows `WITH PASSWORD`, `PASSWORD FOR .. =` or stands quoted behind
//! PASSWORD is hidden. Hiding too much is preferred to hiding too little.

use std::ops::Range;

/// `text` with every password replaced by `[REDACTED]`.
pub fn redact(text: &str) -> String {
    const WORD: &[u8] = b"password";
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let (mut copied, mut at) = (0, 0_usize);
    while let Some(window) = bytes.get(at..at + WORD.len()) {
        if !window.eq_ignore_ascii_case(WORD) {
            at += 1;
            continue;
        }
        let Range { start, end } = secret(text, at, at + WORD.len());
        if start < end {
            out.push_str(&text[copied..start]);
            out.push_str("[REDACTED]");
            copied = end;
        }
        at = end;
    }
    out.push_str(&text[copied..]);
    out
}

/// Where the password of the word PASSWORD at `start..end` stands. An empty range hides nothing; its end is where to go on, behind
/// everything that was looked at, so that the whole stays linear.
fn secret(text: &str, start: usize, end: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let Some(next) = skip_blank(text, end) else { return end..text.len() };
    if starts_with_word(&bytes[next..], b"for") && next > end {
        return secret_of_user(text, next + 3);
    }
    let quoted = bytes.get(next) == Some(&b'\'');
    if quoted || (next > end && follows_with(&text[..start])) {
        return next..value_end(bytes, next);
    }
    next..next
}

/// Where the password behind `PASSWORD FOR`, which ends at byte `at`, stands. Where the statement is malformed, all of the rest is
/// hidden.
fn secret_of_user(text: &str, at: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let Some(name) = skip_blank(text, at) else { return at..text.len() };
    let name_end = match bytes.get(name) {
        Some(b'"' | b'\'') => quoted_end(bytes, name),
        _ => {
            let is_name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
            name + bytes[name..].iter().take_while(|b| is_name(b)).count()
        }
    };
    if name_end == text.len() && name_end > name && !bytes[name_end - 1].is_ascii_alphanumeric() {
        // A quote that does not end may have swallowed the password.
        return name..name_end;
    }
    let Some(sign) = skip_blank(text, name_end) else { return name_end..text.len() };
    match bytes.get(sign) {
        None | Some(b';') => sign..sign,
        Some(b'=') => match skip_blank(text, sign + 1) {
            Some(value) => value..value_end(bytes, value),
            None => sign + 1..text.len(),
        },
        Some(_) => sign..text.len(),
    }
}

/// End of the value at byte `at`: behind its closing quote, or before white space or a semicolon.
fn value_end(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        Some(b'\'' | b'"') => quoted_end(bytes, at),
        _ => {
            let rest = &bytes[at.min(bytes.len())..];
            let len = rest.iter().position(|b| b.is_ascii_whitespace() || *b == b';');
            at + len.unwrap_or(rest.len())
        }
    }
}

/// Behind the quote that closes the one at byte `at`; the end of the text if none does.
fn quoted_end(bytes: &[u8], at: usize) -> usize {
    let quote = bytes[at];
    let mut at = at + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b if *b == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Skips white space and comments from byte `at`; `None` if a comment does not end.
fn skip_blank(text: &str, at: usize) -> Option<usize> {
    let mut rest = &text[at..];
    loop {
        rest = rest.trim_ascii_start();
        let comment_end = if let Some(comment) = rest.strip_prefix("/*") {
            comment.find("*/")? + 4
        } else if rest.starts_with("--") {
            rest.find('\n')? + 1
        } else {
            return Some(text.len() - rest.len());
        };
        rest = &rest[comment_end..];
    }
}

fn starts_with_word(bytes: &[u8], word: &[u8]) -> bool {
    bytes.len() > word.len()
        && bytes[..word.len()].eq_ignore_ascii_case(word)
        && !bytes[word.len()].is_ascii_alphanumeric()
}

/// Whether the word before is WITH.
fn follows_with(before: &str) -> bool {
    let word = before.trim_ascii_end().as_bytes();
    word.len() < before.len()
        && word.last_chunk::<4>().is_some_and(|w| w.eq_ignore_ascii_case(b"with"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hides_passwords() {
        for (text, expected) in [
            (
                "CREATE USER u WITH PASSWORD 'pw' WITH ALL PRIVILEGES",
                "CREATE USER u WITH PASSWORD [REDACTED] WITH ALL PRIVILEGES",
            ),
            ("create user u with password 'a b''c", "create user u with password [REDACTED]'c"),
            (
                "CREATE USER u WITH PASSWORD 'it\\'s'; x",
                "CREATE USER u WITH PASSWORD [REDACTED]; x",
            ),
            ("CREATE USER u WITH PASSWORD \"pw\"", "CREATE USER u WITH PASSWORD [REDACTED]"),
            ("CREATE USER u WITH PASSWORD pw;", "CREATE USER u WITH PASSWORD [REDACTED];"),
            ("CREATE USER u WITH PASSWORD'pw'", "CREATE USER u WITH PASSWORD[REDACTED]"),
            ("WITH PASSWORD /* c */ -- d\n 'pw'", "WITH PASSWORD /* c */ -- d\n [REDACTED]"),
            (
                "CREATE USER u WITH /* */ PASSWORD 'pw'",
                "CREATE USER u WITH /* */ PASSWORD [REDACTED]",
            ),
            ("CREATE USER u WITH PASSWORD 'open", "CREATE USER u WITH PASSWORD [REDACTED]"),
            ("SET PASSWORD FOR u = 'pw'", "SET PASSWORD FOR u = [REDACTED]"),
            ("set password for \"a=b\" ='pw'", "set password for \"a=b\" =[REDACTED]"),
            ("SET PASSWORD FOR u = '\u{e9} \u{e9}'", "SET PASSWORD FOR u = [REDACTED]"),
            (
                "SET PASSWORD FOR a = 'x'; SET PASSWORD FOR b = 'y'",
                "SET PASSWORD FOR a = [REDACTED]; SET PASSWORD FOR b = [REDACTED]",
            ),
        ] {
            assert_eq!(redact(text), expected, "{text}");
        }
    }

    #[test]
    fn hides_all_of_what_it_cannot_read() {
        for (text, expected) in [
            ("SET PASSWORD FOR a b = 'x'", "SET PASSWORD FOR a [REDACTED]"),
            ("SET PASSWORD FOR u = /* 'x'", "SET PASSWORD FOR u =[REDACTED]"),
            ("WITH PASSWORD -- 'x'", "WITH PASSWORD[REDACTED]"),
            ("SET PASSWORD FOR -- 'x'", "SET PASSWORD FOR[REDACTED]"),
            ("SET PASSWORD FOR \"u = 'x'", "SET PASSWORD FOR [REDACTED]"),
        ] {
            assert_eq!(redact(text), expected, "{text}");
        }
    }

    #[test]
    fn is_linear() {
        for part in ["password for ", "password--", "password/*", "password 'x", "password"] {
            let text = part.repeat(200_000);
            assert!(redact(&text).len() <= text.len() * 2);
        }
    }

    #[test]
    fn leaves_the_rest() {
        for text in [
            "",
            "SELECT password FROM users WHERE password = 'x'",
            "SHOW USERS",
            "SET PASSWORD FOR u",
            "SET PASSWORD FOR u; SELECT a = 1",
            "password -- \n",
            "WITH PASSWORD",
            "WITH PASSWORD ",
            "passwor",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    proptest! {
        #[test]
        fn any_text(text in "((?i)with|password|for|=|'|\"|\\\\| |;|--|/\\*|\\*/|\n|\u{e9}|x){0,30}") {
            let _ = redact(&text);
        }

        #[test]
        fn a_password_never_shows(password in "[a-z \"\\\\']{4,20}", space in "[ \t\n]{1,3}") {
            let quoted = crate::quote_string(&password).to_string();
            let text = format!("CREATE USER u WITH{space}PASSWORD{space}{quoted}");
            prop_assert_eq!(redact(&text), format!("CREATE USER u WITH{space}PASSWORD{space}[REDACTED]"));
        }
    }
}
