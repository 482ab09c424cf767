//! Constant, regular, raw and frame-of-reference pages.

use std::ops::Range;

use super::Sink;
use crate::{
    encoding::id,
    error::Result,
    patched::{self, Body, Differences, Plan},
    wire::{Reader, put_ivarint},
};

pub(super) fn encode_constant(value: i64, out: &mut Vec<u8>) {
    out.push(id::INT_CONSTANT);
    put_ivarint(out, value);
}

pub(super) fn decode_constant(
    mut reader: Reader<'_>,
    range: Range<usize>,
    block: &mut [u64],
    sink: &mut Sink<'_>,
) -> Result<()> {
    let value = reader.ivarint()? as u64;
    reader.finish()?;
    for first in range.clone().step_by(block.len()) {
        let block_len = block.len().min(range.end - first);
        // The sink may have overwritten the block.
        block[..block_len].fill(value);
        sink(&mut block[..block_len]);
    }
    Ok(())
}

pub(super) fn encode_regular(start: i64, step: i64, out: &mut Vec<u8>) {
    out.push(id::INT_REGULAR);
    put_ivarint(out, start);
    put_ivarint(out, step);
}

pub(super) fn decode_regular(
    mut reader: Reader<'_>,
    range: Range<usize>,
    block: &mut [u64],
    sink: &mut Sink<'_>,
) -> Result<()> {
    let start = reader.ivarint()? as u64;
    let step = reader.ivarint()? as u64;
    reader.finish()?;
    for first in range.clone().step_by(block.len()) {
        let block_len = block.len().min(range.end - first);
        let mut value = start.wrapping_add(step.wrapping_mul(first as u64));
        for slot in &mut block[..block_len] {
            *slot = value;
            value = value.wrapping_add(step);
        }
        sink(&mut block[..block_len]);
    }
    Ok(())
}

pub(super) fn encode_raw(values: &[u64], out: &mut Vec<u8>) {
    out.push(id::INT_RAW);
    out.reserve(values.len() * 8);
    for value in values {
        out.extend_from_slice(&value.to_le_bytes());
    }
}

pub(crate) fn decode_raw(
    mut reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    block: &mut [u64],
    sink: &mut Sink<'_>,
) -> Result<()> {
    let bytes = reader.take(count * 8)?;
    reader.finish()?;
    let (words, _) = bytes[range.start * 8..range.end * 8].as_chunks::<8>();
    for words in words.chunks(block.len()) {
        for (slot, word) in block.iter_mut().zip(words) {
            *slot = u64::from_le_bytes(*word);
        }
        sink(&mut block[..words.len()]);
    }
    Ok(())
}

/// Returns whether the page stayed within `bytes_max`; if not, `out` is as it was.
pub(super) fn encode_for(values: &[u64], plan: &Plan, bytes_max: usize, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    out.push(id::INT_FOR);
    let done = patched::encode(values.len(), plan, bytes_max, out, |first, block| {
        block.copy_from_slice(&values[first..first + block.len()]);
    });
    if !done {
        out.truncate(start);
    }
    done
}

pub(super) fn decode_for(
    reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    block: &mut [u64],
    sink: &mut Sink<'_>,
) -> Result<()> {
    let mut body = Body::read(reader, count)?;
    let base = body.base;
    for first in range.clone().step_by(block.len()) {
        let block_len = block.len().min(range.end - first);
        let block = &mut block[..block_len];
        body.read_block(first, block)?;
        if base != 0 {
            for value in block.iter_mut() {
                *value = value.wrapping_add(base);
            }
        }
        sink(block);
    }
    if range.end == count { body.finish() } else { Ok(()) }
}
