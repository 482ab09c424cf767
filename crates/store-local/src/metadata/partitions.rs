//! Answers about partitions, and the numbers that users know them by.
//!
//! Numbers are given when somebody asks: no write waits for one. The manifest has a number before it
//! is told, unless the store is read-only, and forgets those of partitions that are gone at the next question.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use model::{ColumnBatch, PolicyId, TimeRange};
use store::{MetadataCursor, MetadataRequest, StoreError};

use super::Part;
use crate::engine::Engine;
use crate::manifest::Edit;
use crate::view::View;

/// By policy, first and last time.
type Numbers = BTreeMap<(PolicyId, i64, i64), u64>;

/// The whole answer.
pub(super) fn metadata(
    engine: &Engine,
    request: &MetadataRequest,
) -> Result<Box<dyn MetadataCursor>, StoreError> {
    let (view, numbers) = numbered(engine)?;
    let (mut part, mut ready) = (Part::default(), VecDeque::new());
    for partition in view.partitions().filter(|p| p.database == request.database) {
        let (policy, time) = (partition.policy, partition.time);
        // All of the view have one.
        let Some(number) = numbers.get(&key(policy, time)) else { continue };
        part.push(
            &[
                &number.to_string(),
                &policy.0.to_string(),
                &time.min.to_string(),
                &time.max.to_string(),
            ],
            &mut ready,
        );
    }
    ready.extend(part.finish());
    Ok(Box::new(Ready { parts: ready, request: request.clone() }))
}

fn key(policy: PolicyId, time: TimeRange) -> (PolicyId, i64, i64) {
    (policy, time.min, time.max)
}

/// A view whose partitions all have numbers.
fn numbered(engine: &Engine) -> Result<(Arc<View>, Numbers), StoreError> {
    let known = |engine: &Engine| -> (Numbers, u64) {
        engine.manifest.read(|state| {
            let numbers =
                state.partitions.iter().map(|(n, (policy, time))| (key(*policy, *time), *n));
            (numbers.collect(), state.last_partition)
        })
    };
    let view = engine.view();
    let (mut numbers, last) = known(engine);
    let edits = renumber(&view, &mut numbers, last);
    // A store that is read-only cannot keep them, and has no use for it: partitions neither come nor go, and none can be
    // dropped by its number.
    if edits.is_empty() || engine.check_writable().is_err() {
        return Ok((view, numbers));
    }
    engine.restructure(|view| {
        let (mut numbers, last) = known(engine);
        let edits = renumber(view, &mut numbers, last);
        Ok((edits, view.clone(), (Arc::new(view.clone()), numbers)))
    })
}

/// Leaves out the numbers of partitions that are gone and gives one to each that has none, the next after the `last`.
fn renumber(view: &View, numbers: &mut Numbers, last: u64) -> Vec<Edit> {
    let mut edits = Vec::new();
    numbers.retain(|(policy, min, max), number| {
        let time = TimeRange::new(*min, *max);
        let exists = view.partition_at(*policy, *min).is_some_and(|p| p.time == time);
        if !exists {
            edits.push(Edit::PartitionGone(*number));
        }
        exists
    });
    let mut next = last;
    for partition in view.partitions() {
        let (policy, time) = (partition.policy, partition.time);
        numbers.entry(key(policy, time)).or_insert_with(|| {
            next += 1;
            edits.push(Edit::Partition { policy, partition: time, number: next });
            next
        });
    }
    edits
}

/// Parts that are there.
#[derive(Debug)]
struct Ready {
    parts: VecDeque<ColumnBatch>,
    request: MetadataRequest,
}

impl MetadataCursor for Ready {
    fn next(&mut self) -> Result<Option<ColumnBatch>, StoreError> {
        self.request.context.interrupt.check()?;
        Ok(self.parts.pop_front())
    }
}
