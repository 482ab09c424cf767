//! The embedded store against the suite every store must pass.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;

use platform::SystemDisk;
use store::Store;
use store::conformance::{TestStore, run, run_random};
use store_local::{LocalStore, StoreOptions};

/// A store in a directory of its own that lives as long as the test.
struct OnDisk {
    store: Option<LocalStore>,
    dir: tempfile::TempDir,
    maintained: Cell<u32>,
}

impl OnDisk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Some(open(dir.path().to_owned()));
        Self { store, dir, maintained: Cell::new(0) }
    }

    fn open_store(&self) -> &LocalStore {
        self.store.as_ref().expect("open between reopens")
    }
}

fn open(dir: PathBuf) -> LocalStore {
    let options = StoreOptions { maintenance_threads: 0, ..StoreOptions::new(dir, 16 << 20) };
    LocalStore::open(Arc::new(SystemDisk), options).unwrap()
}

impl TestStore for OnDisk {
    fn store(&self) -> &dyn Store {
        self.open_store()
    }

    fn reopen(&mut self) {
        self.store.take().expect("open between reopens").close().unwrap();
        self.store = Some(open(self.dir.path().to_owned()));
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
    run(&|| Box::new(OnDisk::new()));
}

#[test]
#[ignore = "a long run: cargo test -p store-local --release -- --ignored"]
fn conforms_at_length() {
    for seed in 100..2_100 {
        run_random(&|| Box::new(OnDisk::new()), seed, 300);
    }
}
