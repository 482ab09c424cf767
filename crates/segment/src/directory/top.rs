//! Bytes of a directory's top level: fields, then chunks or the only chunk itself.

use std::sync::Arc;

use model::{FieldType, Name, SeriesId, TimeRange};

use super::{Chunk, ChunkEntry, Directory, Fields};
use crate::format::{Extent, HEADER_LEN};
use crate::input::{Input, Malformed, put_bytes, put_varint, put_zigzag};

/// Writes the top level of a directory with several chunks, or with one that is inline.
pub(crate) fn encode(
    fields: &[(Name, FieldType)],
    chunks: &[ChunkEntry],
    inline: Option<&[u8]>,
    out: &mut Vec<u8>,
) {
    put_varint(out, fields.len() as u64);
    for (name, field_type) in fields {
        put_bytes(out, name.as_bytes());
        out.push(*field_type as u8);
    }
    if let Some(chunk) = inline {
        put_varint(out, 0);
        out.extend_from_slice(chunk);
        return;
    }
    assert!(chunks.len() > 1, "BUG: a single chunk belongs inside the directory");
    put_varint(out, chunks.len() as u64);
    let mut end = 0;
    for chunk in chunks {
        put_varint(out, chunk.extent.offset - end);
        put_varint(out, u64::from(chunk.extent.len));
        out.extend_from_slice(&chunk.extent.crc32c.to_le_bytes());
        end = chunk.extent.end();
        for (series, time) in [chunk.first, chunk.last] {
            put_varint(out, series.0);
            put_zigzag(out, time);
        }
        put_zigzag(out, chunk.time.min);
        put_zigzag(out, chunk.time.max);
    }
}

/// Reads a directory that starts at `offset` of the file.
pub(crate) fn decode(bytes: &[u8], offset: u64) -> Result<Directory, Malformed> {
    let mut input = Input::new(bytes);
    let fields = decode_fields(&mut input)?;
    let count = input.bounded(bytes.len() as u64, "the number of chunks")?;
    if count == 0 {
        let at = input.at();
        let chunk = Chunk::decode(input.rest(), Arc::clone(&fields), offset)
            .map_err(|e| Malformed { at: at + e.at, what: e.what })?;
        let extent = Extent { offset: offset + at as u64, len: 0, crc32c: 0 };
        let entry = chunk.entry(extent);
        return Ok(Directory { fields, chunks: vec![entry], inline: Some(Arc::new(chunk)) });
    }
    let mut chunks: Vec<ChunkEntry> = Vec::new();
    for _ in 0..count {
        let chunk = decode_chunk_entry(&mut input, chunks.last())?;
        if chunk.extent.end() > offset {
            return Err(input.fail("a chunk lies behind its directory"));
        }
        chunks.push(chunk);
    }
    input.end()?;
    Ok(Directory { fields, chunks, inline: None })
}

fn decode_fields(input: &mut Input<'_>) -> Result<Fields, Malformed> {
    let count = input.bounded(input.rest().len() as u64, "the number of fields")?;
    let mut fields: Vec<(Name, FieldType)> = Vec::new();
    for _ in 0..count {
        let name = input.text()?;
        if fields.last().is_some_and(|(n, _)| &**n >= name) {
            return Err(input.fail("fields out of order"));
        }
        let code = input.u8()?;
        let Some(field_type) = FieldType::from_code(code) else {
            return Err(input.fail(format!("no field type has the code {code}")));
        };
        fields.push((name.into(), field_type));
    }
    Ok(fields.into())
}

fn decode_chunk_entry(
    input: &mut Input<'_>,
    before: Option<&ChunkEntry>,
) -> Result<ChunkEntry, Malformed> {
    let end = before.map_or(0, |c| c.extent.end());
    let offset = end.saturating_add(input.varint()?);
    let len = input.bounded(u64::from(u32::MAX), "a length")? as u32;
    let extent = Extent { offset, len, crc32c: input.u32()? };
    let first = (SeriesId(input.varint()?), input.zigzag()?);
    let last = (SeriesId(input.varint()?), input.zigzag()?);
    let time = TimeRange { min: input.zigzag()?, max: input.zigzag()? };
    let ascending = before.is_none_or(|c| c.last < first) && first <= last && !time.is_empty();
    if !ascending || len == 0 || offset < HEADER_LEN as u64 {
        return Err(input.fail("a chunk with impossible bounds"));
    }
    Ok(ChunkEntry { extent, first, last, time })
}
