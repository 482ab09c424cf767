//! Deletes of single rows are held in bounded memory, and carried out by merges.

use std::sync::Arc;
use std::time::Duration;

use model::{DatabaseId, FieldType, Name, PolicyId, Scalar};
use platform::{FaultConfig, SimDisk};
use store::testing::{self, Row, matching};
use store::{DeleteRequest, MatchingRows, Policy, Store, StoreError};
use store_local::{LocalStore, StoreOptions};

const POLICY: Policy = Policy {
    database: DatabaseId(1),
    id: PolicyId(1),
    partition_ns: 3_600_000_000_000,
    retention_ns: None,
};

fn row(n: usize) -> Row {
    Row::new(&format!("m,id={n:06}"), &[("x", Scalar::Integer(1))], 1000)
}

fn delete(store: &LocalStore, rows: &[Row]) -> Result<(), StoreError> {
    let fields: [(Name, FieldType); 1] = [("x".into(), FieldType::Integer)];
    let target = matching(POLICY, "m", &fields, rows);
    store.delete(&DeleteRequest { database: POLICY.database, target })
}

#[test]
fn deletes_wait_for_merges_where_too_many_are_not_carried_out() {
    let disk = SimDisk::new(1, FaultConfig::default());
    let options = StoreOptions {
        maintenance_threads: 0,
        write_wait_max: Duration::ZERO,
        hash_seed: Some(1),
        ..StoreOptions::new("/store", 16 << 20)
    };
    let open = || LocalStore::open(Arc::new(disk.clone()), options.clone()).unwrap();
    let store = open();
    let rows: Vec<Row> = (0..MatchingRows::ROWS_MAX + 100).map(row).collect();
    for part in rows.chunks(10_000) {
        testing::write(&store, POLICY, part, 0).unwrap();
        store.flush().unwrap();
    }
    let (many, few) = rows.split_at(MatchingRows::ROWS_MAX);
    let (one, rest) = few.split_at(1);
    delete(&store, many).unwrap();
    let left = |store: &LocalStore| testing::read_all(store, POLICY, "m").unwrap().len();
    assert_eq!(left(&store), few.len());
    let refused = delete(&store, one);
    assert!(matches!(refused, Err(StoreError::Overloaded { .. })), "{refused:?}");
    store.close().unwrap();
    let store = open();
    assert_eq!(left(&store), few.len(), "after a restart");
    let refused = delete(&store, one);
    assert!(matches!(refused, Err(StoreError::Overloaded { .. })), "{refused:?}");
    store.maintain().unwrap();
    delete(&store, one).unwrap();
    assert_eq!(left(&store), rest.len());
    store.close().unwrap();
}
