//! What the tests share: stores that nothing happens in but what a test does.
#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::sync::Arc;
use std::time::Duration;

use platform::SimDisk;
use store_local::{LocalStore, StoreOptions};

/// A store in `/store` without threads of its own, the same in every run.
pub(crate) fn options(memory_bytes: usize) -> StoreOptions {
    StoreOptions {
        maintenance_threads: 0,
        hash_seed: Some(1),
        // However slow a test is.
        in_memory_max: Duration::from_secs(86_400),
        ..StoreOptions::new("/store", memory_bytes)
    }
}

/// Opens the store on `disk`.
pub(crate) fn open(disk: &SimDisk, memory_bytes: usize) -> LocalStore {
    LocalStore::open(Arc::new(disk.clone()), options(memory_bytes)).unwrap()
}
