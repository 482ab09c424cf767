//! Case tables by statement are in `tests/*.txt`.

mod arbitrary;
mod deep;

use proptest::prelude::*;

use super::*;
use crate::Param;

fn parse(text: &str) -> Result<Query> {
    parse_query(text, &Params::new())
}

/// What `text` prints as, or why it is refused.
fn outcome(text: &str) -> String {
    match parse(text) {
        Ok(query) => {
            let printed: Vec<String> = query.statements.iter().map(ToString::to_string).collect();
            format!("= {}", printed.join(" ;; "))
        }
        Err(e) => format!("! {e}"),
    }
}

fn check_reads_back(text: &str) {
    let Ok(query) = parse(text) else { return };
    let printed = query.to_string();
    if !printed.contains("[REDACTED]") {
        assert_eq!(parse(&printed).as_ref(), Ok(&query), "{text} printed as {printed}");
    }
}

fn check_table(table: &str, cases_min: usize) {
    let mut lines = table.lines().filter(|line| !line.starts_with('#'));
    let mut cases = 0;
    while let (Some(text), Some(expected)) = (lines.next(), lines.next()) {
        assert_eq!(outcome(text).trim_end(), expected.trim(), "{text}");
        check_reads_back(text);
        cases += 1;
    }
    assert!(cases >= cases_min, "only {cases} cases");
}

#[test]
fn select() {
    check_table(include_str!("tests/select.txt"), 200);
}

#[test]
fn show() {
    check_table(include_str!("tests/show.txt"), 100);
}

#[test]
fn define() {
    check_table(include_str!("tests/define.txt"), 150);
}

#[test]
fn user() {
    check_table(include_str!("tests/user.txt"), 50);
}

#[test]
fn lines_and_characters_beyond_ascii() {
    for (text, expected) in [
        ("SELECT\n  a\nFROM\n  'm'", "! found m, expected identifier at line 4, char 2"),
        ("SELECT a\r\nFROM b c", "! found c, expected ; at line 2, char 8"),
        (
            "SELECT a\nFROM m WHERE\nx = 'open\nfoo'",
            "! found open, expected identifier, string, number, bool at line 3, char 4",
        ),
        ("SELECT x -- c\n FROM m", "= SELECT x FROM m"),
        ("SELECT x /* c\n */ FROM m", "= SELECT x FROM m"),
        (
            "SELECT \u{e9} FROM m",
            "! found \u{e9}, expected identifier, string, number, bool at line 1, char 8",
        ),
        ("SELECT \"\u{e9}\", b c FROM m", "! found c, expected FROM at line 1, char 15"),
        ("SELECT '\u{e9}' c FROM m", "! found c, expected FROM at line 1, char 12"),
        ("SELECT 5\u{b5} FROM m", "= SELECT 5u FROM m"),
        ("SELECT a\0 FROM m", "! found \0, expected FROM at line 1, char 9"),
    ] {
        assert_eq!(outcome(text), expected, "{text:?}");
    }
}

#[test]
fn where_the_text_of_influxdb_could_not_be_read_back() {
    for (text, expected) in [
        ("SELECT 0.0001, 1.23456 FROM m", "= SELECT 0.0001, 1.23456 FROM m"),
        ("SELECT a / -b FROM m", "= SELECT a / (-1 * b) FROM m"),
        ("SELECT a * -b * -c FROM m", "= SELECT a * (-1 * b) * (-1 * c) FROM m"),
        ("SELECT DISTINCT \"a b\" FROM m", "= SELECT DISTINCT \"a b\" FROM m"),
        ("SELECT a FROM \"\"", "= SELECT a FROM \"\""),
        ("SELECT \"\" FROM m", "= SELECT \"\" FROM m"),
        ("SELECT a INTO \"\" FROM m", "= SELECT a INTO \"\" FROM m"),
        ("SELECT a FROM m fill(-0.0)", "= SELECT a FROM m fill(0)"),
        (
            "SELECT a FROM m fill(99999999999999999999.0)",
            "= SELECT a FROM m fill(100000000000000000000.0)",
        ),
        ("CREATE DATABASE d WITH DURATION 1500ms", "= CREATE DATABASE d WITH DURATION 1500ms"),
    ] {
        assert_eq!(outcome(text), expected, "{text}");
        check_reads_back(text);
    }
}

