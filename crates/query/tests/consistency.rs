//! The answer does not depend on how it is found: on what a store chooses to do with hints, on
//! sizes, on threads, on the chunks it is asked for in.

#[path = "support/database.rs"]
mod support;

use model::Scalar;
use proptest::prelude::*;
use query::QueryTuning;
use store::reference::{ReferenceOptions, SummaryMode};
use store::testing::Row;
use support::Database;

/// Rows with numbers of `-most` to `most`, the floats in quarters: the fewer there are the more are equal.
fn rows(most: i32) -> impl Strategy<Value = Vec<Row>> {
    let value = |name: &'static str, value: BoxedStrategy<Scalar>| {
        prop::option::of(value).prop_map(move |v| v.map(|v| (name, v)))
    };
    let fields = (
        value("i", (-most..most).prop_map(|v| Scalar::Integer(i64::from(v))).boxed()),
        // Of zeros there are two.
        value(
            "f",
            (-4 * most..4 * most)
                .prop_map(|v| Scalar::Float(if v == -1 { -0.0 } else { f64::from(v) / 4.0 }))
                .boxed(),
        ),
        value("b", any::<bool>().prop_map(Scalar::Boolean).boxed()),
        value(
            "s",
            prop::sample::select(vec!["u", "v", "w"])
                .prop_map(|s| Scalar::String(s.into()))
                .boxed(),
        ),
    );
    let key =
        prop::sample::select(vec!["m,h=a", "m,h=a,r=x", "m,h=b", "m,h=b,r=y", "n,h=a", "n,r=x"]);
    let row = (key, fields, -40i64..200).prop_map(|(key, (i, f, b, s), time)| {
        let mut fields: Vec<(&str, Scalar)> = [i, f, b, s].into_iter().flatten().collect();
        if fields.is_empty() {
            fields.push(("i", Scalar::Integer(0)));
        }
        Row::new(key, &fields, time)
    });
    prop::collection::vec(row, 1..60)
}

fn pick(texts: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(texts)
}

fn query() -> impl Strategy<Value = String> {
    let from = pick(&["m", "n", "m, n", "/m|n/", "m, m"]);
    let condition = pick(&[
        "",
        " AND i > 3",
        " AND f <= 2.5 AND h = 'a'",
        " AND (r = 'x' OR f > 0)",
        " AND h != 'a'",
        " AND i * 2 > f",
        " AND s = 'u'",
    ]);
    let time = pick(&["time < 150", "time >= 10 AND time < 150", "time > -30 AND time <= 97"]);
    let limit = pick(&["", "", " LIMIT 1", " LIMIT 3 OFFSET 2", " SLIMIT 1"]);
    let order = pick(&["", " ORDER BY time DESC"]);
    let raw = (
        pick(&["*", "i", "f, s", "i + f, h", "h, i", "f::integer, b"]),
        pick(&["", " GROUP BY h", " GROUP BY *"]),
        Just(""),
    );
    let aggregate = (
        pick(&[
            "count(i)",
            "mean(f), max(i)",
            "sum(i), spread(f), count(s)",
            "first(f), last(i)",
            "min(i), h",
            "max(f), *",
            "median(i), mode(s)",
            "percentile(f, 60)",
            "stddev(f)",
            "distinct(i)",
            "top(i, 2), h",
            "bottom(f, h, 2)",
            "integral(i, 1ns)",
            "last(f)",
            "first(i)",
            "first(b), last(s)",
            "last(*)",
            "last(f), last(s), last(b)",
            "first(i), first(b)",
            "last(b), i, h",
            "first(s), *",
            "count(distinct(i))",
            "count(*)",
        ]),
        pick(&[
            "",
            " GROUP BY h",
            " GROUP BY time(20ns)",
            " GROUP BY time(7ns, 3ns), h",
            " GROUP BY *, time(60ns)",
        ]),
        pick(&["", " fill(none)", " fill(previous)", " fill(3)", " fill(linear)"]),
    );
    let of_points = (
        pick(&[
            "difference(i), cumulative_sum(f)",
            "elapsed(s)",
            "moving_average(f, 3), count(i)",
            "non_negative_derivative(f, 1ns)",
            "non_negative_difference(i), elapsed(b)",
        ]),
        pick(&["", " GROUP BY h", " GROUP BY *"]),
        pick(&["", " fill(previous)", " fill(3)"]),
    );
    let of_windows = (
        pick(&[
            "derivative(mean(f), 1ns), max(i)",
            "difference(derivative(count(i), 1ns)), cumulative_sum(sum(i))",
            "exponential_moving_average(last(f), 3, 1)",
            "elapsed(first(s)) / 2",
        ]),
        pick(&[" GROUP BY time(20ns)", " GROUP BY time(7ns, 3ns), h"]),
        pick(&["", " fill(none)", " fill(previous)", " fill(3)", " fill(linear)"]),
    );
    let fields = prop_oneof![raw.boxed(), aggregate.boxed(), of_points.boxed(), of_windows.boxed()];
    let plain = (fields, from, time, condition, order, limit).prop_map(
        |((fields, group, fill), from, time, condition, order, limit)| {
            format!(
                "SELECT {fields} FROM {from} WHERE {time}{condition}{group}{fill}{order}{limit}"
            )
        },
    );
    let nested = (
        pick(&["max(q)", "q", "mean(q), count(q)", "*", "last(q), h"]),
        pick(&[
            "SELECT i + f AS q FROM m",
            "SELECT i AS q, h FROM m, n WHERE f > 0",
            "SELECT max(i) AS q FROM m WHERE time >= 0 AND time < 150 GROUP BY time(20ns), h",
            "SELECT q FROM (SELECT f AS q, i FROM m WHERE i > -10)",
        ]),
        pick(&["", " GROUP BY h", " GROUP BY time(50ns)"]),
        pick(&["", " AND q > 1", " AND h = 'a'"]),
    )
        .prop_map(|(fields, inner, group, condition)| {
            let group = if fields == "q" || fields == "*" {
                group.replace(" GROUP BY time(50ns)", "")
            } else {
                group.to_owned()
            };
            format!(
                "SELECT {fields} FROM ({inner}) WHERE time >= -20 AND time < 150{condition}{group}"
            )
        });
    prop_oneof![4 => plain.boxed(), 1 => nested.boxed()]
}

