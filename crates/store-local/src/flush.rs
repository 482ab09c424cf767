//! A frozen memtable becomes a segment.
//!
//! Order of the durable steps: the segment file, the series index, then one manifest record that
//! adds the segment, keeps new definitions and moves the start of the log. A crash in between leaves
//! a file that nobody refers to (removed at the next start) and a log that still has every row.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use model::{DatabaseId, FieldType, Name, PolicyId, SeriesId, TimeRange};
use segment::{SegmentInfo, SegmentReader, SegmentWriter, WriterOptions};
use store::StoreError;
use wal::Lsn;

use crate::engine::Engine;
use crate::error::{disk_error, segment_error, series_error, wal_error};
use crate::manifest::{Edit, SegmentMeta};
use crate::memtable::Memtable;
use crate::pace::{self, Pace};
use crate::rows::{FieldNo, MeasurementNo};
use crate::sink::SegmentSink;
use crate::tombstone::{Tombstone, TombstoneSet};
use crate::view::{Frozen, Partition, Segment};
use crate::write::used_bytes;

/// Flushes the oldest frozen memtable of a partition; says whether there was one.
pub(crate) fn flush_partition(engine: &Engine, partition: &Partition) -> Result<bool, StoreError> {
    let view = engine.view();
    let current = view.partition_at(partition.policy, partition.time.min);
    let Some(current) = current.filter(|p| p.time == partition.time) else { return Ok(false) };
    let Some(frozen) = current.frozen.first().cloned() else { return Ok(false) };
    drop(view);
    let id = engine.manifest.next_segment_id();
    let written =
        write_segment(engine, id, &frozen).inspect_err(|_| discard_segment(engine, id))?;
    publish(engine, partition, &frozen, id, written)?;
    frozen.table.flushed();
    engine.metrics.flushes.add(1);
    Ok(true)
}

/// The part of the page cache that one segment may fill while it is written: so much that it is worth it, and not all,
/// so that the one before keeps what was asked for.
const THAWED_PART: usize = 2;

/// Values of a series that are copied out of a memtable at once: some tens of MB.
const PART_VALUES_MAX: usize = 1 << 22;

/// What a flush wrote.
struct Written {
    info: SegmentInfo,
    reader: Arc<SegmentReader>,
}

/// Writes the rows of a memtable; `None` if every row is hidden by a tombstone.
fn write_segment(engine: &Engine, id: u64, frozen: &Frozen) -> Result<Option<Written>, StoreError> {
    let path = engine.segment_path(id);
    let mut writer = start_segment(engine, &path, WriterOptions::hot(id))?;
    let table = &frozen.table;
    let mut all = table.all_series();
    all.sort_unstable();
    let mut measurements: Vec<(Name, &[(MeasurementNo, SeriesId)])> = Vec::new();
    for series in all.chunk_by(|a, b| a.0 == b.0) {
        // A measurement dropped since has a tombstone over all of its rows here.
        if let Some(measurement) = engine.schema.get(series[0].0) {
            measurements.push((Arc::clone(&measurement.name), series));
        }
    }
    measurements.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let (written, rows) = (Cell::new(0), table.rows());
    let rest_percent =
        || pace::flush_rest_percent(used_bytes(engine), written.get(), rows, &engine.memory);
    let mut pace = Pace::new(engine, &rest_percent);
    let mut wrote = |rows: usize| {
        written.set(written.get() + rows);
        pace.keep();
    };
    for (name, series) in measurements {
        write_measurement(engine, &mut writer, (frozen, &name, series), &mut wrote)?;
    }
    drop(pace);
    let (info, reader) = finish_segment(engine, id, writer)?;
    engine.metrics.bytes_flushed.add(info.bytes);
    Ok(reader.map(|reader| Written { info, reader }))
}

/// Starts a file, whose pages will be in the page cache in the form that short reads want, as far as they have room.
pub(crate) fn start_segment(
    engine: &Engine,
    path: &Path,
    options: WriterOptions,
) -> Result<SegmentWriter, StoreError> {
    let writer = SegmentWriter::create(&*engine.disk, path, options);
    let mut writer = writer.map_err(segment_error)?;
    writer.thaw_into(&engine.cache, engine.memory.page_cache / THAWED_PART);
    Ok(writer)
}

/// Makes a segment durable and opens it; one without rows is removed instead.
pub(crate) fn finish_segment(
    engine: &Engine,
    id: u64,
    writer: SegmentWriter,
) -> Result<(SegmentInfo, Option<Arc<SegmentReader>>), StoreError> {
    let cache = Arc::clone(&engine.cache);
    let (info, reader) = writer.finish_and_open(cache).map_err(segment_error)?;
    let Some(reader) = reader else {
        engine.disk.remove(&engine.segment_path(id)).map_err(disk_error)?;
        return Ok((info, None));
    };
    engine.disk.sync_dir(&engine.options.dir.join("segments")).map_err(disk_error)?;
    Ok((info, Some(Arc::new(reader))))
}

