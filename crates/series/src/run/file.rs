//! Reading the blocks of a run file, through the cache or past it.

use std::path::Path;
use std::sync::Arc;

use platform::{CacheFile, File, PageCache, PageError, PageRange};
use roaring::RoaringTreemap;

use crate::block::BlockRef;
use crate::bytes::Reader;
use crate::error::{Malformed, SeriesError, SeriesResult};
use crate::posting::read_set;

/// The bytes of one verified block.
pub(crate) type Page = Arc<platform::Page>;

/// Cached objects of a run: decoded lists of series. Pages have kinds of their own.
const SET_KIND: u16 = 1;

/// An open run file. What the cache holds of it goes when it is dropped.
#[derive(Debug)]
pub(crate) struct RunFile {
    file: CacheFile,
    cache: Arc<PageCache>,
    len: u64,
    verify: bool,
}

impl RunFile {
    pub(crate) fn new(
        file: Arc<dyn File>,
        cache: Arc<PageCache>,
        verify: bool,
    ) -> SeriesResult<Self> {
        let len = file.len()?;
        Ok(Self { file: CacheFile::new(file), cache, len, verify })
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.file().path()
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn read<const N: usize>(&self, offset: u64) -> SeriesResult<[u8; N]> {
        let mut bytes = [0; N];
        self.file.file().read_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    /// A block that is likely to be wanted again.
    pub(crate) fn page(&self, block: BlockRef) -> SeriesResult<Page> {
        self.read_page(block, true)
    }

    /// A block that a scan passes by once.
    pub(crate) fn page_uncached(&self, block: BlockRef) -> SeriesResult<Page> {
        self.read_page(block, false)
    }

    fn read_page(&self, block: BlockRef, keep: bool) -> SeriesResult<Page> {
        let BlockRef { offset, len, .. } = block;
        let range = PageRange { offset, len, crc32c: self.expected_crc(block)? };
        self.cache.get_or_read(&self.file, &range, keep).map_err(|error| self.page_error(error))
    }

    /// The decoded list of series that a block holds.
    pub(crate) fn set(&self, block: BlockRef) -> SeriesResult<Arc<RoaringTreemap>> {
        let cost = block.len as usize;
        self.cache.get_or_insert_with(self.file.id(), block.offset, SET_KIND, cost, || {
            self.set_uncached(block)
        })
    }

    /// The same for a scan that passes by once.
    pub(crate) fn set_uncached(&self, block: BlockRef) -> SeriesResult<RoaringTreemap> {
        let page = self.page_uncached(block)?;
        self.checked(block, read_set(&mut Reader::new(&page)))
    }

    fn expected_crc(&self, block: BlockRef) -> SeriesResult<u32> {
        // Before anything is allocated for it.
        let end = block.offset.checked_add(u64::from(block.len));
        if end.is_none_or(|end| end > self.len) {
            return Err(self.corrupt(block.offset, "a block reaches past the end of the file"));
        }
        if self.verify {
            return Ok(block.crc32c);
        }
        let mut bytes = vec![0; block.len as usize];
        self.file.file().read_at(&mut bytes, block.offset)?;
        Ok(crc32c::crc32c(&bytes))
    }

    fn page_error(&self, error: PageError) -> SeriesError {
        match error {
            PageError::Disk(error) => error.into(),
            PageError::Checksum { offset, .. } => self.corrupt(offset, &error.to_string()),
        }
    }

    pub(crate) fn corrupt(&self, offset: u64, detail: &str) -> SeriesError {
        SeriesError::Corrupt { path: self.path().to_owned(), offset, detail: detail.to_owned() }
    }

    /// Names the block that does not decode.
    pub(crate) fn checked<T>(
        &self,
        block: BlockRef,
        decoded: Result<T, Malformed>,
    ) -> SeriesResult<T> {
        decoded.map_err(|malformed| self.corrupt(block.offset, malformed.0))
    }
}

impl Drop for RunFile {
    fn drop(&mut self) {
        self.cache.remove_file(self.file.id());
    }
}
