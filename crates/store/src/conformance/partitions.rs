//! Checks what a store says of its partitions. Their bounds are the store's own where partitions of
//! another length are in the way, so they are compared with rows, not with the model's.

use std::collections::{BTreeMap, BTreeSet};

use model::{DatabaseId, PolicyId, TagExpr, TimeRange};

use super::apply::{failed, same};
use super::compare::names_request;
use crate::{MetadataKind, NameFilter, Store, testing};

/// A partition as the store lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) number: u64,
    pub(super) policy: PolicyId,
    pub(super) time: TimeRange,
}

/// What was seen of numbers so far.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// Whose a number is, for ever.
    owners: BTreeMap<u64, (PolicyId, TimeRange)>,
    /// The numbers of partitions that had rows and lost none since.
    lasting: Vec<Listed>,
}

impl Numbers {
    /// Something was deleted: partitions may have ceased to exist.
    pub(super) fn deleted(&mut self) {
        self.lasting.clear();
    }

    /// Compares a database's partitions with what was seen, and with the times that rows have.
    pub(super) fn check(
        &mut self,
        listed: &[Listed],
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

/// The partitions of a database.
pub(super) fn list(store: &dyn Store, database: DatabaseId) -> Result<Vec<Listed>, String> {
    let kind = MetadataKind::Partitions;
    let request = names_request(database, &kind, &NameFilter::All, &TagExpr::True);
    let facts = testing::names(store, &request).map_err(failed("metadata"))?;
    let parsed = facts.iter().map(|fact| {
        let [number, policy, min, max] = &fact[..] else { return None };
        let time = TimeRange::new(min.parse().ok()?, max.parse().ok()?);
        let number = number.parse().ok().filter(|number| *number > 0)?;
        let listed = Listed { number, policy: PolicyId(policy.parse().ok()?), time };
        (!time.is_empty()).then_some(listed)
    });
    parsed.collect::<Option<_>>().ok_or_else(|| format!("these are no partitions: {facts:?}"))
}
