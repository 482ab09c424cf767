//! Reading parts of entropy-coded pages: first the symbols, of several pages at once, then what they
//! stand for.
//!
//! Invariants
//! - Chunk lengths are checked against the page before anything in them is read.
//! - A chunk that was decoded to its end must leave every state where the encoder began. Most damage
//!   shows there, not all: symbols of one frequency can take each other's place. Checksums are for that.

use std::ops::Range;

use super::{
    CHUNK_ROWS, body_of,
    rans::{Frequencies, Table},
    streams::{self, Stream},
    symbols::{BitReader, join, join_small, sum_small},
};
use crate::{
    bitpack::BLOCK,
    error::{DecodeError, Result},
    int::Sink,
    prefix::prefix_sum,
    wire::Reader,
};

/// Some rows of an entropy-coded page, of which the chunks are known but not decoded.
#[derive(Debug)]
pub(crate) struct TightPart<'a> {
    range: Range<usize>,
    /// The value in the first row of each wanted chunk, if differences are coded.
    restarts: Option<Vec<u64>>,
    center: u64,
    table: Table,
    chunks: Vec<Chunk<'a>>,
    /// The symbols of the wanted chunks, one after the other, and how reading them went.
    symbols: Vec<u8>,
    outcome: Result<()>,
}

/// A chunk up to the last row that is wanted.
#[derive(Debug)]
struct Chunk<'a> {
    first_row: usize,
    /// Coded numbers that are wanted, and whether it has no more.
    coded: usize,
    is_whole: bool,
    stream: &'a [u8],
    raw: &'a [u8],
}

impl<'a> TightPart<'a> {
    /// Rows of a page of numbers, if its integers are entropy-coded and its header is in order.
    pub(crate) fn find(page: &'a [u8], count: usize, range: Range<usize>) -> Option<Self> {
        let (has_differences, reader) = body_of(page)?;
        Self::open(has_differences, reader, count, range).ok()
    }

    /// Rows of a page, of which what follows the encoding id is given.
    pub(crate) fn open(
        has_differences: bool,
        mut reader: Reader<'a>,
        count: usize,
        range: Range<usize>,
    ) -> Result<Self> {
        let n_chunks = count.div_ceil(CHUNK_ROWS);
        let wanted = range.start / CHUNK_ROWS..range.end.div_ceil(CHUNK_ROWS);
        let restarts = has_differences.then(|| read_restarts(&mut reader, n_chunks, &wanted));
        let restarts = restarts.transpose()?;
        let center = reader.ivarint()? as u64;
        let table = Frequencies::read(&mut reader)?.into_table();
        let bytes = chunk_bytes(reader, n_chunks)?;
        let mut chunks = Vec::with_capacity(wanted.len());
        for index in wanted {
            let first_row = index * CHUNK_ROWS;
            let chunk_end = (first_row + CHUNK_ROWS).min(count);
            let mut reader = Reader::new(bytes[index]);
            let stream = reader.length_prefixed()?;
            chunks.push(Chunk {
                first_row,
                coded: chunk_end.min(range.end) - first_row - usize::from(has_differences),
                is_whole: chunk_end <= range.end,
                stream,
                raw: reader.rest(),
            });
        }
        let symbols = vec![0; chunks.iter().map(|chunk| chunk.coded).sum()];
        Ok(Self { range, restarts, center, table, chunks, symbols, outcome: Ok(()) })
    }

    /// Streams of symbols that reading it takes.
    pub(crate) fn n_streams(&self) -> usize {
        self.chunks.len()
    }

    /// Hands over the rows, of which the symbols were decoded.
    pub(crate) fn emit(self, sink: &mut Sink<'_>) -> Result<()> {
        self.outcome?;
        let mut symbols = &self.symbols[..];
        for (at, chunk) in self.chunks.iter().enumerate() {
            let (of_chunk, rest) = symbols.split_at(chunk.coded);
            self.emit_chunk(at, of_chunk, sink)?;
            symbols = rest;
        }
        Ok(())
    }

