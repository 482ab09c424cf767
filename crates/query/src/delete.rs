//! DELETE, DROP SERIES, DROP MEASUREMENT.

use influxql::{Expr, Measurement, Utc, split_condition};
use model::{DatabaseId, TagExpr, TimeRange};
use store::{DeleteRequest, DeleteTarget, NameFilter};

use crate::names::{database_id, source_filters};
use crate::plan::{matching, tag_condition, tag_names};
use crate::{Answer, QueryContext, QueryError};

/// Removes rows of matching series within a time range.
pub(crate) fn delete(
    sources: &[Measurement],
    condition: Option<&Expr>,
    context: &QueryContext,
) -> Result<Answer, QueryError> {
    let (series, time) = parse_condition(condition, context)?;
    let time = TimeRange::new(time.min_or_earliest_ns(), time.max_or_latest_ns());
    remove(sources, &series, time, context)
}

/// Removes matching series.
pub(crate) fn drop_series(
    sources: &[Measurement],
    condition: Option<&Expr>,
    context: &QueryContext,
) -> Result<Answer, QueryError> {
    let (series, time) = parse_condition(condition, context)?;
    if time.min_ns.is_some() || time.max_ns.is_some() {
        return Err(QueryError::invalid("DROP SERIES doesn't support time in WHERE clause"));
    }
    remove(sources, &series, TimeRange::ALL, context)
}

/// Removes a measurement with its field types.
pub(crate) fn drop_measurement(name: &str, context: &QueryContext) -> Result<Answer, QueryError> {
    let database = writable_database(context)?;
    let target = DeleteTarget::Measurement(name.into());
    context.store.delete(&DeleteRequest { database, target })?;
    Ok(Answer::empty())
}

fn writable_database(context: &QueryContext) -> Result<DatabaseId, QueryError> {
    if context.read_only {
        return Err(QueryError::ReadOnly);
    }
    // Without a name InfluxDB looks for the empty one.
    if context.database.as_deref().is_none_or(str::is_empty) {
        return Err(QueryError::invalid("database not found: "));
    }
    database_id(None, context)
}

fn parse_condition(
    condition: Option<&Expr>,
    context: &QueryContext,
) -> Result<(TagExpr, influxql::TimeRange), QueryError> {
    let Some(condition) = condition else {
        return Ok((TagExpr::True, influxql::TimeRange::default()));
    };
    let (rest, time) = split_condition(condition, context.now_ns, &Utc)?;
    let series = match &rest {
        Some(rest) => tag_condition(rest).map_err(|_| fields_not_supported())?,
        None => TagExpr::True,
    };
    Ok((series, time))
}

fn remove(
    sources: &[Measurement],
    series: &TagExpr,
    time: TimeRange,
    context: &QueryContext,
) -> Result<Answer, QueryError> {
    let database = writable_database(context)?;
    let filters = source_filters(sources)?;
    for filter in &filters {
        refuse_fields(filter, series, database, context)?;
    }
    for measurements in filters {
        let target = DeleteTarget::Rows { measurements, series: series.clone(), time };
        context.store.delete(&DeleteRequest { database, target })?;
    }
    Ok(Answer::empty())
}

/// Refuses conditions on fields: taken for absent tags they would remove everything.
fn refuse_fields(
    filter: &NameFilter,
    series: &TagExpr,
    database: DatabaseId,
    context: &QueryContext,
) -> Result<(), QueryError> {
    let mut names = Vec::new();
    tag_names(series, &mut |name| names.push(name.clone()));
    if names.is_empty() {
        return Ok(());
    }
    for measurement in matching(filter.clone(), database, context)? {
        let Some(schema) = context.store.schema(database, &measurement)? else { continue };
        let is_field =
            |name: &model::Name| schema.field_type(name).is_some() && !schema.has_tag(name);
        if names.iter().any(is_field) {
            return Err(fields_not_supported());
        }
    }
    Ok(())
}

/// There is one shard as far as clients can see.
fn fields_not_supported() -> QueryError {
    QueryError::invalid("shard 1: fields not supported in WHERE clause during deletion")
}
