//! Small partitions that lie side by side become one, which has one segment.
//!
//! A partition's bounds are those that its segments say it has, so all that changes is the segments. Nothing but the
//! merge's commit needs care: no memtable may have the old bounds, and who drops partitions must see either all of the
//! old ones or the new one.

use std::sync::Arc;

use model::TimeRange;
use platform::in_background;
use segment::WriterOptions;
use store::StoreError;

use super::join_policy::{Neighbour, choose_to_join};
use super::{When, choice, clear_up, left_over, merged, rest_percent_of};
use crate::engine::Engine;
use crate::flush::segment_meta;
use crate::manifest::Edit;
use crate::view::{Partition, PolicyView, Segment, View};

/// Neighbours among a policy's partitions that should become one; `rests`: whether nobody writes to a partition or works
/// on it.
pub(crate) fn neighbours_to_join(
    engine: &Engine,
    policy: &PolicyView,
    rests: impl Fn(&Partition) -> bool,
) -> Option<Vec<Arc<Partition>>> {
    let fan_in_min = engine.options.join_partitions_min;
    // Of thousands of policies most have few, and to know how long each keeps its rows is a search.
    let first = policy.partitions.first().filter(|_| policy.partitions.len() > fan_in_min)?;
    let kept = engine.kept(first.policy)?;
    let neighbour = |partition: &Arc<Partition>| Neighbour {
        time: partition.time,
        bytes: partition.segments.iter().map(|s| s.meta.bytes).sum(),
        rests: rests(partition)
            && partition.segments.iter().all(|s| s.is_whole())
            && choice(partition, When::Idle).is_none(),
    };
    let neighbours: Vec<Neighbour> = policy.partitions.iter().map(neighbour).collect();
    Some(policy.partitions[choose_to_join(&neighbours, fan_in_min, kept)?].to_vec())
}

/// Makes partitions one, unless somebody writes to them meanwhile.
pub(crate) fn join(engine: &Engine, partitions: &[Arc<Partition>]) -> Result<(), StoreError> {
    let (first, last) = (&partitions[0], &partitions[partitions.len() - 1]);
    let joined = TimeRange::new(first.time.min, last.time.max);
    // Partitions share no time: which of them is later in the list does not matter.
    let inputs: Vec<Arc<Segment>> =
        partitions.iter().flat_map(|p| &p.segments).map(Arc::clone).collect();
    let id = engine.manifest.next_segment_id();
    let options = WriterOptions::cold(id);
    let rest_percent = || rest_percent_of(engine, first);
    let merge = || merged(engine, (id, options), &inputs, &rest_percent);
    let (info, reader) = in_background(merge)?;

    let last_write = inputs.iter().map(|s| s.last_write).max().expect("BUG: a merge of nothing");
    let sequence = inputs.iter().map(|s| s.meta.sequence).max().expect("BUG: a merge of nothing");
    // Nobody drops partitions or deletes rows meanwhile. Writers may be at work: who finds no memtable makes one while
    // no partition can change, and logs its rows after that.
    let gate = engine.gate.read();
    let replaced = engine.restructure(|view| {
        let Some(now) = unchanged(view, partitions) else {
            return Ok((Vec::new(), view.clone(), false));
        };
        let left = left_over(&now, &inputs);
        let mut edits: Vec<Edit> = inputs.iter().map(|s| Edit::RemoveSegment(s.meta.id)).collect();
        let mut next = view.clone();
        for partition in partitions {
            next = next.without_partition(partition);
        }
        if let Some(reader) = reader {
            let key = (first.database, first.policy, joined);
            let meta = segment_meta(key, id, (sequence, true), &info, &left);
            edits.extend(Edit::added(&meta, &left));
            // No memtable has rows of them: all that the log has so far is in segments.
            let before = engine.wal.position();
            edits.push(Edit::Flushed { policy: first.policy, partition: joined, before });
            let segment = Arc::new(Segment::new(meta, Ok(reader), left, last_write));
            next = next.with_partition(key, |p| p.segments.push(segment));
        }
        Ok((edits, next, true))
    })?;
    drop(gate);
    if replaced {
        engine.metrics.partitions_joined.add(partitions.len() as u64);
        return clear_up(engine, &inputs, None);
    }
    clear_up(engine, &[], (info.rows > 0).then_some(id))
}

/// The segments of partitions as they are now, if these are the same and nothing else is in any of them.
fn unchanged(view: &View, partitions: &[Arc<Partition>]) -> Option<Vec<Arc<Segment>>> {
    let mut segments = Vec::new();
    for then in partitions {
        let now = view.partition_at(then.policy, then.time.min).filter(|p| p.time == then.time)?;
        let ids = |p: &Partition| p.segments.iter().map(|s| s.meta.id).collect::<Vec<_>>();
        if now.active.is_some() || !now.frozen.is_empty() || ids(now) != ids(then) {
            return None;
        }
        segments.extend(now.segments.iter().cloned());
    }
    Some(segments)
}
