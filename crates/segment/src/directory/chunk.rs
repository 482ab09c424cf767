//! Bytes of a chunk: the descriptors of consecutive blocks, as differences from one to the next.
//!
//! The pages of a block follow one another without a gap, and so do the blocks of a chunk, so that
//! only lengths are stored and no byte of the file is left unaccounted for.

use model::{FieldType, SeriesId, TimeRange};

use super::{BlockEntry, Chunk, ChunkEntry, Edges, Fields, KnownTimes, PageEntry};
use crate::format::{BLOCK_ROWS_LIMIT, Extent, HEADER_LEN};
use crate::input::{Input, Malformed, put_varint, put_zigzag};
use crate::numbers::Numbers;
use crate::rows::RowKey;

/// Flags of a page's descriptor.
const HAS_MISSING: u8 = 1;
const HAS_NUMBERS: u8 = 2;
const HAS_WINDOWS: u8 = 4;
const HAS_EDGES: u8 = 8;

/// Which edges have a value, where not all rows have one.
const FIRST_IS_THERE: u8 = 1;
const LAST_IS_THERE: u8 = 2;

/// Builds the bytes of one chunk.
#[derive(Debug, Default)]
pub(crate) struct ChunkBuilder {
    bytes: Vec<u8>,
    first: Option<RowKey>,
    last: RowKeyBase,
    time: Option<TimeRange>,
    blocks: u64,
}

/// What the next block's keys are written relative to.
#[derive(Clone, Copy, Debug, Default)]
struct RowKeyBase {
    series: u64,
    time: i64,
}

impl RowKeyBase {
    fn of(key: RowKey) -> Self {
        Self { series: key.0.0, time: key.1 }
    }
}

impl ChunkBuilder {
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds a block, whose pages are `pages` and which starts where the last one ended.
    pub(crate) fn push(&mut self, block: &BlockEntry, pages: &[PageEntry], types: &Fields) {
        let out = &mut self.bytes;
        if self.blocks == 0 {
            put_varint(out, block.times.offset);
        }
        put_varint(out, u64::from(block.rows));
        put_varint(out, block.first.0.0 - self.last.series);
        put_varint(out, block.last.0.0 - block.first.0.0);
        put_zigzag(out, block.first.1.wrapping_sub(self.last.time));
        put_zigzag(out, block.last.1.wrapping_sub(block.first.1));
        if block.runs.is_some() {
            put_zigzag(out, block.time.min.wrapping_sub(block.first.1));
            put_varint(out, block.time.max.wrapping_sub(block.time.min) as u64);
        }
        put_extent(out, &block.times);
        if let Some(runs) = &block.runs {
            put_extent(out, runs);
        }
        put_optional_extent(out, block.window_index.as_ref());
        put_varint(out, pages.len() as u64);
        let mut next_field = 0;
        for page in pages {
            put_varint(out, u64::from(page.field - next_field));
            next_field = page.field + 1;
            put_page(out, page, block.rows, types[page.field as usize].1);
        }
        self.first.get_or_insert(block.first);
        self.last = RowKeyBase::of(block.last);
        self.time = Some(self.time.map_or(block.time, |t| t.union(&block.time)));
        self.blocks += 1;
    }

    /// The entry for the top level; `extent` is where the bytes went. `None` without blocks.
    pub(crate) fn entry(&self, extent: Extent) -> Option<ChunkEntry> {
        let last = (SeriesId(self.last.series), self.last.time);
        Some(ChunkEntry { extent, first: self.first?, last, time: self.time? })
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        *self = Self { bytes: std::mem::take(&mut self.bytes), ..Self::default() };
    }
}

fn put_extent(out: &mut Vec<u8>, extent: &Extent) {
    put_varint(out, u64::from(extent.len));
    out.extend_from_slice(&extent.crc32c.to_le_bytes());
}

fn put_optional_extent(out: &mut Vec<u8>, extent: Option<&Extent>) {
    match extent {
        Some(extent) => put_extent(out, extent),
        None => put_varint(out, 0),
    }
}

