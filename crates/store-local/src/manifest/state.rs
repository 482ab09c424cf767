//! What the manifest says, as a value: the sum of its edits.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashSet;
use model::{PolicyId, TimeRange};
use wal::Lsn;

use super::edit::{Edit, SegmentMeta};
use crate::bytes::Malformed;
use crate::rows::MeasurementNo;
use crate::schema::{SchemaChange, SchemaRegistry};
use crate::tombstone::Tombstone;

/// The sum of a manifest's edits.
#[derive(Debug, Default)]
pub(crate) struct ManifestState {
    /// Live segments by id.
    pub(crate) segments: BTreeMap<u64, SegmentMeta>,
    /// Tombstones that some live segment has, by id.
    pub(crate) tombstones: BTreeMap<u64, Arc<Tombstone>>,
    /// Per partition (policy, first time), the log position before which its rows are in segments.
    pub(crate) flushed: BTreeMap<(PolicyId, i64), (TimeRange, Lsn)>,
    /// Where the log starts that is needed.
    pub(crate) log_start: Option<Lsn>,
    /// The schema as far as the manifest has it.
    pub(crate) schema: SchemaRegistry,
    pub(crate) catalog_version: u64,
    pub(crate) catalog_bytes: Vec<u8>,
    pub(crate) next_segment: u64,
    pub(crate) next_tombstone: u64,
    /// Partitions that were given a number.
    pub(crate) partitions: BTreeMap<u64, (PolicyId, TimeRange)>,
    /// The greatest number a partition was ever given. 0: none was.
    pub(crate) last_partition: u64,
}

impl ManifestState {
    /// Up to where positions of the log are taken. A memtable may have been flushed before the log
    /// had its rows, and never have got them: to whoever gives these positions again, what they
    /// stand for is in segments already.
    pub(crate) fn positions_end(&self) -> Lsn {
        let flushed = self.flushed.values().map(|(_, before)| *before);
        flushed.chain(self.log_start).max().unwrap_or(Lsn(0))
    }

    /// Memory of what tombstones hide.
    pub(crate) fn tombstone_bytes(&self) -> usize {
        self.tombstones.values().map(|tombstone| tombstone.memory_bytes()).sum()
    }

    /// Adds an edit to the sum.
    pub(crate) fn apply(&mut self, edit: &Edit) -> Result<(), Malformed> {
        match edit {
            Edit::AddSegment(meta) => {
                self.next_segment = self.next_segment.max(behind(meta.id)?);
                if self.segments.insert(meta.id, meta.clone()).is_some() {
                    self.forget_unused_tombstones();
                }
            }
            Edit::RemoveSegment(id) => {
                self.segments.remove(id).ok_or(Malformed("manifest: unknown segment removed"))?;
                self.forget_unused_tombstones();
            }
            Edit::AddTombstone(tombstone, segments) => {
                self.next_tombstone = self.next_tombstone.max(behind(tombstone.id)?);
                for id in segments {
                    let missing = Malformed("manifest: tombstone for an unknown segment");
                    let segment = self.segments.get_mut(id).ok_or(missing)?;
                    if !segment.tombstones.contains(&tombstone.id) {
                        segment.tombstones.push(tombstone.id);
                    }
                }
                if !segments.is_empty() {
                    self.tombstones.insert(tombstone.id, Arc::clone(tombstone));
                }
            }
            Edit::Flushed { policy, partition, before } => {
                // A memtable that replay made and froze ends where replay was, which may be before
                // what is flushed already.
                let known = self.flushed.get(&(*policy, partition.min)).map(|(_, known)| *known);
                let entry = (*partition, known.map_or(*before, |known| known.max(*before)));
                self.flushed.insert((*policy, partition.min), entry);
            }
            Edit::LogStart(lsn) => {
                // A memtable's first position is a guess that may lie before what was given up.
                let start = self.log_start.map_or(*lsn, |known| known.max(*lsn));
                self.log_start = Some(start);
                // Replay starts there: what was flushed before needs no mention any more.
                self.flushed.retain(|_, (_, before)| *before > start);
            }
            Edit::Schema(change) => {
                if !self.schema.apply(change) {
                    return Err(Malformed(
                        "manifest: a change of the schema without those before it",
                    ));
                }
            }
            Edit::NextMeasurement(no) => self.schema.reserve(*no),
            Edit::Catalog { version, bytes } => {
                self.catalog_version = *version;
                self.catalog_bytes.clone_from(bytes);
            }
            Edit::NextIds { segment, tombstone } => {
                if *segment.max(tombstone) > IDS_MAX {
                    return Err(NEVER_GIVEN);
                }
                self.next_segment = self.next_segment.max(*segment);
                self.next_tombstone = self.next_tombstone.max(*tombstone);
            }
            Edit::Partition { policy, partition, number } => {
                if *number == 0 || *number >= IDS_MAX {
                    return Err(NEVER_GIVEN);
                }
                self.last_partition = self.last_partition.max(*number);
                self.partitions.insert(*number, (*policy, *partition));
            }
            Edit::PartitionGone(number) => {
                let unknown = Malformed("manifest: unknown partition gone");
                self.partitions.remove(number).ok_or(unknown)?;
            }
            Edit::NextPartition(number) => {
                if *number == 0 || *number > IDS_MAX {
                    return Err(NEVER_GIVEN);
                }
                self.last_partition = self.last_partition.max(*number - 1);
            }
            Edit::Snapshot => *self = Self::default(),
        }
        Ok(())
    }

