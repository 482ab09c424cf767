//! Turns rows into the pages of one block.
//!
//! Order in the file: times, series, fields, window index, windows of the fields.

use std::ops::Range;

use codec::Effort;
use model::{Bitmap, FieldType, SeriesId, Strings, TimeRange, Values};

use super::WriterOptions;
use super::output::Output;
use crate::directory::{BlockEntry, Edges, Fields, KnownTimes, PageEntry};
use crate::input::{put_bytes, put_varint};
use crate::numbers::{Number, Numbers};
use crate::reader::{PageShape, Thawer, is_slow_in_parts};
use crate::rows::SegmentRows;
use crate::runs::Runs;
use crate::sparse::SparseView;
use crate::windows::{SpanParts, WindowPlan, WindowSummaries};

/// Spans of a page have a value on average of so many rows that they were meant to have, or nothing is said of them: it
/// would take as much as the values.
const SPAN_ROWS_A_VALUE: usize = 16;

/// The rows of a block, inside of more rows.
#[derive(Debug)]
pub(crate) struct RowsView<'a> {
    pub(crate) rows: &'a SegmentRows,
    /// The runs of `range` only.
    pub(crate) runs: &'a [(SeriesId, u32)],
    pub(crate) range: Range<usize>,
}

/// Writes blocks, reusing its memory.
#[derive(Debug)]
pub(crate) struct BlockWriter {
    effort: Effort,
    text_effort: Effort,
    window_rows_min: Option<u32>,
    pages: Vec<PageEntry>,
    /// A page's validity, or its texts.
    scratch: Vec<u8>,
    /// Encoded window summaries of the block's fields, to go behind its pages.
    windows: Vec<(usize, Vec<u8>)>,
    /// Makes what readers would make of the pages.
    thawer: Option<Thawer>,
}

/// One field of a block that is being written.
struct FieldPage<'a> {
    values: &'a Values,
    /// Those of the page.
    range: Range<usize>,
    /// Which of its rows have a value, if not all have.
    present: Option<Bitmap>,
    rows: usize,
    /// One past the last value of each window's span.
    span_ends: Option<Vec<u32>>,
}

/// What encoding a page's values has found out about them.
#[derive(Default)]
struct Found {
    numbers: Option<Numbers>,
    spans: Option<SpanParts>,
}

impl BlockWriter {
    pub(crate) fn new(options: &WriterOptions) -> Self {
        Self {
            effort: options.effort,
            text_effort: options.text_effort,
            window_rows_min: options.window_rows_min,
            pages: Vec::new(),
            scratch: Vec::new(),
            windows: Vec::new(),
            thawer: None,
        }
    }

    /// How much work goes into pages of numbers.
    pub(super) fn effort(&self) -> Effort {
        self.effort
    }

    pub(crate) fn set_thawer(&mut self, thawer: Thawer) {
        self.thawer = Some(thawer);
    }

    pub(crate) fn into_thawer(self) -> Option<Thawer> {
        self.thawer
    }

    /// Writes a block; its pages are valid until the next one.
    pub(crate) fn write(
        &mut self,
        view: &RowsView<'_>,
        fields: &Fields,
        out: &mut Output,
    ) -> (BlockEntry, &[PageEntry]) {
        let all_times = &view.rows.times[view.range.clone()];
        let (Some(first), Some(last)) = (view.runs.first(), view.runs.last()) else {
            panic!("BUG: a block without rows");
        };
        let first = (first.0, all_times[0]);
        let last = (last.0, all_times[all_times.len() - 1]);
        let time = time_range(view.runs, all_times);
        let start = out.position();
        codec::encode_i64(all_times, self.effort, out.buffer());
        let times = out.extent_from(start);
        let mut thawer = self.thawer.take();
        let mut thaws = thawer.as_mut().filter(|thawer| thawer.has_room());
        if let Some(thawer) = &mut thaws {
            thawer.add_times(&times, out.bytes_from(start), all_times);
        }
        let runs = (view.runs.len() > 1).then(|| {
            let start = out.position();
            Runs::encode(view.runs, self.effort, out.buffer());
            out.extent_from(start)
        });
        let plan =
            self.window_rows_min.and_then(|min| WindowPlan::choose(view.runs, all_times, min));
        self.write_fields(view, fields, plan.as_ref(), thaws, out);
        self.thawer = thawer;
        let window_index = plan.filter(|_| !self.windows.is_empty()).map(|plan| {
            let start = out.position();
            plan.encode(self.effort, out.buffer());
            out.extent_from(start)
        });
        for (page, bytes) in self.windows.drain(..) {
            let start = out.position();
            out.buffer().extend_from_slice(&bytes);
            self.pages[page].windows = Some(out.extent_from(start));
        }
        let rows = all_times.len() as u32;
        let pages = 0..self.pages.len() as u32;
        let end = out.position();
        let known_times = KnownTimes::default();
        let entry = BlockEntry {
            rows,
            first,
            last,
            time,
            times,
            known_times,
            runs,
            window_index,
            pages,
            end,
        };
        (entry, &self.pages)
    }