fn put_page(out: &mut Vec<u8>, page: &PageEntry, rows: u32, field_type: FieldType) {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let missing = rows - page.count;
    out.push(
        flag(missing > 0, HAS_MISSING)
            | flag(page.numbers.is_some(), HAS_NUMBERS)
            | flag(page.windows.is_some(), HAS_WINDOWS)
            | flag(page.edges.is_some(), HAS_EDGES),
    );
    put_extent(out, &page.extent);
    if missing > 0 {
        put_varint(out, u64::from(missing));
    }
    if let Some(numbers) = &page.numbers {
        put_numbers(out, numbers, field_type);
    }
    if let Some(edges) = &page.edges {
        put_edges(out, edges, page, rows, field_type);
    }
    if let Some(windows) = &page.windows {
        put_extent(out, windows);
    }
}

fn put_numbers(out: &mut Vec<u8>, numbers: &Numbers, field_type: FieldType) {
    match field_type {
        FieldType::Integer => {
            put_zigzag(out, numbers.min as i64);
            put_varint(out, numbers.max.wrapping_sub(numbers.min));
            put_zigzag(out, numbers.sum as i64);
        }
        FieldType::Unsigned => {
            put_varint(out, numbers.min);
            put_varint(out, numbers.max.wrapping_sub(numbers.min));
            put_varint(out, numbers.sum);
        }
        FieldType::Float => {
            for bits in [numbers.min, numbers.max, numbers.sum] {
                out.extend_from_slice(&bits.to_le_bytes());
            }
        }
        FieldType::Boolean => put_varint(out, numbers.sum),
        FieldType::String => panic!("BUG: strings have no numbers"),
    }
}

fn put_edges(out: &mut Vec<u8>, edges: &Edges, page: &PageEntry, rows: u32, field_type: FieldType) {
    if page.count < rows {
        let bit = |edge: Option<u64>, bit: u8| if edge.is_some() { bit } else { 0 };
        out.push(bit(edges[0], FIRST_IS_THERE) | bit(edges[1], LAST_IS_THERE));
    }
    let minimum = page.numbers.map_or(0, |n| n.min);
    for bits in edges.iter().flatten() {
        match field_type {
            FieldType::Float => out.extend_from_slice(&bits.to_le_bytes()),
            FieldType::Integer | FieldType::Unsigned => put_varint(out, bits.wrapping_sub(minimum)),
            FieldType::Boolean => out.push(*bits as u8),
            FieldType::String => panic!("BUG: strings have no edges"),
        }
    }
}

fn read_edges(
    input: &mut Input<'_>,
    field_type: FieldType,
    numbers: Option<Numbers>,
    missing: bool,
) -> Result<Edges, Malformed> {
    let there = if missing { input.u8()? } else { FIRST_IS_THERE | LAST_IS_THERE };
    if there & !(FIRST_IS_THERE | LAST_IS_THERE) != 0 {
        return Err(input.fail(format!("unknown edges {there:#x}")));
    }
    let mut edges = [None; 2];
    for (edge, bit) in edges.iter_mut().zip([FIRST_IS_THERE, LAST_IS_THERE]) {
        if there & bit != 0 {
            *edge = Some(read_edge(input, field_type, numbers)?);
        }
    }
    Ok(edges)
}

fn read_edge(
    input: &mut Input<'_>,
    field_type: FieldType,
    numbers: Option<Numbers>,
) -> Result<u64, Malformed> {
    match (field_type, numbers) {
        (FieldType::Float, _) => input.u64(),
        (FieldType::Integer | FieldType::Unsigned, Some(numbers)) => {
            let above =
                input.bounded(numbers.max.wrapping_sub(numbers.min), "a value at an edge")?;
            Ok(numbers.min.wrapping_add(above as u64))
        }
        (FieldType::Boolean, _) => match input.u8()? {
            bits @ (0 | 1) => Ok(u64::from(bits)),
            bits => Err(input.fail(format!("{bits:#x} is no truth value"))),
        },
        _ => Err(input.fail("edges of a page that can have none")),
    }
}

