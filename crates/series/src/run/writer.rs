//! Writes one run file, front to back.
//!
//! Order of calls: for each measurement, sorted by (database, name): `begin_measurement`; for each
//! key, sorted: its terms, sorted, then `end_key`; the series sorted by tuple; `end_measurement`.
//! Then the hashes in ascending order, then `finish`. Memory in use: the meta block, the filter,
//! and four bytes a series.

use std::path::Path;
use std::sync::Arc;

use model::DatabaseId;
use platform::{Disk, File};
use roaring::RoaringTreemap;

use crate::block::BlockRef;
use crate::bytes::put_varint;
use crate::error::SeriesResult;
use crate::filter::Filter;
use crate::hash::KeyHash;
use crate::posting::{Posting, put_inline, put_set};
use crate::ranks::IdRanks;
use crate::run::directory::{EntryBuilder, sort_key};
use crate::run::format;
use crate::run::lookup::{IdPageBuilder, bucket_of, put_hash};
use crate::run::meta::Meta;
use crate::run::terms::{TermBlockBuilder, common_prefix};
use crate::run::tuples::TupleBlockBuilder;

/// No series stands at this place of the id map.
const NOWHERE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct RunWriter {
    out: Output,
    meta: Meta,
    filter: Filter,
    /// The measurement at hand.
    database: DatabaseId,
    measurement: String,
    /// The ids that may come, and the series number of each that came.
    ids: RoaringTreemap,
    ranks: IdRanks,
    positions: Vec<u32>,
    terms: TermBlockBuilder,
    /// The last value of the current key, to find the shortest separator.
    last_value: Option<Vec<u8>>,
    tuples: TupleBlockBuilder,
    directory: Vec<u8>,
    directory_entries: usize,
    directory_first: u32,
    last_directory_key: Vec<u8>,
    entry: EntryBuilder,
    key_terms: u32,
    bucket: Vec<u8>,
    bucket_number: u64,
    buckets: u64,
    scratch: Vec<u8>,
    /// The encoded list of the current term.
    encoded: Vec<u8>,
    tuple: Vec<u32>,
}

impl RunWriter {
    /// Creates the file. `ids` are those that may come, `terms_max` how many terms; some may not.
    pub(crate) fn create(
        disk: &dyn Disk,
        path: &Path,
        seed: u64,
        ids: RoaringTreemap,
        terms_max: u64,
    ) -> SeriesResult<Self> {
        let (base_id, last_id) = (ids.min().unwrap_or(0), ids.max().unwrap_or(0));
        let count = ids.len();
        let ranks = IdRanks::new(&ids);
        Ok(Self {
            out: Output::create(disk, path)?,
            meta: Meta {
                seed,
                base_id,
                wide_ids: last_id - base_id > u64::from(u32::MAX),
                ..Meta::default()
            },
            filter: Filter::with_capacity(count + terms_max),
            database: DatabaseId(0),
            measurement: String::new(),
            positions: vec![NOWHERE; ranks.len() as usize],
            ids,
            ranks,
            terms: TermBlockBuilder::default(),
            last_value: None,
            tuples: TupleBlockBuilder::default(),
            directory: Vec::new(),
            directory_entries: 0,
            directory_first: 0,
            last_directory_key: Vec::new(),
            entry: EntryBuilder::default(),
            key_terms: 0,
            bucket: Vec::new(),
            bucket_number: 0,
            buckets: count.div_ceil(format::BUCKET_HASHES).max(1),
            scratch: Vec::new(),
            encoded: Vec::new(),
            tuple: Vec::new(),
        })
    }

    pub(crate) fn begin_measurement(&mut self, database: DatabaseId, name: &str) {
        self.database = database;
        name.clone_into(&mut self.measurement);
        self.entry = EntryBuilder::new(self.meta.series, self.meta.terms);
    }

