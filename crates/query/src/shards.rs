//! Statements about shards: the store's partitions, under the names InfluxDB has for them. A shard
//! group has one shard, and both have the partition's number.

use std::collections::HashMap;

use catalog::{Database, PolicyInfo};
use influxql::Timestamp;
use model::{Column, DatabaseId, PolicyId, TimeRange, Values};
use store::{DeleteRequest, DeleteTarget, ListedPartition, list_partitions};

use crate::answer::{header, text_column};
use crate::exec::stream::Part;
use crate::{Answer, QueryContext, QueryError};

/// A partition, and how long it is kept.
struct Shard<'a> {
    number: i64,
    policy: &'a PolicyInfo,
    time: TimeRange,
}

impl Shard<'_> {
    /// The first time behind it.
    fn end_ns(&self) -> i64 {
        self.time.max.saturating_add(1)
    }

    /// When it may be dropped; its end if it is kept for ever.
    fn expiry(&self) -> String {
        let kept_ns = self.policy.duration_ns.unwrap_or(0);
        Timestamp::from_ns(self.end_ns()).plus_ns(kept_ns).to_rfc3339_seconds()
    }
}

/// A time as statements about shards and continuous queries show it.
pub(crate) fn time_text(time_ns: i64) -> String {
    Timestamp::from_ns(time_ns).to_rfc3339_seconds()
}

/// Runs SHOW SHARDS: a series for each database.
pub(crate) fn show(context: &QueryContext) -> Result<Answer, QueryError> {
    let names = [
        "id",
        "database",
        "retention_policy",
        "shard_group",
        "start_time",
        "end_time",
        "expiry_time",
        "owners",
    ];
    let catalog = context.catalog.snapshot();
    let mut parts = Vec::new();
    for database in catalog.databases() {
        let shards = shards_of(database, context)?;
        let mut columns =
            columns(&shards.iter().map(|shard| (&**database, shard)).collect::<Vec<_>>());
        columns.insert(3, columns[0].clone());
        columns.push(text_column(shards.iter().map(|_| "")));
        parts.push(Part::new(header(&database.name, &names), columns));
    }
    Ok(Answer::ready(parts))
}

/// Runs SHOW SHARD GROUPS.
pub(crate) fn show_groups(context: &QueryContext) -> Result<Answer, QueryError> {
    let names = ["id", "database", "retention_policy", "start_time", "end_time", "expiry_time"];
    let catalog = context.catalog.snapshot();
    let mut all = Vec::new();
    for database in catalog.databases() {
        let shards = shards_of(database, context)?;
        all.extend(shards.into_iter().map(|shard| (&**database, shard)));
    }
    let columns =
        columns(&all.iter().map(|(database, shard)| (*database, shard)).collect::<Vec<_>>());
    let part = Part::new(header("shard groups", &names), columns);
    Ok(Answer::ready(vec![part]))
}

/// Runs DROP SHARD. One that does not exist is success.
pub(crate) fn drop(id: u64, context: &QueryContext) -> Result<Answer, QueryError> {
    if context.read_only {
        return Err(QueryError::ReadOnly);
    }
    let catalog = context.catalog.snapshot();
    for database in catalog.databases() {
        let found = partitions(database.id, context)?.into_iter().find(|p| p.number == id);
        if let Some(ListedPartition { policy, time, .. }) = found {
            let target = DeleteTarget::Partition(policy, time);
            context.store.delete(&DeleteRequest { database: database.id, target })?;
            break;
        }
    }
    Ok(Answer::empty())
}

/// The columns that both statements have: number, names of database and policy, times.
fn columns(shards: &[(&Database, &Shard<'_>)]) -> Vec<Column> {
    let text = |of: &dyn Fn(&Shard<'_>) -> String| -> Column {
        let texts: Vec<String> = shards.iter().map(|(_, shard)| of(shard)).collect();
        text_column(texts.iter().map(String::as_str))
    };
    vec![
        Column::new(Values::Integer(shards.iter().map(|(_, shard)| shard.number).collect())),
        text_column(shards.iter().map(|(database, _)| &*database.name)),
        text_column(shards.iter().map(|(_, shard)| &*shard.policy.name)),
        text(&|shard| time_text(shard.time.min)),
        text(&|shard| time_text(shard.end_ns())),
        text(&|shard| shard.expiry()),
    ]
}

/// The shards of a database: policy by policy in their order, by time.
fn shards_of<'a>(
    database: &'a Database,
    context: &QueryContext,
) -> Result<Vec<Shard<'a>>, QueryError> {
    let places: HashMap<PolicyId, usize> =
        database.policies.iter().enumerate().map(|(at, policy)| (policy.id, at)).collect();
    let mut shards: Vec<(usize, Shard<'a>)> = Vec::new();
    for ListedPartition { number, policy, time } in partitions(database.id, context)? {
        // That of a policy which is being dropped has no name any more.
        let Some(at) = places.get(&policy).copied() else { continue };
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        shards.push((at, Shard { number, policy: &database.policies[at], time }));
    }
    shards.sort_by_key(|(at, shard)| (*at, shard.time.min));
    Ok(shards.into_iter().map(|(_, shard)| shard).collect())
}

fn partitions(
    database: DatabaseId,
    context: &QueryContext,
) -> Result<Vec<ListedPartition>, QueryError> {
    Ok(list_partitions(&*context.store, database, context.scan_context())?)
}
