//! One statement, from its tree to its answer.

use std::sync::Arc;

use influxql::{SelectStatement, Statement};
use model::Documents;

use crate::exec::stream::SelectStream;
use crate::plan::{Select, Source, compile, resolve};
use crate::{
    Answer, QueryContext, QueryError, continuous, ddl, delete, explain, into, registry, shards,
    show, subscriptions, users,
};

/// Cells (rows times columns) that are read without delay.
const LIGHT_CELLS_MAX: u64 = 1 << 20;

/// How much work a statement is, roughly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Done in a few milliseconds: run it where it arrived.
    Light,
    /// It may take long: queue it with its like.
    Heavy,
}

/// A statement that is ready to run: checked, planned, its view of the data pinned.
pub struct Prepared {
    context: QueryContext,
    work: Work,
    cost: Cost,
}

enum Work {
    Select(Arc<Select>, Option<SelectStream>),
    Other(Box<Statement>),
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").field("cost", &self.cost).finish_non_exhaustive()
    }
}

/// Runs a statement. What it reads is read as the answer is pulled.
///
/// # Errors
/// [`QueryError`] for what is wrong with the statement; failures of reading come from the answer.
pub fn execute(statement: &Statement, context: &QueryContext) -> Result<Answer, QueryError> {
    prepare(statement, context)?.run()
}

/// How much work a statement is, found without reading rows.
///
/// # Errors
/// As [`execute`].
pub fn estimate(statement: &Statement, context: &QueryContext) -> Result<Cost, QueryError> {
    Ok(prepare(statement, context)?.cost())
}

/// Checks and plans a statement.
///
/// # Errors
/// As [`execute`].
pub fn prepare(statement: &Statement, context: &QueryContext) -> Result<Prepared, QueryError> {
    context.interrupt.check()?;
    let context = context.clone();
    match statement {
        Statement::Select(select) if select.into.is_none() => {
            let plan = Arc::new(plan(select, &context)?);
            let nested = plan.sources.iter().any(|s| !matches!(s, Source::Measurement(_)));
            if nested {
                // Opening would run the inner queries.
                let cost = cost(estimated_cells(&plan, &context)?);
                return Ok(Prepared { context, work: Work::Select(plan, None), cost });
            }
            let stream = SelectStream::open(Arc::clone(&plan), &context)?;
            let cost = cost(cells(&stream));
            Ok(Prepared { context, work: Work::Select(plan, Some(stream)), cost })
        }
        other => {
            let cost = if is_light(other) { Cost::Light } else { Cost::Heavy };
            Ok(Prepared { context, work: Work::Other(Box::new(other.clone())), cost })
        }
    }
}

/// The plan of a SELECT.
pub(crate) fn plan(select: &SelectStatement, context: &QueryContext) -> Result<Select, QueryError> {
    resolve(&compile(select, context.now_ns)?, context)
}

impl Prepared {
    /// How much work it is.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Runs it.
    ///
    /// # Errors
    /// As [`execute`].
    pub fn run(self) -> Result<Answer, QueryError> {
        let context = self.context;
        match self.work {
            Work::Select(_, Some(stream)) => Ok(Answer::select(stream, context.batch_rows)),
            Work::Select(plan, None) => {
                Ok(Answer::select(SelectStream::open(plan, &context)?, context.batch_rows))
            }
            Work::Other(statement) => {
                Ok(run(&statement, &context)?.in_documents(documents(&statement)))
            }
        }
    }
}

