//! The rows of one partition that are not in a segment yet.
//!
//! Cheap to add to, readable at once, grouped by series from the start so that a flush needs no
//! sort of rows. Rows live in shards by series, each with its own lock; the order in which batches
//! reach a shard is the log's (see `write::commit`). Once frozen (no writer has it any more) a
//! memtable never changes; it is dropped when its segment is part of the view.

mod arena;
mod block_builder;
mod ends;
mod entries;
mod places;
mod read;
mod shard;
mod texts;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::Instant;

use hashbrown::HashMap;
use model::{DatabaseId, FieldType, PolicyId, SeriesId, TimeRange};
use parking_lot::{Mutex, RwLock};
use roaring::RoaringTreemap;
use segment::SparseColumn;
use wal::Lsn;

use crate::rows::{BatchRow, FieldNo, MeasurementNo, RowBatch, RowLayout};
use crate::work::WorkSignal;
pub(crate) use arena::TEXT_BYTES_MAX;
pub(crate) use ends::FieldEnds;
pub(crate) use places::FieldPlaces;
use read::Wanted;
pub(crate) use read::{Few, FoundRows, SeriesBlock};
use shard::{LAYOUTS_MAX, LOOKED_UP, Shard};
pub(crate) use shard::{ROW_VALUES_MAX, ROWS_MAX};

/// Shards of a memtable, and lanes of the write path. A power of two.
pub(crate) const SHARDS: usize = 16;

/// Memory of a layout and of each of its fields, about: vectors, the entry that finds it, and its measurement's.
const LAYOUT_BYTES: usize = 250;
const LAYOUT_FIELD_BYTES: usize = 16;

/// Rows of a series that are read at once for a flush: for each field there is a bit.
const PART_ROWS_MAX: usize = 64 << 10;

