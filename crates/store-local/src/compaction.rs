//! Several segments of a partition become one, and so do small partitions that lie side by side.
//!
//! Readers and writers go on undisturbed: inputs are immutable, and the result takes their place in
//! one change of manifest and view.

mod join;
mod join_policy;
mod policy;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use codec::Effort;
use model::{FieldType, Name, SeriesId, TimeRange};
use platform::in_background;
use roaring::RoaringTreemap;
use segment::{SegmentInfo, SegmentReader, SegmentWriter, WriterOptions};
use store::StoreError;

use crate::engine::Engine;
use crate::error::{disk_error, segment_error};
use crate::flush::{discard_segment, finish_segment, segment_meta, start_segment};
use crate::manifest::Edit;
use crate::pace::Pace;
use crate::scan::{Emitted, PartitionSources, SegmentSource, SeriesReader, Source, SparsePart};
use crate::sink::SegmentSink;
use crate::tombstone::{Tombstone, TombstoneSet};
use crate::view::{Partition, Segment};
pub(crate) use join::{join, neighbours_to_join};
pub use join_policy::Kept;
use policy::{Candidate, choose, is_urgent, rest_percent};
pub(crate) use policy::{Choice, When};

/// Longer results are not kept in the system's memory while rows come: they are not the latest rows, and rest for a
/// while. In batches of texts they filled 24 GB in a minute and a half; then nobody got anywhere for two seconds, until
/// the system had found memory again. What is merged for keeping stays.
const CACHED_BYTES_MAX: u64 = 128 << 20;

/// What the policy chooses for a partition, as it is in the current view, at such a time. Nothing, if
/// a file of it cannot be opened: neighbours of that are no neighbours of each other.
pub(crate) fn choice(partition: &Partition, when: When) -> Option<Choice> {
    if !partition.segments.iter().all(|s| s.is_whole()) {
        return None;
    }
    choose(&candidates(partition), when)
}

/// What the policy sees of a partition.
fn candidates(partition: &Partition) -> Vec<Candidate> {
    let candidate = |s: &Arc<Segment>| Candidate {
        bytes: s.meta.bytes,
        cold: s.meta.cold,
        has_tombstones: !s.tombstones.is_empty(),
    };
    partition.segments.iter().map(candidate).collect()
}

/// Merges the chosen segments of a partition.
pub(crate) fn compact(
    engine: &Engine,
    partition: &Partition,
    choice: &Choice,
) -> Result<(), StoreError> {
    let inputs = &partition.segments[choice.segments.clone()];
    let id = engine.manifest.next_segment_id();
    let sequence = inputs.iter().map(|s| s.meta.sequence).max().expect("BUG: nothing chosen");
    let options = if choice.cold {
        WriterOptions::cold(id)
    } else {
        // Packed, not entropy-coded: rows are merged once or twice before they are merged for keeping, and each time that
        // would take as long as all else in a merge.
        let effort = Effort::Hot;
        WriterOptions { effort, cached_bytes_max: CACHED_BYTES_MAX, ..WriterOptions::hot(id) }
    };
    // Writes and queries go first, until so many segments wait that they slow queries down.
    let is_urgent = is_urgent(&candidates(partition)) || engine.is_full_of_tombstones();
    let rest_percent = || if is_urgent { 0 } else { rest_percent_of(engine, partition) };
    let merge = || merged(engine, (id, options), inputs, &rest_percent);
    let (info, reader) = if is_urgent { merge() } else { in_background(merge) }?;
    engine.metrics.compactions.add(1);

    let last_write = inputs.iter().map(|s| s.last_write).max().expect("BUG: a merge of nothing");
    let replaced = engine.restructure(|view| {
        let mut edits = Vec::new();
        let mut replaced = false;
        let next = view.with_partition(partition.key(), |p| {
            let ids: Vec<u64> = inputs.iter().map(|s| s.meta.id).collect();
            let Some(at) = p.segments.iter().position(|s| s.meta.id == ids[0]) else { return };
            replaced = true;
            let left = left_over(&p.segments[at..at + ids.len()], inputs);
            edits.extend(ids.iter().map(|id| Edit::RemoveSegment(*id)));
            let result = reader.map(|reader| {
                let meta = segment_meta(partition.key(), id, (sequence, choice.cold), &info, &left);
                edits.extend(Edit::added(&meta, &left));
                Arc::new(Segment::new(meta, Ok(reader), left, last_write))
            });
            p.segments.splice(at..at + ids.len(), result);
        });
        Ok((edits, next, replaced))
    })?;
    // The partition may have been dropped meanwhile: then the result is what nobody wants.
    if replaced {
        return clear_up(engine, inputs, None);
    }
    clear_up(engine, &[], (info.rows > 0).then_some(id))
}

