//! Expiry: range partitions that are over are dropped whole.

use std::collections::BTreeSet;

use kudu_client::{Error, Predicate, RangePartition, ReadMode, Table};
use model::{DatabaseId, PolicyId, TimeRange};
use store::StoreError;

use crate::error::cluster;
use crate::layout::{SERIES_ID, TIME};
use crate::measurement::range_entry;
use crate::ranges::range_of;
use crate::registry::Entry;
use crate::shared::Shared;

impl Shared {
    /// Drops the ranges of a policy that end before `before_ns`; says how many had rows. Ranges of
    /// several measurements with the same bounds count once.
    pub(crate) async fn expire(
        &self,
        database: DatabaseId,
        policy: PolicyId,
        before_ns: i64,
    ) -> Result<u64, StoreError> {
        let is_over = |range: TimeRange| range.max < before_ns;
        let dropped = self.drop_ranges_of_policy(database, policy, is_over).await?;
        self.metrics.partitions_expired.add(dropped as u64);
        Ok(dropped as u64)
    }

    /// Drops some ranges of all tables of a policy; says how many had rows.
    pub(crate) async fn drop_ranges_of_policy(
        &self,
        database: DatabaseId,
        policy: PolicyId,
        goes: impl Fn(TimeRange) -> bool,
    ) -> Result<usize, StoreError> {
        let mut dropped: BTreeSet<(i64, i64)> = BTreeSet::new();
        let prefix = self.names.of_policy(database, policy);
        for name in self.client.list_tables(&prefix).await.map_err(cluster)? {
            let Some(measurement) = self.names.measurement_of(&name) else { continue };
            if !name.starts_with(&prefix) {
                continue;
            }
            let table = match self.client.open_table(&name).await {
                Ok(table) => table,
                Err(Error::TableNotFound { .. }) => continue,
                Err(error) => return Err(cluster(error)),
            };
            let over = self.drop_ranges(&table, policy, measurement, &goes).await?;
            if !over.is_empty() {
                dropped.extend(over.iter().map(|range| (range.min, range.max)));
                self.mark_all_dead(database, measurement).await?;
            }
        }
        Ok(dropped.len())
    }

    /// Drops ranges of a table; gives the ranges that had rows.
    async fn drop_ranges(
        &self,
        table: &Table,
        policy: PolicyId,
        measurement: i64,
        goes: impl Fn(TimeRange) -> bool,
    ) -> Result<Vec<TimeRange>, StoreError> {
        let ranges = match table.range_partitions().await {
            Ok(ranges) => ranges,
            Err(Error::TableNotFound { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(cluster(error)),
        };
        let goes = |range: &&RangePartition| goes(range_of(range));
        let over: Vec<RangePartition> = ranges.iter().filter(goes).cloned().collect();
        let mut with_rows = Vec::new();
        for range in over {
            let times = range_of(&range);
            if has_rows(table, times).await? {
                with_rows.push(times);
            }
            // First the entry: a writer that makes the range anew after the drop registers it again.
            self.forget_range(measurement, policy, times).await?;
            match table.alter().drop_range(range).apply().await {
                Ok(_) | Err(Error::TableNotFound { .. }) => {}
                // Another daemon was quicker.
                Err(error) => {
                    let left = table.range_partitions().await.map_err(cluster)?;
                    if left.iter().any(|range| range_of(range) == times) {
                        return Err(cluster(error));
                    }
                }
            }
        }
        Ok(with_rows)
    }

    async fn forget_range(
        &self,
        measurement: i64,
        policy: PolicyId,
        range: TimeRange,
    ) -> Result<(), StoreError> {
        self.measurements.retain(|_, known| {
            if known.id == measurement {
                known.forget_tables(policy);
            }
            true
        });
        let entry: Entry = range_entry(policy, range);
        self.registry.delete(measurement, &[entry]).await
    }
}

pub(crate) async fn has_rows(table: &Table, range: TimeRange) -> Result<bool, StoreError> {
    let scan = table
        .scan()
        .columns([SERIES_ID])
        .filter(Predicate::greater_or_equal(TIME, range.min))
        .filter(Predicate::less_or_equal(TIME, range.max))
        .limit(1)
        .read_mode(ReadMode::Snapshot(None));
    match scan.open().map_err(cluster)?.next().await {
        Ok(found) => Ok(found.is_some()),
        Err(Error::TableNotFound { .. }) => Ok(false),
        Err(error) => Err(cluster(error)),
    }
}
