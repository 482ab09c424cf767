//! Entropy-coded pages of which a few rows are read again and again, and those of many runs, which are as slow.
//!
//! Compaction writes the smallest pages; of those, reading one row costs as much as reading
//! thousands, the first time. Whoever does leaves marks (not in runs), and others go on from the nearest of them: a few
//! hundred rows too many. Once some rows of such a page were wanted often enough to pay for it, it
//! is bit-packed anew, in short pieces, and that form stays in the cache: some times the size, but any
//! rows can be read for what they cost alone, and all of them in a third of the time. Pages that are read a few times
//! are left as they are.
//!
//! What a query about many fields of a block waits for then is memory, not decoding. So the thawed
//! pages of neighbouring fields are one entry of the cache, and each is one allocation.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use codec::{Marks, Waypoints};
use model::Column;

use super::SegmentReader;
use super::column::PageShape;
use super::pieces::Pieces;
use super::source::Kind;
use super::thawed::Thawed;
use crate::directory::Block;
use crate::format::Extent;
use crate::input::Input;
use crate::sparse::SparseView;

/// Pages of a block that share an entry of the cache: as many as a query is likely to ask for, and few
/// enough to be worth keeping if it does not.
pub(super) const GROUP_PAGES: usize = 16;
/// Looks at a page before the one that thaws it. Thawing takes 20 to 30 us, a look from a mark on 1 to 4 us
/// more than one at a thawed page: after so many looks as much was lost as thawing costs, and whoever
/// waits that long never pays more than twice what would have been right in hindsight.
pub(super) const LOOKS_BEFORE: u32 = 8;
/// So many looks is one at most of a page, which by calculation costs 7 to 9 us more than at its thawed form.
pub(super) const LOOKS_OF_MOST: u32 = 3;

/// A look at several parts is so many at most: where they are spread over the page, from marks on or all at once, it costs about as
/// much as thawing.
const PARTS_OF_LOOK: usize = LOOKS_BEFORE as usize;

/// Neighbouring pages of a block, as far as they were thawed.
#[derive(Debug, Default)]
pub(super) struct ThawedPages {
    /// By themselves: what most queries look at is close together.
    thawed: [OnceLock<Thawed>; GROUP_PAGES],
    pages: [PageState; GROUP_PAGES],
}

#[derive(Debug, Default)]
struct PageState {
    /// How often some rows of the page were wanted that were not there thawed.
    looks: AtomicU32,
    /// There from the first of these looks on.
    marks: OnceLock<Marks>,
    /// What is there of a page that is not thawed.
    pieces: OnceLock<Pieces>,
    /// Of a page that is read as it is, from the second of these looks on, if they help.
    waypoints: OnceLock<Option<Box<Waypoints>>>,
}

impl ThawedPages {
    /// Adds the thawed form of the page at a place of the block.
    pub(super) fn put(&mut self, place: usize, thawed: Thawed) {
        self.thawed[place % GROUP_PAGES] = OnceLock::from(thawed);
    }

    /// The marks of the page at a place of the block, if it is known to be slow in parts.
    pub(super) fn marks(&self, place: usize) -> Option<&Marks> {
        self.pages[place % GROUP_PAGES].marks.get()
    }

    /// Asks for what is said of the page at a place of the block.
    pub(super) fn prefetch(&self, place: usize) {
        codec::prefetch(&self.thawed[place % GROUP_PAGES]);
    }

    /// The thawed form of the page at a place of the block, if there is one.
    pub(super) fn page(&self, place: usize) -> Option<&Thawed> {
        self.thawed[place % GROUP_PAGES].get()
    }

    /// Waypoints of the page at a place of the block.
    pub(super) fn waypoints(&self, place: usize) -> Option<&Waypoints> {
        self.pages[place % GROUP_PAGES].waypoints.get()?.as_deref()
    }

    /// The pieces of the page at a place of the block, if all of them are there that some rows lie in.
    pub(super) fn pieces(&self, place: usize, parts: &[Range<usize>]) -> Option<&Pieces> {
        let pieces = self.pages[place % GROUP_PAGES].pieces.get()?;
        parts.iter().all(|rows| pieces.have(rows)).then_some(pieces)
    }
}

