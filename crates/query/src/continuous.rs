//! Continuous queries: how they are created, shown, and run over the past.
//!
//! `schedule` says when one is to be run over what, `status` remembers how that went.
//!
//! Not here: the clock that runs them (see `server`), where they are kept (see `catalog`).

mod schedule;
mod status;

use std::sync::Arc;

use catalog::Database;
use influxql::{
    CreateContinuousQuery, Expr, Measurement, SelectStatement, Source, Statement, TimeRange, Utc,
    split_condition,
};
use model::{Column, Values};

pub use schedule::{ContinuousRun, ContinuousSchedule, ContinuousWork};
pub use status::{ContinuousStatus, LastRun};

use crate::answer::{header, text_column};
use crate::exec::stream::Part;
use crate::shards::time_text;
use crate::{Answer, QueryContext, QueryError};

pub(crate) use status::show as show_status;

/// Creates a continuous query.
pub(crate) fn create(
    create: &CreateContinuousQuery,
    context: &QueryContext,
) -> Result<(), QueryError> {
    let mut complete = create.clone();
    complete_names(&mut complete.select, &create.database, context)?;
    let text = Statement::CreateContinuousQuery(complete).to_string();
    context.catalog.create_continuous_query(&create.database, &create.name, &text)?;
    Ok(())
}

/// Gives every measurement its database and policy: those of the request, or else `own`.
fn complete_names(
    select: &mut SelectStatement,
    own: &str,
    context: &QueryContext,
) -> Result<(), QueryError> {
    if let Some(target) = &mut select.into {
        complete_name(&mut target.database, &mut target.retention_policy, own, context)?;
    }
    select.sources.iter_mut().try_for_each(|source| complete_source(source, own, context))
}

fn complete_source(
    source: &mut Source,
    own: &str,
    context: &QueryContext,
) -> Result<(), QueryError> {
    match source {
        Source::SubQuery(inner) => complete_names(inner, own, context),
        Source::Measurement(Measurement { database, retention_policy, .. }) => {
            complete_name(database, retention_policy, own, context)
        }
        Source::Join(join) => {
            let mut sides = join.sides_mut();
            sides.try_for_each(|side| complete_source(&mut side.source, own, context))
        }
    }
}

fn complete_name(
    database: &mut Option<String>,
    policy: &mut Option<String>,
    own: &str,
    context: &QueryContext,
) -> Result<(), QueryError> {
    let is_missing = |name: &Option<String>| name.as_ref().is_none_or(String::is_empty);
    if is_missing(database) {
        *database = Some(context.database.as_deref().unwrap_or(own).to_owned());
    }
    let name = database.as_deref().unwrap_or(own);
    let snapshot = context.catalog.snapshot();
    let missing = || QueryError::invalid(format!("database not found: {name}"));
    let found = snapshot.database(name).ok_or_else(missing)?;
    if is_missing(policy) {
        *policy = Some(found.default_policy.to_string());
    }
    Ok(())
}

/// Runs SHOW CONTINUOUS QUERIES: a series for each database that may be seen.
pub(crate) fn show(context: &QueryContext) -> Answer {
    let catalog = context.catalog.snapshot();
    let part = |database: &Arc<Database>| {
        let queries = database.continuous_queries.iter();
        let columns = vec![
            text_column(queries.clone().map(|query| &*query.name)),
            text_column(queries.map(|query| &*query.text)),
        ];
        Part::new(header(&database.name, &["name", "query"]), columns)
    };
    let seen = catalog.databases().iter().filter(|database| context.sees(database.id));
    Answer::ready(seen.map(part).collect())
}

/// Runs RUN CONTINUOUS QUERY: computes the windows that have ended and hold a time of `condition`, as
/// one SELECT INTO over all of them.
pub(crate) fn run(
    name: &str,
    database: &str,
    condition: Option<&Expr>,
    context: &QueryContext,
) -> Result<Answer, QueryError> {
    let catalog = context.catalog.snapshot();
    let missing = || QueryError::invalid(format!("database not found: {database}"));
    let found = catalog.database(database).ok_or_else(missing)?;
    let query = found.continuous_queries.iter().find(|query| *query.name == *name);
    let missing = || QueryError::invalid(format!("continuous query not found: {name}"));
    let text = &query.ok_or_else(missing)?.text;
    let time = times(condition, context.now_ns)?;
    let schedule = ContinuousSchedule::parse(text, context.now_ns)?.ok_or_else(|| {
        QueryError::invalid(format!(
            "continuous query {name} has no GROUP BY time(): there are no windows to run it over"
        ))
    })?;
    let of_query =
        QueryContext { database: Some(database.to_owned()), policy: None, ..context.clone() };
    let work = schedule.past(time, context.now_ns);
    let written = work.as_ref().map_or(Ok(0), |work| work.run(&of_query))?;
    let start = work.as_ref().and_then(|work| work.start_ns).map(time_text);
    let end = work.as_ref().map(|work| time_text(work.end_ns));
    let columns = vec![
        text_column([start.as_deref().unwrap_or("")].into_iter()),
        text_column([end.as_deref().unwrap_or("")].into_iter()),
        Column::new(Values::Integer(vec![written.cast_signed()])),
    ];
    Ok(Answer::ready(vec![Part::new(header("result", &["start", "end", "written"]), columns)]))
}

/// The times of a condition that may have nothing else.
fn times(condition: Option<&Expr>, now_ns: i64) -> Result<TimeRange, QueryError> {
    let Some(condition) = condition else { return Ok(TimeRange::default()) };
    let (rest, time) = split_condition(condition, now_ns, &Utc)?;
    match rest {
        None => Ok(time),
        Some(rest) => Err(QueryError::invalid(format!(
            "RUN CONTINUOUS QUERY takes times alone in WHERE, not {rest}"
        ))),
    }
}
