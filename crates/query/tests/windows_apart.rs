//! Functions that keep values answer the same, whether all windows are read at once or a few at a time.

#[path = "support/database.rs"]
mod support;

use model::Scalar;
use query::QueryTuning;
use store::reference::ReferenceOptions;
use store::testing::Row;
use support::Database;

const SERIES: i64 = 24;
const TIMES: i64 = 90;

/// Rows of some hosts in two regions, mostly at the same times; some lack a field.
fn rows() -> Vec<Row> {
    let row = |n: i64| {
        let (host, at) = (n % SERIES, n / SERIES);
        let value = (n * n + 7 * host) % 13;
        let mut fields =
            vec![("i", Scalar::Integer(value)), ("f", Scalar::Float(value as f64 / 4.0))];
        fields.truncate(if n % 11 == 0 { 1 } else { 2 });
        let late = i64::from(host % 5 == 0) * 3;
        Row::new(&format!("m,host={host},region={}", host % 2), &fields, at * 10 + late)
    };
    (0..SERIES * TIMES).map(row).collect()
}

#[test]
fn windows_are_the_same_a_few_at_a_time() {
    let mut database = Database::new(ReferenceOptions::default());
    database.write_rows(&rows());
    let whole = QueryTuning {
        window_rows: u64::MAX,
        window_series_rows: 1 << 30,
        ..QueryTuning::default()
    };
    let functions = [
        "mode(i)",
        "distinct(i)",
        "count(distinct(f))",
        "stddev(f)",
        "median(i)",
        "percentile(f, 40)",
        "top(i, 3)",
        "bottom(f, host, 2)",
        "mode(i), stddev(f), mean(i)",
        "last(i), stddev(f), max(f)",
        "percentile(i, 90), median(f), count(i)",
    ];
    let tails = [
        "GROUP BY time(10ns)",
        "GROUP BY time(20ns) fill(none)",
        "GROUP BY time(70ns, 3ns), region",
        "AND i > 5 GROUP BY time(30ns) ORDER BY time DESC",
        "AND host =~ /1/ GROUP BY time(40ns) fill(previous)",
        "GROUP BY time(100ns) ORDER BY time DESC",
    ];
    for function in functions {
        for tail in tails {
            let query = format!("SELECT {function} FROM m WHERE time >= 15 AND time < 871 {tail}");
            database.context.tuning = whole;
            let want = database.short(&query);
            assert!(want.lines().count() > 5, "{query}: {want}");
            for window_rows in [40, 300, 900] {
                let (window_series_rows, threads) = (1, 2);
                database.context.threads = threads;
                database.context.tuning = QueryTuning { window_rows, window_series_rows, ..whole };
                assert_eq!(database.short(&query), want, "{query}, {window_rows}");
            }
        }
    }
}