/// Removes the files that a merge leaves: its inputs, or its result.
fn clear_up(
    engine: &Engine,
    inputs: &[Arc<Segment>],
    result: Option<u64>,
) -> Result<(), StoreError> {
    // Deletes may wait for tombstones to go.
    engine.work.notify_room();
    inputs.iter().try_for_each(|segment| remove_segment(engine, segment))?;
    let remove = |id| engine.disk.remove(&engine.segment_path(id)).map_err(disk_error);
    result.map_or(Ok(()), remove)
}

/// How long a merge of a partition rests, as things are by now: while a large merge goes on many segments may
/// come, and runs of the index, which are merged by the thread that rests here.
fn rest_percent_of(engine: &Engine, partition: &Partition) -> u32 {
    if engine.has_many_index_runs() {
        return 0;
    }
    let view = engine.view();
    let now = view.partition_at(partition.policy, partition.time.min);
    now.map_or(0, |partition| rest_percent(&candidates(partition)))
}

/// Writes the rows of segments, whose neighbours are later where times overlap, as the segment `id`; no reader if there
/// are none.
fn merged(
    engine: &Engine,
    (id, options): (u64, WriterOptions),
    inputs: &[Arc<Segment>],
    rest_percent: &dyn Fn() -> u32,
) -> Result<(SegmentInfo, Option<Arc<SegmentReader>>), StoreError> {
    let mut pace = Pace::new(engine, rest_percent);
    let mut merge = || {
        let mut writer = start_segment(engine, &engine.segment_path(id), options)?;
        for (name, fields) in measurements(engine, inputs)? {
            merge_measurement(engine, &mut writer, inputs, &name, &fields, &mut pace)?;
        }
        finish_segment(engine, id, writer)
    };
    let (info, reader) = merge().inspect_err(|_| discard_segment(engine, id))?;
    engine.metrics.bytes_compacted.add(info.bytes);
    Ok((info, reader))
}

/// Removes the file of a segment that is in no view any more; readers of old views keep theirs.
pub(crate) fn remove_segment(engine: &Engine, segment: &Segment) -> Result<(), StoreError> {
    if let Ok(reader) = segment.reader() {
        reader.set_removed();
    }
    engine.disk.remove(&engine.segment_path(segment.meta.id)).map_err(disk_error)
}

/// The tombstones that came to the inputs since they were read.
fn left_over(now: &[Arc<Segment>], inputs: &[Arc<Segment>]) -> Vec<Arc<Tombstone>> {
    let mut left: BTreeMap<u64, Arc<Tombstone>> = BTreeMap::new();
    for (now, input) in now.iter().zip(inputs) {
        assert_eq!(now.meta.id, input.meta.id, "BUG: neighbours were torn apart");
        let new = &now.tombstones[input.tombstones.len()..];
        left.extend(new.iter().map(|t| (t.id, Arc::clone(t))));
    }
    left.into_values().collect()
}

