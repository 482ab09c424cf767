//! Background work: flushes first, then the series index, then compactions, then partitions that are better one.
//!
//! Several threads take one job at a time; a partition is flushed by one thread at a time and
//! compacted by one thread at a time. What to do next is read off the current view. One more thread
//! takes nothing but flushes: merges can take long, and writers wait for room in memory. Merges of the
//! series index wait for those of segments, and are the larger for it: a thread of their own, which
//! merged runs as soon as there were enough, made rows of new series come in 12 % slower.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hashbrown::HashSet;
use model::PolicyId;
use parking_lot::Mutex;
use platform::in_background;
use store::StoreError;
use wal::Lsn;

use crate::compaction::{self, When};
use crate::engine::Engine;
use crate::error::series_error;
use crate::flush;
use crate::memtable::Memtable;
use crate::view::{Partition, Segment};

/// How often threads look for work that nobody announced: idle partitions, mostly.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often somebody who waits for other threads' jobs looks again.
const WAIT_FOR_OTHERS: Duration = Duration::from_millis(1);
/// How long a thread waits after a job failed.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(2);

/// Partitions that somebody works on.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    flushing: Mutex<HashSet<(PolicyId, i64)>>,
    compacting: Mutex<HashSet<(PolicyId, i64)>>,
    /// Segments whose merge met damage: left as they are, until the next start.
    damaged: Mutex<HashSet<u64>>,
    jobs: AtomicUsize,
}

/// One piece of work.
#[derive(Debug)]
enum Job {
    Flush(Arc<Partition>),
    Compact(Arc<Partition>, compaction::Choice),
    Join(Vec<Arc<Partition>>),
    MergeIndex,
}

/// What a thread takes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// Whatever frees most memory, or is due.
    Everything,
    /// Flushes only.
    Flushes,
}

/// Works until the store is closed.
pub(crate) fn run(engine: &Engine, busy: &Busy, duty: Duty) {
    while !engine.closed.load(Ordering::Acquire) {
        let seen = engine.work.announced();
        match step(engine, busy, duty, false) {
            Ok(true) => {}
            Ok(false) => engine.work.wait_work(seen, LOOK_EVERY),
            Err(StoreError::Closed) => return,
            Err(error) => {
                tracing::warn!(%error, "a background job failed; it will be tried again");
                engine.metrics.job_failures.add(1);
                engine.work.wait_work(engine.work.announced(), PAUSE_AFTER_FAILURE);
            }
        }
    }
}

/// Does one job; `false` if there is nothing to do. `all_idle`: every partition counts as idle, so
/// that in the end everything is in segments for keeping.
fn step(engine: &Engine, busy: &Busy, duty: Duty, all_idle: bool) -> Result<bool, StoreError> {
    engine.check_writable()?;
    freeze_chosen(engine, all_idle);
    busy.jobs.fetch_add(1, Ordering::AcqRel);
    let job = match duty {
        Duty::Everything => next_job(engine, busy, all_idle),
        Duty::Flushes => next_flush(engine, busy).map(Job::Flush),
    };
    let Some(job) = job else {
        busy.jobs.fetch_sub(1, Ordering::AcqRel);
        return Ok(false);
    };
    let outcome = match &job {
        Job::Flush(partition) => flush::flush_partition(engine, partition).map(drop),
        Job::Compact(partition, choice) => compaction::compact(engine, partition, choice),
        Job::Join(partitions) => compaction::join(engine, partitions),
        Job::MergeIndex => merge_index(engine),
    };
    if let Err(StoreError::Corruption { path, .. }) = &outcome {
        // Of partitions that were to become one the others still may.
        let (named, others): (Vec<_>, Vec<_>) =
            job.inputs().into_iter().partition(|s| engine.segment_path(s.meta.id) == *path);
        let damaged = if named.is_empty() { others } else { named };
        busy.damaged.lock().extend(damaged.iter().map(|s| s.meta.id));
    }
    busy.release(&job);
    busy.jobs.fetch_sub(1, Ordering::AcqRel);
    outcome.map(|()| true)
}

/// Merges runs of the series index. Writes go first, as long as there are few runs to look into for each
/// new series; what waits meanwhile is merged at once then.
fn merge_index(engine: &Engine) -> Result<(), StoreError> {
    let merge = || engine.index.merge_step().map(drop).map_err(series_error);
    if engine.has_many_index_runs() { merge() } else { in_background(merge) }
}

/// Does jobs until there is nothing left to do, for this thread or any other.
pub(crate) fn finish(engine: &Engine, busy: &Busy, all_idle: bool) -> Result<(), StoreError> {
    loop {
        let next = || step(engine, busy, Duty::Everything, all_idle);
        while next()? {}
        if busy.jobs.load(Ordering::Acquire) == 0 && !next()? {
            return Ok(());
        }
        std::thread::sleep(WAIT_FOR_OTHERS);
    }
}

/// Flushes every memtable.
pub(crate) fn flush_all(engine: &Engine, busy: &Busy) -> Result<(), StoreError> {
    engine.check_writable()?;
    freeze_chosen(engine, true);
    loop {
        if let Some(partition) = next_flush(engine, busy) {
            let outcome = flush::flush_partition(engine, &partition);
            busy.release(&Job::Flush(partition));
            outcome?;
        } else if busy.flushing.lock().is_empty() {
            return Ok(());
        } else {
            std::thread::sleep(WAIT_FOR_OTHERS);
        }
    }
}

