//! Reading rows: a pinned view, the series of a request, and cursors over both.
//!
//! Rows are handed out series by series. Of one series, partitions follow one another in time; within
//! a partition its sources (segments, memtables) are read side by side, and only where their times
//! overlap are rows merged, later writes over earlier ones.

mod ahead;
mod apart;
mod batch_builder;
mod by_partition;
mod candidates;
mod counters;
mod cuts;
mod edge;
mod ends;
mod few_at_end;
mod few_found;
mod few_within;
mod field_ends;
mod filter;
mod foremost;
mod gathered;
mod kept;
mod memtable_source;
mod merge;
mod nearest;
mod piece;
mod plan;
mod present;
mod selected;
mod series_left;
mod series_list;
mod series_reader;
mod series_walk;
mod shared_block;
mod sharing;
mod sifted;
mod source;
mod span;
mod sparse;
mod summarise;
mod sweep;
mod tag_cache;
mod with_rows;
mod within_time;

use std::collections::VecDeque;
use std::sync::Arc;

use model::{Name, SeriesId, SummaryBatch, TimeRange};
use segment::LONG_SERIES_ROWS;
use store::{
    ExtentPart, Scan, ScanContext, ScanCursor, ScanItem, ScanSlice, ScanStats, SeriesTable,
    StoreError, SummaryParts, TagColumn, TimeOrder,
};

use crate::memtable::{Few, Pin};
use crate::schema::Measurement;
use crate::tombstone::{Tombstone, TombstoneSet};
use crate::view::Partition;
use batch_builder::BatchBuilder;
use by_partition::ByPartition;
use counters::Counters;
pub(crate) use memtable_source::MemtableSource;
pub(crate) use piece::Piece;
pub(crate) use plan::ScanPlan;
pub(crate) use present::leave_out_absent;
use series_left::SeriesLeft;
pub(crate) use series_list::SeriesList;
pub(crate) use series_reader::{Emitted, PartitionSources, SeriesReader};
use series_walk::SeriesWalk;
use shared_block::READ_ALONE;
pub(crate) use source::{SegmentSource, Source};
pub(crate) use sparse::SparsePart;
pub(crate) use tag_cache::TagCache;
use within_time::{is_in_vain, is_short_time};

/// A scan without rows: the measurement does not exist.
#[derive(Debug)]
pub(crate) struct EmptyScan {
    table: SeriesTable,
}

impl EmptyScan {
    /// Without series, but with a column for every tag asked for.
    pub(crate) fn new(tags: &[Name]) -> Self {
        let column = |key: &Name| {
            let values = Arc::new(std::iter::once("").collect());
            TagColumn { key: Arc::clone(key), codes: Arc::from([]), values }
        };
        Self { table: SeriesTable::new(0, tags.iter().map(column).collect()) }
    }
}

impl Scan for EmptyScan {
    fn series(&self) -> &SeriesTable {
        &self.table
    }

    fn extent(&self) -> Vec<ExtentPart> {
        Vec::new()
    }

    fn open(&self, _slice: &ScanSlice) -> Result<Box<dyn ScanCursor>, StoreError> {
        Ok(Box::new(EmptyCursor))
    }

    fn stats(&self) -> ScanStats {
        ScanStats::default()
    }
}

struct EmptyCursor;

impl ScanCursor for EmptyCursor {
    fn next(&mut self) -> Result<Option<ScanItem>, StoreError> {
        Ok(None)
    }
}

/// A scan of the embedded store.
#[derive(Debug)]
pub(crate) struct LocalScan {
    plan: Arc<ScanPlan>,
    table: SeriesTable,
    context: ScanContext,
    counters: Arc<Counters>,
    _memory: model::Reservation,
}

impl LocalScan {
    pub(crate) fn new(
        plan: ScanPlan,
        table: SeriesTable,
        context: ScanContext,
    ) -> Result<Self, StoreError> {
        let codes: usize = table.tags.iter().map(|t| t.codes.len() * 4).sum();
        let memory = context.budget.reserve(plan.series.memory_bytes() + codes)?;
        let (plan, counters) = (Arc::new(plan), Arc::default());
        Ok(Self { plan, table, context, counters, _memory: memory })
    }

