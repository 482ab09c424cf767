//! A dropped partition stays away whenever power is lost, though partitions have become shorter.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use model::{DatabaseId, PolicyId, Scalar, partition_range};
use platform::{FaultConfig, SimDisk};
use store::testing::{Row, read_all, write};
use store::{DeleteRequest, DeleteTarget, Policy, Store};
use store_local::{LocalStore, StoreOptions};

const HOUR_NS: i64 = 3_600_000_000_000;

const POLICY: Policy = Policy {
    database: DatabaseId(1),
    id: PolicyId(1),
    partition_ns: 24 * HOUR_NS,
    retention_ns: None,
};

fn open(disk: &SimDisk) -> LocalStore {
    let options = StoreOptions { maintenance_threads: 0, ..StoreOptions::new("/data", 16 << 20) };
    LocalStore::open(Arc::new(disk.clone()), options).unwrap()
}

fn row(minutes: i64, value: i64) -> Row {
    Row::new("m,h=a", &[("v", Scalar::Integer(value))], minutes * 60_000_000_000)
}

#[test]
fn a_dropped_partition_stays_away_after_the_duration_changed() {
    let mut survived = 0;
    for operations in 1..80 {
        let disk = SimDisk::new(operations, FaultConfig::default());
        let store = open(&disk);
        // A small memtable of another policy, flushed last, keeps the log from its first record on.
        let other = Policy { id: PolicyId(2), ..POLICY };
        write(&store, other, &[row(0, 0)], 0).unwrap();
        write(&store, POLICY, &[row(30, 1), row(20 * 60, 2)], 0).unwrap();
        let time = partition_range(0, POLICY.partition_ns);
        let target = DeleteTarget::Partition(POLICY.id, time);
        store.delete(&DeleteRequest { database: POLICY.database, target }).unwrap();
        let shorter = Policy { partition_ns: HOUR_NS, ..POLICY };
        let later: Vec<Row> = (0..50).map(|minute| row(minute, 3)).collect();
        write(&store, shorter, &later, 0).unwrap();
        disk.crash_after(disk.operations() + operations);
        survived += u32::from(store.flush().is_ok());
        let disk = disk.crash();
        drop(store);
        let store = open(&disk);
        assert_eq!(read_all(&store, shorter, "m").unwrap(), later, "after {operations}");
        assert_eq!(read_all(&store, other, "m").unwrap(), [row(0, 0)], "after {operations}");
    }
    assert!((1..79).contains(&survived), "power was lost during the flush and after it");
}
