//! Scans: the view is pinned by copying every row of the request.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::{
    Column, ColumnBatch, CompareOp, FieldFilter, FieldSummaries, FieldType, Name, Operand,
    Reservation, Scalar, SeriesKey, SeriesRun, SummaryBatch, SummarySpan, TimeRange, Values,
};

use super::state::{Rows, Series, State};
use super::summary::FieldSummary;
use super::{ReferenceOptions, SummaryMode};
use crate::{
    ExtentPart, Scan, ScanContext, ScanCursor, ScanItem, ScanRequest, ScanSlice, ScanStats,
    SeriesTable, StoreError, SummaryParts, TagColumn, TimeOrder, Windows,
};

pub(super) struct ReferenceScan {
    request: ScanRequest,
    options: ReferenceOptions,
    table: SeriesTable,
    /// By ordinal, the rows of each series by time.
    series: Vec<Vec<ScanRow>>,
    partitions: Vec<TimeRange>,
    rows_out: Arc<AtomicU64>,
}

/// One row: the requested fields in the request's order.
#[derive(Clone, Debug)]
struct ScanRow {
    time_ns: i64,
    values: Vec<Option<Scalar>>,
}

impl ReferenceScan {
    pub(super) fn new(state: &State, request: &ScanRequest, options: ReferenceOptions) -> Self {
        let database = state.databases.get(&request.policy.database);
        let measurement = database.and_then(|d| d.measurements.get(&request.measurement));
        let mut matching: Vec<&Series> = measurement.map_or_else(Vec::new, |m| {
            m.series.values().filter(|s| s.matches(&request.series)).collect()
        });
        matching.sort_by_key(|series| series.created);
        let partitions = database.and_then(|d| d.partitions.get(&request.policy.id));
        let keys: Vec<&SeriesKey> = matching.iter().map(|s| &s.key).collect();
        let rows = |s: &&Series| {
            s.rows.get(&request.policy.id).map_or_else(Vec::new, |r| pick(r, request, options))
        };
        Self {
            table: series_table(&keys, &request.tags),
            series: matching.iter().map(rows).collect(),
            partitions: partitions.map_or_else(Vec::new, |p| p.values().map(|p| p.time).collect()),
            rows_out: Arc::default(),
            request: request.clone(),
            options,
        }
    }

    /// The rows of one series that a cursor over `slice` gives, in the request's order.
    fn rows(&self, ordinal: u32, slice: &ScanSlice) -> Vec<ScanRow> {
        let rows = self.series[ordinal as usize].iter();
        let mut rows: Vec<_> = rows.filter(|r| slice.time.contains(r.time_ns)).cloned().collect();
        if self.request.order == TimeOrder::Descending {
            rows.reverse();
        }
        if let Some(any) = slice.with_any.as_ref().filter(|_| self.options.rows_per_series) {
            rows.retain(|row| any.iter().any(|field| row.values[*field].is_some()));
        }
        // Rows that fail a filter are not wanted and must not use up the limit.
        let exact = self.request.filters.is_empty() || self.options.filters;
        if let Some(limit) = slice.rows_per_series.filter(|_| exact)
            && self.options.rows_per_series
        {
            rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
        rows
    }
}

impl Scan for ReferenceScan {
    fn series(&self) -> &SeriesTable {
        &self.table
    }

    fn extent(&self) -> Vec<ExtentPart> {
        let part = |range: &TimeRange| {
            let time = range.intersect(&self.request.time);
            let rows = self.series.iter().flatten().filter(|row| time.contains(row.time_ns));
            ExtentPart { time, rows: rows.count() as u64 }
        };
        self.partitions.iter().map(part).filter(|part| part.rows > 0).collect()
    }