    fn slice(&self, plan: &Arc<ScanPlan>, slice: &ScanSlice) -> OpenSlice {
        OpenSlice {
            plan: Arc::clone(plan),
            slice: slice.clone(),
            context: self.context.clone(),
            counters: Arc::clone(&self.counters),
        }
    }
}

impl Scan for LocalScan {
    fn series(&self) -> &SeriesTable {
        &self.table
    }

    fn extent(&self) -> Vec<ExtentPart> {
        let plan = &*self.plan;
        let selected = plan.series_named as f64 / plan.series_total.max(1) as f64;
        let parts = plan.partitions.iter().filter_map(|p| {
            let (time, rows) = partition_extent(p, &plan.measurement)?;
            let wanted = time.intersect(&plan.time);
            if wanted.is_empty() {
                return None;
            }
            let share = length(&wanted) / length(&time);
            let rows = (rows as f64 * selected.min(1.0) * share).ceil() as u64;
            Some(ExtentPart { time: wanted, rows })
        });
        parts.collect()
    }

    fn cuts(&self, series: Option<&[u32]>, parts: usize) -> Result<Vec<usize>, StoreError> {
        cuts::cuts(&self.plan, series, parts)
    }

    fn ends(&self, series: Option<&[u32]>) -> Result<Option<Vec<i64>>, StoreError> {
        ends::ends(&self.plan, series)
    }

    fn field_ends(
        &self,
        series: &[u32],
        time: TimeRange,
    ) -> Result<Option<SummaryBatch>, StoreError> {
        field_ends::field_ends(&self.plan, (series, time), &self.context, &self.counters)
    }

    fn series_with_rows(&self) -> Result<Vec<u32>, StoreError> {
        with_rows::series_with_rows(self, &self.plan, &self.context.interrupt)
    }

    fn has_rows(&self, time: TimeRange) -> Result<bool, StoreError> {
        let plan = Arc::new(self.plan.of_any_row());
        let slice = self.slice(&plan, &ScanSlice { time, ..ScanSlice::all() });
        Ok(slice.cursor(&plan.partitions)?.next()?.is_some())
    }

    fn open(&self, slice: &ScanSlice) -> Result<Box<dyn ScanCursor>, StoreError> {
        let slice = self.slice(&self.plan, slice);
        Ok(match ByPartition::new(slice) {
            Ok(cursor) => Box::new(cursor),
            Err(slice) => Box::new(slice.cursor(&self.plan.partitions)?),
        })
    }

    fn stats(&self) -> ScanStats {
        self.counters.stats()
    }
}

/// A slice of a scan that is about to be read.
#[derive(Debug)]
struct OpenSlice {
    plan: Arc<ScanPlan>,
    slice: ScanSlice,
    context: ScanContext,
    counters: Arc<Counters>,
}

impl OpenSlice {
    /// How many series it has.
    fn series(&self) -> usize {
        self.slice.series.as_ref().map_or(self.plan.series.len(), |series| series.len())
    }

    /// The first and the last of them.
    fn bounds(&self) -> Option<(SeriesId, SeriesId)> {
        let at = |ordinal: &u32| self.plan.series.at(*ordinal as usize);
        match &self.slice.series {
            None => self.plan.series.bounds(),
            Some(listed) => Some((at(listed.first()?), at(listed.last()?))),
        }
    }