/// Removes what there is of a segment that could not be finished: on a full disk nobody could finish
/// one otherwise. If that fails too, the next start removes it.
pub(crate) fn discard_segment(engine: &Engine, id: u64) {
    if let Err(error) = engine.disk.remove(&engine.segment_path(id))
        && !error.is_not_found()
    {
        tracing::warn!(%error, "an unfinished segment stays until the next start");
    }
}

/// Writes some series of a measurement; `wrote` is told of every few rows.
fn write_measurement(
    engine: &Engine,
    writer: &mut SegmentWriter,
    (frozen, name, series): (&Frozen, &Name, &[(MeasurementNo, SeriesId)]),
    wrote: &mut dyn FnMut(usize),
) -> Result<(), StoreError> {
    let table: &Memtable = &frozen.table;
    let Some(measurement) = engine.schema.get(series[0].0) else { return Ok(()) };
    let mut fields: Vec<(Name, FieldNo, FieldType)> = table
        .fields_of(measurement.no)
        .into_iter()
        .map(|no| {
            let (name, field_type) = measurement.field_by_no(no);
            (Arc::clone(name), no, *field_type)
        })
        .collect();
    fields.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let numbers: Vec<(FieldNo, FieldType)> = fields.iter().map(|(_, no, t)| (*no, *t)).collect();
    let names: Vec<_> = fields.into_iter().map(|(name, _, t)| (name, t)).collect();
    let touches =
        |t: &&Arc<Tombstone>| t.touches(table.database, table.policy, name, TimeRange::ALL);
    let stones = TombstoneSet::new(frozen.tombstones.iter().filter(touches).cloned().collect());
    let places = table.places(measurement.no, &numbers);
    let mut sink = SegmentSink::new(writer, name, &names)?;
    for (_, series) in series {
        let seen = stones.visible(*series, TimeRange::ALL);
        let parts = table.parts_of(*series, names.len(), PART_VALUES_MAX);
        // What is visible are few ranges, mostly one.
        let visible = seen.parts.iter().flat_map(|seen| parts.iter().map(|p| p.intersect(seen)));
        for time in visible.filter(|time| !time.is_empty()) {
            let hidden = seen.hidden.as_deref().unwrap_or_default();
            let (times, columns) = table.read_sparse(*series, (time, hidden), &places);
            sink.add_sparse(*series, (&times, &columns), 0..times.len())?;
            wrote(times.len());
        }
    }
    sink.finish()
}

/// Puts the segment in the memtable's place, in the manifest and in the view.
fn publish(
    engine: &Engine,
    partition: &Partition,
    frozen: &Arc<Frozen>,
    id: u64,
    written: Option<Written>,
) -> Result<(), StoreError> {
    let publishing = engine.publishing.lock();
    // Definitions up to here are made durable elsewhere before the log lets go of them.
    let (definitions, schema) = {
        let mut define = engine.define.lock();
        (engine.wal.position(), std::mem::take(&mut define.schema))
    };
    let keep = |e: StoreError| {
        engine.define.lock().schema.splice(0..0, schema.iter().cloned());
        e
    };
    engine.index.flush().map_err(|e| keep(series_error(e)))?;
    let has_file = written.is_some();
    let (start, added) = engine
        .restructure(|view| {
            let (mut edits, added, next) = replace(view, partition, frozen, id, written);
            edits.extend(schema.iter().cloned().map(Edit::Schema));
            let start = Engine::log_start(&next, definitions);
            edits.push(Edit::Flushed {
                policy: partition.policy,
                partition: partition.time,
                before: frozen.end_lsn,
            });
            edits.push(Edit::LogStart(start));
            Ok((edits, next, (start, added)))
        })
        .map_err(keep)?;
    drop(publishing);
    if has_file && !added {
        engine.disk.remove(&engine.segment_path(id)).map_err(disk_error)?;
    }
    engine.wal.release(start).map_err(wal_error)?;
    engine.wal.rest(start).map_err(wal_error)
}

/// The view with the segment in place of the memtable, and the edit that says so.
fn replace(
    view: &crate::view::View,
    partition: &Partition,
    frozen: &Arc<Frozen>,
    id: u64,
    written: Option<Written>,
) -> (Vec<Edit>, bool, crate::view::View) {
    let mut edits = Vec::new();
    let mut added = false;
    let next = view.with_partition(partition.key(), |p| {
        let at = p.frozen.iter().position(|f| Arc::ptr_eq(&f.table, &frozen.table));
        // The partition may have been dropped meanwhile; then nobody wants the rows.
        let Some(at) = at else { return };
        let now = p.frozen.remove(at);
        let Some(Written { info, reader }) = written else { return };
        // What was deleted while the segment was being written still has to be hidden.
        let tombstones = now.tombstones[frozen.tombstones.len()..].to_vec();
        let meta = segment_meta(partition.key(), id, (id, false), &info, &tombstones);
        let last_write = frozen.table.last_write();
        edits.extend(Edit::added(&meta, &tombstones));
        p.segments.push(Arc::new(Segment::new(meta, Ok(reader), tombstones, last_write)));
        added = true;
    });
    (edits, added, next)
}

