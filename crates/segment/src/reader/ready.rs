//! Thawed forms of pages, put in the cache while the segment is written.
//!
//! The first looks at a page that is slow in parts (`codec::is_slow_in_parts`) cost more than all later ones (`thaw`),
//! and what was just written is what somebody is about to ask for. While a page is written its values are at hand, so its thawed form costs
//! packing them once more: a quarter of what encoding the page took. Entries of the cache that nobody asks for leave it
//! first.
//!
//! Invariants
//! - Of a block all forms are made, or none.
//! - No more bytes of memory are filled than was said, but for the last block.
//! - What is in the cache goes with a file that is not finished.

use std::ops::Range;
use std::sync::Arc;

use platform::{File, PageCache};

use super::source::{Kind, Source};
use super::thaw::{GROUP_PAGES, ThawedPages};
use super::thawed::Thawed;
use super::times::KeptTimes;
use crate::directory::PageEntry;
use crate::format::Extent;
use crate::sparse::SparseView;

/// Makes the thawed forms of a segment's pages.
#[derive(Debug)]
pub(crate) struct Thawer {
    source: Source,
    bytes_left: usize,
    /// The pages of a block that share an entry of the cache, as far as they were written, and the bytes of memory these
    /// take.
    group: Option<(Extent, ThawedPages, usize)>,
}

impl Thawer {
    /// For a file that is being written: so many bytes of memory may be filled.
    pub(crate) fn new(file: Arc<dyn File>, cache: Arc<PageCache>, bytes_max: usize) -> Self {
        let source = Source::new(file, cache);
        // Until it is finished.
        source.set_removed(true);
        Self { source, bytes_left: bytes_max, group: None }
    }

    /// The file, which is finished, with what the cache has of it.
    pub(crate) fn finish(self) -> Source {
        self.source.set_removed(false);
        self.source
    }

    /// Whether the forms of another block are wanted.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes_left > 0
    }

    /// The block's times are the page at `extent`.
    pub(crate) fn add_times(&mut self, extent: &Extent, page: &[u8], times: &[i64]) {
        if codec::regular_i64(page).is_some() {
            return;
        }
        let times = KeptTimes::written(times, page);
        let bytes = size_of::<KeptTimes>() + times.memory_bytes();
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        self.source.put(Kind::KeptTimes, extent, times, bytes);
    }

    /// Some rows of a column of numbers are the last of the block's pages so far, which is slow in parts.
    pub(crate) fn add_page(
        &mut self,
        pages: &[PageEntry],
        column: SparseView<'_>,
        rows: Range<usize>,
    ) {
        let place = pages.len() - 1;
        let first = pages[place / GROUP_PAGES * GROUP_PAGES].extent;
        if self.group.as_ref().is_some_and(|(of_group, ..)| *of_group != first) {
            self.end_group();
        }
        let new = || (first, ThawedPages::default(), size_of::<ThawedPages>());
        let (_, group, bytes) = self.group.get_or_insert_with(new);
        let thawed = Thawed::new(column, rows);
        *bytes += thawed.memory_bytes();
        group.put(place, thawed);
    }

    /// All pages of a block, or of a group of it, are there.
    pub(crate) fn end_group(&mut self) {
        if let Some((extent, group, bytes)) = self.group.take() {
            self.bytes_left = self.bytes_left.saturating_sub(bytes);
            self.source.put(Kind::Thawed, &extent, group, bytes);
        }
    }
}
