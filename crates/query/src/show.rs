//! SHOW statements: names of databases, policies, measurements, series, tags and fields.

mod cardinality;
mod explore;
mod grouped;
mod measurements;
mod stream;
mod within;

use std::sync::Arc;

use influxql::{
    Expr, ShowFieldKeys, ShowMeasurements, ShowSeries, ShowTagKeys, ShowTagValues, Statement,
    TagKeyMatch, Utc, split_condition,
};
use model::{Column, FieldType, Name, TagExpr, TimeRange, Values};
use store::{MetadataKind, MetadataRequest, NameFilter, Policy};

pub(crate) use stream::NameStream;

use self::stream::{Limits, Shape};
use self::within::{Wanted, WithinCursor};
use crate::answer::{header, text_column, window};
use crate::exec::stream::Part;
use crate::names::{
    by_policy, check_policies, common_database, database_id, database_name, source_filter,
};
use crate::plan::{cardinality_condition, regex, tag_condition};
use crate::presence::schema_within;
use crate::{Answer, QueryContext, QueryError};

/// Runs a SHOW statement.
///
/// # Errors
/// Unknown databases, conditions that are none, a failing store.
pub(crate) fn show(statement: &Statement, context: &QueryContext) -> Result<Answer, QueryError> {
    match statement {
        Statement::ShowDatabases => Ok(databases(context)),
        Statement::ShowRetentionPolicies { database } => policies(database.as_deref(), context),
        Statement::ShowMeasurements(show) => measurements(show, context),
        Statement::ShowSeries(show) => series(show, context),
        Statement::ShowTagKeys(show) => tag_keys(show, context),
        Statement::ShowTagValues(show) => tag_values(show, context),
        Statement::ShowFieldKeys(show) => field_keys(show, context),
        Statement::ShowCardinality(show) => cardinality::show(show, context),
        Statement::ShowCardinalityBy(show) => explore::show(show, context),
        other => panic!("BUG: {other:?} is executed elsewhere"),
    }
}

fn databases(context: &QueryContext) -> Answer {
    let catalog = context.catalog.snapshot();
    let seen = catalog.databases().iter().filter(|database| context.sees(database.id));
    let names = text_column(seen.map(|database| &*database.name));
    let part = Part::new(header("databases", &["name"]), vec![names]);
    // Shown even when it is empty.
    Answer::ready(vec![part])
}

fn policies(database: Option<&str>, context: &QueryContext) -> Result<Answer, QueryError> {
    let name = database_name(database, context)?;
    let catalog = context.catalog.snapshot();
    let missing = || QueryError::invalid(format!("database not found: {name}"));
    let database = catalog.database(name).ok_or_else(missing)?;
    let all = &database.policies;
    let durations: Vec<String> =
        all.iter().map(|p| go_duration(p.duration_ns.unwrap_or(0))).collect();
    let shards: Vec<String> = all.iter().map(|p| go_duration(p.shard_duration_ns)).collect();
    let columns = vec![
        text_column(all.iter().map(|policy| &*policy.name)),
        text_column(durations.iter().map(String::as_str)),
        text_column(shards.iter().map(String::as_str)),
        Column::new(Values::Integer(all.iter().map(|p| i64::from(p.replica_n)).collect())),
        Column::new(Values::Boolean(
            all.iter().map(|policy| policy.name == database.default_policy).collect(),
        )),
    ];
    let names = ["name", "duration", "shardGroupDuration", "replicaN", "default"];
    let part = Part::new(header("", &names), columns);
    Ok(Answer::ready(vec![part]))
}

