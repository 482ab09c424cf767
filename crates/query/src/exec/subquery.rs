//! The result of an inner SELECT as a source of the one around it.
//!
//! Output series of the inner query are the series, its dimensions the tags, its columns the fields.
//! An inner query that only picks and computes columns is read through (`projected`): nothing is
//! kept. Any other one runs to its end and its rows are kept (`kept`), within the memory budget.

mod kept;
mod projected;

pub(super) use kept::{KeptUse, tag_column};

use model::{FieldType, Name};
use store::Scan;

use crate::plan::{Select, SubquerySource};
use crate::{QueryContext, QueryError};

/// A subquery's rows of one name.
pub(crate) struct SubqueryScan {
    pub name: Name,
    pub scan: Box<dyn Scan>,
}

/// The rows of a subquery with the columns `fields` and the tags `tags`, to be read as `usage` says.
pub(crate) fn scans(
    source: &SubquerySource,
    fields: &[(Name, FieldType)],
    tags: &[Name],
    usage: KeptUse,
    context: &QueryContext,
) -> Result<Vec<SubqueryScan>, QueryError> {
    let outputs = output_positions(&source.select, fields);
    if projected::is_possible(&source.select) {
        return projected::scans(&source.select, &outputs, tags, usage.ascending, context);
    }
    kept::scans(&source.select, &outputs, tags, usage, context)
}

/// The outputs that are wanted, with the types they are read as.
fn output_positions(select: &Select, fields: &[(Name, FieldType)]) -> Vec<(usize, FieldType)> {
    let position = |(name, field_type): &(Name, FieldType)| {
        let at = select.outputs.iter().position(|output| *output.reference == **name);
        (at.expect("BUG: the plan found this column"), *field_type)
    };
    fields.iter().map(position).collect()
}