    fn write_fields(
        &mut self,
        view: &RowsView<'_>,
        fields: &Fields,
        plan: Option<&WindowPlan>,
        mut thawer: Option<&mut Thawer>,
        out: &mut Output,
    ) {
        self.pages.clear();
        let span_values_min = self.window_rows_min.unwrap_or(0) as usize / SPAN_ROWS_A_VALUE;
        for (field, (_, field_type)) in fields.iter().enumerate() {
            let column = view.rows.columns[field].view();
            let first = column.values_before(view.range.start);
            let Some(mut page) = FieldPage::of(column, view.range.clone(), first) else { continue };
            if field_type.is_numeric() {
                let plan = plan.filter(|p| page.range.len() >= p.ends.len() * span_values_min);
                page.span_ends = plan.map(|p| page.span_ends(p));
            }
            platform::give_way();
            let start = out.position();
            let is_text = *field_type == FieldType::String;
            let effort = if is_text { self.text_effort } else { self.effort };
            let found = page.encode(effort, true, &mut self.scratch, out.buffer());
            let extent = out.extent_from(start);
            if let (Some(spans), Some(ends)) = (found.spans, &page.span_ends) {
                let (counts, complete) = (differences(ends), page.present.is_none());
                let mut bytes = Vec::new();
                WindowSummaries::encode(&counts, complete, spans, *field_type, effort, &mut bytes);
                self.windows.push((self.pages.len(), bytes));
            }
            self.pages.push(PageEntry {
                field: field as u32,
                count: page.range.len() as u32,
                extent,
                numbers: found.numbers,
                edges: (view.runs.len() == 1).then(|| page.edges()).flatten(),
                windows: None,
            });
            if let Some(thawer) = &mut thawer
                && field_type.is_numeric()
                && page.is_tight(out.bytes_from(start))
            {
                thawer.add_page(&self.pages, column, view.range.clone());
            }
        }
        if let Some(thawer) = thawer {
            thawer.end_group();
        }
    }
}

/// Appends some rows of a column, before which there are `first` values, as a page of its own; returns how many values
/// it has. Without any there is no page.
pub(crate) fn encode_page(
    column: SparseView<'_>,
    rows: Range<usize>,
    first: usize,
    effort: Effort,
    out: &mut Vec<u8>,
) -> usize {
    let Some(page) = FieldPage::of(column, rows, first) else { return 0 };
    page.encode(effort, false, &mut Vec::new(), out);
    page.range.len()
}

impl<'a> FieldPage<'a> {
    /// Of some rows, before which there are `first` values. `None` if no row has a value.
    fn of(column: SparseView<'a>, rows: Range<usize>, first: usize) -> Option<Self> {
        let (values, mut present) = (column.values, None);
        let (mut count, len) = (rows.len(), rows.len());
        if let Some(all) = column.present {
            count = all.count_ones_in(rows.clone());
            if count == 0 {
                return None;
            }
            present = (count < len).then(|| {
                let mut bits = Bitmap::new();
                bits.extend_from(all, rows);
                bits
            });
        }
        let range = first..first + count;
        (count > 0).then_some(Self { values, range, present, rows: len, span_ends: None })
    }

