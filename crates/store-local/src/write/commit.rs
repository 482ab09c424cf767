//! A batch gets its place: in the log, then in the memtables, in the same order everywhere.
//!
//! The order of two batches that write the same row decides which one wins, so memtables must see
//! batches in the log's order: recovery replays the log. A batch takes lane after lane, never giving
//! one up before it has the next; no batch can overtake another, yet batches follow each other
//! through the shards at the same time.

use std::sync::Arc;

use model::TimeRange;
use store::StoreError;
use wal::Lsn;

use super::prepare::Prepared;
use super::record::Record;
use crate::engine::Engine;
use crate::error::wal_error;
use crate::memtable::{Memtable, ROWS_MAX, SHARDS, TEXT_BYTES_MAX, shard_of};
use crate::rows::{BatchRow, RowBatch};

/// What becomes of a batch.
pub(super) enum Committed {
    /// It is in the log up to here, and in the memtables.
    Until(Lsn),
    /// Nothing happened, because this memtable has no room for it: it must be frozen first.
    Full(Arc<Memtable>),
}

/// Logs a batch and adds it to the memtables. Call with the gate held.
pub(super) fn commit(engine: &Engine, prepared: &Prepared<'_>) -> Result<Committed, StoreError> {
    let batch = &prepared.batch;
    let placed = Placed::new(engine, batch, engine.wal.position())?;
    if let Some(full) = placed.claim_room(batch) {
        return Ok(Committed::Full(full));
    }
    let bytes = Record::encode_rows(batch, &prepared.links);
    let order = engine.order.lock();
    let lsn = engine.wal.append(&[&bytes]).map_err(wal_error)?;
    let mut lane = engine.lanes[0].lock();
    drop(order);
    for shard in 0..SHARDS {
        placed.append(batch, shard);
        if shard + 1 < SHARDS {
            let next = engine.lanes[shard + 1].lock();
            drop(std::mem::replace(&mut lane, next));
        }
    }
    drop(lane);
    placed.targets.iter().for_each(|t| t.table.touch());
    engine.metrics.bytes_logged.add(bytes.len() as u64);
    if placed.targets.iter().any(|t| t.table.bytes() >= engine.memory.memtable_flush) {
        engine.work.notify();
    }
    Ok(Committed::Until(lsn))
}

/// Adds a batch to the memtables without logging it: replay. Its record starts at `start` in the log;
/// `skip` says which partitions have it already.
pub(crate) fn apply(
    engine: &Engine,
    batch: &RowBatch<'_>,
    start: Lsn,
    skip: impl Fn(TimeRange) -> bool,
) -> Result<u64, StoreError> {
    let place = || {
        let mut placed = Placed::new(engine, batch, start)?;
        let skipped: Vec<bool> = placed.targets.iter().map(|t| skip(t.table.partition)).collect();
        placed.rows.retain(|key| !skipped[target_of(*key)]);
        placed.index_shards();
        Ok::<_, StoreError>(placed)
    };
    let mut placed = place()?;
    while let Some(full) = placed.claim_room(batch) {
        let (rows, text) = (batch.rows.len(), batch.strings.len());
        if rows > ROWS_MAX || text > TEXT_BYTES_MAX {
            return Err(StoreError::Io(format!(
                "log: a record of {rows} rows with {text} bytes of text, at most {ROWS_MAX} with {TEXT_BYTES_MAX}"
            )));
        }
        engine.freeze_at(start, |p| p.active.as_ref().is_some_and(|t| Arc::ptr_eq(t, &full)));
        placed = place()?;
    }
    (0..SHARDS).for_each(|shard| placed.append(batch, shard));
    Ok(placed.rows.len() as u64)
}

/// The rows of a batch by shard and memtable.
struct Placed {
    targets: Vec<Target>,
    /// Per row shard, target and row index packed into one number, ascending.
    rows: Vec<u64>,
    /// Where each shard's rows start.
    starts: [usize; SHARDS + 1],
}

struct Target {
    table: Arc<Memtable>,
    layouts: Vec<u32>,
}

const ROW_BITS: u32 = 32;
const TARGET_BITS: u32 = 26;

fn target_of(key: u64) -> usize {
    (key >> ROW_BITS) as usize & ((1 << TARGET_BITS) - 1)
}

fn shard_of_key(key: u64) -> usize {
    (key >> (ROW_BITS + TARGET_BITS)) as usize
}

/// Fewer keys are sorted by comparing, which needs no table of counts.
const COUNTED_ROWS_MIN: usize = 128;

/// Sorts keys, which come in the order of rows, by shard and target: counting those of each place. The
/// order of rows within a place stays.
fn sort_by_place(keys: &mut Vec<u64>, targets: usize) {
    if keys.len() < COUNTED_ROWS_MIN {
        keys.sort_unstable();
        return;
    }
    let place_of = |key: u64| shard_of_key(key) * targets + target_of(key);
    let mut next = vec![0u32; SHARDS * targets];
    keys.iter().for_each(|key| next[place_of(*key)] += 1);
    let mut start = 0;
    for next in &mut next {
        start += std::mem::replace(next, start);
    }
    let mut sorted = vec![0; keys.len()];
    for key in keys.iter() {
        let next = &mut next[place_of(*key)];
        sorted[*next as usize] = *key;
        *next += 1;
    }
    *keys = sorted;
}