fn read_numbers(
    input: &mut Input<'_>,
    field_type: FieldType,
    count: u32,
) -> Result<Numbers, Malformed> {
    let numbers = match field_type {
        FieldType::Integer => {
            let min = input.zigzag()? as u64;
            let max = min.wrapping_add(input.varint()?);
            Numbers { min, max, sum: input.zigzag()? as u64 }
        }
        FieldType::Unsigned => {
            let min = input.varint()?;
            let max = min.wrapping_add(input.varint()?);
            Numbers { min, max, sum: input.varint()? }
        }
        FieldType::Float => Numbers { min: input.u64()?, max: input.u64()?, sum: input.u64()? },
        FieldType::Boolean => {
            let trues = input.bounded(u64::from(count), "the number of true values")? as u64;
            let all = trues == u64::from(count);
            Numbers { min: u64::from(all), max: u64::from(trues > 0), sum: trues }
        }
        FieldType::String => return Err(input.fail("a string page with numbers")),
    };
    let ordered = match field_type {
        FieldType::Integer => numbers.min as i64 <= numbers.max as i64,
        FieldType::Float => f64::from_bits(numbers.min) <= f64::from_bits(numbers.max),
        _ => numbers.min <= numbers.max,
    };
    if ordered { Ok(numbers) } else { Err(input.fail("a minimum above its maximum")) }
}

/// Reads descriptors one after another, keeping track of where in the file their bytes are.
struct ChunkReader<'a> {
    input: Input<'a>,
    /// Where the next extent starts.
    position: u64,
    /// Where all of them must have ended.
    limit: u64,
    last: RowKeyBase,
}

impl ChunkReader<'_> {
    fn optional_extent(&mut self) -> Result<Option<Extent>, Malformed> {
        let len = self.input.bounded(u64::from(u32::MAX), "a length")? as u32;
        if len == 0 {
            return Ok(None);
        }
        let extent = Extent { offset: self.position, len, crc32c: self.input.u32()? };
        self.position = extent.end();
        if self.position > self.limit {
            return Err(self.input.fail("a page lies behind its directory"));
        }
        Ok(Some(extent))
    }

    fn extent(&mut self) -> Result<Extent, Malformed> {
        let extent = self.optional_extent()?;
        extent.ok_or_else(|| self.input.fail("a page without bytes"))
    }

    fn block(
        &mut self,
        fields: &Fields,
        pages: &mut Vec<PageEntry>,
    ) -> Result<BlockEntry, Malformed> {
        let base = self.last;
        let rows = self.input.bounded(u64::from(BLOCK_ROWS_LIMIT), "the rows of a block")? as u32;
        let (step, span) = (self.input.varint()?, self.input.varint()?);
        let first_series = base.series.checked_add(step);
        let last_series = first_series.and_then(|s| s.checked_add(span));
        let (Some(first_series), Some(last_series)) = (first_series, last_series) else {
            return Err(self.input.fail("a series beyond 64 bits"));
        };
        let first_time = base.time.wrapping_add(self.input.zigzag()?);
        let last_time = first_time.wrapping_add(self.input.zigzag()?);
        let one_series = first_series == last_series;
        let time = if one_series {
            TimeRange { min: first_time, max: last_time }
        } else {
            let min = first_time.wrapping_add(self.input.zigzag()?);
            TimeRange { min, max: min.wrapping_add(self.input.varint()? as i64) }
        };
        if rows == 0 || time.is_empty() || !time.contains(first_time) || !time.contains(last_time) {
            return Err(self.input.fail("a block with impossible bounds"));
        }
        self.last = RowKeyBase { series: last_series, time: last_time };
        let times = self.extent()?;
        let runs = if one_series { None } else { Some(self.extent()?) };
        let page_from = pages.len();
        // The window index comes behind the fields in the file: its place is settled below.
        let index_len = self.input.bounded(u64::from(u32::MAX), "a length")? as u32;
        let index_crc = if index_len > 0 { self.input.u32()? } else { 0 };
        let window_lens = self.pages(fields, rows, pages)?;
        let window_index = self.place(index_len, index_crc)?;
        if window_index.is_none() && !window_lens.is_empty() {
            return Err(self.input.fail("window summaries without an index"));
        }
        for (at, len, crc) in window_lens {
            pages[at].windows = self.place(len, crc)?;
        }
        let (from, to) = (u32::try_from(page_from), u32::try_from(pages.len()));
        let (Ok(from), Ok(to)) = (from, to) else {
            return Err(self.input.fail("too many pages"));
        };
        Ok(BlockEntry {
            rows,
            first: (SeriesId(first_series), first_time),
            last: (SeriesId(last_series), last_time),
            time,
            times,
            known_times: KnownTimes::default(),
            runs,
            window_index,
            pages: from..to,
            end: self.position,
        })
    }

    /// Gives the next bytes of the file to something whose length was read earlier.
    fn place(&mut self, len: u32, crc32c: u32) -> Result<Option<Extent>, Malformed> {
        let extent = Extent { offset: self.position, len, crc32c };
        self.position = extent.end();
        if self.position > self.limit {
            return Err(self.input.fail("a page lies behind its directory"));
        }
        Ok((len > 0).then_some(extent))
    }

    /// Reads the pages of a block; gives page number, length and checksum of window summaries.
    fn pages(
        &mut self,
        fields: &Fields,
        rows: u32,
        pages: &mut Vec<PageEntry>,
    ) -> Result<Vec<(usize, u32, u32)>, Malformed> {
        let mut windows = Vec::new();
        let count = self.input.bounded(fields.len() as u64, "the number of pages")?;
        let mut next_field = 0u64;
        for _ in 0..count {
            let field = next_field.saturating_add(self.input.varint()?);
            next_field = field.saturating_add(1);
            let known = usize::try_from(field).ok().and_then(|f| fields.get(f));
            let Some((_, field_type)) = known else {
                return Err(self.input.fail("a page of a field that does not exist"));
            };
            let flags = self.input.u8()?;
            if flags & !(HAS_MISSING | HAS_NUMBERS | HAS_WINDOWS | HAS_EDGES) != 0 {
                return Err(self.input.fail(format!("unknown page flags {flags:#x}")));
            }
            let extent = self.extent()?;
            let mut count = rows;
            if flags & HAS_MISSING != 0 {
                count -= self.input.bounded(u64::from(rows) - 1, "missing values")? as u32;
            }
            let numbers = if flags & HAS_NUMBERS != 0 {
                Some(read_numbers(&mut self.input, *field_type, count)?)
            } else {
                None
            };
            let edges = if flags & HAS_EDGES != 0 {
                Some(read_edges(&mut self.input, *field_type, numbers, count < rows)?)
            } else {
                None
            };
            if flags & HAS_WINDOWS != 0 {
                let len = self.input.bounded(u64::from(u32::MAX), "a length")? as u32;
                windows.push((pages.len(), len, self.input.u32()?));
            }
            let field = field as u32;
            pages.push(PageEntry { field, count, extent, numbers, edges, windows: None });
        }
        Ok(windows)
    }
}

