//! Databases and measurements that statements other than SELECT name.

use std::collections::BTreeMap;

use influxql::{Measurement, MeasurementName};
use model::{DatabaseId, Name};
use store::{NameFilter, Policy};

use crate::plan::{matching, regex};
use crate::{QueryContext, QueryError};

/// The database called `given`, or that of the request.
///
/// # Errors
/// If there is no name, or no such database.
pub(crate) fn database_id(
    given: Option<&str>,
    context: &QueryContext,
) -> Result<DatabaseId, QueryError> {
    let name = database_name(given, context)?;
    let catalog = context.catalog.snapshot();
    let missing = || QueryError::invalid(format!("database not found: {name}"));
    Ok(catalog.database(name).ok_or_else(missing)?.id)
}

/// The name `given`, or that of the request's database.
///
/// # Errors
/// If there is neither.
pub(crate) fn database_name<'a>(
    given: Option<&'a str>,
    context: &'a QueryContext,
) -> Result<&'a str, QueryError> {
    given
        .or(context.database.as_deref())
        .filter(|name| !name.is_empty())
        .ok_or_else(|| QueryError::invalid("database name required"))
}

/// The policies of a database.
pub(crate) fn policies(database: DatabaseId, context: &QueryContext) -> Vec<Policy> {
    let catalog = context.catalog.snapshot();
    let of_it = catalog.databases().iter().find(|one| one.id == database);
    let names = of_it.iter().flat_map(|d| d.policies.iter().map(|p| (&*d.name, &*p.name)));
    names.filter_map(|(database, name)| catalog.resolve(database, Some(name)).ok()).collect()
}

/// The measurements that a FROM without policies names: one filter for all names, one for each
/// regex. No FROM names all.
///
/// # Errors
/// A regex that does not compile.
pub(crate) fn source_filters(sources: &[Measurement]) -> Result<Vec<NameFilter>, QueryError> {
    if sources.is_empty() {
        return Ok(vec![NameFilter::All]);
    }
    let mut filters = Vec::new();
    let mut names: Vec<Name> = Vec::new();
    for source in sources {
        match &source.name {
            MeasurementName::Name(name) => names.push(name.as_str().into()),
            MeasurementName::Regex(pattern) => filters.push(NameFilter::Matches(regex(pattern)?)),
        }
    }
    if !names.is_empty() {
        names.sort_unstable();
        names.dedup();
        filters.push(NameFilter::In(names));
    }
    Ok(filters)
}

/// The existing measurements that a FROM names, sorted, with the policies it names for each. No FROM
/// names all of the request's or the database's default policy.
///
/// # Errors
/// No database, unknown databases and policies, a regex that does not compile, a failing store.
pub(crate) fn by_policy(
    sources: &[Measurement],
    database: Option<&str>,
    context: &QueryContext,
) -> Result<BTreeMap<Name, Vec<Policy>>, QueryError> {
    let database = database_name(database, context)?;
    let catalog = context.catalog.snapshot();
    let resolve = |given: Option<&str>| {
        let given = given.filter(|name| !name.is_empty());
        catalog.resolve(database, given.or(context.policy.as_deref()))
    };
    let mut found: BTreeMap<Name, Vec<Policy>> = BTreeMap::new();
    let mut add = |policy: Policy, filter: NameFilter| {
        for name in matching(filter, policy.database, context)? {
            let policies = found.entry(name).or_default();
            if !policies.contains(&policy) {
                policies.push(policy);
            }
        }
        Ok::<(), QueryError>(())
    };
    if sources.is_empty() {
        add(resolve(None)?, NameFilter::All)?;
    }
    for source in sources {
        let policy = resolve(source.retention_policy.as_deref())?;
        add(policy, source_filters(std::slice::from_ref(source))?.remove(0))?;
    }
    Ok(found)
}

/// Checks that the policies exist that a FROM names.
///
/// # Errors
/// Unknown databases and policies.
pub(crate) fn check_policies(
    sources: &[Measurement],
    database: Option<&str>,
    context: &QueryContext,
) -> Result<(), QueryError> {
    let database = database_name(database, context)?;
    let catalog = context.catalog.snapshot();
    for policy in sources.iter().filter_map(|source| source.retention_policy.as_deref()) {
        if !policy.is_empty() {
            catalog.resolve(database, Some(policy))?;
        }
    }
    Ok(())
}

/// As [`source_filters`], as one filter.
///
/// # Errors
/// A regex that does not compile, a failing store.
pub(crate) fn source_filter(
    sources: &[Measurement],
    database: DatabaseId,
    context: &QueryContext,
) -> Result<NameFilter, QueryError> {
    let mut filters = source_filters(sources)?;
    if filters.len() == 1 {
        return Ok(filters.remove(0));
    }
    let mut names = Vec::new();
    for filter in filters {
        names.extend(matching(filter, database, context)?);
    }
    names.sort_unstable();
    names.dedup();
    Ok(NameFilter::In(names))
}
