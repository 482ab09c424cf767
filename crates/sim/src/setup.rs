//! How stores under test are set up.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use platform::SimDisk;
use store::StoreError;
use store_local::{Kept, LocalStore, StoreOptions, SyncPolicy};

use crate::pool;
use crate::random::Random;

/// A store's options, drawn from a seed.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) dir: PathBuf,
    hash_seed: u64,
    memory_bytes: usize,
    idle_after: Duration,
    in_memory_max: Duration,
    /// Whether old partitions of policy 0 become one, two and more at once.
    joins: bool,
    pub(crate) maintenance_threads: usize,
    pub(crate) sync: SyncPolicy,
}

impl Setup {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(!seed);
        Self {
            dir: PathBuf::from("/data"),
            hash_seed: random.next(),
            // So little that memtables fill up and the manifest is rewritten often.
            memory_bytes: random.pick(&[768 << 10, 1 << 20, 4 << 20]),
            // At once: `maintain` flushes and merges everything. Never: it merges flushes of similar
            // sizes.
            idle_after: random.pick(&[Duration::ZERO, Duration::from_secs(86_400)]),
            joins: random.chance(50),
            // At once: `maintain` flushes whatever is worth it.
            in_memory_max: random.pick(&[Duration::ZERO, Duration::from_secs(864_000)]),
            maintenance_threads: 0,
            sync: SyncPolicy::Always,
        }
    }

    pub(crate) fn open(&self, disk: &SimDisk) -> Result<LocalStore, StoreError> {
        let mut options = StoreOptions::new(self.dir.clone(), self.memory_bytes);
        options.maintenance_threads = self.maintenance_threads;
        options.sync = self.sync;
        options.idle_after = self.idle_after;
        options.in_memory_max = self.in_memory_max;
        options.hash_seed = Some(self.hash_seed);
        // Nobody would make room meanwhile.
        options.write_wait_max = Duration::ZERO;
        options.join_partitions_min = 2;
        let store = LocalStore::open(Arc::new(disk.clone()), options)?;
        if self.joins {
            store.join_partitions(|policy| {
                (pool::policy_number(policy.0) == 0).then_some(Kept::ForEver)
            });
        }
        Ok(store)
    }
}
