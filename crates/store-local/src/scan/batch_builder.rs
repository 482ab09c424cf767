//! Batches out of pieces: what is read of single series, put together to what a cursor hands out.

use std::collections::VecDeque;

use model::{
    Column, ColumnBatch, FieldType, Name, Scalar, SeriesRun, SummaryBatch, SummarySpan, Values,
};
use store::ScanItem;

use super::edge::push;
use super::piece::Piece;
use super::summarise::SpanSummaries;

/// Rows a batch holds, about: small enough for a core's cache, large enough to spread its cost.
const BATCH_ROWS: usize = 8192;
/// Spans a batch of summaries holds, about.
const BATCH_SPANS: usize = 1024;

/// Puts pieces together to batches. The series of what leaves ascends over rows and summaries alike:
/// one kind leaves before the other begins with a later series.
#[derive(Debug)]
pub(super) struct BatchBuilder {
    empty: ColumnBatch,
    batch: ColumnBatch,
    summaries: SummaryBatch,
}

impl BatchBuilder {
    pub(super) fn new(fields: &[(Name, FieldType)]) -> Self {
        let time = Column::new(Values::Time(Vec::new()));
        let fields = fields.iter().map(|(_, t)| Column::new(Values::empty(*t)));
        let columns = std::iter::once(time).chain(fields).collect();
        let empty = ColumnBatch { rows: 0, runs: Vec::new(), columns };
        Self { batch: empty.clone(), empty, summaries: SummaryBatch::default() }
    }

    /// Adds summaries.
    pub(super) fn add_summaries(
        &mut self,
        ordinal: u32,
        summaries: SpanSummaries,
        ready: &mut VecDeque<ScanItem>,
    ) {
        if self.batch.rows > 0 {
            ready.extend(self.finish());
        }
        let spans = summaries.spans.iter().map(|time| SummarySpan {
            series: ordinal,
            min_time: time.min,
            max_time: time.max,
        });
        self.summaries.spans.extend(spans);
        self.summaries.fields.resize_with(summaries.fields.len(), Vec::new);
        for (mine, theirs) in self.summaries.fields.iter_mut().zip(summaries.fields) {
            mine.extend(theirs);
        }
        if self.summaries.spans.len() >= BATCH_SPANS {
            ready.extend(self.finish());
        }
    }

    /// Adds a piece; batches that are full go to `ready`.
    pub(super) fn add(&mut self, ordinal: u32, piece: Piece, ready: &mut VecDeque<ScanItem>) {
        self.begin_rows(ready);
        let rows = piece.times.len();
        let run = SeriesRun { series: ordinal, rows: rows as u32 };
        if rows >= BATCH_ROWS / 4 || self.batch.rows == 0 {
            // Long pieces become batches of their own: nothing is copied.
            ready.extend(self.finish());
            let time = Column::new(Values::Time(piece.times));
            let columns = std::iter::once(time).chain(piece.columns).collect();
            self.batch = ColumnBatch { rows, runs: vec![run], columns };
        } else {
            let (times, columns) = self.columns();
            times.extend_from_slice(&piece.times);
            for (mine, theirs) in columns.iter_mut().zip(&piece.columns) {
                mine.extend_from(theirs, 0..rows);
            }
            self.count(run);
        }
        self.hand_over_if_full(ready);
    }

    /// Adds one row.
    pub(super) fn add_row(
        &mut self,
        ordinal: u32,
        time: i64,
        row: &[Option<Scalar>],
        ready: &mut VecDeque<ScanItem>,
    ) {
        self.begin_rows(ready);
        let (times, columns) = self.columns();
        times.push(time);
        columns.iter_mut().zip(row).for_each(|(column, value)| push(column, value.as_ref()));
        self.count(SeriesRun { series: ordinal, rows: 1 });
        self.hand_over_if_full(ready);
    }

    /// Lets summaries leave before rows come.
    fn begin_rows(&mut self, ready: &mut VecDeque<ScanItem>) {
        if !self.summaries.spans.is_empty() {
            ready.extend(self.finish());
        }
    }

    fn hand_over_if_full(&mut self, ready: &mut VecDeque<ScanItem>) {
        if self.batch.rows >= BATCH_ROWS {
            ready.extend(self.finish());
        }
    }

    /// The times and the columns of the fields.
    fn columns(&mut self) -> (&mut Vec<i64>, &mut [Column]) {
        match self.batch.columns.split_first_mut() {
            Some((Column { values: Values::Time(times), .. }, fields)) => (times, fields),
            _ => panic!("BUG: column 0 is the time"),
        }
    }

    /// Counts rows of a series that were added.
    fn count(&mut self, run: SeriesRun) {
        match self.batch.runs.last_mut() {
            Some(last) if last.series == run.series => last.rows += run.rows,
            _ => self.batch.runs.push(run),
        }
        self.batch.rows += run.rows as usize;
    }

    /// What was added since the last batch, if anything.
    pub(super) fn finish(&mut self) -> Option<ScanItem> {
        if !self.summaries.spans.is_empty() {
            return Some(ScanItem::Summaries(std::mem::take(&mut self.summaries)));
        }
        if self.batch.rows == 0 {
            return None;
        }
        Some(ScanItem::Rows(std::mem::replace(&mut self.batch, self.empty.clone())))
    }
}
