//! The predicate of a delete: `key="value" AND ...`.

/// The pairs that all have to be equal.
///
/// # Errors
/// What is wrong, as text: anything but `=` and AND.
pub(super) fn equalities(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (key, after) = word(rest)?;
        let after = after.trim_start();
        let after = after
            .strip_prefix('=')
            .filter(|after| !after.starts_with('~'))
            .ok_or_else(|| format!("expected = behind {key:?}"))?;
        let (value, after) = word(after.trim_start())?;
        pairs.push((key, value));
        rest = after.trim_start();
        if rest.is_empty() {
            break;
        }
        let (and, after) = word(rest)?;
        if !and.eq_ignore_ascii_case("and") || rest.starts_with(['"', '\'']) {
            return Err(format!("expected AND, found {and:?}"));
        }
        rest = after.trim_start();
        if rest.is_empty() {
            return Err("nothing behind AND".to_owned());
        }
    }
    Ok(pairs)
}

/// A quoted text, or a word up to white space or a special character; and what follows it.
fn word(text: &str) -> Result<(String, &str), String> {
    let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
        let special = |c: char| c.is_whitespace() || "=!<>~()\"'".contains(c);
        let end = text.find(special).unwrap_or(text.len());
        if end == 0 {
            return Err(format!("unexpected {:?}", text.chars().next().unwrap_or(' ')));
        }
        return Ok((text[..end].to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            c if c == quote => return Ok((value, &text[at + 1..])),
            c => value.push(c),
        }
    }
    Err("a quote does not end".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        equalities(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn equalities_are_read() {
        assert_eq!(pairs(""), []);
        let two = [("_measurement", "m 1"), ("host", "a")];
        let two = two.map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(pairs("_measurement=\"m 1\" AND host=\"a\""), two);
        assert_eq!(pairs(" \"_measurement\" = 'm 1'  and  host = a "), two);
        assert_eq!(pairs(r#"k="a\"b""#), [("k".to_owned(), "a\"b".to_owned())]);
        assert_eq!(pairs("and=and AND b=c").len(), 2);
    }

    #[test]
    fn all_else_is_refused() {
        for text in [
            "k",
            "k=",
            "=v",
            "k!=v",
            "k=~v",
            "k>1",
            "k=v OR l=w",
            "k=v AND",
            "k=v l=w",
            "(k=v)",
            "k=\"v",
            "k==v",
            "k=v \"and\" l=w",
            "NOT k=v",
        ] {
            assert!(equalities(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,30}") {
            let _ = equalities(&text);
        }

        #[test]
        fn quoted_texts_come_through(value in ".{0,12}") {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            prop_assert_eq!(pairs(&format!("k=\"{quoted}\"")), [("k".to_owned(), value)]);
        }
    }
}
