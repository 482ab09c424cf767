//! SHOW … CARDINALITY: numbers of names, always exact.

use std::collections::BTreeSet;

use influxql::{Cardinality, ShowCardinality};
use model::{DatabaseId, Name, TagExpr, TimeRange, Values};
use store::{MetadataKind, MetadataRequest, NameFilter, Policy};

use super::{Timed, counts_part, fields_within, grouped, key_filter, tags_or_none};
use crate::exec::stream::Part;
use crate::names::{by_policy, database_name};
use crate::plan::{metadata, within_measurement};
use crate::presence::{has_rows, is_only_policy, series_within};
use crate::{Answer, QueryContext, QueryError};

/// Counts names.
pub(crate) fn show(show: &ShowCardinality, context: &QueryContext) -> Result<Answer, QueryError> {
    let series = match tags_or_none(show.condition.as_ref(), context)? {
        Timed::No(series) => series,
        Timed::Yes(..) => {
            let what = statement(&show.of);
            return Err(QueryError::invalid(format!(
                "{what} doesn't support time in WHERE clause"
            )));
        }
    };
    if !show.dimensions.is_empty() {
        return grouped::show(show, &series, context);
    }
    let whole = !show.exact && show.sources.is_empty() && show.condition.is_none();
    let all = NameFilter::All;
    let of = &show.of;
    let parts = match of {
        Cardinality::Series | Cardinality::Measurement if whole => {
            let counted = match (existing_database(show, context)?, of) {
                (None, _) => 0,
                (Some(database), Cardinality::Series) => {
                    let counted =
                        count(MetadataKind::SeriesCounts, all, series, database, context)?;
                    counted.iter().map(|(_, count)| count).sum()
                }
                (Some(database), _) => {
                    count(MetadataKind::Measurements, all, series, database, context)?.len() as i64
                }
            };
            vec![counts_part("", "cardinality estimation", counted)]
        }
        _ => {
            let mut counts = Vec::new();
            let found = by_policy(&show.sources, show.database.as_deref(), context)?;
            for (name, policies) in found {
                let count = count_within(of, &name, &policies, &series, context)?;
                if count > 0 {
                    counts.push((name.to_string(), count));
                }
            }
            match of {
                Cardinality::Measurement if counts.is_empty() => Vec::new(),
                Cardinality::Measurement => vec![counts_part("", "count", counts.len() as i64)],
                _ => each(counts),
            }
        }
    };
    // Every series has one row.
    let parts = if show.offset > 0 { Vec::new() } else { parts };
    Ok(Answer::ready(parts))
}

/// The database that is named. One that does not exist is no error here, as in InfluxDB: nothing is in it.
fn existing_database(
    show: &ShowCardinality,
    context: &QueryContext,
) -> Result<Option<DatabaseId>, QueryError> {
    let name = database_name(show.database.as_deref(), context)?;
    Ok(context.catalog.snapshot().database(name).map(|database| database.id))
}

fn each(counts: Vec<(String, i64)>) -> Vec<Part> {
    counts.into_iter().map(|(name, count)| counts_part(&name, "count", count)).collect()
}

/// Facts of each measurement, sorted by name.
fn count(
    kind: MetadataKind,
    measurements: NameFilter,
    series: TagExpr,
    database: DatabaseId,
    context: &QueryContext,
) -> Result<Vec<(String, i64)>, QueryError> {
    let (facts_max, limits) = (None, context.scan_context());
    let request =
        MetadataRequest { database, kind, measurements, series, facts_max, context: limits };
    let mut cursor = metadata(request, context)?;
    let mut counts: Vec<(String, i64)> = Vec::new();
    while let Some(batch) = cursor.next()? {
        context.interrupt.check()?;
        let name = |row: usize| match &batch.columns[0].values {
            Values::String(texts) => texts.get(row),
            Values::Dictionary(codes, texts) => texts.get(codes[row] as usize),
            other => panic!("BUG: names are text, not {other:?}"),
        };
        if let Some(Values::Integer(numbers)) = batch.columns.last().map(|c| &c.values) {
            counts.extend(numbers.iter().enumerate().map(|(row, n)| (name(row).to_owned(), *n)));
            continue;
        }
        for row in 0..batch.rows {
            match counts.last_mut() {
                Some((last, count)) if last == name(row) => *count += 1,
                _ => counts.push((name(row).to_owned(), 1)),
            }
        }
    }
    Ok(counts)
}

