//! Answers about names, as the store hands them out.

use std::sync::Arc;

use model::{Column, ColumnBatch, Name, SeriesHeader, TagExpr, Values};
use store::{MetadataCursor, MetadataRequest};

use crate::exec::column::{slice, take, undictionary};
use crate::exec::stream::Part;
use crate::plan::metadata;
use crate::{QueryContext, QueryError};

/// How rows of names are shown.
pub(crate) enum Shape {
    /// One series with one column of the facts.
    Flat { header: Arc<SeriesHeader>, column: usize },
    /// A series for each measurement (the first column), with the other columns under these names;
    /// of tag values only those that `value` accepts.
    Measurement { columns: Arc<[Name]>, value: Option<TagExpr> },
}

/// What LIMIT and OFFSET leave; a limit of 0 is none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub rows: u64,
    pub rows_offset: u64,
}

impl Limits {
    /// Limits on rows only.
    pub(crate) fn rows(limit: u64, offset: u64) -> Self {
        Self { rows: limit, rows_offset: offset }
    }
}

/// A running SHOW.
pub(crate) struct NameStream {
    cursor: Box<dyn MetadataCursor>,
    context: QueryContext,
    shape: Shape,
    limits: Limits,
    /// The batch being handed out, and its rows that are.
    batch: Option<(ColumnBatch, usize)>,
    /// The series being handed out.
    header: Option<Arc<SeriesHeader>>,
    /// Rows of the series so far, left out ones included.
    rows: u64,
    finished: bool,
}

impl NameStream {
    /// Starts asking.
    pub(crate) fn open(
        mut request: MetadataRequest,
        shape: Shape,
        limits: Limits,
        context: &QueryContext,
    ) -> Result<Self, QueryError> {
        let filtered = matches!(shape, Shape::Measurement { value: Some(_), .. });
        if limits.rows > 0 && !filtered {
            request.facts_max = Some(limits.rows.saturating_add(limits.rows_offset));
        }
        Ok(Self::new(metadata(request, context)?, shape, limits, context))
    }

    /// Names that something else than the store's index hands out, in its form.
    pub(crate) fn new(
        cursor: Box<dyn MetadataCursor>,
        shape: Shape,
        limits: Limits,
        context: &QueryContext,
    ) -> Self {
        Self {
            cursor,
            context: context.clone(),
            shape,
            limits,
            batch: None,
            header: None,
            rows: 0,
            finished: false,
        }
    }

    /// The next names.
    pub(crate) fn next(&mut self) -> Result<Option<Part>, QueryError> {
        while !self.finished {
            if self.batch.is_none() {
                self.context.interrupt.check()?;
                match self.cursor.next()? {
                    Some(batch) => self.batch = Some((self.wanted(batch), 0)),
                    None => break,
                }
            }
            if let Some(part) = self.part() {
                return Ok(Some(part));
            }
        }
        Ok(None)
    }

    /// The rows whose value is wanted.
    fn wanted(&self, mut batch: ColumnBatch) -> ColumnBatch {
        batch.columns.iter_mut().for_each(undictionary);
        let Shape::Measurement { value: Some(value), .. } = &self.shape else { return batch };
        let texts = match batch.columns.last().map(|column| &column.values) {
            Some(Values::String(texts)) => texts.clone(),
            _ => return batch,
        };
        let holds = |row: &u32| value.evaluate(&|_| texts.get(*row as usize));
        let rows: Vec<u32> = (0..batch.rows as u32).filter(holds).collect();
        let columns = batch.columns.iter().map(|column| take(column, &rows)).collect();
        ColumnBatch { rows: rows.len(), runs: Vec::new(), columns }
    }

    /// The next rows of the current batch that belong to one series and are within the limits.
    fn part(&mut self) -> Option<Part> {
        let (batch, from) = self.batch.take()?;
        if from == batch.rows {
            return None;
        }
        let to = match &self.shape {
            Shape::Flat { header, .. } => {
                if self.header.is_none() {
                    self.header = Some(Arc::clone(header));
                }
                batch.rows
            }
            Shape::Measurement { columns, .. } => {
                let names = measurement(&batch);
                let name = names.get(from);
                if self.header.as_ref().is_none_or(|header| &*header.name != name) {
                    let columns = Arc::clone(columns);
                    let header =
                        SeriesHeader { name: name.into(), columns, ..SeriesHeader::default() };
                    self.header = Some(Arc::new(header));
                    self.rows = 0;
                }
                from + (from..batch.rows).take_while(|row| names.get(*row) == name).count()
            }
        };
        let part = self.limited(&batch, from, to);
        self.batch = (to < batch.rows).then_some((batch, to));
        part
    }

    fn limited(&mut self, batch: &ColumnBatch, from: usize, to: usize) -> Option<Part> {
        let header = Arc::clone(self.header.as_ref()?);
        let Limits { rows, rows_offset } = self.limits;
        let before = self.rows;
        self.rows += (to - from) as u64;
        let end = if rows == 0 { u64::MAX } else { rows_offset.saturating_add(rows) };
        let first = rows_offset.clamp(before, self.rows) - before;
        let last = end.clamp(before, self.rows) - before;
        if matches!(self.shape, Shape::Flat { .. }) && self.rows >= end {
            self.finished = true;
        }
        if first >= last {
            return None;
        }
        let range = from + first as usize..from + last as usize;
        let columns: Vec<Column> = match &self.shape {
            Shape::Flat { column, .. } => vec![slice(&batch.columns[*column], range)],
            Shape::Measurement { .. } => {
                batch.columns[1..].iter().map(|column| slice(column, range.clone())).collect()
            }
        };
        Some(Part::new(header, columns))
    }
}

fn measurement(batch: &ColumnBatch) -> &model::Strings {
    match &batch.columns[0].values {
        Values::String(texts) => texts,
        other => panic!("BUG: names are text, not {other:?}"),
    }
}
