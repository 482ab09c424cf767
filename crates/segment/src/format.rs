//! The fixed parts of a segment file: header, trailer and measurement list.
//!
//! Layout: docs/formats/segment.md. The header says whether the file can be read at all, the
//! trailer says what it holds; both are verified before any number in them is used.

use model::{Name, SeriesId, TimeRange};

use crate::input::{Input, Malformed, put_bytes, put_varint, put_zigzag};

/// The most rows a block can have, whatever the writer's options.
pub const BLOCK_ROWS_LIMIT: u32 = 1 << 20;
/// The most bytes of text one field of a block can have; also the longest string.
pub(crate) const BLOCK_TEXT_LIMIT: usize = 1 << 28;

pub(crate) const HEADER_MAGIC: [u8; 8] = *b"NYALASEG";
pub(crate) const TRAILER_MAGIC: [u8; 8] = *b"GESALAYN";
pub(crate) const VERSION: u32 = 1;
/// Incompatible feature: page descriptors can have edges.
const FEATURE_EDGES: u32 = 1;
/// Incompatible feature: entropy-coded pages can be tight, window summaries bounded.
const FEATURE_TIGHT: u32 = 2;
/// Incompatible feature: pages of strings can be templates.
const FEATURE_TEMPLATES: u32 = 4;
/// Incompatible feature: pages of strings can be characters of an alphabet.
const FEATURE_ALPHABET: u32 = 8;
/// Those that this version knows, and names in what it writes.
const FEATURES: u32 = FEATURE_EDGES | FEATURE_TIGHT | FEATURE_TEMPLATES | FEATURE_ALPHABET;

const HEADER_CRC_AT: usize = 28;
pub(crate) const HEADER_LEN: usize = HEADER_CRC_AT + 4;
const TRAILER_CRC_AT: usize = 80;
const TRAILER_MAGIC_AT: usize = TRAILER_CRC_AT + 4;
pub(crate) const TRAILER_LEN: usize = TRAILER_MAGIC_AT + 8;

/// What a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// The number its writer was given.
    pub sequence: u64,
    /// Length of the file.
    pub bytes: u64,
    /// Rows, over all measurements.
    pub rows: u64,
    /// Field values that are not missing.
    pub values: u64,
    /// Blocks, over all measurements.
    pub blocks: u64,
    /// From the earliest to the latest row; empty without rows.
    pub time: TimeRange,
    /// Lowest and highest series; the lowest is the larger one without rows.
    pub series: (SeriesId, SeriesId),
}

/// What a segment holds of one measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasurementInfo {
    /// The measurement.
    pub name: Name,
    /// Its rows.
    pub rows: u64,
    /// Its blocks.
    pub blocks: u64,
    /// From its earliest to its latest row.
    pub time: TimeRange,
    /// Its lowest and highest series.
    pub series: (SeriesId, SeriesId),
    pub(crate) directory: Extent,
}

/// The measurements of a segment, ascending by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasurementList {
    entries: Vec<MeasurementInfo>,
}

/// A checksummed part of the file.
pub(crate) type Extent = platform::PageRange;

/// The bounds of no rows: any row narrows them.
pub(crate) const NO_SERIES: (SeriesId, SeriesId) = (SeriesId(u64::MAX), SeriesId(0));

pub(crate) fn series_union(
    a: (SeriesId, SeriesId),
    b: (SeriesId, SeriesId),
) -> (SeriesId, SeriesId) {
    (a.0.min(b.0), a.1.max(b.1))
}

/// Why a header was refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    Damaged(&'static str),
    Unsupported(String),
}

