//! Summaries of aligned windows of time inside a block.
//!
//! A *span* is the rows of one series that lie in one window; spans follow the order of the rows and
//! together are all rows of the block. The index of a block says where its spans are; each numeric
//! field then has count, sum, minimum and maximum per span. A window that two blocks share has a
//! span in each. Windows start at multiples of their length since 1970-01-01 UTC.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use codec::Effort;
use model::{FieldType, SeriesId, Values};

use crate::input::{Input, Malformed, put_bytes, put_varint};
use crate::runs::Runs;

mod bounded;
mod plan;

use bounded::Bounded;
pub(crate) use plan::WindowPlan;

/// Flags of the summaries of a field: numbers of values follow; maxima and sums are told from their bounds.
const FLAG_COUNTS: u64 = 1;
const FLAG_BOUNDED: u64 = 2;

/// The spans of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowIndex {
    window_ns: i64,
    /// Number of each span's window, counted from 1970.
    windows: Vec<i64>,
    /// One past the last row of each span.
    ends: Vec<u32>,
    /// Series of each span, by index into `runs`.
    series: Vec<u32>,
    runs: Arc<Runs>,
}

/// The spans of a block with the summaries of the fields that were asked for so far: one object for
/// all of them, so that a question about many fields looks for it once.
#[derive(Debug)]
pub struct BlockWindows {
    index: WindowIndex,
    /// By place of the field's page in the block.
    fields: Box<[OnceLock<WindowSummaries>]>,
}

/// One field over the spans of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowSummaries {
    /// What is known of a span is side by side: who waits for one part of it from memory has the others.
    numbers: Box<[SpanNumbers]>,
    /// Values per span; `None`: every row of every span has one.
    counts: Option<Box<[u32]>>,
}

/// Numbers of the values of a field in a span: their bits, as [`Values::push_bits`] takes them. Unspecified where
/// there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SpanNumbers {
    /// Sum, wrapping for integers.
    pub sum: u64,
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
}

impl WindowIndex {
    /// Length of the windows, nanoseconds.
    #[must_use]
    pub fn window_ns(&self) -> i64 {
        self.window_ns
    }

    /// Number of spans.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none; never the case in a block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The series of a span.
    #[must_use]
    pub fn series(&self, span: usize) -> SeriesId {
        self.runs.series(self.series[span] as usize)
    }

    /// Where the window of a span starts, nanoseconds.
    #[must_use]
    pub fn start_ns(&self, span: usize) -> i64 {
        self.windows[span] * self.window_ns
    }

    /// The rows of a span.
    #[must_use]
    pub fn rows(&self, span: usize) -> Range<usize> {
        let from = span.checked_sub(1).map_or(0, |before| self.ends[before]);
        from as usize..self.ends[span] as usize
    }

    /// The span that a row lies in; the number of spans, if the block does not have it.
    #[must_use]
    pub fn span_at(&self, row: usize) -> usize {
        self.ends.partition_point(|end| *end as usize <= row)
    }

    /// The spans of a series.
    #[must_use]
    pub fn spans_of(&self, series: SeriesId) -> Range<usize> {
        let below = |s: &u32| self.runs.series(*s as usize) < series;
        let from = self.series.partition_point(below);
        let len = self.series[from..].partition_point(|s| self.runs.series(*s as usize) == series);
        from..from + len
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.windows.capacity() * 8
            + (self.ends.capacity() + self.series.capacity()) * 4
            + self.runs.memory_bytes()
            + size_of::<Self>()
    }

    /// Reads the index of a block of `rows` rows.
    pub(crate) fn decode(bytes: &[u8], rows: u32, runs: Arc<Runs>) -> Result<Self, Malformed> {
        let mut input = Input::new(bytes);
        let window_ns = input.bounded(i64::MAX as u64, "the length of a window")? as i64;
        let count = input.bounded(u64::from(rows), "the number of spans")?;
        let (mut windows, mut counts) = (Vec::new(), Vec::new());
        codec::decode_i64(input.bytes()?, count, &mut windows)?;
        codec::decode_u64(input.rest(), count, &mut counts)?;
        let (mut end, mut ends, mut series) = (0u64, Vec::new(), Vec::new());
        for (count, window) in counts.into_iter().zip(&windows) {
            // A window reaches as far as the next one starts: both ends must be times.
            let reach = window.checked_add(1).and_then(|w| w.checked_mul(window_ns));
            if reach.is_none() || window.checked_mul(window_ns).is_none() || window_ns == 0 {
                return Err(input.fail("a window outside of time"));
            }
            let run = runs.index_at(end as usize);
            let left = runs.rows(run).end as u64 - end;
            if count == 0 || count > left {
                return Err(input.fail("a span that is not inside of a series"));
            }
            end += count;
            if end == u64::from(rows) && ends.len() + 1 != windows.len() {
                return Err(input.fail("more spans than rows"));
            }
            ends.push(end as u32);
            series.push(run as u32);
        }
        if end != u64::from(rows) {
            return Err(input.fail("the spans are not all rows of the block"));
        }
        Ok(Self { window_ns, windows, ends, series, runs })
    }
}