    /// A cursor over what some partitions have of it.
    fn cursor(&self, partitions: &[Arc<Partition>]) -> Result<LocalCursor, StoreError> {
        let Self { plan, slice, context, counters } = self;
        let time = plan.time.intersect(&slice.time);
        let few = slice.rows_per_series;
        // Rows of memtables are filtered later, so how many of them are enough is not known then.
        let of_memtables = few.filter(|_| plan.filters.is_empty()).and_then(|rows| {
            Some(Few {
                rows: usize::try_from(rows).ok()?,
                from_end: plan.order == TimeOrder::Descending,
                with_any: slice.with_any.clone(),
                is_alone: false,
            })
        });
        let mut sources =
            open_some(plan, partitions, time, (few, of_memtables.as_ref()), counters)?;
        if let (Some(bounds), None) = (self.bounds(), few) {
            let series = (bounds, self.series());
            candidates::leave_out(plan, partitions, &mut sources, series, &context.interrupt)?;
        }
        let parts = plan.windows.map_or(SummaryParts::default(), |windows| windows.parts);
        let mut reader = SeriesReader {
            order: plan.order,
            filters: plan.filters.clone(),
            with_any: slice.with_any.clone(),
            rows_per_series: few,
            filter_columns: plan.filter_columns.clone(),
            windows: plan.windows,
            joins_series: plan.joins_series && few.is_none(),
            ..SeriesReader::new(sources, time)
        }
        .expecting();
        // Fewer are read one by one, whatever they have.
        if self.series() >= READ_ALONE {
            self.look_for_many(partitions, &mut reader);
        }
        Ok(LocalCursor {
            next: 0,
            looked_ahead: 0,
            walk: None,
            next_many: if reader.reads_many() { 0 } else { usize::MAX },
            series: slice.series.clone(),
            batch: BatchBuilder::new(&plan.fields, parts, self.series())
                .in_any_order(reader.is_any_order()),
            reader,
            ready: VecDeque::new(),
            plan: Arc::clone(plan),
            context: context.clone(),
            counters: Arc::clone(counters),
        })
    }

    /// Tells the reader which ways to read many series at once are likely to pay, by how many rows each has.
    fn look_for_many(&self, partitions: &[Arc<Partition>], reader: &mut SeriesReader) {
        let (plan, few) = (&self.plan, reader.rows_per_series);
        let rows_each = plan.rows_each(partitions);
        let within = Some(plan.rows_each_within(partitions, reader.time))
            .filter(|rows| !is_in_vain(*rows, &plan.fields, plan.filters.len()));
        reader.gathered = plan.series_at_once(within.unwrap_or(rows_each), few).unwrap_or(0);
        reader.has_short_series = plan.series_at_once(rows_each, few).is_some();
        reader.shares_blocks = reader.joins_series && rows_each < LONG_SERIES_ROWS.into();
        reader.is_short_time =
            within.is_some_and(|rows| is_short_time(rows, few, plan.fields.len()));
    }
}

fn length(range: &TimeRange) -> f64 {
    range.max as f64 - range.min as f64 + 1.0
}

/// The times that sources of a partition have rows of a measurement for, and about how many.
fn partition_extent(partition: &Partition, measurement: &Measurement) -> Option<(TimeRange, u64)> {
    let mut time = TimeRange::EMPTY;
    let mut rows = 0;
    for segment in &partition.segments {
        if let Some((of_segment, count)) = segment.measurement(&measurement.name) {
            time = time.union(&of_segment);
            rows += count;
        }
    }
    let memtables = partition.frozen.iter().map(|f| &f.table).chain(&partition.active);
    for table in memtables {
        time = time.union(&table.time());
        rows += table.rows() as u64;
    }
    (!time.is_empty()).then_some((time, rows))
}

/// Opens the sources of every partition that has rows within `time`.
pub(crate) fn open_sources(
    plan: &ScanPlan,
    time: TimeRange,
    counters: &Arc<Counters>,
) -> Result<Vec<PartitionSources>, StoreError> {
    open_some(plan, &plan.partitions, time, (None, None), counters)
}

/// The same of some partitions, where of each series so many rows are enough: of all sources, of a memtable. Then a partition
/// may come in two parts.
fn open_some(
    plan: &ScanPlan,
    partitions: &[Arc<Partition>],
    time: TimeRange,
    few: (Option<u64>, Option<&Few>),
    counters: &Arc<Counters>,
) -> Result<Vec<PartitionSources>, StoreError> {
    let mut opened = Vec::with_capacity(partitions.len());
    for partition in partitions {
        if !partition.time.overlaps(&time) {
            continue;
        }
        let parts = if few.0.is_some() {
            let measurement = (&plan.measurement.name, plan.measurement.no);
            foremost::cut(partition, measurement, plan.order, partition.time.intersect(&time))
        } else {
            vec![partition.time]
        };
        for part in parts {
            let sources =
                partition_sources(plan, partition, (time.intersect(&part), few), counters)?;
            if !sources.is_empty() {
                opened.push(PartitionSources::new(part, sources));
            }
        }
    }
    Ok(opened)
}