    /// The values in the first and the last row; of strings none are kept.
    fn edges(&self) -> Option<Edges> {
        let bits = |at: usize| match self.values {
            Values::Integer(v) => v[at] as u64,
            Values::Unsigned(v) => v[at],
            Values::Float(v) => v[at].to_bits(),
            Values::Boolean(v) => u64::from(v.get(at)),
            _ => panic!("BUG: not a number of a field"),
        };
        let is_there = |row: usize| self.present.as_ref().is_none_or(|present| present.get(row));
        let (first, last) = (self.range.start, self.range.end - 1);
        (!matches!(self.values, Values::String(_))).then(|| {
            [is_there(0).then(|| bits(first)), is_there(self.rows - 1).then(|| bits(last))]
        })
    }

    /// Where each span's values end.
    fn span_ends(&self, plan: &WindowPlan) -> Vec<u32> {
        let Some(present) = &self.present else { return plan.ends.clone() };
        let (mut row, mut values) = (0, 0);
        let values_until = |end: &u32| {
            values += present.count_ones_in(row..*end as usize) as u32;
            row = *end as usize;
            values
        };
        plan.ends.iter().map(values_until).collect()
    }

    /// Appends the page. What is found out about its numbers is given back if it is wanted, which takes
    /// about as long as packing them.
    fn encode(
        &self,
        effort: Effort,
        wanted: bool,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Found {
        if let Some(present) = &self.present {
            scratch.clear();
            codec::encode_validity(present.words(), present.len(), scratch);
            put_bytes(out, scratch);
        }
        let range = self.range.clone();
        match self.values {
            Values::Integer(values) => {
                codec::encode_i64(&values[range.clone()], effort, out);
                self.find(&values[range], wanted)
            }
            Values::Unsigned(values) => {
                codec::encode_u64(&values[range.clone()], effort, out);
                self.find(&values[range], wanted)
            }
            Values::Float(values) => {
                codec::encode_f64(&values[range.clone()], effort, out);
                self.find(&values[range], wanted)
            }
            Values::Boolean(values) => {
                let mut bits = Bitmap::new();
                bits.extend_from(values, range);
                codec::encode_bool(bits.words(), bits.len(), out);
                let trues = bits.count_ones();
                let (all, some) = (trues == bits.len(), trues > 0);
                let numbers =
                    Numbers { min: u64::from(all), max: u64::from(some), sum: trues as u64 };
                Found { numbers: Some(numbers), spans: None }
            }
            Values::String(values) => {
                self.encode_strings(values, effort, scratch, out);
                Found::default()
            }
            Values::Time(_) | Values::Dictionary(..) => panic!("BUG: not a column of a field"),
        }
    }

    /// Whether a few values of the page that was written take as long to read as all.
    fn is_tight(&self, page: &[u8]) -> bool {
        is_slow_in_parts(page, PageShape { rows: self.rows, count: self.range.len() })
    }

    fn encode_strings(
        &self,
        values: &Strings,
        effort: Effort,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        let mut offsets = Vec::with_capacity(self.range.len() + 1);
        offsets.push(0);
        scratch.clear();
        for at in self.range.clone() {
            scratch.extend_from_slice(values.get_bytes(at));
            // The writer cuts blocks so that their text stays far below 4 GiB.
            offsets.push(scratch.len() as u32);
        }
        put_varint(out, scratch.len() as u64);
        codec::encode_strings(&offsets, scratch, effort, out);
    }

    fn find<T: Number>(&self, values: &[T], wanted: bool) -> Found {
        let numbers = wanted.then(|| T::numbers(values)).flatten();
        let Some(numbers) = numbers else { return Found::default() };
        let spans = self.span_ends.as_ref().map(|ends| {
            let mut parts = SpanParts::default();
            let mut from = 0;
            for end in ends {
                let span = T::numbers(&values[from..*end as usize]).unwrap_or_default();
                from = *end as usize;
                parts.sums.push(span.sum);
                parts.mins.push(span.min);
                parts.maxs.push(span.max);
            }
            parts
        });
        Found { numbers: Some(numbers), spans }
    }
}

fn time_range(runs: &[(SeriesId, u32)], times: &[i64]) -> TimeRange {
    let mut range = TimeRange::EMPTY;
    let mut from = 0;
    for (_, rows) in runs {
        let last = from + *rows as usize - 1;
        range = range.union(&TimeRange::new(times[from], times[last]));
        from = last + 1;
    }
    range
}

fn differences(ends: &[u32]) -> Vec<u64> {
    let starts = std::iter::once(&0).chain(ends);
    ends.iter().zip(starts).map(|(end, start)| u64::from(end - start)).collect()
}
