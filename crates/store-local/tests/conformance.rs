//! The embedded store against the suite every store must pass, on a simulated disk (no faults: the
//! `sim` crate has those) and, once, on a real one.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use platform::{Disk, FaultConfig, SimDisk, SystemDisk};
use store::Store;
use store::conformance::{TestStore, run, run_random};
use store_local::{LocalStore, StoreOptions};

/// A store in a directory of its own that lives as long as the test.
struct OnDisk {
    store: Option<LocalStore>,
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    maintained: Cell<u32>,
    _real: Option<tempfile::TempDir>,
}

impl OnDisk {
    fn simulated() -> Self {
        let disk = Arc::new(SimDisk::new(1, FaultConfig::default()));
        Self::new(disk, PathBuf::from("/data"), None)
    }

    fn real() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::new(Arc::new(SystemDisk), dir.path().to_owned(), Some(dir))
    }

    fn new(disk: Arc<dyn Disk>, dir: PathBuf, real: Option<tempfile::TempDir>) -> Self {
        let store = Some(open(&disk, &dir));
        Self { store, disk, dir, maintained: Cell::new(0), _real: real }
    }

    fn open_store(&self) -> &LocalStore {
        self.store.as_ref().expect("open between reopens")
    }
}

fn open(disk: &Arc<dyn Disk>, dir: &Path) -> LocalStore {
    let options = StoreOptions { maintenance_threads: 0, ..StoreOptions::new(dir, 16 << 20) };
    LocalStore::open(Arc::clone(disk), options).unwrap()
}

impl TestStore for OnDisk {
    fn store(&self) -> &dyn Store {
        self.open_store()
    }

    fn reopen(&mut self) {
        self.store.take().expect("open between reopens").close().unwrap();
        self.store = Some(open(&self.disk, &self.dir));
    }

    /// Flushes at first, and compacts everything now and then: both shapes get tested.
    fn maintain(&mut self) {
        let round = self.maintained.get();
        self.maintained.set(round + 1);
        if round % 3 == 2 {
            self.open_store().settle().unwrap();
        } else {
            self.open_store().flush().unwrap();
        }
    }
}

#[test]
fn conforms() {
    run(&|| Box::new(OnDisk::simulated()));
}

#[test]
fn conforms_on_a_real_disk() {
    run_random(&|| Box::new(OnDisk::real()), 77, 100);
}

#[test]
#[ignore = "a long run: cargo test -p store-local --release -- --ignored"]
fn conforms_at_length() {
    for seed in 100..2_100 {
        run_random(&|| Box::new(OnDisk::simulated()), seed, 300);
    }
}