fn partition_sources(
    plan: &ScanPlan,
    partition: &Partition,
    (time, (rows_per_series, of_memtables)): (TimeRange, (Option<u64>, Option<&Few>)),
    counters: &Arc<Counters>,
) -> Result<Vec<Source>, StoreError> {
    let name = &plan.measurement.name;
    let touching = |stones: &[Arc<Tombstone>]| {
        let touches = |t: &&Arc<Tombstone>| {
            t.touches(partition.database, partition.policy, name, time)
                && plan.series.may_have_hidden(&t.series)
        };
        TombstoneSet::new(stones.iter().filter(touches).cloned().collect())
    };
    let mut sources = Vec::new();
    for segment in &partition.segments {
        Counters::add(&counters.sources, 1);
        let (first, last) = segment.meta.series;
        let is_beside = |wanted: (SeriesId, SeriesId)| wanted.1 < first || wanted.0 > last;
        let none_in_range = plan.series.bounds().is_none_or(is_beside);
        let opened = if none_in_range || !segment.meta.time.overlaps(&time) {
            None
        } else {
            let stones = touching(&segment.tombstones);
            let source = SegmentSource::open(segment, name, &plan.fields, stones, counters)?;
            source.map(|source| {
                let source = source.for_rows(rows_per_series).for_counts(plan.only_counts());
                source.with_filters(&plan.filters)
            })
        };
        match opened {
            Some(source) => sources.push(Source::Segment(Box::new(source))),
            None => Counters::add(&counters.sources_pruned, 1),
        }
    }
    let frozen = partition.frozen.iter().map(|f| (&f.table, touching(&f.tombstones), Pin::ALL));
    let active =
        partition.active.iter().map(|table| (table, TombstoneSet::default(), plan.pin_of(table)));
    for (table, tombstones, pin) in frozen.chain(active) {
        Counters::add(&counters.sources, 1);
        if !table.may_have(plan.measurement.no, time) {
            Counters::add(&counters.sources_pruned, 1);
            continue;
        }
        // Not before it was pinned.
        let places = plan.places_of(table);
        let (table, few) = (Arc::clone(table), of_memtables.cloned());
        let memtable = MemtableSource { table, pin, places, tombstones, few };
        sources.push(Source::Memtable(Box::new(memtable)));
    }
    if let [Source::Memtable(memtable)] = sources.as_mut_slice()
        && let Some(few) = &mut memtable.few
    {
        few.is_alone = true;
    }
    Ok(sources)
}

impl Emitted<'_> {
    /// Adds it to a batch, as what the series of that ordinal has.
    #[inline]
    fn add_to(self, batch: &mut BatchBuilder, ordinal: u32, ready: &mut VecDeque<ScanItem>) {
        match self {
            Self::Rows(piece) => batch.add(ordinal, piece, ready),
            Self::Row(time, values) => batch.add_row(ordinal, time, values, ready),
            Self::Summaries(summaries) => batch.add_summaries(ordinal, &summaries, ready),
            Self::Sparse(_) => panic!("BUG: only merges read rows without gaps"),
        }
    }
}

/// Reads a slice of a scan.
#[derive(Debug)]
struct LocalCursor {
    plan: Arc<ScanPlan>,
    reader: SeriesReader,
    /// Ordinals to read; `None`: all.
    series: Option<Arc<[u32]>>,
    /// How many of them are done.
    next: usize,
    /// For how many of them it was looked ahead.
    looked_ahead: usize,
    /// How far the one before that was read, if not to its end.
    walk: Option<(u32, SeriesWalk)>,
    /// From which of them on many may be read together.
    next_many: usize,
    batch: BatchBuilder,
    ready: VecDeque<ScanItem>,
    context: ScanContext,
    counters: Arc<Counters>,
}

