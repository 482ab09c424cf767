//! The first or last rows of a series are found without reading it all, though sources overlap.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use model::Scalar;
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
