use proptest::prelude::*;

use super::*;
use crate::time::Utc;
use crate::{Params, parse_expr};

const NOW_NS: i64 = 1_000_000_000_000;
const HOUR_NS: i64 = 3_600_000_000_000;

fn split_text(text: &str) -> Result<(Option<String>, TimeRange), String> {
    let expr = parse_expr(text, &Params::new()).unwrap_or_else(|e| panic!("{text}: {e}"));
    split_condition(&expr, NOW_NS, &Utc)
        .map(|(rest, range)| (rest.map(|e| e.to_string()), range))
        .map_err(|e| e.to_string())
}

fn check(text: &str, rest: Option<&str>, min_ns: Option<i64>, max_ns: Option<i64>) {
    let expected = (rest.map(str::to_owned), TimeRange { min_ns, max_ns });
    assert_eq!(split_text(text), Ok(expected), "{text}");
}

#[test]
fn operators_and_sides() {
    check("time = 10", None, Some(10), Some(10));
    check("time > 10", None, Some(11), None);
    check("time >= 10", None, Some(10), None);
    check("time < 10", None, None, Some(9));
    check("time <= 10", None, None, Some(10));
    check("10 < time", None, Some(11), None);
    check("10 <= time", None, Some(10), None);
    check("10 > time", None, None, Some(9));
    check("10 >= time", None, None, Some(10));
    check("10 = time", None, Some(10), Some(10));
    check("TIME > 10", None, Some(11), None);
    check("\"time\" > 10", None, Some(11), None);
}

#[test]
fn operands() {
    check("time > 1h", None, Some(HOUR_NS + 1), None);
    check("time >= now() - 1h", None, Some(NOW_NS - HOUR_NS), None);
    check("time >= now() - (30m + 30m)", None, Some(NOW_NS - HOUR_NS), None);
    check("time >= (now() - 1h)", None, Some(NOW_NS - HOUR_NS), None);
    check("time >= '1970-01-01'", None, Some(0), None);
    check("time >= '1970-01-01 01:00:00'", None, Some(HOUR_NS), None);
    check("time >= '1970-01-01T01:00:00Z' + 1h", None, Some(2 * HOUR_NS), None);
    check("time < 10.9", None, None, Some(9));
    check("time > -5", None, Some(-4), None);
    check("time > 9223372036854775807", None, Some(i64::MAX), None);
    check("time < -9223372036854775808", None, None, Some(i64::MIN));
}

#[test]
fn everything_about_time_is_taken_out_and_intersected() {
    check("time > 10 AND time < 20", None, Some(11), Some(19));
    check("time > 10 OR time < 20", None, Some(11), Some(19));
    check("time > 10 AND time > 12 AND time > 11", None, Some(13), None);
    check("time < 20 AND time <= 15", None, None, Some(15));
    check("host = 'a' AND time > 10", Some("host = 'a'"), Some(11), None);
    check("host = 'a' OR time > 10", Some("host = 'a'"), Some(11), None);
    check("(host = 'a' AND time > 10) OR x > 1", Some("(host = 'a') OR x > 1"), Some(11), None);
    check("(time > 10)", None, Some(11), None);
    check(
        "(host = 'a' OR host = 'b') AND time > 10",
        Some("host = 'a' OR host = 'b'"),
        Some(11),
        None,
    );
    check(
        "a = 1 AND (b = 2 OR time > 10 OR c = 3)",
        Some("a = 1 AND (b = 2 OR c = 3)"),
        Some(11),
        None,
    );
}

#[test]
fn the_rest_is_folded() {
    check("x > 1 + 2", Some("x > 3"), None, None);
    check("x > now() - 1s", Some("x > '1970-01-01T00:16:39Z'"), None, None);
    check("true", None, None, None);
    check("false", Some("false"), None, None);
    check("1 = 1", None, None, None);
    check("1 = 2 AND time > 10", Some("false"), Some(11), None);
    check("true AND x = 1", Some("x = 1"), None, None);
    check("(x = 1)", Some("x = 1"), None, None);
    check("a + 1", Some("a + 1"), None, None);
}

#[test]
fn errors() {
    for (text, error) in [
        ("value", "invalid condition expression: value"),
        ("mean(value)", "invalid condition expression: mean(value)"),
        ("x = 1 AND 5", "invalid condition expression: 5"),
        ("'a'", "invalid condition expression: 'a'"),
        ("time != 10", "invalid time comparison operator: !="),
        ("time + 10", "invalid time comparison operator: +"),
        ("time = 'x'", "invalid operation: time and *influxql.StringLiteral are not compatible"),
        ("time > true", "invalid operation: time and *influxql.BooleanLiteral are not compatible"),
        ("time =~ /x/", "invalid operation: time and *influxql.RegexLiteral are not compatible"),
        ("time > x", "invalid operation: time and *influxql.VarRef are not compatible"),
        ("time > x + 1", "invalid operation: time and *influxql.BinaryExpr are not compatible"),
        (
            "time > 9223372036854775808",
            "invalid operation: time and *influxql.UnsignedLiteral are not compatible",
        ),
        ("time > '2000-13-01'", "invalid timestamp string"),
        ("time > '2000-01-01 nonsense'", "invalid timestamp string"),
        ("time < '9999-12-31'", "time 9999-12-31T00:00:00Z overflows time literal"),
        ("time > '1000-01-01T00:00:00.5Z'", "time 1000-01-01T00:00:00Z underflows time literal"),
    ] {
        assert_eq!(split_text(text), Err(error.to_owned()), "{text}");
    }
}

#[test]
fn ranges() {
    let range = |min_ns, max_ns| TimeRange { min_ns, max_ns };
    assert_eq!(range(None, None).min_or_earliest_ns(), -9_223_372_036_854_775_806);
    assert_eq!(range(None, None).max_or_latest_ns(), 9_223_372_036_854_775_806);
    assert!(!range(Some(1), Some(1)).is_empty());
    assert!(range(Some(2), Some(1)).is_empty());
    assert!(range(Some(i64::MAX), None).is_empty());
}

proptest! {
    /// A conjunction of time terms holds for exactly the instants of the range.
    #[test]
    fn a_conjunction_is_its_range(terms in prop::collection::vec((0_usize..5, -20_i64..20, any::<bool>()), 1..6), t in -25_i64..25) {
        let ops = [("<", ">"), ("<=", ">="), (">", "<"), (">=", "<="), ("=", "=")];
        let text: Vec<String> = terms
            .iter()
            .map(|(op, n, left)| match left {
                true => format!("time {} {n}", ops[*op].0),
                false => format!("{n} {} time", ops[*op].1),
            })
            .collect();
        let (rest, range) = split_text(&text.join(" AND ")).expect("valid");
        prop_assert_eq!(rest, None);
        let holds = terms.iter().all(|(op, n, _)| [t < *n, t <= *n, t > *n, t >= *n, t == *n][*op]);
        let inside = (range.min_or_earliest_ns()..=range.max_or_latest_ns()).contains(&t);
        prop_assert_eq!(inside, holds);
    }
}
