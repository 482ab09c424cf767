//! Rows that a filter finds far from each other are read in parts, and are what they are in the whole.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use model::{CompareOp, FieldFilter, Operand, Scalar};
use platform::{FaultConfig, SimDisk};
use store::testing::{self, POLICY, Row, read_slice, scan_everything, write};
use store::{ScanSlice, Store, TimeOrder};
use store_local::LocalStore;

mod common;
use common::open;

const ROWS: i64 = 9000;
const LIMIT: i64 = 90;

/// Above the limit for a stretch of rows now and then, once with holes, and in single rows.
fn busy(row: i64) -> i64 {
    match row {
        700..1100 | 4000..4003 | 8990.. => 95,
        2500..2700 if row % 3 == 0 => 91,
        5000 | 5255 | 5512 => 99,
        _ => row % LIMIT,
    }
}

fn row(series: &str, at: i64) -> Row {
    let mut fields = vec![("x", Scalar::Integer(busy(at))), ("y", Scalar::Integer(at * at % 1009))];
    if at % 7 != 0 {
        fields.push(("z", Scalar::Float(at as f64 / 8.0)));
    }
    Row::new(&format!("m,id={series}"), &fields, at * 10)
}

#[test]
fn what_a_filter_finds_is_read_in_parts() {
    let disk = SimDisk::new(1, FaultConfig::default());
    let store = open(&disk, 64 << 20);
    let rows: Vec<Row> = (0..ROWS).flat_map(|at| ["a", "b"].map(|id| row(id, at))).collect();
    write(&store, POLICY, &rows, 0).unwrap();
    store.flush().unwrap();

    check(&store);
    // Tight pages: as they are, from marks, then thawed.
    store.settle().unwrap();
    for _ in 0..6 {
        check(&store);
    }
}

fn check(store: &LocalStore) {
    let key = |row: &Row| (row.key.clone(), row.time_ns);
    let mut expected = testing::read_all(store, POLICY, "m").unwrap();
    expected.retain(|row| busy(row.time_ns / 10) > LIMIT);
    expected.sort_by_key(key);
    assert_eq!(expected.len(), 2 * (400 + 3 + 10 + 66 + 3));
    for order in [TimeOrder::Ascending, TimeOrder::Descending] {
        let filter = FieldFilter {
            field: "x".into(),
            op: CompareOp::Greater,
            operand: Operand::Constant(Scalar::Integer(LIMIT)),
        };
        let everything = scan_everything(store, POLICY, "m").unwrap();
        let request = store::ScanRequest { order, filters: vec![filter], ..everything };
        let scan = store.scan(&request).unwrap();
        let mut found = read_slice(&*scan, &request, &ScanSlice::all()).unwrap();
        found.sort_by_key(key);
        assert_eq!(found, expected, "{order:?}");
    }
}