impl BlockWindows {
    pub(crate) fn new(index: WindowIndex, pages: usize) -> Self {
        Self { index, fields: std::iter::repeat_with(OnceLock::new).take(pages).collect() }
    }

    /// Where the summaries of a field go; `None` if the block has fewer pages.
    pub(crate) fn cell(&self, place: usize) -> Option<&OnceLock<WindowSummaries>> {
        self.fields.get(place)
    }

    /// The spans.
    #[must_use]
    pub fn index(&self) -> &WindowIndex {
        &self.index
    }

    /// The summaries of a field, by the place that
    /// [`SegmentReader::load_windows`](crate::SegmentReader::load_windows) has given.
    ///
    /// # Panics
    /// If the place is not of this block.
    #[must_use]
    pub fn field(&self, place: usize) -> &WindowSummaries {
        self.fields[place].get().expect("BUG: a place that was not given out")
    }

    /// Without fields: what those take is added when they come.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.index.memory_bytes() + size_of_val(&*self.fields) + size_of::<Self>()
    }
}

impl WindowSummaries {
    /// Bytes beside itself, which is part of the block's windows.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.numbers)
            + self.counts.as_ref().map_or(0, |counts| size_of_val(&**counts))
    }

    /// The numbers of every span.
    #[must_use]
    pub fn numbers(&self) -> &[SpanNumbers] {
        &self.numbers
    }

    /// Number of values in a span, which has `rows` rows.
    #[must_use]
    pub fn count(&self, span: usize, rows: usize) -> u64 {
        count(self.counts.as_deref(), span, rows)
    }

    /// Asks for the numbers of a span and of seven behind it, four lines of the processor's cache, so that they are on
    /// their way from memory.
    pub fn prefetch(&self, span: usize) {
        [0, 2, 5, 7]
            .iter()
            .filter_map(|more| self.numbers.get(span + more))
            .for_each(codec::prefetch);
    }

    /// Writes the page of one field that has `counts` values in each span; `complete` says that
    /// every row has one.
    pub(crate) fn encode(
        counts: &[u64],
        complete: bool,
        mut parts: SpanParts,
        field_type: FieldType,
        effort: Effort,
        out: &mut Vec<u8>,
    ) {
        let put = |out: &mut Vec<u8>, encode: &dyn Fn(&mut Vec<u8>)| {
            let mut part = Vec::new();
            encode(&mut part);
            put_bytes(out, &part);
        };
        let mut head = Vec::new();
        if !complete {
            put(&mut head, &|to| codec::encode_u64(counts, effort, to));
        }
        let is_float = field_type == FieldType::Float;
        if !is_float {
            // Integers are written relative to the minimum: smaller numbers, and exact.
            for (span, min) in parts.mins.iter().enumerate() {
                parts.maxs[span] = parts.maxs[span].wrapping_sub(*min);
                parts.sums[span] = parts.sums[span].wrapping_sub(min.wrapping_mul(counts[span]));
            }
        }
        let rest_type = if is_float { field_type } else { FieldType::Unsigned };
        let numbers = Bounded { mins: parts.mins, reaches: parts.maxs, sums: parts.sums };
        let pages = |effort| {
            let mut pages = Vec::new();
            put(&mut pages, &|to| encode_bits(&numbers.mins, field_type, effort, to));
            put(&mut pages, &|to| encode_bits(&numbers.reaches, rest_type, effort, to));
            put(&mut pages, &|to| encode_bits(&numbers.sums, rest_type, effort, to));
            pages
        };
        let may_be_bounded = effort == Effort::Cold && !is_float;
        let bounded =
            may_be_bounded.then(|| bounded::encode(counts, &numbers, sign_of(field_type)));
        // Looking for the smallest pages takes longer than all else here, so it is done where it may pay.
        let bounded = bounded.flatten().filter(|bounded| bounded.len() < pages(Effort::Fast).len());
        let flags = if complete { 0 } else { FLAG_COUNTS };
        put_varint(out, flags | if bounded.is_some() { FLAG_BOUNDED } else { 0 });
        out.extend_from_slice(&head);
        out.extend_from_slice(&bounded.unwrap_or_else(|| pages(effort)));
    }

    /// Reads the page of one field of the block that `index` belongs to.
    pub(crate) fn decode(
        bytes: &[u8],
        index: &WindowIndex,
        field_type: FieldType,
    ) -> Result<Self, Malformed> {
        let mut input = Input::new(bytes);
        let spans = index.len();
        let flags = input.varint()?;
        if flags > FLAG_COUNTS | FLAG_BOUNDED {
            return Err(input.fail(format!("unknown flags {flags:#x}")));
        }
        let has_counts = flags & FLAG_COUNTS != 0;
        let counts = has_counts.then(|| decode_counts(&mut input, index)).transpose()?;
        let count_of = |span: usize| count(counts.as_deref(), span, index.rows(span).len());
        let is_integer = matches!(field_type, FieldType::Integer | FieldType::Unsigned);
        let Bounded { mins, reaches, sums } = if flags & FLAG_BOUNDED != 0 {
            if !is_integer {
                return Err(input.fail("bounded sums of a field that is not of integers"));
            }
            bounded::decode((0..spans).map(count_of), &mut input, sign_of(field_type))?
        } else {
            let rest_type = if is_integer { FieldType::Unsigned } else { field_type };
            let mins = decode_bits(input.bytes()?, spans, field_type)?;
            let reaches = decode_bits(input.bytes()?, spans, rest_type)?;
            let sums = decode_bits(input.bytes()?, spans, rest_type)?;
            input.end()?;
            Bounded { mins, reaches, sums }
        };
        let numbers = mins.into_iter().zip(reaches).zip(sums).enumerate();
        let numbers = numbers.map(|(span, ((min, max), sum))| match is_integer {
            // Written relative to the minimum.
            true => SpanNumbers {
                sum: sum.wrapping_add(min.wrapping_mul(count_of(span))),
                min,
                max: max.wrapping_add(min),
            },
            false => SpanNumbers { sum, min, max },
        });
        Ok(Self { numbers: numbers.collect(), counts })
    }
}