    fn emit_chunk(&self, at: usize, symbols: &[u8], sink: &mut Sink<'_>) -> Result<()> {
        let chunk = &self.chunks[at];
        let has_raw = self.table.has_raw_symbols();
        let mut raw = BitReader::new(chunk.raw);
        let mut block = [0u64; BLOCK];
        let mut row = chunk.first_row;
        let mut carry = self.restarts.as_ref().map(|restarts| restarts[at]);
        if let Some(restart) = carry {
            self.emit_rows(&mut [restart], row, sink);
            row += 1;
        }
        for symbols in symbols.chunks(BLOCK) {
            let is_wanted = row + symbols.len() > self.range.start;
            if !is_wanted && !has_raw {
                // Of rows before the wanted ones only the sum counts.
                let centers = self.center.wrapping_mul(symbols.len() as u64);
                carry = carry.map(|c| c.wrapping_add(sum_small(symbols)).wrapping_add(centers));
                row += symbols.len();
                continue;
            }
            let block = &mut block[..symbols.len()];
            if has_raw {
                join(symbols, &mut raw, block)?;
            } else {
                join_small(symbols, block);
            }
            match &mut carry {
                Some(carry) => *carry = prefix_sum(block, *carry, self.center),
                None => block.iter_mut().for_each(|x| *x = x.wrapping_add(self.center)),
            }
            self.emit_rows(block, row, sink);
            row += symbols.len();
        }
        if chunk.is_whole { raw.finish() } else { Ok(()) }
    }

    /// Hands over those rows of a block starting at `row` that are wanted.
    fn emit_rows(&self, block: &mut [u64], row: usize, sink: &mut Sink<'_>) {
        let from = self.range.start.saturating_sub(row).min(block.len());
        let to = self.range.end.saturating_sub(row).min(block.len());
        if from < to {
            sink(&mut block[from..to]);
        }
    }
}

/// The values in the first rows of the wanted chunks.
fn read_restarts(
    reader: &mut Reader<'_>,
    n_chunks: usize,
    wanted: &Range<usize>,
) -> Result<Vec<u64>> {
    let mut restarts = Vec::with_capacity(wanted.len());
    let mut restart = 0u64;
    for index in 0..n_chunks {
        restart = restart.wrapping_add(reader.ivarint()? as u64);
        if wanted.contains(&index) {
            restarts.push(restart);
        }
    }
    Ok(restarts)
}

/// The bytes of each chunk, of which the lengths come first.
fn chunk_bytes(mut reader: Reader<'_>, n_chunks: usize) -> Result<Vec<&[u8]>> {
    let mut lens = Vec::with_capacity(n_chunks);
    for _ in 0..n_chunks {
        lens.push(reader.uvarint()?);
    }
    let mut chunks = Vec::with_capacity(n_chunks);
    for len in lens {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        chunks.push(reader.take(len)?);
    }
    match reader.remaining() {
        0 => Ok(chunks),
        left => Err(DecodeError::TrailingBytes(left)),
    }
}

/// Decodes the symbols of pages; what went wrong with one is told when its rows are to be handed over.
pub(crate) fn decode_symbols(pages: &mut [&mut TightPart<'_>]) {
    let (mut streams, mut outcomes) = (Vec::new(), Vec::new());
    for page in pages {
        let mut symbols = &mut page.symbols[..];
        for chunk in &page.chunks {
            let (out, rest) = symbols.split_at_mut(chunk.coded);
            symbols = rest;
            match Stream::new(&page.table, chunk.stream, chunk.is_whole, out) {
                Ok(stream) => streams.push((outcomes.len(), stream)),
                Err(error) => page.outcome = Err(error),
            }
        }
        outcomes.push(&mut page.outcome);
    }
    streams::decode(&mut streams, |page, error| *outcomes[page] = Err(error));
}
