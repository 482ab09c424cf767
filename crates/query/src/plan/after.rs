//! What is done with the rows of a result: HAVING, ORDER BY other columns than time, and LIMIT where
//! one of these is there. None of it exists in InfluxDB.

use influxql::{Expr, SortField, VarRef};
use model::{FieldType, Name};

use super::compile::Compiled;
use super::{Condition, Output, SlotSource, types};
use crate::QueryError;
use crate::exec::predicate::Predicate;

/// The last steps of a SELECT, within each series of its result: first HAVING, then ORDER BY, then
/// LIMIT.
#[derive(Debug)]
pub(crate) struct After {
    /// Which rows are kept.
    pub having: Option<Having>,
    /// What they are sorted by, the most important first; empty: they stay in order.
    pub order: Vec<SortKey>,
    /// Rows of a series at most; 0: no limit.
    pub limit: u64,
    /// Rows left out before.
    pub offset: u64,
}

/// A condition on rows of a result.
#[derive(Debug)]
pub(crate) struct Having {
    /// The condition, over `slots`.
    pub predicate: Predicate,
    /// What its slots are.
    pub slots: Vec<HavingSlot>,
}

/// What a condition on rows of a result looks at.
#[derive(Debug)]
pub(crate) enum HavingSlot {
    /// A column of the result; 0 is the time.
    Column(usize),
    /// A grouped tag.
    Tag(Name),
}

/// A column that rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SortKey {
    /// The column of the result; 0 is the time.
    pub column: usize,
    /// Smallest first. Rows without a value are the last either way.
    pub ascending: bool,
}

/// The last steps of a SELECT with these outputs and dimensions of its own; `None`: there are none
/// that the executor does not know by itself.
///
/// # Errors
/// [`QueryError::Invalid`] for names that are neither.
pub(crate) fn resolve(
    compiled: &Compiled,
    outputs: &[Output],
    dimensions: &[Name],
) -> Result<Option<Box<After>>, QueryError> {
    if compiled.having.is_none() && compiled.order.is_empty() {
        return Ok(None);
    }
    let having = match &compiled.having {
        Some(condition) => Some(having(condition, outputs, dimensions)?),
        None => None,
    };
    let time = compiled.time_column.as_deref().unwrap_or("time");
    let order = compiled.order.iter().map(|field| sort_key(field, time, outputs));
    Ok(Some(Box::new(After {
        having,
        order: order.collect::<Result<_, _>>()?,
        limit: compiled.limit,
        offset: compiled.offset,
    })))
}

fn sort_key(field: &SortField, time: &str, outputs: &[Output]) -> Result<SortKey, QueryError> {
    // Without a name it is the time.
    let name = field.name.as_deref().unwrap_or("time");
    let column = match column_of(name, outputs) {
        Some(at) => at,
        None if name == "time" || name == time => 0,
        None => {
            return Err(QueryError::invalid(format!(
                "ORDER BY {name}: the result has no such column"
            )));
        }
    };
    Ok(SortKey { column, ascending: field.ascending })
}

/// The column of the result that is called `name`, or that a query around it would call so.
fn column_of(name: &str, outputs: &[Output]) -> Option<usize> {
    let column = outputs.iter().position(|output| *output.column == *name);
    let reference = || outputs.iter().position(|output| output.reference == name);
    column.or_else(reference).map(|at| at + 1)
}

fn having(condition: &Expr, outputs: &[Output], dimensions: &[Name]) -> Result<Having, QueryError> {
    for var in influxql::visit::var_refs(condition) {
        let is_tag = dimensions.iter().any(|tag| **tag == *var.name);
        if column_of(&var.name, outputs).is_none() && !is_tag {
            return Err(QueryError::invalid(format!(
                "HAVING {}: the result has neither such a column nor such a tag",
                var.name
            )));
        }
    }
    let resolve = |var: &VarRef| match column_of(&var.name, outputs) {
        Some(at) => {
            let data_type = outputs[at - 1].data_type.and_then(types::field_type);
            let stored = data_type.unwrap_or(FieldType::Float);
            // Columns are told apart by their place: names may be there twice.
            SlotSource::Field { name: at.to_string().into(), stored, wanted: stored }
        }
        None => SlotSource::Tag(var.name.as_str().into()),
    };
    let condition = Condition::for_rows(Some(condition), &resolve)?;
    let slot = |source: &SlotSource| match source {
        SlotSource::Field { name, .. } => {
            HavingSlot::Column(name.parse().expect("BUG: a column is named by its place"))
        }
        SlotSource::Tag(name) => HavingSlot::Tag(name.clone()),
        SlotSource::Missing(_) => panic!("BUG: every name was found"),
    };
    Ok(Having {
        slots: condition.slots.iter().map(slot).collect(),
        predicate: condition.predicate.unwrap_or(Predicate::Constant(true)),
    })
}
