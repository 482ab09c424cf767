//! Reads one segment file.
//!
//! Layout: docs/formats/segment.md is normative; this module checks what that page says it checks.
//!
//! Invariants
//! - Nothing is used before the checksum over it was verified.
//! - An open reader holds a few hundred bytes; everything else is in the page cache, bounded there.
//! - Damage is reported with path and offset, and only what it covers becomes unreadable.
//!
//! Not here: which segments to read, tombstones, merging (store-local).

use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use model::{Bitmap, Column, FieldType, SeriesId, TimeRange};
use platform::{Disk, File, PageCache};

use crate::SegmentError;
use crate::directory::{Block, BlockEntry, Chunk, ChunkEntry, Directory, Edge, KeyRange, top};
use crate::format::{
    self, Extent, HEADER_LEN, HeaderError, MeasurementList, SegmentInfo, TRAILER_LEN,
};
use crate::input::Malformed;
use crate::runs::Runs;
use crate::sift::{self, FieldCondition, Stretch};
use crate::sparse::SparseColumn;
use crate::windows::{BlockWindows, WindowIndex, WindowSummaries};

mod ahead;
mod blocks;
pub(crate) mod column;
mod fields;
mod matching;
mod pieces;
mod read_ahead;
mod ready;
mod selected;
mod source;
mod thaw;
mod thawed;
mod times;
mod verify;
mod without_gaps;

pub use ahead::Expected;
pub(crate) use ahead::Known;
pub use blocks::{BlockWalk, Blocks};
pub(crate) use column::PageShape;
pub use matching::ConditionTest;
pub use read_ahead::ReadAhead;
pub(crate) use ready::Thawer;
pub(crate) use thaw::is_slow_in_parts;
pub use times::{FoundRows, ShortTime};
pub use verify::{FieldStats, VerifyReport};

use source::Kind;
pub(crate) use source::Source;

/// Of a directory with more chunks than this not every block is looked at to find where series are.
const STRETCHES_OF_CHUNKS: usize = 8;

/// Series that come one behind the other, of which some may not be there, and about how many rows they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesStretch {
    /// The first.
    pub first: SeriesId,
    /// The last.
    pub last: SeriesId,
    /// Rows, against those of other stretches.
    pub rows: u64,
}

/// An open segment. Clones share the file.
#[derive(Clone, Debug)]
pub struct SegmentReader {
    shared: Arc<Shared>,
    /// Whether pages that had to be read stay in the cache.
    keep_pages: bool,
    /// Whether it is the file's bytes that matter, not what is known of them.
    is_checking: bool,
}

#[derive(Debug)]
struct Shared {
    source: Source,
    info: SegmentInfo,
    list: Extent,
    /// Length of the windows that were read last, nanoseconds; 0: none were.
    window_ns: AtomicI64,
}

impl SegmentReader {
    /// Opens a file and reads its header and trailer. What is read later goes through `cache`.
    ///
    /// # Errors
    /// If the disk fails, or this is not an undamaged segment of a known version.
    pub fn open(disk: &dyn Disk, path: &Path, cache: Arc<PageCache>) -> Result<Self, SegmentError> {
        Self::over(disk.open(path)?, cache)
    }

    pub(crate) fn over(file: Arc<dyn File>, cache: Arc<PageCache>) -> Result<Self, SegmentError> {
        Self::of(Source::new(file, cache))
    }

    pub(crate) fn of(source: Source) -> Result<Self, SegmentError> {
        let file = source.file();
        let bytes = file.len()?;
        let damaged = |at: u64, what: &str| SegmentError::corrupt(file.path(), at, what);
        let trailer_at = bytes.checked_sub(TRAILER_LEN as u64);
        let trailer_at = trailer_at.filter(|at| *at >= HEADER_LEN as u64);
        let trailer_at =
            trailer_at.ok_or_else(|| damaged(0, "the file is too short to be a segment"))?;
        let mut header = [0; HEADER_LEN];
        file.read_at(&mut header, 0)?;
        let sequence = format::decode_header(&header).map_err(|error| match error {
            HeaderError::Damaged(what) => damaged(0, what),
            HeaderError::Unsupported(detail) => {
                SegmentError::Unsupported { path: file.path().to_path_buf(), detail }
            }
        })?;
        let mut trailer = [0; TRAILER_LEN];
        file.read_at(&mut trailer, trailer_at)?;
        let (info, list) = format::decode_trailer(&trailer, bytes)
            .map_err(|e| damaged(trailer_at + e.at as u64, &e.what))?;
        if info.sequence != sequence {
            return Err(damaged(trailer_at, "header and trailer are of two segments"));
        }
        let shared = Arc::new(Shared { source, info, list, window_ns: AtomicI64::new(0) });
        Ok(Self { shared, keep_pages: true, is_checking: false })
    }

