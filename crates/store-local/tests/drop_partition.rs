//! A dropped partition stays away whenever power is lost, though partitions have become shorter.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use model::{PolicyId, Scalar, partition_range};
use platform::{FaultConfig, SimDisk};
use store::testing::{self, Row, read_all, write};
use store::{DeleteRequest, DeleteTarget, Policy, Store};

mod common;
use common::open;

const DAILY: Policy = Policy { partition_ns: 24 * testing::HOUR_NS, ..testing::POLICY };

fn row(minutes: i64, value: i64) -> Row {
    Row::new("m,h=a", &[("v", Scalar::Integer(value))], minutes * 60_000_000_000)
}

#[test]
fn a_dropped_partition_stays_away_after_the_duration_changed() {
    let mut survived = 0;
    for operations in 1..80 {
        let disk = SimDisk::new(operations, FaultConfig::default());
        let store = open(&disk, 16 << 20);
        // A small memtable of another policy, flushed last, keeps the log from its first record on.
        let other = Policy { id: PolicyId(2), ..DAILY };
        write(&store, other, &[row(0, 0)], 0).unwrap();
        write(&store, DAILY, &[row(30, 1), row(20 * 60, 2)], 0).unwrap();
        let time = partition_range(0, DAILY.partition_ns);
        let target = DeleteTarget::Partition(DAILY.id, time);
        store.delete(&DeleteRequest { database: DAILY.database, target }).unwrap();
        let shorter = testing::POLICY;
        let later: Vec<Row> = (0..50).map(|minute| row(minute, 3)).collect();
        write(&store, shorter, &later, 0).unwrap();
        disk.crash_after(disk.operations() + operations);
        survived += u32::from(store.flush().is_ok());
        let disk = disk.crash();
        drop(store);
        let store = open(&disk, 16 << 20);
        assert_eq!(read_all(&store, shorter, "m").unwrap(), later, "after {operations}");
        assert_eq!(read_all(&store, other, "m").unwrap(), [row(0, 0)], "after {operations}");
    }
    assert!((1..79).contains(&survived), "power was lost during the flush and after it");
}
