//! Opening a store: manifest, index, segments, then the log from where it is needed.

mod undefined;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use model::{SeriesKey, TimeRange};
use parking_lot::Mutex;
use platform::{Disk, PageCache};
use segment::{SegmentError, SegmentReader};
use series::{SeriesIndex, SeriesOptions};
use store::StoreError;
use wal::{Lsn, Wal, WalOptions};

use crate::compaction::remove_segment;
use crate::delete::{with_tombstones, without_partitions};
use crate::engine::{Definitions, Engine, EngineParts, segment_path};
use crate::error::{corrupt_record, disk_error, segment_error, series_error, wal_error};
use crate::manifest::{Manifest, ManifestState, SegmentMeta};
use crate::options::{MemoryPlan, StoreOptions};
use crate::schema::SchemaRegistry;
use crate::view::{Partition, Segment, View};
use crate::write::{Record, apply};

/// What opening a store found and did.
#[derive(Clone, Debug, Default)]
pub struct OpenReport {
    /// Segments that are part of the store.
    pub segments: u64,
    /// Records read from the log.
    pub log_records: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Rows that were brought back from the log.
    pub rows_replayed: u64,
    /// Bytes at the end of the log that a crash left unfinished; nothing acknowledged.
    pub torn_bytes: u64,
    /// Whether the store was closed properly.
    pub clean: bool,
    /// What is damaged: file, place and consequence. The rest of the store works.
    pub damage: Vec<String>,
}

/// Opens the parts of a store and replays its log.
pub(crate) fn open(
    disk: Arc<dyn Disk>,
    options: StoreOptions,
) -> Result<(Engine, OpenReport), StoreError> {
    let mut report = OpenReport::default();
    let memory = MemoryPlan::new(options.memory_bytes);
    let segments_dir = options.dir.join("segments");
    disk.create_dir_all(&segments_dir).map_err(disk_error)?;
    let manifest_dir = options.dir.join("manifest");
    require_manifest(&*disk, &options.dir)?;
    let snapshot_every_bytes = memory.manifest_snapshot as u64;
    let manifest = Manifest::open(Arc::clone(&disk), &manifest_dir, snapshot_every_bytes)?;
    let cache = Arc::new(PageCache::new(memory.page_cache));
    let view = open_segments(&disk, &options, &manifest, &cache, &mut report)?;
    remove_orphans(&*disk, &options, &manifest)?;

    let series_options = SeriesOptions {
        memory_bytes: memory.series,
        ..SeriesOptions::new(options.hash_seed.unwrap_or_else(random_seed), Arc::clone(&cache))
    };
    let index = SeriesIndex::open(Arc::clone(&disk), &options.dir.join("series"), series_options)
        .map_err(series_error)?;
    let schema = SchemaRegistry::default();
    manifest.read(|state| {
        let (next, changes) = state.schema.dump();
        for change in &changes {
            schema.apply(change);
        }
        schema.reserve(next);
    });
    let log_start = manifest.read(|state| state.log_start).unwrap_or(Lsn(0));

    // The log is read before the engine exists; its records are kept back until it does.
    let records = Mutex::new(Vec::new());
    let wal_options = WalOptions {
        sync: options.sync,
        position_min: manifest.read(ManifestState::positions_end),
        file_bytes: memory.log_file_bytes(),
        ..WalOptions::default()
    };
    let dir = options.dir.join("wal");
    if log_start > Lsn(0) && !has_file(&*disk, &dir, ".log")? {
        // Also the case after a start on a full disk, where nothing is lost: no damage for certain.
        let dir = dir.display();
        tracing::warn!(
            "{dir} has no log files; if they were removed, rows not in segments are lost"
        );
    }
    let (wal, found) =
        Wal::open(Arc::clone(&disk), &dir, wal_options, &mut |lsn, payload: &[u8]| {
            if lsn > log_start {
                records.lock().push((lsn, payload.to_vec()));
            }
            Ok::<(), StoreError>(())
        })
        .map_err(wal_error)?;
    report.log_records = found.records;
    report.log_bytes = found.bytes;
    report.torn_bytes = found.torn_bytes;
    report.clean = found.clean;
    for corruption in &found.corruptions {
        report.damage.push(format!(
            "{} is damaged at offset {}: {}; rows of the log behind it may be lost",
            corruption.path.display(),
            corruption.offset,
            corruption.detail
        ));
    }
    let engine = Engine::new(EngineParts {
        options,
        disk,
        cache,
        wal,
        manifest,
        index,
        schema,
        definitions: Definitions::default(),
        view,
    });
    let (damaged, mut rows_lost) = (!found.corruptions.is_empty(), 0);
    // Where a record starts: where the one before ended.
    let mut start = log_start;
    for (lsn, payload) in records.into_inner() {
        let mut record = Record::decode(&payload).map_err(|e| corrupt_record(&dir, lsn, e))?;
        if let (Record::Rows(batch), true) = (&mut record, damaged) {
            rows_lost += undefined::leave_out(&engine, batch)?;
        }
        report.rows_replayed += replay(&engine, start, lsn, record)?;
        start = lsn;
    }
    if let (Some(corruption), true) = (found.corruptions.first(), rows_lost > 0) {
        report.damage.push(format!(
            "{rows_lost} rows are lost because what defines their series or fields was in the damaged \
             part of {}",
            corruption.path.display()
        ));
    }
    Ok((engine, report))
}

