//! Partitions as a whole: listed under lasting numbers, and dropped one by one.
//!
//! A partition is a range of time that some table of a policy has rows in; ranges of several tables
//! that overlap are one. Its number is in the registry: whoever inserts it first decides.

use std::collections::BTreeMap;

use model::{DatabaseId, Name, PolicyId, TimeRange};
use store::StoreError;

use crate::error::{cluster, unintelligible};
use crate::expire::has_rows;
use crate::ranges::{range_of, united};
use crate::registry::{Entry, PARTITIONS, Which, ordered, space};
use crate::shared::Shared;

impl Shared {
    /// Number, policy, first and last time of each partition of a database, as text.
    pub(crate) async fn partitions(
        &self,
        database: DatabaseId,
    ) -> Result<Vec<Vec<Name>>, StoreError> {
        let mut rows = Vec::new();
        for (policy, ranges) in self.ranges_with_rows(database).await? {
            for range in united(ranges) {
                let number = self.partition_number(database, policy, range).await?;
                let policy = u64::from(policy.0).to_string();
                let row =
                    [number.to_string(), policy, range.min.to_string(), range.max.to_string()];
                rows.push(row.map(Name::from).to_vec());
            }
        }
        Ok(rows)
    }

    /// Drops a partition of a policy: exactly the one with this first and last time.
    pub(crate) async fn drop_partition(
        &self,
        database: DatabaseId,
        policy: PolicyId,
        time: TimeRange,
    ) -> Result<(), StoreError> {
        let ranges = self.ranges_with_rows(database).await?.remove(&policy).unwrap_or_default();
        if !united(ranges).contains(&time) {
            return Ok(());
        }
        let within = |range: TimeRange| time.min <= range.min && range.max <= time.max;
        self.drop_ranges_of_policy(database, policy, within, true).await.map(drop)
    }

    async fn ranges_with_rows(
        &self,
        database: DatabaseId,
    ) -> Result<BTreeMap<PolicyId, Vec<TimeRange>>, StoreError> {
        let prefix = self.names.of_database(database);
        let mut found: BTreeMap<PolicyId, Vec<TimeRange>> = BTreeMap::new();
        for name in self.client.list_tables(&prefix).await.map_err(cluster)? {
            let Some(policy) = name.strip_prefix(&prefix).and_then(policy_of) else { continue };
            let Some((table, ranges)) = self.open_with_ranges(&name).await? else { continue };
            for range in ranges.iter().map(range_of) {
                if has_rows(&table, range).await? {
                    found.entry(policy).or_default().push(range);
                }
            }
        }
        Ok(found)
    }

    async fn partition_number(
        &self,
        database: DatabaseId,
        policy: PolicyId,
        range: TimeRange,
    ) -> Result<i64, StoreError> {
        let owner = [i64::from(database.0), i64::from(policy.0), range.min, range.max];
        let key = owner.map(ordered).concat();
        let which = Which::Key(space::PARTITION, &key);
        loop {
            if let Some(entry) = self.registry.read(PARTITIONS, which, None).await?.pop() {
                let missing = || unintelligible(self.registry.table.name(), "no partition number");
                return entry.number.ok_or_else(missing);
            }
            let mut ids = self.partition_ids.lock().await;
            let taken = ids.take(&self.registry, PARTITIONS, 1).await?;
            let entry = Entry::new(space::PARTITION, key.clone()).number(taken[0]);
            // If another daemon was quicker, its number counts.
            self.registry.insert_one(PARTITIONS, entry).await?;
        }
    }
}

/// The policy of a data table, whose name goes on so behind the database's.
fn policy_of(rest: &str) -> Option<PolicyId> {
    rest.strip_prefix("rp")?.split('.').next()?.parse().ok().map(PolicyId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_from_names() {
        assert_eq!(policy_of("rp7.m1.cpu"), Some(PolicyId(7)));
        assert_eq!(policy_of("m1.cpu"), None);
    }
}