/// Number of values in a span of `rows` rows.
fn count(counts: Option<&[u32]>, span: usize, rows: usize) -> u64 {
    counts.map_or(rows as u64, |counts| u64::from(counts[span]))
}

/// What turns the bits of an integer into those of an unsigned number in the same order, and back.
fn sign_of(field_type: FieldType) -> u64 {
    if field_type == FieldType::Integer { 1 << 63 } else { 0 }
}

/// Bit patterns of a field's numbers, span by span.
#[derive(Debug, Default)]
pub(crate) struct SpanParts {
    pub(crate) sums: Vec<u64>,
    pub(crate) mins: Vec<u64>,
    pub(crate) maxs: Vec<u64>,
}

fn encode_bits(bits: &[u64], field_type: FieldType, effort: Effort, out: &mut Vec<u8>) {
    match field_type {
        FieldType::Float => {
            let values: Vec<f64> = bits.iter().map(|b| f64::from_bits(*b)).collect();
            codec::encode_f64(&values, effort, out);
        }
        FieldType::Integer => {
            let values: Vec<i64> = bits.iter().map(|b| *b as i64).collect();
            codec::encode_i64(&values, effort, out);
        }
        _ => codec::encode_u64(bits, effort, out),
    }
}

fn decode_bits(bytes: &[u8], count: usize, field_type: FieldType) -> Result<Vec<u64>, Malformed> {
    let mut values = Values::empty(field_type);
    match &mut values {
        Values::Float(v) => codec::decode_f64(bytes, count, v)?,
        Values::Integer(v) => codec::decode_i64(bytes, count, v)?,
        Values::Unsigned(v) => codec::decode_u64(bytes, count, v)?,
        _ => return Err(Malformed { at: 0, what: "window summaries of a field without".into() }),
    }
    Ok(match values {
        Values::Float(v) => v.into_iter().map(f64::to_bits).collect(),
        Values::Integer(v) => v.into_iter().map(i64::cast_unsigned).collect(),
        Values::Unsigned(v) => v,
        _ => panic!("BUG: told above"),
    })
}

fn decode_counts(input: &mut Input<'_>, index: &WindowIndex) -> Result<Box<[u32]>, Malformed> {
    let mut counts = Vec::new();
    codec::decode_u64(input.bytes()?, index.len(), &mut counts)?;
    let fits = |(span, count): (usize, &u64)| *count <= index.rows(span).len() as u64;
    if !counts.iter().enumerate().all(fits) {
        return Err(input.fail("a span with more values than rows"));
    }
    Ok(counts.into_iter().map(|c| c as u32).collect())
}
