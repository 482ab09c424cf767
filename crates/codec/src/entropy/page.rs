//! Reading parts of entropy-coded pages: first the symbols, of several pages at once, then what they
//! stand for.
//!
//! Invariants
//! - Chunk lengths are checked against the page before anything in them is read.
//! - A chunk that was decoded to its end must leave every state where the encoder began. Most damage
//!   shows there, not all: symbols of one frequency can take each other's place. Checksums are for that.
//! - A mark changes where decoding starts, not what it gives.

use std::ops::Range;

use super::{
    Body, CHUNK_ROWS, Layout, body_of,
    frequencies::Frequencies,
    marks::{MARK_SYMBOLS, Mark},
    rans::Table,
    streams::{self, Place, Stream},
    symbols::{join, join_small, sum_small},
};
use crate::{bit_stream::BitReader, error::Result, int::Sink, prefix::prefix_sum, wire::Reader};

/// What is known of a page from reading it before, and what is to be known from now on.
#[derive(Debug, Default)]
pub(crate) struct Learned<'a> {
    /// A mark at or before the first wanted row.
    pub(crate) from: Option<Mark>,
    /// Receives the marks that are passed.
    pub(crate) passed: Option<&'a mut Vec<Mark>>,
}

/// Some rows of an entropy-coded page, of which the chunks are known but not decoded.
#[derive(Debug)]
pub(crate) struct TightPart<'a> {
    range: Range<usize>,
    has_differences: bool,
    layout: Layout,
    center: u64,
    table: Box<Table>,
    chunks: Vec<Chunk<'a>>,
    /// The symbols of the wanted chunks, one after the other, and how reading them went.
    symbols: Vec<u8>,
    outcome: Result<()>,
    passed: Option<&'a mut Vec<Mark>>,
}

/// A chunk up to the last row that is wanted.
#[derive(Debug)]
struct Chunk<'a> {
    first_row: usize,
    start: Start,
    /// Coded numbers that there are from there on, and those that are wanted.
    left: usize,
    coded: usize,
    stream: &'a [u8],
    raw: &'a [u8],
    /// Where each `MARK_SYMBOLS` end, if marks are wanted.
    passed: Vec<Place>,
}

/// Where in a chunk decoding starts.
#[derive(Debug)]
enum Start {
    /// At its head; if differences are coded, with its first value.
    Head(Option<u64>),
    Mark(Mark),
}

impl Chunk<'_> {
    /// Whether all is wanted, from the start to the chunk's end.
    fn is_whole(&self) -> bool {
        self.coded == self.left
    }
}

impl<'a> TightPart<'a> {
    /// Rows of a page of numbers, if its integers are entropy-coded and its header is in order.
    pub(crate) fn find(
        page: &'a [u8],
        count: usize,
        range: Range<usize>,
        learned: Learned<'a>,
    ) -> Option<Self> {
        let (body, reader) = body_of(page)?;
        Self::open(body, reader, count, range, learned).ok()
    }

    /// Rows of a page, of which what follows the encoding id is given.
    pub(crate) fn open(
        Body { has_differences, layout }: Body,
        mut reader: Reader<'a>,
        count: usize,
        range: Range<usize>,
        learned: Learned<'a>,
    ) -> Result<Self> {
        let n_chunks = count.div_ceil(CHUNK_ROWS);
        let wanted = range.start / CHUNK_ROWS..range.end.div_ceil(CHUNK_ROWS);
        let restarts = has_differences.then(|| read_restarts(&mut reader, n_chunks, &wanted));
        let mut restarts = restarts.transpose()?.map(Vec::into_iter);
        let center = reader.ivarint()? as u64;
        let frequencies = match layout {
            Layout::Wide => Frequencies::read_exact(&mut reader)?,
            Layout::Tight => Frequencies::read(&mut reader, count)?,
        };
        let table = Table::new(&frequencies);
        let bytes = chunk_bytes(layout, reader, n_chunks)?;
        let mut chunks = Vec::with_capacity(wanted.len());
        for index in wanted {
            let first_row = index * CHUNK_ROWS;
            let chunk_end = (first_row + CHUNK_ROWS).min(count);
            let mut reader = Reader::new(bytes[index]);
            let stream = match layout {
                Layout::Tight if !table.has_raw_symbols() => reader.rest(),
                _ => reader.length_prefixed()?,
            };
            let restart = restarts.as_mut().and_then(Iterator::next);
            let first_coded = first_row + usize::from(has_differences);
            // A mark of a chunk before is no nearer than this one's head.
            let from =
                learned.from.filter(|mark| (first_coded + 1..=range.start).contains(&mark.next()));
            let from_row = from.map_or(first_coded, |mark| mark.next());
            chunks.push(Chunk {
                first_row,
                start: from.map_or(Start::Head(restart), Start::Mark),
                left: chunk_end.saturating_sub(from_row),
                // Of a chunk may be wanted what comes before its first coded number.
                coded: chunk_end.min(range.end).saturating_sub(from_row),
                stream,
                raw: reader.rest(),
                passed: Vec::new(),
            });
        }
        let symbols = vec![0; chunks.iter().map(|chunk| chunk.coded).sum()];
        let (outcome, passed) = (Ok(()), learned.passed);
        Ok(Self { range, has_differences, layout, center, table, chunks, symbols, outcome, passed })
    }

