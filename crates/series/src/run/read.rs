//! One measurement of a run.

use std::ops::ControlFlow;
use std::sync::Arc;

use model::DatabaseId;
use roaring::RoaringTreemap;

use crate::block::BlockRef;
use crate::bytes::Reader;
use crate::error::SeriesResult;
use crate::part::{LazyPosting, MeasurementPart, ValueVisitor, begins_with};
use crate::posting::{Posting, PostingRef};
use crate::run::Run;
use crate::run::directory::Entry;
use crate::run::file::Page;
use crate::run::remembered::Found;
use crate::run::restarts::Entries;
use crate::run::terms::find;
use crate::run::walk::ValueWalk;

#[derive(Debug)]
pub(crate) struct RunMeasurement<'a> {
    pub(crate) run: &'a Run,
    found: Arc<Found>,
}

impl<'a> RunMeasurement<'a> {
    pub(crate) fn new(
        run: &'a Run,
        block: BlockRef,
        page: Page,
        entry: Entry,
    ) -> SeriesResult<Self> {
        let counts = &run.meta;
        if entry.terms.end > counts.terms || entry.series.end > counts.series {
            let detail = "a measurement has more series or terms than the run";
            return Err(run.file.corrupt(block.offset, detail));
        }
        Ok(Self { run, found: Arc::new(Found { block, page, entry }) })
    }

    /// What was made of the run before.
    pub(super) fn again(run: &'a Run, found: Arc<Found>) -> Self {
        Self { run, found }
    }

    pub(super) fn found(&self) -> &Arc<Found> {
        &self.found
    }

    pub(crate) fn database(&self) -> DatabaseId {
        self.found.entry.database
    }

    pub(crate) fn name(&self) -> &str {
        self.text(&self.found.entry.name)
    }

    /// Numbers of its series in the run.
    pub(crate) fn series(&self) -> std::ops::Range<u32> {
        self.found.entry.series.clone()
    }

    /// Numbers of its terms in the run.
    pub(crate) fn terms(&self) -> std::ops::Range<u32> {
        self.found.entry.terms.clone()
    }

    pub(crate) fn key_terms(&self, key: u32) -> std::ops::Range<u32> {
        self.found.entry.keys[key as usize].terms.clone()
    }

    pub(crate) fn key_text(&self, key: u32) -> &str {
        self.text(&self.found.entry.keys[key as usize].name)
    }

    /// The key that a term is a value of.
    pub(crate) fn key_of(&self, term: u32) -> SeriesResult<u32> {
        let at = self.found.entry.keys.partition_point(|key| key.terms.end <= term);
        let holds = self.found.entry.keys.get(at).is_some_and(|key| key.terms.contains(&term));
        if holds {
            return Ok(at as u32);
        }
        let detail = "a series has a tag of another measurement";
        Err(self.run.file.corrupt(self.found.block.offset, detail))
    }

    /// The block that has `value`, a value of the key whose terms are `terms`, if any has. `None`: there are no terms.
    fn block_with(&self, terms: &std::ops::Range<u32>, value: &[u8]) -> Option<usize> {
        let meta = &self.run.meta;
        let blocks = &meta.term_blocks;
        let first = blocks.block_of(terms.start).filter(|_| !terms.is_empty())?;
        // Blocks that begin behind the key's first value begin with one of its values.
        let last = blocks.first.partition_point(|number| *number < terms.end);
        Some(meta.term_values.upper_bound(first + 1, last, value) - 1)
    }

    fn text(&self, range: &std::ops::Range<usize>) -> &str {
        self.found.text(range)
    }

    fn load_at(&self, at: usize, posting: &mut Posting) -> SeriesResult<()> {
        let read =
            Reader::at_offset(&self.found.page, at).and_then(|mut r| PostingRef::read(&mut r));
        let found = self.run.file.checked(self.found.block, read)?;
        self.run.load(self.found.block, found, true, posting)
    }
}

impl MeasurementPart for RunMeasurement<'_> {
    fn all(&self) -> SeriesResult<RoaringTreemap> {
        let mut posting = Posting::default();
        self.load_at(self.found.entry.all_at, &mut posting)?;
        Ok(posting.into_set())
    }

    fn series_count(&self) -> u64 {
        u64::from(self.found.entry.series.end - self.found.entry.series.start)
    }

    fn key_count(&self) -> u32 {
        self.found.entry.keys.len() as u32
    }

    fn key_name(&self, key: u32) -> &str {
        self.key_text(key)
    }

    fn find_key(&self, name: &str) -> Option<u32> {
        let found = self
            .found
            .entry
            .keys
            .binary_search_by(|key| self.found.page[key.name.clone()].cmp(name.as_bytes()));
        found.ok().map(|at| at as u32)
    }

    fn present(&self, key: u32) -> SeriesResult<Option<RoaringTreemap>> {
        let Some(at) = self.found.entry.keys[key as usize].present_at else { return Ok(None) };
        let mut posting = Posting::default();
        self.load_at(at, &mut posting)?;
        Ok(Some(posting.into_set()))
    }

    fn postings(&self, key: u32, value: &str, posting: &mut Posting) -> SeriesResult<()> {
        posting.clear();
        let range = self.key_terms(key);
        let (run, meta) = (self.run, &self.run.meta);
        let blocks = &meta.term_blocks;
        let Some(at) = self.block_with(&range, value.as_bytes()) else { return Ok(()) };
        let block = blocks.list.blocks[at];
        let page = run.file.page(block)?;
        let start = range.start.max(blocks.first[at]) - blocks.first[at];
        let end = range.end.min(blocks.end(at, meta.terms)) - blocks.first[at];
        let found = Entries::parse(&page)
            .and_then(|entries| find(&entries, start as usize..end as usize, value.as_bytes()));
        match run.file.checked(block, found)? {
            Some(found) => run.load(block, found, true, posting),
            None => Ok(()),
        }
    }

    fn value_count(&self, key: u32) -> u64 {
        self.key_terms(key).len() as u64
    }

    fn for_each_value(
        &self,
        key: u32,
        prefix: &str,
        visitor: &mut ValueVisitor<'_>,
    ) -> SeriesResult<()> {
        let mut terms = self.key_terms(key);
        if let Some(at) = self.block_with(&terms, prefix.as_bytes()) {
            // What is before this block is below the prefix.
            terms.start = terms.start.max(self.run.meta.term_blocks.first[at]);
        }
        let mut walk = ValueWalk::new(self.run, terms);
        while walk.advance()? {
            let value = walk.text()?;
            if !begins_with(value, prefix) {
                if value > prefix {
                    break;
                }
                continue;
            }
            if visitor(value, &walk)? == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }
}

impl LazyPosting for ValueWalk<'_> {
    fn load(&self, posting: &mut Posting) -> SeriesResult<()> {
        self.load_posting(posting)
    }
}
