//! The directory of one measurement: its fields and where its blocks are.
//!
//! Blocks are listed in chunks of bounded size, so that finding one block of millions decodes a few
//! kilobytes. The top level holds the bounds of every chunk; a directory of a single chunk holds it
//! inline. Everything here is immutable and lives in the page cache.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::{FieldType, Name, Scalar, SeriesId, TimeRange};

use crate::format::Extent;
use crate::numbers::{Numbers, scalar};
use crate::reader::Known;
use crate::rows::RowKey;

pub(crate) mod chunk;
pub(crate) mod top;

pub(crate) type Fields = Arc<[(Name, FieldType)]>;

/// Fields and blocks of one measurement in one segment.
#[derive(Debug)]
pub struct Directory {
    pub(crate) fields: Fields,
    pub(crate) chunks: Vec<ChunkEntry>,
    /// The only chunk, where there is just one; `chunks` then has its bounds.
    pub(crate) inline: Option<Arc<Chunk>>,
}

/// Where a chunk is and what its blocks cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkEntry {
    pub(crate) extent: Extent,
    pub(crate) first: RowKey,
    pub(crate) last: RowKey,
    pub(crate) time: TimeRange,
}

/// Consecutive blocks of a measurement.
#[derive(Debug, PartialEq)]
pub(crate) struct Chunk {
    pub(crate) fields: Fields,
    pub(crate) blocks: Vec<BlockEntry>,
    /// Pages of all blocks, block after block, ascending by field in each.
    pub(crate) pages: Vec<PageEntry>,
}

/// What is known of a block without reading it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BlockEntry {
    pub(crate) rows: u32,
    pub(crate) first: RowKey,
    pub(crate) last: RowKey,
    pub(crate) time: TimeRange,
    pub(crate) times: Extent,
    /// What reading the times showed.
    pub(crate) known_times: KnownTimes,
    /// Absent if the block has one series.
    pub(crate) runs: Option<Extent>,
    /// Absent if the block keeps no window summaries.
    pub(crate) window_index: Option<Extent>,
    /// Its part of [`Chunk::pages`].
    pub(crate) pages: Range<u32>,
    /// One past its last byte.
    pub(crate) end: u64,
}

/// The step of a block's times if somebody has read them and found them to be regular, otherwise 0: whoever asks next
/// needs no page. Two entries of a directory are equal whatever is known of them.
#[derive(Debug, Default)]
pub(crate) struct KnownTimes(AtomicU64);

impl KnownTimes {
    pub(crate) fn step(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|step| *step > 0)
    }

    pub(crate) fn set_step(&self, step: u64) {
        self.0.store(step, Ordering::Relaxed);
    }
}

impl Clone for KnownTimes {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }
}

impl PartialEq for KnownTimes {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// One field of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PageEntry {
    pub(crate) field: u32,
    /// Rows that have a value, at least 1.
    pub(crate) count: u32,
    pub(crate) extent: Extent,
    pub(crate) numbers: Option<Numbers>,
    /// Only in blocks of one series.
    pub(crate) edges: Option<Edges>,
    pub(crate) windows: Option<Extent>,
}

/// Bits of the values in the first and in the last row of a block; `None` where the row misses it.
pub(crate) type Edges = [Option<u64>; 2];

/// An end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Its first row.
    First,
    /// Its last row.
    Last,
}

/// A block of a segment: up to some ten thousand rows of one measurement.
///
/// Cheap to clone. Rows are numbered from 0 in the order of (series, time).
#[derive(Clone, Debug)]
pub struct Block {
    chunk: Arc<Chunk>,
    index: u32,
    /// What was found for it in the cache, if somebody looked ahead.
    pub(crate) known: Known,
}

/// What is known of one field of a block without reading it.
#[derive(Clone, Debug, PartialEq)]
pub struct PageSummary {
    /// Rows that have a value.
    pub count: u32,
    /// Smallest and largest value and the sum (which wraps for integers). Booleans: `sum` is the
    /// number of true ones, as an unsigned. `None` for strings, and for floats with a NaN.
    pub numbers: Option<SummaryNumbers>,
    /// Encoded size.
    pub bytes: u32,
}