    /// Edits that make this state out of any other.
    pub(crate) fn snapshot(&self) -> Vec<Edit> {
        let mut edits = vec![Edit::Snapshot];
        let (next, schema): (MeasurementNo, Vec<SchemaChange>) = self.schema.dump();
        edits.extend(schema.into_iter().map(Edit::Schema));
        edits.push(Edit::NextMeasurement(next));
        edits.extend(self.segments.values().cloned().map(Edit::AddSegment));
        let mut hidden: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for segment in self.segments.values() {
            for tombstone in &segment.tombstones {
                hidden.entry(*tombstone).or_default().push(segment.id);
            }
        }
        for (id, tombstone) in &self.tombstones {
            let segments = hidden.remove(id).unwrap_or_default();
            edits.push(Edit::AddTombstone(Arc::clone(tombstone), segments));
        }
        if let Some(lsn) = self.log_start {
            edits.push(Edit::LogStart(lsn));
        }
        for ((policy, _), (partition, before)) in &self.flushed {
            let (policy, partition, before) = (*policy, *partition, *before);
            edits.push(Edit::Flushed { policy, partition, before });
        }
        edits.push(Edit::Catalog {
            version: self.catalog_version,
            bytes: self.catalog_bytes.clone(),
        });
        edits.push(Edit::NextIds { segment: self.next_segment, tombstone: self.next_tombstone });
        for (number, (policy, partition)) in &self.partitions {
            let (policy, partition, number) = (*policy, *partition, *number);
            edits.push(Edit::Partition { policy, partition, number });
        }
        if self.last_partition > 0 {
            edits.push(Edit::NextPartition(self.last_partition + 1));
        }
        edits
    }

    fn forget_unused_tombstones(&mut self) {
        if self.tombstones.is_empty() {
            return;
        }
        let used: HashSet<u64> =
            self.segments.values().flat_map(|segment| &segment.tombstones).copied().collect();
        self.tombstones.retain(|id, _| used.contains(id));
    }
}

/// Ids of segments, tombstones and partitions stay below: nobody lives to give so many.
const IDS_MAX: u64 = 1 << 62;

const NEVER_GIVEN: Malformed = Malformed("manifest: an id that is never given");

/// The id after one that was given.
fn behind(id: u64) -> Result<u64, Malformed> {
    if id < IDS_MAX { Ok(id + 1) } else { Err(NEVER_GIVEN) }
}
