//! Entropy-coded integers: the smallest pages, for data that is read rarely and stored long.
//!
//! Every value (or difference from the previous one) becomes `zigzag(value - center)`, and that a
//! *symbol* with, when it is large, a few raw bits. Symbols are coded with rANS: eight interleaved
//! states of 32 bits, renormalised by 16 bits, twelve bits of probability.
//!
//! A page is cut into chunks of `CHUNK_ROWS` rows that decode independently of each other; they
//! share one table of symbol frequencies.
//!
//! Invariants
//! - Chunk lengths are checked against the page before anything in them is read.
//! - A chunk that was decoded to its end must leave every state where the encoder began: damage
//!   shows there.

mod rans;
mod symbols;

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::{
    bitpack::BLOCK,
    encoding::id,
    error::{DecodeError, Result},
    float::decimal_integers,
    int::{
        Sink,
        delta::{differences, write_restarts},
    },
    patched::median,
    prefix::prefix_sum,
    wire::{Reader, put_ivarint, put_uvarint, zigzag},
};
use rans::{Frequencies, SymbolDecoder};
use symbols::{BitReader, BitWriter, N_SYMBOLS_MAX, Split, join, split};

/// Rows that decode together; a range read costs at most this many more.
pub(crate) const CHUNK_ROWS: usize = 16_384;

/// Shorter pages do not earn the table of frequencies.
const ROWS_MIN: usize = 512;

/// Rows of which the form of the page is judged.
const SAMPLE: usize = 2048;

/// Whether reading a few rows of a page of numbers costs as much as reading thousands, because its
/// integers are entropy-coded. Whoever reads such rows again may keep the page in another encoding.
#[must_use]
pub fn is_entropy_coded(page: &[u8]) -> bool {
    let mut reader = Reader::new(page);
    // As deep as pages can be nested: decimal floats of scaled integers.
    for _ in 0..3 {
        let nested = match reader.u8() {
            Ok(id::INT_FOR_ENTROPY | id::INT_DELTA_ENTROPY) => return true,
            Ok(id::INT_SCALED) => reader.ivarint().and_then(|_| reader.uvarint()).map(drop),
            Ok(id::FLOAT_BITS) => Ok(()),
            Ok(id::FLOAT_DECIMAL) => decimal_integers(&mut reader),
            _ => return false,
        };
        if nested.is_err() {
            return false;
        }
    }
    false
}

/// Appends a page, unless it would not stay below `bytes_max`.
pub(crate) fn encode(words: &[u64], bytes_max: usize, out: &mut Vec<u8>) -> bool {
    if words.len() < ROWS_MIN {
        return false;
    }
    let start = out.len();
    let form = Form::choose(words);
    let symbols = Symbols::gather(words, form);
    let frequencies = Frequencies::normalize(&symbols.histogram);
    if symbols.bits(&frequencies) / 8 >= bytes_max as u64 {
        return false;
    }
    match form {
        Form::Plain { .. } => out.push(id::INT_FOR_ENTROPY),
        Form::Delta { .. } => {
            out.push(id::INT_DELTA_ENTROPY);
            write_restarts(words, CHUNK_ROWS, out);
        }
    }
    put_ivarint(out, form.center() as i64);
    frequencies.write(out);
    let mut chunks = Vec::with_capacity(bytes_max);
    for rows in words.chunks(CHUNK_ROWS) {
        let before = chunks.len();
        encode_chunk(rows, form, &frequencies, &mut chunks);
        put_uvarint(out, (chunks.len() - before) as u64);
    }
    out.extend_from_slice(&chunks);
    if out.len() - start >= bytes_max {
        out.truncate(start);
        return false;
    }
    true
}

/// Whether values or their differences are coded, and around what.
#[derive(Clone, Copy, Debug)]
enum Form {
    Plain { center: u64 },
    Delta { center: u64 },
}

impl Form {
    fn center(self) -> u64 {
        match self {
            Self::Plain { center } | Self::Delta { center } => center,
        }
    }

    /// Compares both on stretches from all over the page.
    fn choose(words: &[u64]) -> Self {
        let stretch = 256.min(words.len() - 1);
        let n_stretches = (SAMPLE / stretch).max(1);
        let mut values = Vec::with_capacity(SAMPLE);
        let mut deltas = Vec::with_capacity(SAMPLE);
        for i in 0..n_stretches {
            let from = (words.len() - 1 - stretch) * i / (n_stretches - 1).max(1);
            values.extend_from_slice(&words[from..from + stretch]);
            let before = deltas.len();
            deltas.resize(before + stretch, 0);
            differences(&words[from..=from + stretch], &mut deltas[before..]);
        }
        let (plain, delta) = (median(&values), median(&deltas));
        if sample_bits(&deltas, delta) <= sample_bits(&values, plain) {
            Self::Delta { center: delta }
        } else {
            Self::Plain { center: plain }
        }
    }