fn run(statement: &Statement, context: &QueryContext) -> Result<Answer, QueryError> {
    match statement {
        Statement::Select(select) => match &select.into {
            Some(target) => into::select_into(select, target, context),
            None => panic!("BUG: only rows that are written are read here"),
        },
        Statement::Explain { analyze, select } => explain::explain(select, *analyze, context),
        Statement::ShowQueries => Ok(registry::show(context)),
        Statement::ShowContinuousQueries => Ok(continuous::show(context)),
        Statement::ShowContinuousQueryStatus => Ok(continuous::show_status(context)),
        Statement::RunContinuousQuery { name, database, condition } => {
            continuous::run(name, database, condition.as_ref(), context)
        }
        Statement::ShowSubscriptions => Ok(subscriptions::show(context)),
        Statement::ShowDatabases
        | Statement::ShowRetentionPolicies { .. }
        | Statement::ShowMeasurements(_)
        | Statement::ShowSeries(_)
        | Statement::ShowTagKeys(_)
        | Statement::ShowTagValues(_)
        | Statement::ShowFieldKeys(_)
        | Statement::ShowCardinality(_)
        | Statement::ShowCardinalityBy(_) => show::show(statement, context),
        Statement::Limited { statement, limit, offset } => {
            Ok(run(statement, context)?.limited(*limit, *offset))
        }
        Statement::Delete { sources, condition } => {
            delete::delete(sources, condition.as_ref(), context)
        }
        Statement::DropSeries { sources, condition } => {
            delete::drop_series(sources, condition.as_ref(), context)
        }
        Statement::DropMeasurement { name } => delete::drop_measurement(name, context),
        Statement::ShowShards => shards::show(context),
        Statement::ShowShardGroups => shards::show_groups(context),
        Statement::DropShard { id } => shards::drop(*id, context),
        Statement::ShowUsers => Ok(users::show(context)),
        Statement::ShowGrants { user } => users::show_grants(user, context),
        Statement::CreateUser { .. }
        | Statement::DropUser { .. }
        | Statement::SetPassword { .. }
        | Statement::Grant { .. }
        | Statement::GrantAdmin { .. }
        | Statement::Revoke { .. }
        | Statement::RevokeAdmin { .. } => users::change(statement, context),
        other => ddl::run(other, context),
    }
}

/// What InfluxDB makes a document of in a chunked answer: it cuts rows where they come from its
/// iterators, and sends the other answers as it has them.
fn documents(statement: &Statement) -> Documents {
    match statement {
        Statement::Select(_)
        | Statement::ShowSeries(_)
        | Statement::ShowFieldKeys(_)
        | Statement::ShowCardinality(_) => Documents::Rows,
        Statement::ShowTagKeys(_) | Statement::ShowTagValues(_) => Documents::Series,
        _ => Documents::Statement,
    }
}

fn is_light(statement: &Statement) -> bool {
    match statement {
        Statement::Explain { analyze, .. } => !analyze,
        Statement::ShowSeries(_)
        | Statement::ShowTagValues(_)
        | Statement::ShowCardinality(_)
        | Statement::ShowCardinalityBy(_)
        | Statement::Select(_)
        | Statement::RunContinuousQuery { .. }
        | Statement::Delete { .. }
        | Statement::DropSeries { .. }
        | Statement::DropMeasurement { .. }
        | Statement::DropDatabase { .. }
        | Statement::DropShard { .. }
        | Statement::DropRetentionPolicy { .. } => false,
        _ => true,
    }
}

fn cost(cells: u64) -> Cost {
    if cells <= LIGHT_CELLS_MAX { Cost::Light } else { Cost::Heavy }
}

/// An estimate of the cells that an opened SELECT reads.
fn cells(stream: &SelectStream) -> u64 {
    let select = stream.select();
    let columns = (select.calls.len() + select.aux.len()).max(1) as u64;
    let rows = stream.units().iter().fold(0u64, |sum, unit| {
        let rows = unit.rows_estimate(0..unit.groups.len());
        sum.saturating_add(enough(select, rows, unit.groups.series_count(0..unit.groups.len())))
    });
    rows.saturating_mul(columns)
}

/// The rows that LIMIT leaves to be read.
fn enough(select: &Select, rows: u64, series: usize) -> u64 {
    if select.limit == 0 || !select.is_raw() {
        return rows;
    }
    let each = select.limit.saturating_add(select.offset);
    rows.min(each.saturating_mul(series as u64))
}

/// An estimate of the cells that a SELECT over subqueries reads.
fn estimated_cells(select: &Select, context: &QueryContext) -> Result<u64, QueryError> {
    let mut cells = 0u64;
    for source in &select.sources {
        cells = cells.saturating_add(match source {
            Source::Subquery(inner) => {
                let nested =
                    inner.select.sources.iter().any(|s| !matches!(s, Source::Measurement(_)));
                if nested {
                    estimated_cells(&inner.select, context)?
                } else {
                    self::cells(&SelectStream::open(Arc::clone(&inner.select), context)?)
                }
            }
            // Measurements beside subqueries are rare; they count with what is inside.
            Source::Measurement(_) => 0,
            // How many rows find partners only reading tells.
            Source::Join(_) => u64::MAX,
        });
    }
    Ok(cells)
}