/// Takes the partition whose frozen memtables hold most memory.
fn next_flush(engine: &Engine, busy: &Busy) -> Option<Arc<Partition>> {
    let mut flushing = busy.flushing.lock();
    let view = engine.view();
    let free =
        |p: &&Arc<Partition>| !p.frozen.is_empty() && !flushing.contains(&(p.policy, p.time.min));
    let held = |p: &&Arc<Partition>| p.frozen.iter().map(|f| f.table.bytes()).sum::<usize>();
    let partition = Arc::clone(view.partitions().filter(free).max_by_key(held)?);
    flushing.insert((partition.policy, partition.time.min));
    Some(partition)
}

impl Job {
    /// The segments that it reads.
    fn inputs(&self) -> Vec<Arc<Segment>> {
        match self {
            Self::Compact(partition, choice) => {
                partition.segments[choice.segments.clone()].to_vec()
            }
            Self::Join(partitions) => partitions.iter().flat_map(|p| p.segments.clone()).collect(),
            Self::Flush(_) | Self::MergeIndex => Vec::new(),
        }
    }
}

impl Busy {
    fn release(&self, job: &Job) {
        match job {
            Job::Flush(p) => drop(self.flushing.lock().remove(&(p.policy, p.time.min))),
            Job::Compact(p, _) => drop(self.compacting.lock().remove(&(p.policy, p.time.min))),
            Job::Join(partitions) => {
                let mut compacting = self.compacting.lock();
                for partition in partitions {
                    compacting.remove(&(partition.policy, partition.time.min));
                }
            }
            Job::MergeIndex => {}
        }
    }
}

/// Freezes the memtables that the flush policy chooses.
fn freeze_chosen(engine: &Engine, all_idle: bool) {
    let view = engine.view();
    let actives: Vec<&Arc<Partition>> = view.partitions().filter(|p| p.active.is_some()).collect();
    let candidates: Vec<flush::Candidate> = actives
        .iter()
        .filter_map(|p| Some((p, p.active.as_ref()?)))
        .map(|(partition, table)| {
            let left_alone = table.last_write().elapsed();
            flush::Candidate {
                bytes: table.bytes(),
                first_lsn: table.first_lsn,
                idle: all_idle || left_alone >= engine.options.idle_after,
                age: table.created().elapsed(),
                left_alone,
                others_wait: !partition.frozen.is_empty(),
            }
        })
        .collect();
    let position = engine.wal.position();
    let limits = flush::Limits {
        memtable_flush: engine.memory.memtable_flush,
        memtables_total: engine.memory.memtables_soft,
        oldest_lsn: Lsn(position.0.saturating_sub(engine.memory.log_bytes_max())),
        in_memory_max: engine.options.in_memory_max,
    };
    let chosen = flush::choose(&candidates, &limits);
    if chosen.is_empty() {
        return;
    }
    let tables = chosen.iter().filter_map(|at| actives[*at].active.as_ref());
    let chosen: HashSet<*const Memtable> = tables.map(Arc::as_ptr).collect();
    let _gate = engine.gate.write();
    // Another thread may have frozen them meanwhile; what took their place is not full yet.
    engine.freeze(|p| p.active.as_ref().is_some_and(|table| chosen.contains(&Arc::as_ptr(table))));
}

/// Takes the next job: what frees memory first.
fn next_job(engine: &Engine, busy: &Busy, all_idle: bool) -> Option<Job> {
    if let Some(partition) = next_flush(engine, busy) {
        return Some(Job::Flush(partition));
    }
    if engine.index.merge_wanted() {
        return Some(Job::MergeIndex);
    }
    next_merge(engine, busy, all_idle)
}

/// Takes the next merge: of segments of a partition; of partitions, if there is none.
fn next_merge(engine: &Engine, busy: &Busy, all_idle: bool) -> Option<Job> {
    let key = |p: &Partition| (p.policy, p.time.min);
    let mut compacting = busy.compacting.lock();
    // Taken now: what it has of a partition that nobody works on is how that is.
    let view = engine.view();
    let damaged = busy.damaged.lock();
    let is_sound =
        |segments: &[Arc<Segment>]| !segments.iter().any(|s| damaged.contains(&s.meta.id));
    let is_idle = |partition: &Partition| {
        partition.active.is_none()
            && partition.frozen.is_empty()
            && (all_idle || engine.partition_idle(partition))
    };
    let full = engine.is_full_of_tombstones();
    for partition in view.partitions().filter(|p| !compacting.contains(&key(p))) {
        let when = match (is_idle(partition), full) {
            (true, _) => When::Idle,
            (false, true) => When::FullOfTombstones,
            (false, false) => When::Busy,
        };
        let sound =
            |choice: &compaction::Choice| is_sound(&partition.segments[choice.segments.clone()]);
        if let Some(choice) = compaction::choice(partition, when).filter(sound) {
            compacting.insert(key(partition));
            // Memtables would not be freed before the merge is done.
            return Some(Job::Compact(Arc::new(partition.segments_only()), choice));
        }
    }
    let rests =
        |p: &Partition| !compacting.contains(&key(p)) && is_idle(p) && is_sound(&p.segments);
    let mut policies = view.policies();
    let partitions =
        policies.find_map(|(_, p)| compaction::neighbours_to_join(engine, p, rests))?;
    compacting.extend(partitions.iter().map(|p| key(p)));
    Some(Job::Join(partitions))
}
