//! Series that come and go: a request for some time has only series that can have rows then, and all of their rows; and those
//! are said to have rows that have some.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use model::{Scalar, TagExpr, TimeRange};
use platform::{FaultConfig, SimDisk};
use store::testing::{self, POLICY, Row, read, scan_everything, write};
use store::{DeleteRequest, DeleteTarget, NameFilter, ScanRequest, Store};
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
        let name = if series % 100 == 3 { series } else { generation * SERIES + series };
        let time = (generation * ROWS + at) * SECOND + series;
        let fields = [("v", Scalar::Integer(n)), ("w", Scalar::Integer(n))];
        let fields = if name % 3 == 0 { &fields[..] } else { &fields[..1] };
        Row::new(&format!("{key},pod={name}"), fields, time)
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
    let scan = store.scan(&request).unwrap();
    let with_rows = scan.series_with_rows().unwrap();
    let mut keys: Vec<&str> = wanted.iter().map(|row| &*row.key).collect();
    keys.dedup();
    let said = with_rows.iter().map(|series| testing::series_key(&*scan, &request, *series));
    let mut said: Vec<String> = said.collect();
    said.sort_unstable();
    assert_eq!(said, keys, "generations {from} to {to}");
    // Nobody has rows that have one field if that one is not asked for.
    let fields = request.fields.iter().filter(|(name, _)| &**name == "w").cloned().collect();
    let of_one_field = ScanRequest { fields, ..request.clone() };
    let mut having: Vec<&str> =
        wanted.iter().filter(|row| row.fields.len() == 2).map(|row| &*row.key).collect();
    having.dedup();
    let scan_of_one = store.scan(&of_one_field).unwrap();
    assert_eq!(scan_of_one.series_with_rows().unwrap().len(), having.len());
    scan.series().len
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
    for stage in ["in segments and in memory", "with rows that were deleted", "settled"] {
        if stage == "with rows that were deleted" {
            // One in seven series loses all of its rows; those that live on keep later ones.
            let time = TimeRange::new(0, 12 * ROWS * SECOND - 1);
            let series = TagExpr::Equals("name".into(), "s3".into());
            let target = DeleteTarget::Rows { measurements: NameFilter::All, series, time };
            store.delete(&DeleteRequest { database: POLICY.database, target }).unwrap();
            all.retain(|row| !row.key.contains("name=s3") || !time.contains(row.time_ns));
        } else if stage == "settled" {
            store.settle().unwrap();
        }
        for (from, to) in [(0, GENERATIONS), (0, 12), (39, 40), (0, 1), (4, 7), (37, 39), (50, 60)]
        {
            for series in [TagExpr::True, TagExpr::Equals("name".into(), "s3".into())] {
                let is_all = matches!(series, TagExpr::True);
                let len = check(&store, &all, series, (from, to));
                let of_all = (GENERATIONS * SERIES) as u32 / if is_all { 1 } else { 7 };
                assert!(len < of_all / 2 || to - from > 5, "{stage}: {len} series of {of_all}");
            }
        }
    }
}
