//! Rows of many short series that share blocks are what they were in memory, whichever of them are asked for.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use model::{CompareOp, FieldFilter, Scalar, TimeRange};
use platform::{FaultConfig, SimDisk};
use store::testing::{POLICY, Row, read_slice, scan_everything, write};
use store::{ScanRequest, ScanSlice, Store};
use store_local::LocalStore;

mod common;
use common::open;

/// So many that their rows fill several blocks.
const SERIES: u64 = 12_000;
const STATES: [&str; 3] = ["running", "failed", "über"];

/// What looks random of a number.
fn random(number: u64) -> u64 {
    let mixed = (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32
}

/// Up to seven rows of a series, mostly some, and each with some of three fields.
fn rows_of(series: u64) -> Vec<Row> {
    let row = |at: u64| {
        let mut fields = Vec::new();
        let has = random(series * 31 + at);
        if !has.is_multiple_of(4) {
            fields.push(("x", Scalar::Integer((has % 100) as i64)));
        }
        if !has.is_multiple_of(5) {
            fields.push(("y", Scalar::Float(has as f64 / 8.0)));
        }
        if has.is_multiple_of(3) || fields.is_empty() {
            fields.push(("state", Scalar::String(STATES[has as usize % 3].into())));
        }
        Row::new(&format!("m,id={series:05}"), &fields, (at * 10 + has % 7) as i64)
    };
    (0..random(series) % 8).map(row).collect()
}

/// What is asked: fields, a range of time, a filter, and every how manieth series.
fn requests(store: &LocalStore) -> Vec<(ScanRequest, u32)> {
    let everything = scan_everything(store, POLICY, "m").unwrap();
    let mut requests = Vec::new();
    for fields in [&["x"][..], &["state"], &["x", "y", "state"]] {
        for time in [TimeRange::ALL, TimeRange::new(11, 38)] {
            for filter in [None, Some(CompareOp::Greater), Some(CompareOp::Less)] {
                let filter = filter.filter(|_| fields.contains(&"x"));
                let filter = filter.map(|op| FieldFilter {
                    field: "x".into(),
                    op,
                    value: Scalar::Integer(90),
                });
                for every in [1, 2, 700, 11_999] {
                    let mut request = ScanRequest { time, ..everything.clone() };
                    request.fields.retain(|(name, _)| fields.contains(&&**name));
                    request.filters = filter.clone().into_iter().collect();
                    requests.push((request, every));
                }
            }
        }
    }
    requests
}

/// The answer: of rows that a filter is for those it is about, as it is a hint.
fn answer(store: &LocalStore, request: &ScanRequest, every: u32) -> Vec<Row> {
    let scan = store.scan(request).unwrap();
    let mut slice = ScanSlice::all();
    if every > 1 {
        let ordinals: Vec<u32> = (0..scan.series().len).step_by(every as usize).collect();
        slice.series = Some(Arc::from(ordinals));
    }
    let mut rows = read_slice(&*scan, request, &slice).unwrap();
    let x = |row: &Row| row.fields.iter().find(|(name, _)| &**name == "x").map(|(_, x)| x.clone());
    for filter in &request.filters {
        rows.retain(|row| match x(row) {
            Some(Scalar::Integer(x)) => filter.op.holds(x.cmp(&90)),
            _ => false,
        });
    }
    rows
}

#[test]
fn shared_blocks_hold_what_was_in_memory() {
    let disk = SimDisk::new(1, FaultConfig::default());
    let store = open(&disk, 256 << 20);
    let rows: Vec<Row> = (0..SERIES).flat_map(rows_of).collect();
    assert!(rows.len() > 8192);
    write(&store, POLICY, &rows, 0).unwrap();
    let requests = requests(&store);
    let ask = || -> Vec<Vec<Row>> {
        requests.iter().map(|(request, every)| answer(&store, request, *every)).collect()
    };
    let expected = ask();
    assert!(expected.iter().filter(|rows| rows.is_empty()).count() < expected.len() / 2);
    store.flush().unwrap();
    for (found, (expected, (request, every))) in ask().iter().zip(expected.iter().zip(&requests)) {
        assert_eq!(found, expected, "{request:?}, every {every}");
    }
    store.settle().unwrap();
    assert_eq!(ask(), expected);
}

#[test]
fn a_series_goes_on_in_the_next_block() {
    let disk = SimDisk::new(2, FaultConfig::default());
    let store = open(&disk, 256 << 20);
    // Rows so long that a block has those of a series and a half.
    let text = |of: u64| format!("{of:08}").repeat(2000);
    let row = |series: u64, at: u64| {
        let fields = [
            ("x", Scalar::Integer(at as i64)),
            ("t", Scalar::String(text(series * 40 + at).into())),
        ];
        Row::new(&format!("m,id={series:05}"), &fields, at as i64)
    };
    let rows: Vec<Row> =
        (0..40).flat_map(|series| (0..45).map(move |at| row(series, at))).collect();
    write(&store, POLICY, &rows, 0).unwrap();
    store.flush().unwrap();
    let mut request = scan_everything(&store, POLICY, "m").unwrap();
    request.fields.retain(|(name, _)| &**name == "x");
    let found = answer(&store, &request, 1);
    let x = |row: &Row| (row.key.clone(), row.time_ns);
    assert!(found.iter().map(x).eq(rows.iter().map(x)));
}
