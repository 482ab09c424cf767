//! Summaries in place of rows: which spans of a block lie wholly in one window of the request.

use std::ops::Range;
use std::sync::Arc;

use model::{FieldSummary, FieldType, Scalar, TimeRange, Values};
use segment::{Block, SegmentReader, WindowIndex, WindowSummaries};
use store::{StoreError, Windows};

use crate::error::segment_error;

/// Summaries of consecutive spans of one series.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpanSummaries {
    /// Times that the rows of each span lie between.
    pub(crate) spans: Vec<TimeRange>,
    /// Per requested field one summary a span.
    pub(crate) fields: Vec<Vec<FieldSummary>>,
}

/// A part of some rows: summed up, or to be read.
#[derive(Debug)]
pub(crate) enum Part {
    Rows(Range<usize>),
    Summaries(SpanSummaries),
}

/// Whether two times lie in one window of the request.
fn in_one_window(windows: &Windows, a: i64, b: i64) -> bool {
    let Some(every) = windows.every_ns else { return true };
    let window = |t: i64| (i128::from(t) - i128::from(windows.offset_ns)).div_euclid(every.into());
    window(a) == window(b)
}

/// Cuts rows of one series, all of `rows` in `block`, which lie within `time`, into parts. `None` if
/// nothing can be summed up.
pub(crate) fn summarise(
    reader: &SegmentReader,
    block: &Block,
    (rows, time): (&Range<usize>, TimeRange),
    fields: &[(Option<usize>, FieldType)],
    windows: &Windows,
) -> Result<Option<Vec<Part>>, StoreError> {
    if windows.parts.first_last || fields.iter().any(|(_, t)| !t.is_numeric()) {
        return Ok(None);
    }
    let whole = block.has_one_series() && *rows == (0..block.rows());
    if whole && in_one_window(windows, block.time().min, block.time().max) {
        return Ok(
            whole_block(block, fields).map(|all| all.map(Part::Summaries).into_iter().collect())
        );
    }
    if !block.has_windows() {
        return Ok(None);
    }
    let Some(index) = reader.window_index(block).map_err(segment_error)? else { return Ok(None) };
    if windows.every_ns.is_some_and(|every| every < index.window_ns()) {
        return Ok(None);
    }
    let mut columns = Vec::with_capacity(fields.len());
    for (field, field_type) in fields {
        match present(block, *field) {
            None => columns.push((None, *field_type)),
            Some(field) => match reader.windows(block, field, &index).map_err(segment_error)? {
                Some(found) => columns.push((Some(found), *field_type)),
                None => return Ok(None),
            },
        }
    }
    let mut cutter = Cutter::new(&columns, rows.start);
    let mut times = Vec::new();
    let mut span = first_span(&index, rows.start);
    while span < index.len() && index.rows(span).start < rows.end {
        let of_span = index.rows(span);
        if of_span.start >= rows.start && of_span.end <= rows.end {
            let start = index.start_ns(span);
            let mut bounds =
                TimeRange::new(start, start + (index.window_ns() - 1)).intersect(&time);
            let mut is_one = !bounds.is_empty() && in_one_window(windows, bounds.min, bounds.max);
            if !is_one {
                // Windows of the request begin elsewhere: the rows may lie in one all the same.
                if times.is_empty() {
                    reader.times(block, rows.clone(), &mut times).map_err(segment_error)?;
                }
                let time_of = |row: usize| times[row - rows.start];
                bounds = TimeRange::new(time_of(of_span.start), time_of(of_span.end - 1));
                is_one = in_one_window(windows, bounds.min, bounds.max);
            }
            if is_one {
                cutter.add(of_span, bounds, span);
            }
        }
        span += 1;
    }
    Ok(cutter.finish(rows.end))
}

