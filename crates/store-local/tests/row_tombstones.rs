//! Deletes of single rows are held in bounded memory, and carried out by merges.

use std::sync::Arc;
use std::time::Duration;

use model::{FieldType, Name, Scalar};
use platform::{FaultConfig, SimDisk};
use store::testing::{self, POLICY, Row, matching};
use store::{DeleteRequest, MatchingRows, Store, StoreError};
use store_local::{LocalStore, StoreOptions};

mod common;
use common::options;

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
    let options = StoreOptions { write_wait_max: Duration::ZERO, ..options(16 << 20) };
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
