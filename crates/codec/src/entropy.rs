//! Entropy-coded integers: the smallest pages, for data that is read rarely and stored long.
//!
//! Every value (or difference from the previous one) becomes `zigzag(value - center)`, and that a
//! *symbol* with, when it is large, a few raw bits. Symbols are coded with rANS: eight interleaved
//! states of 32 bits, renormalised by 16 bits, twelve bits of probability.
//!
//! Two layouts differ in what is said about the symbols: the tight one is written, the wide one was.
//!
//! A page is cut into chunks of `CHUNK_ROWS` rows that decode independently of each other; they
//! share one table of symbol frequencies.
//!
//! Here: writing pages, and telling which are such. Reading them is in `page`, from `marks` if there are any.

mod frequencies;
mod marks;
mod page;
mod rans;
mod streams;
mod symbols;

#[cfg(test)]
mod tests;

use crate::{
    bit_stream::BitWriter,
    bitpack::BLOCK,
    encoding::id,
    float::decimal_integers,
    int::delta::{differences, write_restarts},
    patched::median,
    simd::multiversion,
    wire::{Reader, put_ivarint, put_uvarint, zigzag},
};
use frequencies::Frequencies;
pub use marks::{MARK_REACH, Mark, Marks};
pub(crate) use page::{Learned, TightPart, decode_symbols};
pub use streams::STREAMS_TOGETHER;
use symbols::{N_SYMBOLS_MAX, count, raw_width, split_all};

/// Rows that decode together; a range read costs at most this many more.
pub(crate) const CHUNK_ROWS: usize = 16_384;

/// Shorter pages do not earn the table of frequencies.
const ROWS_MIN: usize = 512;
/// Runs of a page that take longer to read than most ask for rows of it: below, under a microsecond.
const MANY_RUNS: u64 = 64;

/// Rows of which the form of the page is judged.
const SAMPLE: usize = 1024;

/// By how much a sample may be larger than what is allowed of all: it is not quite like the rest.
const REFUSED_FROM: f64 = 1.05;

/// Whether the integers of a page of numbers are entropy-coded.
#[must_use]
pub fn is_entropy_coded(page: &[u8]) -> bool {
    body_of(page).is_some()
}

/// Whether reading a few rows of a page of numbers costs as much as reading thousands, because its integers are
/// entropy-coded, or those of many runs. Whoever reads such rows again may keep the page in another encoding.
#[must_use]
pub fn is_slow_in_parts(page: &[u8]) -> bool {
    match integers_of(page) {
        Some((id::INT_RUNS, mut runs)) => runs.uvarint().is_ok_and(|n_runs| n_runs >= MANY_RUNS),
        Some((id, _)) => Body::of_id(id).is_some(),
        None => false,
    }
}

/// What the encoding id of entropy-coded integers says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    /// Differences are coded, not values.
    has_differences: bool,
    layout: Layout,
}

/// How frequencies, lengths and states are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// As first: frequencies of twelve bits, states of four bytes that begin with nothing in them.
    Wide,
    /// Frequencies are rounded, states cut to their bits, and hold the last symbols of a chunk.
    Tight,
}

impl Body {
    /// `None`: other integers.
    pub(crate) fn of_id(id: u8) -> Option<Self> {
        let (has_differences, layout) = match id {
            id::INT_FOR_ENTROPY => (false, Layout::Wide),
            id::INT_DELTA_ENTROPY => (true, Layout::Wide),
            id::INT_FOR_TIGHT => (false, Layout::Tight),
            id::INT_DELTA_TIGHT => (true, Layout::Tight),
            _ => return None,
        };
        Some(Self { has_differences, layout })
    }
}

/// The entropy-coded integers of a page of numbers, if that is how it is coded, and what follows the encoding id.
fn body_of(page: &[u8]) -> Option<(Body, Reader<'_>)> {
    let (id, reader) = integers_of(page)?;
    Some((Body::of_id(id)?, reader))
}

/// The encoding id of a page's integers, whatever they stand for, and what follows it.
fn integers_of(page: &[u8]) -> Option<(u8, Reader<'_>)> {
    let mut reader = Reader::new(page);
    // As deep as pages can be nested: decimal floats of scaled integers.
    for _ in 0..3 {
        match reader.u8().ok()? {
            id::INT_SCALED => reader.ivarint().and_then(|_| reader.uvarint()).map(drop).ok()?,
            id::FLOAT_BITS => {}
            id::FLOAT_DECIMAL => decimal_integers(&mut reader).ok()?,
            id => return Some((id, reader)),
        }
    }
    None
}

