//! One bound for everything that is read from immutable files and worth keeping: verified bytes,
//! and objects decoded from them.
//!
//! Invariants
//! - A page is handed out only after its checksum matched what the caller expects of the range.
//! - Bytes in use stay within the capacity, entry for entry including bookkeeping; an entry larger
//!   than a shard is handed out but not kept.
//! - The disk, decoding and freeing of evicted entries happen outside the locks.
//!
//! Two threads that miss the same range at once both read it; one result is kept. A caller says with
//! `keep` whether what it reads stays, and counts as asked for: large scans leave the cache as it is.
//! Eviction is `shard`'s, the disk `read`'s. Not here: files that change (their ranges must not be
//! cached), readahead.

use std::any::Any;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::disk::{DiskError, File};
use shard::{Key, Shard, Value};

mod read;
mod shard;

/// Where a page is, and what it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRange {
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Length, bytes.
    pub len: u32,
    /// CRC-32C of the bytes as they were written.
    pub crc32c: u32,
}

impl PageRange {
    /// One past its last byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.len))
    }
}

/// Bytes of a file, verified when they were read.
#[derive(Debug)]
pub struct Page {
    bytes: Box<[u8]>,
}

impl Deref for Page {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// An immutable file with the identity its cached ranges go by. Clones are the same file.
#[derive(Clone, Debug)]
pub struct CacheFile {
    file: Arc<dyn File>,
    id: u64,
}

impl CacheFile {
    /// Gives a file an identity that no other has in this process, nor ever had.
    #[must_use]
    pub fn new(file: Arc<dyn File>) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        Self { file, id: NEXT_ID.fetch_add(1, Ordering::Relaxed) }
    }

    /// The identity.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The file, for reads that bypass the cache.
    #[must_use]
    pub fn file(&self) -> &Arc<dyn File> {
        &self.file
    }
}

/// Why a page cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The bytes are not those that were written.
    #[error(
        "{} at offset {offset}: checksum of {len} bytes is {found:08x}, not {expected:08x}",
        path.display()
    )]
    Checksum {
        /// The file.
        path: PathBuf,
        /// Where the range starts.
        offset: u64,
        /// Its length.
        len: u32,
        /// CRC-32C of the bytes as they were written.
        expected: u32,
        /// CRC-32C of the bytes as they are.
        found: u32,
    },
    /// The disk failed to deliver the bytes.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// What a cache did and holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCacheStats {
    /// Requests answered from memory.
    pub hits: u64,
    /// Requests that were not.
    pub misses: u64,
    /// Entries that made room for others.
    pub evictions: u64,
    /// Entries held.
    pub entries: u64,
    /// Bytes held, with bookkeeping.
    pub bytes_used: u64,
    /// Bytes that may be held.
    pub capacity_bytes: u64,
}

/// A bounded cache of pages and decoded objects, shared between threads.
#[derive(Debug)]
pub struct PageCache {
    /// A power of two of them.
    shards: Box<[PaddedShard]>,
}

/// Neighbours in an array that do not share a cache line, nor the pair that is prefetched.
#[derive(Debug)]
#[repr(align(128))]
struct PaddedShard(Mutex<Shard>);

const SHARDS_MAX: usize = 64;
/// Smaller shards would be a poor fit for large pages.
const SHARD_BYTES_MIN: usize = 4 << 20;

