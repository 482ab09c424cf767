//! Batches out of pieces: what is read of single series, put together to what a cursor hands out.

use std::collections::VecDeque;

use model::{
    Column, ColumnBatch, FieldSummaries, FieldType, Name, SeriesRun, SummaryBatch, Values,
};
use store::{ScanItem, SummaryParts};

use super::piece::Piece;
use super::summarise::SpanSummaries;

/// Rows a batch holds, about: enough to spread its cost.
const BATCH_ROWS_MIN: usize = 512;
const BATCH_ROWS_MAX: usize = 8192;
/// Pieces of so many cells and rows are batches of their own: what a batch costs by itself, and for each of its
/// columns, is less than to copy them.
const LONG_CELLS: usize = 1 << 10;
const LONG_ROWS: usize = 64;
/// Cells a batch holds, about: few enough for a core's cache.
const BATCH_CELLS: usize = 1 << 15;
/// Spans a batch of summaries holds, about.
const BATCH_SPANS: usize = 1024;

/// Puts pieces together to batches, rows and summaries each by themselves.
#[derive(Debug)]
pub(super) struct BatchBuilder {
    /// Columns of a batch without rows.
    empty: Vec<Column>,
    /// Has no columns before there are rows.
    batch: ColumnBatch,
    /// Rows a batch of these columns holds, about.
    rows_max: usize,
    /// Series that may come, which says how many rows are likely to.
    series: usize,
    summaries: SummaryBatch,
    parts: SummaryParts,
    /// Pieces of a series may come in any order of time.
    is_any_order: bool,
}

impl BatchBuilder {
    /// Batches of these fields, of so many series; summaries have these parts.
    pub(super) fn new(fields: &[(Name, FieldType)], parts: SummaryParts, series: usize) -> Self {
        let time = Column::new(Values::Time(Vec::new()));
        let columns = fields.iter().map(|(_, t)| Column::new(Values::empty(*t)));
        let empty: Vec<Column> = std::iter::once(time).chain(columns).collect();
        let summaries = fields.iter().map(|(_, t)| FieldSummaries::empty(*t)).collect();
        Self {
            batch: ColumnBatch::default(),
            rows_max: (BATCH_CELLS / empty.len()).clamp(BATCH_ROWS_MIN, BATCH_ROWS_MAX),
            empty,
            series,
            summaries: SummaryBatch { spans: Vec::new(), fields: summaries },
            parts,
            is_any_order: false,
        }
    }

    /// The same builder, to which pieces of a series come in any order of time, if that is so.
    pub(super) fn in_any_order(mut self, is_any_order: bool) -> Self {
        self.is_any_order = is_any_order;
        self
    }

    /// Adds summaries.
    pub(super) fn add_summaries(
        &mut self,
        ordinal: u32,
        summaries: &SpanSummaries,
        ready: &mut VecDeque<ScanItem>,
    ) {
        summaries.add_to(&mut self.summaries, ordinal, self.parts);
        if self.summaries.spans.len() >= BATCH_SPANS {
            let fields = self.summaries.fields.iter().map(FieldSummaries::empty_like).collect();
            let next = SummaryBatch { spans: Vec::with_capacity(BATCH_SPANS), fields };
            ready.push_back(ScanItem::Summaries(std::mem::replace(&mut self.summaries, next)));
        }
    }

    /// Adds a piece; batches that are full go to `ready`.
    pub(super) fn add(&mut self, ordinal: u32, piece: Piece, ready: &mut VecDeque<ScanItem>) {
        let rows = piece.times.len();
        let run = SeriesRun { series: ordinal, rows: rows as u32 };
        let is_long = rows >= LONG_ROWS && rows * self.empty.len() >= LONG_CELLS;
        if is_long {
            self.end(ready);
        }
        if self.batch.columns.is_empty() {
            // Nothing is copied.
            self.batch = piece.into_batch(vec![run]);
            if is_long {
                self.end(ready);
            }
            return;
        }
        if let [only] = self.batch.runs.as_slice() {
            // As a second one is there, others are likely to come and to have as many rows: of a series
            // that is summed up both ends are left, of others there is one piece.
            let pieces = if only.series == ordinal { 2 } else { 1 };
            self.reserve(rows.saturating_mul((pieces * self.series).saturating_sub(1)));
        }
        // Columns that have room for as many rows as a batch may have do not grow.
        if self.batch.rows + rows > self.rows_max {
            self.hand_over(ready);
        }
        let is_any_order = self.is_any_order;
        let (times, columns) = self.columns();
        // Pieces of a series come in any order where it does not matter; a run is in order.
        let follows = !is_any_order || times.last() < piece.times.first();
        times.extend_from_slice(&piece.times);
        for (mine, theirs) in columns.iter_mut().zip(&piece.columns) {
            mine.extend_from(theirs, 0..rows);
        }
        self.count(run, follows, ready);
    }

