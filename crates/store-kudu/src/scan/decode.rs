//! Buffers as servers send them, as columns.

use std::ops::Range;

use kudu_client::{ColumnView, ScanBatch};
use model::{Bitmap, Column, FieldType, Strings, Values};
use store::StoreError;

use super::View;
use super::stream::{Piece, count};
use crate::error::unintelligible;

/// Rows of a piece, in the order of the key.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Ids; one for all rows if the piece is of one series.
    series: SeriesIds,
    pub(super) times: Vec<i64>,
    /// By field asked for.
    pub(super) columns: Vec<Column>,
}

#[derive(Clone, Debug)]
enum SeriesIds {
    One(i64),
    Many(Vec<i64>),
}

impl Block {
    /// No rows, of columns like these.
    pub(super) fn empty(columns: &[Column]) -> Self {
        let column = |column: &Column| Column::new(column.values.none_like());
        let columns = columns.iter().map(column).collect();
        Self { series: SeriesIds::Many(Vec::new()), times: Vec::new(), columns }
    }

    /// Series and time of the last row.
    pub(super) fn last_key(&self) -> Option<(i64, i64)> {
        let time = self.times.last()?;
        Some((self.series_at(self.rows() - 1), *time))
    }

    /// Adds a row without values; the columns are filled apart.
    pub(super) fn push_key(&mut self, series: i64, time: i64, is_only: bool) {
        match &mut self.series {
            _ if is_only => self.series = SeriesIds::One(series),
            SeriesIds::Many(ids) => ids.push(series),
            SeriesIds::One(_) => {}
        }
        self.times.push(time);
    }

    /// Adds rows of another block without their values.
    pub(super) fn extend_keys(&mut self, other: &Self, rows: Range<usize>) {
        self.times.extend_from_slice(&other.times[rows.clone()]);
        match (&mut self.series, &other.series) {
            (SeriesIds::Many(mine), SeriesIds::Many(theirs)) => {
                mine.extend_from_slice(&theirs[rows]);
            }
            (mine, theirs) => *mine = theirs.clone(),
        }
    }

    /// Leaves the first rows out.
    pub(super) fn skip(&mut self, rows: usize) {
        self.keep_last(self.rows().saturating_sub(rows));
    }

    pub(super) fn rows(&self) -> usize {
        self.times.len()
    }

    /// Memory it takes, bytes, about.
    pub(super) fn memory_bytes(&self) -> usize {
        let columns = self.columns.iter().map(|column| column.values.memory_bytes());
        self.rows() * 8 + columns.sum::<usize>()
    }

    pub(super) fn series_at(&self, row: usize) -> i64 {
        match &self.series {
            SeriesIds::One(id) => *id,
            SeriesIds::Many(ids) => ids.get(row).copied().unwrap_or(i64::MAX),
        }
    }

    /// The end of the rows from `row` on that are of the same series.
    pub(super) fn run_end(&self, row: usize) -> usize {
        match &self.series {
            SeriesIds::One(_) => self.rows(),
            SeriesIds::Many(ids) => {
                let id = self.series_at(row);
                row + ids.get(row..).unwrap_or_default().partition_point(|other| *other == id)
            }
        }
    }

    /// Keeps the first rows.
    pub(super) fn truncate(&mut self, rows: usize) {
        if rows < self.rows() {
            self.keep(std::slice::from_ref(&(0..rows)));
        }
    }

    /// Keeps the last rows.
    pub(super) fn keep_last(&mut self, rows: usize) {
        if rows < self.rows() {
            self.keep(std::slice::from_ref(&(self.rows() - rows..self.rows())));
        }
    }

    /// Keeps the rows that have a value in one of some columns.
    pub(super) fn keep_with_any(&mut self, columns: &[usize]) {
        let has = |row: usize| columns.iter().any(|column| self.columns[*column].is_valid(row));
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for row in (0..self.rows()).filter(|row| has(*row)) {
            match ranges.last_mut() {
                Some(range) if range.end == row => range.end += 1,
                _ => ranges.push(row..row + 1),
            }
        }
        if ranges.as_slice() != std::slice::from_ref(&(0..self.rows())) {
            self.keep(&ranges);
        }
    }

