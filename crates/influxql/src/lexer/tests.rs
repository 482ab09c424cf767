use proptest::prelude::*;

use super::*;

fn scan(text: &str) -> Vec<(Tok, usize, String)> {
    let mut lexer = Lexer::new(text);
    let mut tokens = Vec::new();
    loop {
        let t = lexer.next();
        let end = t.tok == Tok::Eof;
        tokens.push((t.tok, t.offset, t.text.into_owned()));
        if end {
            return tokens;
        }
    }
}

fn one(text: &str) -> (Tok, usize, String) {
    scan(text).remove(0)
}

#[test]
fn operators() {
    for (text, tok) in [
        ("+", Tok::Add),
        ("-", Tok::Sub),
        ("*", Tok::Mul),
        ("/", Tok::Div),
        ("%", Tok::Mod),
        ("&", Tok::BitAnd),
        ("|", Tok::BitOr),
        ("^", Tok::BitXor),
        ("=", Tok::Eq),
        ("!=", Tok::NotEq),
        ("<>", Tok::NotEq),
        ("=~", Tok::EqRegex),
        ("!~", Tok::NotEqRegex),
        ("<", Tok::Lt),
        ("<=", Tok::LtEq),
        (">", Tok::Gt),
        (">=", Tok::GtEq),
        ("(", Tok::LeftParen),
        (")", Tok::RightParen),
        (",", Tok::Comma),
        (";", Tok::Semicolon),
        (":", Tok::Colon),
        ("::", Tok::DoubleColon),
        (".", Tok::Dot),
    ] {
        assert_eq!(scan(text), [(tok, 0, String::new()), (Tok::Eof, text.len(), String::new())]);
    }
}

#[test]
fn literals() {
    for (text, tok, value) in [
        ("abc_1", Tok::Ident, "abc_1"),
        ("_", Tok::Ident, "_"),
        ("SeLect", Tok::Select, ""),
        ("\"select\"", Tok::Ident, "select"),
        ("\"a \\\"b\\\\\\n\"", Tok::Ident, "a \"b\\\n"),
        ("\"\"", Tok::Ident, ""),
        ("'it\\'s \u{e9}'", Tok::String, "it's \u{e9}"),
        ("''", Tok::String, ""),
        ("12", Tok::Integer, "12"),
        ("1.5", Tok::Number, "1.5"),
        (".5", Tok::Number, ".5"),
        ("1.", Tok::Number, "1"),
        ("1h30m", Tok::DurationVal, "1h30m"),
        ("5\u{b5}", Tok::DurationVal, "5\u{b5}"),
        ("5x", Tok::DurationVal, "5x"),
        ("$p", Tok::BoundParam, "$p"),
        ("$", Tok::BoundParam, "$"),
        ("$\"my p\"", Tok::BoundParam, "$my p"),
        ("$1", Tok::BoundParam, "$1"),
        ("-- c", Tok::Comment, ""),
        ("/* a * b **/", Tok::Comment, ""),
        (" \t\r\n", Tok::Whitespace, " \t\r\n"),
    ] {
        let tokens = scan(text);
        assert_eq!(tokens.len(), 2, "{text}: {tokens:?}");
        assert_eq!((tokens[0].0, tokens[0].2.as_str()), (tok, value), "{text}");
    }
}

#[test]
fn malformed() {
    for (text, tok, offset, value) in [
        ("#", Tok::Illegal, 0, "#"),
        ("!", Tok::Illegal, 0, "!"),
        ("\u{e9}", Tok::Illegal, 0, "\u{e9}"),
        ("\0", Tok::Illegal, 0, "\0"),
        ("/* a", Tok::Illegal, 0, ""),
        ("'abc", Tok::BadString, 0, "abc"),
        ("'a\\nb\nc'", Tok::BadString, 0, "a\nb"),
        ("\"abc", Tok::BadString, 0, "abc"),
        ("'a\\qb'", Tok::BadEscape, 3, "\\q"),
        ("'a\\\u{e9}'", Tok::BadEscape, 3, "\\\u{e9}"),
        ("'a\\", Tok::BadEscape, 3, "\\"),
        ("$\"a", Tok::BadString, 0, "$a"),
    ] {
        assert_eq!(one(text), (tok, offset, value.to_owned()), "{text}");
    }
}

#[test]
fn a_string_is_placed_at_the_character_before_it() {
    assert_eq!(scan("a 'b'")[2].1, 1);
    assert_eq!(scan("a \"b\"")[2].1, 2);
    assert_eq!(scan("a \"b")[2].1, 1);
}

#[test]
fn the_end_moves_when_a_word_ran_into_it() {
    assert_eq!(scan("a").pop(), Some((Tok::Eof, 2, String::new())));
    assert_eq!(scan("5").pop(), Some((Tok::Eof, 1, String::new())));
    assert_eq!(scan("'x'").pop(), Some((Tok::Eof, 3, String::new())));
}

#[test]
fn regexes() {
    let regex = |text| {
        let t = Lexer::new(text).regex();
        (t.tok, t.text.into_owned())
    };
    assert_eq!(regex("/a.b/ x"), (Tok::Regex, "a.b".to_owned()));
    assert_eq!(regex("//"), (Tok::Regex, String::new()));
    assert_eq!(regex(r"/a\/b\d/"), (Tok::Regex, r"a/b\d".to_owned()));
    assert_eq!(regex(r"/a\\/b/"), (Tok::Regex, r"a\/b".to_owned()));
    assert_eq!(regex("/a"), (Tok::BadRegex, String::new()));
    assert_eq!(regex("/a\n/"), (Tok::BadRegex, String::new()));
    assert_eq!(regex("/a\\"), (Tok::BadRegex, String::new()));
}

proptest! {
    #[test]
    fn any_text_ends(text in any::<String>()) {
        let tokens = scan(&text);
        prop_assert!(tokens.len() <= text.len() + 1);
    }

    #[test]
    fn any_regex(text in "/(\\PC|[\\\\/\\r\\n]){0,20}") {
        let _ = Lexer::new(&text).regex();
    }
}
