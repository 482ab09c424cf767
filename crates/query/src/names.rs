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
        add(catalog.resolve(database, context.policy.as_deref())?, NameFilter::All)?;
    }
    for source in sources {
        let given = source.retention_policy.as_deref().filter(|name| !name.is_empty());
        let policy = match own_database(source) {
            // The request's policy goes with the request's database.
            Some(own) => catalog.resolve(own, given)?,
            None => catalog.resolve(database, given.or(context.policy.as_deref()))?,
        };
        add(policy, source_filters(std::slice::from_ref(source))?.remove(0))?;
    }
    Ok(found)
}

/// Checks that the databases and policies exist that a FROM names.
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
    for source in sources {
        let policy = source.retention_policy.as_deref().filter(|name| !name.is_empty());
        if policy.is_some() || own_database(source).is_some() {
            catalog.resolve(own_database(source).unwrap_or(database), policy)?;
        }
    }
    Ok(())
}

/// The database that a source names.
fn own_database(source: &Measurement) -> Option<&str> {
    source.database.as_deref().filter(|name| !name.is_empty())
}

/// The one database of all sources, each of which may name its own; `None` if there are several.
///
/// # Errors
/// No database, unknown databases.
pub(crate) fn common_database(
    sources: &[Measurement],
    database: Option<&str>,
    context: &QueryContext,
) -> Result<Option<DatabaseId>, QueryError> {
    let mut named = sources.iter().map(|source| own_database(source).or(database));
    let first = database_id(named.next().unwrap_or(database), context)?;
    for other in named {
        if database_id(other, context)? != first {
            return Ok(None);
        }
    }
    Ok(Some(first))
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
