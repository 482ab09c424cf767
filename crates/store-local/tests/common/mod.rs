//! What the tests share: stores that nothing happens in but what a test does.
#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::sync::Arc;
use std::time::Duration;

use platform::SimDisk;
use store::testing;
use store::{Scan, ScanRequest, ScanSlice};
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

/// A number that looks like one by chance, the same for the same number.
pub(crate) fn random(number: u64) -> u64 {
    let mixed = (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32
}

/// All rows of every so many'th series, by the numbers that end keys like `m,id=0123`.
pub(crate) fn every_series(scan: &dyn Scan, request: &ScanRequest, every: usize) -> ScanSlice {
    let is_wanted = |ordinal: &u32| {
        let key = testing::series_key(scan, request, *ordinal);
        key[5..].parse::<usize>().unwrap().is_multiple_of(every)
    };
    let all = 0..scan.series().len;
    let series = (every > 1).then(|| all.filter(is_wanted).collect::<Vec<u32>>().into());
    ScanSlice { series, ..ScanSlice::all() }
}
