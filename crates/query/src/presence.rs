//! What has rows in one retention policy. A store keeps one schema and one index for all policies of a
//! database; InfluxDB keeps them by policy, and some statements show that.
//!
//! A database with a single policy comes here only for SLIMIT, whose series have to have rows in some shards: otherwise
//! everything it knows is in that policy. Of others a few rows are looked at: one of each series, or one of each field.

use std::sync::Arc;

use hashbrown::HashSet;
use model::{
    Column, ColumnBatch, FieldType, MeasurementSchema, Name, TagExpr, TimeRange, partition_range,
};
use store::{Policy, Scan, ScanItem, ScanRequest, ScanSlice, TimeOrder};

use crate::names::policies;
use crate::{QueryContext, QueryError};

/// Whether the database of `policy` has no other.
pub(crate) fn is_only_policy(policy: &Policy, context: &QueryContext) -> bool {
    let catalog = context.catalog.snapshot();
    let database = catalog.databases().iter().find(|database| database.id == policy.database);
    database.is_none_or(|database| database.policies.len() <= 1)
}

/// The other policies of the database of `policy`.
fn other_policies(policy: &Policy, context: &QueryContext) -> Vec<Policy> {
    let mut others = policies(policy.database, context);
    others.retain(|other| other.id != policy.id);
    others
}

/// The schema of a measurement without the fields and tags that have rows in other policies only. A
/// field whose rows were all deleted stays.
///
/// # Errors
/// A failing store.
pub(crate) fn schema_within(
    policy: Policy,
    measurement: &Name,
    schema: &Arc<MeasurementSchema>,
    context: &QueryContext,
) -> Result<Arc<MeasurementSchema>, QueryError> {
    if is_only_policy(&policy, context) {
        return Ok(Arc::clone(schema));
    }
    // The first rows show most fields and tags; what they lack is looked for one by one.
    let mut request = request(policy, measurement, schema.fields.clone(), context);
    request.tags.clone_from(&schema.tag_keys);
    let scan = context.store.scan(&request)?;
    let Some(batch) = first_rows(&*scan)? else {
        let fields = fields_within(policy, measurement, schema, None, context)?;
        return Ok(Arc::new(MeasurementSchema { fields, tag_keys: schema.tag_keys.clone() }));
    };
    let fields = fields_within(policy, measurement, schema, Some(&batch), context)?;
    let mut tag_keys = Vec::with_capacity(schema.tag_keys.len());
    for key in &schema.tag_keys {
        let column = scan.series().tags.iter().find(|column| column.key == *key);
        let has_value = |series: u32| {
            column.is_some_and(|c| !c.values.get(c.codes[series as usize] as usize).is_empty())
        };
        let shown = batch.runs.iter().any(|run| has_value(run.series));
        let there = || TagExpr::Not(Box::new(TagExpr::Equals(key.clone(), "".into())));
        if shown || has_rows(policy, measurement, &schema.fields, there(), context)? {
            tag_keys.push(key.clone());
        }
    }
    Ok(Arc::new(MeasurementSchema { fields, tag_keys }))
}

/// The fields of a measurement that have rows in `policy`, or nowhere. `batch`: some of its rows.
fn fields_within(
    policy: Policy,
    measurement: &Name,
    schema: &MeasurementSchema,
    batch: Option<&ColumnBatch>,
    context: &QueryContext,
) -> Result<Vec<(Name, FieldType)>, QueryError> {
    let others = other_policies(&policy, context);
    let mut fields = Vec::with_capacity(schema.fields.len());
    for (at, field) in schema.fields.iter().enumerate() {
        let column = batch.and_then(|batch| batch.columns.get(at + 1));
        let has_values =
            |column: &Column| column.validity.as_ref().is_none_or(|bits| bits.count_ones() > 0);
        let only = std::slice::from_ref(field);
        let has_rows = |policy| has_rows(policy, measurement, only, TagExpr::True, context);
        let mut seen = column.is_some_and(has_values) || (batch.is_some() && has_rows(policy)?);
        if !seen {
            let mut elsewhere = false;
            for other in &others {
                elsewhere |= has_rows(*other)?;
            }
            seen = !elsewhere;
        }
        if seen {
            fields.push(field.clone());
        }
    }
    Ok(fields)
}

/// Whether series that satisfy `series` have rows in `policy` with a value of one of `fields`.
///
/// # Errors
/// A failing store.
pub(crate) fn has_rows(
    policy: Policy,
    measurement: &Name,
    fields: &[(Name, FieldType)],
    series: TagExpr,
    context: &QueryContext,
) -> Result<bool, QueryError> {
    has_rows_at(policy, measurement, fields, (series, TimeRange::ALL), context)
}

