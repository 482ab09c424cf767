//! Reading a series step by step: partition after partition, stretch of time after stretch, so that what is handed out
//! and not yet taken stays small however long the series is, and however many columns are asked for.
//!
//! A step copies [`Source::rows_at_once`] rows of each source, a block that is cut by windows, or, where a series has few
//! rows, all of them.

use model::{SeriesId, TimeRange};
use store::{StoreError, TimeOrder};

use super::apart::apart;
use super::series_reader::{Emitted, SeriesReader};
use super::source::Source;
use super::span::{Cluster, Span, clusters, has_time_within};

/// How far a series was read.
#[derive(Debug)]
pub(crate) struct SeriesWalk {
    series: SeriesId,
    /// Rows that are wanted still.
    pub(super) wanted: usize,
    /// Partitions that were begun.
    begun: usize,
    /// Stretches of time of the last of them that are left, the next one last.
    stretches: Vec<TimeRange>,
    /// Spans of the last stretch that are left, in clusters that share no time, the next one last.
    pub(super) clusters: Vec<Cluster>,
}

impl SeriesReader {
    /// Before the first row of a series.
    pub(crate) fn begin(&self, series: SeriesId) -> SeriesWalk {
        let wanted = self.rows_per_series.map_or(usize::MAX, |n| n as usize);
        SeriesWalk { series, wanted, begun: 0, stretches: Vec::new(), clusters: Vec::new() }
    }

    /// Behind some partitions, before spans of the last of them that share no time and ascend.
    pub(super) fn begin_at(&self, series: SeriesId, begun: usize, spans: Vec<Span>) -> SeriesWalk {
        let clusters = spans.into_iter().rev().map(Cluster::of_one).collect();
        SeriesWalk { begun, clusters, ..self.begin(series) }
    }

    /// Hands the next rows of a series to `emit`, piece by piece in the reader's order; whether there may be more. Pieces
    /// are not empty, and each of their rows has a value.
    pub(crate) fn step(
        &mut self,
        walk: &mut SeriesWalk,
        emit: &mut dyn FnMut(Emitted<'_>),
    ) -> Result<bool, StoreError> {
        if let Some(cluster) = walk.clusters.pop() {
            let at = self.partition_at(walk.begun - 1);
            self.read_cluster(at, cluster, walk, emit)?;
        } else if let Some(time) = walk.stretches.pop() {
            let at = self.partition_at(walk.begun - 1);
            walk.clusters = self.clusters_within(at, walk.series, time)?;
        } else if walk.begun < self.partitions.len() {
            walk.begun += 1;
            let at = self.partition_at(walk.begun - 1);
            if self.partitions[at].may_have(walk.series) {
                self.begin_partition(at, walk, emit)?;
            }
        }
        let is_more = walk.begun < self.partitions.len()
            || !walk.stretches.is_empty()
            || !walk.clusters.is_empty();
        Ok(walk.wanted > 0 && is_more)
    }

    /// Hands out all rows of a series.
    pub(crate) fn read(
        &mut self,
        series: SeriesId,
        emit: &mut dyn FnMut(Emitted<'_>),
    ) -> Result<(), StoreError> {
        let mut walk = self.begin(series);
        while self.step(&mut walk, emit)? {}
        Ok(())
    }

    /// The place of the partition that is read as number `at`.
    pub(super) fn partition_at(&self, at: usize) -> usize {
        if self.order == TimeOrder::Ascending { at } else { self.partitions.len() - 1 - at }
    }

    fn begin_partition(
        &mut self,
        at: usize,
        walk: &mut SeriesWalk,
        emit: &mut dyn FnMut(Emitted<'_>),
    ) -> Result<(), StoreError> {
        let partition = &self.partitions[at];
        let time = self.time.intersect(&partition.time);
        if let [Source::Segment(segment)] = partition.sources.as_slice()
            && self.rows_per_series.is_some()
            && self.windows.is_none()
            && !segment.has_tombstones()
        {
            return self.read_end(at, walk.series, time, &mut walk.wanted, emit);
        }
        if let [Source::Memtable(memtable)] = partition.sources.as_slice()
            && self.rows_per_series.is_some()
            && !self.filters.is_empty()
            && memtable.tombstones.is_empty()
        {
            self.read_memtable_end(at, walk.series, time, &mut walk.wanted, emit);
            return Ok(());
        }
        walk.stretches = self.stretches(at, walk.series, time);
        if walk.stretches.is_empty() {
            walk.clusters = self.clusters_within(at, walk.series, time)?;
        }
        Ok(())
    }

    /// Stretches of time in which no memtable has more rows of a series than are copied at once, about; none if there is
    /// one. Of segments so many are copied anyway.
    fn stretches(&self, at: usize, series: SeriesId, time: TimeRange) -> Vec<TimeRange> {
        if self.rows_per_series.is_some() {
            return Vec::new();
        }
        let mut stretches = Vec::new();
        for source in &self.partitions[at].sources {
            let Source::Memtable(memtable) = source else { continue };
            let rows = source.rows_at_once();
            if memtable.table.rows() <= rows {
                continue;
            }
            let parts = memtable.table.parts_of_rows(series, time, rows);
            if parts.len() > stretches.len() {
                stretches = parts;
            }
        }
        if self.order == TimeOrder::Ascending {
            stretches.reverse();
        }
        if stretches.len() > 1 { stretches } else { Vec::new() }
    }

    /// What the sources of a partition have of a series within `time`, in clusters that share no time, the next one last.
    /// In any order, if that does not matter.
    fn clusters_within(
        &mut self,
        at: usize,
        series: SeriesId,
        time: TimeRange,
    ) -> Result<Vec<Cluster>, StoreError> {
        let is_any_order = self.is_any_order();
        let partition = &mut self.partitions[at];
        let mut spans = Vec::new();
        for (source_no, source) in partition.sources.iter_mut().enumerate() {
            source.spans(source_no, series, time, &mut spans)?;
        }
        if let Some(only) = &self.only {
            spans.retain(|span| has_time_within(only, span.time));
        }
        let mut clusters = match spans.len() {
            0 => return Ok(Vec::new()),
            1 => spans.into_iter().map(Cluster::of_one).collect(),
            // Where a few rows are wanted they are looked for in all spans together.
            _ if self.rows_per_series.is_some() || is_any_order => clusters(spans),
            _ => apart(&partition.sources, spans)?,
        };
        if self.order == TimeOrder::Ascending {
            clusters.reverse();
        }
        Ok(clusters)
    }
}
