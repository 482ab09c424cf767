//! What a store says when files of it are gone that no crash takes.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::Scalar;
use platform::{Disk, FaultConfig, SimDisk};
use store::testing::{POLICY, Row, read_all, write};
use store::{Store, StoreError};
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
