//! Looking ahead: what reading some rows of blocks follows from pointer to pointer, followed for all the blocks level
//! by level.
//!
//! What a query about a few of many series waits for is memory: for each of them an entry of the directory, two
//! objects of the cache, in these an entry a field, behind those the values. Read one series after another, one wait
//! comes behind the other. Here the next level is looked at for every block and field before the level behind it is
//! needed by any, so that they are on their way from memory together; what was found in the cache stays with the block.
//!
//! Nothing here decides what is read. What was not found, or not guessed right, is looked for by whoever reads it.

use std::ops::Range;
use std::sync::Arc;

use model::{FieldType, TimeRange};

use super::SegmentReader;
use super::source::Kind;
use super::thaw::{GROUP_PAGES, ThawedPages, extent_of};
use super::thawed::Thawed;
use super::times::Regular;
use crate::directory::{Block, Edge};
use crate::windows::{BlockWindows, WindowIndex};

/// What was found in the cache for a block. Empty unless somebody [looked ahead](SegmentReader::look_ahead).
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// The thawed pages of one group, with its number.
    group: Option<(usize, Arc<ThawedPages>)>,
    windows: Option<Arc<BlockWindows>>,
}

impl Known {
    /// The thawed pages of a group.
    pub(super) fn group(&self, wanted: usize) -> Option<&Arc<ThawedPages>> {
        self.group.as_ref().filter(|(group, _)| *group == wanted).map(|(_, pages)| pages)
    }

    /// The windows with what was read of their summaries.
    pub(super) fn windows(&self) -> Option<&Arc<BlockWindows>> {
        self.windows.as_ref()
    }
}

/// What will be read of blocks, as far as whoever looks ahead knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// All rows.
    Rows,
    /// Summaries of windows that are no longer than this, nanoseconds, in place of the rows that they sum up.
    Summaries(i64),
    /// One row, the first or the last.
    Row(Edge),
}

/// See [`SegmentReader::look_ahead`].
pub(super) fn look_ahead(
    reader: &SegmentReader,
    blocks: &mut [&mut Block],
    fields: &[(Option<usize>, FieldType)],
    time: TimeRange,
    expected: Expected,
) -> bool {
    // What one group has: of wide tables the others would be waited for in vain, or pushed out again.
    let fields = &fields[..fields.len().min(GROUP_PAGES)];
    for block in blocks.iter() {
        let place = first_place(block, fields);
        place.into_iter().for_each(|place| codec::prefetch(extent_of(block, place / GROUP_PAGES)));
    }
    let source = &reader.shared.source;
    for block in blocks.iter_mut() {
        let Some(place) = first_place(block, fields) else { continue };
        let group = place / GROUP_PAGES;
        let pages = source.cached(Kind::Thawed, extent_of(block, group));
        block.known.group = pages.map(|pages| (group, pages));
        if let (Expected::Summaries(_), Some(extent)) = (expected, &block.entry().window_index) {
            block.known.windows = source.cached(Kind::Windows, extent);
        }
    }
    for block in blocks.iter() {
        fields
            .iter()
            .filter_map(|(field, _)| *field)
            .for_each(|field| prefetch_field(block, field));
    }
    let wanted: Vec<Wanted> =
        blocks.iter().map(|block| Wanted::of(block, time, expected)).collect();
    let each_page = |prefetch: fn(&Thawed, &Range<usize>)| {
        for (block, wanted) in blocks.iter().zip(&wanted) {
            let pages = fields.iter().filter_map(|(field, _)| thawed(block, (*field)?));
            pages.for_each(|page| wanted.rows.iter().for_each(|rows| prefetch(page, rows)));
        }
    };
    each_page(Thawed::prefetch_ends);
    for (block, wanted) in blocks.iter().zip(&wanted) {
        if let (Some(windows), Some(span)) = (block.known.windows(), wanted.span) {
            let place = |field| block.page_place(field).map(|(place, _)| place);
            let cells = fields.iter().filter_map(|(field, _)| windows.cell(place((*field)?)?));
            cells.filter_map(|cell| cell.get()).for_each(|summaries| summaries.prefetch(span));
        }
    }
    match expected {
        Expected::Row(_) => each_page(|page, rows| {
            rows.clone().for_each(|row| page.prefetch_row(row));
        }),
        Expected::Rows | Expected::Summaries(_) => each_page(Thawed::prefetch_pieces),
    }
    let mut each = blocks.iter().zip(&wanted);
    each.all(|(block, wanted)| wanted.is_there(block, (first_place(block, fields), time), expected))
}