    /// Streams of symbols that reading it takes.
    pub(crate) fn n_streams(&self) -> usize {
        self.chunks.len()
    }

    /// Hands over the rows, of which the symbols were decoded.
    pub(crate) fn emit(mut self, sink: &mut Sink<'_>) -> Result<()> {
        std::mem::replace(&mut self.outcome, Ok(()))?;
        let mut marks = self.passed.take();
        let mut symbols = &self.symbols[..];
        for chunk in &self.chunks {
            let (of_chunk, rest) = symbols.split_at(chunk.coded);
            self.emit_chunk(chunk, of_chunk, marks.as_deref_mut(), sink)?;
            symbols = rest;
        }
        Ok(())
    }

    fn emit_chunk(
        &self,
        chunk: &Chunk<'_>,
        symbols: &[u8],
        mut marks: Option<&mut Vec<Mark>>,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let has_raw = self.table.has_raw_symbols();
        let (mut row, mut carry, raw_bit) = match &chunk.start {
            Start::Head(restart) => (chunk.first_row, *restart, 0),
            Start::Mark(mark) => {
                let before = self.has_differences.then_some(mark.value);
                (mark.next(), before, mark.raw_bit as usize)
            }
        };
        let mut raw = BitReader::new(chunk.raw, raw_bit);
        if let Start::Head(Some(restart)) = chunk.start {
            self.emit_rows(&mut [restart], row, sink);
            row += 1;
        }
        let mut block = [0u64; MARK_SYMBOLS];
        let (mut places, end) = (chunk.passed.iter(), row + symbols.len());
        for symbols in symbols.chunks(MARK_SYMBOLS) {
            let is_wanted = row + symbols.len() > self.range.start;
            if !is_wanted && !has_raw {
                // Of rows before the wanted ones only the sum counts.
                let centers = self.center.wrapping_mul(symbols.len() as u64);
                carry = carry.map(|c| c.wrapping_add(sum_small(symbols)).wrapping_add(centers));
            } else {
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
            }
            row += symbols.len();
            // From the end of a chunk nothing goes on.
            if let (Some(marks), Some(place)) = (&mut marks, places.next())
                && !(chunk.is_whole() && row == end)
            {
                marks.push(Mark {
                    next: row as u32,
                    word: place.word as u32,
                    raw_bit: raw.bit() as u32,
                    states: place.states,
                    value: carry.unwrap_or(0),
                });
            }
        }
        if chunk.is_whole() { raw.finish() } else { Ok(()) }
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

/// The bytes of each chunk, of which the lengths come first; tight pages leave that of the last one out.
fn chunk_bytes(layout: Layout, mut reader: Reader<'_>, n_chunks: usize) -> Result<Vec<&[u8]>> {
    let n_lens = match layout {
        Layout::Wide => n_chunks,
        Layout::Tight => n_chunks.saturating_sub(1),
    };
    let mut lens = Vec::with_capacity(n_lens);
    for _ in 0..n_lens {
        lens.push(reader.uvarint()?);
    }
    let mut chunks = Vec::with_capacity(n_chunks);
    for len in lens {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        chunks.push(reader.take(len)?);
    }
    if n_lens < n_chunks {
        chunks.push(reader.rest());
    }
    reader.finish()?;
    Ok(chunks)
}

/// Decodes the symbols of pages; what went wrong with one is told when its rows are to be handed over.
pub(crate) fn decode_symbols(pages: &mut [&mut TightPart<'_>]) {
    let (mut streams, mut outcomes) = (Vec::new(), Vec::new());
    for page in pages {
        let mut symbols = &mut page.symbols[..];
        for chunk in &mut page.chunks {
            let (out, rest) = symbols.split_at_mut(chunk.coded);
            symbols = rest;
            let from = match chunk.start {
                Start::Mark(Mark { states, word, .. }) => {
                    Some(Place { states, word: word as usize })
                }
                Start::Head(_) => None,
            };
            let (table, bytes, left) = (&page.table, chunk.stream, chunk.left);
            let mut stream = Stream::new(table, page.layout, bytes, from.as_ref(), left, out);
            if let Ok(stream) = &mut stream
                && page.passed.is_some()
            {
                stream.note(&mut chunk.passed);
            }
            match stream {
                Ok(stream) => streams.push((outcomes.len(), stream)),
                Err(error) => page.outcome = Err(error),
            }
        }
        outcomes.push(&mut page.outcome);
    }
    streams::decode(&mut streams, |page, error| *outcomes[page] = Err(error));
}
