//! Summaries in place of rows: which spans of a block lie wholly in one window of the request.

use std::ops::Range;
use std::sync::Arc;

use model::{FieldSummaries, FieldType, SummaryBatch, SummarySpan, TimeRange, Values};
use segment::{
    Block, BlockWindows, SegmentReader, SpanNumbers, SummaryNumbers, WindowIndex, WindowSummaries,
};
use store::{StoreError, SummaryParts, Windows};

use crate::error::segment_error;

/// Rows of one series that were cut: some are summed up, the others are to be read.
#[derive(Debug)]
pub(crate) struct Cut {
    pub(crate) summaries: Option<SpanSummaries>,
    pub(crate) rows: Vec<Range<usize>>,
}

/// Summaries of spans of one series, where they are kept: they are copied once, into the batch.
#[derive(Debug)]
pub(crate) struct SpanSummaries {
    spans: Vec<Span>,
    of: Summed,
}

/// Some rows that were summed up.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    /// Its number in the block.
    at: usize,
    pub(crate) rows: Range<usize>,
    /// The rows lie between these times.
    time: TimeRange,
}

#[derive(Debug)]
enum Summed {
    /// Spans of a block: by requested field its place there, if the block has it.
    Windows(Arc<BlockWindows>, Vec<Option<usize>>),
    /// A whole block: by requested field what its directory says.
    Block(Vec<Option<(u64, Option<SummaryNumbers>)>>),
    /// Spans that were added up: by requested field what each has, if there is any.
    Added(Vec<Option<Added>>),
}

/// What a field has in some spans.
#[derive(Debug)]
pub(crate) struct Added {
    pub(crate) counts: Vec<u64>,
    /// As far as they were asked for; empty if they were not, or of texts.
    pub(crate) numbers: Vec<SpanNumbers>,
}

/// Whether two times lie in one window of the request. Asked of every span: with one division.
#[inline]
pub(super) fn in_one_window(windows: &Windows, a: i64, b: i64) -> bool {
    let (first, last) = (a.min(b), a.max(b));
    left_of_window(windows, first).is_none_or(|left| last.abs_diff(first) < left)
}

/// From a time to the end of its window, nanoseconds; `None`: there is one window.
#[inline]
fn left_of_window(windows: &Windows, time: i64) -> Option<u64> {
    let every = windows.every_ns?;
    let mut offset = windows.offset_ns;
    if !(0..every).contains(&offset) {
        offset = offset.rem_euclid(every);
    }
    let mut into_window = time.rem_euclid(every) - offset;
    if into_window < 0 {
        into_window += every;
    }
    Some((every - into_window).cast_unsigned())
}

/// Cuts rows of one series, or all of a block, which lie within `time`. `None` if nothing can be
/// summed up.
pub(crate) fn summarise(
    reader: &SegmentReader,
    block: &Block,
    (rows, time): (&Range<usize>, TimeRange),
    fields: &[(Option<usize>, FieldType)],
    windows: &Windows,
) -> Result<Option<Cut>, StoreError> {
    let SummaryParts { sum, min_max, first_last } = windows.parts;
    let needs_numbers = sum || min_max;
    if first_last || (needs_numbers && fields.iter().any(|(_, t)| !t.is_numeric())) {
        return Ok(None);
    }
    if *rows == (0..block.rows()) && in_one_window(windows, block.time().min, block.time().max) {
        return Ok(whole_block(block, fields, needs_numbers));
    }
    if !block.has_windows() {
        return Ok(None);
    }
    let Some(kept) = reader.windows(block).map_err(segment_error)? else { return Ok(None) };
    if windows.every_ns.is_some_and(|every| every < kept.index().window_ns()) {
        return Ok(None);
    }
    let there = fields.iter().filter_map(|(field, _)| present(block, *field));
    let Some(places) = reader.load_windows(block, there, &kept).map_err(segment_error)? else {
        return Ok(None);
    };
    let mut places = places.into_iter();
    let mut place_of = |field| present(block, field).and_then(|_| places.next());
    let places = fields.iter().map(|(field, _)| place_of(*field)).collect();
    cut(reader, block, (rows, time), (kept, places), windows)
}

/// Spans that lie in one window of the request each, and the other rows.
type CutRows = (Vec<Span>, Vec<Range<usize>>);

/// The spans among `rows` that lie in one window of the request each, and the other rows; `None` if the block has no
/// spans, or longer ones.
pub(crate) fn spans_of_request(
    reader: &SegmentReader,
    block: &Block,
    rows: (&Range<usize>, TimeRange),
    windows: &Windows,
) -> Result<Option<CutRows>, StoreError> {
    if in_one_window(windows, rows.1.min, rows.1.max) {
        let all = Span { at: 0, rows: rows.0.clone(), time: rows.1 };
        return Ok(Some((vec![all], Vec::new())));
    }
    let kept = reader.windows(block).map_err(segment_error)?;
    let is_fine = |kept: &Arc<BlockWindows>| {
        windows.every_ns.is_some_and(|every| every >= kept.index().window_ns())
    };
    let Some(kept) = kept.filter(is_fine) else { return Ok(None) };
    spans_of_windows(reader, block, rows, kept.index(), windows).map(Some)
}