    fn ends(&self, series: Option<&[u32]>) -> Result<Option<Vec<i64>>, StoreError> {
        if !self.options.ends {
            return Ok(None);
        }
        let ascending = self.request.order == TimeOrder::Ascending;
        // Some of them not exactly.
        let end = |ordinal: u32| {
            let rows = &self.series[ordinal as usize];
            let first = if ascending { rows.first() } else { rows.last() };
            let before = if ordinal.is_multiple_of(3) { 1 } else { 0 };
            match first {
                None => 0,
                Some(row) if ascending => row.time_ns.saturating_sub(before),
                Some(row) => row.time_ns.saturating_add(before),
            }
        };
        Ok(Some(match series {
            None => (0..self.table.len).map(end).collect(),
            Some(series) => series.iter().copied().map(end).collect(),
        }))
    }

    fn field_ends(
        &self,
        series: &[u32],
        time: TimeRange,
    ) -> Result<Option<SummaryBatch>, StoreError> {
        if !self.options.ends || !self.request.filters.is_empty() {
            return Ok(None);
        }
        let is_last = self.request.order == TimeOrder::Descending;
        let fields = &self.request.fields;
        let mut batch = SummaryBatch {
            spans: Vec::new(),
            fields: fields.iter().map(|(_, t)| FieldSummaries::empty(*t)).collect(),
        };
        for series in series.iter().copied() {
            let rows = self.rows(series, &ScanSlice { time, ..ScanSlice::all() });
            let times = || rows.iter().map(|row| row.time_ns);
            let (Some(min_time), Some(max_time)) = (times().min(), times().max()) else { continue };
            batch.spans.push(SummarySpan { series, min_time, max_time });
            for (at, summaries) in batch.fields.iter_mut().enumerate() {
                let value = |row: &ScanRow| Some((row.time_ns, row.values[at].clone()?));
                let first = rows.iter().find_map(value);
                summaries.counts.push(u64::from(first.is_some()));
                let ends = if is_last { &mut summaries.lasts } else { &mut summaries.firsts };
                ends.times.push(first.as_ref().map_or(0, |(time, _)| *time));
                match &first {
                    Some((_, value)) => ends.values.push(value),
                    None => ends.values.extend_missing(1),
                }
            }
        }
        Ok(Some(batch))
    }

    fn open(&self, slice: &ScanSlice) -> Result<Box<dyn ScanCursor>, StoreError> {
        self.request.context.interrupt.check()?;
        let ordinals: Vec<u32> = match &slice.series {
            None => (0..self.table.len).collect(),
            Some(some) => some.to_vec(),
        };
        let mut items = Items::new(self);
        let joins = self.request.joins_series
            && self.options.joins_series
            && slice.rows_per_series.is_none();
        for ordinal in ordinals {
            if ordinal >= self.table.len {
                return Err(StoreError::Invalid(format!("the scan has no series {ordinal}")));
            }
            let rows = self.rows(ordinal, slice);
            let ordinal = if joins { SeriesRun::SEVERAL } else { ordinal };
            match (self.request.windows, self.options.summaries) {
                (None, _) | (_, SummaryMode::Never) => items.add_rows(ordinal, &rows),
                (Some(windows), mode) => items.add_windows(ordinal, &rows, windows, mode),
            }
        }
        Ok(Box::new(ReferenceCursor {
            items: items.finish(),
            context: self.request.context.clone(),
            rows_out: Arc::clone(&self.rows_out),
            held: None,
        }))
    }

    fn stats(&self) -> ScanStats {
        ScanStats { sources: 1, rows: self.rows_out.load(Ordering::Relaxed), ..Default::default() }
    }
}

struct ReferenceCursor {
    items: VecDeque<ScanItem>,
    context: ScanContext,
    rows_out: Arc<AtomicU64>,
    held: Option<Reservation>,
}

impl ScanCursor for ReferenceCursor {
    fn next(&mut self) -> Result<Option<ScanItem>, StoreError> {
        self.context.interrupt.check()?;
        self.held = None;
        let Some(item) = self.items.pop_front() else { return Ok(None) };
        let bytes = match &item {
            ScanItem::Rows(batch) => {
                self.rows_out.fetch_add(batch.rows as u64, Ordering::Relaxed);
                batch.memory_bytes()
            }
            ScanItem::Summaries(batch) => {
                batch.fields.iter().map(FieldSummaries::memory_bytes).sum()
            }
        };
        self.held = Some(self.context.budget.reserve(bytes)?);
        Ok(Some(item))
    }
}

/// Cuts the rows of consecutive series into items.
struct Items<'a> {
    fields: &'a [(Name, FieldType)],
    item_rows: usize,
    done: VecDeque<ScanItem>,
    rows: ColumnBatch,
    summaries: SummaryBatch,
}