/// Names of one measurement that have rows in one of `policies`. Series that have rows in several of
/// them count once for each.
fn count_within(
    of: &Cardinality,
    measurement: &Name,
    policies: &[Policy],
    series: &TagExpr,
    context: &QueryContext,
) -> Result<i64, QueryError> {
    let series = &within_measurement(series, measurement);
    let kind = match of {
        Cardinality::FieldKey => {
            let mut with_series = Vec::with_capacity(policies.len());
            for policy in policies {
                if has_series(policy, measurement, series, context)? {
                    with_series.push(*policy);
                }
            }
            return Ok(fields_within(measurement, &with_series, context)?.len() as i64);
        }
        Cardinality::Measurement => MetadataKind::Measurements,
        Cardinality::Series => MetadataKind::SeriesCounts,
        Cardinality::TagKey => MetadataKind::TagKeys,
        Cardinality::TagValues(key) => MetadataKind::TagValues(key_filter(key)?),
    };
    let mut total = 0;
    let mut distinct: BTreeSet<(Name, Name)> = BTreeSet::new();
    for policy in policies {
        if policies.len() == 1 && is_only_policy(policy, context) {
            let only = NameFilter::In(vec![measurement.clone()]);
            let counted = count(kind, only, series.clone(), policy.database, context)?;
            return Ok(counted.first().map_or(0, |(_, count)| *count));
        }
        let Some(schema) = context.schema(policy.database, measurement)? else { continue };
        let (scan, ordinals) =
            series_within(*policy, measurement, &schema, (series, TimeRange::ALL), context)?;
        total += ordinals.len() as i64;
        let wanted: &dyn Fn(&str) -> bool = match &kind {
            MetadataKind::TagValues(filter) => &|key| filter.accepts(key),
            MetadataKind::TagKeys => &|_| true,
            _ => &|_| false,
        };
        for tag in scan.series().tags.iter().filter(|tag| wanted(&tag.key)) {
            let mut codes: Vec<u32> =
                ordinals.iter().map(|series| tag.codes[*series as usize]).collect();
            codes.sort_unstable();
            codes.dedup();
            for value in codes.iter().map(|code| tag.values.get(*code as usize)) {
                let shown = if matches!(kind, MetadataKind::TagKeys) { "" } else { value };
                if !value.is_empty() {
                    distinct.insert((tag.key.clone(), shown.into()));
                }
            }
        }
    }
    Ok(match of {
        Cardinality::TagKey | Cardinality::TagValues(_) => distinct.len() as i64,
        _ => total,
    })
}

/// Whether a condition leaves some series, of a measurement in one policy.
fn has_series(
    policy: &Policy,
    measurement: &Name,
    series: &TagExpr,
    context: &QueryContext,
) -> Result<bool, QueryError> {
    if matches!(series, TagExpr::True) {
        return Ok(true);
    }
    let Some(schema) = context.schema(policy.database, measurement)? else { return Ok(false) };
    has_rows(*policy, measurement, &schema.fields, series.clone(), context)
}

fn statement(of: &Cardinality) -> &'static str {
    match of {
        Cardinality::Series => "SHOW SERIES EXACT CARDINALITY",
        Cardinality::Measurement => "SHOW MEASUREMENT EXACT CARDINALITY",
        Cardinality::TagKey => "SHOW TAG KEY EXACT CARDINALITY",
        Cardinality::TagValues(_) => "SHOW TAG VALUES EXACT CARDINALITY",
        Cardinality::FieldKey => "SHOW FIELD KEY CARDINALITY",
    }
}