#[test]
fn what_a_subquery_may_not_have() {
    assert_eq!(
        outcome("SELECT a FROM (SELECT b INTO c FROM d)"),
        "! found INTO, expected FROM at line 1, char 25"
    );
}

#[test]
fn numbers_out_of_range() {
    let text = format!("SELECT {}.0 FROM m", "9".repeat(400));
    assert_eq!(outcome(&text), "! unable to parse number at line 1, char 8");
}

#[test]
fn lists_of_statements() {
    for (text, expected) in [
        ("", "= "),
        (" ;; ; ", "= "),
        ("SHOW USERS", "= SHOW USERS"),
        (";SHOW USERS;;SHOW QUERIES;", "= SHOW USERS ;; SHOW QUERIES"),
        ("SHOW USERS SHOW QUERIES", "! found SHOW, expected ; at line 1, char 12"),
        (
            "SHOW USERS; foo",
            "! found foo, expected SELECT, DELETE, SHOW, CREATE, DROP, EXPLAIN, GRANT, REVOKE, ALTER, SET, KILL at line 1, char 13",
        ),
    ] {
        assert_eq!(outcome(text), expected, "{text}");
        check_reads_back(text);
    }
}

#[test]
fn one_statement_or_expression() {
    let params = Params::new();
    let error = |e: ParseError| e.to_string();
    assert!(parse_statement("SHOW USERS", &params).is_ok());
    assert_eq!(
        parse_statement("SHOW USERS;", &params).map_err(error),
        Err("found ;, expected EOF at line 1, char 11".to_owned())
    );
    assert!(parse_expr(" a + 1 -- c", &params).is_ok());
    assert_eq!(
        parse_expr("a b", &params).map_err(error),
        Err("found b, expected EOF at line 1, char 3".to_owned())
    );
}

fn check_bound(text: &str, value: Param, expected: &str) {
    let params = Params::from_iter([("x".to_owned(), value)]);
    let actual = match parse_query(text, &params) {
        Ok(query) => format!("= {query}"),
        Err(e) => format!("! {e}"),
    };
    assert_eq!(actual, expected, "{text}");
}

#[test]
fn bound_parameters() {
    let string = |s: &str| Param::String(s.to_owned());
    let ident = |s: &str| Param::Identifier(s.to_owned());
    let regex = |s: &str| Param::Regex(s.to_owned());
    let duration = |s: &str| Param::Duration(s.to_owned());
    for (text, value, expected) in [
        ("SELECT $x FROM m", Param::Integer(5), "= SELECT 5 FROM m"),
        ("SELECT $x FROM m", Param::Integer(-5), "= SELECT -5 FROM m"),
        ("SELECT - $x FROM m", Param::Integer(-5), "= SELECT 5 FROM m"),
        ("SELECT $x FROM m", Param::Float(1.0), "= SELECT 1.000 FROM m"),
        ("SELECT $x FROM m", Param::Boolean(true), "= SELECT true FROM m"),
        ("SELECT $x FROM m", ident("select"), "= SELECT \"select\" FROM m"),
        ("SELECT $x(a) FROM m", ident("MEAN"), "= SELECT mean(a) FROM m"),
        ("SELECT a::$x FROM m", ident("float"), "= SELECT a::float FROM m"),
        ("SELECT $x FROM m", regex("b"), "= SELECT /b/ FROM m"),
        ("SELECT count($x) FROM m", regex("b"), "= SELECT count(/b/) FROM m"),
        ("SELECT a FROM $x", ident("a b"), "= SELECT a FROM \"a b\""),
        ("SELECT a FROM d.r.$x", ident("m"), "= SELECT a FROM d.r.m"),
        ("SELECT a FROM $x", regex("a/b"), "= SELECT a FROM /a\\/b/"),
        ("SELECT a FROM m WHERE b =~ $x", regex("a/b"), "= SELECT a FROM m WHERE b =~ /a\\/b/"),
        (
            "SELECT a FROM m WHERE b = $x",
            string("' OR 1=1"),
            "= SELECT a FROM m WHERE b = '\\' OR 1=1'",
        ),
        (
            "SELECT a FROM m GROUP BY time($x)",
            duration("1h30m"),
            "= SELECT a FROM m GROUP BY time(90m)",
        ),
        (
            "SELECT a FROM m GROUP BY time($x)",
            duration("-1h"),
            "= SELECT a FROM m GROUP BY time(-1h)",
        ),
        (
            "SELECT a FROM m GROUP BY time($x)",
            Param::duration_ns(60_000_000_000),
            "= SELECT a FROM m GROUP BY time(1m)",
        ),
    ] {
        check_bound(text, value, expected);
    }
    let params = Params::from_iter([("x y".to_owned(), Param::Integer(1))]);
    assert!(parse_query("SELECT $\"x y\" FROM m", &params).is_ok());
}

