//! Walking a run in order: the values of a tag, the series of a measurement.

use std::ops::Range;

use crate::block::BlockRef;
use crate::bytes::{Reader, as_text};
use crate::error::{Malformed, SeriesResult};
use crate::posting::{Posting, PostingRef};
use crate::run::Run;
use crate::run::file::Page;
use crate::run::format::RESTART_ENTRIES;
use crate::run::restarts::Entries;
use crate::run::terms::read_term;
use crate::run::tuples::TupleState;

/// A place in a block, as positions, so that the block can be held beside it.
#[derive(Debug)]
struct Place {
    page: Page,
    block: BlockRef,
    /// Where the next entry begins.
    at: usize,
    /// Number of the next entry in the block, and of entries in it.
    index: usize,
    count: usize,
}

impl Place {
    /// The restart at or before entry `index`.
    fn new(run: &Run, block: BlockRef, index: usize, cached: bool) -> SeriesResult<Self> {
        let page = if cached { run.file.page(block) } else { run.file.page_uncached(block) }?;
        let restart = index / RESTART_ENTRIES;
        let entries = run.file.checked(block, Entries::parse(&page))?;
        let header = page.len() - entries.entries_len();
        let reader = run.file.checked(block, entries.restart(restart))?;
        let (at, count) = (header + reader.position(), entries.count);
        Ok(Self { page, block, at, index: restart * RESTART_ENTRIES, count })
    }

    fn reader(&self) -> Result<Reader<'_>, Malformed> {
        if self.index == self.count {
            return Err(Malformed("a block holds fewer entries than its index says"));
        }
        Reader::at_offset(&self.page, self.at)
    }
}

/// The terms of a run within a range of numbers.
#[derive(Debug)]
pub(crate) struct ValueWalk<'a> {
    run: &'a Run,
    next: u32,
    end: u32,
    place: Option<Place>,
    /// The current value.
    value: Vec<u8>,
    /// Where the list of the current value is in the block.
    posting_at: usize,
    cached: bool,
}

impl<'a> ValueWalk<'a> {
    pub(crate) fn new(run: &'a Run, terms: Range<u32>) -> Self {
        let (next, end) = (terms.start, terms.end);
        Self { run, next, end, place: None, value: Vec::new(), posting_at: 0, cached: true }
    }

    /// Passes the cache by: for merges, which read everything once.
    pub(crate) fn uncached(mut self) -> Self {
        self.cached = false;
        self
    }

    /// Goes on with other terms.
    pub(crate) fn seek(&mut self, terms: Range<u32>) {
        if self.next != terms.start {
            self.place = None;
        }
        (self.next, self.end) = (terms.start, terms.end);
    }

    /// Moves to the next value; `false` at the end.
    pub(crate) fn advance(&mut self) -> SeriesResult<bool> {
        if self.next >= self.end {
            return Ok(false);
        }
        if self.place.as_ref().is_none_or(|place| place.index == place.count) {
            let (at, block) = self.run.block_of_term(self.next)?;
            let index = (self.next - self.run.meta.term_blocks.first[at]) as usize;
            let place = Place::new(self.run, block, index, self.cached)?;
            let before = index - place.index;
            self.place = Some(place);
            self.value.clear();
            for _ in 0..before {
                self.step()?;
            }
        }
        self.step()?;
        self.next += 1;
        Ok(true)
    }

    fn step(&mut self) -> SeriesResult<()> {
        let place = self.place.as_mut().expect("BUG: a step without a block");
        let read = place.reader().and_then(|mut reader| {
            let start = place.at;
            read_term(&mut reader, &mut self.value)?;
            Ok((start, reader.position()))
        });
        let (start, end) = self.run.file.checked(place.block, read)?;
        self.posting_at = start;
        place.at = end;
        place.index += 1;
        Ok(())
    }

    pub(crate) fn text(&self) -> SeriesResult<&str> {
        let place = self.place.as_ref().expect("BUG: a value without a block");
        self.run.file.checked(place.block, as_text(&self.value))
    }

    fn posting_ref(&self) -> SeriesResult<(BlockRef, PostingRef<'_>)> {
        let place = self.place.as_ref().expect("BUG: a value without a block");
        let read = Reader::at_offset(&place.page, self.posting_at).and_then(|mut reader| {
            reader.varint()?;
            let own = reader.varint_len()?;
            reader.take(own)?;
            PostingRef::read(&mut reader)
        });
        Ok((place.block, self.run.file.checked(place.block, read)?))
    }

    /// Reads the series that have the current value.
    pub(crate) fn load_posting(&self, posting: &mut Posting) -> SeriesResult<()> {
        let (block, found) = self.posting_ref()?;
        self.run.load(block, found, self.cached, posting)
    }
}

/// The series of a run within a range of numbers.
#[derive(Debug)]
pub(crate) struct SeriesWalk<'a> {
    run: &'a Run,
    next: u32,
    end: u32,
    place: Option<Place>,
    pub(crate) state: TupleState,
    cached: bool,
}

impl<'a> SeriesWalk<'a> {
    pub(crate) fn new(run: &'a Run, series: Range<u32>) -> Self {
        let (next, end) = (series.start, series.end);
        Self { run, next, end, place: None, state: TupleState::default(), cached: true }
    }

    /// Passes the cache by.
    pub(crate) fn uncached(mut self) -> Self {
        self.cached = false;
        self
    }

    /// Goes on with other series.
    pub(crate) fn seek(&mut self, series: Range<u32>) {
        if self.next != series.start {
            self.place = None;
        }
        (self.next, self.end) = (series.start, series.end);
    }

    /// Moves to the next series; `false` at the end.
    pub(crate) fn advance(&mut self) -> SeriesResult<bool> {
        if self.next >= self.end {
            return Ok(false);
        }
        if self.place.as_ref().is_none_or(|place| place.index == place.count) {
            let blocks = &self.run.meta.tuple_blocks;
            let at = blocks.block_of(self.next);
            let missing = || self.run.file.corrupt(0, "the run lists no block for a series");
            let at = at.ok_or_else(missing)?;
            let index = (self.next - blocks.first[at]) as usize;
            let place = Place::new(self.run, blocks.list.blocks[at], index, self.cached)?;
            let before = index - place.index;
            self.place = Some(place);
            for _ in 0..before {
                self.step()?;
            }
        }
        self.step()?;
        self.next += 1;
        Ok(true)
    }

    fn step(&mut self) -> SeriesResult<()> {
        let place = self.place.as_mut().expect("BUG: a step without a block");
        let read = place.reader().and_then(|mut reader| {
            self.state.read(&mut reader, place.index, self.run.meta.base_id)?;
            Ok(reader.position())
        });
        place.at = self.run.file.checked(place.block, read)?;
        place.index += 1;
        Ok(())
    }
}