/// Numbers of a page's values.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryNumbers {
    /// Smallest value.
    pub min: Scalar,
    /// Largest value.
    pub max: Scalar,
    /// Sum of the values.
    pub sum: Scalar,
}

impl Directory {
    /// Fields and their types, ascending by name.
    #[must_use]
    pub fn fields(&self) -> &[(Name, FieldType)] {
        &self.fields
    }

    /// The number of a field, if the measurement has it in this segment.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<usize> {
        self.fields.binary_search_by(|(n, _)| (**n).cmp(name)).ok()
    }

    /// The chunks that can have rows of `series` at a `time`.
    pub(crate) fn chunks_for(&self, keys: &KeyRange) -> Range<usize> {
        let from = self.chunks.partition_point(|c| c.last < keys.low);
        let to = self.chunks.partition_point(|c| c.first <= keys.high);
        from..to.max(from)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let names: usize = self.fields.iter().map(|(n, _)| n.len() + 16).sum();
        names
            + size_of_val(&*self.fields)
            + self.chunks.capacity() * size_of::<ChunkEntry>()
            + self.inline.as_ref().map_or(0, |c| c.memory_bytes())
            + size_of::<Self>()
    }
}

/// The (series, time) keys that rows of some series at some time lie between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyRange {
    pub(crate) low: RowKey,
    pub(crate) high: RowKey,
    pub(crate) time: TimeRange,
}

impl KeyRange {
    pub(crate) fn new(series: &RangeInclusive<SeriesId>, time: TimeRange) -> Self {
        Self { low: (*series.start(), time.min), high: (*series.end(), time.max), time }
    }
}

/// What `partition_point` finds, in steps that double from `near` on: entries are large, and those
/// far away are not in any cache.
fn partition_point_near<T>(entries: &[T], near: usize, holds: impl Fn(&T) -> bool) -> usize {
    let near = near.min(entries.len());
    let (mut low, mut high, mut step) = (0, near, 1);
    if entries.get(near).is_some_and(&holds) {
        (low, high) = (near + 1, entries.len());
        while let Some(entry) = entries.get(low + step - 1) {
            if !holds(entry) {
                high = low + step - 1;
                break;
            }
            (low, step) = (low + step, step * 2);
        }
    } else {
        while high > 0 {
            let at = high.saturating_sub(step);
            if holds(&entries[at]) {
                low = at + 1;
                break;
            }
            (high, step) = (at, step * 2);
        }
    }
    low + entries[low..high].partition_point(holds)
}

impl Chunk {
    /// The blocks that can have rows of `keys`, fastest if they are `near` that place.
    pub(crate) fn blocks_for(&self, keys: &KeyRange, near: usize) -> Range<usize> {
        let from = partition_point_near(&self.blocks, near, |b| b.last < keys.low);
        let to = partition_point_near(&self.blocks, from, |b| b.first <= keys.high);
        from..to.max(from)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<BlockEntry>()
            + self.pages.capacity() * size_of::<PageEntry>()
            + size_of::<Self>()
    }
}

impl Block {
    /// The block at a place of a chunk.
    pub(crate) fn new(chunk: Arc<Chunk>, index: usize) -> Self {
        Self { chunk, index: index as u32, known: Known::default() }
    }

    pub(crate) fn entry(&self) -> &BlockEntry {
        &self.chunk.blocks[self.index as usize]
    }

    /// Values of a field, without missing ones.
    #[must_use]
    pub fn values_of(&self, field: usize) -> usize {
        self.page(field).map_or(0, |page| page.count as usize)
    }

    /// Values of all fields, without missing ones.
    #[must_use]
    pub fn values(&self) -> usize {
        self.pages().iter().map(|page| page.count as usize).sum()
    }

