//! Writes of which some partitions are there and others not.
//!
//! There are too many ways to follow each; but partitions have no row in common, so that what a store
//! shows of each says on its own which torn writes reached it.

use std::collections::{BTreeMap, BTreeSet};

use store::Policy;
use store::testing::{self, Row};

use super::{Action, World};
use crate::content::{Content, Scope};

/// Torn writes of one partition at most.
const TORN_MAX: usize = 8;

/// For a write, by its place among the actions, the partitions that it did not reach.
type Missed = BTreeMap<usize, BTreeSet<i64>>;

impl World {
    /// This world with the torn writes in those partitions only where `content` shows them; `None` if
    /// there is a partition that no choice explains.
    pub(super) fn torn_as(&self, content: &Content, scope: &Scope) -> Option<Self> {
        let mut writes: BTreeMap<(u32, i64), (Policy, Vec<usize>)> = BTreeMap::new();
        for at in &self.torn {
            let Action::Write(policy, rows) = &self.actions[*at] else { continue };
            let starts: BTreeSet<i64> = rows.iter().map(|row| start_of(*policy, row)).collect();
            for start in starts {
                let (_, of_it) =
                    writes.entry((policy.id.0, start)).or_insert_with(|| (*policy, Vec::new()));
                of_it.push(*at);
            }
        }
        let mut missed = Missed::new();
        for ((_, start), (policy, of_it)) in writes {
            assert!(of_it.len() <= TORN_MAX, "BUG: too many torn writes to follow");
            let fits = |set: &u32| {
                let world = self.without(&with(&missed, &of_it, start, *set));
                world.agrees_on(content, scope, policy, start)
            };
            let set = (0..1u32 << of_it.len()).find(fits)?;
            missed = with(&missed, &of_it, start, set);
        }
        (!missed.is_empty()).then(|| self.without(&missed))
    }

    /// This world without what `missed` names. Definitions of all rows precede those of any.
    fn without(&self, missed: &Missed) -> Self {
        let actions = self.actions.iter().enumerate().flat_map(|(at, action)| {
            let (Action::Write(policy, rows), Some(starts)) = (action, missed.get(&at)) else {
                return vec![action.clone()];
            };
            let reached = |row: &&Row| !starts.contains(&start_of(*policy, row));
            let left: Vec<Row> = rows.iter().filter(reached).cloned().collect();
            let define = Action::Define(*policy, rows.clone());
            vec![define, Action::Write(*policy, left.into())]
        });
        Self::of(actions.collect())
    }

    /// Whether `content` shows of a partition what there is of it here.
    fn agrees_on(&self, content: &Content, scope: &Scope, policy: Policy, start: i64) -> bool {
        let inside = |row: &&Row| start_of(policy, row) == start;
        scope.measurements.iter().all(|measurement| {
            let shown = content.rows.get(&(policy.id.0, measurement.clone()));
            let shown = shown.map_or(&[][..], Vec::as_slice);
            testing::read_all(&self.model, policy, measurement)
                .is_ok_and(|rows| rows.iter().filter(inside).eq(shown.iter().filter(inside)))
        })
    }
}

/// `missed`, and of the writes `of_it` those in `set` do not reach the partition.
fn with(missed: &Missed, of_it: &[usize], start: i64, set: u32) -> Missed {
    let mut missed = missed.clone();
    for (bit, at) in of_it.iter().enumerate() {
        if set >> bit & 1 == 1 {
            missed.entry(*at).or_default().insert(start);
        }
    }
    missed
}

fn start_of(policy: Policy, row: &Row) -> i64 {
    model::partition_range(row.time_ns, policy.partition_ns).min
}