    /// Keeps these rows, in this order.
    pub(super) fn keep(&mut self, ranges: &[Range<usize>]) {
        let pick = |values: &[i64]| -> Vec<i64> {
            ranges.iter().flat_map(|range| values[range.clone()].iter().copied()).collect()
        };
        self.times = pick(&self.times);
        if let SeriesIds::Many(ids) = &mut self.series {
            *ids = pick(ids);
        }
        for column in &mut self.columns {
            let mut kept = Column::new(column.values.none_like());
            ranges.iter().for_each(|range| kept.extend_from(column, range.clone()));
            *column = kept;
        }
    }

    /// Adds the rows of another block of the same piece.
    pub(super) fn append(&mut self, other: &Self) {
        self.times.extend_from_slice(&other.times);
        if let (SeriesIds::Many(mine), SeriesIds::Many(theirs)) = (&mut self.series, &other.series)
        {
            mine.extend_from_slice(theirs);
        }
        for (mine, theirs) in self.columns.iter_mut().zip(&other.columns) {
            mine.extend_from(theirs, 0..theirs.len());
        }
    }

    /// The rows the other way round.
    pub(super) fn reverse(&mut self) {
        self.times.reverse();
        if let SeriesIds::Many(ids) = &mut self.series {
            ids.reverse();
        }
        for column in &mut self.columns {
            let turned = |bits: &Bitmap| (0..bits.len()).rev().map(|at| bits.get(at)).collect();
            column.validity = column.validity.as_ref().map(turned);
            match &mut column.values {
                Values::Time(v) | Values::Integer(v) => v.reverse(),
                Values::Float(v) => v.reverse(),
                Values::Unsigned(v) => v.reverse(),
                Values::Dictionary(v, _) => v.reverse(),
                Values::Boolean(v) => *v = turned(v),
                Values::String(v) => *v = (0..v.len()).rev().map(|at| v.get(at)).collect(),
            }
        }
    }
}

/// The columns of the fields asked for, without rows.
pub(super) fn empty_columns(view: &View) -> Vec<Column> {
    let types = view.request.fields.iter().map(|(_, field_type)| *field_type);
    types.map(|field_type| Column::new(Values::empty(field_type))).collect()
}

/// The rows of a batch that are asked for: of the piece's series, with at least one value.
pub(super) fn decode(view: &View, piece: &Piece, batch: &ScanBatch) -> Result<Block, StoreError> {
    let rows = batch.rows();
    let mut at = 0;
    let series = match &*piece.ids {
        [one] => SeriesIds::One(*one),
        _ => {
            at = 1;
            SeriesIds::Many(batch.column(0).i64s().collect())
        }
    };
    let times: Vec<i64> = batch.column(at).i64s().collect();
    let mut columns = Vec::with_capacity(view.columns.len());
    for ((_, field_type), column) in view.request.fields.iter().zip(&view.columns) {
        columns.push(match column {
            Some(_) => {
                at += 1;
                column_of(batch.column(at), *field_type)?
            }
            None => {
                let mut missing = Column::new(Values::empty(*field_type));
                missing.extend_missing(rows);
                missing
            }
        });
    }
    let mut block = Block { series, times, columns };
    count(view, &block);
    let kept = wanted_rows(&block, piece);
    if kept.len() != 1 || kept.first() != Some(&(0..rows)) {
        block.keep(&kept);
    }
    Ok(block)
}

/// Runs of rows that are asked for.
fn wanted_rows(block: &Block, piece: &Piece) -> Vec<Range<usize>> {
    let rows = block.rows();
    let complete = block.columns.iter().any(|column| column.validity.is_none());
    let has_value = |row: usize| complete || block.columns.iter().any(|c| c.is_valid(row));
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut add = |range: Range<usize>| match runs.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => runs.push(range),
    };
    let mut row = 0;
    while row < rows {
        let end = block.run_end(row);
        if piece.ids.binary_search(&block.series_at(row)).is_ok() {
            if complete {
                add(row..end);
            } else {
                (row..end).filter(|row| has_value(*row)).for_each(|row| add(row..row + 1));
            }
        }
        row = end;
    }
    runs
}

