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
use crate::directory::Block;
use crate::windows::{BlockWindows, WindowSummaries};

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

/// See [`SegmentReader::look_ahead`].
pub(super) fn look_ahead(
    reader: &SegmentReader,
    blocks: &mut [Block],
    fields: &[(Option<usize>, FieldType)],
    time: TimeRange,
    with_windows: bool,
) {
    let first_place = |block: &Block| {
        let place = |(field, _): &(Option<usize>, FieldType)| block.page_place((*field)?);
        fields.iter().find_map(place).map(|(place, _)| place)
    };
    for block in &*blocks {
        let place = first_place(block);
        place.into_iter().for_each(|place| codec::prefetch(extent_of(block, place / GROUP_PAGES)));
    }
    let source = &reader.shared.source;
    for block in &mut *blocks {
        let Some(place) = first_place(block) else { continue };
        let group = place / GROUP_PAGES;
        let pages = source.cached(Kind::Thawed, extent_of(block, group));
        block.known.group = pages.map(|pages| (group, pages));
        if let (true, Some(extent)) = (with_windows, &block.entry().window_index) {
            block.known.windows = source.cached(Kind::Windows, extent);
        }
    }
    let rows: Vec<Range<usize>> = blocks.iter().map(|block| rows_within(block, time)).collect();
    let each_page = |prefetch: fn(&Thawed, &Range<usize>)| {
        for (block, rows) in blocks.iter().zip(&rows) {
            let pages = fields.iter().filter_map(|(field, _)| thawed(block, (*field)?));
            pages.for_each(|page| prefetch(page, rows));
        }
    };
    let each_summary = |prefetch: fn(&WindowSummaries, usize)| {
        for (block, rows) in blocks.iter().zip(&rows) {
            let Some(windows) = block.known.windows() else { continue };
            let span = windows.index().span_at(rows.start);
            let cells = fields
                .iter()
                .filter_map(|(field, _)| windows.cell(block.page_place((*field)?)?.0)?.get());
            cells.for_each(|summaries| prefetch(summaries, span));
        }
    };
    each_page(Thawed::prefetch_ends);
    each_summary(WindowSummaries::prefetch);
    each_page(Thawed::prefetch_pieces);
}

/// Rows of a block that has rows of one series, at times inside `time`; all of them if that is not known.
fn rows_within(block: &Block, time: TimeRange) -> Range<usize> {
    let all = 0..block.rows();
    match Regular::known(block).filter(|_| block.has_one_series()) {
        Some(regular) => regular.rows_in(&all, time),
        None => all,
    }
}

fn thawed(block: &Block, field: usize) -> Option<&Thawed> {
    let (place, _) = block.page_place(field)?;
    block.known.group(place / GROUP_PAGES)?.page(place)
}