#[test]
fn bound_parameters_that_do_not_fit() {
    let string = |s: &str| Param::String(s.to_owned());
    let regex = |s: &str| Param::Regex(s.to_owned());
    let duration = |s: &str| Param::Duration(s.to_owned());
    for (text, value, expected) in [
        ("SELECT a FROM m GROUP BY time($x)", duration("x"), "! invalid duration"),
        ("SELECT a FROM m LIMIT $x", Param::Integer(3), "= SELECT a FROM m LIMIT 3"),
        ("SELECT a FROM m LIMIT $x", Param::Integer(-5), "! LIMIT must be >= 0 at line 1, char 23"),
        (
            "SELECT a FROM m WHERE b =~ $x",
            string("a"),
            "! found a, expected regex at line 1, char 28",
        ),
        ("SELECT a FROM d.r.$x", regex("m"), "! found m, expected identifier at line 1, char 19"),
        ("SELECT $y FROM m", Param::Integer(5), "! missing parameter: y"),
        ("SELECT $ FROM m", Param::Integer(5), "! empty bound parameter"),
        (
            "SELECT a FROM $y",
            Param::Integer(5),
            "! found $y, expected identifier at line 1, char 15",
        ),
        (
            "KILL QUERY $x",
            Param::Integer(-5),
            "! strconv.ParseUint: parsing \"-5\": invalid syntax at line 1, char 12",
        ),
        (
            "SELECT $x FROM m",
            Param::not_one_entry(),
            "! missing parameter: bound object parameter value must have exactly one entry",
        ),
        (
            "SELECT $x FROM m",
            Param::unsupported("<nil>"),
            "! missing parameter: unable to bind parameter with type <nil>",
        ),
    ] {
        check_bound(text, value, expected);
    }
}

#[test]
fn parameters_of_a_kind() {
    let string = || Param::String("s".to_owned());
    let invalid = |reason: &str| Param::Invalid(reason.to_owned());
    for (kind, value, expected) in [
        ("ident", string(), Param::Identifier("s".to_owned())),
        ("identifier", string(), Param::Identifier("s".to_owned())),
        ("regex", string(), Param::Regex("s".to_owned())),
        ("string", string(), string()),
        ("float", Param::Float(1.5), Param::Float(1.5)),
        ("number", Param::Integer(1), Param::Float(1.0)),
        ("int", Param::Integer(1), Param::Integer(1)),
        ("integer", Param::Integer(1), Param::Integer(1)),
        ("duration", string(), Param::Duration("s".to_owned())),
        ("duration", Param::Integer(1000), Param::Duration("1u".to_owned())),
        ("ident", Param::Integer(1), invalid("identifier must be a string value")),
        ("regex", Param::Integer(1), invalid("regex literal must be a string value")),
        ("string", Param::Integer(1), invalid("string literal must be a string value")),
        ("float", string(), invalid("number literal must be a float value")),
        ("int", Param::Float(1.5), invalid("integer literal must be an integer value")),
        (
            "duration",
            Param::Boolean(true),
            invalid("duration literal must be a string or integer value"),
        ),
        ("foo", string(), invalid("unknown bind object type: foo")),
        ("int", invalid("first"), invalid("first")),
    ] {
        assert_eq!(Param::of_kind(kind, value), expected, "{kind}");
    }
}

