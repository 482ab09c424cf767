//! Checks what a store says of its partitions. Their bounds are the store's own where partitions of
//! another length are in the way, so they are compared with rows, not with the model's.

use std::collections::{BTreeMap, BTreeSet};

use model::{DatabaseId, PolicyId, TimeRange};

use super::apply::{failed, same};
use crate::{ListedPartition, Store, list_partitions, testing};

/// What was seen of numbers so far.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// Whose a number is, for ever.
    owners: BTreeMap<u64, (PolicyId, TimeRange)>,
    /// The numbers of partitions that had rows and lost none since.
    lasting: Vec<ListedPartition>,
}

impl Numbers {
    /// Something was deleted: partitions may have ceased to exist.
    pub(super) fn deleted(&mut self) {
        self.lasting.clear();
    }

    /// Compares a database's partitions with what was seen, and with the times that rows have.
    pub(super) fn check(
        &mut self,
        listed: &[ListedPartition],
        times: &BTreeSet<(PolicyId, i64)>,
    ) -> Result<(), String> {
        for pair in listed.windows(2) {
            let apart = pair[0].time.max < pair[1].time.min;
            if pair[0].policy > pair[1].policy || pair[0].policy == pair[1].policy && !apart {
                return Err(format!("partitions are not in order: {pair:?}"));
            }
        }
        for (policy, time_ns) in times {
            if !listed.iter().any(|p| p.policy == *policy && p.time.contains(*time_ns)) {
                return Err(format!("no partition has the row at {time_ns} of {policy:?}"));
            }
        }
        for partition in listed {
            let owner = (partition.policy, partition.time);
            let known = *self.owners.entry(partition.number).or_insert(owner);
            same(&format!("owner of number {}", partition.number), &owner, &known)?;
            if let Some(before) = self.lasting.iter().find(|p| (p.policy, p.time) == owner) {
                same("number of a partition", &partition.number, &before.number)?;
            } else if times.iter().any(|(p, at)| *p == owner.0 && owner.1.contains(*at)) {
                self.lasting.push(*partition);
            }
        }
        Ok(())
    }
}

/// The partitions of a database, as the store lists them.
pub(super) fn list(
    store: &dyn Store,
    database: DatabaseId,
) -> Result<Vec<ListedPartition>, String> {
    let listed = list_partitions(store, database, testing::unlimited());
    let listed = listed.map_err(failed("partitions"))?;
    match listed.iter().find(|partition| partition.number == 0 || partition.time.is_empty()) {
        Some(wrong) => Err(format!("this is no partition: {wrong:?}")),
        None => Ok(listed),
    }
}