/// The span that row `row` lies in.
fn first_span(index: &WindowIndex, row: usize) -> usize {
    let (mut low, mut high) = (0, index.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if index.rows(middle).end <= row {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The field's number if the block has values of it.
fn present(block: &Block, field: Option<usize>) -> Option<usize> {
    field.filter(|field| block.summary(*field).is_some())
}

/// Puts parts together.
struct Cutter<'a> {
    columns: &'a [(Option<Arc<WindowSummaries>>, FieldType)],
    parts: Vec<Part>,
    /// Spans behind the last part that go into the next one: number, rows, times.
    open: Vec<(usize, usize, TimeRange)>,
    /// Rows before this one are in parts, or open.
    done: usize,
    summed_up: bool,
}

impl<'a> Cutter<'a> {
    fn new(columns: &'a [(Option<Arc<WindowSummaries>>, FieldType)], start: usize) -> Self {
        Self { columns, parts: Vec::new(), open: Vec::new(), done: start, summed_up: false }
    }

    fn add(&mut self, rows: Range<usize>, time: TimeRange, span: usize) {
        if self.done < rows.start {
            self.close();
            self.parts.push(Part::Rows(self.done..rows.start));
        }
        self.done = rows.end;
        self.summed_up = true;
        // Rows that have none of the fields are not handed out, in no form.
        let has_values = |(column, _): &(Option<Arc<WindowSummaries>>, _)| {
            column.as_ref().is_some_and(|column| span_count(column, span, rows.len()) > 0)
        };
        if self.columns.iter().any(has_values) {
            self.open.push((span, rows.len(), time));
        }
    }

    /// Makes a part of the open spans.
    fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let spans = self.open.iter().map(|(.., time)| *time).collect();
        let of_field = |(column, field_type): &(Option<Arc<WindowSummaries>>, FieldType)| {
            let summary = |(span, rows, _): &(usize, usize, TimeRange)| match column {
                Some(column) => span_summary(column, *span, *rows),
                None => nothing(*field_type),
            };
            self.open.iter().map(summary).collect()
        };
        let fields = self.columns.iter().map(of_field).collect();
        self.parts.push(Part::Summaries(SpanSummaries { spans, fields }));
        self.open.clear();
    }

    fn finish(mut self, end: usize) -> Option<Vec<Part>> {
        if !self.summed_up {
            return None;
        }
        self.close();
        if self.done < end {
            self.parts.push(Part::Rows(self.done..end));
        }
        Some(self.parts)
    }
}

/// How many of the `rows` of a span have a value.
fn span_count(column: &WindowSummaries, span: usize, rows: usize) -> u64 {
    column.counts.as_ref().map_or(rows as u64, |counts| u64::from(counts[span]))
}

fn span_summary(column: &WindowSummaries, span: usize, rows: usize) -> FieldSummary {
    let count = span_count(column, span, rows);
    let (sum, min, max) =
        (scalar(&column.sums, span), scalar(&column.mins, span), scalar(&column.maxs, span));
    FieldSummary { count, first: (0, min.clone()), last: (0, min.clone()), sum, min, max }
}

fn scalar(values: &Values, at: usize) -> Scalar {
    match values {
        Values::Float(v) => Scalar::Float(v[at]),
        Values::Integer(v) => Scalar::Integer(v[at]),
        Values::Unsigned(v) => Scalar::Unsigned(v[at]),
        _ => panic!("BUG: only numbers have window summaries"),
    }
}

/// The summary of a field without values.
fn nothing(field_type: FieldType) -> FieldSummary {
    let zero = match field_type {
        FieldType::Integer => Scalar::Integer(0),
        FieldType::Unsigned => Scalar::Unsigned(0),
        _ => Scalar::Float(0.0),
    };
    FieldSummary {
        count: 0,
        sum: zero.clone(),
        min: zero.clone(),
        max: zero.clone(),
        first: (0, zero.clone()),
        last: (0, zero),
    }
}

/// The summary of a block of one series, as its directory has it. Outer `None`: it has none. Inner
/// `None`: no row has a value.
fn whole_block(
    block: &Block,
    fields: &[(Option<usize>, FieldType)],
) -> Option<Option<SpanSummaries>> {
    let mut summaries = Vec::with_capacity(fields.len());
    for (field, field_type) in fields {
        summaries.push(vec![match present(block, *field) {
            None => nothing(*field_type),
            Some(field) => {
                let page = block.summary(field)?;
                let numbers = page.numbers?;
                FieldSummary {
                    count: u64::from(page.count),
                    first: (0, numbers.min.clone()),
                    last: (0, numbers.min.clone()),
                    sum: numbers.sum,
                    min: numbers.min,
                    max: numbers.max,
                }
            }
        }]);
    }
    if summaries.iter().all(|s| s[0].count == 0) {
        return Some(None);
    }
    Some(Some(SpanSummaries { spans: vec![block.time()], fields: summaries }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_start_at_the_offset() {
        let parts = store::SummaryParts::default();
        let windows = Windows { every_ns: Some(10), offset_ns: 3, parts };
        assert!(in_one_window(&windows, 3, 12));
        assert!(!in_one_window(&windows, 2, 3));
        assert!(in_one_window(&windows, -7, 2));
        assert!(in_one_window(&Windows { every_ns: None, ..windows }, i64::MIN, i64::MAX));
    }
}