pub(crate) fn encode_header(sequence: u64) -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    header[..8].copy_from_slice(&HEADER_MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    // 12..16: compatible features, none are defined yet.
    header[16..20].copy_from_slice(&FEATURES.to_le_bytes());
    header[20..28].copy_from_slice(&sequence.to_le_bytes());
    let crc = crc32c::crc32c(&header[..HEADER_CRC_AT]);
    header[HEADER_CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    header
}

/// Checks a header and gives the sequence in it.
pub(crate) fn decode_header(header: &[u8; HEADER_LEN]) -> Result<u64, HeaderError> {
    let u32_at = |at| u32::from_le_bytes(std::array::from_fn(|i| header[at + i]));
    if header[..8] != HEADER_MAGIC {
        return Err(HeaderError::Damaged("this is not a segment file"));
    }
    if u32_at(HEADER_CRC_AT) != crc32c::crc32c(&header[..HEADER_CRC_AT]) {
        return Err(HeaderError::Damaged("the checksum of the header is wrong"));
    }
    let (version, incompatible) = (u32_at(8), u32_at(16));
    if version != VERSION {
        return Err(HeaderError::Unsupported(format!("its format version is {version}")));
    }
    let unknown = incompatible & !FEATURES;
    if unknown != 0 {
        return Err(HeaderError::Unsupported(format!("it needs features {unknown:#x}")));
    }
    Ok(u64::from_le_bytes(std::array::from_fn(|i| header[20 + i])))
}

pub(crate) fn encode_trailer(info: &SegmentInfo, list: &Extent) -> Vec<u8> {
    let mut out = Vec::with_capacity(TRAILER_LEN);
    out.extend_from_slice(&list.offset.to_le_bytes());
    out.extend_from_slice(&list.len.to_le_bytes());
    out.extend_from_slice(&list.crc32c.to_le_bytes());
    for number in [
        info.rows,
        info.values,
        info.blocks,
        info.time.min as u64,
        info.time.max as u64,
        info.series.0.0,
        info.series.1.0,
        info.sequence,
    ] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    assert_eq!(out.len(), TRAILER_CRC_AT, "BUG: the trailer has another layout");
    out.extend_from_slice(&crc32c::crc32c(&out).to_le_bytes());
    out.extend_from_slice(&TRAILER_MAGIC);
    out
}

/// Checks the trailer of a file of `bytes` bytes.
pub(crate) fn decode_trailer(
    trailer: &[u8; TRAILER_LEN],
    bytes: u64,
) -> Result<(SegmentInfo, Extent), Malformed> {
    let mut input = Input::new(trailer);
    let list = Extent { offset: input.u64()?, len: input.u32()?, crc32c: input.u32()? };
    let mut numbers = [0; 8];
    for number in &mut numbers {
        *number = input.u64()?;
    }
    let [rows, values, blocks, time_min, time_max, series_first, series_last, sequence] = numbers;
    let crc = input.u32()?;
    if input.array::<8>()? != TRAILER_MAGIC {
        return Err(input.fail("the file has no trailer: it was not finished, or its end is lost"));
    }
    if crc != crc32c::crc32c(&trailer[..TRAILER_CRC_AT]) {
        return Err(input.fail("the checksum of the trailer is wrong"));
    }
    let list_end = bytes - TRAILER_LEN as u64;
    if list.offset < HEADER_LEN as u64 || list.end() != list_end {
        return Err(input.fail("the measurement list is not where the trailer says"));
    }
    let time = TimeRange { min: time_min as i64, max: time_max as i64 };
    let series = (SeriesId(series_first), SeriesId(series_last));
    Ok((SegmentInfo { sequence, bytes, rows, values, blocks, time, series }, list))
}

impl MeasurementList {
    pub(crate) fn new(entries: Vec<MeasurementInfo>) -> Self {
        Self { entries }
    }

    /// The entry of a measurement, if the segment has rows of it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&MeasurementInfo> {
        let at = self.entries.binary_search_by(|e| (*e.name).cmp(name)).ok()?;
        Some(&self.entries[at])
    }

    /// All entries.
    #[must_use]
    pub fn entries(&self) -> &[MeasurementInfo] {
        &self.entries
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.entries.len() as u64);
        let mut end = 0;
        for entry in &self.entries {
            put_bytes(out, entry.name.as_bytes());
            put_varint(out, entry.directory.offset - end);
            put_varint(out, u64::from(entry.directory.len));
            out.extend_from_slice(&entry.directory.crc32c.to_le_bytes());
            end = entry.directory.end();
            put_varint(out, entry.rows);
            put_varint(out, entry.blocks);
            put_zigzag(out, entry.time.min);
            put_varint(out, entry.time.max.wrapping_sub(entry.time.min) as u64);
            put_varint(out, entry.series.0.0);
            put_varint(out, entry.series.1.0 - entry.series.0.0);
        }
    }

    /// Reads a list; `data_end` is where it starts, and so where everything else ends.
    pub(crate) fn decode(bytes: &[u8], data_end: u64) -> Result<Self, Malformed> {
        let mut input = Input::new(bytes);
        let count = input.bounded(bytes.len() as u64, "the number of measurements")?;
        let mut entries: Vec<MeasurementInfo> = Vec::new();
        let mut end = 0u64;
        for _ in 0..count {
            let name = input.text()?;
            if entries.last().is_some_and(|e| &*e.name >= name) {
                return Err(input.fail("measurements out of order"));
            }
            let offset = end.saturating_add(input.varint()?);
            let len = input.bounded(u64::from(u32::MAX), "a length")? as u32;
            let directory = Extent { offset, len, crc32c: input.u32()? };
            end = directory.end();
            if offset < HEADER_LEN as u64 || end > data_end || len == 0 {
                return Err(input.fail("a directory lies outside of the file"));
            }
            let (rows, blocks) = (input.varint()?, input.varint()?);
            let min = input.zigzag()?;
            let max = min.wrapping_add(input.varint()? as i64);
            let first = input.varint()?;
            let last = first.saturating_add(input.varint()?);
            if min > max {
                return Err(input.fail("a time range is inside out"));
            }
            entries.push(MeasurementInfo {
                name: name.into(),
                rows,
                blocks,
                time: TimeRange { min, max },
                series: (SeriesId(first), SeriesId(last)),
                directory,
            });
        }
        input.end()?;
        Ok(Self { entries })
    }

    /// About how much memory it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let names: usize = self.entries.iter().map(|e| e.name.len() + 16).sum();
        names + self.entries.capacity() * size_of::<MeasurementInfo>() + size_of::<Self>()
    }
}