/// What the manifest keeps of a segment.
pub(crate) fn segment_meta(
    (database, policy, partition): (DatabaseId, PolicyId, TimeRange),
    id: u64,
    (sequence, cold): (u64, bool),
    info: &SegmentInfo,
    tombstones: &[Arc<Tombstone>],
) -> SegmentMeta {
    SegmentMeta {
        id,
        database,
        policy,
        partition,
        sequence,
        cold,
        bytes: info.bytes,
        rows: info.rows,
        time: info.time,
        series: info.series,
        tombstones: tombstones.iter().map(|t| t.id).collect(),
    }
}

/// A memtable that could be flushed, as the policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) bytes: usize,
    pub(crate) first_lsn: Lsn,
    /// Nobody has written to it for a while.
    pub(crate) idle: bool,
    /// How old its first rows are, about.
    pub(crate) age: Duration,
    /// For how long nobody has written to it.
    pub(crate) left_alone: Duration,
    /// Memtables of its partition before it wait for their flush.
    pub(crate) others_wait: bool,
}

/// A memtable that is ripe is flushed if it has this part of a full one's bytes: some ten milliseconds' work for what saves
/// each query some, and at most some more levels of merges.
const RIPE_PART: usize = 16;
/// The part of [`Limits::in_memory_max`] that rows wait if nobody adds to them.
const LEFT_ALONE_PART: u32 = 10;

/// Limits of [`choose`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// A memtable this large is flushed.
    pub(crate) memtable_flush: usize,
    /// More than this in all those that are written to, and the largest are flushed.
    pub(crate) memtables_total: usize,
    /// The log may not reach further back than this.
    pub(crate) oldest_lsn: Lsn,
    /// Rows that are worth a segment wait so long at most, if flushes keep up.
    pub(crate) in_memory_max: Duration,
}

impl Candidate {
    /// Whether its rows have waited long enough, if they are worth a segment. Where flushes do not keep up it goes on being
    /// filled: smaller segments would not help them.
    fn is_ripe(&self, limits: &Limits) -> bool {
        let has_waited = self.age >= limits.in_memory_max
            || self.left_alone >= limits.in_memory_max / LEFT_ALONE_PART;
        has_waited && !self.others_wait
    }
}

/// Which memtables to flush: the full ones, those that hold too much of the log, the idle ones, those that are ripe and
/// large enough, and, largest first, enough others to get below the limit of memory. What is frozen is on its way already, and
/// what readers pin is not freed by a flush.
pub(crate) fn choose(tables: &[Candidate], limits: &Limits) -> Vec<usize> {
    let must = |t: &Candidate| {
        let full = limits.memtable_flush;
        let is_large = t.bytes >= if t.is_ripe(limits) { full / RIPE_PART } else { full };
        is_large || t.first_lsn < limits.oldest_lsn || t.idle
    };
    let mut chosen: Vec<usize> = (0..tables.len()).filter(|at| must(&tables[*at])).collect();
    let mut others: Vec<usize> = (0..tables.len()).filter(|at| !must(&tables[*at])).collect();
    others.sort_unstable_by_key(|at| std::cmp::Reverse(tables[*at].bytes));
    let mut staying: usize = others.iter().map(|at| tables[*at].bytes).sum();
    for at in others {
        if staying <= limits.memtables_total {
            break;
        }
        staying -= tables[at].bytes;
        chosen.push(at);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chooses_full_old_idle_ripe_and_then_the_largest() {
        let seconds = Duration::from_secs;
        let table = |bytes, lsn, idle| Candidate {
            bytes,
            first_lsn: Lsn(lsn),
            idle,
            age: seconds(9),
            left_alone: seconds(0),
            others_wait: false,
        };
        let limits = Limits {
            memtable_flush: 100,
            memtables_total: 120,
            oldest_lsn: Lsn(10),
            in_memory_max: seconds(10),
        };
        let tables = [
            table(100, 50, false),
            table(5, 9, false),
            table(5, 50, true),
            table(60, 50, false),
            table(70, 50, false),
        ];
        assert_eq!(choose(&tables, &limits), [0, 1, 2, 4]);
        assert_eq!(choose(&tables[3..], &limits), [1]);
        assert_eq!(choose(&tables[3..4], &limits), Vec::<usize>::new());
        let old = |bytes| Candidate { age: seconds(10), ..table(bytes, 50, false) };
        assert_eq!(choose(&[old(5), old(6), table(6, 50, false), old(60)], &limits), [1, 3]);
        let left =
            |seconds_alone| Candidate { left_alone: seconds(seconds_alone), ..table(6, 50, false) };
        let waits = Candidate { others_wait: true, ..old(60) };
        assert_eq!(choose(&[left(0), left(1), waits], &limits), [1]);
    }
}
