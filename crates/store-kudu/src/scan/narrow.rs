//! Rows put together from the values of a narrow table, which come in the order of series, time and
//! field.

use kudu_client::{Predicate, ScanBatch, Scanner};
use model::{Column, FieldType, TimeRange, Values};
use store::StoreError;

use super::View;
use super::decode::{Block, column_of, empty_columns};
use super::stream::{Piece, narrow_builder};
use crate::layout::{FIELD_ID, narrow_column};

/// Fields that servers are sent a list of; beyond, they send all.
const LIST_MAX: usize = 200;

/// What a scan reads of a narrow table.
pub(super) struct NarrowView {
    pub(super) table: kudu_client::Table,
    pub(super) measurement: i64,
    /// Numbers of the fields asked for, ascending, and which of the request's they are.
    pub(super) fields: Vec<(i32, usize)>,
    /// Types with a column of values to read, in the order of reading.
    pub(super) types: Vec<FieldType>,
    /// Whether its buckets are those of the wide table.
    pub(super) is_aligned: bool,
}

impl NarrowView {
    /// Names of the columns of values.
    pub(super) fn values(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.types.iter().map(|field_type| narrow_column(*field_type))
    }

    /// Which fields servers should send, if not all.
    pub(super) fn filter(&self) -> Option<Predicate> {
        let numbers = self.fields.iter().map(|(number, _)| *number);
        (self.fields.len() <= LIST_MAX).then(|| Predicate::in_list(FIELD_ID, numbers))
    }
}

/// Reads rows of a narrow table.
pub(super) struct NarrowReader<'a> {
    view: &'a View,
    narrow: &'a NarrowView,
    piece: &'a Piece,
    scanner: Option<Scanner>,
    cells: Cells,
    /// Rows put together so far; the last may still get values.
    rows: Block,
    /// Rows that are handed over together.
    rows_max: usize,
}

/// Values as they came, and how far they are read.
#[derive(Default)]
struct Cells {
    /// Empty: of the piece's only one.
    series: Vec<i64>,
    times: Vec<i64>,
    fields: Vec<i32>,
    /// By type read.
    values: Vec<Column>,
    at: usize,
}

impl<'a> NarrowReader<'a> {
    pub(super) fn open(
        view: &'a View,
        narrow: &'a NarrowView,
        piece: &'a Piece,
        time: TimeRange,
    ) -> Result<Self, StoreError> {
        let scan = narrow_builder(view, narrow, piece, time);
        let scanner = Some(scan.open().map_err(|error| view.failed(error))?);
        let rows = Block::empty(&empty_columns(view));
        let row_bytes = (view.request.fields.len() + 2) * 8;
        let rows_max = (piece.batch_bytes as usize / row_bytes).max(1);
        Ok(Self { view, narrow, piece, scanner, cells: Cells::default(), rows, rows_max })
    }

    /// The next rows. They have at least one value each.
    pub(super) async fn next(&mut self) -> Result<Option<Block>, StoreError> {
        loop {
            if self.put_together() {
                // The last row may go on in the next answer.
                let complete = self.rows.rows() - 1;
                return Ok(Some(self.take(complete)));
            }
            let Some(scanner) = &mut self.scanner else { return Ok(None) };
            match scanner.next().await.map_err(|error| self.view.failed(error))? {
                Some(batch) => self.cells = self.decode(&batch)?,
                None => {
                    self.view.ended(scanner).await?;
                    self.scanner = None;
                    let rows = self.rows.rows();
                    return Ok((rows > 0).then(|| self.take(rows)));
                }
            }
        }
    }

    fn decode(&self, batch: &ScanBatch) -> Result<Cells, StoreError> {
        let mut cells = Cells::default();
        let mut at = 0;
        if self.piece.ids.len() > 1 {
            cells.series = batch.column(0).i64s().collect();
            at = 1;
        }
        cells.times = batch.column(at).i64s().collect();
        cells.fields = batch.column(at + 1).i32s().collect();
        for (field_type, column) in self.narrow.types.iter().zip(at + 2..) {
            cells.values.push(column_of(batch.column(column), *field_type)?);
        }
        Ok(cells)
    }

    /// Puts values into rows; `true`: there are as many as are handed over together.
    fn put_together(&mut self) -> bool {
        let only = self.piece.ids.first().copied().unwrap_or_default();
        while let Some(time) = self.cells.times.get(self.cells.at).copied() {
            let at = self.cells.at;
            let series = self.cells.series.get(at).copied().unwrap_or(only);
            let field = self.cells.fields.get(at).copied().unwrap_or_default();
            let fields = &self.narrow.fields;
            let known = fields.binary_search_by_key(&field, |(number, _)| *number).ok();
            let wanted = known.filter(|_| self.piece.ids.binary_search(&series).is_ok());
            if let Some((_, index)) = wanted.and_then(|at| fields.get(at)) {
                let is_same = self.rows.last_key() == Some((series, time));
                if !is_same && self.rows.rows() > self.rows_max {
                    return true;
                }
                if !is_same {
                    self.rows.push_key(series, time, self.piece.ids.len() == 1);
                }
                let row = self.rows.rows() - 1;
                if let Some(column) = self.rows.columns.get_mut(*index) {
                    self.cells.copy(at, column, row);
                }
            }
            self.cells.at += 1;
        }
        false
    }

    /// Takes the first rows, all columns as long as each other.
    fn take(&mut self, rows: usize) -> Block {
        let mut taken = std::mem::replace(&mut self.rows, Block::empty(&empty_columns(self.view)));
        let all = taken.rows();
        if rows < all {
            // What is left has its values so far, and may get more.
            self.rows.extend_keys(&taken, rows..all);
            for (left, column) in self.rows.columns.iter_mut().zip(&taken.columns) {
                left.extend_from(column, rows.min(column.len())..column.len());
            }
        }
        for column in &mut taken.columns {
            column.extend_missing(all - column.len());
        }
        taken.truncate(rows);
        super::stream::count(self.view, &taken);
        taken
    }
}

impl Cells {
    /// Copies the value at `at` to row `row` of a column that may be shorter.
    fn copy(&self, at: usize, to: &mut Column, row: usize) {
        to.extend_missing(row.saturating_sub(to.len()));
        if to.len() > row {
            return;
        }
        for from in self.values.iter().filter(|from| from.is_valid(at)) {
            match (&mut to.values, &from.values) {
                (Values::Float(to), Values::Float(from)) => to.push(from[at]),
                (Values::Integer(to), Values::Integer(from)) => to.push(from[at]),
                (Values::Unsigned(to), Values::Integer(from)) => {
                    to.push(from[at].cast_unsigned());
                }
                (Values::Boolean(to), Values::Boolean(from)) => to.push(from.get(at)),
                (Values::String(to), Values::String(from)) => to.push(from.get(at)),
                _ => continue,
            }
            if let Some(validity) = &mut to.validity {
                validity.push(true);
            }
            return;
        }
    }
}