impl<'a> Items<'a> {
    fn new(scan: &'a ReferenceScan) -> Self {
        Self {
            fields: &scan.request.fields,
            item_rows: scan.options.item_rows,
            done: VecDeque::new(),
            rows: ColumnBatch::default(),
            summaries: SummaryBatch::default(),
        }
    }

    fn add_rows(&mut self, series: u32, rows: &[ScanRow]) {
        for row in rows {
            self.flush_summaries();
            if self.rows.rows == 0 {
                self.rows = empty_batch(self.fields);
            }
            match self.rows.runs.last_mut() {
                Some(run) if run.series == series => run.rows += 1,
                _ => self.rows.runs.push(SeriesRun { series, rows: 1 }),
            }
            push_row(&mut self.rows, row);
            if self.rows.rows == self.item_rows {
                self.flush_rows();
            }
        }
    }

    fn add_windows(&mut self, series: u32, rows: &[ScanRow], windows: Windows, mode: SummaryMode) {
        let mut by_window: BTreeMap<i128, Vec<ScanRow>> = BTreeMap::new();
        for row in rows {
            by_window.entry(window_of(row.time_ns, windows)).or_default().push(row.clone());
        }
        for (at, rows) in by_window.values().enumerate() {
            let half = rows.len() / 2;
            match (mode, (at + series as usize) % 4) {
                (SummaryMode::Mixed, 1) => self.add_rows(series, rows),
                (SummaryMode::Mixed, 2) => {
                    self.add_summary(series, &rows[half..], windows.parts);
                    self.add_summary(series, &rows[..half], windows.parts);
                }
                (SummaryMode::Mixed, 3) => {
                    self.add_summary(series, &rows[half..], windows.parts);
                    self.add_rows(series, &rows[..half]);
                }
                _ => self.add_summary(series, rows, windows.parts),
            }
        }
    }

    fn add_summary(&mut self, series: u32, rows: &[ScanRow], parts: SummaryParts) {
        let times = rows.iter().map(|row| row.time_ns);
        let (Some(min_time), Some(max_time)) = (times.clone().min(), times.max()) else { return };
        self.flush_rows();
        if self.summaries.spans.is_empty() {
            let empty = |(_, field_type): &(Name, FieldType)| FieldSummaries::empty(*field_type);
            self.summaries.fields = self.fields.iter().map(empty).collect();
        }
        let mut ascending: Vec<&ScanRow> = rows.iter().collect();
        ascending.sort_by_key(|row| row.time_ns);
        for (at, (_, field_type)) in self.fields.iter().enumerate() {
            let values =
                ascending.iter().filter_map(|row| Some((row.time_ns, row.values[at].as_ref()?)));
            let summary = FieldSummary::of(*field_type, values);
            summary.push_to(&mut self.summaries.fields[at], parts);
        }
        self.summaries.spans.push(SummarySpan { series, min_time, max_time });
        if self.summaries.spans.len() == self.item_rows {
            self.flush_summaries();
        }
    }

    fn flush_rows(&mut self) {
        if self.rows.rows > 0 {
            let mut batch = std::mem::take(&mut self.rows);
            for column in &mut batch.columns {
                let complete = |v: &model::Bitmap| v.count_ones() == v.len();
                if column.validity.as_ref().is_some_and(complete) {
                    column.validity = None;
                }
            }
            self.done.push_back(ScanItem::Rows(batch));
        }
    }

    fn flush_summaries(&mut self) {
        if !self.summaries.spans.is_empty() {
            self.done.push_back(ScanItem::Summaries(std::mem::take(&mut self.summaries)));
        }
    }

    fn finish(mut self) -> VecDeque<ScanItem> {
        self.flush_rows();
        self.flush_summaries();
        self.done
    }
}