impl PageState {
    /// The pieces of the page, which has so many rows, and the bytes of memory that they take if they were made now.
    fn pieces_of(&self, rows: usize) -> (&Pieces, usize) {
        let mut bytes_added = 0;
        let pieces = self.pieces.get_or_init(|| {
            let pieces = Pieces::new(rows);
            bytes_added = pieces.memory_bytes();
            pieces
        });
        (pieces, bytes_added)
    }
}

/// Whether so many rows are a few of those of a page: then marks help, and pieces.
pub(super) fn are_few(shape: PageShape, rows: usize) -> bool {
    rows * 2 <= shape.rows
}

/// The groups of a block that were looked for.
pub(super) struct Groups<'a> {
    pub(super) reader: &'a SegmentReader,
    pub(super) block: &'a Block,
    /// By the group's place; `None` if nobody looked. Of what was looked for `None` if nothing of it was touched.
    found: Vec<Option<Option<Arc<ThawedPages>>>>,
}

impl<'a> Groups<'a> {
    pub(super) fn new(reader: &'a SegmentReader, block: &'a Block) -> Self {
        Self { reader, block, found: Vec::new() }
    }

    /// The group of the page at a place of the block, if any of it was touched.
    pub(super) fn of(&mut self, place: usize) -> Option<&Arc<ThawedPages>> {
        let (group, block) = (place / GROUP_PAGES, self.block);
        // Counting a reference is a wait of its own where several threads do it.
        block.known.group(group).or_else(|| self.slot(group).as_ref())
    }

    /// The same if it was looked for before.
    pub(super) fn known(&self, place: usize) -> Option<&Arc<ThawedPages>> {
        let group = place / GROUP_PAGES;
        let found = || self.found.get(group)?.as_ref()?.as_ref();
        self.block.known.group(group).or_else(found)
    }

    fn slot(&mut self, group: usize) -> &mut Option<Arc<ThawedPages>> {
        if self.found.len() <= group {
            self.found.resize(group + 1, None);
        }
        let (reader, block) = (self.reader, self.block);
        self.found[group].get_or_insert_with(|| {
            let extent = extent_of(block, group);
            let source = &reader.shared.source;
            if let Some(known) = block.known.group(group) {
                Some(Arc::clone(known))
            } else if reader.keep_pages {
                source.cached(Kind::Thawed, extent)
            } else {
                source.peek(Kind::Thawed, extent).filter(|_| !reader.is_checking)
            }
        })
    }

    /// Says that rows of the page at a place, which is slow in parts, are wanted and are not there thawed: most of them or a
    /// `few`, in so many parts. What is known of its group, with room for marks if these are a few, and whether the page shall
    /// be thawed now.
    pub(super) fn touch(&mut self, place: usize, few: Option<usize>) -> (Arc<ThawedPages>, bool) {
        let group = self.open(place);
        let page = &group.pages[place % GROUP_PAGES];
        let weight = few.map_or(LOOKS_OF_MOST, |parts| parts.min(PARTS_OF_LOOK) as u32);
        let looks = page.looks.fetch_add(weight, Ordering::Relaxed);
        if few.is_none() {
            return (group, looks >= LOOKS_BEFORE);
        }
        let mut bytes_added = 0;
        page.marks.get_or_init(|| {
            let marks = Marks::new(self.block.pages()[place].count as usize);
            bytes_added = marks.memory_bytes();
            marks
        });
        if bytes_added > 0 {
            self.grew(place, &group, bytes_added);
        }
        (group, looks >= LOOKS_BEFORE)
    }