    /// A reader of the same file that leaves the cache as it is: for reading a lot just once.
    #[must_use]
    pub fn streaming(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), keep_pages: false, is_checking: false }
    }

    /// The same for a reader that checks the file.
    fn checking(&self) -> Self {
        Self { is_checking: true, ..self.streaming() }
    }

    /// Says that the file was removed: what the cache holds of it goes with the last clone of the
    /// reader. Until then it can be read as before.
    pub fn set_removed(&self) {
        self.shared.source.set_removed(true);
    }

    /// What the segment holds.
    #[must_use]
    pub fn info(&self) -> &SegmentInfo {
        &self.shared.info
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.shared.source.path()
    }

    /// The measurements there are rows of.
    ///
    /// # Errors
    /// If the disk fails or the list is damaged.
    pub fn measurements(&self) -> Result<Arc<MeasurementList>, SegmentError> {
        let list = self.shared.list;
        self.shared.source.object(Kind::List, &list, true, MeasurementList::memory_bytes, |bytes| {
            MeasurementList::decode(bytes, list.offset)
        })
    }

    /// The directory of a measurement, if there are rows of it.
    ///
    /// # Errors
    /// If the disk fails, or the list or the directory is damaged.
    pub fn directory(&self, measurement: &str) -> Result<Option<Arc<Directory>>, SegmentError> {
        let list = self.measurements()?;
        let Some(entry) = list.get(measurement) else { return Ok(None) };
        self.read_directory(&entry.directory).map(Some)
    }

    fn read_directory(&self, extent: &Extent) -> Result<Arc<Directory>, SegmentError> {
        let decode = |bytes: &[u8]| top::decode(bytes, extent.offset);
        self.shared.source.object(Kind::Directory, extent, true, Directory::memory_bytes, decode)
    }

    /// The blocks that can have rows of these series at these times, in the order of the file.
    /// Series and time ranges may be wider than what there is.
    #[must_use]
    pub fn blocks(
        &self,
        directory: &Arc<Directory>,
        series: &RangeInclusive<SeriesId>,
        time: TimeRange,
    ) -> Blocks {
        Blocks::new(self.clone(), Arc::clone(directory), KeyRange::new(series, time))
    }

    /// The same blocks, mostly of one series, to be asked for one after another with the reader and the directory at hand.
    /// They are found fastest `near` the [`Block::place`] of a block of the series before.
    #[must_use]
    pub fn walk(
        &self,
        directory: &Directory,
        series: &RangeInclusive<SeriesId>,
        time: TimeRange,
        near: usize,
    ) -> BlockWalk {
        BlockWalk::new(directory, KeyRange::new(series, time), near)
    }

    /// Which series come one behind the other, and about how many rows they have: block by block. Of a directory with many
    /// chunks it is chunk by chunk, with as many rows each: chunks have about as many blocks.
    ///
    /// # Errors
    /// If the disk fails or a chunk is damaged.
    pub fn stretches(&self, directory: &Directory) -> Result<Vec<SeriesStretch>, SegmentError> {
        let count = directory.chunks.len();
        if count > STRETCHES_OF_CHUNKS {
            let of_chunk =
                |c: &ChunkEntry| SeriesStretch { first: c.first.0, last: c.last.0, rows: 1 };
            return Ok(directory.chunks.iter().map(of_chunk).collect());
        }
        let mut stretches = Vec::new();
        for index in 0..count {
            let of_block = |b: &BlockEntry| {
                let rows = u64::from(b.rows);
                SeriesStretch { first: b.first.0, last: b.last.0, rows }
            };
            stretches.extend(self.chunk(directory, index)?.blocks.iter().map(of_block));
        }
        Ok(stretches)
    }

    /// Gets ready for what is `expected` to be read of `blocks`, at times inside `time`: what reading a block waits for
    /// is on its way from memory for all of them then. No result is another for that, and nothing is read from the
    /// disk. Worth it if the blocks are of several series. Says whether all of it is in memory, as far as is seen here.
    pub fn look_ahead(
        &self,
        blocks: &mut [&mut Block],
        fields: &[(Option<usize>, FieldType)],
        time: TimeRange,
        expected: Expected,
    ) -> bool {
        !self.keep_pages || ahead::look_ahead(self, blocks, fields, time, expected)
    }

    /// To ask the disk for what is `expected` to be read of blocks at times inside `time`.
    #[must_use]
    pub fn read_ahead<'a>(
        &'a self,
        fields: &[(Option<usize>, FieldType)],
        time: TimeRange,
        expected: Expected,
    ) -> ReadAhead<'a> {
        ReadAhead::new(self, fields, time, expected)
    }

    fn chunk(&self, directory: &Directory, index: usize) -> Result<Arc<Chunk>, SegmentError> {
        if let Some(chunk) = &directory.inline {
            return Ok(Arc::clone(chunk));
        }
        let ChunkEntry { extent, first, last, .. } = directory.chunks[index];
        self.shared.source.object(Kind::Chunk, &extent, true, Chunk::memory_bytes, |bytes| {
            let chunk = Chunk::decode(bytes, Arc::clone(&directory.fields), extent.offset)?;
            let entry = chunk.entry(extent);
            if (entry.first, entry.last) != (first, last) {
                let what = "a chunk does not have the bounds its directory says".into();
                return Err(Malformed { at: 0, what });
            }
            Ok(chunk)
        })
    }

    /// Which rows of a block belong to which series.
    ///
    /// # Errors
    /// If the disk fails or the page is damaged.
    pub fn runs(&self, block: &Block) -> Result<Arc<Runs>, SegmentError> {
        let entry = block.entry();
        let bounds = (entry.first.0, entry.last.0);
        let Some(extent) = &entry.runs else {
            return Ok(Arc::new(Runs::one(bounds.0, entry.rows)));
        };
        self.shared.source.object(
            Kind::Runs,
            extent,
            self.keep_pages,
            Runs::memory_bytes,
            |bytes| Runs::decode(bytes, entry.rows, bounds),
        )
    }

    /// Adds the times of some rows of a block to `out`.
    ///
    /// # Errors
    /// If the disk fails or the page is damaged; `out` is of no use then.
    ///
    /// # Panics
    /// If the block does not have these rows.
    pub fn times(
        &self,
        block: &Block,
        rows: Range<usize>,
        out: &mut Vec<i64>,
    ) -> Result<(), SegmentError> {
        assert!(rows.start <= rows.end && rows.end <= block.rows(), "BUG: rows outside of a block");
        times::times(self, block, rows, out)
    }

    /// Adds the values of a field in some rows of a block to `out`, missing ones included: exactly
    /// as many entries as rows. `out` has the field's type.
    ///
    /// # Errors
    /// If the disk fails or the page is damaged; `out` is of no use then.
    ///
    /// # Panics
    /// If the block does not have these rows, the measurement does not have that many fields, or
    /// `out` is of another type.
    pub fn column(
        &self,
        block: &Block,
        field: usize,
        rows: Range<usize>,
        out: &mut Column,
    ) -> Result<(), SegmentError> {
        fields::column(self, block, field, rows, out)
    }

    /// Adds the values of fields in several parts of a block, as [`SegmentReader::column`] does for one; the parts ascend.
    /// There is a column for each field, or one for each part of each field, those of the first field first. A page that
    /// cannot be read in parts is decoded once for all of them. What one field waits for overlaps with what the next one
    /// does. A field without a number is one that the measurement does not have: all of its values are missing.
    ///
    /// # Errors
    /// If the disk fails or a page is damaged; the columns are of no use then.
    ///
    /// # Panics
    /// As [`SegmentReader::column`], or if the parts do not ascend, or there are not as many columns.
    pub fn columns(
        &self,
        block: &Block,
        parts: &[Range<usize>],
        fields: &[(Option<usize>, FieldType)],
        out: &mut [Column],
    ) -> Result<(), SegmentError> {
        fields::columns(self, block, parts, fields, out)
    }

    /// All rows of a block, each field in a column without gaps. A field without a number is one that the measurement does
    /// not have.
    ///
    /// # Errors
    /// If the disk fails or a page is damaged.
    ///
    /// # Panics
    /// If a field is of another type.
    pub fn sparse_columns(
        &self,
        block: &Block,
        fields: &[(Option<usize>, FieldType)],
    ) -> Result<Vec<SparseColumn>, SegmentError> {
        without_gaps::columns(self, block, fields)
    }

    /// Adds entries for some rows of a block that have a value where the field has one, but any value. A page
    /// is read only if some of its rows have none; says whether it was.
    ///
    /// # Errors
    /// If the disk fails or the page is damaged.
    ///
    /// # Panics
    /// As [`SegmentReader::column`].
    pub fn presence(
        &self,
        block: &Block,
        field: usize,
        rows: Range<usize>,
        out: &mut Column,
    ) -> Result<bool, SegmentError> {
        fields::presence(self, block, field, rows, out)
    }

    /// Puts the bits of the values of one row of a block into `out`, a field each, if all of them are numbers
    /// whose pages are there in a form that is fast to read a row of; says whether they are.
    ///
    /// # Errors
    /// If a page is damaged.
    ///
    /// # Panics
    /// If the block has no such row.
    pub fn row(
        &self,
        block: &Block,
        fields: &[(Option<usize>, FieldType)],
        row: usize,
        out: &mut Vec<Option<u64>>,
    ) -> Result<bool, SegmentError> {
        fields::row(self, block, fields, row, out)
    }

    /// The rows at times inside `time` among `rows`, which are all of one series.
    ///
    /// # Errors
    /// If the disk fails or the page is damaged.
    ///
    /// # Panics
    /// If the block does not have these rows.
    pub fn rows_in(
        &self,
        block: &Block,
        rows: Range<usize>,
        time: TimeRange,
    ) -> Result<Range<usize>, SegmentError> {
        times::rows_in(self, block, rows, time)
    }

    /// The same, and what was read to find them.
    ///
    /// # Errors
    /// If the disk fails or the page is damaged.
    ///
    /// # Panics
    /// If the block does not have these rows.
    pub fn find_rows(
        &self,
        block: &Block,
        rows: Range<usize>,
        time: TimeRange,
    ) -> Result<FoundRows, SegmentError> {
        times::find(self, block, rows, time)
    }

    /// The same by calculation; `None` if times of the block have to be read for it.
    ///
    /// # Errors
    /// As of [`Self::find_rows`], and so are panics.
    pub fn calculated_rows(
        &self,
        block: &Block,
        rows: Range<usize>,
        time: TimeRange,
    ) -> Result<Option<FoundRows>, SegmentError> {
        times::calculated(self, block, rows, time)
    }

    /// The times of the first and the last of some rows of a block, at least one, which are all of one series.
    ///
    /// # Errors
    /// If the disk fails or the page is damaged.
    ///
    /// # Panics
    /// If the block does not have these rows, or there are none.
    pub fn bounds(&self, block: &Block, rows: &Range<usize>) -> Result<TimeRange, SegmentError> {
        times::bounds(self, block, rows)
    }

    /// The first or the last row of a block of one series at a time inside `time`, and its time.
    ///
    /// # Errors
    /// If the disk fails or the page is damaged.
    pub fn end_row(
        &self,
        block: &Block,
        time: TimeRange,
        edge: Edge,
    ) -> Result<Option<(usize, i64)>, SegmentError> {
        times::end_row(self, block, time, edge)
    }

    /// The rows at times inside `time` among the rows of each of some `series`, which ascend. Their times are added to `out`.
    ///
    /// # Errors
    /// If the disk fails or the page is damaged; `out` is of no use then.
    ///
    /// # Panics
    /// If the block does not have these rows, or the series do not ascend.
    pub fn times_in(
        &self,
        block: &Block,
        series: &[Range<usize>],
        time: TimeRange,
        out: &mut Vec<i64>,
    ) -> Result<Vec<Range<usize>>, SegmentError> {
        times::times_in(self, block, series, time, out)
    }

    /// The windows of a block, if it keeps summaries of any field.
    ///
    /// # Errors
    /// If the disk fails or the page is damaged.
    pub fn windows(&self, block: &Block) -> Result<Option<Arc<BlockWindows>>, SegmentError> {
        let Some(extent) = &block.entry().window_index else { return Ok(None) };
        if let Some(known) = block.known.windows() {
            return Ok(Some(Arc::clone(known)));
        }
        let source = &self.shared.source;
        let cached = self.keep_pages.then(|| source.cached(Kind::Windows, extent)).flatten();
        if cached.is_some() {
            return Ok(cached);
        }
        let runs = self.runs(block)?;
        let decode = |bytes: &[u8]| {
            let index = WindowIndex::decode(bytes, block.entry().rows, runs)?;
            self.shared.window_ns.store(index.window_ns(), Ordering::Relaxed);
            Ok(BlockWindows::new(index, block.pages().len()))
        };
        source
            .object(Kind::Windows, extent, self.keep_pages, BlockWindows::memory_bytes, decode)
            .map(Some)
    }

    /// Reads the window summaries of fields into `windows`, which are the block's, unless they are
    /// there. Gives the place of each for [`BlockWindows::field`], or `None` if the block keeps none of
    /// one of them.
    ///
    /// # Errors
    /// If the disk fails or a page is damaged.
    pub fn load_windows(
        &self,
        block: &Block,
        fields: impl IntoIterator<Item = usize>,
        windows: &Arc<BlockWindows>,
    ) -> Result<Option<Vec<usize>>, SegmentError> {
        let source = &self.shared.source;
        let (mut places, mut missing, mut extents) = (Vec::new(), Vec::new(), Vec::new());
        for field in fields {
            let Some((place, page)) = block.page_place(field) else { return Ok(None) };
            places.push(place);
            let cell = windows.cell(place);
            if cell.is_some_and(|cell| cell.get().is_some()) {
                continue;
            }
            let Some(extent) = page.windows else { return Ok(None) };
            let Some(cell) = cell else {
                return Err(source.damaged(extent.offset, "windows of a block with fewer fields"));
            };
            missing.push((cell, block.field_type(field)));
            extents.push(extent);
        }
        if missing.is_empty() {
            return Ok(Some(places));
        }
        let mut bytes_added = 0;
        let pages = source.pages(&extents, false)?;
        for (((cell, field_type), extent), page) in missing.into_iter().zip(extents).zip(pages) {
            let decoded = WindowSummaries::decode(&page, windows.index(), field_type);
            let decoded = decoded.map_err(|e| source.malformed(extent.offset, &e))?;
            let bytes = decoded.memory_bytes();
            if cell.set(decoded).is_ok() {
                bytes_added += bytes;
            }
        }
        if let Some(of_block) = &block.entry().window_index {
            source.grew(Kind::Windows, of_block, windows, bytes_added);
        }
        Ok(Some(places))
    }

    /// Of `rows` of a block those that may satisfy all conditions, as far as summaries of pages and windows tell:
    /// ascending, next to each other only where not all satisfy them on both sides.
    ///
    /// # Errors
    /// If the disk fails or a page is damaged.
    pub fn sift(
        &self,
        block: &Block,
        rows: &Range<usize>,
        conditions: &[FieldCondition],
    ) -> Result<Vec<Stretch>, SegmentError> {
        sift::sift(self, block, rows, conditions)
    }

    /// Which of some parts of a block, ascending, satisfy all conditions, each of which has a constant of its field's type or a field
    /// of the same type on its right; `test` compares what has to be decoded for that. `None`: they are not at hand in pieces.
    ///
    /// # Errors
    /// If a page is damaged.
    pub fn matching(
        &self,
        block: &Block,
        parts: &[Range<usize>],
        conditions: &[FieldCondition],
        test: &ConditionTest<'_>,
    ) -> Result<Option<Vec<Bitmap>>, SegmentError> {
        matching::matching(self, block, parts, conditions, test)
    }

    /// Checks every checksum, decodes every page and compares it with what is said about it.
    #[must_use]
    pub fn verify(&self) -> VerifyReport {
        verify::verify(self)
    }
}

#[cfg(test)]
mod tests;