/// The rows of a request among those of one series, ascending.
fn pick(rows: &Rows, request: &ScanRequest, options: ReferenceOptions) -> Vec<ScanRow> {
    let mut picked = Vec::new();
    for (time_ns, fields) in rows {
        let wanted = |filter: &FieldFilter| satisfies(filter, |name| fields.get(name));
        // Summaries are of rows that satisfy them in any case.
        let is_exact = options.filters || request.windows.is_some();
        if !request.time.contains(*time_ns) || is_exact && !request.filters.iter().all(wanted) {
            continue;
        }
        let value = |(name, ty): &(Name, FieldType)| {
            fields.get(name).filter(|value| value.field_type() == *ty).cloned()
        };
        let values: Vec<Option<Scalar>> = request.fields.iter().map(value).collect();
        if values.iter().any(Option::is_some) {
            picked.push(ScanRow { time_ns: *time_ns, values });
        }
    }
    picked
}

/// Whether a row satisfies a filter; `value` gives what it has in a field.
pub(crate) fn satisfies<'a>(
    filter: &'a FieldFilter,
    value: impl Fn(&Name) -> Option<&'a Scalar>,
) -> bool {
    let other = match &filter.operand {
        Operand::Constant(constant) => Some(constant),
        Operand::Field(other) => value(other),
        Operand::Text(pattern) => {
            let Some(Scalar::String(text)) = value(&filter.field) else { return false };
            return pattern.is_match(text.as_bytes()) == (filter.op == CompareOp::Equal);
        }
    };
    let (Some(value), Some(other)) = (value(&filter.field), other) else { return false };
    match compare(value, other) {
        Some(ordering) => filter.op.holds(ordering),
        // Of two floats only a NaN compares with nothing: it differs from everything.
        None => filter.op == CompareOp::NotEqual && value.field_type() == FieldType::Float,
    }
}

pub(super) fn compare(a: &Scalar, b: &Scalar) -> Option<std::cmp::Ordering> {
    match (a, b) {
        (Scalar::Float(a), Scalar::Float(b)) => a.partial_cmp(b),
        (Scalar::Integer(a), Scalar::Integer(b)) => Some(a.cmp(b)),
        (Scalar::Unsigned(a), Scalar::Unsigned(b)) => Some(a.cmp(b)),
        (Scalar::String(a), Scalar::String(b)) => Some(a.cmp(b)),
        (Scalar::Boolean(a), Scalar::Boolean(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// Which window a time lies in.
pub(crate) fn window_of(time_ns: i64, windows: Windows) -> i128 {
    let since = i128::from(time_ns) - i128::from(windows.offset_ns);
    windows.every_ns.map_or(0, |every| since.div_euclid(i128::from(every)))
}

fn series_table(keys: &[&SeriesKey], tags: &[Name]) -> SeriesTable {
    let column = |key: &Name| {
        let mut values: Vec<&str> = keys.iter().map(|k| k.tag(key)).collect();
        values.sort_unstable();
        values.dedup();
        let code = |k: &&SeriesKey| values.partition_point(|v| *v < k.tag(key)) as u32;
        let codes = keys.iter().map(code).collect();
        TagColumn { key: key.clone(), codes, values: Arc::new(values.into_iter().collect()) }
    };
    let len = u32::try_from(keys.len()).expect("BUG: the model holds less than 4 G series");
    SeriesTable::new(len, tags.iter().map(column).collect())
}

fn empty_batch(fields: &[(Name, FieldType)]) -> ColumnBatch {
    let mut columns = vec![Column::new(Values::Time(Vec::new()))];
    columns.extend(fields.iter().map(|(_, ty)| Column::new(Values::empty(*ty))));
    ColumnBatch { rows: 0, runs: Vec::new(), columns }
}

fn push_row(batch: &mut ColumnBatch, row: &ScanRow) {
    batch.columns[0].push(Some(&Scalar::Integer(row.time_ns)));
    for (column, value) in batch.columns[1..].iter_mut().zip(&row.values) {
        column.push(value.as_ref());
    }
    batch.rows += 1;
}
