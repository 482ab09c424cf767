//! The view: which memtables and segments there are, as an immutable value.
//!
//! A reader takes the current view and keeps it as long as it reads; whoever changes something makes
//! a new view and swaps it in. What only an old view refers to lives until its last reader is done.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use model::{DatabaseId, PolicyId, TimeRange, partition_range};
use segment::{MeasurementList, SegmentReader};
use store::{Revision, StoreError};
use wal::Lsn;

use crate::error::{repeated, segment_error};
use crate::manifest::SegmentMeta;
use crate::memtable::Memtable;
use crate::tombstone::Tombstone;

/// Everything a reader can see.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    policies: BTreeMap<PolicyId, Arc<PolicyView>>,
    /// Changes that led to it.
    changes: u64,
}

/// The partitions of a policy.
#[derive(Clone, Debug)]
pub(crate) struct PolicyView {
    pub(crate) database: DatabaseId,
    /// Disjoint, ascending.
    pub(crate) partitions: Vec<Arc<Partition>>,
}

/// One partition.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    pub(crate) database: DatabaseId,
    pub(crate) policy: PolicyId,
    pub(crate) time: TimeRange,
    /// The change of the view that made it what it is: no two partitions are from the same.
    change: u64,
    /// Oldest writes first.
    pub(crate) segments: Vec<Arc<Segment>>,
    /// Memtables that wait for their flush, oldest first; later than all segments.
    pub(crate) frozen: Vec<Arc<Frozen>>,
    /// The memtable that takes writes; later than everything else.
    pub(crate) active: Option<Arc<Memtable>>,
}

/// A segment and what hides parts of it.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) meta: SegmentMeta,
    reader: Result<Arc<SegmentReader>, Arc<StoreError>>,
    pub(crate) tombstones: Vec<Arc<Tombstone>>,
    /// When the last of its rows came; of what was there at the start, when that was.
    pub(crate) last_write: Instant,
}

/// A memtable that takes no more writes, and what hides parts of it.
#[derive(Debug)]
pub(crate) struct Frozen {
    pub(crate) table: Arc<Memtable>,
    pub(crate) tombstones: Vec<Arc<Tombstone>>,
    /// Everything the log has for the partition before this position is in it or in older sources.
    pub(crate) end_lsn: Lsn,
}

impl View {
    /// The policies, ascending by id.
    pub(crate) fn policies(&self) -> impl Iterator<Item = (PolicyId, &Arc<PolicyView>)> {
        self.policies.iter().map(|(id, policy)| (*id, policy))
    }

    /// One policy, if it has partitions.
    pub(crate) fn policy(&self, policy: PolicyId) -> Option<&Arc<PolicyView>> {
        self.policies.get(&policy)
    }

