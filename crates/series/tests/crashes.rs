//! What the index has flushed survives failing directories, killed processes and lost power, in any
//! order of these.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;
use std::sync::Arc;

use model::{DatabaseId, SeriesKey};
use platform::{Fault, FaultConfig, PageCache, SimDisk};
use series::{SeriesIndex, SeriesOptions};

const DB: DatabaseId = DatabaseId(1);
const DIR: &str = "/series";

fn open(disk: &SimDisk) -> SeriesIndex {
    let options = SeriesOptions::new(1, Arc::new(PageCache::new(1 << 20)));
    SeriesIndex::open(Arc::new(disk.clone()), Path::new(DIR), options).unwrap()
}

fn key(n: u32) -> SeriesKey {
    SeriesKey::parse(format!("m,host=h{n}").as_bytes()).unwrap()
}

/// Creates series and flushes and merges now and then; gives the keys that a flush has acknowledged.
fn fill(index: &SeriesIndex, keys: std::ops::Range<u32>) -> Vec<u32> {
    let (mut waiting, mut flushed) = (Vec::new(), Vec::new());
    for n in keys {
        index.create(DB, &key(n)).unwrap();
        waiting.push(n);
        if index.flush().is_ok() {
            flushed.append(&mut waiting);
        }
        // Whether it fails is all the same: nothing may be lost by it.
        let _ = index.merge_step();
    }
    flushed
}

#[test]
fn what_was_flushed_stays() {
    for seed in 0..400 {
        let disk = SimDisk::new(seed, FaultConfig::default());
        let index = open(&disk);
        let mut expected = fill(&index, 0..6);
        disk.set_faults(FaultConfig { names: Fault::OneIn(5), ..FaultConfig::default() });
        expected.extend(fill(&index, 6..12));
        // What the killed process left is trusted by the next, then power is lost.
        let killed = disk.kill();
        drop(open(&killed));
        let index = open(&killed.crash());
        for n in expected {
            assert!(index.lookup(DB, &key(n)).unwrap().is_some(), "seed {seed}: h{n} is lost");
        }
    }
}
