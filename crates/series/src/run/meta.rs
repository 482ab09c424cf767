//! The meta block of a run: counts, ids, and where every other block is. Kept in memory.

use roaring::RoaringTreemap;

use crate::block::BlockRef;
use crate::bytes::{Reader, put_text, put_varint};
use crate::error::Malformed;
use crate::posting::{put_set, read_set};

/// Where the blocks of one kind are, in order.
#[derive(Debug, Default)]
pub(crate) struct BlockList {
    pub(crate) blocks: Vec<BlockRef>,
}

/// Blocks of numbered entries: which numbers each begins with.
#[derive(Debug, Default)]
pub(crate) struct NumberedBlocks {
    pub(crate) list: BlockList,
    pub(crate) first: Vec<u32>,
}

/// The least texts that still separate each block's entries from those before.
#[derive(Debug)]
pub(crate) struct Separators {
    offsets: Vec<u32>,
    bytes: Vec<u8>,
}

/// Everything the meta block says.
#[derive(Debug, Default)]
pub(crate) struct Meta {
    pub(crate) seed: u64,
    pub(crate) base_id: u64,
    pub(crate) wide_ids: bool,
    pub(crate) series: u32,
    pub(crate) terms: u32,
    pub(crate) measurements: u32,
    pub(crate) ids: RoaringTreemap,
    pub(crate) filter: Option<BlockRef>,
    /// Numbered by series.
    pub(crate) directory: NumberedBlocks,
    pub(crate) directory_keys: Separators,
    pub(crate) term_blocks: NumberedBlocks,
    pub(crate) term_values: Separators,
    pub(crate) tuple_blocks: NumberedBlocks,
    /// One block a bucket; an empty bucket has length 0.
    pub(crate) buckets: BlockList,
    pub(crate) id_pages: BlockList,
    pub(crate) id_page_first: Vec<u64>,
}

impl Default for Separators {
    fn default() -> Self {
        Self { offsets: vec![0], bytes: Vec::new() }
    }
}

impl Separators {
    pub(crate) fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        let end = u32::try_from(self.bytes.len()).expect("BUG: separators passed 4 GiB");
        self.offsets.push(end);
    }

    pub(crate) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    pub(crate) fn get(&self, at: usize) -> &[u8] {
        &self.bytes[self.offsets[at] as usize..self.offsets[at + 1] as usize]
    }

    /// How many of those in `low..high` are not above `wanted`, counted from 0.
    pub(crate) fn upper_bound(&self, mut low: usize, mut high: usize, wanted: &[u8]) -> usize {
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.get(middle) <= wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.offsets.capacity() * 4
    }

    fn put(&self, out: &mut Vec<u8>) {
        (0..self.len()).for_each(|at| put_text(out, self.get(at)));
    }

    fn read(reader: &mut Reader<'_>, count: usize) -> Result<Self, Malformed> {
        let mut separators = Self::default();
        for _ in 0..count {
            let len = reader.varint_len()?;
            separators.bytes.extend_from_slice(reader.take(len)?);
            let end = u32::try_from(separators.bytes.len());
            separators.offsets.push(end.map_err(|_| Malformed("separators are too long"))?);
        }
        Ok(separators)
    }
}

impl BlockList {
    fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.blocks.len() as u64);
        let mut before = 0;
        for block in &self.blocks {
            put_varint(out, block.offset - before);
            put_varint(out, u64::from(block.len));
            out.extend_from_slice(&block.crc32c.to_le_bytes());
            before = block.offset;
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let count = reader.varint_len()?;
        let mut blocks = Vec::with_capacity(count.min(reader.remaining() / 6));
        let mut offset = 0u64;
        for _ in 0..count {
            let step = reader.varint()?;
            offset = offset.checked_add(step).ok_or(Malformed("a block is too far out"))?;
            blocks.push(BlockRef { offset, len: reader.varint_u32()?, crc32c: reader.u32()? });
        }
        Ok(Self { blocks })
    }

    fn heap_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<BlockRef>()
    }
}

impl NumberedBlocks {
    pub(crate) fn push(&mut self, block: BlockRef, first: u32) {
        self.list.blocks.push(block);
        self.first.push(first);
    }

