//! Measurements with more fields than a table has columns, and too many measurements for tables of their
//! own.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod common;

use std::collections::BTreeSet;

use common::{fresh, one_server};
use model::{Interrupt, Scalar, TagExpr, TimeRange};
use store::testing::{HOUR_NS, POLICY, Row, read_all, scan_everything, write};
use store::{DeleteRequest, DeleteTarget, NameFilter, ScanItem, ScanSlice, Store, TimeOrder};
use store_kudu::{KuduOptions, KuduStore};

/// A value of each type in turn.
fn value(field: usize, seed: i64) -> Scalar {
    match field % 5 {
        0 => Scalar::Float(seed as f64 / 8.0),
        1 => Scalar::Integer(-seed),
        2 => Scalar::Unsigned(u64::MAX - seed.unsigned_abs()),
        3 => Scalar::String(format!("text {seed}").as_str().into()),
        _ => Scalar::Boolean(seed % 2 == 0),
    }
}

fn row(key: &str, fields: impl Iterator<Item = usize>, time_ns: i64) -> Row {
    let named: Vec<(String, Scalar)> =
        fields.map(|field| (format!("f{field:03}"), value(field, time_ns % 1000))).collect();
    let fields: Vec<(&str, Scalar)> =
        named.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    Row::new(key, &fields, time_ns)
}

/// 400 fields written by two daemons at once, in rows of all, some and other fields.
#[test]
fn four_hundred_fields() {
    let options = fresh(one_server());
    let stores = [(); 2].map(|()| KuduStore::open(&options).unwrap());
    let rows_of = |daemon: usize| -> Vec<Row> {
        let key = |n: usize| format!("m,h={}", n % 3);
        let time = |n: usize| (n as i64) * HOUR_NS / 10 + daemon as i64;
        let mut rows: Vec<Row> =
            (0..20).map(|n| row(&key(n), (0..400).skip(daemon * 200).take(200), time(n))).collect();
        rows.extend((20..25).map(|n| row(&key(n), 0..400, time(n))));
        rows.extend((25..40).map(|n| row(&key(n), std::iter::once(399 - n), time(n))));
        rows
    };
    std::thread::scope(|scope| {
        for (daemon, store) in stores.iter().enumerate() {
            let rows = rows_of(daemon);
            scope.spawn(move || {
                for rows in rows.chunks(7) {
                    let outcome = write(store, POLICY, rows, 0).unwrap();
                    assert_eq!(outcome.rejected, []);
                }
            });
        }
    });
    let order = |row: &Row| (row.key.clone(), row.time_ns);
    let mut expected = [rows_of(0), rows_of(1)].concat();
    expected.sort_by_key(order);
    for store in &stores {
        let mut rows = read_all(store, POLICY, "m").unwrap();
        rows.sort_by_key(order);
        assert!(rows == expected);
        assert_eq!(
            store.schema(POLICY.database, "m", &Interrupt::new()).unwrap().unwrap().fields.len(),
            400
        );
    }
    let tables = one_server().cli(&["table", "list", &one_server().master_list()]).unwrap();
    let own: BTreeSet<&str> =
        tables.lines().filter(|t| t.starts_with(&format!("{}.db", options.prefix))).collect();
    assert_eq!(own.len(), 2, "{own:?}");
    backwards_and_some(&stores[0], &expected);
    deletes(&stores, expected);
}

/// Each field alone, backwards: as many values as were written.
fn backwards_and_some(store: &KuduStore, expected: &[Row]) {
    for field in [0, 150, 289, 290, 291, 350, 399] {
        let name = format!("f{field:03}");
        let mut request = scan_everything(store, POLICY, "m").unwrap();
        request.fields.retain(|(field, _)| **field == *name);
        request.order = TimeOrder::Descending;
        let scan = store.scan(&request).unwrap();
        let mut cursor = scan.open(&ScanSlice::all()).unwrap();
        let mut seen = 0;
        while let Some(ScanItem::Rows(batch)) = cursor.next().unwrap() {
            seen += batch.rows;
        }
        let has = |row: &&Row| row.fields.iter().any(|(field, _)| **field == *name);
        assert_eq!(seen, expected.iter().filter(has).count(), "{name}");
    }
}

fn deletes(stores: &[KuduStore; 2], mut expected: Vec<Row>) {
    let delete = |series, time| {
        let target = DeleteTarget::Rows { measurements: NameFilter::All, series, time };
        stores[0].delete(&DeleteRequest { database: POLICY.database, target }).unwrap();
    };
    delete(TagExpr::Equals("h".into(), "1".into()), TimeRange::ALL);
    delete(TagExpr::True, TimeRange::new(0, HOUR_NS));
    expected.retain(|row| row.key != "m,h=1" && row.time_ns > HOUR_NS);
    let mut rows = read_all(&stores[1], POLICY, "m").unwrap();
    rows.sort_by_key(|row| (row.key.clone(), row.time_ns));
    assert!(rows == expected);
    // Rows of values only that have no column.
    let expired = stores[1].expire(POLICY.database, POLICY.id, 2 * HOUR_NS).unwrap();
    assert_eq!(expired, 1);
    let later = row("m,h=9", 395..396, 9 * HOUR_NS);
    write(&stores[0], POLICY, std::slice::from_ref(&later), 0).unwrap();
    delete(TagExpr::Equals("h".into(), "2".into()), TimeRange::ALL);
    delete(TagExpr::Equals("h".into(), "0".into()), TimeRange::ALL);
    assert_eq!(read_all(&stores[1], POLICY, "m").unwrap(), [later]);
    let target = DeleteTarget::Measurement("m".into());
    stores[1].delete(&DeleteRequest { database: POLICY.database, target }).unwrap();
    assert_eq!(read_all(&stores[0], POLICY, "m").unwrap(), []);
}

/// Sixty measurements of which two get tables of their own, made by two daemons at once.
#[test]
fn many_measurements() {
    let options = KuduOptions { tables: 2, ..fresh(one_server()) };
    let stores = [(); 2].map(|()| KuduStore::open(&options).unwrap());
    let name = |n: usize| format!("m{n}");
    let rows_of = |n: usize| -> Vec<Row> {
        (0..4).map(|hour| row(&name(n), n % 5..n % 5 + 2, hour * HOUR_NS)).collect()
    };
    write(&stores[0], POLICY, &[rows_of(0), rows_of(1)].concat(), 0).unwrap();
    std::thread::scope(|scope| {
        for store in &stores {
            scope.spawn(|| {
                for n in 2..60 {
                    let outcome = write(store, POLICY, &rows_of(n), 0).unwrap();
                    assert_eq!(outcome.rows_written, 4, "{:?}", outcome.rejected);
                }
            });
        }
    });
    let tables = one_server().cli(&["table", "list", &one_server().master_list()]).unwrap();
    let own: Vec<&str> =
        tables.lines().filter(|t| t.starts_with(&format!("{}.db", options.prefix))).collect();
    assert_eq!(own.len(), 3, "{own:?}");
    assert_eq!(stores[0].expire(POLICY.database, POLICY.id, HOUR_NS).unwrap(), 1);
    let target = DeleteTarget::Measurement(name(59).as_str().into());
    stores[0].delete(&DeleteRequest { database: POLICY.database, target }).unwrap();
    for n in 0..60 {
        let expected = if n == 59 { Vec::new() } else { rows_of(n).split_off(1) };
        assert_eq!(read_all(&stores[n % 2], POLICY, &name(n)).unwrap(), expected, "{n}");
    }
}
