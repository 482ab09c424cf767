//! The first rows of many series are those of all rows in order, whatever few of them are looked at.

#[path = "support/database.rs"]
mod support;

use model::Scalar;
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
    ]);
    let order = prop::sample::select(vec!["", " ORDER BY time DESC"]);
    let fill = prop::sample::select(vec!["", " fill(previous)", " fill(7)"]);
    (fields, time, order, fill, 1u64..8, 0u64..4).prop_map(
        |(fields, time, order, fill, limit, offset)| {
            format!(
                "SELECT {fields} FROM m WHERE {time}{fill}{order} LIMIT {limit} OFFSET {offset}"
            )
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
        rows_per_series in any::<bool>(),
    ) {
        let plain = Database::new(ReferenceOptions::default());
        plain.write_rows(&rows);
        let want = plain.short(&query);
        prop_assert!(!want.starts_with("error"), "{} {}", query, want);

        let options = ReferenceOptions { rows_per_series, ..ReferenceOptions::default() };
        let mut other = Database::new(options);
        other.write_rows(&rows);
        other.context.tuning =
            QueryTuning { first_slice_rows: first, gather_rows: gathered, ..other.context.tuning };
        prop_assert_eq!(other.short(&query), want, "{}", query);
    }
}