impl PageCache {
    /// A cache that holds up to `capacity_bytes`; 0 keeps nothing.
    #[must_use]
    pub fn new(capacity_bytes: usize) -> Self {
        let shards = (capacity_bytes / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        // The largest power of two that is not above.
        Self::with_shards(capacity_bytes, 1 << shards.ilog2())
    }

    fn with_shards(capacity_bytes: usize, shards: usize) -> Self {
        let shard = |_| PaddedShard(Mutex::new(Shard::new(capacity_bytes / shards)));
        Self { shards: (0..shards).map(shard).collect() }
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        // The tables inside take the other bits.
        &self.shards[(hash >> 32) as usize & (self.shards.len() - 1)].0
    }

    /// The bytes of a range.
    pub fn get_or_read(
        &self,
        file: &CacheFile,
        range: &PageRange,
        keep: bool,
    ) -> Result<Arc<Page>, PageError> {
        match self.cached(file, range, keep) {
            Some(page) => Ok(page),
            None => read::read(file, range).map(|page| self.put(file, range, page, keep)),
        }
    }

    /// Whether the bytes of a range are in memory. That it was asked for does not count.
    #[must_use]
    pub fn has_page(&self, file: &CacheFile, range: &PageRange) -> bool {
        let key = Key::page(file.id, range.offset);
        let hash = key.hash();
        self.shard(hash).lock().has(hash, &key)
    }

    /// The bytes of ranges. Those that are not in memory and lie close to one another are read with one
    /// call.
    pub fn get_or_read_all(
        &self,
        file: &CacheFile,
        ranges: &[PageRange],
        keep: bool,
    ) -> Result<Vec<Arc<Page>>, PageError> {
        let cached = |range| self.cached(file, range, keep);
        let mut pages: Vec<Option<Arc<Page>>> = ranges.iter().map(cached).collect();
        let mut missing: Vec<usize> = (0..pages.len()).filter(|at| pages[*at].is_none()).collect();
        missing.sort_unstable_by_key(|at| ranges[*at].offset);
        let wanted: Vec<PageRange> = missing.iter().map(|at| ranges[*at]).collect();
        for (at, page) in missing.into_iter().zip(read::read_all(file, &wanted)?) {
            pages[at] = Some(self.put(file, &ranges[at], page, keep));
        }
        Ok(pages.into_iter().map(|page| page.expect("BUG: a page was not read")).collect())
    }

    fn cached(&self, file: &CacheFile, range: &PageRange, keep: bool) -> Option<Arc<Page>> {
        let key = Key::page(file.id, range.offset);
        let hash = key.hash();
        let mut shard = self.shard(hash).lock();
        let cached = if keep { shard.get(hash, &key) } else { shard.peek(hash, &key) };
        drop(shard);
        match cached {
            Some(Value::Page(page)) if page.len() == range.len as usize => Some(page),
            _ => None,
        }
    }

    fn put(&self, file: &CacheFile, range: &PageRange, page: Page, keep: bool) -> Arc<Page> {
        let page = Arc::new(page);
        if !keep {
            return page;
        }
        let key = Key::page(file.id, range.offset);
        let hash = key.hash();
        let (kept, evicted) =
            self.shard(hash).lock().insert(hash, key, Value::Page(Arc::clone(&page)), page.len());
        drop(evicted);
        match kept {
            Some(Value::Page(earlier)) if earlier.len() == page.len() => earlier,
            _ => page,
        }
    }

    /// The object of `kind` decoded from the file with identity `file_id` at `offset`; made by
    /// `make` if it is not there, and kept at a cost of `bytes_cost`.
    ///
    /// # Panics
    /// If two types share a `kind`.
    pub fn get_or_insert_with<T, E>(
        &self,
        file_id: u64,
        offset: u64,
        kind: u16,
        bytes_cost: usize,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E>
    where
        T: Any + Send + Sync,
    {
        let key = Key::object(file_id, offset, kind);
        let hash = key.hash();
        let cached = self.shard(hash).lock().get(hash, &key);
        if let Some(value) = cached {
            return Ok(value.into_object());
        }
        let object = Arc::new(make()?);
        let value = Value::Object(Arc::clone(&object) as Arc<dyn Any + Send + Sync>);
        let (kept, evicted) = self.shard(hash).lock().insert(hash, key, value, bytes_cost);
        drop(evicted);
        Ok(kept.map_or(object, Value::into_object))
    }

    /// The object of `kind` decoded from the file with identity `file_id` at `offset`, if it is there; that it was
    /// asked for does not count.
    ///
    /// # Panics
    /// If two types share a `kind`.
    pub fn peek<T>(&self, file_id: u64, offset: u64, kind: u16) -> Option<Arc<T>>
    where
        T: Any + Send + Sync,
    {
        let key = Key::object(file_id, offset, kind);
        let hash = key.hash();
        let found = self.shard(hash).lock().peek(hash, &key);
        found.map(Value::into_object)
    }

    /// Says that an object which [`Self::get_or_insert_with`] gave out takes `bytes` more than before;
    /// others make room. Nothing happens if the cache does not hold it any more.
    pub fn grow<T>(&self, file_id: u64, offset: u64, kind: u16, object: &Arc<T>, bytes: usize)
    where
        T: Any + Send + Sync,
    {
        let key = Key::object(file_id, offset, kind);
        let hash = key.hash();
        let address = Arc::as_ptr(object).cast::<()>();
        let evicted = self.shard(hash).lock().grow(hash, &key, address, bytes);
        drop(evicted);
    }

    /// Drops everything of a file that was removed. A read under way may still add to it; that
    /// goes like any entry nobody asks for.
    pub fn remove_file(&self, file_id: u64) {
        for shard in &self.shards {
            let removed = shard.0.lock().remove_file(file_id);
            drop(removed);
        }
    }

    /// Counters and sizes.
    #[must_use]
    pub fn stats(&self) -> PageCacheStats {
        let mut stats = PageCacheStats::default();
        for shard in &self.shards {
            shard.0.lock().add_to(&mut stats);
        }
        stats
    }
}

#[cfg(test)]
mod tests;
