//! Deletes and the dropping of partitions.
//!
//! A delete is a short moment with the gate held alone: memtables are frozen, the delete is logged,
//! and every source that exists gets a tombstone, in manifest and view. Carrying it out is left to
//! flushes and compactions. Series that are left without rows cease to exist.

mod matching;

use std::sync::Arc;

use hashbrown::HashMap;
use model::{DatabaseId, PolicyId, TagExpr, TimeRange};
use roaring::RoaringTreemap;
use store::{DeleteRequest, DeleteTarget, NameFilter, StoreError};
use wal::Lsn;

use crate::compaction::{remove_segment, series_of};
use crate::engine::Engine;
use crate::error::{series_error, wal_error};
use crate::manifest::Edit;
use crate::rows::MeasurementNo;
use crate::scan::{ScanPlan, SeriesReader, open_sources};
use crate::schema::{Measurement, SchemaChange};
use crate::tombstone::{HiddenSeries, Tombstone};
use crate::view::{Partition, Segment, View};
use crate::write::Record;

/// Series of a measurement that may have lost their last row.
type Suspects = Vec<(Arc<Measurement>, RoaringTreemap)>;

/// Carries out a delete request.
pub(crate) fn delete(engine: &Engine, request: &DeleteRequest) -> Result<(), StoreError> {
    engine.check_writable()?;
    engine.metrics.deletes.add(1);
    let database = request.database;
    match &request.target {
        DeleteTarget::Rows { measurements, series, time } => {
            delete_rows(engine, database, measurements, series, *time)?;
        }
        DeleteTarget::Matching(named) => matching::delete_matching(engine, database, named)?,
        DeleteTarget::Measurement(name) => drop_measurement(engine, database, name)?,
        DeleteTarget::Policy(policy) => {
            drop_partitions(engine, database, Some(*policy), i64::MAX)?;
        }
        DeleteTarget::Partition(policy, time) => {
            let (policy, time) = (*policy, *time);
            let record = Record::DropPartition { database, policy, time };
            let chosen = |p: &Partition| p.policy == policy && p.time == time;
            drop_chosen(engine, database, &record, chosen)?;
        }
        DeleteTarget::Database => drop_database(engine, database)?,
    }
    // What was gone before because of somebody else has to be gone for good as well.
    engine.wait_durable(engine.wal.position())
}

fn delete_rows(
    engine: &Engine,
    database: DatabaseId,
    measurements: &NameFilter,
    expr: &TagExpr,
    time: TimeRange,
) -> Result<(), StoreError> {
    let gate = engine.gate.write();
    let mut suspects = Suspects::new();
    for measurement in engine.schema.accepted(database, measurements) {
        let ids = engine.index.select(database, &measurement.name, expr).map_err(series_error)?;
        if !ids.is_empty() {
            suspects.push((measurement, ids));
        }
    }
    if suspects.is_empty() || time.is_empty() {
        return Ok(());
    }
    let whole = matches!(expr, TagExpr::True);
    let mut tombstones = Vec::with_capacity(suspects.len());
    for (measurement, ids) in &suspects {
        tombstones.push(Tombstone {
            id: engine.manifest.next_tombstone_id(),
            database,
            policy: None,
            measurement: Some(Arc::clone(&measurement.name)),
            series: if whole { HiddenSeries::All } else { HiddenSeries::Some(ids.clone()) },
            time,
        });
    }
    let mut lsn = hang_tombstones(engine, tombstones)?;
    if time.covers(&TimeRange::ALL) {
        // No writer is under way and everything written is hidden: nothing needs to be looked at.
        for (measurement, ids) in std::mem::take(&mut suspects) {
            lsn = remove_series(engine, &measurement, ids)?;
        }
    }
    drop(gate);
    engine.wait_durable(lsn)?;
    remove_empty_series(engine, suspects)
}

fn drop_measurement(engine: &Engine, database: DatabaseId, name: &str) -> Result<(), StoreError> {
    let gate = engine.gate.write();
    let Some(measurement) = engine.schema.find(database, name) else { return Ok(()) };
    let ids = engine.index.select(database, name, &TagExpr::True).map_err(series_error)?;
    hang_tombstones(
        engine,
        vec![Tombstone {
            id: engine.manifest.next_tombstone_id(),
            database,
            policy: None,
            measurement: Some(Arc::clone(&measurement.name)),
            series: HiddenSeries::All,
            time: TimeRange::ALL,
        }],
    )?;
    remove_series(engine, &measurement, ids)?;
    let lsn = drop_schema(engine, &[measurement])?;
    drop(gate);
    engine.wait_durable(lsn)
}

