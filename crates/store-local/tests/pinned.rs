//! Memtables that long queries hold on to after they were flushed: writes go on beside them, in bounded memory.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;
use std::time::Duration;

use model::Scalar;
use platform::{FaultConfig, SimDisk};
use store::testing::{self, POLICY, Row};
use store::{Scan, Store, StoreError};
use store_local::{LocalStore, StoreOptions};

mod common;
use common::options;

/// Some 100 KB of rows.
fn rows(from_ns: i64) -> Vec<Row> {
    let text = |n: i64| Scalar::String(format!("{n:0>1000}").into());
    (from_ns..from_ns + 100).map(|n| Row::new("m,id=a", &[("x", text(n))], n)).collect()
}

/// A query that was opened and is not read yet.
fn open_scan(store: &LocalStore) -> Box<dyn Scan> {
    store.scan(&testing::scan_everything(store, POLICY, "m").unwrap()).unwrap()
}

#[test]
fn writes_go_on_while_queries_pin_memtables_up_to_a_bound() {
    let disk = SimDisk::new(1, FaultConfig::default());
    // A full memtable is a twelfth, writes wait above four of them; another tenth may be pinned.
    let memory = 6 << 20;
    let options = StoreOptions { write_wait_max: Duration::ZERO, ..options(memory) };
    let store = LocalStore::open(Arc::new(disk), options).unwrap();
    let metric = |name: &str| store.metrics().iter().find(|m| m.name == name).unwrap().value;
    let mut scans = Vec::new();
    let refused = loop {
        let from_ns = 100 * i64::try_from(scans.len()).unwrap();
        if let Err(error) = testing::write(&store, POLICY, &rows(from_ns), 0) {
            break error;
        }
        scans.push(open_scan(&store));
        store.flush().unwrap();
        assert!(metric("memtable_bytes") < memory as f64, "memory is bounded");
    };
    assert!(matches!(refused, StoreError::Overloaded { .. }), "{refused:?}");
    let (waiting_max, pinned_max) = (memory as f64 / 3.0, memory as f64 / 10.0);
    assert!(metric("memtable_pinned_bytes") >= waiting_max + pinned_max, "refused too early");
    assert_eq!(scans.len(), testing::read_all(&store, POLICY, "m").unwrap().len() / 100);
    scans.clear();
    assert_eq!(metric("memtable_pinned_bytes"), 0.0);
    testing::write(&store, POLICY, &rows(-100), 0).unwrap();
    store.close().unwrap();
}