    pub(crate) fn pages(&self) -> &[PageEntry] {
        let range = &self.entry().pages;
        &self.chunk.pages[range.start as usize..range.end as usize]
    }

    pub(crate) fn page(&self, field: usize) -> Option<&PageEntry> {
        self.page_place(field).map(|(_, page)| page)
    }

    /// A field's page, and its place among those of the block.
    pub(crate) fn page_place(&self, field: usize) -> Option<(usize, &PageEntry)> {
        let pages = self.pages();
        // Most blocks have every field. Then where a page is says whose it is, without a look at it.
        if pages.len() == self.chunk.fields.len() {
            return pages.get(field).map(|page| (field, page));
        }
        let at = pages.binary_search_by(|p| (p.field as usize).cmp(&field)).ok()?;
        Some((at, &pages[at]))
    }

    pub(crate) fn field_type(&self, field: usize) -> FieldType {
        self.chunk.fields[field].1
    }

    /// Its place among the blocks around it, for [`SegmentReader::walk`](crate::SegmentReader::walk).
    #[must_use]
    pub fn place(&self) -> usize {
        self.index as usize
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.entry().rows as usize
    }

    /// Series and time of the first row.
    #[must_use]
    pub fn first(&self) -> (SeriesId, i64) {
        self.entry().first
    }

    /// Series and time of the last row.
    #[must_use]
    pub fn last(&self) -> (SeriesId, i64) {
        self.entry().last
    }

    /// From the earliest to the latest row.
    #[must_use]
    pub fn time(&self) -> TimeRange {
        self.entry().time
    }

    /// Whether all rows are of one series.
    #[must_use]
    pub fn has_one_series(&self) -> bool {
        self.entry().runs.is_none()
    }

    /// Whether there are window summaries of some fields.
    #[must_use]
    pub fn has_windows(&self) -> bool {
        self.entry().window_index.is_some()
    }

    /// Encoded size of all its pages and summaries.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.entry().end - self.entry().times.offset
    }

    /// Whether some row has a value of a field, by its number in the directory.
    #[must_use]
    pub fn has_values(&self, field: usize) -> bool {
        self.page_place(field).is_some()
    }

    /// Encoded size of the page of a field, by its number in the directory; 0 if no row has a value.
    #[must_use]
    pub fn page_bytes(&self, field: usize) -> u32 {
        self.page(field).map_or(0, |page| page.extent.len)
    }

    /// What is known of a field, by its number in the directory. `None`: no row has a value.
    #[must_use]
    pub fn summary(&self, field: usize) -> Option<PageSummary> {
        let page = self.page(field)?;
        let field_type = self.field_type(field);
        let numbers = page.numbers.and_then(|n| {
            let sum = match field_type {
                FieldType::Boolean => Scalar::Unsigned(n.sum),
                _ => scalar(field_type, n.sum)?,
            };
            Some(SummaryNumbers {
                min: scalar(field_type, n.min)?,
                max: scalar(field_type, n.max)?,
                sum,
            })
        });
        Some(PageSummary { count: page.count, numbers, bytes: page.extent.len })
    }

    /// What a field has in the row at an end of a block of one series: the eight bytes of its value, as
    /// [`Values::push_bits`](model::Values::push_bits) takes them; inner `None`: nothing. Outer `None`: the
    /// directory does not say, which it never does for strings.
    #[must_use]
    pub fn edge_bits(&self, field: usize, edge: Edge) -> Option<Option<u64>> {
        let Some(page) = self.page(field) else { return Some(None) };
        page.edges.map(|edges| edges[edge as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_finds_what_a_plain_one_finds_from_everywhere() {
        for len in 0..20 {
            let entries: Vec<usize> = (0..len).collect();
            for point in 0..=len {
                for near in 0..=len + 1 {
                    let found = partition_point_near(&entries, near, |e| *e < point);
                    assert_eq!(found, point, "{len} entries, from {near}");
                }
            }
        }
    }
}
