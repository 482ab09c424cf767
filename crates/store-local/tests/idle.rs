//! Partitions that nobody writes to any more are put away.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;
use std::time::Duration;

use model::Scalar;
use platform::{FaultConfig, SimDisk};
use store::Store;
use store::testing::{POLICY, Row, read_all, write};
use store_local::{LocalStore, StoreOptions};

mod common;
use common::options;

#[test]
fn rows_that_were_left_alone_are_flushed_and_merged_for_keeping_at_once() {
    let idle_after = Duration::from_millis(20);
    let disk = Arc::new(SimDisk::new(1, FaultConfig::default()));
    let store = LocalStore::open(disk, StoreOptions { idle_after, ..options(16 << 20) }).unwrap();
    let metric = |name: &str| store.metrics().iter().find(|m| m.name == name).unwrap().value;
    let rows: Vec<Row> =
        (0..1000).map(|at| Row::new("m,id=a", &[("x", Scalar::Integer(at))], at)).collect();
    let mut compactions = 0.0;
    for part in [&rows[..500], &rows[500..]] {
        write(&store, POLICY, part, 0).unwrap();
        std::thread::sleep(idle_after);
        // What waited in memory need not wait again in a segment.
        store.maintain().unwrap();
        compactions += 1.0;
        assert_eq!((metric("memtable_bytes"), metric("compactions_total")), (0.0, compactions));
    }
    assert_eq!(read_all(&store, POLICY, "m").unwrap(), rows);
    store.close().unwrap();
}

#[test]
fn rows_that_waited_are_flushed_once_they_are_worth_a_segment() {
    let rows: Vec<Row> =
        (0..6000).map(|at| Row::new("m,id=a", &[("x", Scalar::Integer(at))], at)).collect();
    for (in_memory_max, flushes) in [(Duration::ZERO, 1.0), (Duration::from_secs(86_400), 0.0)] {
        let disk = Arc::new(SimDisk::new(1, FaultConfig::default()));
        let options = StoreOptions { in_memory_max, ..options(16 << 20) };
        let store = LocalStore::open(disk, options).unwrap();
        let flushed = || {
            store.maintain().unwrap();
            store.metrics().iter().find(|m| m.name == "flushes_total").unwrap().value
        };
        write(&store, POLICY, &rows[..10], 0).unwrap();
        assert_eq!(flushed(), 0.0, "ten rows are not worth it");
        write(&store, POLICY, &rows[10..], 0).unwrap();
        assert_eq!(flushed(), flushes);
        assert_eq!(read_all(&store, POLICY, "m").unwrap(), rows);
        store.close().unwrap();
    }
}

#[test]
fn what_was_written_can_be_read_from_the_cache() {
    let disk = Arc::new(SimDisk::new(1, FaultConfig::default()));
    let open = || {
        LocalStore::open(Arc::clone(&disk) as Arc<dyn platform::Disk>, options(16 << 20)).unwrap()
    };
    let store = open();
    let metric = |store: &LocalStore, name: &str| {
        store.metrics().iter().find(|m| m.name == name).unwrap().value
    };
    // So noisy that it is entropy-coded.
    let value = |at: i64| (at * at * 31 % 1009).min(at * 7 % 97);
    let rows: Vec<Row> =
        (0..4000).map(|at| Row::new("m,id=a", &[("x", Scalar::Integer(value(at)))], at)).collect();
    write(&store, POLICY, &rows, 0).unwrap();
    store.settle().unwrap();
    let warm = metric(&store, "page_cache_bytes");
    assert!(warm > 2000.0, "{warm} bytes");
    assert_eq!(read_all(&store, POLICY, "m").unwrap(), rows);
    store.close().unwrap();
    drop(store);
    // What is there at the start is read when somebody asks for it.
    let store = open();
    store.settle().unwrap();
    assert!(metric(&store, "page_cache_bytes") < warm / 2.0);
    assert_eq!(read_all(&store, POLICY, "m").unwrap(), rows);
    store.close().unwrap();
}
