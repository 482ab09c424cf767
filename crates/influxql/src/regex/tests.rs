use proptest::prelude::*;
use regex::Regex;

use super::translate_regex;

fn compiled(source: &str) -> Regex {
    let translated = translate_regex(source).unwrap();
    Regex::new(&translated).unwrap_or_else(|error| panic!("{source} -> {translated}: {error}"))
}

#[test]
fn messages_are_those_of_go() {
    for (source, message) in [
        ("[", "missing closing ]: `[`"),
        ("x[a", "missing closing ]: `[a`"),
        ("(", "missing closing ): `(`"),
        ("(a|b", "missing closing ): `(a|b`"),
        (")", "unexpected ): `)`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a|*?", "missing argument to repetition operator: `*?`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("x{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{99999999999}", "invalid repeat count: `{99999999999}`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("\\y", "invalid escape sequence: `\\y`"),
        ("\\1", "invalid escape sequence: `\\1`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?<n>a)", "invalid or unsupported Perl syntax: `(?<`"),
        ("(?z)a", "invalid or unsupported Perl syntax: `(?z`"),
        ("(?P<n a)", "invalid named capture: `(?P<n a)`"),
        ("(?P<n->a)", "invalid named capture: `(?P<n->`"),
        ("\\pX", "invalid character class range: `\\pX`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
    ] {
        let error = translate_regex(source).unwrap_err().to_string();
        assert_eq!(error, format!("error parsing regexp: {message}"), "{source}");
    }
}

#[test]
fn what_differs_from_the_crate_keeps_its_meaning() {
    for (source, matches, other) in [
        ("^a{,2}$", "a{,2}", "aa"),
        ("^[[a]$", "[", "b"),
        ("^[a&&b]$", "&", "c"),
        ("^[]a]$", "]", "b"),
        ("^\\Qa.b\\E+$", "a.bbb", "axb"),
        ("^\\d$", "7", "\u{663}"),
        ("^\\w$", "_", "\u{e4}"),
        ("^\\W$", "\u{e4}", "a"),
        ("^[\\d\\s]$", " ", "a"),
        ("\\bb", "\u{e4}b", "ab"),
        ("^\\x{41}\\x42\\103$", "ABC", "abc"),
        ("^(?i:a)b$", "Ab", "AB"),
        ("(?P<x>a)\\.", "a.", "ab"),
        ("^\\<$", "<", ""),
        ("^[a\\-z]$", "-", "b"),
        ("^[+--]$", ",", "."),
        ("^#\\ x$", "# x", "#x"),
        ("^\\pL[[:^digit:]]$", "\u{e4}x", "\u{e4}1"),
        ("^(?)a??$", "a", "b"),
    ] {
        let regex = compiled(source);
        assert!(regex.is_match(matches), "{source} does not match {matches}");
        assert!(!regex.is_match(other), "{source} matches {other}");
    }
}

proptest! {
    /// Whatever is accepted compiles, unless it grows beyond the crate's limits.
    #[test]
    fn any_text_is_translated_or_refused(source in "[a-c(){}|*+?.^$\\[\\]\\\\:,0-3PpQEdwbx<>i&#~ \u{e4}-]{0,24}") {
        if let Ok(translated) = translate_regex(&source) {
            let compiled = Regex::new(&translated);
            let too_large = matches!(compiled, Err(regex::Error::CompiledTooBig(_)));
            prop_assert!(compiled.is_ok() || too_large, "{source} -> {translated}: {compiled:?}");
        }
    }

    #[test]
    fn a_quoted_text_matches_itself(text in "[ -~\u{e4}]{0,20}") {
        prop_assume!(!text.contains("\\E"));
        let quoted = compiled(&format!("^(?:\\Q{text}\\E)$"));
        prop_assert!(quoted.is_match(&text) || text.ends_with('\\'));
    }
}