/// A duration as Go prints it: `168h0m0s`, `0s`.
pub(crate) fn go_duration(ns: i64) -> String {
    let seconds = ns / 1_000_000_000;
    let fraction = ns % 1_000_000_000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let seconds = if fraction == 0 {
        seconds.to_string()
    } else {
        let text = format!("{seconds}.{fraction:09}");
        text.trim_end_matches('0').to_owned()
    };
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

fn measurements(show: &ShowMeasurements, context: &QueryContext) -> Result<Answer, QueryError> {
    let name = database_name(show.database.as_deref(), context)?;
    show.condition.as_ref().map_or(Ok(()), measurements::check)?;
    let series = match tags_only(show.condition.as_ref(), context)? {
        Timed::No(series) => series,
        Timed::Yes(..) => {
            return Err(QueryError::invalid(
                "SHOW MEASUREMENTS doesn't support time in WHERE clause",
            ));
        }
    };
    // A database that does not exist has no measurements.
    let Some(database) = context.catalog.snapshot().database(name).map(|d| d.id) else {
        return Ok(Answer::empty());
    };
    let sources: Vec<_> = show.source.iter().cloned().collect();
    let mut filter = source_filter(&sources, database, context)?;
    if !matches!(series, TagExpr::True) {
        filter = measurements::satisfying(&series, &filter, database, context)?;
    }
    let request = MetadataRequest {
        database,
        kind: MetadataKind::Measurements,
        measurements: filter,
        series: TagExpr::True,
        facts_max: None,
        context: context.scan_context(),
    };
    let shape = Shape::Flat { header: header("measurements", &["name"]), column: 0 };
    let limits = Limits::rows(show.limit, show.offset);
    Ok(Answer::names(NameStream::open(request, shape, limits, context)?))
}

fn series(show: &ShowSeries, context: &QueryContext) -> Result<Answer, QueryError> {
    database_id(show.database.as_deref(), context)?;
    check_policies(&show.sources, show.database.as_deref(), context)?;
    let database = common_database(&show.sources, show.database.as_deref(), context)?;
    let timed = tags_only(show.condition.as_ref(), context)?;
    let shape = Shape::Flat { header: header("", &["key"]), column: 1 };
    let limits = Limits::rows(show.limit, show.offset);
    let is_timed = matches!(timed, Timed::Yes(..));
    let (series, time) = timed.parts();
    let Some(database) = database.filter(|_| !is_timed) else {
        // With times only of the policies that FROM names, or the default one.
        let found = by_policy(&show.sources, show.database.as_deref(), context)?;
        let found = found.into_iter().collect();
        let cursor = WithinCursor::new(Wanted::Keys, found, series, time, context);
        return Ok(Answer::names(NameStream::new(Box::new(cursor), shape, limits, context)));
    };
    let request = MetadataRequest {
        database,
        kind: MetadataKind::Series,
        measurements: source_filter(&show.sources, database, context)?,
        series,
        facts_max: None,
        context: context.scan_context(),
    };
    Ok(Answer::names(NameStream::open(request, shape, limits, context)?))
}

fn tag_keys(show: &ShowTagKeys, context: &QueryContext) -> Result<Answer, QueryError> {
    let database = database_id(show.database.as_deref(), context)?;
    // InfluxDB reads SLIMIT and SOFFSET here and heeds neither.
    let limits = Limits::rows(show.limit, show.offset);
    let shape = Shape::Measurement { columns: Arc::new(["tagKey".into()]), value: None };
    let measurements = source_filter(&show.sources, database, context)?;
    let timed = tags_only(show.condition.as_ref(), context)?;
    let is_timed = matches!(timed, Timed::Yes(..));
    let (series, time) = timed.parts();
    if is_timed {
        let found = within::in_all_policies(measurements, database, context)?;
        let cursor = WithinCursor::new(Wanted::TagKeys, found, series, time, context);
        return Ok(Answer::names(NameStream::new(Box::new(cursor), shape, limits, context)));
    }
    let request = MetadataRequest {
        database,
        kind: MetadataKind::TagKeys,
        measurements,
        series,
        facts_max: None,
        context: context.scan_context(),
    };
    Ok(Answer::names(NameStream::open(request, shape, limits, context)?))
}

fn tag_values(show: &ShowTagValues, context: &QueryContext) -> Result<Answer, QueryError> {
    let database = database_id(show.database.as_deref(), context)?;
    let timed = tags_only(show.condition.as_ref(), context)?;
    let is_timed = matches!(timed, Timed::Yes(..));
    let (condition, time) = timed.parts();
    let (series, value) = split_value(condition);
    let limits = Limits::rows(show.limit, show.offset);
    let shape = Shape::Measurement { columns: Arc::new(["key".into(), "value".into()]), value };
    let (keys, measurements) =
        (key_filter(&show.key)?, source_filter(&show.sources, database, context)?);
    if is_timed {
        let found = within::in_all_policies(measurements, database, context)?;
        let cursor = WithinCursor::new(Wanted::TagValues(keys), found, series, time, context);
        return Ok(Answer::names(NameStream::new(Box::new(cursor), shape, limits, context)));
    }
    let request = MetadataRequest {
        database,
        kind: MetadataKind::TagValues(keys),
        measurements,
        series,
        facts_max: None,
        context: context.scan_context(),
    };
    Ok(Answer::names(NameStream::open(request, shape, limits, context)?))
}

/// The keys that `WITH KEY` names.
fn key_filter(key: &TagKeyMatch) -> Result<NameFilter, QueryError> {
    let one = |name: &String| NameFilter::In(vec![name.as_str().into()]);
    Ok(match key {
        TagKeyMatch::Eq(name) => one(name),
        TagKeyMatch::NotEq(name) => NameFilter::Not(Box::new(one(name))),
        TagKeyMatch::In(names) => {
            let mut names: Vec<Name> = names.iter().map(|name| name.as_str().into()).collect();
            names.sort_unstable();
            names.dedup();
            NameFilter::In(names)
        }
        TagKeyMatch::Regex(pattern) => NameFilter::Matches(regex(pattern)?),
        TagKeyMatch::NotRegex(pattern) => {
            NameFilter::Not(Box::new(NameFilter::Matches(regex(pattern)?)))
        }
    })
}

/// Splits off what a condition says of the pseudo tag `value`, which is the listed value itself.
fn split_value(condition: TagExpr) -> (TagExpr, Option<TagExpr>) {
    let only_value = |part: &TagExpr| {
        let (mut any, mut all) = (false, true);
        crate::plan::tag_names(part, &mut |name| {
            any = true;
            all &= &**name == "value";
        });
        any && all
    };
    match condition {
        TagExpr::And(parts) => {
            let (value, series): (Vec<_>, Vec<_>) = parts.into_iter().partition(only_value);
            let value = (!value.is_empty()).then_some(TagExpr::And(value));
            (TagExpr::And(series), value)
        }
        part if only_value(&part) => (TagExpr::True, Some(part)),
        part => (part, None),
    }
}

fn field_keys(show: &ShowFieldKeys, context: &QueryContext) -> Result<Answer, QueryError> {
    let mut parts = Vec::new();
    for (measurement, policies) in by_policy(&show.sources, show.database.as_deref(), context)? {
        let fields = fields_within(&measurement, &policies, context)?;
        let (from, to) = window(fields.len(), show.limit, show.offset);
        let fields = &fields[from..to];
        if fields.is_empty() {
            continue;
        }
        let columns = vec![
            text_column(fields.iter().map(|field| &*field.0)),
            text_column(fields.iter().map(|field| field.1.name())),
        ];
        parts.push(Part::new(header(&measurement, &["fieldKey", "fieldType"]), columns));
    }
    Ok(Answer::ready(parts))
}

/// The fields of a measurement that have rows in one of `policies`, sorted by name.
fn fields_within(
    measurement: &Name,
    policies: &[Policy],
    context: &QueryContext,
) -> Result<Vec<(Name, FieldType)>, QueryError> {
    let mut fields = Vec::new();
    for policy in policies {
        if let Some(schema) = context.schema(policy.database, measurement)? {
            let within = schema_within(*policy, measurement, &schema, context)?;
            fields.extend(within.fields.iter().cloned());
        }
    }
    fields.sort_unstable_by(|a: &(Name, FieldType), b| a.0.cmp(&b.0));
    fields.dedup();
    Ok(fields)
}

/// A condition on tags, and whether it came with one on time.
enum Timed {
    No(TagExpr),
    Yes(TagExpr, TimeRange),
}

impl Timed {
    fn parts(self) -> (TagExpr, TimeRange) {
        match self {
            Self::No(tags) => (tags, TimeRange::ALL),
            Self::Yes(tags, time) => (tags, time),
        }
    }
}

fn tags_only(condition: Option<&Expr>, context: &QueryContext) -> Result<Timed, QueryError> {
    timed(condition, tag_condition, context)
}

/// As [`tags_only`], of which comparisons of something else than tags never hold.
fn tags_or_none(condition: Option<&Expr>, context: &QueryContext) -> Result<Timed, QueryError> {
    timed(condition, cardinality_condition, context)
}

fn timed(
    condition: Option<&Expr>,
    of_tags: fn(&Expr) -> Result<TagExpr, QueryError>,
    context: &QueryContext,
) -> Result<Timed, QueryError> {
    let Some(condition) = condition else { return Ok(Timed::No(TagExpr::True)) };
    let (rest, time) = split_condition(condition, context.now_ns, &Utc)?;
    let tags = match &rest {
        Some(rest) => of_tags(rest)?,
        None => TagExpr::True,
    };
    if time.min_ns.is_none() && time.max_ns.is_none() {
        return Ok(Timed::No(tags));
    }
    let all = TimeRange::ALL;
    let time = TimeRange {
        min: time.min_ns.unwrap_or(all.min).max(all.min),
        max: time.max_ns.unwrap_or(all.max).min(all.max),
    };
    Ok(Timed::Yes(tags, time))
}

/// A part of one series with one column of counts.
fn counts_part(name: &str, column: &str, count: i64) -> Part {
    Part::new(header(name, &[column]), vec![Column::new(Values::Integer(vec![count]))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_as_go_prints_them() {
        for (ns, text) in [
            (0, "0s"),
            (3_600_000_000_000, "1h0m0s"),
            (604_800_000_000_000, "168h0m0s"),
            (90_000_000_000, "1m30s"),
            (1_500_000_000, "1.5s"),
        ] {
            assert_eq!(go_duration(ns), text);
        }
    }
}
