//! Series that come and go: a request for some time has only series that can have rows then, and all of their rows.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use model::{Scalar, TagExpr, TimeRange};
use platform::{FaultConfig, SimDisk};
use store::testing::{POLICY, Row, read, scan_everything, write};
use store::{ScanRequest, Store};
use store_local::LocalStore;

mod common;
use common::open;

/// Generations, series of each, and its rows; a series lives for as many seconds.
const GENERATIONS: i64 = 40;
const SERIES: i64 = 300;
const ROWS: i64 = 30;
const SECOND: i64 = 1_000_000_000;

fn rows_of(generation: i64) -> Vec<Row> {
    let row = |n: i64| {
        let (series, at) = (n % SERIES, n / SERIES);
        let key = format!("m,name=s{}", series % 7);
        // One in a hundred lives on.
        let name = if series % 100 == 0 { series } else { generation * SERIES + series };
        let time = (generation * ROWS + at) * SECOND + series;
        Row::new(&format!("{key},pod={name}"), &[("v", Scalar::Integer(n))], time)
    };
    (0..SERIES * ROWS).map(row).collect()
}

/// The series of a request, and its rows as they must be: out of all rows.
fn check(store: &LocalStore, all: &[Row], series: TagExpr, (from, to): (i64, i64)) -> u32 {
    let time = TimeRange::new(from * ROWS * SECOND, to * ROWS * SECOND - 1);
    let everything = scan_everything(store, POLICY, "m").unwrap();
    let request = ScanRequest { series, time, ..everything };
    let is_wanted = |row: &&Row| {
        let named = matches!(request.series, TagExpr::True) || row.key.contains("name=s3");
        named && time.contains(row.time_ns)
    };
    let wanted: Vec<Row> = all.iter().filter(is_wanted).cloned().collect();
    assert_eq!(read(store, &request).unwrap(), wanted, "generations {from} to {to}");
    store.scan(&request).unwrap().series().len
}

#[test]
fn series_that_have_no_rows_in_a_time_are_left_out() {
    let store = open(&SimDisk::new(1, FaultConfig::default()), 32 << 20);
    let mut all = Vec::new();
    for generation in 0..GENERATIONS {
        let rows = rows_of(generation);
        write(&store, POLICY, &rows, 0).unwrap();
        all.extend(rows);
        if generation % 12 == 11 {
            store.flush().unwrap();
        }
    }
    // As they are read: by series, and of each by time.
    all.sort_by(|a, b| (&a.key, a.time_ns).cmp(&(&b.key, b.time_ns)));
    for stage in ["in segments and in memory", "settled"] {
        if stage == "settled" {
            store.settle().unwrap();
        }
        for (from, to) in [(0, GENERATIONS), (39, 40), (0, 1), (4, 7), (37, 39), (50, 60)] {
            for series in [TagExpr::True, TagExpr::Equals("name".into(), "s3".into())] {
                let is_all = matches!(series, TagExpr::True);
                let len = check(&store, &all, series, (from, to));
                let of_all = (GENERATIONS * SERIES) as u32 / if is_all { 1 } else { 7 };
                assert!(len < of_all / 2 || to - from > 5, "{stage}: {len} series of {of_all}");
            }
        }
    }
}