    pub(crate) fn len(&self) -> usize {
        self.first.len()
    }

    /// The block that holds entry `number`.
    pub(crate) fn block_of(&self, number: u32) -> Option<usize> {
        self.first.partition_point(|first| *first <= number).checked_sub(1)
    }

    /// Number of the first entry behind block `at`.
    pub(crate) fn end(&self, at: usize, total: u32) -> u32 {
        self.first.get(at + 1).copied().unwrap_or(total)
    }

    fn put(&self, out: &mut Vec<u8>) {
        self.list.put(out);
        let mut before = 0;
        for first in &self.first {
            put_varint(out, u64::from(first - before));
            before = *first;
        }
    }

    fn read(reader: &mut Reader<'_>, total: u32) -> Result<Self, Malformed> {
        let list = BlockList::read(reader)?;
        let mut first = Vec::with_capacity(list.blocks.len());
        let mut number = 0u32;
        for _ in 0..list.blocks.len() {
            let step = reader.varint_u32()?;
            number = number.checked_add(step).filter(|n| *n <= total).ok_or(OUT_OF_RANGE)?;
            first.push(number);
        }
        Ok(Self { list, first })
    }

    fn heap_bytes(&self) -> usize {
        self.list.heap_bytes() + self.first.capacity() * 4
    }
}

const OUT_OF_RANGE: Malformed = Malformed("a block begins past the last entry");

impl Meta {
    pub(crate) fn heap_bytes(&self) -> usize {
        [&self.directory, &self.term_blocks, &self.tuple_blocks]
            .map(NumberedBlocks::heap_bytes)
            .iter()
            .sum::<usize>()
            + self.directory_keys.heap_bytes()
            + self.term_values.heap_bytes()
            + self.buckets.heap_bytes()
            + self.id_pages.heap_bytes()
            + self.id_page_first.capacity() * 8
            + self.ids.serialized_size()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.seed.to_le_bytes());
        out.extend_from_slice(&self.base_id.to_le_bytes());
        out.push(u8::from(self.wide_ids));
        for count in [self.series, self.terms, self.measurements] {
            out.extend_from_slice(&count.to_le_bytes());
        }
        let filter = self.filter.expect("BUG: a run is encoded with its filter");
        filter.put(&mut out);
        put_set(&self.ids, &mut out);
        self.directory.put(&mut out);
        self.directory_keys.put(&mut out);
        self.term_blocks.put(&mut out);
        self.term_values.put(&mut out);
        self.tuple_blocks.put(&mut out);
        self.buckets.put(&mut out);
        self.id_pages.put(&mut out);
        let mut before = self.base_id;
        for first in &self.id_page_first {
            put_varint(&mut out, first - before);
            before = *first;
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let reader = &mut Reader::new(bytes);
        let (seed, base_id) = (reader.u64()?, reader.u64()?);
        let wide_ids = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return Err(Malformed("the width of ids is unknown")),
        };
        let (series, terms, measurements) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let filter = Some(BlockRef::read(reader)?);
        let ids = read_set(reader)?;
        let directory = NumberedBlocks::read(reader, series)?;
        let directory_keys = Separators::read(reader, directory.len())?;
        let term_blocks = NumberedBlocks::read(reader, terms)?;
        let term_values = Separators::read(reader, term_blocks.len())?;
        let tuple_blocks = NumberedBlocks::read(reader, series)?;
        let buckets = BlockList::read(reader)?;
        let id_pages = BlockList::read(reader)?;
        let mut id_page_first = Vec::with_capacity(id_pages.blocks.len());
        let mut first = base_id;
        for _ in 0..id_pages.blocks.len() {
            first = first.checked_add(reader.varint()?).ok_or(Malformed("an id is too large"))?;
            id_page_first.push(first);
        }
        if !reader.is_empty() || buckets.blocks.is_empty() {
            return Err(Malformed("the meta block is not what this version writes"));
        }
        Ok(Self {
            seed,
            base_id,
            wide_ids,
            series,
            terms,
            measurements,
            ids,
            filter,
            directory,
            directory_keys,
            term_blocks,
            term_values,
            tuple_blocks,
            buckets,
            id_pages,
            id_page_first,
        })
    }
}
