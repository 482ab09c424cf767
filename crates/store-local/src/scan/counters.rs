//! What the cursors of a scan touch.

use std::sync::atomic::{AtomicU64, Ordering};

use store::ScanStats;

/// Shared by the cursors of one scan.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) sources: AtomicU64,
    pub(crate) sources_pruned: AtomicU64,
    pub(crate) pages_read: AtomicU64,
    pub(crate) pages_pruned: AtomicU64,
    pub(crate) pages_summarised: AtomicU64,
    pub(crate) bytes_read: AtomicU64,
    pub(crate) rows: AtomicU64,
}

impl Counters {
    /// Adds to a counter.
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    /// The counts so far.
    pub(crate) fn stats(&self) -> ScanStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ScanStats {
            sources: get(&self.sources),
            sources_pruned: get(&self.sources_pruned),
            pages_read: get(&self.pages_read),
            pages_pruned: get(&self.pages_pruned),
            pages_summarised: get(&self.pages_summarised),
            bytes_read: get(&self.bytes_read),
            rows: get(&self.rows),
        }
    }
}
