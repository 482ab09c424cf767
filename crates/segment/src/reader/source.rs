//! The bytes of a segment, verified, through the page cache.

use std::any::Any;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use platform::{CacheFile, File, Page, PageCache, PageError};

use crate::SegmentError;
use crate::format::Extent;
use crate::input::Malformed;

/// What a decoded object in the cache is, so that one offset can stand for several.
#[derive(Clone, Copy, Debug)]
#[repr(u16)]
pub(crate) enum Kind {
    List,
    Directory,
    Chunk,
    Runs,
    Windows,
    Thawed,
    KeptTimes,
}

#[derive(Debug)]
pub(crate) struct Source {
    file: CacheFile,
    cache: Arc<PageCache>,
    /// Whether nobody will open the file again.
    removed: AtomicBool,
}

impl Drop for Source {
    fn drop(&mut self) {
        // Looks at every entry of the cache: not worth it for files that only get closed.
        if self.removed.load(Ordering::Relaxed) {
            self.cache.remove_file(self.file.id());
        }
    }
}

impl Source {
    pub(crate) fn new(file: Arc<dyn File>, cache: Arc<PageCache>) -> Self {
        Self { file: CacheFile::new(file), cache, removed: AtomicBool::new(false) }
    }

    pub(crate) fn file(&self) -> &Arc<dyn File> {
        self.file.file()
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.file().path()
    }

    /// A part of the file; `keep` says whether it shall stay in the cache.
    pub(crate) fn page(&self, extent: &Extent, keep: bool) -> Result<Arc<Page>, SegmentError> {
        self.cache.get_or_read(&self.file, extent, keep).map_err(|error| self.failed(error))
    }

    /// Parts of the file, those that lie close to one another with one read.
    pub(crate) fn pages(
        &self,
        extents: &[Extent],
        keep: bool,
    ) -> Result<Vec<Arc<Page>>, SegmentError> {
        let pages = self.cache.get_or_read_all(&self.file, extents, keep);
        pages.map_err(|error| self.failed(error))
    }

    /// Whether the cache has a part of the file as it stands there.
    pub(crate) fn has_page(&self, extent: &Extent) -> bool {
        self.cache.has_page(&self.file, extent)
    }

    /// Whether what the cache has of the file goes with this.
    pub(crate) fn set_removed(&self, is_removed: bool) {
        self.removed.store(is_removed, Ordering::Relaxed);
    }

    /// A decoded part of the file, if the cache has it.
    pub(crate) fn cached<T: Any + Send + Sync>(
        &self,
        kind: Kind,
        extent: &Extent,
    ) -> Option<Arc<T>> {
        let (id, offset) = (self.file.id(), extent.offset);
        self.cache.get_or_insert_with(id, offset, kind as u16, 0, || Err(())).ok()
    }

    /// The same, which does not count as asking for it.
    pub(crate) fn peek<T: Any + Send + Sync>(&self, kind: Kind, extent: &Extent) -> Option<Arc<T>> {
        self.cache.peek(self.file.id(), extent.offset, kind as u16)
    }

    /// A decoded part of the file.
    pub(crate) fn object<T: Any + Send + Sync>(
        &self,
        kind: Kind,
        extent: &Extent,
        keep: bool,
        bytes_cost: fn(&T) -> usize,
        decode: impl FnOnce(&[u8]) -> Result<T, Malformed>,
    ) -> Result<Arc<T>, SegmentError> {
        let make = || {
            // The decoded form is what stays: its bytes need no place of their own.
            let page = self.page(extent, false)?;
            decode(&page).map_err(|e| self.malformed(extent.offset, &e))
        };
        if !keep {
            return make().map(Arc::new);
        }
        // What an object costs is known only once it is there: look, make it, and put it in.
        if let Some(cached) = self.cached(kind, extent) {
            return Ok(cached);
        }
        let made = make()?;
        let cost = bytes_cost(&made);
        Ok(self.kept(kind, extent, cost, || made))
    }

    /// What the cache has of a part of the file, or what is made for that.
    fn kept<T: Any + Send + Sync>(
        &self,
        kind: Kind,
        extent: &Extent,
        bytes: usize,
        make: impl FnOnce() -> T,
    ) -> Arc<T> {
        let (id, offset) = (self.file.id(), extent.offset);
        let make = || Ok::<_, Infallible>(make());
        match self.cache.get_or_insert_with(id, offset, kind as u16, bytes, make) {
            Ok(object) => object,
        }
    }

    /// What was found out about a part of the file, and counts when it grows; nothing at first.
    pub(crate) fn entry<T: Any + Send + Sync + Default>(
        &self,
        kind: Kind,
        extent: &Extent,
    ) -> Arc<T> {
        self.kept(kind, extent, size_of::<T>(), T::default)
    }

    /// Puts in the cache what was found out about a part of the file, unless something is there.
    pub(crate) fn put<T: Any + Send + Sync>(
        &self,
        kind: Kind,
        extent: &Extent,
        object: T,
        bytes: usize,
    ) {
        drop(self.kept(kind, extent, bytes, || object));
    }

    /// Says that an object, of a part that was asked for, takes `bytes` more than before.
    pub(crate) fn grew<T: Any + Send + Sync>(
        &self,
        kind: Kind,
        extent: &Extent,
        object: &Arc<T>,
        bytes: usize,
    ) {
        self.cache.grow(self.file.id(), extent.offset, kind as u16, object, bytes);
    }

    /// An error about a part that starts at `offset`.
    pub(crate) fn malformed(&self, offset: u64, error: &Malformed) -> SegmentError {
        self.damaged(offset + error.at as u64, &error.what)
    }

    pub(crate) fn damaged(&self, offset: u64, what: &str) -> SegmentError {
        SegmentError::corrupt(self.path(), offset, what)
    }

    fn failed(&self, error: PageError) -> SegmentError {
        match error {
            PageError::Disk(error) => SegmentError::Disk(error),
            PageError::Checksum { path, offset, len, expected, found } => SegmentError::Corrupt {
                path,
                offset,
                detail: format!(
                    "the checksum of {len} bytes is {found:#010x}, {expected:#010x} was written"
                ),
            },
        }
    }
}