/// Whether series that satisfy `series` have rows in shards that hold a part of `time`, as InfluxDB looks for series.
///
/// # Errors
/// A failing store.
pub(crate) fn has_rows_within(
    policy: Policy,
    measurement: &Name,
    (series, time): (TagExpr, TimeRange),
    context: &QueryContext,
) -> Result<bool, QueryError> {
    let Some(schema) = context.schema(policy.database, measurement)? else { return Ok(false) };
    let shards = shards_of(time, policy.partition_ns);
    has_rows_at(policy, measurement, &schema.fields, (series, shards), context)
}

fn has_rows_at(
    policy: Policy,
    measurement: &Name,
    fields: &[(Name, FieldType)],
    (series, time): (TagExpr, TimeRange),
    context: &QueryContext,
) -> Result<bool, QueryError> {
    context.interrupt.check()?;
    let request =
        ScanRequest { series, time, ..request(policy, measurement, fields.to_vec(), context) };
    Ok(first_rows(&*context.store.scan(&request)?)?.is_some())
}

/// The series of a measurement that satisfy `condition`, with all their tags, and the ordinals of
/// those that have rows in `policy` within the time.
///
/// # Errors
/// A failing store.
pub(crate) fn series_within(
    policy: Policy,
    measurement: &Name,
    schema: &MeasurementSchema,
    (condition, time): (&TagExpr, TimeRange),
    context: &QueryContext,
) -> Result<(Box<dyn Scan>, Vec<u32>), QueryError> {
    let mut request = request(policy, measurement, schema.fields.clone(), context);
    request.tags.clone_from(&schema.tag_keys);
    request.series = condition.clone();
    request.time = time;
    let scan = context.store.scan(&request)?;
    let ordinals = scan.series_with_rows()?;
    Ok((scan, ordinals))
}

/// The values of the tags `keys` of the series that satisfy `condition` and have rows in shards that
/// hold a part of `time`, as InfluxDB looks for series.
///
/// # Errors
/// A failing store.
pub(crate) fn tags_within(
    policy: Policy,
    measurement: &Name,
    (condition, time): (&TagExpr, TimeRange),
    keys: &[Name],
    context: &QueryContext,
) -> Result<HashSet<Vec<Name>>, QueryError> {
    let Some(schema) = context.schema(policy.database, measurement)? else {
        return Ok(HashSet::new());
    };
    let schema = MeasurementSchema { fields: schema.fields.clone(), tag_keys: keys.to_vec() };
    let time = shards_of(time, policy.partition_ns);
    let (scan, series) = series_within(policy, measurement, &schema, (condition, time), context)?;
    let tags = &scan.series().tags;
    let mut held = context.budget.reserve(0)?;
    let mut found = HashSet::new();
    for series in series {
        let value = |key: &Name| {
            let column = tags.iter().find(|column| column.key == *key);
            column.map_or("", |c| c.values.get(c.codes[series as usize] as usize)).into()
        };
        let values: Vec<Name> = keys.iter().map(value).collect();
        let bytes: usize = values.iter().map(|value: &Name| value.len() + 64).sum();
        if found.insert(values) {
            held.grow(bytes)?;
        }
    }
    Ok(found)
}

/// The times of the shards that hold a part of `time`.
pub(crate) fn shards_of(time: TimeRange, partition_ns: i64) -> TimeRange {
    if time.is_empty() {
        return time;
    }
    let first = partition_range(time.min, partition_ns);
    TimeRange::new(first.min, partition_range(time.max, partition_ns).max)
}

fn request(
    policy: Policy,
    measurement: &Name,
    fields: Vec<(Name, FieldType)>,
    context: &QueryContext,
) -> ScanRequest {
    ScanRequest {
        policy,
        measurement: measurement.clone(),
        fields,
        tags: Vec::new(),
        series: TagExpr::True,
        time: TimeRange::ALL,
        filters: Vec::new(),
        order: TimeOrder::Ascending,
        windows: None,
        joins_series: false,
        context: context.scan_context(),
    }
}

fn first_rows(scan: &dyn Scan) -> Result<Option<ColumnBatch>, QueryError> {
    let mut cursor = scan.open(&ScanSlice::rows_per_series(1))?;
    while let Some(item) = cursor.next()? {
        if let ScanItem::Rows(batch) = item
            && batch.rows > 0
        {
            return Ok(Some(batch));
        }
    }
    Ok(None)
}