/// The shard that keeps a series.
#[inline]
pub(crate) fn shard_of(series: SeriesId) -> usize {
    // Fibonacci hashing: dense ids spread evenly, neighbours apart.
    (series.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize & (SHARDS - 1)
}

/// A moment in a memtable's life: how many rows each shard had.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pin([u32; SHARDS]);

impl Pin {
    /// Everything, for memtables that take no more rows.
    pub(crate) const ALL: Self = Self([u32::MAX; SHARDS]);

    /// All rows, duplicates included.
    pub(crate) fn rows(&self) -> u64 {
        self.0.iter().map(|rows| u64::from(*rows)).sum()
    }
}

/// Layouts of the rows of one memtable.
#[derive(Debug, Default)]
pub(crate) struct LayoutTable {
    layouts: Vec<StoredLayout>,
    by_layout: HashMap<RowLayout, u32>,
    /// The numbers of those of each measurement, ascending.
    of_measurement: HashMap<MeasurementNo, Vec<u32>>,
}

/// One layout, taken apart for the loops that use it.
#[derive(Debug)]
pub(crate) struct StoredLayout {
    pub(crate) fields: Vec<FieldNo>,
    types: Vec<FieldType>,
    measurement: MeasurementNo,
    has_strings: bool,
}

impl LayoutTable {
    /// Those of a measurement, with their numbers, ascending.
    fn of(
        &self,
        measurement: MeasurementNo,
    ) -> impl DoubleEndedIterator<Item = (u32, &StoredLayout)> + Clone {
        let numbers = self.of_measurement.get(&measurement).map_or(&[][..], Vec::as_slice);
        numbers.iter().map(|number| (*number, &self.layouts[*number as usize]))
    }
}

/// Rows of one partition.
#[derive(Debug)]
pub(crate) struct Memtable {
    pub(crate) database: DatabaseId,
    pub(crate) policy: PolicyId,
    /// The partition.
    pub(crate) partition: TimeRange,
    /// Where in the log its first row may be.
    pub(crate) first_lsn: Lsn,
    shards: Vec<Mutex<Shard>>,
    layouts: RwLock<LayoutTable>,
    bytes: AtomicUsize,
    rows: AtomicUsize,
    /// Rows and bytes of text that room was set aside for.
    claimed: Mutex<(usize, usize)>,
    min_time: AtomicI64,
    max_time: AtomicI64,
    created: Instant,
    /// When it was last added to.
    last_write: Mutex<Instant>,
    /// Its rows are in a segment; only who looked before that reads them here.
    is_flushed: AtomicBool,
    /// Counts the bytes of all memtables of the store.
    work: Arc<WorkSignal>,
}

impl Drop for Memtable {
    fn drop(&mut self) {
        self.work.memtable_gone(self.bytes(), *self.is_flushed.get_mut());
    }
}

impl Memtable {
    /// An empty memtable.
    pub(crate) fn new(
        database: DatabaseId,
        policy: PolicyId,
        partition: TimeRange,
        first_lsn: Lsn,
        work: Arc<WorkSignal>,
    ) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        let created = Instant::now();
        Self {
            database,
            policy,
            partition,
            first_lsn,
            shards,
            layouts: RwLock::default(),
            bytes: AtomicUsize::new(0),
            rows: AtomicUsize::new(0),
            claimed: Mutex::new((0, 0)),
            min_time: AtomicI64::new(i64::MAX),
            max_time: AtomicI64::new(i64::MIN),
            created,
            last_write: Mutex::new(created),
            is_flushed: AtomicBool::new(false),
            work,
        }
    }

    /// The numbers that this memtable gives to a batch's layouts.
    pub(crate) fn intern_layouts(&self, layouts: &[RowLayout]) -> Vec<u32> {
        let known = self.layouts.read();
        let numbers: Option<Vec<u32>> =
            layouts.iter().map(|l| known.by_layout.get(l).copied()).collect();
        if let Some(numbers) = numbers {
            return numbers;
        }
        drop(known);
        let mut table = self.layouts.write();
        let before = table.layouts.len();
        let numbers = layouts.iter().map(|layout| table.intern(layout)).collect();
        let new = &table.layouts[before..];
        let bytes = new.iter().map(|l| LAYOUT_BYTES + l.fields.len() * LAYOUT_FIELD_BYTES).sum();
        self.grew(bytes);
        numbers
    }

    /// Sets room aside for so many rows with so much text, before they are logged. `false` if there is
    /// not that much: then this memtable has to be frozen, and the rows go to the next one.
    pub(crate) fn claim(&self, rows: usize, text_bytes: usize) -> bool {
        let mut claimed = self.claimed.lock();
        let sum = (claimed.0.saturating_add(rows), claimed.1.saturating_add(text_bytes));
        let fits = sum.0 <= ROWS_MAX && sum.1 <= TEXT_BYTES_MAX;
        if fits {
            *claimed = sum;
        }
        fits
    }

    /// Adds the rows `selected` of `batch`, all of which belong to `shard`. `numbers` are what
    /// [`Memtable::intern_layouts`] gave for the batch.
    pub(crate) fn append(
        &self,
        shard: usize,
        batch: &RowBatch<'_>,
        numbers: &[u32],
        mut selected: impl Iterator<Item = BatchRow>,
    ) {
        let layouts = self.layouts.read();
        let mut shard = self.shards[shard].lock();
        let before = shard.bytes();
        let mut rows = 0;
        let (mut min_time, mut max_time) = (i64::MAX, i64::MIN);
        let mut some: Vec<BatchRow> = Vec::with_capacity(LOOKED_UP);
        loop {
            some.clear();
            some.extend(selected.by_ref().take(LOOKED_UP));
            if some.is_empty() {
                break;
            }
            let places = shard.look_up(some.iter().map(|row| row.series));
            for (row, place) in some.iter().zip(places) {
                let number = numbers[row.layout as usize];
                let layout = &layouts.layouts[number as usize];
                shard.appender(place, row.series, layout.measurement).append(
                    (row.time_ns, number),
                    (batch.row_values(row), &layout.types),
                    &batch.strings,
                    layout.has_strings,
                );
                rows += 1;
                min_time = min_time.min(row.time_ns);
                max_time = max_time.max(row.time_ns);
            }
        }
        self.min_time.fetch_min(min_time, Ordering::Relaxed);
        self.max_time.fetch_max(max_time, Ordering::Relaxed);
        let grown = shard.bytes().saturating_sub(before);
        drop(shard);
        self.grew(grown);
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// Counts memory that it took, for itself and for the store.
    pub(crate) fn grew(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.work.memtable_grew(bytes);
    }

    /// Notes that it left the view, its rows are elsewhere. To be called once, and nothing is added later.
    pub(crate) fn flushed(&self) {
        let again = self.is_flushed.swap(true, Ordering::Relaxed);
        assert!(!again, "BUG: a memtable was flushed twice");
        self.work.memtable_flushed(self.bytes());
    }

    /// Notes that a batch was added.
    pub(crate) fn touch(&self) {
        *self.last_write.lock() = Instant::now();
    }

    /// When its first rows came, about.
    pub(crate) fn created(&self) -> Instant {
        self.created
    }

    /// When somebody added to it last.
    pub(crate) fn last_write(&self) -> Instant {
        *self.last_write.lock()
    }

    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Rows added, duplicates included.
    pub(crate) fn rows(&self) -> usize {
        self.rows.load(Ordering::Relaxed)
    }

    /// Times of the first and last row; empty if there are none.
    pub(crate) fn time(&self) -> TimeRange {
        let min = self.min_time.load(Ordering::Relaxed);
        TimeRange { min, max: self.max_time.load(Ordering::Relaxed) }
    }

    /// Whether it can have rows of a measurement within `time`.
    pub(crate) fn may_have(&self, measurement: MeasurementNo, time: TimeRange) -> bool {
        let has_rows = || self.layouts.read().of_measurement.contains_key(&measurement);
        self.time().overlaps(&time) && has_rows()
    }

    /// What is in it now, for readers that must not see more.
    pub(crate) fn pin(&self) -> Pin {
        Pin(std::array::from_fn(|shard| self.shards[shard].lock().rows()))
    }

    /// Where rows of a measurement have some fields. Rows that come later may have them elsewhere: what is read must be
    /// pinned before.
    pub(crate) fn places(
        &self,
        measurement: MeasurementNo,
        fields: &[(FieldNo, FieldType)],
    ) -> FieldPlaces {
        FieldPlaces::new(&self.layouts.read(), measurement, fields)
    }

    /// Cuts `time` into ranges in which a series has about so many rows, as [`Self::parts_of`] does.
    pub(crate) fn parts_of_rows(
        &self,
        series: SeriesId,
        time: TimeRange,
        rows: usize,
    ) -> Vec<TimeRange> {
        self.parts(series, time, rows, |_, _| rows)
    }

    /// Cuts all times into ranges in which a series, which has so many fields, has about so many values and
    /// [`PART_ROWS_MAX`] rows, duplicates included. Rows of one time stay together, and rows may come later.
    pub(crate) fn parts_of(
        &self,
        series: SeriesId,
        fields: usize,
        values_max: usize,
    ) -> Vec<TimeRange> {
        // All of them may have all fields.
        self.parts(series, TimeRange::ALL, values_max / fields.max(1), |rows, values| {
            (values_max / values.div_ceil(rows).max(1)).min(PART_ROWS_MAX)
        })
    }

    /// Cuts `time` at every so many rows, which `rows_of` finds from how many rows and values there are; not at all if there
    /// are no more rows than `rows_max`.
    fn parts(
        &self,
        series: SeriesId,
        time: TimeRange,
        rows_max: usize,
        rows_of: impl Fn(usize, usize) -> usize,
    ) -> Vec<TimeRange> {
        let shard = self.shards[shard_of(series)].lock();
        let found = shard.series(series);
        let found = found.filter(|series| Shard::rows_at_most(*series, time) > rows_max);
        let Some(found) = found else { return vec![time] };
        let (mut times, mut values) = (Vec::with_capacity(Shard::rows_at_most(found, time)), 0);
        shard.for_each_row(found, time, |row| {
            if time.contains(row.time_ns) {
                times.push(row.time_ns);
                values += row.values.len();
            }
        });
        let is_ascending = found.rows.is_ascending();
        drop(shard);
        if times.len() <= rows_max {
            return vec![time];
        }
        let rows = rows_of(times.len(), values).max(1);
        if !is_ascending {
            times.sort_unstable();
        }
        let mut parts = Vec::with_capacity(times.len() / rows + 1);
        let mut min = time.min;
        for next in times.iter().skip(rows).step_by(rows).filter(|next| **next > times[0]) {
            if *next > min {
                parts.push(TimeRange { min, max: *next - 1 });
                min = *next;
            }
        }
        parts.push(TimeRange { min, max: time.max });
        parts
    }

    /// The rows of a series within `time`, as far as the fields of `places` go and as of `pin`; where a `few` are enough,
    /// more may come. `None` if there are none.
    pub(crate) fn read(
        &self,
        series: SeriesId,
        time: TimeRange,
        pin: &Pin,
        places: &FieldPlaces,
        few: Option<&Few>,
    ) -> Option<SeriesBlock> {
        let shard_no = shard_of(series);
        let shard = self.shards[shard_no].lock();
        let series = shard.series(series)?;
        let has = TimeRange { min: series.rows.min_time, max: series.rows.max_time };
        if !time.overlaps(&has) {
            return None;
        }
        let block = read::read(&shard, series, (time, pin.0[shard_no]), places, few);
        (!block.times.is_empty()).then_some(block)
    }

    /// Adds what each field of `places` has first in a series within `time`, as of `pin`, from one end; rows with `hidden`
    /// times, which ascend, do not count.
    pub(crate) fn field_ends(
        &self,
        (series, time): (SeriesId, TimeRange),
        hidden: &[i64],
        pin: &Pin,
        places: &FieldPlaces,
        ends: &mut FieldEnds,
    ) {
        let shard_no = shard_of(series);
        // Nobody waits for it to be counted.
        let fields = places.fields_there();
        let shard = self.shards[shard_no].lock();
        let Some(series) = shard.series(series) else { return };
        let (shard, arrived_before) = (&*shard, pin.0[shard_no]);
        Wanted { shard, series, time, hidden, arrived_before, places }.field_ends(fields, ends);
    }

    /// All rows of a series within `time` but those with `hidden` times, which ascend, as far as the fields of `places` go:
    /// times, and of each field the values that there are. For memtables that take no more rows.
    pub(crate) fn read_sparse(
        &self,
        series: SeriesId,
        (time, hidden): (TimeRange, &[i64]),
        places: &FieldPlaces,
    ) -> (Vec<i64>, Vec<SparseColumn>) {
        let shard = self.shards[shard_of(series)].lock();
        let Some(series) = shard.series(series) else { return (Vec::new(), Vec::new()) };
        read::read_sparse(&shard, series, (time, hidden), places)
    }

    /// The rows of many series within `time`, as [`Self::read`] has them of each. `found` is called for those of a shard
    /// at a time, which is locked once for all of them.
    pub(crate) fn read_many(
        &self,
        series: impl Iterator<Item = SeriesId>,
        (time, few): (TimeRange, Option<&Few>),
        pin: &Pin,
        places: &FieldPlaces,
        mut found: impl FnMut(SeriesBlock, Vec<FoundRows>),
    ) {
        let mut by_shard: [Vec<(usize, SeriesId)>; SHARDS] = std::array::from_fn(|_| Vec::new());
        series.enumerate().for_each(|(at, series)| by_shard[shard_of(series)].push((at, series)));
        for (shard_no, wanted) in by_shard.iter().enumerate().filter(|(_, all)| !all.is_empty()) {
            let shard = self.shards[shard_no].lock();
            let (block, rows) =
                read::read_many(&shard, wanted, (time, pin.0[shard_no]), places, few);
            drop(shard);
            if !rows.is_empty() {
                found(block, rows);
            }
        }
    }

    /// Every series that has rows, with its measurement; in no order.
    pub(crate) fn all_series(&self) -> Vec<(MeasurementNo, SeriesId)> {
        let mut all = Vec::new();
        for shard in &self.shards {
            all.extend(shard.lock().all_series().map(|(series, m)| (m, series)));
        }
        all
    }

    /// Series that have rows, of all measurements.
    pub(crate) fn series_count(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().series_count()).sum()
    }

    /// Adds the series of a measurement that can have rows within `time`: looks at all that have rows.
    pub(crate) fn series_within(
        &self,
        measurement: MeasurementNo,
        time: TimeRange,
        found: &mut RoaringTreemap,
    ) {
        for shard in &self.shards {
            found.extend(shard.lock().series_within(measurement, time).map(|series| series.0));
        }
    }

    /// The fields that rows of `measurement` have.
    pub(crate) fn fields_of(&self, measurement: MeasurementNo) -> Vec<FieldNo> {
        let layouts = self.layouts.read();
        let of_layouts = layouts.of(measurement);
        let mut fields: Vec<FieldNo> =
            of_layouts.flat_map(|(_, layout)| layout.fields.iter().copied()).collect();
        fields.sort_unstable();
        fields.dedup();
        fields
    }
}

impl LayoutTable {
    fn intern(&mut self, layout: &RowLayout) -> u32 {
        if let Some(number) = self.by_layout.get(layout) {
            return *number;
        }
        let number = self.layouts.len() as u32;
        assert!(self.layouts.len() < LAYOUTS_MAX, "BUG: a memtable of millions of layouts");
        self.layouts.push(StoredLayout {
            fields: layout.fields.iter().map(|(field, _)| *field).collect(),
            types: layout.fields.iter().map(|(_, t)| *t).collect(),
            measurement: layout.measurement,
            has_strings: layout.fields.iter().any(|(_, t)| *t == FieldType::String),
        });
        self.by_layout.insert(layout.clone(), number);
        self.of_measurement.entry(layout.measurement).or_default().push(number);
        number
    }
}

#[cfg(test)]
mod tests;
