//! What the owner of a store chooses.

use std::path::PathBuf;
use std::time::Duration;

pub use wal::SyncPolicy;

/// Where a store is and what it may use.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Its directory; made if missing.
    pub dir: PathBuf,
    /// What an acknowledgement promises.
    pub sync: SyncPolicy,
    /// Memory the store may use in all, bytes: memtables, caches, the series index.
    pub memory_bytes: usize,
    /// Threads for flushes and compactions, besides one for flushes alone. 0: none at all, the owner
    /// calls [`crate::LocalStore::maintain`].
    pub maintenance_threads: usize,
    /// How long a write waits for room in memory before it is refused.
    pub write_wait_max: Duration,
    /// A partition that nobody has written to for so long is flushed, and then merged for keeping.
    pub idle_after: Duration,
    /// Rows that are enough for a segment worth having wait in memory so long at most, and a tenth of it once nobody adds
    /// to them: columns are read faster than rows.
    pub in_memory_max: Duration,
    /// So many small partitions that lie side by side are worth making one; at least 2. See
    /// [`crate::LocalStore::join_partitions`].
    pub join_partitions_min: usize,
    /// Seed of the hashes of series keys in a new store. `None`: one that nobody can guess, so that
    /// nobody can choose keys that collide. An existing store keeps its own.
    pub hash_seed: Option<u64>,
}

impl StoreOptions {
    /// The defaults for a store in `dir` that may use `memory_bytes`.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>, memory_bytes: usize) -> Self {
        Self {
            dir: dir.into(),
            sync: SyncPolicy::Always,
            memory_bytes,
            maintenance_threads: std::thread::available_parallelism()
                .map_or(1, |n| n.get().div_ceil(2)),
            write_wait_max: Duration::from_secs(10),
            idle_after: Duration::from_secs(60),
            in_memory_max: Duration::from_secs(10),
            join_partitions_min: 8,
            hash_seed: None,
        }
    }
}

/// How a store's memory is shared out; all in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryPlan {
    /// A memtable this large is flushed.
    pub(crate) memtable_flush: usize,
    /// Above this writes are slowed down.
    pub(crate) memtables_soft: usize,
    /// Above this writes wait.
    pub(crate) memtables_hard: usize,
    /// Memtables that are flushed, but that queries read to their end, do not count until they are more than
    /// this.
    pub(crate) memtables_pinned: usize,
    /// Pages, directories and postings.
    pub(crate) page_cache: usize,
    /// Tags of whole measurements.
    pub(crate) tag_cache: usize,
    /// Series not yet in a run of the index.
    pub(crate) series: usize,
    /// Hashes of raw keys.
    pub(crate) resolver: usize,
    /// Deletes that are not carried out yet.
    pub(crate) tombstones: usize,
    /// Edits of the manifest after which it is written anew.
    pub(crate) manifest_snapshot: usize,
}

/// Larger ones make longer blocks of thousands of series, and fewer merges; but a restart has more to
/// replay, and queries beside a load more to read that has no summaries.
const MEMTABLE_FLUSH_MAX: usize = 128 << 20;
/// Smaller ones make more files than anybody could merge.
const MEMTABLE_FLUSH_MIN: usize = 64 << 10;
/// A snapshot of the manifest has all of them in one record of its log.
const TOMBSTONES_MAX: usize = wal::RECORD_BYTES_MAX / 4;
/// Log bytes that may wait for a flush, as a multiple of a full memtable: batches of wide rows take
/// far less in the log than in memory, text about the same.
const LOG_PER_MEMTABLE: u64 = 4;
/// Files at least that the log is cut into before a flush lets go of the oldest: what it lets go of is
/// rounded down to files.
const LOG_FILES: u64 = 16;
/// The file that is written and a spare take their whole length on the disk.
const LOG_FILE_BYTES_MAX: u64 = 8 << 20;

impl MemoryPlan {
    /// Shares out `total` bytes.
    pub(crate) fn new(total: usize) -> Self {
        let memtable_flush = (total / 12).clamp(MEMTABLE_FLUSH_MIN, MEMTABLE_FLUSH_MAX);
        Self {
            memtable_flush,
            memtables_soft: memtable_flush * 5 / 2,
            memtables_hard: memtable_flush * 4,
            memtables_pinned: total / 10,
            page_cache: (total / 4 - total / 64).max(4 << 20),
            tag_cache: total / 64,
            series: (total / 8).max(1 << 20),
            resolver: (total / 8).max(1 << 20),
            tombstones: (total / 16).clamp(1 << 20, TOMBSTONES_MAX),
            manifest_snapshot: (total / 64).clamp(16 << 10, 4 << 20),
        }
    }

    /// Bytes the log may keep before memtables that hold it are flushed.
    pub(crate) fn log_bytes_max(&self) -> u64 {
        self.memtable_flush as u64 * LOG_PER_MEMTABLE
    }

    /// Bytes of one file of the log, allocated ahead.
    pub(crate) fn log_file_bytes(&self) -> u64 {
        (self.log_bytes_max() / LOG_FILES).min(LOG_FILE_BYTES_MAX)
    }
}
