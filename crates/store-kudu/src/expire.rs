//! Expiry: range partitions that are over are dropped whole.

use std::collections::BTreeSet;

use kudu_client::{Error, Predicate, ReadMode, Table};
use model::{DatabaseId, PolicyId, TimeRange};
use store::StoreError;

use crate::dead::ROWS_PER_LOOK;
use crate::error::cluster;
use crate::layout::{SERIES_ID, TIME, is_sharing, rows_of};
use crate::measurement::{range_entry, registered_range};
use crate::ranges::{partition_of, range_of};
use crate::registry::{Entry, Which, space};
use crate::shared::Shared;

/// How long dropping ranges and marking series takes at most: after that whoever did it has died.
const DROPPING_MAX_US: i64 = 600_000_000;

/// A table that ranges are dropped of.
struct Dropping {
    table: Table,
    database: DatabaseId,
    policy: PolicyId,
    /// Whose rows it has.
    measurements: Vec<i64>,
    /// How many of its ranges go.
    share: (usize, usize),
}

/// What has to be done about a measurement once its ranges are gone.
struct Marking {
    measurement: i64,
    /// Series that may have no rows left; `None`: any.
    suspects: Option<Vec<i64>>,
    /// What says so meanwhile.
    tokens: Vec<Entry>,
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
            let measurement = self.names.measurement_of(&name);
            let is_shared = self.names.is_shared(database, &name);
            if !name.starts_with(&prefix) || (measurement.is_none() && !is_shared) {
                continue;
            }
            let Some((table, ranges)) = self.open_with_ranges(&name).await? else { continue };
            let there: Vec<TimeRange> = ranges.iter().map(range_of).collect();
            if let Some(measurement) = measurement {
                self.forget_lost(measurement, policy, &there, &goes).await?;
            }
            let over: Vec<TimeRange> = there.iter().copied().filter(|r| goes(*r)).collect();
            if over.is_empty() {
                continue;
            }
            let share = (over.len(), ranges.len());
            let measurements = match measurement {
                Some(measurement) => vec![measurement],
                None => self.sharing_in(database, policy, &over).await?,
            };
            let table = Dropping { table, database, policy, measurements, share };
            let with_rows = self.drop_ranges(&table, over, is_written).await?;
            dropped.extend(with_rows.iter().map(|range| (range.min, range.max)));
        }
        Ok(dropped.len())
    }

    /// Forgets ranges that are to go and that somebody has dropped by hand, so that nobody complains any
    /// more. A writer that has just made one registers it again.
    async fn forget_lost(
        &self,
        measurement: i64,
        policy: PolicyId,
        there: &[TimeRange],
        goes: impl Fn(TimeRange) -> bool,
    ) -> Result<(), StoreError> {
        let entries = self.registry.read(measurement, Which::Space(space::RANGE), None).await?;
        for (of, range) in entries.iter().filter_map(registered_range) {
            if of == policy && goes(range) && !there.contains(&range) {
                self.forget_range(measurement, policy, range).await?;
            }
        }
        Ok(())
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
        let mut markings = Vec::new();
        for measurement in of.measurements.iter().filter(|_| !with_rows.is_empty()) {
            markings.push(self.prepare_marking(of, *measurement, &with_rows, is_written).await?);
        }
        self.drop_each(of, &over).await?;
        for Marking { measurement, suspects, tokens } in markings {
            match suspects {
                Some(series) => self.mark_dead(of.database, measurement, &series).await?,
                None => self.mark_all_dead(of.database, measurement).await?,
            }
            self.registry.delete(measurement, &tokens).await?;
        }
        Ok(with_rows)
    }

    /// The measurements of a shared table that have some of these ranges.
    async fn sharing_in(
        &self,
        database: DatabaseId,
        policy: PolicyId,
        ranges: &[TimeRange],
    ) -> Result<Vec<i64>, StoreError> {
        let mut found = Vec::new();
        for (_, id) in self.measurements_of(database, None).await? {
            if !is_sharing(id) {
                continue;
            }
            let entries = self.registry.read(id, Which::Space(space::RANGE), None).await?;
            let goes = |(of, range): (PolicyId, TimeRange)| of == policy && ranges.contains(&range);
            found.extend(entries.iter().filter_map(registered_range).any(goes).then_some(id));
        }
        Ok(found)
    }

    /// Finds out before ranges go which series of a measurement have to be looked at afterwards.
    async fn prepare_marking(
        &self,
        of: &Dropping,
        measurement: i64,
        with_rows: &[TimeRange],
        is_written: bool,
    ) -> Result<Marking, StoreError> {
        // Should this daemon die before the series are marked, the next one looks at all of them.
        let now_us = (self.now().await? >> 12).cast_signed();
        let dropping = self.registry.read(measurement, Which::Space(space::DROPPING), None);
        let mut tokens: Vec<Entry> = dropping.await?;
        tokens.retain(|entry| {
            entry.number.is_none_or(|at| at.saturating_add(DROPPING_MAX_US) < now_us)
        });
        let token = Entry::new(space::DROPPING, rand::random::<[u8; 8]>()).number(now_us);
        self.registry.upsert(measurement, std::slice::from_ref(&token)).await?;
        let is_cheaper = self.is_cheaper_to_look_at_all(of, measurement);
        let suspects = match is_written || !tokens.is_empty() || is_cheaper.await? {
            true => None,
            false => self.series_in(of, measurement, with_rows).await?,
        };
        tokens.push(token);
        Ok(Marking { measurement, suspects, tokens })
    }

    /// Whether the ranges have so many rows that looking for one of each series costs less than
    /// reading whose they are.
    async fn is_cheaper_to_look_at_all(
        &self,
        of: &Dropping,
        measurement: i64,
    ) -> Result<bool, StoreError> {
        let (over, all) = of.share;
        let rows =
            u128::from(self.statistics(&of.table).await?) * over as u128 / all.max(1) as u128;
        let series = self.state(measurement, None).await?.series_end.unsigned_abs();
        Ok(rows > u128::from(series) * ROWS_PER_LOOK)
    }

    /// The series with rows in some ranges; `None`: they are many.
    async fn series_in(
        &self,
        of: &Dropping,
        measurement: i64,
        ranges: &[TimeRange],
    ) -> Result<Option<Vec<i64>>, StoreError> {
        let mut series: BTreeSet<i64> = BTreeSet::new();
        let series_max = self.series_at_once();
        let _held = self.hold_series(series_max)?;
        for range in ranges {
            let scan = rows_of(&of.table, measurement)
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
                if series.len() > series_max {
                    return Ok(None);
                }
            }
        }
        Ok(Some(series.into_iter().collect()))
    }

    async fn drop_each(&self, of: &Dropping, ranges: &[TimeRange]) -> Result<(), StoreError> {
        for times in ranges {
            // First the entry: a writer that makes the range anew after the drop registers it again.
            for measurement in &of.measurements {
                self.forget_range(*measurement, of.policy, *times).await?;
            }
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