impl Chunk {
    /// Reads a chunk whose blocks must all have ended at `limit` of the file.
    pub(crate) fn decode(bytes: &[u8], fields: Fields, limit: u64) -> Result<Self, Malformed> {
        let mut input = Input::new(bytes);
        let position = input.varint()?;
        if position < HEADER_LEN as u64 {
            return Err(input.fail("a block lies inside of the header"));
        }
        let mut reader = ChunkReader { input, position, limit, last: RowKeyBase::default() };
        let (mut blocks, mut pages): (Vec<BlockEntry>, Vec<PageEntry>) = (Vec::new(), Vec::new());
        while !reader.input.rest().is_empty() {
            let block = reader.block(&fields, &mut pages)?;
            if blocks.last().is_some_and(|b| b.last >= block.first) {
                return Err(reader.input.fail("blocks out of order"));
            }
            blocks.push(block);
        }
        if blocks.is_empty() {
            return Err(reader.input.fail("a chunk without blocks"));
        }
        blocks.shrink_to_fit();
        pages.shrink_to_fit();
        Ok(Self { fields, blocks, pages })
    }

    /// What the top level says of a chunk.
    pub(crate) fn entry(&self, extent: Extent) -> ChunkEntry {
        let (first, last) = match self.blocks.as_slice() {
            [] => panic!("BUG: a decoded chunk has blocks"),
            [first, .., last] => (first, last),
            [only] => (only, only),
        };
        let time = self.blocks.iter().fold(TimeRange::EMPTY, |t, b| t.union(&b.time));
        ChunkEntry { extent, first: first.first, last: last.last, time }
    }
}
