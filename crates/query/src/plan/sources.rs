//! Where the rows of a SELECT come from: databases, policies, measurements.

use influxql::{Measurement, MeasurementName};
use model::{DatabaseId, Name, TagExpr, Values};
use store::{MetadataKind, MetadataRequest, NameFilter, Policy};

use super::{Condition, MeasurementSource, regex};
use crate::{QueryContext, QueryError};

/// The measurements that one source of FROM names; those that do not exist are left out.
///
/// # Errors
/// An unknown database or policy, a bad regex, a failing store.
pub(crate) fn measurements(
    source: &Measurement,
    context: &QueryContext,
) -> Result<Vec<MeasurementSource>, QueryError> {
    if let MeasurementName::Name(name) = &source.name {
        refuse_system_source(name)?;
    }
    let policy = policy(source, context)?;
    let names: Vec<Name> = match &source.name {
        MeasurementName::Name(name) => vec![name.as_str().into()],
        MeasurementName::Regex(pattern) => {
            let filter = NameFilter::Matches(regex(pattern)?);
            matching(filter, policy.database, context)?
        }
    };
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        if let Some(schema) = context.schema(policy.database, &name)? {
            let condition = Condition::none();
            found.push(MeasurementSource { name, policy, schema, condition });
        }
    }
    Ok(found)
}

fn policy(source: &Measurement, context: &QueryContext) -> Result<Policy, QueryError> {
    let own = source.database.as_deref().filter(|name| !name.is_empty());
    let database = own
        .or(context.database.as_deref())
        .ok_or_else(|| QueryError::invalid("database name required"))?;
    let given = source.retention_policy.as_deref().filter(|name| !name.is_empty());
    // The request's policy goes with the request's database.
    let policy = given.or(if own.is_none() { context.policy.as_deref() } else { None });
    Ok(context.catalog.snapshot().resolve(database, policy)?)
}

/// The names of existing measurements that pass a filter, sorted.
pub(crate) fn matching(
    filter: NameFilter,
    database: DatabaseId,
    context: &QueryContext,
) -> Result<Vec<Name>, QueryError> {
    let request = MetadataRequest {
        database,
        kind: MetadataKind::Measurements,
        measurements: filter,
        series: TagExpr::True,
        facts_max: None,
        context: context.scan_context(),
    };
    names_of(&request, context)
}

/// The first column of an answer about names.
pub(crate) fn names_of(
    request: &MetadataRequest,
    context: &QueryContext,
) -> Result<Vec<Name>, QueryError> {
    let mut cursor = context.store.metadata(request)?;
    let mut names: Vec<Name> = Vec::new();
    while let Some(batch) = cursor.next()? {
        match batch.columns.first().map(|column| &column.values) {
            Some(Values::String(texts)) => names.extend(texts.iter().map(Name::from)),
            Some(Values::Dictionary(codes, texts)) => {
                names.extend(codes.iter().map(|code| Name::from(texts.get(*code as usize))));
            }
            _ => panic!("BUG: names are text"),
        }
    }
    Ok(names)
}

fn refuse_system_source(name: &str) -> Result<(), QueryError> {
    let instead = match name {
        "_fieldKeys" => "SHOW FIELD KEYS",
        "_measurements" => "SHOW MEASUREMENTS",
        "_series" => "SHOW SERIES",
        "_tagKeys" => "SHOW TAG KEYS",
        "_tags" => "SHOW TAG VALUES",
        _ => return Ok(()),
    };
    Err(QueryError::invalid(format!("unable to use system source '{name}': use {instead} instead")))
}