    /// The rows of a chunk in the form to be coded, without the row known from the restart.
    fn coded_len(self, rows: usize) -> usize {
        match self {
            Self::Plain { .. } => rows,
            Self::Delta { .. } => rows - 1,
        }
    }

    /// `zigzag(x - center)` of coded rows `first ..`.
    fn fill(self, rows: &[u64], first: usize, block: &mut [u64]) {
        match self {
            Self::Plain { .. } => block.copy_from_slice(&rows[first..first + block.len()]),
            Self::Delta { .. } => differences(&rows[first..first + block.len() + 1], block),
        }
        let center = self.center();
        for value in block {
            *value = zigzag(value.wrapping_sub(center) as i64);
        }
    }
}

/// The cost of a sample in bits, by its own histogram.
fn sample_bits(sample: &[u64], center: u64) -> u64 {
    let mut histogram = [0u32; N_SYMBOLS_MAX];
    let mut raw_bits = 0;
    for value in sample {
        let Split { symbol, raw_width, .. } = split(zigzag(value.wrapping_sub(center) as i64));
        histogram[symbol as usize] += 1;
        raw_bits += u64::from(raw_width);
    }
    let n = sample.len() as f64;
    let entropy: f64 = histogram
        .iter()
        .filter(|&&count| count > 0)
        .map(|&count| f64::from(count) * (n / f64::from(count)).log2())
        .sum();
    raw_bits + entropy as u64
}

/// How often each symbol occurs in a page.
struct Symbols {
    histogram: [u32; N_SYMBOLS_MAX],
    raw_bits: u64,
    n_chunks: usize,
}

impl Symbols {
    fn gather(words: &[u64], form: Form) -> Self {
        // Two histograms, so that equal neighbours do not wait for each other's increment.
        let mut histograms = [[0u32; N_SYMBOLS_MAX]; 2];
        let mut raw_bits = 0;
        let mut block = [0u64; BLOCK];
        for rows in words.chunks(CHUNK_ROWS) {
            let n = form.coded_len(rows.len());
            for first in (0..n).step_by(BLOCK) {
                let block = &mut block[..BLOCK.min(n - first)];
                form.fill(rows, first, block);
                for (i, value) in block.iter().enumerate() {
                    let Split { symbol, raw_width, .. } = split(*value);
                    histograms[i % 2][symbol as usize] += 1;
                    raw_bits += u64::from(raw_width);
                }
            }
        }
        let [mut histogram, other] = histograms;
        for (sum, count) in histogram.iter_mut().zip(other) {
            *sum += count;
        }
        Self { histogram, raw_bits, n_chunks: words.len().div_ceil(CHUNK_ROWS) }
    }

    fn bits(&self, frequencies: &Frequencies) -> u64 {
        frequencies.cost_bits(&self.histogram)
            + self.raw_bits
            + 8 * (rans::STATE_BYTES + 4) as u64 * self.n_chunks as u64
    }
}

/// Layout of a chunk: length of the symbol stream in bytes (uvarint), the stream, the raw bits.
fn encode_chunk(rows: &[u64], form: Form, frequencies: &Frequencies, out: &mut Vec<u8>) {
    let n = form.coded_len(rows.len());
    let mut symbols = Vec::with_capacity(n);
    let mut raw = BitWriter::default();
    let mut block = [0u64; BLOCK];
    for first in (0..n).step_by(BLOCK) {
        let block = &mut block[..BLOCK.min(n - first)];
        form.fill(rows, first, block);
        for value in block.iter() {
            let Split { symbol, raw_width, raw_value } = split(*value);
            symbols.push(symbol);
            raw.put(raw_value, raw_width);
        }
    }
    let stream = rans::encode(&symbols, frequencies);
    put_uvarint(out, stream.len() as u64);
    out.extend_from_slice(&stream);
    out.extend_from_slice(&raw.finish());
}

/// The fields between the restarts and the chunks.
struct Header<'a> {
    center: u64,
    decoder: rans::Table,
    /// Which of `chunks` belong to chunk `i`.
    bounds: Vec<Range<usize>>,
    chunks: &'a [u8],
}