pub(super) fn column_of(view: ColumnView<'_>, field_type: FieldType) -> Result<Column, StoreError> {
    let values = match field_type {
        FieldType::Float => Values::Float(view.f64s().collect()),
        FieldType::Integer => Values::Integer(view.i64s().collect()),
        FieldType::Unsigned => Values::Unsigned(view.i64s().map(i64::cast_unsigned).collect()),
        FieldType::Boolean => Values::Boolean(view.bools().collect()),
        FieldType::String => Values::String(texts(view)?),
    };
    let validity = view.validity().map(|bits| bitmap(bits, view.rows()));
    let validity = validity.filter(|bits| bits.count_ones() < bits.len());
    Ok(Column { values, validity })
}

fn texts(view: ColumnView<'_>) -> Result<Strings, StoreError> {
    let (offsets, _) = view.data().as_chunks::<4>();
    let offsets = offsets.iter().take(view.rows() + 1).map(|bytes| u32::from_le_bytes(*bytes));
    let offsets: Vec<u32> = offsets.collect();
    let end = offsets.last().copied().unwrap_or(0) as usize;
    let bytes = view.text().get(..end).unwrap_or_default().to_vec();
    if offsets.is_empty() {
        return Ok(Strings::new());
    }
    Strings::from_parts(&offsets, bytes)
        .ok_or_else(|| unintelligible("of data", "text that is not UTF-8"))
}

fn bitmap(bytes: &[u8], len: usize) -> Bitmap {
    let word = |at: usize| {
        let mut word = [0_u8; 8];
        let from = bytes.get(at * 8..).unwrap_or_default();
        word.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        u64::from_le_bytes(word)
    };
    Bitmap::from_words((0..len.div_ceil(64)).map(word).collect(), len)
}

#[cfg(test)]
impl Block {
    /// Rows without values.
    pub(super) fn of(keys: &[(i64, i64)]) -> Self {
        let (series, times) = keys.iter().copied().unzip();
        Self { series: SeriesIds::Many(series), times, columns: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_cut_and_turned() {
        let mut block = Block {
            series: SeriesIds::Many(vec![1, 1, 2]),
            times: vec![10, 20, 10],
            columns: vec![Column {
                values: Values::String(["a", "", "c"].into_iter().collect()),
                validity: Some([true, false, true].into_iter().collect()),
            }],
        };
        assert_eq!((block.run_end(0), block.run_end(2)), (2, 3));
        let piece = Piece {
            bucket: 0,
            ids: vec![1, 2].into(),
            sparse: false,
            times: Vec::new(),
            batch_bytes: 1,
            rows_per_series: None,
            with_any: None,
            gather: None,
        };
        assert_eq!(wanted_rows(&block, &piece), [0..1, 2..3]);
        block.append(&block.clone());
        block.reverse();
        assert_eq!(block.times, [10, 20, 10, 10, 20, 10]);
        assert_eq!((block.series_at(0), block.series_at(5)), (2, 1));
        assert!(!block.columns[0].is_valid(1) && block.columns[0].is_valid(2));
        block.keep_last(2);
        assert_eq!(block.times, [20, 10]);
        let mut some = block.clone();
        some.keep_with_any(&[0]);
        assert_eq!(some.times, [10]);
        some.keep_with_any(&[]);
        assert_eq!(some.rows(), 0);
        block.truncate(1);
        assert_eq!((block.rows(), block.columns[0].len()), (1, 1));
    }

    #[test]
    fn bits_are_bits() {
        let bits = bitmap(&[0b101, 0xff], 10);
        assert_eq!(bits.ones().collect::<Vec<_>>(), [0, 2, 8, 9]);
    }
}
