//! Reading ahead: the disk is asked for what will be read of many blocks before the first of them is read.
//!
//! A page that is not in the system's memory is waited for, and the next one is not asked for before it is there: a disk that
//! can do hundreds of reads at once does one a thread. The system reads ahead by itself what follows in the file, but of most
//! blocks only a part is read: their summaries are a thirtieth of their bytes, one field of ten a tenth. The directory
//! says where these parts are.
//!
//! Hints, all of it: what is not asked for is waited for as ever, and what is asked for in vain costs the disk its bytes. What
//! the cache has is not asked for.
//!
//! Not here: which blocks come next (`store-local`), memory (`ahead`).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use model::{FieldType, Holds, TimeRange};

use super::SegmentReader;
use super::ahead::{Expected, is_in_one_window};
use super::source::Kind;
use super::thaw::{GROUP_PAGES, ThawedPages, extent_of};
use super::times::Regular;
use crate::directory::Block;
use crate::format::Extent;
use crate::runs::Runs;
use crate::sift::{FieldCondition, SIFTED_ROWS_MIN};
use crate::windows::BlockWindows;

/// Bytes between two parts that are read along: a disk reads so many in about the time that another part takes (2 GB/s, and 11 us
/// a part where many are asked for at once, measured).
const GAP_BYTES_MAX: u64 = 16 << 10;

/// What the disk is going to be asked for, block by block.
#[derive(Debug)]
pub struct ReadAhead<'a> {
    reader: &'a SegmentReader,
    /// Those of the requested fields that the segment has.
    fields: Vec<usize>,
    time: TimeRange,
    expected: Expected,
    conditions: &'a [FieldCondition],
    only_counts: bool,
    wanted: Vec<Extent>,
    bytes: u64,
}

impl<'a> ReadAhead<'a> {
    pub(super) fn new(
        reader: &'a SegmentReader,
        fields: &[(Option<usize>, FieldType)],
        time: TimeRange,
        expected: Expected,
    ) -> Self {
        let fields = fields.iter().filter_map(|(field, _)| *field).collect();
        Self {
            reader,
            fields,
            time,
            expected,
            conditions: &[],
            only_counts: false,
            wanted: Vec::new(),
            bytes: 0,
        }
    }

    /// The same where of values it matters only whether they are there, if `only_counts`.
    #[must_use]
    pub fn counting(self, only_counts: bool) -> Self {
        Self { only_counts, ..self }
    }

    /// The same where only rows are wanted that satisfy all conditions: of blocks with some that may, what is read to find
    /// them. Whether more is read turns out then.
    #[must_use]
    pub fn satisfying(self, conditions: &'a [FieldCondition]) -> Self {
        Self { conditions, ..self }
    }

    /// Adds what is expected to be read of a block and is not in the cache. As long as nobody knows how long windows are in
    /// the segment, those of the block are read for that.
    pub fn add(&mut self, block: &Block) {
        let Some(open) = self.open_fields(block) else { return };
        let is_cut = !self.time.covers(&block.time());
        let fields = std::mem::take(&mut self.fields);
        let reads_rows = if open.is_empty() {
            self.add_expected(block, &fields, is_cut)
        } else {
            if block.rows() >= SIFTED_ROWS_MIN {
                self.add_windows(block, &open, i64::MAX);
            }
            self.add_pages(block, &open);
            !matches!(self.expected, Expected::Summaries(_))
        };
        self.fields = fields;
        if reads_rows || is_cut || !block.has_one_series() {
            self.add_times(block);
        }
    }

    /// Bytes that were added so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Asks the disk for all of it; whether there was anything to ask for.
    pub fn ask(mut self) -> bool {
        self.wanted.sort_unstable_by_key(|extent| extent.offset);
        let file = self.reader.shared.source.file();
        let mut rest = self.wanted.as_slice();
        while let Some(first) = rest.first() {
            let mut end = first.end();
            let joined = rest.iter().take_while(|next| {
                let joins = next.offset <= end.saturating_add(GAP_BYTES_MAX);
                end = if joins { end.max(next.end()) } else { end };
                joins
            });
            let count = joined.count();
            file.read_ahead(first.offset, end - first.offset);
            rest = &rest[count..];
        }
        !self.wanted.is_empty()
    }

    /// The fields of conditions of which the directory does not tell whether rows of a block satisfy them; `None`: none does.
    fn open_fields(&self, block: &Block) -> Option<Vec<usize>> {
        let mut open = Vec::new();
        for condition in self.conditions {
            match block.holds(condition) {
                Holds::Never => return None,
                Holds::Maybe => open.extend(condition.fields()),
                Holds::Always => {}
            }
        }
        Some(open)
    }

