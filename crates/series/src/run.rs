//! A run: an immutable file with the series of one flush or merge.
//!
//! Layout: docs/formats/series-index.md is normative. In memory are the meta block (where the
//! blocks are and what they begin with) and the filter; everything else is read through the page cache.
//!
//! Invariants
//! - Blocks are verified before anything in them is used; a damaged block fails the question that
//!   needs it and no other.
//! - Series are numbered in the order of their keys, terms in that of (measurement, key, value).
//!
//! Not here: which series are removed (index), how several runs become one (merge).

use std::path::Path;
use std::sync::Arc;

use model::{DatabaseId, SeriesKey};
use platform::{Disk, File, PageCache};
use roaring::RoaringTreemap;

use crate::block::BlockRef;
use crate::bytes::as_text;
use crate::error::{SeriesError, SeriesResult};
use crate::filter::Filter;
use crate::hash::KeyHash;
use crate::posting::{Posting, PostingRef, read_inline};
use crate::run::directory::{EntryHeads, sort_key};
use crate::run::file::{Page, RunFile};
use crate::run::meta::Meta;
use crate::run::remembered::Remembered;
use crate::run::restarts::Entries;
use crate::run::terms::TermCursor;
use crate::run::tuples::read_at;

mod directory;
mod file;
mod format;
mod lookup;
mod meta;
mod read;
mod remembered;
mod restarts;
mod source;
mod terms;
mod tuples;
mod walk;
mod writer;

pub(crate) use read::RunMeasurement;
pub(crate) use source::RunSource;
pub(crate) use tuples::TupleState;
pub(crate) use walk::{SeriesWalk, ValueWalk};
pub(crate) use writer::RunWriter;

#[derive(Debug)]
pub(crate) struct Run {
    number: u64,
    file: RunFile,
    meta: Meta,
    filter: Filter,
    remembered: Remembered,
}

/// How a run is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunOpen<'a> {
    pub(crate) number: u64,
    pub(crate) cache: &'a Arc<PageCache>,
    /// Off only where damage is made on purpose.
    pub(crate) verify: bool,
}

impl Run {
    pub(crate) fn open(disk: &dyn Disk, path: &Path, how: RunOpen<'_>) -> SeriesResult<Self> {
        Self::from_file(disk.open(path)?, how)
    }

    pub(crate) fn from_file(file: Arc<dyn File>, how: RunOpen<'_>) -> SeriesResult<Self> {
        let file = RunFile::new(file, Arc::clone(how.cache), how.verify)?;
        let smallest = (format::HEADER_BYTES + format::TRAILER_BYTES) as u64;
        if file.len() < smallest {
            return Err(file.corrupt(0, "the file is shorter than an empty run"));
        }
        let header = file.read::<{ format::HEADER_BYTES }>(0)?;
        let at = file.len() - format::TRAILER_BYTES as u64;
        let trailer = file.read::<{ format::TRAILER_BYTES }>(at)?;
        let meta_block = format::read_trailer(&header, &trailer, how.verify);
        let meta_block = meta_block.map_err(|malformed| file.corrupt(at, malformed.0))?;
        if let Some(needs) = format::check_header(&header).map_err(|m| file.corrupt(0, m.0))? {
            return Err(SeriesError::Unsupported { path: file.path().to_owned(), needs });
        }
        let bytes = file.page_uncached(meta_block)?;
        let meta = file.checked(meta_block, Meta::decode(&bytes))?;
        if meta.ids.len() != u64::from(meta.series) {
            return Err(
                file.corrupt(meta_block.offset, "the run has more or fewer ids than series")
            );
        }
        let filter_block = meta.filter.expect("BUG: a decoded meta block names its filter");
        let filter = Filter::decode(&file.page_uncached(filter_block)?);
        let filter = filter
            .ok_or_else(|| file.corrupt(filter_block.offset, "the filter has an odd size"))?;
        Ok(Self { number: how.number, file, meta, filter, remembered: Remembered::default() })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.file.len()
    }

    pub(crate) fn seed(&self) -> u64 {
        self.meta.seed
    }

    /// Ids in this run, removed ones included.
    pub(crate) fn ids(&self) -> &RoaringTreemap {
        &self.meta.ids
    }

    /// Series and terms: what merging costs.
    pub(crate) fn weight(&self) -> u64 {
        u64::from(self.meta.series) + u64::from(self.meta.terms)
    }

    /// Heap bytes that are held while the run is open.
    pub(crate) fn resident_bytes(&self) -> usize {
        self.meta.heap_bytes() + self.filter.bytes()
    }

    /// Whether the key, or a tag by its [`KeyHash::of_term`], may be in this run; `false` is
    /// certain.
    #[inline]
    pub(crate) fn may_contain(&self, hash: KeyHash) -> bool {
        self.filter.may_contain(hash)
    }