/// The spans that some of `rows` make which were `found`, ascending: those of a window of the request are one. The rows are of one series.
pub(crate) fn spans_of_found(
    reader: &SegmentReader,
    block: &Block,
    rows: &Range<usize>,
    found: impl Iterator<Item = usize>,
    windows: &Windows,
) -> Result<Vec<Span>, StoreError> {
    let mut found = found.peekable();
    if found.peek().is_none() {
        return Ok(Vec::new());
    }
    let mut times = Vec::with_capacity(rows.len());
    reader.times(block, rows.clone(), &mut times).map_err(segment_error)?;
    let time_of = |row: usize| times[row - rows.start];
    let mut spans = Vec::new();
    while let Some(first) = found.next() {
        let (start, mut last) = (time_of(first), first);
        let left = left_of_window(windows, start);
        let is_within = |row: &usize| left.is_none_or(|left| time_of(*row).abs_diff(start) < left);
        while let Some(next) = found.next_if(is_within) {
            last = next;
        }
        spans.push(Span {
            at: 0,
            rows: first..last + 1,
            time: TimeRange::new(start, time_of(last)),
        });
    }
    Ok(spans)
}

/// Cuts rows into spans of `kept` windows.
fn cut(
    reader: &SegmentReader,
    block: &Block,
    rows: (&Range<usize>, TimeRange),
    (kept, places): (Arc<BlockWindows>, Vec<Option<usize>>),
    windows: &Windows,
) -> Result<Option<Cut>, StoreError> {
    let (mut spans, left) = spans_of_windows(reader, block, rows, kept.index(), windows)?;
    if spans.is_empty() {
        return Ok(None);
    }
    // Rows that have none of the fields are not handed out, in no form.
    let counts = |span: &Span| {
        let mut fields = places.iter().flatten();
        fields.any(|place| kept.field(*place).count(span.at, span.rows.len()) > 0)
    };
    spans.retain(counts);
    let of = Summed::Windows(Arc::clone(&kept), places);
    let summaries = (!spans.is_empty()).then_some(SpanSummaries { spans, of });
    Ok(Some(Cut { summaries, rows: left }))
}

/// The spans among `rows` that lie in one window of the request each, and the other rows.
fn spans_of_windows(
    reader: &SegmentReader,
    block: &Block,
    (rows, time): (&Range<usize>, TimeRange),
    index: &WindowIndex,
    windows: &Windows,
) -> Result<CutRows, StoreError> {
    let (mut spans, mut left, mut done) = (Vec::new(), Vec::new(), rows.start);
    let mut times = Vec::new();
    for at in index.span_at(rows.start)..index.len() {
        let of_span = index.rows(at);
        if of_span.end > rows.end {
            break;
        }
        if of_span.start < rows.start {
            continue;
        }
        let start = index.start_ns(at);
        let mut bounds = TimeRange::new(start, start + (index.window_ns() - 1)).intersect(&time);
        if bounds.is_empty() || !in_one_window(windows, bounds.min, bounds.max) {
            // Windows of the request begin elsewhere: the rows may lie in one all the same.
            if times.is_empty() {
                reader.times(block, rows.clone(), &mut times).map_err(segment_error)?;
            }
            let time_of = |row: usize| times[row - rows.start];
            bounds = TimeRange::new(time_of(of_span.start), time_of(of_span.end - 1));
            if !in_one_window(windows, bounds.min, bounds.max) {
                continue;
            }
        }
        if done < of_span.start {
            left.push(done..of_span.start);
        }
        done = of_span.end;
        spans.push(Span { at, rows: of_span, time: bounds });
    }
    if done < rows.end {
        left.push(done..rows.end);
    }
    Ok((spans, left))
}

/// The field's number if the block has values of it.
fn present(block: &Block, field: Option<usize>) -> Option<usize> {
    field.filter(|field| block.has_values(*field))
}

/// The summary of a block, as its directory has it. `None`: it has not the numbers.
fn whole_block(
    block: &Block,
    fields: &[(Option<usize>, FieldType)],
    needs_numbers: bool,
) -> Option<Cut> {
    let mut found = Vec::with_capacity(fields.len());
    for (field, _) in fields {
        let Some(field) = present(block, *field) else {
            found.push(None);
            continue;
        };
        let page = block.summary(field)?;
        if needs_numbers && page.numbers.is_none() {
            return None;
        }
        found.push(Some((u64::from(page.count), page.numbers)));
    }
    let has_values = found.iter().any(Option::is_some);
    let span = Span { at: 0, rows: 0..block.rows(), time: block.time() };
    let summaries = SpanSummaries { spans: vec![span], of: Summed::Block(found) };
    Some(Cut { summaries: has_values.then_some(summaries), rows: Vec::new() })
}