    /// Adds rows of several series that are a batch already; to those before, if they are few.
    pub(super) fn add_batch(&mut self, batch: ColumnBatch, ready: &mut VecDeque<ScanItem>) {
        if batch.rows >= BATCH_ROWS_MIN {
            self.end(ready);
            ready.push_back(ScanItem::Rows(batch));
            return;
        }
        if self.batch.columns.is_empty() {
            self.batch = batch;
            self.reserve(self.rows_max);
            return;
        }
        if self.batch.rows + batch.rows > self.rows_max {
            self.hand_over(ready);
        }
        for (mine, theirs) in self.batch.columns.iter_mut().zip(&batch.columns) {
            mine.extend_from(theirs, 0..batch.rows);
        }
        self.batch.runs.extend_from_slice(&batch.runs);
        self.batch.rows += batch.rows;
    }

    /// Adds one row, its numbers by their bits.
    pub(super) fn add_row(
        &mut self,
        ordinal: u32,
        time: i64,
        row: &[Option<u64>],
        ready: &mut VecDeque<ScanItem>,
    ) {
        if self.batch.columns.is_empty() {
            self.batch.columns.clone_from(&self.empty);
            self.reserve(self.series);
        }
        let (times, columns) = self.columns();
        times.push(time);
        columns.iter_mut().zip(row).for_each(|(column, bits)| column.push_bits(*bits));
        self.count(SeriesRun { series: ordinal, rows: 1 }, true, ready);
    }

    /// Makes room for so many more rows, or as many as a batch may have.
    fn reserve(&mut self, rows: usize) {
        let rows = rows.min(self.rows_max.saturating_sub(self.batch.rows));
        if rows > 0 {
            self.batch.columns.iter_mut().for_each(|column| column.values.reserve(rows));
        }
    }

    /// The times and the columns of the fields.
    fn columns(&mut self) -> (&mut Vec<i64>, &mut [Column]) {
        match self.batch.columns.split_first_mut() {
            Some((Column { values: Values::Time(times), .. }, fields)) => (times, fields),
            _ => panic!("BUG: column 0 is the time"),
        }
    }

    /// Counts rows of a series that were added, which may follow those before in time, and hands the batch over if it is full.
    fn count(&mut self, run: SeriesRun, follows: bool, ready: &mut VecDeque<ScanItem>) {
        match self.batch.runs.last_mut() {
            Some(last) if last.series == run.series && follows => last.rows += run.rows,
            _ => self.batch.runs.push(run),
        }
        self.batch.rows += run.rows as usize;
        if self.batch.rows >= self.rows_max {
            self.hand_over(ready);
        }
    }

    /// Hands over the rows that were gathered, if any; as many as a batch may have are likely to follow.
    fn hand_over(&mut self, ready: &mut VecDeque<ScanItem>) {
        if self.batch.rows > 0 {
            let runs = Vec::with_capacity(self.batch.runs.len());
            let next = ColumnBatch { rows: 0, runs, columns: self.empty.clone() };
            ready.push_back(ScanItem::Rows(std::mem::replace(&mut self.batch, next)));
            self.reserve(self.rows_max);
        }
    }

    /// Hands over the rows that were gathered, if any; the piece that comes next is taken as it is.
    fn end(&mut self, ready: &mut VecDeque<ScanItem>) {
        let batch = std::mem::take(&mut self.batch);
        if batch.rows > 0 {
            ready.push_back(ScanItem::Rows(batch));
        }
    }

    /// Hands over what is left; nothing is added any more.
    pub(super) fn finish(&mut self, ready: &mut VecDeque<ScanItem>) {
        self.end(ready);
        if !self.summaries.spans.is_empty() {
            ready.push_back(ScanItem::Summaries(std::mem::take(&mut self.summaries)));
        }
    }
}