/// The measurements of some segments with all of their fields, both ascending by name.
///
/// Segments may have a field with two types: the earlier belonged to a measurement that was dropped, whose rows are
/// hidden. Which type that is the schema knows; of segments of several partitions the order does not tell.
fn measurements(
    engine: &Engine,
    inputs: &[Arc<Segment>],
) -> Result<BTreeMap<Name, Vec<(Name, FieldType)>>, StoreError> {
    let mut all: BTreeMap<Name, BTreeMap<Name, FieldType>> = BTreeMap::new();
    for segment in inputs {
        let reader = segment.reader()?;
        for info in reader.measurements().map_err(segment_error)?.entries() {
            let directory = reader.directory(&info.name).map_err(segment_error)?;
            let Some(directory) = directory else { continue };
            let known = engine.schema.find(segment.meta.database, &info.name);
            let is_hidden = |name: &Name, field_type: FieldType| {
                let known = known.as_ref().and_then(|measurement| measurement.field(name));
                known.is_some_and(|(_, known)| known != field_type)
            };
            let fields = directory.fields().iter().filter(|(name, t)| !is_hidden(name, *t));
            let fields = fields.map(|(name, t)| (Arc::clone(name), *t));
            all.entry(Arc::clone(&info.name)).or_default().extend(fields);
        }
    }
    Ok(all.into_iter().map(|(name, fields)| (name, fields.into_iter().collect())).collect())
}

fn merge_measurement(
    engine: &Engine,
    writer: &mut SegmentWriter,
    inputs: &[Arc<Segment>],
    name: &Name,
    fields: &[(Name, FieldType)],
    pace: &mut Pace<'_>,
) -> Result<(), StoreError> {
    let counters = Arc::default();
    let mut sources = Vec::with_capacity(inputs.len());
    for segment in inputs {
        let meta = &segment.meta;
        let touches = |t: &&Arc<Tombstone>| t.touches(meta.database, meta.policy, name, meta.time);
        let stones = segment.tombstones.iter().filter(touches).cloned().collect();
        let stones = TombstoneSet::new(stones);
        let source = SegmentSource::open(segment, name, fields, stones, &counters)?;
        sources.extend(source.map(|s| Source::Segment(Box::new(s.for_merge()))));
    }
    let whole = vec![PartitionSources::new(TimeRange::ALL, sources)];
    let mut reader = SeriesReader::new(whole, TimeRange::ALL);
    let series = series_of(inputs, name)?;
    let mut sink = SegmentSink::new(writer, name, fields)?;
    for series in series {
        if engine.closed.load(Ordering::Relaxed) {
            return Err(StoreError::Closed);
        }
        let series = SeriesId(series);
        let mut outcome = Ok(());
        reader.read(series, &mut |emitted| {
            if outcome.is_err() {
                return;
            }
            outcome = match emitted {
                Emitted::Rows(piece) => sink.add(series, &piece),
                Emitted::Sparse(part) => {
                    let SparsePart { all, rows } = part;
                    sink.add_sparse(series, (&all.times, &all.columns), rows)
                }
                Emitted::Row(..) | Emitted::Summaries(_) => panic!("BUG: merges ask for rows"),
            };
            pace.keep();
        })?;
        outcome?;
    }
    sink.finish()
}

/// The series that some segments have rows of, hidden ones included.
pub(crate) fn series_of(
    segments: &[Arc<Segment>],
    measurement: &str,
) -> Result<RoaringTreemap, StoreError> {
    let mut all = RoaringTreemap::new();
    for segment in segments {
        let reader = segment.reader()?;
        let Some(directory) = reader.directory(measurement).map_err(segment_error)? else {
            continue;
        };
        let every = SeriesId(0)..=SeriesId(u64::MAX);
        for block in reader.blocks(&directory, &every, TimeRange::ALL) {
            let block = block.map_err(segment_error)?;
            if block.has_one_series() {
                all.insert(block.first().0.0);
            } else {
                let runs = reader.runs(&block).map_err(segment_error)?;
                all.extend(runs.iter().map(|(series, _)| series.0));
            }
        }
    }
    Ok(all)
}