fn drop_database(engine: &Engine, database: DatabaseId) -> Result<(), StoreError> {
    drop_partitions(engine, database, None, i64::MAX)?;
    let gate = engine.gate.write();
    let definitions = engine.define.lock();
    let below = engine.index.next_id();
    engine.index.remove_database(database, below).map_err(series_error)?;
    engine.resolver.clear();
    let bytes = Record::RemoveDatabase(database, below).encode();
    engine.wal.append(&[&bytes]).map_err(wal_error)?;
    drop(definitions);
    let lsn = drop_schema(engine, &engine.schema.of_database(database))?;
    drop(gate);
    engine.wait_durable(lsn)
}

/// Freezes what tombstones touch, logs them and hangs them on every source. Call with the gate held
/// alone. Returns where the log must be durable.
fn hang_tombstones(engine: &Engine, tombstones: Vec<Tombstone>) -> Result<Lsn, StoreError> {
    let touches = |partition: &Partition, stone: &Tombstone| {
        partition.database == stone.database
            && stone.policy.is_none_or(|policy| policy == partition.policy)
            && partition.time.overlaps(&stone.time)
    };
    engine.freeze(|p| tombstones.iter().any(|stone| touches(p, stone)));
    let mut lsn = engine.wal.position();
    for stone in &tombstones {
        let bytes = Record::Delete(stone.clone()).encode();
        // Those that the log has already count after a restart, and do not before.
        let appended = engine.wal.append(&[&bytes]).map_err(wal_error);
        lsn = appended.inspect_err(|error| engine.fail(error))?;
    }
    // Durable before anybody sees it: a reader must never see rows come back.
    engine.wait_durable(lsn)?;
    let tombstones: Vec<Arc<Tombstone>> = tombstones.into_iter().map(Arc::new).collect();
    engine.restructure(|view| {
        let (edits, next) = with_tombstones(view, &tombstones);
        Ok((edits, next, ()))
    })?;
    Ok(lsn)
}

/// The view with tombstones on every source they can hide rows of, and the edits that say so.
pub(crate) fn with_tombstones(view: &View, tombstones: &[Arc<Tombstone>]) -> (Vec<Edit>, View) {
    let mut edits = Vec::new();
    let mut next = view.clone();
    for stone in tombstones {
        let mut segments = Vec::new();
        for partition in view.partitions() {
            let in_scope = partition.database == stone.database
                && stone.policy.is_none_or(|p| p == partition.policy)
                && partition.time.overlaps(&stone.time);
            if in_scope {
                next = next.with_partition(partition.key(), |p| {
                    segments.extend(p.add_tombstone(stone));
                });
            }
        }
        edits.push(Edit::AddTombstone(Arc::clone(stone), segments));
    }
    (edits, next)
}

/// Makes series cease to exist. Call with the gate held alone.
fn remove_series(
    engine: &Engine,
    measurement: &Measurement,
    ids: RoaringTreemap,
) -> Result<Lsn, StoreError> {
    let _definitions = engine.define.lock();
    engine.index.remove(&ids);
    engine.resolver.clear();
    engine.schema.tag_keys_changed(measurement.no, None);
    let bytes = Record::RemoveSeries(measurement.database, ids).encode();
    engine.wal.append(&[&bytes]).map_err(wal_error)
}

fn drop_schema(engine: &Engine, measurements: &[Arc<Measurement>]) -> Result<Lsn, StoreError> {
    let mut definitions = engine.define.lock();
    let changes: Vec<SchemaChange> =
        measurements.iter().map(|m| SchemaChange::Drop(m.no)).collect();
    let bytes = Record::Schema(changes.clone()).encode();
    let lsn = engine.wal.append(&[&bytes]).map_err(wal_error)?;
    for change in &changes {
        engine.schema.apply(change);
    }
    definitions.schema.extend(changes);
    Ok(lsn)
}

/// Looks which suspects have no rows left, and makes those cease to exist.
fn remove_empty_series(engine: &Engine, suspects: Suspects) -> Result<(), StoreError> {
    let mut removed = None;
    for (measurement, ids) in suspects {
        let empty = without_rows(engine, &measurement, &ids)?;
        if empty.is_empty() {
            continue;
        }
        // Somebody may have written to one since: looked at again, now that nobody can.
        let gate = engine.gate.write();
        let empty = without_rows(engine, &measurement, &empty)?;
        if empty.is_empty() {
            continue;
        }
        removed = Some(remove_series(engine, &measurement, empty)?);
        drop(gate);
    }
    // Once for all: of thousands of measurements each would wait for the disk.
    removed.map_or(Ok(()), |lsn| engine.wait_durable(lsn))
}

/// Those of some series that have no row in any policy. None of them, if a damaged file may have some.
fn without_rows(
    engine: &Engine,
    measurement: &Arc<Measurement>,
    ids: &RoaringTreemap,
) -> Result<RoaringTreemap, StoreError> {
    match look_for_rows(engine, measurement, ids) {
        Err(error @ StoreError::Corruption { .. }) => {
            tracing::warn!(%error, "series may be left without rows");
            Ok(RoaringTreemap::new())
        }
        looked => looked,
    }
}

