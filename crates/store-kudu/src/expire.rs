//! Expiry: range partitions that are over are dropped whole.

use std::collections::BTreeSet;

use kudu_client::{Error, Predicate, ReadMode, Table};
use model::{DatabaseId, PolicyId, TimeRange};
use store::StoreError;

use crate::error::cluster;
use crate::layout::{SERIES_ID, TIME, rows_of};
use crate::measurement::range_entry;
use crate::ranges::{partition_of, range_of};
use crate::registry::{Entry, Which, space};
use crate::shared::Shared;

/// How long dropping ranges and marking series takes at most: after that whoever did it has died.
const DROPPING_MAX_US: i64 = 600_000_000;
/// Rows that are read in the time of looking for a row of one series, about.
const ROWS_PER_LOOK: u128 = 2000;

/// A table that ranges are dropped of.
struct Dropping {
    table: Table,
    database: DatabaseId,
    policy: PolicyId,
    measurement: i64,
    /// How many of its ranges go.
    share: (usize, usize),
}

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
        let dropped = self.drop_ranges_of_policy(database, policy, is_over, false).await?;
        self.metrics.partitions_expired.add(dropped as u64);
        Ok(dropped as u64)
    }

    /// Drops some ranges of all tables of a policy; says how many had rows. `is_written`: somebody may
    /// still be writing to them.
    pub(crate) async fn drop_ranges_of_policy(
        &self,
        database: DatabaseId,
        policy: PolicyId,
        goes: impl Fn(TimeRange) -> bool,
        is_written: bool,
    ) -> Result<usize, StoreError> {
        let mut dropped: BTreeSet<(i64, i64)> = BTreeSet::new();
        let prefix = self.names.of_policy(database, policy);
        for name in self.client.list_tables(&prefix).await.map_err(cluster)? {
            let Some(measurement) = self.names.measurement_of(&name) else { continue };
            if !name.starts_with(&prefix) {
                continue;
            }
            let ranges = async {
                let table = self.client.open_table(&name).await?;
                let ranges = table.range_partitions().await?;
                Ok((table, ranges))
            };
            let (table, ranges) = match ranges.await {
                Ok(found) => found,
                Err(Error::TableNotFound { .. }) => continue,
                Err(error) => return Err(cluster(error)),
            };
            let over: Vec<TimeRange> = ranges.iter().map(range_of).filter(|r| goes(*r)).collect();
            if over.is_empty() {
                continue;
            }
            let share = (over.len(), ranges.len());
            let table = Dropping { table, database, policy, measurement, share };
            let with_rows = self.drop_ranges(&table, over, is_written).await?;
            dropped.extend(with_rows.iter().map(|range| (range.min, range.max)));
        }
        Ok(dropped.len())
    }

    /// Drops ranges of a table and marks the series that have no rows left; gives the ranges that
    /// had rows.
    async fn drop_ranges(
        &self,
        of: &Dropping,
        over: Vec<TimeRange>,
        is_written: bool,
    ) -> Result<Vec<TimeRange>, StoreError> {
        let mut with_rows = Vec::new();
        for range in &over {
            if has_rows(&of.table, *range).await? {
                with_rows.push(*range);
            }
        }
        if with_rows.is_empty() {
            self.drop_each(of, &over).await?;
            return Ok(with_rows);
        }
        // Should this daemon die before the series are marked, the next one looks at all of them.
        let now_us = (self.now().await? >> 12).cast_signed();
        let dropping = self.registry.read(of.measurement, Which::Space(space::DROPPING), None);
        let mut dropping: Vec<Entry> = dropping.await?;
        dropping.retain(|entry| entry.number.is_none_or(|at| at + DROPPING_MAX_US < now_us));
        let token = Entry::new(space::DROPPING, rand::random::<[u8; 8]>()).number(now_us);
        self.registry.upsert(of.measurement, std::slice::from_ref(&token)).await?;
        let all = is_written || !dropping.is_empty() || self.is_cheaper_to_look_at_all(of).await?;
        let suspects = match all {
            true => None,
            false => Some(self.series_in(of, &with_rows).await?),
        };
        self.drop_each(of, &over).await?;
        match suspects {
            Some(series) => self.mark_dead(of.database, of.measurement, &series).await?,
            None => self.mark_all_dead(of.database, of.measurement).await?,
        }
        dropping.push(token);
        self.registry.delete(of.measurement, &dropping).await?;
        Ok(with_rows)
    }

    /// Whether the ranges have so many rows that looking for one of each series costs less than
    /// reading whose they are.
    async fn is_cheaper_to_look_at_all(&self, of: &Dropping) -> Result<bool, StoreError> {
        let (over, all) = of.share;
        let rows =
            u128::from(self.statistics(&of.table).await?) * over as u128 / all.max(1) as u128;
        let series = self.state(of.measurement, None).await?.series_end.unsigned_abs();
        Ok(rows > u128::from(series) * ROWS_PER_LOOK)
    }

    /// The series with rows in some ranges.
    async fn series_in(&self, of: &Dropping, ranges: &[TimeRange]) -> Result<Vec<i64>, StoreError> {
        let mut series: BTreeSet<i64> = BTreeSet::new();
        for range in ranges {
            let scan = rows_of(&of.table, of.measurement)
                .columns([SERIES_ID])
                .filter(Predicate::greater_or_equal(TIME, range.min))
                .filter(Predicate::less_or_equal(TIME, range.max))
                .read_mode(ReadMode::Snapshot(None));
            let mut scanner = scan.open().map_err(cluster)?;
            loop {
                let batch = match scanner.next().await {
                    Ok(Some(batch)) => batch,
                    // Another daemon was quicker, and looks at them.
                    Ok(None) | Err(Error::TableNotFound { .. }) => break,
                    Err(error) => return Err(cluster(error)),
                };
                let mut last = None;
                for id in batch.column(0).i64s().filter(|id| last.replace(*id) != Some(*id)) {
                    series.insert(id);
                }
            }
        }
        Ok(series.into_iter().collect())
    }

    async fn drop_each(&self, of: &Dropping, ranges: &[TimeRange]) -> Result<(), StoreError> {
        for times in ranges {
            // First the entry: a writer that makes the range anew after the drop registers it again.
            self.forget_range(of.measurement, of.policy, *times).await?;
            match of.table.alter().drop_range(partition_of(*times)).apply().await {
                Ok(_) | Err(Error::TableNotFound { .. }) => {}
                // Another daemon was quicker.
                Err(error) => {
                    let left = of.table.range_partitions().await.map_err(cluster)?;
                    if left.iter().any(|range| range_of(range) == *times) {
                        return Err(cluster(error));
                    }
                }
            }
        }
        Ok(())
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