    /// Every partition.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = &Arc<Partition>> {
        self.policies.values().flat_map(|policy| &policy.partitions)
    }

    /// The partition of a policy that holds a time, if there is one.
    pub(crate) fn partition_at(&self, policy: PolicyId, time_ns: i64) -> Option<&Arc<Partition>> {
        self.policies.get(&policy)?.at(time_ns)
    }

    /// What stands for the rows of a policy within `time`; see [`store::Store::revision`].
    ///
    /// It is how many partitions there are, the latest change of any, and the rows of memtables that take
    /// writes. Where the latest change is the same, none came to be and none was replaced, so that fewer are
    /// fewer; where they are the same partitions, these are the same memtables, which only grow.
    pub(crate) fn revision(&self, policy: PolicyId, time: TimeRange) -> Revision {
        let partitions = self.policies.get(&policy).map_or(&[][..], |p| p.overlapping(time));
        let latest = partitions.iter().map(|p| p.change).max();
        let active = partitions.iter().filter_map(|p| p.active.as_ref());
        let rows: u64 = active.map(|table| table.pin().rows()).sum();
        Revision([partitions.len() as u64, latest.unwrap_or(0), rows])
    }

    /// The bounds a new partition for `time_ns` gets: those of its duration, cut back where
    /// partitions of another duration are in the way.
    pub(crate) fn new_bounds(
        &self,
        policy: PolicyId,
        time_ns: i64,
        partition_ns: i64,
    ) -> TimeRange {
        let mut bounds = partition_range(time_ns, partition_ns);
        if let Some(policy) = self.policies.get(&policy) {
            for other in &policy.partitions {
                if other.time.max < time_ns {
                    bounds.min = bounds.min.max(other.time.max + 1);
                } else {
                    bounds.max = bounds.max.min(other.time.min - 1);
                }
            }
        }
        bounds
    }

    /// This view with one partition changed; it is made if it does not exist, and goes if `change`
    /// leaves nothing in it.
    pub(crate) fn with_partition(
        &self,
        (database, policy, time): (DatabaseId, PolicyId, TimeRange),
        change: impl FnOnce(&mut Partition),
    ) -> Self {
        let mut view = self.clone();
        view.changes += 1;
        let entry = view
            .policies
            .entry(policy)
            .or_insert_with(|| Arc::new(PolicyView { database, partitions: Vec::new() }));
        let mut changed = PolicyView::clone(entry);
        let at = changed.partitions.partition_point(|p| p.time.min < time.min);
        let exists = changed.partitions.get(at).is_some_and(|p| p.time == time);
        let mut partition = if exists {
            Partition::clone(&changed.partitions[at])
        } else {
            Partition::empty(database, policy, time)
        };
        change(&mut partition);
        partition.change = view.changes;
        match (exists, partition.is_empty()) {
            (true, true) => drop(changed.partitions.remove(at)),
            (true, false) => changed.partitions[at] = Arc::new(partition),
            (false, true) => {}
            (false, false) => changed.partitions.insert(at, Arc::new(partition)),
        }
        if changed.partitions.is_empty() {
            view.policies.remove(&policy);
        } else {
            *entry = Arc::new(changed);
        }
        view
    }

    /// This view without a partition.
    pub(crate) fn without_partition(&self, partition: &Partition) -> Self {
        self.with_partition((partition.database, partition.policy, partition.time), |p| {
            *p = Partition::empty(p.database, p.policy, p.time);
        })
    }
}

impl PolicyView {
    /// The partition that holds a time.
    pub(crate) fn at(&self, time_ns: i64) -> Option<&Arc<Partition>> {
        let at = self.partitions.partition_point(|p| p.time.max < time_ns);
        self.partitions.get(at).filter(|p| p.time.contains(time_ns))
    }

    /// The partitions that have times of `range`, ascending.
    pub(crate) fn overlapping(&self, range: TimeRange) -> &[Arc<Partition>] {
        let from = self.partitions.partition_point(|p| p.time.max < range.min);
        let to = self.partitions.partition_point(|p| p.time.min <= range.max);
        &self.partitions[from..to.max(from)]
    }
}

impl Partition {
    fn empty(database: DatabaseId, policy: PolicyId, time: TimeRange) -> Self {
        let (segments, frozen, active) = (Vec::new(), Vec::new(), None);
        Self { database, policy, time, change: 0, segments, frozen, active }
    }

    /// The same without memtables, for who holds on to it.
    pub(crate) fn segments_only(&self) -> Self {
        Self {
            segments: self.segments.clone(),
            ..Self::empty(self.database, self.policy, self.time)
        }
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.frozen.is_empty() && self.active.is_none()
    }

    /// What names it in [`View::with_partition`].
    pub(crate) fn key(&self) -> (DatabaseId, PolicyId, TimeRange) {
        (self.database, self.policy, self.time)
    }

    /// Freezes the active memtable: what the log has before `end_lsn` is in it.
    pub(crate) fn freeze(&mut self, end_lsn: Lsn) {
        if let Some(table) = self.active.take() {
            self.frozen.push(Arc::new(Frozen { table, tombstones: Vec::new(), end_lsn }));
        }
    }

    /// Hangs a tombstone on every source that it can hide rows of; returns the segments' ids. The
    /// active memtable must be frozen.
    pub(crate) fn add_tombstone(&mut self, tombstone: &Arc<Tombstone>) -> Vec<u64> {
        assert!(self.active.is_none(), "BUG: a tombstone over a memtable that takes writes");
        let mut ids = Vec::new();
        for segment in &mut self.segments {
            if segment.may_have_rows_of(tombstone) {
                ids.push(segment.meta.id);
                *segment = Arc::new(segment.with_tombstone(tombstone));
            }
        }
        self.hide_frozen(tombstone);
        ids
    }