/// Whether a directory has a file whose name ends so. One that does not exist has none.
pub(crate) fn has_file(disk: &dyn Disk, dir: &Path, suffix: &str) -> Result<bool, StoreError> {
    match disk.list(dir) {
        Ok(entries) => Ok(entries.iter().any(|entry| entry.name.ends_with(suffix))),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(disk_error(error)),
    }
}

/// Refuses a directory that has data but no manifest. The manifest is there before anything else (see
/// [`Manifest::open`]), so it was lost; going on would take every segment for a left-over and remove
/// it.
fn require_manifest(disk: &dyn Disk, dir: &Path) -> Result<(), StoreError> {
    let path = dir.join("manifest");
    if has_file(disk, &path, ".log")? {
        return Ok(());
    }
    for (part, suffix) in [("segments", ".seg"), ("wal", ".log"), ("series", ".run")] {
        if has_file(disk, &dir.join(part), suffix)? {
            let detail = format!("the manifest is missing though there are files in {part}");
            return Err(StoreError::Corruption { path, offset: 0, detail });
        }
    }
    Ok(())
}

fn random_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0u64)
}

/// The view of the manifest's segments. Those that are damaged are in it too, and in the report.
fn open_segments(
    disk: &Arc<dyn Disk>,
    options: &StoreOptions,
    manifest: &Manifest,
    cache: &Arc<PageCache>,
    report: &mut OpenReport,
) -> Result<View, StoreError> {
    let (mut metas, tombstones) = manifest.read(|state| {
        let metas: Vec<SegmentMeta> = state.segments.values().cloned().collect();
        (metas, state.tombstones.clone())
    });
    metas.sort_by_key(|meta| meta.sequence);
    let mut view = View::default();
    for meta in metas {
        let path = segment_path(options, meta.id);
        let reader = match SegmentReader::open(&**disk, &path, Arc::clone(cache)) {
            Ok(reader) => Ok(Arc::new(reader)),
            // The disk may do it at the next attempt.
            Err(SegmentError::Disk(error)) if !error.is_not_found() => {
                return Err(disk_error(error));
            }
            Err(error) => Err(segment_error(error)),
        };
        report.segments += 1;
        report.damage.extend(reader.as_ref().err().map(ToString::to_string));
        let stones = meta.tombstones.iter().filter_map(|id| tombstones.get(id).cloned()).collect();
        let key = (meta.database, meta.policy, meta.partition);
        view = view.with_partition(key, |p| {
            p.segments.push(Arc::new(Segment::new(meta, reader, stones, Instant::now())));
        });
    }
    Ok(view)
}

/// Removes files of segments that the manifest does not have: flushes and compactions that a crash
/// interrupted, and inputs that it kept from being removed.
fn remove_orphans(
    disk: &dyn Disk,
    options: &StoreOptions,
    manifest: &Manifest,
) -> Result<(), StoreError> {
    let dir = options.dir.join("segments");
    for entry in disk.list(&dir).map_err(disk_error)? {
        let id = entry.name.strip_suffix(".seg").and_then(|n| u64::from_str_radix(n, 16).ok());
        let Some(id) = id else { continue };
        if !manifest.read(|state| state.segments.contains_key(&id)) {
            disk.remove(&dir.join(&entry.name)).map_err(disk_error)?;
        }
    }
    Ok(())
}