fn with(rows: &[Row], options: ReferenceOptions) -> Database {
    let database = Database::new(options);
    database.write_rows(rows);
    database
}

fn tiny() -> QueryTuning {
    QueryTuning {
        parallel_cells: 1,
        gather_rows: 2,
        first_slice_rows: 1,
        slice_series_rows: 1,
        first_series: 2,
        grid_slots: 2,
        state_bytes: 64,
        extreme_rows: 1,
        kept_rows: 5,
        window_rows: 7,
        window_series_rows: 1,
        extreme_series_rows: 4,
        beside_rows: 0,
    }
}

/// More than are looked for one by one.
const FIELDS: [&str; 14] =
    ["f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "fa", "fb", "fc", "fd"];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn answers_do_not_depend_on_the_way(
        rows in rows(20),
        query in query(),
        item_rows in 1usize..6,
        summaries in prop::sample::select(vec![
            SummaryMode::Never, SummaryMode::Always, SummaryMode::Mixed,
        ]),
        (filters, rows_per_series, joins_series, ends) in any::<(bool, bool, bool, bool)>(),
        (is_tiny, holds_groups) in any::<(bool, bool)>(),
        (threads, batch_rows) in (1usize..4, 1usize..20),
    ) {
        let want = with(&rows, ReferenceOptions::default()).short(&query);
        // Of the errors only this one is made on purpose.
        prop_assume!(!want.starts_with("error: limit ("));
        prop_assert!(!want.starts_with("error"), "{} {}", query, want);

        let options =
            ReferenceOptions { item_rows, summaries, filters, rows_per_series, joins_series, ends };
        let mut other = with(&rows, options);
        other.context.threads = threads;
        other.context.batch_rows = batch_rows;
        if is_tiny {
            other.context.tuning = tiny();
        }
        if is_tiny && holds_groups {
            other.context.tuning.state_bytes = QueryTuning::default().state_bytes;
        }
        prop_assert_eq!(other.short(&query), want, "{}", query);
    }

    #[test]
    fn the_point_of_an_extreme_does_not_depend_on_the_way(
        rows in (1i32..4).prop_flat_map(rows),
        (function, field) in (pick(&["max", "min"]), pick(&["i", "f"])),
        from in pick(&["m", "n"]),
        condition in pick(&[
            "", "", " WHERE h = 'a'", " WHERE time < 150", " WHERE time >= 10 AND time < 90 AND r = ''",
        ]),
        rest in pick(&["", " GROUP BY h", " ORDER BY time DESC", " LIMIT 1 OFFSET 1", " SLIMIT 1"]),
        item_rows in 1usize..6,
        summaries in prop::sample::select(vec![
            SummaryMode::Never, SummaryMode::Always, SummaryMode::Mixed,
        ]),
        (filters, rows_per_series, joins_series, ends) in any::<(bool, bool, bool, bool)>(),
        (extreme_series_rows, threads) in (0u64..12, 1usize..3),
    ) {
        let query = format!("SELECT {function}({field}) FROM {from}{condition}{rest}");
        let want = with(&rows, ReferenceOptions::default()).short(&query);
        prop_assert!(!want.starts_with("error"), "{} {}", query, want);

        let options =
            ReferenceOptions { item_rows, summaries, filters, rows_per_series, joins_series, ends };
        let mut other = with(&rows, options);
        other.context.threads = threads;
        other.context.tuning = QueryTuning { extreme_series_rows, ..tiny() };
        prop_assert_eq!(other.short(&query), want, "{}", query);
    }

    #[test]
    fn what_is_beside_a_point_does_not_depend_on_the_way(
        rows in (1i32..4).prop_flat_map(rows),
        point in pick(&[
            "max(i)", "min(f)", "max(b)", "first(i)", "last(f)", "last(b)", "percentile(i, 60)", "percentile(f, 5)",
            "top(i, 3)", "top(f, h, 2)", "bottom(f, 2)", "bottom(i, r, h, 3)", "sample(i, 1000)", "sample(b, 1000)",
        ]),
        beside in pick(&["s", "f, h", "*", "b, r, s", "i::float, s", "i * 2", "x, s"]),
        from in pick(&["m", "m", "n"]),
        condition in pick(&[
            "", "", " AND h = 'a'", " AND i > 0", " AND s = 'u' AND f < 1.5", " AND (r = 'x' OR i > 0)",
        ]),
        rest in pick(&[
            "", " GROUP BY h", " GROUP BY time(20ns)", " GROUP BY time(7ns, 3ns), r fill(none)", " GROUP BY *, time(60ns)",
        ]),
        order in pick(&["", "", " ORDER BY time DESC", " LIMIT 2", " SLIMIT 1"]),
        item_rows in 1usize..6,
        (filters, rows_per_series, joins_series, ends) in any::<(bool, bool, bool, bool)>(),
        threads in 1usize..3,
    ) {
        let times = "time >= -30 AND time < 150";
        let query = format!("SELECT {point}, {beside} FROM {from} WHERE {times}{condition}{rest}{order}");
        let mut first = with(&rows, ReferenceOptions::default());
        first.context.tuning.beside_rows = u64::MAX;
        let want = first.short(&query);

        let summaries = SummaryMode::Mixed;
        let options =
            ReferenceOptions { item_rows, summaries, filters, rows_per_series, joins_series, ends };
        let mut other = with(&rows, options);
        other.context.threads = threads;
        other.context.tuning.beside_rows = 0;
        prop_assert_eq!(other.short(&query), want, "{}", query);
    }

    #[test]
    fn the_ends_of_many_fields_do_not_depend_on_the_way(
        rows in prop::collection::vec(
            (pick(&["m,h=a", "m,h=b", "m,h=c"]), prop::collection::vec(0usize..FIELDS.len(), 1..3), 0i64..90),
            1..60,
        ),
        function in pick(&["first", "last"]),
        condition in pick(&["", " WHERE h = 'a'", " WHERE time >= 10 AND time < 60", " WHERE f0 > 40"]),
        group in pick(&["", " GROUP BY h"]),
        item_rows in 1usize..6,
        (filters, joins_series, ends) in any::<(bool, bool, bool)>(),
        threads in 1usize..3,
    ) {
        let row = |(key, fields, time): &(&'static str, Vec<usize>, i64)| {
            let mut fields = fields.clone();
            fields.sort_unstable();
            fields.dedup();
            let value = |field: &usize| (FIELDS[*field], Scalar::Integer(time + *field as i64));
            Row::new(key, &fields.iter().map(value).collect::<Vec<_>>(), *time)
        };
        let rows: Vec<Row> = rows.iter().map(row).collect();
        let query = format!("SELECT {function}(*) FROM m{condition}{group}");
        let whole = ReferenceOptions { rows_per_series: false, ..ReferenceOptions::default() };
        let want = with(&rows, whole).short(&query);
        prop_assert!(!want.starts_with("error"), "{} {}", query, want);

        let options = ReferenceOptions {
            item_rows,
            summaries: SummaryMode::Never,
            filters,
            rows_per_series: true,
            joins_series,
            ends,
        };
        let mut other = with(&rows, options);
        other.context.threads = threads;
        prop_assert_eq!(other.short(&query), want, "{}", query);
    }
}