    /// Adds a value of the key at hand; returns its number within the measurement.
    pub(crate) fn term(&mut self, key: &str, value: &str, posting: &Posting) -> SeriesResult<u32> {
        let (seed, measurement) = (self.meta.seed, &self.measurement);
        self.filter.insert(KeyHash::of_term(seed, self.database, measurement, (key, value)));
        let value = value.as_bytes();
        let mut encoded = std::mem::take(&mut self.encoded);
        encoded.clear();
        self.put_posting(posting, &mut encoded)?;
        if self.terms.block.is_full() {
            self.end_term_block()?;
        }
        if self.terms.block.is_empty() {
            // Between keys no separator is ever compared.
            let shortest =
                self.last_value.as_ref().map_or(0, |last| common_prefix(last, value) + 1);
            self.meta.term_values.push(&value[..shortest.min(value.len())]);
            self.meta.term_blocks.first.push(self.meta.terms);
        }
        self.terms.add(value, &encoded);
        self.encoded = encoded;
        let last = self.last_value.get_or_insert_default();
        last.clear();
        last.extend_from_slice(value);
        self.key_terms += 1;
        self.meta.terms = self.meta.terms.checked_add(1).expect("BUG: a run passed 4 Gi terms");
        Ok(self.meta.terms - 1 - self.entry.term_start)
    }

    /// Ends the current key; `present` are the series that have it, `None` for all.
    pub(crate) fn end_key(
        &mut self,
        name: &str,
        present: Option<&RoaringTreemap>,
    ) -> SeriesResult<()> {
        let mut encoded = Vec::new();
        if let Some(present) = present {
            self.put_set_posting(present, &mut encoded)?;
        }
        self.entry.key(name, self.key_terms, present.is_some().then_some(&encoded));
        self.key_terms = 0;
        self.last_value = None;
        Ok(())
    }

    /// Adds a series of the measurement with its term numbers within the measurement.
    pub(crate) fn series(&mut self, tuple: &[u32], id: u64) -> SeriesResult<()> {
        if self.tuples.block.is_full() {
            self.end_tuple_block()?;
        }
        if self.tuples.block.is_empty() {
            self.meta.tuple_blocks.first.push(self.meta.series);
        }
        self.tuple.clear();
        self.tuple.extend(tuple.iter().map(|term| term + self.entry.term_start));
        self.tuples.add(&self.tuple, id, self.meta.base_id);
        let rank = self.ranks.position(id).expect("BUG: a series was not announced");
        self.positions[rank as usize] = self.meta.series;
        self.meta.series += 1;
        Ok(())
    }

    pub(crate) fn end_measurement(&mut self, all: &RoaringTreemap) -> SeriesResult<()> {
        let mut entry = std::mem::take(&mut self.entry);
        entry.series = self.meta.series - entry.series_start;
        assert!(u64::from(entry.series) == all.len(), "BUG: a measurement lost or gained series");
        let mut encoded = Vec::new();
        self.put_set_posting(all, &mut encoded)?;
        let full = self.directory.len() >= format::BLOCK_BYTES
            || self.directory_entries == format::BLOCK_ENTRIES;
        if full {
            self.end_directory_block()?;
        }
        let key = sort_key(self.database, &self.measurement);
        if self.directory_entries == 0 {
            let shortest = common_prefix(&self.last_directory_key, &key) + 1;
            self.meta.directory_keys.push(&key[..shortest.min(key.len())]);
            self.directory_first = entry.series_start;
        }
        entry.put(self.database, &self.measurement, &encoded, &mut self.directory);
        self.directory_entries += 1;
        self.last_directory_key = key;
        self.meta.measurements += 1;
        Ok(())
    }

    pub(crate) fn hash(&mut self, hash: KeyHash, id: u64) -> SeriesResult<()> {
        let bucket = bucket_of(hash, self.buckets);
        while self.bucket_number < bucket {
            self.end_bucket()?;
        }
        self.filter.insert(hash);
        put_hash(&mut self.bucket, hash, id - self.meta.base_id, self.meta.wide_ids);
        Ok(())
    }

    /// Writes what is left and makes the file durable; returns its length.
    pub(crate) fn finish(mut self) -> SeriesResult<u64> {
        self.end_term_block()?;
        self.end_tuple_block()?;
        self.end_directory_block()?;
        while self.bucket_number < self.buckets {
            self.end_bucket()?;
        }
        self.write_id_map()?;
        self.meta.filter = Some(self.out.block(&self.filter.encode())?);
        let meta = self.out.block(&self.meta.encode())?;
        self.out.append(&format::trailer(meta))?;
        self.out.finish()
    }

    fn write_id_map(&mut self) -> SeriesResult<()> {
        let mut page = IdPageBuilder::default();
        let mut gone = Vec::new();
        let ids = std::mem::take(&mut self.ids);
        let positions = std::mem::take(&mut self.positions);
        for (id, position) in ids.iter().zip(positions) {
            if position == NOWHERE {
                gone.push(id);
                continue;
            }
            if !page.takes(id) {
                self.end_id_page(&mut page)?;
            }
            page.add(id, position);
        }
        self.end_id_page(&mut page)?;
        self.meta.ids = ids;
        let gone = RoaringTreemap::from_sorted_iter(gone).expect("BUG: ids of a set ascend");
        self.meta.ids -= gone;
        self.meta.ids.optimize();
        Ok(())
    }

