//! The first or last rows of a series are found without reading it all, though sources overlap.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use model::{Scalar, TimeRange};
use platform::{FaultConfig, SimDisk};
use store::testing::{self, POLICY, Row, read_slice, scan_everything, write};
use store::{ScanSlice, ScanStats, Store, TimeOrder};
use store_local::LocalStore;

mod common;
use common::open;

const ROWS: i64 = 6000;

fn row(series: &str, time_ns: i64, value: i64) -> Row {
    let fields = [("x", Scalar::Integer(value)), ("y", Scalar::Integer(-value))];
    Row::new(&format!("m,id={series}"), &fields, time_ns)
}

/// Two series in a segment; then some of their rows come again, with other values.
fn overlapping(again: &[i64]) -> LocalStore {
    let disk = SimDisk::new(1, FaultConfig::default());
    let store = open(&disk, 64 << 20);
    let both = |time: i64, value: i64| ["a", "b"].map(|series| row(series, time, value));
    let rows: Vec<Row> = (0..ROWS).flat_map(|time| both(time, time * time % 1009)).collect();
    write(&store, POLICY, &rows, 0).unwrap();
    store.flush().unwrap();
    let rows: Vec<Row> = again.iter().flat_map(|time| both(*time, 1_000_000 + time)).collect();
    write(&store, POLICY, &rows, 0).unwrap();
    store
}

fn few(store: &LocalStore, order: TimeOrder, count: u64) -> (Vec<Row>, ScanStats) {
    let everything = scan_everything(store, POLICY, "m").unwrap();
    let request = store::ScanRequest { order, ..everything };
    let scan = store.scan(&request).unwrap();
    let rows = read_slice(&*scan, &request, &ScanSlice::rows_per_series(count)).unwrap();
    (rows, scan.stats())
}

/// What `few` should find, out of everything.
fn expected(store: &LocalStore, order: TimeOrder, count: usize) -> Vec<Row> {
    let mut found = Vec::new();
    for id in ["a", "b"] {
        let mut rows = testing::read_all(store, POLICY, "m").unwrap();
        rows.retain(|row| row.key == format!("m,id={id}"));
        if order == TimeOrder::Descending {
            rows.reverse();
        }
        rows.truncate(count);
        found.extend(rows);
    }
    found
}

#[test]
fn a_row_that_came_twice_costs_no_page() {
    let store = overlapping(&[ROWS - 1]);
    let (rows, stats) = few(&store, TimeOrder::Descending, 1);
    assert_eq!(
        rows,
        [row("a", ROWS - 1, 1_000_000 + ROWS - 1), row("b", ROWS - 1, 1_000_000 + ROWS - 1)]
    );
    assert_eq!(stats.pages_read, 0, "{stats:?}");
}

#[test]
fn few_rows_of_overlapping_sources_are_the_nearest() {
    for again in [
        vec![0, ROWS - 1],
        vec![3000, 3001],
        vec![2, 5, ROWS - 3],
        vec![ROWS - 40, 10],
        vec![ROWS - 3, ROWS + 3],
    ] {
        let store = overlapping(&again);
        for count in [1, 2, 7, 60, 500, 10_000] {
            for order in [TimeOrder::Ascending, TimeOrder::Descending] {
                let (rows, _) = few(&store, order, count as u64);
                assert_eq!(rows, expected(&store, order, count), "{again:?} {count} {order:?}");
            }
        }
    }
}

/// Rows of numbers of each kind, of which one is missing for long stretches and one now and then.
fn mixed(series: &str, time_ns: i64) -> Row {
    let x = time_ns * 7919 % 1009;
    let mut fields = vec![
        ("x", Scalar::Integer(x - 500)),
        ("y", Scalar::Float(x as f64 / 8.0)),
        ("z", Scalar::Unsigned(x.cast_unsigned() << 40)),
    ];
    fields.retain(|(name, _)| match *name {
        "x" => time_ns / 3000 % 3 != 1,
        "y" => x % 5 != 0,
        _ => true,
    });
    Row::new(&format!("m,id={series}"), &fields, time_ns * 10)
}

#[test]
fn rows_that_only_one_source_reaches_come_first_and_what_is_missing_from_the_others() {
    let store = open(&SimDisk::new(1, FaultConfig::default()), 64 << 20);
    // Three segments and a memtable, each of which begins before the one before ends; "b" has no row in the last of them.
    for (part, from) in [0, 900, 1800, 2700].into_iter().enumerate() {
        let series: &[&str] = if part < 3 { &["a", "b"] } else { &["a"] };
        let times = from..from + 1000;
        let rows = series
            .iter()
            .flat_map(|id| times.clone().map(|time| row(id, time, time + part as i64)));
        write(&store, POLICY, &rows.collect::<Vec<_>>(), 0).unwrap();
        if part < 3 {
            store.flush().unwrap();
        }
    }
    for order in [TimeOrder::Ascending, TimeOrder::Descending] {
        for count in [1, 2, 99, 100, 101, 950, 5000] {
            let (rows, _) = few(&store, order, count as u64);
            assert_eq!(rows, expected(&store, order, count), "{order:?} {count}");
        }
    }
}

#[test]
fn the_nearest_row_to_any_time_is_found() {
    for settled in [false, true] {
        let store = open(&SimDisk::new(1, FaultConfig::default()), 64 << 20);
        let all: Vec<Row> =
            ["a", "b"].iter().flat_map(|id| (100..20_000).map(|time| mixed(id, time))).collect();
        write(&store, POLICY, &all, 0).unwrap();
        if settled {
            store.settle().unwrap();
        } else {
            store.flush().unwrap();
        }
        let mut request = scan_everything(&store, POLICY, "m").unwrap();
        // Often enough for pages to be thawed that are not yet.
        for at in (0..40).map(|n| n * 5231 + 987) {
            for (order, time) in [
                (TimeOrder::Descending, TimeRange::new(0, at)),
                (TimeOrder::Ascending, TimeRange::new(at, 1_000_000)),
            ] {
                (request.order, request.time) = (order, time);
                let scan = store.scan(&request).unwrap();
                let slice = ScanSlice::rows_per_series(1);
                let rows = read_slice(&*scan, &request, &slice).unwrap();
                let nearest = |id: &str| {
                    let key = format!("m,id={id}");
                    let mut of_series =
                        all.iter().filter(|row| row.key == key && time.contains(row.time_ns));
                    let found = if order == TimeOrder::Ascending {
                        of_series.next()
                    } else {
                        of_series.next_back()
                    };
                    found.cloned()
                };
                let expected: Vec<Row> = ["a", "b"].iter().filter_map(|id| nearest(id)).collect();
                assert_eq!(rows, expected, "{order:?} {time:?} {settled}");
            }
        }
    }
}