impl LocalCursor {
    /// The ordinal at a place in the list of those to read.
    fn ordinal(&self, at: usize) -> Option<u32> {
        match &self.series {
            Some(list) => list.get(at).copied(),
            None => (at < self.plan.series.len()).then_some(at as u32),
        }
    }
}

/// Series that are looked ahead for together: enough for their waits to overlap, few enough that what was looked at
/// is still in the processor's cache when it is read.
const LOOKED_AHEAD: usize = 8;

/// Series that the disk is asked for together where it has to be: with 32 on their way it is as busy as it gets (measured),
/// and half of them are asked for anew when the other half was read.
const READ_AHEAD: usize = 64;

impl LocalCursor {
    /// Gets ready for the next series, if there are several, or one in several partitions.
    fn look_ahead(&mut self) {
        self.looked_ahead = self.next + LOOKED_AHEAD;
        let series = self.upcoming(LOOKED_AHEAD);
        let are_several = series.len() > 1 || self.reader.partitions.len() > 1;
        if are_several && !self.reader.look_ahead(&series) {
            let series = self.upcoming(READ_AHEAD);
            self.reader.read_ahead(&series);
        }
    }

    /// The next series, so many at most.
    fn upcoming(&self, count: usize) -> Vec<SeriesId> {
        let next = (self.next..self.next + count).map_while(|at| self.ordinal(at));
        next.map(|ordinal| self.plan.series.at(ordinal as usize)).collect()
    }
}

impl LocalCursor {
    /// Reads the rows of the next series together with those of others, if that is better; whether any were read.
    fn read_many(&mut self) -> Result<bool, StoreError> {
        let left = SeriesLeft::new(&self.plan.series, self.series.as_deref(), self.next);
        if left.len() < READ_ALONE && !self.reader.is_behind() {
            self.next_many = usize::MAX;
            return Ok(false);
        }
        let many = self.reader.read_many(&left, self.looked_ahead - self.next)?;
        self.next += many.done;
        self.next_many = self.next + many.alone;
        for (ordinal, summaries) in &many.summaries {
            self.batch.add_summaries(*ordinal, summaries, &mut self.ready);
        }
        if let Some(rows) = many.rows {
            self.batch.add_batch(rows, &mut self.ready);
        }
        if let Some(walk) = many.last
            && let Some(ordinal) = self.ordinal(self.next - 1)
        {
            self.walk = Some((ordinal, walk));
        }
        if let Some(series) = many.unfinished
            && let Some(ordinal) = self.ordinal(self.next - 1)
        {
            self.walk = Some((ordinal, self.reader.begin_behind_block(series)?));
        }
        Ok(many.done > 0 || self.reader.is_behind())
    }
}

impl ScanCursor for LocalCursor {
    fn next(&mut self) -> Result<Option<ScanItem>, StoreError> {
        while self.ready.is_empty() {
            self.context.interrupt.check()?;
            if let Some((ordinal, walk)) = &mut self.walk {
                let (batch, ready, ordinal) = (&mut self.batch, &mut self.ready, *ordinal);
                let mut add = |emitted: Emitted<'_>| emitted.add_to(batch, ordinal, ready);
                if !self.reader.step(walk, &mut add)? {
                    self.walk = None;
                }
                continue;
            }
            let Some(ordinal) = self.ordinal(self.next) else {
                self.batch.finish(&mut self.ready);
                break;
            };
            if self.next >= self.looked_ahead {
                self.look_ahead();
            }
            if self.next >= self.next_many && self.read_many()? {
                continue;
            }
            self.next += 1;
            let series = self.plan.series.at(ordinal as usize);
            self.walk = Some((ordinal, self.reader.begin(series)));
        }
        let Some(item) = self.ready.pop_front() else { return Ok(None) };
        if let ScanItem::Rows(batch) = &item {
            Counters::add(&self.counters.rows, batch.rows as u64);
        }
        Ok(Some(item))
    }
}