    /// Says that some rows of the page at a place are wanted, which is not slow in parts, and are not there in
    /// pieces. From the second time on its pieces are kept: what is read then, by `read`, whose result are the
    /// bytes of memory that it takes.
    pub(super) fn read_pieces<E>(
        &mut self,
        place: usize,
        read: impl FnOnce(&Pieces) -> Result<usize, E>,
    ) -> Option<Result<(), E>> {
        let group = self.open(place);
        let page = &group.pages[place % GROUP_PAGES];
        if page.looks.fetch_add(1, Ordering::Relaxed) == 0 {
            return None;
        }
        let (pieces, mut bytes_added) = page.pieces_of(self.block.rows());
        let done = read(pieces).map(|bytes| bytes_added += bytes);
        if bytes_added > 0 {
            self.grew(place, &group, bytes_added);
        }
        Some(done)
    }

    /// Says that a few texts of the page at a place are wanted, one here and one there. Once that was often enough all of its
    /// pieces are kept, cut of the whole page that `read` gives, and given here too.
    pub(super) fn read_all_pieces<E>(
        &mut self,
        place: usize,
        read: impl FnOnce() -> Result<Column, E>,
    ) -> Result<Option<Column>, E> {
        let group = self.open(place);
        let page = &group.pages[place % GROUP_PAGES];
        if page.looks.fetch_add(1, Ordering::Relaxed) < LOOKS_BEFORE {
            return Ok(None);
        }
        let whole = read()?;
        let (pieces, mut bytes_added) = page.pieces_of(self.block.rows());
        bytes_added += pieces.keep_all(&whole);
        self.grew(place, &group, bytes_added);
        Ok(Some(whole))
    }

    /// Says that a few rows of the page at a place are wanted, which is read as it is. From the second time on its waypoints, which
    /// `find` gives, are kept in the group.
    pub(super) fn guide(
        &mut self,
        place: usize,
        find: impl FnOnce() -> Option<Waypoints>,
    ) -> Arc<ThawedPages> {
        let group = self.open(place);
        let page = &group.pages[place % GROUP_PAGES];
        if page.waypoints.get().is_some() || page.looks.fetch_add(1, Ordering::Relaxed) == 0 {
            return group;
        }
        let mut bytes_added = 0;
        page.waypoints.get_or_init(|| {
            let waypoints = find()?;
            bytes_added = size_of::<Waypoints>() + waypoints.memory_bytes();
            Some(Box::new(waypoints))
        });
        if bytes_added > 0 {
            self.grew(place, &group, bytes_added);
        }
        group
    }

    /// The group of the page at a place, made if none of it was touched.
    pub(super) fn open(&mut self, place: usize) -> Arc<ThawedPages> {
        let source = &self.reader.shared.source;
        let of_group = extent_of(self.block, place / GROUP_PAGES);
        let slot = self.slot(place / GROUP_PAGES);
        Arc::clone(slot.get_or_insert_with(|| source.entry(Kind::Thawed, of_group)))
    }

    /// Keeps the page at a place, whose group was opened and which has these values, in its thawed form.
    pub(super) fn keep(&mut self, place: usize, whole: &Column) {
        let thawed = SparseView::of(whole, |values| Thawed::new(values, 0..whole.len()));
        let bytes_added = thawed.memory_bytes();
        let group = Arc::clone(self.of(place).expect("BUG: a page of a group nobody has opened"));
        if group.thawed[place % GROUP_PAGES].set(thawed).is_ok() {
            self.grew(place, &group, bytes_added);
        }
    }

    fn grew(&self, place: usize, group: &Arc<ThawedPages>, bytes_added: usize) {
        let of_group = extent_of(self.block, place / GROUP_PAGES);
        self.reader.shared.source.grew(Kind::Thawed, of_group, group, bytes_added);
    }
}

/// What a group goes by: the first of its pages.
pub(super) fn extent_of(block: &Block, group: usize) -> &Extent {
    &block.pages()[group * GROUP_PAGES].extent
}

/// Whether a few of the values of a page, which may come behind its validity, take as long to read as all.
pub(crate) fn is_slow_in_parts(page: &[u8], shape: PageShape) -> bool {
    let mut input = Input::new(page);
    if shape.count < shape.rows && input.bytes().is_err() {
        return false;
    }
    codec::is_slow_in_parts(input.rest())
}