    /// The id of a key.
    pub(crate) fn find(&self, hash: KeyHash) -> SeriesResult<Option<u64>> {
        let buckets = &self.meta.buckets.blocks;
        let at = lookup::bucket_of(hash, buckets.len() as u64) as usize;
        let block = buckets[at];
        let page = self.file.page(block)?;
        let found = lookup::find_hash(&page, hash, self.meta.wide_ids);
        match self.file.checked(block, found)? {
            None => Ok(None),
            Some(offset) => self.id_from(block, offset).map(Some),
        }
    }

    fn id_from(&self, block: BlockRef, offset: u64) -> SeriesResult<u64> {
        let id = self.meta.base_id.checked_add(offset);
        id.ok_or_else(|| self.file.corrupt(block.offset, "a series id is too large"))
    }

    /// The key of a series with its database.
    pub(crate) fn key(&self, id: u64) -> SeriesResult<Option<(DatabaseId, SeriesKey)>> {
        let mut state = TupleState::default();
        let Some(number) = self.tuple_of(id, &mut state)? else { return Ok(None) };
        let measurement = self.measurement_of(number)?;
        let mut tags = Vec::with_capacity(state.tuple.len());
        for term in &state.tuple {
            let key = measurement.key_of(*term)?;
            let mut value = String::new();
            self.push_value(*term, &mut value)?;
            tags.push((measurement.key_text(key).into(), value.into()));
        }
        let key = SeriesKey { measurement: measurement.name().into(), tags };
        Ok(Some((measurement.database(), key)))
    }

    /// Reads the tuple of a series; returns its number in the run.
    pub(crate) fn tuple_of(&self, id: u64, state: &mut TupleState) -> SeriesResult<Option<u32>> {
        let first = &self.meta.id_page_first;
        let Some(at) = first.partition_point(|first| *first <= id).checked_sub(1) else {
            return Ok(None);
        };
        let block = self.meta.id_pages.blocks[at];
        let page = self.file.page(block)?;
        let found = lookup::find_position(&page, id - first[at]);
        let Some(number) = self.file.checked(block, found)? else { return Ok(None) };
        let tuples = &self.meta.tuple_blocks;
        let Some(at) = tuples.block_of(number) else {
            return Err(self.file.corrupt(block.offset, "an id page names no series"));
        };
        let block = tuples.list.blocks[at];
        let page = self.file.page(block)?;
        let index = (number - tuples.first[at]) as usize;
        let read = Entries::parse(&page).and_then(|b| read_at(&b, index, self.meta.base_id, state));
        self.file.checked(block, read)?;
        if state.id != id {
            return Err(self.file.corrupt(block.offset, "a series is not where its id points"));
        }
        Ok(Some(number))
    }

    fn block_of_term(&self, term: u32) -> SeriesResult<(usize, BlockRef)> {
        let at = self.meta.term_blocks.block_of(term).filter(|_| term < self.meta.terms);
        let at =
            at.ok_or_else(|| self.file.corrupt(0, "a series has a tag that does not exist"))?;
        Ok((at, self.meta.term_blocks.list.blocks[at]))
    }

    /// Reads the value of a term. Returns where it was.
    fn value_of(&self, term: u32, value: &mut Vec<u8>) -> SeriesResult<BlockRef> {
        let (at, block) = self.block_of_term(term)?;
        let page = self.file.page(block)?;
        let index = (term - self.meta.term_blocks.first[at]) as usize;
        let read = Entries::parse(&page).and_then(|entries| {
            let mut cursor = TermCursor::near(&entries, index, value)?;
            while cursor.next_index() <= index {
                let end = crate::error::Malformed("a block holds fewer values than its index says");
                cursor.advance()?.ok_or(end)?;
            }
            Ok(())
        });
        self.file.checked(block, read)?;
        Ok(block)
    }

    /// Appends the value of a term.
    pub(crate) fn push_value(&self, term: u32, out: &mut String) -> SeriesResult<()> {
        let mut value = Vec::new();
        let block = self.value_of(term, &mut value)?;
        out.push_str(self.file.checked(block, as_text(&value))?);
        Ok(())
    }

