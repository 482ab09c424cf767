//! What a store says when files of it are gone that no crash takes, or when its disk takes nothing more.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::Scalar;
use platform::{Disk, Fault, FaultConfig, SimDisk};
use store::testing::{POLICY, Row, read_all, unlimited, write};
use store::{Store, StoreError, list_partitions};
use store_local::LocalStore;

mod common;

fn open(disk: &Arc<dyn Disk>) -> Result<LocalStore, StoreError> {
    LocalStore::open(Arc::clone(disk), common::options(16 << 20))
}

fn rows(count: i64) -> Vec<Row> {
    (0..count).map(|at| Row::new("m,h=a", &[("v", Scalar::Integer(at))], at)).collect()
}

/// A closed store with rows in a segment and in the log.
fn filled() -> Arc<dyn Disk> {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1, FaultConfig::default()));
    let store = open(&disk).unwrap();
    assert_eq!(store.open_report().damage, [] as [String; 0], "a new store lacks nothing");
    write(&store, POLICY, &rows(10), 0).unwrap();
    store.flush().unwrap();
    write(&store, POLICY, &rows(20), 0).unwrap();
    store.close().unwrap();
    disk
}

fn files(disk: &dyn Disk, part: &str) -> Vec<PathBuf> {
    let dir = Path::new("/store").join(part);
    disk.list(&dir).unwrap().iter().map(|entry| dir.join(&entry.name)).collect()
}

fn remove_all(disk: &dyn Disk, part: &str) {
    files(disk, part).iter().for_each(|path| disk.remove(path).unwrap());
}

#[test]
fn without_its_manifest_a_store_refuses_to_open_and_removes_nothing() {
    for lost in [&["manifest"][..], &["manifest", "wal"], &["manifest", "wal", "series"]] {
        let disk = filled();
        lost.iter().for_each(|part| remove_all(&*disk, part));
        let before = files(&*disk, "segments");
        assert_eq!(before.len(), 1);
        match open(&disk) {
            Err(StoreError::Corruption { path, detail, .. }) => {
                assert_eq!(path, Path::new("/store/manifest"));
                assert!(detail.contains("the manifest is missing though there are files"));
            }
            other => panic!("{lost:?}: {other:?}"),
        }
        assert_eq!(files(&*disk, "segments"), before, "the rows can still be saved");
    }
}

#[test]
fn without_its_log_a_store_opens_with_what_is_in_segments() {
    let disk = filled();
    remove_all(&*disk, "wal");
    let store = open(&disk).unwrap();
    assert_eq!(read_all(&store, POLICY, "m").unwrap().len(), 10);
    write(&store, POLICY, &rows(25), 0).unwrap();
    store.close().unwrap();
    assert_eq!(read_all(&open(&disk).unwrap(), POLICY, "m").unwrap().len(), 25);
}

#[test]
fn no_store_is_made_where_there_is_no_room_for_its_manifest() {
    let full = FaultConfig { capacity_bytes: 1000, ..FaultConfig::default() };
    let sim = SimDisk::new(1, full);
    let disk: Arc<dyn Disk> = Arc::new(sim.clone());
    assert!(matches!(open(&disk), Err(StoreError::Io(detail)) if detail.contains("no room")));
    sim.set_faults(FaultConfig::default());
    open(&disk).unwrap().close().unwrap();
}

#[test]
fn a_store_that_is_read_only_still_says_what_partitions_it_has() {
    let sim = SimDisk::new(1, FaultConfig::default());
    let disk: Arc<dyn Disk> = Arc::new(sim.clone());
    let store = open(&disk).unwrap();
    let listed = |store: &LocalStore| {
        let listed = list_partitions(store, POLICY.database, unlimited()).unwrap();
        listed.iter().map(|p| (p.number, p.time)).collect::<Vec<_>>()
    };
    let later = Row::new("m,h=a", &[("v", Scalar::Integer(0))], 1 << 60);
    write(&store, POLICY, &rows(1), 0).unwrap();
    let first = listed(&store);
    assert_eq!(first.len(), 1);
    write(&store, POLICY, std::slice::from_ref(&later), 0).unwrap();

    sim.set_faults(FaultConfig { sync: Fault::From(1), ..FaultConfig::default() });
    write(&store, POLICY, &rows(2), 0).unwrap_err();
    assert!(matches!(write(&store, POLICY, &rows(2), 0), Err(StoreError::ReadOnly(_))));
    let both = listed(&store);
    assert_eq!(both.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(both[0], first[0]);
    assert_eq!(listed(&store), both);

    drop(store);
    sim.set_faults(FaultConfig::default());
    assert_eq!(listed(&open(&disk).unwrap()), both, "the same after the next start");
}