fn look_for_rows(
    engine: &Engine,
    measurement: &Arc<Measurement>,
    ids: &RoaringTreemap,
) -> Result<RoaringTreemap, StoreError> {
    let view = engine.view();
    let mut empty = ids.clone();
    // The measurement may have new fields since.
    let Some(measurement) = engine.schema.get(measurement.no) else { return Ok(empty) };
    for (_, policy) in view.policies() {
        if policy.database != measurement.database {
            continue;
        }
        let plan = ScanPlan::whole(&measurement, policy.partitions.clone(), &empty);
        let partitions = open_sources(&plan, TimeRange::ALL, &Arc::default())?;
        let mut reader = SeriesReader {
            rows_per_series: Some(1),
            ..SeriesReader::new(partitions, TimeRange::ALL)
        };
        for series in plan.series.iter() {
            let mut found = false;
            reader.read(series, &mut |_| found = true)?;
            if found {
                empty.remove(series.0);
            }
        }
    }
    Ok(empty)
}

/// Drops partitions whose last time is before `before_ns`; returns how many.
pub(crate) fn drop_partitions(
    engine: &Engine,
    database: DatabaseId,
    policy: Option<PolicyId>,
    before_ns: i64,
) -> Result<u64, StoreError> {
    engine.check_writable()?;
    let record = Record::DropPartitions { database, policy, before_ns };
    let chosen = |p: &Partition| policy.is_none_or(|id| id == p.policy) && p.time.max < before_ns;
    drop_chosen(engine, database, &record, chosen)
}

/// Drops the partitions of a database that `chosen` accepts, which are those that `record` says;
/// returns how many.
fn drop_chosen(
    engine: &Engine,
    database: DatabaseId,
    record: &Record<'_>,
    chosen: impl Fn(&Partition) -> bool,
) -> Result<u64, StoreError> {
    let gate = engine.gate.write();
    let view = engine.view();
    let of_database = view.partitions().filter(|p| p.database == database);
    let gone: Vec<Arc<Partition>> = of_database.filter(|p| chosen(p)).cloned().collect();
    if gone.is_empty() {
        return Ok(0);
    }
    let lsn = engine.wal.append(&[&record.encode()]).map_err(wal_error)?;
    engine.wait_durable(lsn)?;
    let segments = engine.restructure(|view| Ok(without_partitions(view, &gone)))?;
    drop(gate);
    for segment in &segments {
        remove_segment(engine, segment)?;
    }
    engine.metrics.partitions_expired.add(gone.len() as u64);
    engine.work.notify_room();
    remove_empty_series(engine, suspects_of(engine, database, &gone)?)?;
    Ok(gone.len() as u64)
}

/// The edits that drop some partitions, the view without them, and the segments that were theirs.
pub(crate) fn without_partitions(
    view: &View,
    gone: &[Arc<Partition>],
) -> (Vec<Edit>, View, Vec<Arc<Segment>>) {
    let mut edits = Vec::new();
    let mut segments = Vec::new();
    let mut next = view.clone();
    for partition in gone {
        // A flush or compaction may have finished since the list was made.
        if let Some(now) = view.partition_at(partition.policy, partition.time.min) {
            edits.extend(now.segments.iter().map(|s| Edit::RemoveSegment(s.meta.id)));
            segments.extend(now.segments.iter().cloned());
            next = next.without_partition(now);
        }
    }
    (edits, next, segments)
}

/// The series that had rows in some partitions.
fn suspects_of(
    engine: &Engine,
    database: DatabaseId,
    gone: &[Arc<Partition>],
) -> Result<Suspects, StoreError> {
    let memtables = gone.iter().flat_map(|partition| {
        partition.frozen.iter().map(|frozen| &frozen.table).chain(&partition.active)
    });
    let mut in_memory: HashMap<MeasurementNo, RoaringTreemap> = HashMap::new();
    for (measurement, series) in memtables.flat_map(|table| table.all_series()) {
        in_memory.entry(measurement).or_default().insert(series.0);
    }
    let mut suspects = Suspects::new();
    for measurement in engine.schema.of_database(database) {
        let mut ids = in_memory.remove(&measurement.no).unwrap_or_default();
        for partition in gone {
            for segment in &partition.segments {
                match series_of(std::slice::from_ref(segment), &measurement.name) {
                    Ok(some) => ids |= some,
                    // Which ones a damaged file has rows of, nobody can tell.
                    Err(StoreError::Corruption { .. }) => {
                        let (first, last) = segment.meta.series;
                        ids.insert_range(first.0..=last.0);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        let live = engine.index.select(database, &measurement.name, &TagExpr::True);
        ids &= live.map_err(series_error)?;
        if !ids.is_empty() {
            suspects.push((measurement, ids));
        }
    }
    Ok(suspects)
}
