//! Rows of many series, the first ones or all, are those of all rows in order, whatever few of them are looked at together.

#[path = "support/database.rs"]
mod support;

use model::{Budget, Scalar};
use proptest::prelude::*;
use query::QueryTuning;
use store::reference::ReferenceOptions;
use store::testing::Row;
use support::Database;

/// Rows of series with two tags, the first of which several have in common and either of which some lack, at times many of
/// which are the same.
fn rows() -> impl Strategy<Value = Vec<Row>> {
    let text = prop::option::weighted(0.9, any::<bool>());
    let row = (0..4u8, 0..6u8, 0i64..8, prop::option::weighted(0.8, 0i64..9), any::<bool>(), text);
    let row = row.prop_map(|(group, host, time, value, is_even, text)| {
        let mut fields = vec![("b", Scalar::Boolean(is_even))];
        fields.extend(text.map(|is_u| ("s", Scalar::String(["u", "v"][usize::from(is_u)].into()))));
        fields.extend(value.map(|value| ("i", Scalar::Integer(value))));
        let tag = |key: &str, text: u8| (text > 0).then(|| format!(",{key}={text}"));
        let tags = [tag("g", group), tag("h", host)].into_iter().flatten();
        let series = format!("m{}", tags.collect::<String>());
        Row::new(&series, &fields, time * 10 + i64::from(is_even))
    });
    prop::collection::vec(row, 1..120)
}

fn query() -> impl Strategy<Value = String> {
    let fields = prop::sample::select(vec!["*", "i", "g, i", "h, i", "i, g", "g, h, s", "s, i"]);
    let time = prop::sample::select(vec![
        "time < 1000",
        "time >= 11 AND time < 60",
        "time >= 0 AND time < 1",
        "time > 90 AND time < 95",
        "time < 1000 AND g != '1'",
        "time < 1000 AND i > 4",
        "time < 70 AND b = true",
    ]);
    let order = prop::sample::select(vec!["", " ORDER BY time DESC"]);
    let group = prop::sample::select(vec!["", "", " GROUP BY g"]);
    let fill = prop::sample::select(vec!["", " fill(previous)", " fill(7)"]);
    let limit = prop_oneof![
        3 => (1u64..8, 0u64..4).prop_map(|(limit, offset)| format!(" LIMIT {limit} OFFSET {offset}")),
        1 => Just(String::new()),
    ];
    (fields, time, group, order, fill, limit).prop_map(
        |(fields, time, group, order, fill, limit)| {
            format!("SELECT {fields} FROM m WHERE {time}{group}{fill}{order}{limit}")
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 600,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn first_rows_are_those_of_all_rows(
        rows in rows(), query in query(),
        (first, gathered) in (1u64..9, 8u64..40),
        (rows_per_series, ends) in any::<(bool, bool)>(),
        first_series in prop::sample::select(vec![1usize, 1000]),
    ) {
        let plain = Database::new(ReferenceOptions::default());
        plain.write_rows(&rows);
        let want = plain.short(&query);
        prop_assert!(!want.starts_with("error"), "{} {}", query, want);

        let options = ReferenceOptions { rows_per_series, ends, ..ReferenceOptions::default() };
        let mut other = Database::new(options);
        other.write_rows(&rows);
        other.context.tuning = QueryTuning {
            first_slice_rows: first,
            first_series,
            gather_rows: gathered,
            ..other.context.tuning
        };
        prop_assert_eq!(other.short(&query), want, "{}", query);
    }
}

/// Rows that do not fit into memory together are read in slices that do.
#[test]
fn rows_too_many_for_memory_are_read_in_slices() {
    let mut database = Database::new(ReferenceOptions::default());
    let row = |at: i64| {
        let fields = [("i", Scalar::Integer(at)), ("f", Scalar::Float(at as f64))];
        // All of a week, which is as long as a partition: estimates of the rows in a slice are good.
        Row::new(&format!("m,host={}", at % 7), &fields, at * 30_000_000_000)
    };
    database.write_rows(&(0..20_000).map(row).collect::<Vec<_>>());
    let (query, all) = ("SELECT i, f FROM m WHERE i >= 0", database.context.tuning);
    let want = database.short(query);
    database.context.budget = Budget::new("query", 600_000);
    for is_sliced in [false, true] {
        let first_slice_rows = if is_sliced { 100 } else { 20_000 };
        database.context.tuning = QueryTuning { first_slice_rows, gather_rows: 20_000, ..all };
        let got = database.short(query);
        assert_eq!(got == want, is_sliced, "{}", &got[..got.len().min(200)]);
    }
}