/// Does again what a record from `start` to `lsn` says, as far as the manifest and the index do not
/// have it; returns the number of rows brought back.
fn replay(engine: &Engine, start: Lsn, lsn: Lsn, record: Record<'_>) -> Result<u64, StoreError> {
    match record {
        Record::Rows(batch) => {
            let policy = batch.policy;
            let flushed = |time: TimeRange| {
                let key = (policy, time.min);
                let before = engine.manifest.read(|s| s.flushed.get(&key).map(|f| f.1));
                before.is_some_and(|before| lsn <= before)
            };
            return apply(engine, &batch, start, flushed);
        }
        Record::Series(database, definitions) => {
            for definition in definitions {
                let key = SeriesKey::parse(definition.key.as_bytes())
                    .map_err(|e| StoreError::Io(format!("log: series key: {e}")))?;
                engine.index.restore(database, &key, definition.series).map_err(series_error)?;
            }
        }
        Record::Schema(changes) => {
            // What does not fit follows something that a damaged part of the log had.
            let fitting = changes.into_iter().filter(|change| engine.schema.apply(change));
            engine.define.lock().schema.extend(fitting);
        }
        Record::RemoveSeries(_, ids) => engine.index.remove(&ids),
        Record::RemoveDatabase(database, below) => {
            engine.index.remove_database(database, below).map_err(series_error)?;
        }
        Record::Delete(tombstone) => replay_delete(engine, lsn, tombstone)?,
        Record::DropPartitions { database, policy, before_ns } => {
            let chosen =
                |p: &Partition| p.time.max < before_ns && policy.is_none_or(|id| id == p.policy);
            replay_drop(engine, lsn, |p| p.database == database && chosen(p))?;
        }
        Record::DropPartition { database, policy, time } => {
            // The policy's partitions may have become shorter since: then the rows are in several.
            let within = |p: &Partition| time.min <= p.time.min && p.time.max <= time.max;
            replay_drop(engine, lsn, |p| {
                p.database == database && p.policy == policy && within(p)
            })?;
        }
    }
    Ok(0)
}

/// Drops partitions again, as far as they have what was there before the drop.
fn replay_drop(
    engine: &Engine,
    lsn: Lsn,
    chosen: impl Fn(&Partition) -> bool,
) -> Result<(), StoreError> {
    let flushed = |p: &Partition| {
        let key = (p.policy, p.time.min);
        engine.manifest.read(|s| s.flushed.get(&key).is_some_and(|f| lsn <= f.1))
    };
    let view = engine.view();
    // What was flushed after the drop was written after it.
    let gone: Vec<_> = view.partitions().filter(|p| chosen(p) && !flushed(p)).cloned().collect();
    let segments = engine.restructure(|view| Ok(without_partitions(view, &gone)))?;
    for segment in &segments {
        remove_segment(engine, segment)?;
    }
    Ok(())
}

/// Hides rows again. Segments that the manifest knew at the delete have their tombstone from it; if
/// it never heard of the tombstone, the crash came before anything else could follow.
fn replay_delete(
    engine: &Engine,
    lsn: Lsn,
    tombstone: crate::tombstone::Tombstone,
) -> Result<(), StoreError> {
    engine.freeze_at(lsn, |p| p.database == tombstone.database && p.time.overlaps(&tombstone.time));
    let known = engine.manifest.read(|state| tombstone.id < state.next_tombstone);
    let stone = Arc::new(tombstone);
    engine.restructure(|view| {
        let (edits, next) = if known {
            let mut next = view.clone();
            for partition in view.partitions().filter(|p| p.database == stone.database) {
                next = next.with_partition(partition.key(), |p| p.hide_frozen(&stone));
            }
            (Vec::new(), next)
        } else {
            with_tombstones(view, &[Arc::clone(&stone)])
        };
        Ok((edits, next, ()))
    })
}