/// What is probably read of a block.
struct Wanted {
    /// One range or, before and behind what is summed up, two; some may be empty.
    rows: [Range<usize>; 2],
    /// The first span whose summary is read.
    span: Option<usize>,
}

impl Wanted {
    /// Of a block, of its rows at times inside `time`.
    fn of(block: &Block, time: TimeRange, expected: Expected) -> Self {
        let rows = rows_within(block, time);
        let only = |rows: Range<usize>| Self { rows: [rows, 0..0], span: None };
        match expected {
            _ if rows.is_empty() => only(0..0),
            Expected::Rows => only(rows),
            // The directory has the rows at the ends of a block.
            Expected::Row(_) if time.covers(&block.time()) => only(0..0),
            Expected::Row(Edge::First) => only(rows.start..rows.start + 1),
            Expected::Row(Edge::Last) => only(rows.end - 1..rows.end),
            Expected::Summaries(windows_ns_max) => match block.known.windows() {
                Some(windows) if windows.index().window_ns() <= windows_ns_max => {
                    Self::around(windows.index(), rows)
                }
                _ => only(rows),
            },
        }
    }

    /// Whether it was found in the cache, as far as one field tells: of rows, whether any of their pages was read before.
    fn is_there(
        &self,
        block: &Block,
        (first_place, time): (Option<usize>, TimeRange),
        expected: Expected,
    ) -> bool {
        let Some(place) = first_place else { return true };
        if let Expected::Summaries(windows_ns_max) = expected
            && is_in_one_window(block, time, windows_ns_max)
        {
            return true;
        }
        if let (Expected::Summaries(windows_ns_max), true) = (expected, block.has_windows()) {
            let Some(windows) = block.known.windows() else { return false };
            let is_used = windows.index().window_ns() <= windows_ns_max;
            if is_used && windows.cell(place).is_none_or(|cell| cell.get().is_none()) {
                return false;
            }
        }
        self.rows.iter().all(Range::is_empty) || block.known.group.is_some()
    }

    /// What no summary covers of some rows, at least one.
    fn around(index: &WindowIndex, rows: Range<usize>) -> Self {
        let (first, last) = (index.span_at(rows.start), index.span_at(rows.end - 1));
        let (of_first, of_last) = (index.rows(first), index.rows(last));
        let is_cut = of_first.start < rows.start;
        let before = rows.start..if is_cut { of_first.end } else { rows.start };
        let behind = if of_last.end > rows.end { of_last.start } else { rows.end }..rows.end;
        Self { rows: [before, behind], span: Some(first + usize::from(is_cut)) }
    }
}

/// Whether a block lies wholly in a window of that length, nearly always: its directory has the summary then.
pub(super) fn is_in_one_window(block: &Block, time: TimeRange, windows_ns_max: i64) -> bool {
    let of_block = block.time();
    time.covers(&of_block) && of_block.max.saturating_sub(of_block.min) < windows_ns_max
}

/// Where the first of some fields is that a block has.
fn first_place(block: &Block, fields: &[(Option<usize>, FieldType)]) -> Option<usize> {
    fields.iter().find_map(|(field, _)| block.page_place((*field)?)).map(|(place, _)| place)
}

/// Rows of a block that has rows of one series, at times inside `time`; all of them if that is not known.
fn rows_within(block: &Block, time: TimeRange) -> Range<usize> {
    let all = 0..block.rows();
    match Regular::known(block).filter(|_| block.has_one_series()) {
        Some(regular) => regular.rows_in(&all, time),
        None => all,
    }
}

/// Asks for what the block's objects of the cache say of a field.
fn prefetch_field(block: &Block, field: usize) {
    let Some((place, _)) = block.page_place(field) else { return };
    let pages = block.known.group(place / GROUP_PAGES);
    pages.into_iter().for_each(|pages| pages.prefetch(place));
    let cell = block.known.windows().and_then(|windows| windows.cell(place));
    cell.into_iter().for_each(codec::prefetch);
}

fn thawed(block: &Block, field: usize) -> Option<&Thawed> {
    let (place, _) = block.page_place(field)?;
    block.known.group(place / GROUP_PAGES)?.page(place)
}
