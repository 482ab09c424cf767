//! Joins give what nested loops over all rows give.

#[path = "support/database.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};

use model::Scalar;
use proptest::prelude::*;
use query::QueryTuning;
use store::reference::ReferenceOptions;
use store::testing::Row;
use support::Database;

/// The fields of each measurement.
const FIELDS: [(&str, &str); 3] = [("x", "y"), ("z", "w"), ("p", "q")];
const MEASUREMENTS: [&str; 3] = ["m", "n", "o"];

/// A stored row: the tags `h` and `r`, the time, two fields.
type Stored = (&'static str, &'static str, i64, Option<i64>, Option<i64>);
/// The tags that rows pair by, a time, and the values of all columns.
type Joined = (Vec<String>, i64, Vec<Option<i64>>);

fn stored() -> impl Strategy<Value = Stored> {
    let tag = |values: &[&'static str]| prop::sample::select(values.to_vec());
    let value = || prop::option::weighted(0.8, -9i64..9);
    (tag(&["a", "b", "c"]), tag(&["", "k", "l"]), 0i64..40, value(), value())
}

fn table() -> impl Strategy<Value = Vec<Stored>> {
    prop::collection::vec(stored(), 0..40).prop_map(|rows| {
        let distinct: BTreeMap<_, Stored> =
            rows.into_iter().map(|row| ((row.0, row.1, row.2), row)).collect();
        distinct.into_values().filter(|row| row.3.is_some() || row.4.is_some()).collect()
    })
}

fn database(tables: &[Vec<Stored>], tuning: QueryTuning) -> Database {
    let mut database = Database::new(ReferenceOptions::default());
    database.context.tuning = tuning;
    let mut rows = Vec::new();
    for ((table, name), fields) in tables.iter().zip(MEASUREMENTS).zip(FIELDS) {
        // A row beyond the times that are asked for, so that every tag and field is known.
        let known = ("z", "z", 1000, Some(1), Some(1));
        for (h, r, time, first, second) in table.iter().chain([&known]) {
            let r = if r.is_empty() { String::new() } else { format!(",r={r}") };
            let mut values = Vec::new();
            values.extend(first.map(|v| (fields.0, Scalar::Integer(v))));
            values.extend(second.map(|v| (fields.1, Scalar::Integer(v))));
            rows.push(Row::new(&format!("{name},h={h}{r}"), &values, *time));
        }
    }
    database.write_rows(&rows);
    database
}

/// The nested loops. `shown` says which of its two fields each side shows.
fn nested_loops(
    tables: &[Vec<Stored>],
    kinds: &[&str],
    using: &[&str],
    all_shown: &[(bool, bool)],
    times: &std::ops::Range<i64>,
) -> Vec<Joined> {
    let mut left: Vec<Joined> = Vec::new();
    for (at, (table, shown)) in tables.iter().zip(all_shown).enumerate() {
        let right: Vec<Joined> = table
            .iter()
            .filter(|row| times.contains(&row.2))
            .filter(|row| {
                let none_shown = *shown == (false, false);
                none_shown || (shown.0 && row.3.is_some()) || (shown.1 && row.4.is_some())
            })
            .map(|row| {
                let tag = |name: &&str| if *name == "h" { row.0 } else { row.1 }.to_owned();
                let first = shown.0.then_some(row.3);
                let values = first.into_iter().chain(shown.1.then_some(row.4)).collect();
                (using.iter().map(tag).collect(), row.2, values)
            })
            .collect();
        let shown_before = &all_shown[..at];
        let width = |shown: &(bool, bool)| usize::from(shown.0) + usize::from(shown.1);
        if at == 0 {
            left = right;
            continue;
        }
        let (kind, mut used, mut joined) = (kinds[at - 1], BTreeSet::new(), Vec::new());
        for (tags, time, values) in &left {
            let mut alone = true;
            for (number, row) in right.iter().enumerate() {
                if row.0 == *tags && row.1 == *time {
                    alone = false;
                    used.insert(number);
                    let both = values.iter().chain(&row.2).copied().collect();
                    joined.push((tags.clone(), *time, both));
                }
            }
            if alone && kind != "INNER" {
                let mut values = values.clone();
                values.resize(values.len() + width(shown), None);
                joined.push((tags.clone(), *time, values));
            }
        }
        if kind == "FULL" {
            let before = shown_before.iter().map(width).sum();
            for (number, row) in right.into_iter().enumerate() {
                if !used.contains(&number) {
                    let values = vec![None; before].into_iter().chain(row.2).collect();
                    joined.push((row.0, row.1, values));
                }
            }
        }
        left = joined;
    }
    left
}

/// The rows of an answer of whole numbers, as [`Joined`].
fn parsed(answer: &str) -> Vec<Joined> {
    assert!(!answer.starts_with("error"), "{answer}");
    let mut tags: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for line in answer.lines() {
        if let Some((title, _)) = line.split_once(": time") {
            let pairs = title.split(',').skip(1);
            tags = pairs.map(|pair| pair.split('=').nth(1).expect("a value").to_owned()).collect();
            continue;
        }
        let mut cells = line.split(' ');
        let time = cells.next().expect("a time").parse().expect("a number");
        let values =
            cells.map(|cell| (cell != "null").then(|| cell.parse().expect("a number"))).collect();
        rows.push((tags.clone(), time, values));
    }
    rows
}

fn sorted(mut rows: Vec<Joined>) -> Vec<Joined> {
    rows.sort_unstable();
    rows
}

#[derive(Clone, Debug)]
struct Case {
    tables: Vec<Vec<Stored>>,
    kinds: Vec<&'static str>,
    using: Vec<&'static str>,
    shown: Vec<(bool, bool)>,
    times: std::ops::Range<i64>,
    tuning: QueryTuning,
    /// Whether the sides are subqueries that select what is shown.
    nested: bool,
}

fn tuning() -> impl Strategy<Value = QueryTuning> {
    let default = QueryTuning::default();
    prop_oneof![
        Just(default),
        Just(QueryTuning { gather_rows: 4, first_slice_rows: 2, ..default }),
        Just(QueryTuning { gather_rows: 16, first_slice_rows: 1, grid_slots: 4, ..default }),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let kind = prop::sample::select(vec!["INNER", "LEFT", "FULL"]);
    let using = prop::sample::select(vec![vec![], vec!["h"], vec!["r"], vec!["h", "r"]]);
    let shown = prop::sample::select(vec![(true, true), (true, false), (false, true)]);
    let shown = prop::collection::vec(prop_oneof![5 => shown, 1 => Just((false, false))], 3);
    let times = (0i64..20, 10i64..40).prop_map(|(from, width)| from..from + width);
    let how = (tuning(), any::<bool>());
    let rest = (prop::collection::vec(kind, 2), using, shown, times, how);
    (prop::collection::vec(table(), 2..4), rest).prop_filter_map(
        "something is shown",
        |(tables, (mut kinds, using, mut shown, times, (tuning, nested)))| {
            kinds.truncate(tables.len() - 1);
            shown.truncate(tables.len());
            let any = shown.iter().any(|shown| *shown != (false, false));
            any.then_some(Case { tables, kinds, using, shown, times, tuning, nested })
        },
    )
}

impl Case {
    fn columns(&self) -> Vec<String> {
        let mut columns = Vec::new();
        for ((shown, fields), name) in self.shown.iter().zip(FIELDS).zip(MEASUREMENTS) {
            columns.extend(shown.0.then(|| format!("{name}1.{}", fields.0)));
            columns.extend(shown.1.then(|| format!("{name}1.{}", fields.1)));
        }
        columns
    }

    fn from(&self) -> String {
        let side = |at: usize| {
            let (name, fields) = (MEASUREMENTS[at], FIELDS[at]);
            let list = match self.shown[at] {
                (true, false) => fields.0.to_owned(),
                (false, true) => fields.1.to_owned(),
                _ => format!("{}, {}", fields.0, fields.1),
            };
            match self.nested {
                true => format!("(SELECT {list} FROM {name}) AS {name}1"),
                false => format!("{name} AS {name}1"),
            }
        };
        let mut from = side(0);
        for (at, kind) in self.kinds.iter().enumerate() {
            from += &format!(" {kind} JOIN {}", side(at + 1));
        }
        from + &format!(" USING ({})", self.using.join(", "))
    }

    fn condition(&self) -> String {
        format!("time >= {} AND time < {}", self.times.start, self.times.end)
    }

    fn group_by(&self) -> String {
        if self.using.is_empty() {
            return String::new();
        }
        format!(" GROUP BY {}", self.using.join(", "))
    }

    fn expected(&self) -> Vec<Joined> {
        nested_loops(&self.tables, &self.kinds, &self.using, &self.shown, &self.times)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_join_is_nested_loops(case in case(), descending in any::<bool>()) {
        let database = database(&case.tables, case.tuning);
        let order = if descending { " ORDER BY time DESC" } else { "" };
        let (columns, from) = (case.columns().join(", "), case.from());
        let (condition, group) = (case.condition(), case.group_by());
        let query = format!("SELECT {columns} FROM {from} WHERE {condition}{group}{order}");
        let got = parsed(&database.short(&query));
        let in_order = got.is_sorted_by(|a, b| {
            let times = if descending { a.1 >= b.1 } else { a.1 <= b.1 };
            a.0 != b.0 || times
        });
        prop_assert!(in_order, "{}: {:?}", query, got);
        let expected = sorted(case.expected());
        prop_assert_eq!(&sorted(got), &expected, "{}", query);
        // Measurements and subqueries join alike, and so does the join as a subquery.
        let around = format!("SELECT * FROM (SELECT {columns} FROM {from}) WHERE {condition}{group}");
        let got = parsed(&database.short(&around));
        prop_assert_eq!(got.len(), expected.len(), "{}", around);
    }

    #[test]
    fn conditions_choose_among_joined_rows(
        case in case(),
        first in prop::sample::select(vec![("<", 3i64), (">=", 0), ("=", 2), ("!=", 1)]),
        tag in prop::sample::select(vec!["", "a", "b", "k"]),
        how in 0u32..4,
    ) {
        let database = database(&case.tables, case.tuning);
        let columns = case.columns();
        let (name, last) = (&columns[0], columns.len() - 1);
        let (op, with) = first;
        let mut condition = match how {
            0 => format!("{name} {op} {with}"),
            1 => format!("{name} {op} {with} AND {} < 5", columns[last]),
            2 => format!("({name} {op} {with} OR {} < 5)", columns[last]),
            _ => format!("{name} {op} {}", columns[last]),
        };
        let by = case.using.last();
        if let Some(by) = by {
            condition += &format!(" AND {by} != '{tag}'");
        }
        let query = format!(
            "SELECT {} FROM {} WHERE {} AND {condition}{}",
            columns.join(", "), case.from(), case.condition(), case.group_by()
        );
        let holds = |a: Option<i64>, op: &str, b: Option<i64>| match (a, b) {
            (Some(a), Some(b)) => match op {
                "<" => a < b,
                ">=" => a >= b,
                "=" => a == b,
                _ => a != b,
            },
            _ => false,
        };
        let mut expected = case.expected();
        expected.retain(|(tags, _, values)| {
            let (a, b) = (values[0], values[last]);
            let chosen = match how {
                0 => holds(a, op, Some(with)),
                1 => holds(a, op, Some(with)) && holds(b, "<", Some(5)),
                2 => holds(a, op, Some(with)) || holds(b, "<", Some(5)),
                _ => holds(a, op, b),
            };
            chosen && tags.last().is_none_or(|value| value != tag)
        });
        let got = sorted(parsed(&database.short(&query)));
        prop_assert_eq!(got, sorted(expected), "{}", query);
    }

    #[test]
    fn functions_see_the_joined_rows(case in case()) {
        let database = database(&case.tables, case.tuning);
        let columns = case.columns();
        let calls: Vec<String> =
            columns.iter().map(|c| format!("sum({c}), count({c})")).collect();
        let group = if case.using.is_empty() { String::new() } else {
            format!(", {}", case.using.join(", "))
        };
        let query = format!(
            "SELECT {} FROM {} WHERE {} GROUP BY time(7ns){group} fill(none)",
            calls.join(", "), case.from(), case.condition()
        );
        let mut windows: BTreeMap<(Vec<String>, i64), Vec<Option<i64>>> = BTreeMap::new();
        for (tags, time, values) in case.expected() {
            let nothing = || [None, None].repeat(values.len());
            let window = windows.entry((tags, time / 7 * 7)).or_insert_with(nothing);
            for (at, value) in values.iter().enumerate() {
                if let Some(value) = value {
                    window[2 * at] = Some(window[2 * at].unwrap_or(0) + value);
                    window[2 * at + 1] = Some(window[2 * at + 1].unwrap_or(0) + 1);
                }
            }
        }
        windows.retain(|_, values| values.iter().any(Option::is_some));
        let expected: Vec<Joined> =
            windows.into_iter().map(|((tags, time), values)| (tags, time, values)).collect();
        let mut got = parsed(&database.short(&query));
        for (_, _, values) in &mut got {
            // count() of nothing is 0 beside other functions that have values.
            values.iter_mut().for_each(|v| *v = v.filter(|v| *v != 0));
        }
        let zeros = |rows: Vec<Joined>| -> Vec<Joined> {
            let clean = |(tags, time, values): Joined| {
                (tags, time, values.into_iter().map(|v| v.filter(|v| *v != 0)).collect())
            };
            rows.into_iter().map(clean).collect()
        };
        prop_assert_eq!(sorted(got), sorted(zeros(expected)), "{}", query);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn conditions_on_tags_choose_among_the_groups_of_subqueries(
        case in case(),
        function in prop::sample::select(vec!["max", "sum", "count", "first"]),
        fill in prop::sample::select(vec!["", " fill(0)", " fill(previous)"]),
        bounded in any::<bool>(),
        tag in prop::sample::select(vec!["", "a", "b", "k"]),
    ) {
        let Some(by) = case.using.last() else { return Ok(()) };
        let database = database(&case.tables, case.tuning);
        let side = |name: &str, field: &str| {
            format!("(SELECT {function}({field}) AS v FROM {name} GROUP BY time(9ns){fill}) AS {name}1")
        };
        let time =
            if bounded { case.condition() } else { format!("time < {}", case.times.end) };
        let query = |condition: &str| {
            format!(
                "SELECT m1.v, n1.v FROM {} {} JOIN {} USING ({}) WHERE {time}{condition}{}",
                side("m", "x"), case.kinds[0], side("n", "z"), case.using.join(", "),
                case.group_by()
            )
        };
        let mut all = parsed(&database.short(&query("")));
        all.retain(|(tags, ..)| tags.last().is_none_or(|value| value != tag));
        let condition = format!(" AND {by} != '{tag}'");
        let got = parsed(&database.short(&query(&condition)));
        prop_assert_eq!(sorted(got), sorted(all), "{}", query(&condition));
    }
}

#[test]
fn pairs_beyond_the_memory_are_refused() {
    let mut database = Database::new(ReferenceOptions::default());
    let mut rows = Vec::new();
    for series in 0..2000 {
        rows.push(Row::new(&format!("m,h={series}"), &[("x", Scalar::Integer(1))], 0));
    }
    database.write_rows(&rows);
    let query = "SELECT count(a.x) FROM m AS a JOIN m AS b USING ()";
    assert_eq!(database.short(query), "a_b: time count\n0 4000000");
    database.context.budget = model::Budget::new("query", 8 << 20);
    let answer = database.short(query);
    assert!(answer.starts_with("error: ") && answer.contains("limit exceeded"), "{answer}");
    database.context.budget = model::Budget::unlimited();
    database.context.interrupt.cancel();
    assert!(database.short(query).starts_with("error: "));
}