impl Placed {
    /// Finds the memtables. Those that are made here may hold rows of the log from `first_lsn` on.
    fn new(engine: &Engine, batch: &RowBatch<'_>, first_lsn: Lsn) -> Result<Self, StoreError> {
        let mut targets: Vec<Target> = Vec::with_capacity(1);
        let mut last: Option<(TimeRange, usize)> = None;
        let mut rows = Vec::with_capacity(batch.rows.len());
        for (at, row) in batch.rows.iter().enumerate() {
            let target = match last {
                Some((time, target)) if time.contains(row.time_ns) => target,
                _ => {
                    let target = find_target(engine, batch, row.time_ns, first_lsn, &mut targets)?;
                    last = Some((targets[target].table.partition, target));
                    target
                }
            };
            let shard = shard_of(row.series) as u64;
            rows.push(shard << (ROW_BITS + TARGET_BITS) | (target as u64) << ROW_BITS | at as u64);
        }
        sort_by_place(&mut rows, targets.len());
        let mut placed = Self { targets, rows, starts: [0; SHARDS + 1] };
        placed.index_shards();
        Ok(placed)
    }

    fn index_shards(&mut self) {
        for shard in 0..=SHARDS {
            self.starts[shard] = self.rows.partition_point(|key| shard_of_key(*key) < shard);
        }
    }

    /// Sets room aside in every memtable; gives the first that has too little.
    fn claim_room(&self, batch: &RowBatch<'_>) -> Option<Arc<Memtable>> {
        let mut counts = vec![0usize; self.targets.len()];
        self.rows.iter().for_each(|key| counts[target_of(*key)] += 1);
        let text_bytes = batch.strings.len();
        let full = |(target, rows): (&Target, usize)| {
            (rows > 0 && !target.table.claim(rows, text_bytes)).then(|| Arc::clone(&target.table))
        };
        self.targets.iter().zip(counts).find_map(full)
    }

    fn append(&self, batch: &RowBatch<'_>, shard: usize) {
        let rows = &self.rows[self.starts[shard]..self.starts[shard + 1]];
        for group in rows.chunk_by(|a, b| target_of(*a) == target_of(*b)) {
            let target = &self.targets[target_of(group[0])];
            let selected = group.iter().map(|key| -> BatchRow { batch.rows[*key as u32 as usize] });
            target.table.append(shard, batch, &target.layouts, selected);
        }
    }
}

/// The memtable for a time, made if there is none yet; its place in `targets`.
fn find_target(
    engine: &Engine,
    batch: &RowBatch<'_>,
    time_ns: i64,
    first_lsn: Lsn,
    targets: &mut Vec<Target>,
) -> Result<usize, StoreError> {
    let known = targets.iter().position(|t| t.table.partition.contains(time_ns));
    if let Some(at) = known {
        return Ok(at);
    }
    let active = |engine: &Engine| {
        let view = engine.view();
        view.partition_at(batch.policy, time_ns).and_then(|p| p.active.clone())
    };
    let table = match active(engine) {
        Some(table) => table,
        None => make_memtable(engine, batch, time_ns, first_lsn)?,
    };
    let layouts = table.intern_layouts(&batch.layouts);
    targets.push(Target { table, layouts });
    assert!(targets.len() < 1 << TARGET_BITS, "BUG: a batch over millions of partitions");
    Ok(targets.len() - 1)
}

fn make_memtable(
    engine: &Engine,
    batch: &RowBatch<'_>,
    time_ns: i64,
    first_lsn: Lsn,
) -> Result<Arc<Memtable>, StoreError> {
    engine.restructure(|view| {
        let time = match view.partition_at(batch.policy, time_ns) {
            Some(partition) => match &partition.active {
                // Somebody else was faster.
                Some(table) => return Ok((Vec::new(), view.clone(), Arc::clone(table))),
                None => partition.time,
            },
            None => view.new_bounds(batch.policy, time_ns, batch.partition_ns),
        };
        let work = Arc::clone(&engine.work);
        let table = Arc::new(Memtable::new(batch.database, batch.policy, time, first_lsn, work));
        let key = (batch.database, batch.policy, time);
        let next = view.with_partition(key, |p| p.active = Some(Arc::clone(&table)));
        Ok((Vec::new(), next, table))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_are_sorted(
            targets in 1usize..40,
            places in prop::collection::vec((0..SHARDS, any::<prop::sample::Index>()), 0..600),
        ) {
            let key = |(at, (shard, target)): (usize, &(usize, prop::sample::Index))| {
                (*shard as u64) << (ROW_BITS + TARGET_BITS)
                    | (target.index(targets) as u64) << ROW_BITS
                    | at as u64
            };
            let mut keys: Vec<u64> = places.iter().enumerate().map(key).collect();
            let mut expected = keys.clone();
            expected.sort_unstable();
            sort_by_place(&mut keys, targets);
            prop_assert_eq!(keys, expected);
        }
    }
}