#[test]
fn what_a_select_tells_about_itself() {
    let select = |text: &str| match parse(text).expect("valid").statements.remove(0) {
        Statement::Select(select) => select,
        other => panic!("{other}"),
    };
    assert!(select("SELECT a + 1 FROM m").is_raw());
    assert!(!select("SELECT a, 1 + mean(b) FROM m").is_raw());
    assert!(select("SELECT a FROM m").time_ascending());
    assert!(select("SELECT a FROM m ORDER BY ASC").time_ascending());
    assert!(!select("SELECT a FROM m ORDER BY time DESC").time_ascending());
    assert!(select("SELECT count(/x/) FROM m").has_field_wildcard());
    assert!(!select("SELECT a FROM m GROUP BY *").has_field_wildcard());
    assert!(select("SELECT a FROM m GROUP BY a, *").has_dimension_wildcard());
    assert!(!select("SELECT * FROM m GROUP BY a").has_dimension_wildcard());
    let interval = |dims: &str| {
        let select = select(&format!("SELECT a FROM m GROUP BY {dims}"));
        select.group_by_interval().map_err(|e| e.to_string())
    };
    assert_eq!(interval("a, time(1s, 2s)"), Ok(Some(1_000_000_000)));
    assert_eq!(interval("a"), Ok(None));
    assert_eq!(interval("time()"), Err("time dimension expected 1 or 2 arguments".to_owned()));
    assert_eq!(interval("time(5)"), Err("time dimension must have duration argument".to_owned()));
}

#[test]
fn a_password_is_never_shown() {
    let query = parse("CREATE USER u WITH PASSWORD 'secret'; SET PASSWORD FOR u = 'secret'");
    assert!(!format!("{query:?}").contains("secret"));
    assert!(!query.expect("valid").to_string().contains("secret"));
}

/// Texts that once printed as something else.
#[test]
fn what_fuzzing_found() {
    crate::fuzzing::parse(b"SELECT v INTO \"\".:MEASUREMENT FROM m");
}

/// Words and marks of the language, joined at random: gets deeper into the grammar than arbitrary characters.
fn salad() -> impl Strategy<Value = String> {
    let words: Vec<&'static str> = "SELECT FROM WHERE GROUP BY time ( ) , . : :: ; * / + - = != =~ < > AND OR a b 'x' \"y z\" /re/ 1 1.5 \
        1h INTO AS fill none LIMIT ORDER DESC tz SHOW TAG KEYS VALUES WITH KEY IN ON CREATE DATABASE DURATION RETENTION POLICY \
        REPLICATION SHARD CONTINUOUS QUERY BEGIN END DISTINCT DROP SERIES MEASUREMENT DELETE $p -- /* */ ' \" \\ \n"
        .split(' ')
        .collect();
    let sep = prop_oneof![9 => Just(" "), 1 => Just("")];
    prop::collection::vec((prop::sample::select(words), sep), 0..25)
        .prop_map(|parts| parts.iter().flat_map(|(word, sep)| [*word, *sep]).collect())
}

proptest! {
    #[test]
    fn any_text(text in any::<String>()) {
        crate::fuzzing::parse(text.as_bytes());
    }

    #[test]
    fn any_words(text in salad()) {
        crate::fuzzing::parse(text.as_bytes());
        crate::fuzzing::parse(format!("SELECT {text}").as_bytes());
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        crate::fuzzing::parse(&bytes);
    }
}
