//! HAVING keeps what a query around the query would keep.

#[path = "support/database.rs"]
mod support;

use std::collections::BTreeSet;

use proptest::prelude::*;
use support::Database;

const LINES: &str = include_str!("scripts/mixed.txt");

fn database() -> Database {
    let (lines, _) = LINES.split_once("\n\n").expect("lines, then statements");
    let lines: Vec<&str> = lines.lines().filter(|line| !line.starts_with('#')).collect();
    Database::with_lines(&lines.join("\n"))
}

/// The times of the rows of an answer.
fn times(answer: &str) -> BTreeSet<String> {
    assert!(!answer.starts_with("error"), "{answer}");
    let rows = answer.lines().filter(|line| !line.contains(": time"));
    rows.map(|row| row.split(' ').take(1).collect()).collect()
}

fn select() -> impl Strategy<Value = (&'static str, &'static str)> {
    let selects = vec![
        ("mean(i) AS x, max(f) AS y", "GROUP BY time(40ns)"),
        ("mean(i) AS x, count(f) AS y", "GROUP BY time(25ns) fill(0)"),
        ("sum(i) AS x, sum(f) AS y", "GROUP BY time(30ns) fill(previous)"),
        ("max(f) - min(f) AS x, first(s) AS y", "GROUP BY time(20ns)"),
        ("i AS x, f AS y", ""),
        ("i + f AS x, s AS y", ""),
        ("derivative(mean(f), 1ns) AS x, mean(f) AS y", "GROUP BY time(50ns)"),
    ];
    prop::sample::select(selects)
}

fn condition() -> impl Strategy<Value = String> {
    let comparison = (
        prop::sample::select(vec!["x", "y"]),
        prop::sample::select(vec!["<", ">", ">=", "<=", "=", "!="]),
        prop::sample::select(vec!["0", "3", "-5.5", "x", "y", "'v'", "x * 2"]),
    );
    let comparison = comparison.prop_map(|(name, op, other)| format!("{name} {op} {other}"));
    let text = prop::sample::select(vec!["y =~ /u/", "y !~ /u/", "x =~ /1/"]);
    prop_oneof![
        4 => comparison.clone(),
        1 => text.prop_map(str::to_owned),
        2 => (comparison.clone(), comparison.clone()).prop_map(|(a, b)| format!("{a} AND {b}")),
        2 => (comparison.clone(), comparison).prop_map(|(a, b)| format!("({a} OR {b})")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn having_is_a_condition_on_a_subquery(
        (fields, group) in select(),
        condition in condition(),
        h in prop::sample::select(vec!["a", "b", "c"]),
    ) {
        let database = database();
        let query =
            format!("SELECT {fields} FROM cpu WHERE h = '{h}' AND time >= 0 AND time < 400 {group}");
        let having = database.short(&format!("{query} HAVING {condition}"));
        let around = database.short(&format!("SELECT * FROM ({query}) WHERE {condition}"));
        prop_assert_eq!(times(&having), times(&around), "{} HAVING {}", query, condition);
    }
}

#[test]
fn a_grouped_tag_is_compared_as_a_subquery_compares_it() {
    let database = database();
    let query = "SELECT max(f) AS x FROM cpu GROUP BY h, r";
    for condition in ["r = ''", "r != ''", "r =~ /y/", "r !~ /y/", "h = 'a' OR r = 'x'", "h = r"] {
        let having = database.short(&format!("{query} HAVING {condition}"));
        let around = format!("SELECT * FROM ({query}) WHERE {condition} GROUP BY h, r");
        assert_eq!(having, database.short(&around), "{condition}");
    }
}