impl<'a> Header<'a> {
    fn read(mut reader: Reader<'a>, count: usize) -> Result<Self> {
        let center = reader.ivarint()? as u64;
        let decoder = Frequencies::read(&mut reader)?.into_table();
        let mut bounds = Vec::with_capacity(count.div_ceil(CHUNK_ROWS));
        let mut end = 0u64;
        for _ in 0..count.div_ceil(CHUNK_ROWS) {
            let start = end;
            end = end.saturating_add(reader.uvarint()?);
            bounds.push(start..end);
        }
        let chunks = reader.rest();
        if end > chunks.len() as u64 {
            return Err(DecodeError::Truncated { needed: end - chunks.len() as u64 });
        }
        if end < chunks.len() as u64 {
            return Err(DecodeError::TrailingBytes(chunks.len() - end as usize));
        }
        let bounds = bounds.into_iter().map(|b| b.start as usize..b.end as usize).collect();
        Ok(Self { center, decoder, bounds, chunks })
    }

    fn chunk(&self, index: usize) -> Result<ChunkReader<'_>> {
        let mut reader = Reader::new(&self.chunks[self.bounds[index].clone()]);
        let stream = reader.length_prefixed()?;
        Ok(ChunkReader {
            symbols: SymbolDecoder::new(&self.decoder, stream)?,
            raw: BitReader::new(reader.rest()),
            has_raw: self.decoder.has_raw_symbols(),
        })
    }
}

/// Reads the coded values of one chunk in order.
struct ChunkReader<'a> {
    symbols: SymbolDecoder<'a>,
    raw: BitReader<'a>,
    has_raw: bool,
}

impl ChunkReader<'_> {
    /// Gives `x - center` for the next `out.len()` values; all calls but the last take a multiple of
    /// eight.
    fn read(&mut self, out: &mut [u64]) -> Result<()> {
        let mut symbols = [0u8; BLOCK];
        let symbols = &mut symbols[..out.len()];
        self.symbols.read(symbols)?;
        if self.has_raw {
            join(symbols, &mut self.raw, out)
        } else {
            symbols::join_small(symbols, out);
            Ok(())
        }
    }

    fn finish(self) -> Result<()> {
        self.symbols.finish()?;
        self.raw.finish()
    }
}

/// Decodes a page of entropy-coded values.
pub(crate) fn decode_for(
    reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let header = Header::read(reader, count)?;
    let mut block = [0u64; BLOCK];
    for chunk_index in range.start / CHUNK_ROWS..range.end.div_ceil(CHUNK_ROWS) {
        let mut chunk = header.chunk(chunk_index)?;
        let mut row = chunk_index * CHUNK_ROWS;
        let chunk_end = (row + CHUNK_ROWS).min(count);
        while row < chunk_end.min(range.end) {
            let rows = BLOCK.min(chunk_end - row);
            let block = &mut block[..rows];
            chunk.read(block)?;
            for value in block.iter_mut() {
                *value = value.wrapping_add(header.center);
            }
            emit(block, row, &range, sink);
            row += rows;
        }
        if row == chunk_end {
            chunk.finish()?;
        }
    }
    Ok(())
}

/// Decodes a page of entropy-coded differences.
pub(crate) fn decode_delta(
    mut reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let mut restarts = Vec::with_capacity(count.div_ceil(CHUNK_ROWS));
    let mut restart = 0u64;
    for _ in 0..count.div_ceil(CHUNK_ROWS) {
        restart = restart.wrapping_add(reader.ivarint()? as u64);
        restarts.push(restart);
    }
    let header = Header::read(reader, count)?;
    let mut block = [0u64; BLOCK];
    let wanted = range.start / CHUNK_ROWS..range.end.div_ceil(CHUNK_ROWS);
    for (chunk_index, restart) in wanted.clone().zip(&restarts[wanted]) {
        let mut chunk = header.chunk(chunk_index)?;
        let mut row = chunk_index * CHUNK_ROWS;
        let chunk_end = (row + CHUNK_ROWS).min(count);
        let mut carry = *restart;
        emit(&mut [carry], row, &range, sink);
        row += 1;
        while row < chunk_end.min(range.end) {
            let rows = BLOCK.min(chunk_end - row);
            let block = &mut block[..rows];
            chunk.read(block)?;
            carry = prefix_sum(block, carry, header.center);
            emit(block, row, &range, sink);
            row += rows;
        }
        if row == chunk_end {
            chunk.finish()?;
        }
    }
    Ok(())
}

/// Hands over those rows of a block starting at `row` that are in `range`.
fn emit(block: &mut [u64], row: usize, range: &Range<usize>, sink: &mut Sink<'_>) {
    let from = range.start.saturating_sub(row).min(block.len());
    let to = range.end.saturating_sub(row).min(block.len());
    if from < to {
        sink(&mut block[from..to]);
    }
}