    /// Adds what is read of a block all of whose rows are wanted; whether some of the rows themselves are.
    fn add_expected(&mut self, block: &Block, fields: &[usize], is_cut: bool) -> bool {
        let reads_rows = match self.expected {
            Expected::Rows => true,
            // The directory has the rows at the ends of a block of one series.
            Expected::Row(_) => is_cut || !block.has_one_series(),
            Expected::Summaries(windows_ns_max) => {
                !is_in_one_window(block, self.time, windows_ns_max) && {
                    let window_ns = self.add_windows(block, fields, windows_ns_max);
                    self.reads_between(block.time(), window_ns, windows_ns_max)
                }
            }
        };
        if reads_rows {
            self.add_pages(block, fields);
        }
        reads_rows
    }

    /// Whether rows of a block are read which summaries of windows of that length leave out; `None`: there are none.
    fn reads_between(
        &self,
        of_block: TimeRange,
        window_ns: Option<i64>,
        windows_ns_max: i64,
    ) -> bool {
        let Some(window_ns) = window_ns else { return true };
        let cuts = |at: i64| at.rem_euclid(window_ns) != 0;
        let TimeRange { min, max } = self.time;
        window_ns > windows_ns_max
            || (min > of_block.min && cuts(min))
            || (max < of_block.max && cuts(max.saturating_add(1)))
            || (windows_ns_max < i64::MAX && cuts(windows_ns_max))
    }

    /// Adds the window summaries of some fields, if the windows are no longer than `windows_ns_max`. How long they are,
    /// nanoseconds; `None`: there are none, or they cannot be read.
    fn add_windows(&mut self, block: &Block, fields: &[usize], windows_ns_max: i64) -> Option<i64> {
        let extent = block.entry().window_index.as_ref()?;
        let shared = &self.reader.shared;
        let last_ns = shared.window_ns.load(Ordering::Relaxed);
        let known: Option<Arc<BlockWindows>> = match block.known.windows() {
            Some(known) => Some(Arc::clone(known)),
            // The first ones are waited for, whose length decides what else is read.
            None if last_ns == 0 => self.reader.windows(block).ok().flatten(),
            None => shared.source.peek(Kind::Windows, extent),
        };
        // Those of neighbouring blocks are mostly as long.
        let window_ns = known.as_ref().map_or(last_ns, |known| known.index().window_ns());
        if known.is_none() {
            self.add_extent(extent);
        }
        let fields = if window_ns > windows_ns_max { &[] } else { fields };
        for (place, page) in fields.iter().filter_map(|field| block.page_place(*field)) {
            let cell = known.as_ref().and_then(|known| known.cell(place));
            if let (Some(extent), None) = (&page.windows, cell.and_then(|cell| cell.get())) {
                self.add_extent(extent);
            }
        }
        (window_ns > 0).then_some(window_ns)
    }

    /// Adds what tells the times of rows.
    fn add_times(&mut self, block: &Block) {
        if let Some(runs) = &block.entry().runs
            && self.reader.shared.source.peek::<Runs>(Kind::Runs, runs).is_none()
        {
            self.add_extent(runs);
        }
        if Regular::known(block).is_none() {
            self.add_page(&block.entry().times);
        }
    }

    /// Adds the pages of some fields that are not there thawed.
    fn add_pages(&mut self, block: &Block, fields: &[usize]) {
        let mut last: Option<(usize, Option<Arc<ThawedPages>>)> = None;
        for (place, page) in fields.iter().filter_map(|field| block.page_place(*field)) {
            if self.only_counts && page.count as usize == block.rows() {
                continue;
            }
            let group = place / GROUP_PAGES;
            if last.as_ref().is_none_or(|(last, _)| *last != group) {
                let source = &self.reader.shared.source;
                last = Some((group, source.peek(Kind::Thawed, extent_of(block, group))));
            }
            let pages = last.as_ref().and_then(|(_, pages)| pages.as_ref());
            if pages.is_none_or(|pages| pages.page(place).is_none()) {
                self.add_page(&page.extent);
            }
        }
    }

    /// Adds a page, unless the cache has it.
    fn add_page(&mut self, extent: &Extent) {
        if !self.reader.shared.source.has_page(extent) {
            self.add_extent(extent);
        }
    }

    fn add_extent(&mut self, extent: &Extent) {
        self.wanted.push(*extent);
        self.bytes += u64::from(extent.len);
    }
}