    /// Hangs a tombstone on every frozen memtable.
    pub(crate) fn hide_frozen(&mut self, tombstone: &Arc<Tombstone>) {
        for frozen in &mut self.frozen {
            let mut tombstones = frozen.tombstones.clone();
            tombstones.push(Arc::clone(tombstone));
            let table = Arc::clone(&frozen.table);
            *frozen = Arc::new(Frozen { table, tombstones, end_lsn: frozen.end_lsn });
        }
    }
}

impl Segment {
    /// A segment that is part of the view from now on. One whose file cannot be opened has its place
    /// all the same: what is deleted or merged meanwhile must be right once the file is mended.
    pub(crate) fn new(
        meta: SegmentMeta,
        reader: Result<Arc<SegmentReader>, StoreError>,
        tombstones: Vec<Arc<Tombstone>>,
        last_write: Instant,
    ) -> Self {
        Self { meta, reader: reader.map_err(Arc::new), tombstones, last_write }
    }

    /// Its file; or why that could not be opened.
    pub(crate) fn reader(&self) -> Result<&Arc<SegmentReader>, StoreError> {
        self.reader.as_ref().map_err(|error| repeated(error))
    }

    /// Whether its file could be opened.
    pub(crate) fn is_whole(&self) -> bool {
        self.reader.is_ok()
    }

    fn measurements(&self) -> Result<Arc<MeasurementList>, StoreError> {
        self.reader()?.measurements().map_err(segment_error)
    }

    /// How many rows it has of a measurement at most, and when; `None` if it has none.
    pub(crate) fn measurement(&self, name: &str) -> Option<(TimeRange, u64)> {
        // Whoever reads there is told what is wrong; nobody would, were it left out.
        let Ok(list) = self.measurements() else { return Some((self.meta.time, self.meta.rows)) };
        list.get(name).map(|info| (info.time, info.rows))
    }

    fn may_have_rows_of(&self, tombstone: &Tombstone) -> bool {
        let named = tombstone.measurement.as_ref();
        tombstone.reaches(self.meta.series, self.meta.time)
            && named.is_none_or(|name| self.measurements().map_or(true, |l| l.get(name).is_some()))
    }

    /// The same segment with one more tombstone.
    pub(crate) fn with_tombstone(&self, tombstone: &Arc<Tombstone>) -> Self {
        let mut meta = self.meta.clone();
        meta.tombstones.push(tombstone.id);
        let mut tombstones = self.tombstones.clone();
        tombstones.push(Arc::clone(tombstone));
        let reader = self.reader.clone();
        Self { meta, reader, tombstones, last_write: self.last_write }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000_000;

    fn with_active(view: &View, time: TimeRange) -> View {
        let key = (DatabaseId(1), PolicyId(1), time);
        view.with_partition(key, |p| {
            p.active = Some(Arc::new(Memtable::new(
                DatabaseId(1),
                PolicyId(1),
                time,
                Lsn(0),
                Arc::default(),
            )));
        })
    }

    #[test]
    fn finds_partitions_by_time() {
        let mut view = View::default();
        for day in [3, 1, 2] {
            view = with_active(&view, partition_range(day * DAY, DAY));
        }
        let policy = view.policy(PolicyId(1)).unwrap();
        assert_eq!(policy.partitions.len(), 3);
        assert!(policy.partitions.windows(2).all(|w| w[0].time.max < w[1].time.min));
        assert!(view.partition_at(PolicyId(1), 2 * DAY + 5).unwrap().time.contains(2 * DAY));
        assert!(view.partition_at(PolicyId(1), 5 * DAY).is_none());
        assert_eq!(policy.overlapping(TimeRange::new(DAY, 2 * DAY)).len(), 2);
        assert_eq!(policy.overlapping(TimeRange::new(0, DAY - 1)).len(), 0);
        let gone = view.without_partition(&policy.partitions[0]);
        assert_eq!(gone.partitions().count(), 2);
        assert_eq!(view.partitions().count(), 3, "the old view is untouched");
    }

    #[test]
    fn new_partitions_never_overlap_old_ones() {
        let mut view = View::default();
        for (time, duration) in
            [(5 * DAY, DAY), (8 * DAY, DAY), (6 * DAY + 7, 30 * DAY), (0, 7 * DAY)]
        {
            let bounds = view.new_bounds(PolicyId(1), time, duration);
            assert!(bounds.contains(time));
            assert!(view.partitions().all(|p| !p.time.overlaps(&bounds)));
            view = with_active(&view, bounds);
        }
        assert_eq!(view.partitions().count(), 4);
    }
}