/// Appends a page, unless it would not stay below `bytes_max`.
pub(crate) fn encode(words: &[u64], bytes_max: usize, out: &mut Vec<u8>) -> bool {
    if words.len() < ROWS_MIN {
        return false;
    }
    let start = out.len();
    let (form, bits_a_value) = Form::choose(words);
    // Most pages that do not get small are found out before all of them is looked at.
    if bits_a_value * words.len() as f64 / 8.0 > bytes_max as f64 * REFUSED_FROM {
        return false;
    }
    let symbols = Symbols::gather(words, form);
    let frequencies = Frequencies::normalize(&symbols.histogram).rounded(words.len());
    if symbols.bits(&frequencies) / 8 >= bytes_max as u64 {
        return false;
    }
    match form {
        Form::Plain { .. } => out.push(id::INT_FOR_TIGHT),
        Form::Delta { .. } => {
            out.push(id::INT_DELTA_TIGHT);
            write_restarts(words, CHUNK_ROWS, out);
        }
    }
    put_ivarint(out, form.center() as i64);
    frequencies.write(words.len(), out);
    let mut chunks = Vec::with_capacity(bytes_max);
    let n_chunks = symbols.raw.len();
    let mut each = &symbols.each[..];
    for ((rows, raw), index) in words.chunks(CHUNK_ROWS).zip(symbols.raw).zip(1..) {
        let (of_chunk, others) = each.split_at(form.coded_len(rows.len()));
        each = others;
        let before = chunks.len();
        encode_chunk(of_chunk, raw, &frequencies, &mut chunks);
        // The last one goes to the end of the page.
        if index < n_chunks {
            put_uvarint(out, (chunks.len() - before) as u64);
        }
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

    /// Compares both on stretches from all over the page; also gives the bits that a value takes there.
    fn choose(words: &[u64]) -> (Self, f64) {
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
        let n = values.len() as f64;
        let (of_deltas, of_values) = (sample_bits(deltas, delta), sample_bits(values, plain));
        if of_deltas <= of_values {
            (Self::Delta { center: delta }, of_deltas as f64 / n)
        } else {
            (Self::Plain { center: plain }, of_values as f64 / n)
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
        zigzag_around(self.center(), block);
    }
}

multiversion! {
    /// `zigzag(x - center)` in place of each number.
    fn zigzag_around / zigzag_around_at(center: u64, numbers: &mut [u64]) {
        for number in numbers {
            *number = zigzag(number.wrapping_sub(center) as i64);
        }
    }
}

/// The cost of a sample in bits, by its own histogram.
fn sample_bits(mut sample: Vec<u64>, center: u64) -> u64 {
    zigzag_around(center, &mut sample);
    let (mut symbols, n) = (vec![0; sample.len()], sample.len() as f64);
    split_all(&sample, &mut symbols, &mut BitWriter::default());
    let histogram = count(&symbols);
    let entropy: f64 = histogram
        .iter()
        .filter(|&&count| count > 0)
        .map(|&count| f64::from(count) * (n / f64::from(count)).log2())
        .sum();
    raw_bits(&histogram) + entropy as u64
}

/// The symbols of a page's chunks, one after the other.
struct Symbols {
    each: Vec<u8>,
    /// The raw bits of each chunk.
    raw: Vec<BitWriter>,
    histogram: [u32; N_SYMBOLS_MAX],
}

impl Symbols {
    fn gather(words: &[u64], form: Form) -> Self {
        let n = words.chunks(CHUNK_ROWS).map(|rows| form.coded_len(rows.len())).sum();
        let mut each = vec![0; n];
        let mut left = &mut each[..];
        let mut block = [0u64; BLOCK];
        let raw = words.chunks(CHUNK_ROWS).map(|rows| {
            let n = form.coded_len(rows.len());
            let mut raw = BitWriter::default();
            for first in (0..n).step_by(BLOCK) {
                let block = &mut block[..BLOCK.min(n - first)];
                form.fill(rows, first, block);
                let (symbols, others) = std::mem::take(&mut left).split_at_mut(block.len());
                left = others;
                split_all(block, symbols, &mut raw);
            }
            raw
        });
        let raw = raw.collect();
        let histogram = count(&each);
        Self { each, raw, histogram }
    }

    /// What they take.
    fn bits(&self, frequencies: &Frequencies) -> u64 {
        frequencies.cost_bits(&self.histogram) + raw_bits(&self.histogram)
    }
}

/// Bits that follow symbols.
fn raw_bits(histogram: &[u32; N_SYMBOLS_MAX]) -> u64 {
    let widths = (0..=u8::MAX).map(|symbol| u64::from(raw_width(symbol)));
    histogram.iter().zip(widths).map(|(count, width)| u64::from(*count) * width).sum()
}

/// Layout of a chunk: the symbol stream, or, if symbols can have raw bits, the stream's length in bytes (uvarint),
/// the stream, the raw bits.
fn encode_chunk(symbols: &[u8], raw: BitWriter, frequencies: &Frequencies, out: &mut Vec<u8>) {
    if frequencies.have_raw_symbols() {
        let mut stream = Vec::with_capacity(symbols.len());
        rans::encode(symbols, frequencies, &mut stream);
        put_uvarint(out, stream.len() as u64);
        out.extend_from_slice(&stream);
        out.extend_from_slice(&raw.finish());
    } else {
        rans::encode(symbols, frequencies, out);
    }
}