    fn end_id_page(&mut self, page: &mut IdPageBuilder) -> SeriesResult<()> {
        if let Some(first) = page.finish(&mut self.scratch) {
            self.meta.id_pages.blocks.push(self.out.block(&self.scratch)?);
            self.meta.id_page_first.push(first);
        }
        Ok(())
    }

    fn end_bucket(&mut self) -> SeriesResult<()> {
        self.meta.buckets.blocks.push(self.out.block(&self.bucket)?);
        self.bucket.clear();
        self.bucket_number += 1;
        Ok(())
    }

    fn end_term_block(&mut self) -> SeriesResult<()> {
        if !self.terms.block.is_empty() {
            self.terms.block.finish(&mut self.scratch);
            self.meta.term_blocks.list.blocks.push(self.out.block(&self.scratch)?);
        }
        Ok(())
    }

    fn end_tuple_block(&mut self) -> SeriesResult<()> {
        if !self.tuples.block.is_empty() {
            self.tuples.block.finish(&mut self.scratch);
            self.meta.tuple_blocks.list.blocks.push(self.out.block(&self.scratch)?);
        }
        Ok(())
    }

    fn end_directory_block(&mut self) -> SeriesResult<()> {
        if self.directory_entries > 0 {
            self.scratch.clear();
            self.scratch.extend_from_slice(&(self.directory_entries as u16).to_le_bytes());
            self.scratch.append(&mut self.directory);
            let block = self.out.block(&self.scratch)?;
            self.meta.directory.push(block, self.directory_first);
            self.directory_entries = 0;
        }
        Ok(())
    }

    fn put_posting(&mut self, posting: &Posting, out: &mut Vec<u8>) -> SeriesResult<()> {
        if !put_inline(posting, self.meta.base_id, out) {
            let mut set = posting.clone().into_set();
            set.optimize();
            self.put_block(&set, out)?;
        }
        Ok(())
    }

    fn put_set_posting(&mut self, set: &RoaringTreemap, out: &mut Vec<u8>) -> SeriesResult<()> {
        let mut posting = Posting::default();
        posting.set_to(set.clone());
        self.put_posting(&posting, out)
    }

    fn put_block(&mut self, set: &RoaringTreemap, out: &mut Vec<u8>) -> SeriesResult<()> {
        self.scratch.clear();
        put_set(set, &mut self.scratch);
        let block = self.out.block(&self.scratch)?;
        put_varint(out, 0);
        block.put(out);
        Ok(())
    }
}

/// Appends to a file in large writes.
#[derive(Debug)]
struct Output {
    file: Arc<dyn File>,
    buffer: Vec<u8>,
    written: u64,
}

impl Output {
    const BUFFER_BYTES: usize = 1 << 20;

    fn create(disk: &dyn Disk, path: &Path) -> SeriesResult<Self> {
        let file = disk.create(path)?;
        let mut output =
            Self { file, buffer: Vec::with_capacity(Self::BUFFER_BYTES + 8192), written: 0 };
        output.append(&format::header())?;
        Ok(output)
    }

    fn block(&mut self, bytes: &[u8]) -> SeriesResult<BlockRef> {
        let offset = self.written + self.buffer.len() as u64;
        let len = u32::try_from(bytes.len()).expect("BUG: a block passed 4 GiB");
        self.append(bytes)?;
        Ok(BlockRef { offset, len, crc32c: crc32c::crc32c(bytes) })
    }

    fn append(&mut self, bytes: &[u8]) -> SeriesResult<()> {
        self.buffer.extend_from_slice(bytes);
        platform::give_way();
        if self.buffer.len() >= Self::BUFFER_BYTES {
            self.write_out()?;
        }
        Ok(())
    }

    fn write_out(&mut self) -> SeriesResult<()> {
        self.file.write_at(&self.buffer, self.written)?;
        let len = self.buffer.len() as u64;
        self.file.start_writeback(self.written, len);
        self.written += len;
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self) -> SeriesResult<u64> {
        self.write_out()?;
        self.file.sync()?;
        Ok(self.written)
    }
}