    /// The measurement of a database.
    pub(crate) fn measurement(
        &self,
        database: DatabaseId,
        name: &str,
    ) -> SeriesResult<Option<RunMeasurement<'_>>> {
        if let Some(found) = self.remembered.find(database, name) {
            return Ok(Some(RunMeasurement::again(self, found)));
        }
        let keys = &self.meta.directory_keys;
        let wanted = sort_key(database, name);
        let Some(at) = keys.upper_bound(0, keys.len(), &wanted).checked_sub(1) else {
            return Ok(None);
        };
        let block = self.meta.directory.list.blocks[at];
        let page = self.file.page(block)?;
        let mut found = None;
        let search = EntryHeads::new(&page).and_then(|mut heads| {
            while let Some(head) = heads.advance()? {
                if (head.database, head.name) == (database, name) {
                    found = Some(head.read()?);
                    break;
                }
            }
            Ok(())
        });
        self.file.checked(block, search)?;
        let Some(entry) = found else { return Ok(None) };
        let measurement = RunMeasurement::new(self, block, page, entry)?;
        self.remembered.keep(measurement.found());
        Ok(Some(measurement))
    }

    /// The measurement that series `number` belongs to.
    fn measurement_of(&self, number: u32) -> SeriesResult<RunMeasurement<'_>> {
        let nowhere = "a series belongs to no measurement";
        let at = self.meta.directory.block_of(number);
        let at = at.ok_or_else(|| self.file.corrupt(0, nowhere))?;
        let block = self.meta.directory.list.blocks[at];
        let page = self.file.page(block)?;
        let mut found = None;
        let search = EntryHeads::new(&page).and_then(|mut heads| {
            while let Some(head) = heads.advance()? {
                if head.series.contains(&number) {
                    found = Some(head.read()?);
                    break;
                }
            }
            Ok(())
        });
        self.file.checked(block, search)?;
        let entry = found.ok_or_else(|| self.file.corrupt(block.offset, nowhere))?;
        RunMeasurement::new(self, block, page, entry)
    }

    /// Series, terms and measurements.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        let Meta { series, terms, measurements, .. } = self.meta;
        (series.into(), terms.into(), measurements.into())
    }

    /// Checks every block, and what the blocks say.
    pub(crate) fn verify(&self, errors: &mut Vec<SeriesError>) {
        let meta = &self.meta;
        let lists = [&meta.directory.list, &meta.term_blocks.list, &meta.tuple_blocks.list];
        let lists = lists.into_iter().chain([&meta.buckets, &meta.id_pages]);
        let blocks = lists.flat_map(|list| &list.blocks).filter(|block| block.len > 0);
        let before = errors.len();
        for block in blocks {
            errors.extend(self.file.page_uncached(*block).err());
        }
        if errors.len() == before {
            errors.extend(crate::inspect::read_through(self, meta.series, meta.terms).err());
        }
    }

    /// Calls `visitor` with every measurement of a database, in order.
    pub(crate) fn for_each_measurement(
        &self,
        database: DatabaseId,
        visitor: &mut dyn FnMut(RunMeasurement<'_>) -> SeriesResult<()>,
    ) -> SeriesResult<()> {
        let keys = &self.meta.directory_keys;
        let first = keys.upper_bound(0, keys.len(), &sort_key(database, ""));
        for block in &self.meta.directory.list.blocks[first.saturating_sub(1)..] {
            let page = self.file.page(*block)?;
            let mut heads = self.file.checked(*block, EntryHeads::new(&page))?;
            while let Some(head) = self.file.checked(*block, heads.advance())? {
                if head.database > database {
                    return Ok(());
                }
                if head.database == database {
                    let entry = self.file.checked(*block, head.read())?;
                    visitor(RunMeasurement::new(self, *block, Page::clone(&page), entry)?)?;
                }
            }
        }
        Ok(())
    }

    /// Calls `visitor` with every measurement of every database, in order.
    pub(crate) fn for_every_measurement(
        &self,
        visitor: &mut dyn FnMut(DatabaseId, RunMeasurement<'_>) -> SeriesResult<()>,
    ) -> SeriesResult<()> {
        for block in &self.meta.directory.list.blocks {
            let page = self.file.page(*block)?;
            let mut heads = self.file.checked(*block, EntryHeads::new(&page))?;
            while let Some(head) = self.file.checked(*block, heads.advance())? {
                let database = head.database;
                let entry = self.file.checked(*block, head.read())?;
                let part = RunMeasurement::new(self, *block, Page::clone(&page), entry)?;
                visitor(database, part)?;
            }
        }
        Ok(())
    }

    /// Reads the list that `posting` stands for; `block` is where it stands.
    fn load(
        &self,
        block: BlockRef,
        posting: PostingRef<'_>,
        cached: bool,
        out: &mut Posting,
    ) -> SeriesResult<()> {
        match posting {
            PostingRef::Inline { count, deltas } => {
                self.file.checked(block, read_inline(count, deltas, self.meta.base_id, out))
            }
            PostingRef::Block(block) => {
                if cached {
                    out.share(self.file.set(block)?);
                } else {
                    out.set_to(self.file.set_uncached(block)?);
                }
                // A set can claim more ids than there are without taking a byte more.
                if out.len() > self.meta.ids.len() {
                    return Err(self
                        .file
                        .corrupt(block.offset, "a list has more ids than the run"));
                }
                Ok(())
            }
        }
    }
}
