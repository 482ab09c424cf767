//! A running SELECT, with or without functions, as a stream of result columns.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use model::{Column, ColumnBatch, SeriesHeader, Values};

use super::after::Finisher;
use super::aggregate::{Aggregate, Together};
use super::column::{hide_nan, slice};
use super::expression::{Division, Expression};
use super::raw::Raw;
use super::rows::Block;
use super::unit::{Unit, UnitStats};
use crate::plan::Select;
use crate::{QueryContext, QueryError};

/// A running SELECT.
pub(crate) struct SelectStream {
    select: Arc<Select>,
    rows: Rows,
    /// HAVING and ORDER BY, where there are any.
    after: Option<Box<Finisher>>,
}

enum Rows {
    Raw(Box<Raw>),
    Aggregate(Box<Aggregate>),
}

/// Some rows of one output series: the time, then the outputs.
#[derive(Debug)]
pub(crate) struct Part {
    pub header: Arc<SeriesHeader>,
    /// Rows of this series and maybe of others.
    pub batch: Arc<ColumnBatch>,
    /// Which of them are meant.
    pub range: Range<usize>,
}

impl Part {
    /// All rows of some columns.
    pub(crate) fn new(header: Arc<SeriesHeader>, columns: Vec<Column>) -> Self {
        let rows = columns.first().map_or(0, Column::len);
        let batch = Arc::new(ColumnBatch { rows, runs: Vec::new(), columns });
        Self { header, batch, range: 0..rows }
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.range.len()
    }

    /// Leaves only `rows` of the rows.
    pub(crate) fn narrow(&mut self, rows: Range<usize>) {
        self.range = self.range.start + rows.start..self.range.start + rows.end;
    }

    /// The rows of a column that are meant.
    pub(crate) fn column(&self, at: usize) -> Cow<'_, Column> {
        let column = &self.batch.columns[at];
        if self.range == (0..self.batch.rows) {
            return Cow::Borrowed(column);
        }
        Cow::Owned(slice(column, self.range.clone()))
    }
}

impl SelectStream {
    /// Pins what is read and runs subqueries.
    pub(crate) fn open(select: Arc<Select>, context: &QueryContext) -> Result<Self, QueryError> {
        check_buckets(&select, context)?;
        let rows = if select.is_raw() {
            Rows::Raw(Box::new(Raw::open(Arc::clone(&select), context.clone())?))
        } else {
            Rows::Aggregate(Box::new(Aggregate::open(Arc::clone(&select), context.clone())?))
        };
        let after = select.after.as_deref();
        let after = after.map(|after| Box::new(Finisher::new(after, context)));
        Ok(Self { select, rows, after })
    }

    /// The plan.
    pub(crate) fn select(&self) -> &Select {
        &self.select
    }

    /// What is read.
    pub(crate) fn units(&self) -> Vec<&Unit> {
        match &self.rows {
            Rows::Raw(raw) => raw.units().collect(),
            Rows::Aggregate(aggregate) => aggregate.units().collect(),
        }
    }

    /// What was read so far.
    pub(crate) fn stats(&self) -> Vec<UnitStats> {
        match &self.rows {
            Rows::Raw(raw) => raw.stats(),
            Rows::Aggregate(aggregate) => aggregate.stats(),
        }
    }

    /// Whether the next rows are there already, and nothing has to be read for them.
    pub(crate) fn is_ready(&self) -> bool {
        self.after.is_none()
            && match &self.rows {
                Rows::Raw(raw) => raw.is_ready(),
                Rows::Aggregate(aggregate) => aggregate.is_ready(),
            }
    }

    /// The rows of the next groups, a row each, where they come together; not after [`Self::next`].
    pub(crate) fn next_together(&mut self) -> Result<Option<Together<'_>>, QueryError> {
        match &mut self.rows {
            Rows::Aggregate(aggregate) if self.after.is_none() => aggregate.next_together(),
            _ => Ok(None),
        }
    }

    /// The next rows; with functions at most `rows_max`.
    pub(crate) fn next(&mut self, rows_max: usize) -> Result<Option<Part>, QueryError> {
        match (&mut self.after, &self.select.after) {
            (Some(finisher), Some(after)) => {
                finisher.next(after, rows_max, || self.rows.next(rows_max))
            }
            _ => self.rows.next(rows_max),
        }
    }
}

impl Rows {
    fn next(&mut self, rows_max: usize) -> Result<Option<Part>, QueryError> {
        match self {
            Self::Raw(raw) => raw.next(),
            Self::Aggregate(aggregate) => aggregate.next(rows_max),
        }
    }
}

/// The result columns of some rows: the time, then the outputs.
pub(crate) fn outputs(select: &Select, block: Block) -> Vec<Column> {
    let rows = block.times.len();
    let mut columns = Vec::with_capacity(select.outputs.len() + 1);
    columns.push(Column::new(Values::Time(block.times)));
    if let Some(order) = plain_slots(select) {
        let mut slots: Vec<Option<Column>> = block.slots.into_iter().map(Some).collect();
        let taken = |slot: usize| slots[slot].take();
        columns.extend(order.into_iter().filter_map(taken));
    } else {
        let slots: Vec<&Column> = block.slots.iter().collect();
        for output in &select.outputs {
            let column = output.expression.evaluate(&slots, rows, Division::Float);
            columns.push(column.into_owned());
        }
    }
    columns.iter_mut().for_each(hide_nan);
    columns
}

/// The slots shown, if each is shown once and as it is.
fn plain_slots(select: &Select) -> Option<Vec<usize>> {
    let mut seen = vec![false; select.calls.len() + select.aux.len()];
    let mut order = Vec::with_capacity(select.outputs.len());
    for output in &select.outputs {
        let Expression::Slot(slot) = output.expression else { return None };
        if std::mem::replace(&mut seen[slot], true) {
            return None;
        }
        order.push(slot);
    }
    Some(order)
}

/// Refuses more windows than configured.
fn check_buckets(select: &Select, context: &QueryContext) -> Result<(), QueryError> {
    let limit = context.limits.max_select_buckets;
    let Some(windows) = select.windows.as_ref().filter(|_| limit > 0) else { return Ok(()) };
    if !select.has_lower_bound() || select.range.is_empty() {
        return Ok(());
    }
    let first = windows.at(select.range.min).start;
    let last = windows.at(select.range.max.saturating_sub(1).max(select.range.min)).start;
    let buckets = windows.steps(first, last) + 1;
    if buckets > i128::from(limit) {
        return Err(QueryError::Limit(format!(
            "max-select-buckets limit exceeded: ({buckets}/{limit})"
        )));
    }
    Ok(())
}
