//! `SELECT ... INTO`: rows of the answer become rows of other measurements.
//!
//! Columns become fields, grouped tags become tags, and so do the tags that `top()` and `bottom()`
//! take values apart by. A missing value is not written, nor a row without values. Of columns with
//! one name the last counts.

mod rows;

use influxql::{IntoTarget, SelectStatement, TargetName};
use model::{Column, Name, Values};
use store::Policy;

use self::rows::RowBatch;
use crate::answer::header;
use crate::exec::expression::Expression;
use crate::exec::stream::{Part, SelectStream};
use crate::execute::plan;
use crate::plan::{ColumnKind, Select};
use crate::{Answer, QueryContext, QueryError};

/// Rows that are read and written at a time.
const WRITE_ROWS: usize = 5000;

/// Runs the SELECT and writes its rows.
///
/// # Errors
/// Unknown targets, rows that the store refuses, whatever the SELECT fails with.
pub(crate) fn select_into(
    statement: &SelectStatement,
    target: &IntoTarget,
    context: &QueryContext,
) -> Result<Answer, QueryError> {
    let written = copy(statement, target, context)?;
    let columns = vec![
        Column::new(Values::Time(vec![0])),
        Column::new(Values::Integer(vec![written.cast_signed()])),
    ];
    let part = Part::new(header("result", &["time", "written"]), columns);
    Ok(Answer::ready(vec![part]))
}

/// Runs the SELECT and writes its rows; gives their number.
///
/// # Errors
/// As [`select_into`].
pub(crate) fn copy(
    statement: &SelectStatement,
    target: &IntoTarget,
    context: &QueryContext,
) -> Result<u64, QueryError> {
    if context.read_only {
        return Err(QueryError::ReadOnly);
    }
    let policy = policy(target, context)?;
    let select = std::sync::Arc::new(plan(statement, context)?);
    let shape = Shape::of(&select)?;
    let mut stream = SelectStream::open(select, context)?;
    let mut batch = RowBatch::new(context)?;
    let mut written = 0u64;
    while let Some(part) = stream.next(WRITE_ROWS)? {
        context.interrupt.check()?;
        let measurement = match &target.name {
            TargetName::Name(name) => Name::from(name.as_str()),
            TargetName::SourceName => part.header.name.clone(),
        };
        for from in (0..part.rows()).step_by(WRITE_ROWS) {
            let to = part.rows().min(from + WRITE_ROWS);
            batch.add(&measurement, &part, &shape, from..to)?;
            written += write(&mut batch, policy, context, WRITE_ROWS)?;
        }
    }
    written += write(&mut batch, policy, context, 1)?;
    Ok(written)
}

/// The policy that rows go to.
fn policy(target: &IntoTarget, context: &QueryContext) -> Result<Policy, QueryError> {
    let own = target.database.as_deref().filter(|name| !name.is_empty());
    let database = own
        .or(context.database.as_deref())
        .ok_or_else(|| QueryError::invalid("database name required"))?;
    let given = target.retention_policy.as_deref().filter(|name| !name.is_empty());
    // The request's policy goes with the request's database.
    let policy = given.or(if own.is_none() { context.policy.as_deref() } else { None });
    Ok(context.catalog.snapshot().resolve(database, policy)?)
}

/// Writes the rows gathered, if there are at least `rows_min`.
fn write(
    batch: &mut RowBatch,
    policy: Policy,
    context: &QueryContext,
    rows_min: usize,
) -> Result<u64, QueryError> {
    if batch.len() < rows_min {
        return Ok(0);
    }
    let outcome = batch.write(policy, context)?;
    match outcome.rejected.first() {
        None => Ok(outcome.rows_written),
        Some(first) => {
            let dropped = outcome.rejected.len();
            Err(QueryError::invalid(format!("partial write: {} dropped={dropped}", first.reason)))
        }
    }
}

/// What the columns of the answer become.
pub(crate) struct Shape {
    /// Fields: name and column.
    pub fields: Vec<(Name, usize)>,
    /// Tags beside those of the group: name and column.
    pub tags: Vec<(Name, usize)>,
}

impl Shape {
    fn of(select: &Select) -> Result<Self, QueryError> {
        if &*select.time_column != "time" {
            // The text is InfluxDB's, which looks for the column by its name.
            return Err(QueryError::invalid("error finding time index in result"));
        }
        if select.outputs.iter().any(|output| &*output.column == "time") {
            return Err(QueryError::invalid(
                "a column called time cannot be written: INTO needs another name for it",
            ));
        }
        let mut shape = Self { fields: Vec::new(), tags: Vec::new() };
        let chosen_by =
            select.calls.first().map_or(&[] as &[String], |call| call.function.column_args());
        for (at, output) in select.outputs.iter().enumerate() {
            let is_tag = match output.expression {
                Expression::Slot(slot) => {
                    let aux = slot.checked_sub(select.calls.len()).and_then(|a| select.aux.get(a));
                    aux.is_some_and(|aux| {
                        aux.kind == ColumnKind::Tag && chosen_by.iter().any(|n| **n == *aux.name)
                    })
                }
                _ => false,
            };
            let named = if is_tag { &mut shape.tags } else { &mut shape.fields };
            named.retain(|(name, _)| *name != output.column);
            named.push((output.column.clone(), at + 1));
        }
        Ok(shape)
    }
}
