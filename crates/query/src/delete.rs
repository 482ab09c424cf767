//! DELETE, DROP SERIES, DROP MEASUREMENT.

mod matching;

use std::sync::Arc;

use influxql::{DataType, Expr, Measurement, Utc, split_condition};
use model::{DatabaseId, MeasurementSchema, Name, TagExpr, TimeRange};
use store::{DeleteRequest, DeleteTarget, NameFilter};

use crate::names::{database_id, policies, source_filters};
use crate::plan::{self, tag_condition};
use crate::{Answer, QueryContext, QueryError};

/// Removes rows within a time range that satisfy a condition on tags and fields.
pub(crate) fn delete(
    sources: &[Measurement],
    condition: Option<&Expr>,
    context: &QueryContext,
) -> Result<Answer, QueryError> {
    let (rest, time) = split(condition, context)?;
    let time = TimeRange::new(time.min_or_earliest_ns(), time.max_or_latest_ns());
    let database = writable_database(context)?;
    let filters = source_filters(sources)?;
    let Some(rest) = rest else {
        remove(filters, &TagExpr::True, time, database, context)?;
        return Ok(Answer::empty());
    };
    let measurements = measurements(&filters, database, context)?;
    if policies(database, context).len() > 1 {
        refuse_ambiguous(&rest, &measurements)?;
    }
    match tag_condition(&rest) {
        Ok(series) if !names_fields(&rest, &measurements) => {
            remove(filters, &series, time, database, context)?;
        }
        _ => matching::delete(measurements, &rest, time, database, context)?,
    }
    Ok(Answer::empty())
}

/// Removes matching series.
pub(crate) fn drop_series(
    sources: &[Measurement],
    condition: Option<&Expr>,
    context: &QueryContext,
) -> Result<Answer, QueryError> {
    let (rest, time) = split(condition, context)?;
    if time.min_ns.is_some() || time.max_ns.is_some() {
        return Err(QueryError::invalid("DROP SERIES doesn't support time in WHERE clause"));
    }
    let series = match &rest {
        Some(rest) => tag_condition(rest).map_err(|_| fields_not_supported())?,
        None => TagExpr::True,
    };
    let database = writable_database(context)?;
    let filters = source_filters(sources)?;
    // Fields taken for absent tags would remove everything.
    if let Some(rest) = &rest
        && names_fields(rest, &measurements(&filters, database, context)?)
    {
        return Err(fields_not_supported());
    }
    remove(filters, &series, TimeRange::ALL, database, context)?;
    Ok(Answer::empty())
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

/// A condition without times, and the times.
fn split(
    condition: Option<&Expr>,
    context: &QueryContext,
) -> Result<(Option<Expr>, influxql::TimeRange), QueryError> {
    match condition {
        Some(condition) => Ok(split_condition(condition, context.now_ns, &Utc)?),
        None => Ok((None, influxql::TimeRange::default())),
    }
}

/// The existing measurements that pass one of some filters, each once.
fn measurements(
    filters: &[NameFilter],
    database: DatabaseId,
    context: &QueryContext,
) -> Result<Vec<(Name, Arc<MeasurementSchema>)>, QueryError> {
    let mut names = Vec::new();
    for filter in filters {
        names.extend(plan::matching(filter.clone(), database, context)?);
    }
    names.sort_unstable();
    names.dedup();
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let schema = context.schema(database, &name)?;
        found.extend(schema.map(|schema| (name, schema)));
    }
    Ok(found)
}

/// Refuses names that are a tag and a field of one measurement: where there are several retention
/// policies they may be one here and the other there, and what is removed is not to depend on a guess.
/// Where there is one policy they are the field, as in SELECT.
fn refuse_ambiguous(
    condition: &Expr,
    measurements: &[(Name, Arc<MeasurementSchema>)],
) -> Result<(), QueryError> {
    let mut found = None;
    influxql::visit::any(condition, &mut |expr| {
        let Expr::VarRef(var) = expr else { return false };
        let is_both = |(_, schema): &(Name, Arc<MeasurementSchema>)| {
            schema.has_tag(&var.name) && schema.field_type(&var.name).is_some()
        };
        let ambiguous = var.data_type.is_none() && measurements.iter().any(is_both);
        if ambiguous {
            found = Some(var.name.clone());
        }
        ambiguous
    });
    match found {
        None => Ok(()),
        Some(name) => Err(QueryError::invalid(format!(
            "{name} is a tag and a field: say {name}::tag or {name}::field"
        ))),
    }
}

/// Whether a condition looks at a field of some measurement. What is neither field nor tag counts as a
/// tag that no series has.
fn names_fields(condition: &Expr, measurements: &[(Name, Arc<MeasurementSchema>)]) -> bool {
    influxql::visit::any(condition, &mut |expr| {
        let Expr::VarRef(var) = expr else { return false };
        match var.data_type {
            Some(data_type) => data_type != DataType::Tag,
            None => measurements.iter().any(|(_, schema)| schema.field_type(&var.name).is_some()),
        }
    })
}

fn remove(
    filters: Vec<NameFilter>,
    series: &TagExpr,
    time: TimeRange,
    database: DatabaseId,
    context: &QueryContext,
) -> Result<(), QueryError> {
    if plan::mentions_name(series) {
        for (name, _) in measurements(&filters, database, context)? {
            let series = plan::within_measurement(series, &name);
            let measurements = NameFilter::In(vec![name]);
            let target = DeleteTarget::Rows { measurements, series, time };
            context.store.delete(&DeleteRequest { database, target })?;
        }
        return Ok(());
    }
    for measurements in filters {
        let target = DeleteTarget::Rows { measurements, series: series.clone(), time };
        context.store.delete(&DeleteRequest { database, target })?;
    }
    Ok(())
}

/// There is one shard as far as clients can see.
fn fields_not_supported() -> QueryError {
    QueryError::invalid("shard 1: fields not supported in WHERE clause during deletion")
}