impl SpanSummaries {
    /// What was added up of some spans, by requested field.
    pub(crate) fn added(spans: Vec<Span>, fields: Vec<Option<Added>>) -> Self {
        Self { spans, of: Summed::Added(fields) }
    }

    /// Adds them to a batch of the requested fields, as those of series `ordinal`; the `parts` alone.
    pub(crate) fn add_to(&self, batch: &mut SummaryBatch, ordinal: u32, parts: SummaryParts) {
        let span = |span: &Span| SummarySpan {
            series: ordinal,
            min_time: span.time.min,
            max_time: span.time.max,
        };
        batch.spans.extend(self.spans.iter().map(span));
        match &self.of {
            Summed::Windows(kept, places) => {
                if let (Some(first), true) = (self.spans.first(), parts.sum || parts.min_max) {
                    let fields = places.iter().flatten().map(|place| kept.field(*place));
                    fields.for_each(|field| field.prefetch(first.at));
                }
                for (place, out) in places.iter().zip(&mut batch.fields) {
                    match place {
                        Some(place) => self.add_windows(kept.field(*place), out, parts),
                        None => add_nothing(self.spans.len(), out, parts),
                    }
                }
            }
            Summed::Block(fields) => {
                for (field, out) in fields.iter().zip(&mut batch.fields) {
                    match field {
                        Some((count, numbers)) => {
                            add_numbers(*count, numbers.as_ref(), out, parts);
                        }
                        None => add_nothing(1, out, parts),
                    }
                }
            }
            Summed::Added(fields) => {
                for (field, out) in fields.iter().zip(&mut batch.fields) {
                    match field {
                        Some(Added { counts, numbers }) => {
                            out.counts.extend_from_slice(counts);
                            if !numbers.is_empty() {
                                add_parts(numbers.iter(), out, parts);
                            }
                        }
                        None => add_nothing(self.spans.len(), out, parts),
                    }
                }
            }
        }
    }

    fn add_windows(&self, kept: &WindowSummaries, out: &mut FieldSummaries, parts: SummaryParts) {
        out.counts.extend(self.spans.iter().map(|span| kept.count(span.at, span.rows.len())));
        let numbers = kept.numbers();
        add_parts(self.spans.iter().map(|span| &numbers[span.at]), out, parts);
    }
}

/// Adds the `parts` of numbers of some spans.
fn add_parts<'a>(
    numbers: impl Iterator<Item = &'a SpanNumbers> + Clone,
    out: &mut FieldSummaries,
    parts: SummaryParts,
) {
    if parts.sum {
        add_bits(numbers.clone().map(|span| span.sum), &mut out.sums);
    }
    if parts.min_max {
        add_bits(numbers.clone().map(|span| span.min), &mut out.mins);
        add_bits(numbers.map(|span| span.max), &mut out.maxs);
    }
}

fn add_bits(bits: impl Iterator<Item = u64>, to: &mut Values) {
    match to {
        Values::Float(to) => to.extend(bits.map(f64::from_bits)),
        Values::Integer(to) => to.extend(bits.map(u64::cast_signed)),
        Values::Unsigned(to) => to.extend(bits),
        _ => panic!("BUG: summaries of spans are numbers of the field's type"),
    }
}

fn add_numbers(
    count: u64,
    numbers: Option<&SummaryNumbers>,
    out: &mut FieldSummaries,
    parts: SummaryParts,
) {
    out.counts.push(count);
    let Some(numbers) = numbers else { return };
    if parts.sum {
        out.sums.push(&numbers.sum);
    }
    if parts.min_max {
        out.mins.push(&numbers.min);
        out.maxs.push(&numbers.max);
    }
}

/// Adds spans in which a field has no values.
fn add_nothing(spans: usize, out: &mut FieldSummaries, parts: SummaryParts) {
    out.counts.resize(out.counts.len() + spans, 0);
    if parts.sum {
        out.sums.extend_missing(spans);
    }
    if parts.min_max {
        out.mins.extend_missing(spans);
        out.maxs.extend_missing(spans);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn windows_are_those_of_their_definition(
            every in prop_oneof![1i64..50, Just(i64::MAX)],
            offset in prop_oneof![-100i64..100, any::<i64>()],
            (a, b) in prop_oneof![(-200i64..200, -200i64..200), any::<(i64, i64)>()],
        ) {
            let windows =
                Windows { every_ns: Some(every), offset_ns: offset, parts: SummaryParts::default() };
            let number = |t: i64| (i128::from(t) - i128::from(offset)).div_euclid(every.into());
            prop_assert_eq!(in_one_window(&windows, a, b), number(a) == number(b));
        }
    }

    #[test]
    fn windows_start_at_the_offset() {
        let parts = SummaryParts::default();
        let windows = Windows { every_ns: Some(10), offset_ns: 3, parts };
        assert!(in_one_window(&windows, 3, 12));
        assert!(!in_one_window(&windows, 2, 3));
        assert!(in_one_window(&windows, -7, 2));
        assert!(in_one_window(&Windows { every_ns: None, ..windows }, i64::MIN, i64::MAX));
    }
}
