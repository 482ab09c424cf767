//! SHOW … CARDINALITY: numbers of names, always exact.

use influxql::{Cardinality, ShowCardinality};
use model::{DatabaseId, TagExpr, Values};
use store::{MetadataKind, MetadataRequest, NameFilter};

use super::{Timed, counts_part, key_filter, tags_only};
use crate::exec::stream::Part;
use crate::names::{database_id, source_filter};
use crate::plan::matching;
use crate::{Answer, QueryContext, QueryError};

/// Counts names.
pub(crate) fn show(show: &ShowCardinality, context: &QueryContext) -> Result<Answer, QueryError> {
    let database = database_id(show.database.as_deref(), context)?;
    if !show.dimensions.is_empty() {
        return Err(QueryError::unsupported("GROUP BY in SHOW CARDINALITY"));
    }
    let series = match tags_only(show.condition.as_ref(), context)? {
        Timed::No(series) => series,
        Timed::Yes(_) => {
            let what = statement(&show.of);
            return Err(QueryError::invalid(format!(
                "{what} doesn't support time in WHERE clause"
            )));
        }
    };
    let whole = !show.exact && show.sources.is_empty() && show.condition.is_none();
    let measurements = source_filter(&show.sources, database, context)?;
    let parts = match &show.of {
        Cardinality::Series if whole => {
            let counted = count(MetadataKind::Series, measurements, series, database, context)?;
            let total = counted.iter().map(|(_, count)| count).sum();
            vec![counts_part("", "cardinality estimation", total)]
        }
        Cardinality::Series => {
            each(count(MetadataKind::Series, measurements, series, database, context)?)
        }
        Cardinality::Measurement => {
            let kind = MetadataKind::Measurements;
            let counted = count(kind, measurements, series, database, context)?;
            let column = if whole { "cardinality estimation" } else { "count" };
            match counted.len() as i64 {
                0 if !whole => Vec::new(),
                total => vec![counts_part("", column, total)],
            }
        }
        Cardinality::TagKey => {
            each(count(MetadataKind::TagKeys, measurements, series, database, context)?)
        }
        Cardinality::TagValues(key) => {
            let kind = MetadataKind::TagValues(key_filter(key)?);
            each(count(kind, measurements, series, database, context)?)
        }
        Cardinality::FieldKey => each(count_fields(measurements, database, context)?),
    };
    // Every series has one row.
    let parts = if show.offset > 0 { Vec::new() } else { parts };
    Ok(Answer::ready(parts, context.chunk_rows))
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
    let scan_context = context.scan_context();
    let request = MetadataRequest { database, kind, measurements, series, context: scan_context };
    let mut cursor = context.store.metadata(&request)?;
    let mut counts: Vec<(String, i64)> = Vec::new();
    while let Some(batch) = cursor.next()? {
        context.interrupt.check()?;
        let name = |row: usize| match &batch.columns[0].values {
            Values::String(texts) => texts.get(row),
            Values::Dictionary(codes, texts) => texts.get(codes[row] as usize),
            other => panic!("BUG: names are text, not {other:?}"),
        };
        for row in 0..batch.rows {
            match counts.last_mut() {
                Some((last, count)) if last == name(row) => *count += 1,
                _ => counts.push((name(row).to_owned(), 1)),
            }
        }
    }
    Ok(counts)
}

fn count_fields(
    measurements: NameFilter,
    database: DatabaseId,
    context: &QueryContext,
) -> Result<Vec<(String, i64)>, QueryError> {
    let mut counts = Vec::new();
    for name in matching(measurements, database, context)? {
        if let Some(schema) = context.store.schema(database, &name)? {
            counts.push((name.to_string(), schema.fields.len() as i64));
        }
    }
    Ok(counts)
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
