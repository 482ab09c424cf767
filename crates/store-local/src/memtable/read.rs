//! Turning a series' stored rows into columns: sorted by time, one row a time.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use model::{
    Bitmap, Column, FieldType, Memo, SeriesId, Strings, TextPlace, TimeRange, Values,
    string_slot_parts,
};

use super::LayoutTable;
use super::shard::{Series, Shard, StoredRow};
use crate::rows::{FieldNo, MeasurementNo};

/// Rows of one series, sorted by time, no time twice.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeriesBlock {
    pub(crate) times: Vec<i64>,
    /// The wanted fields.
    pub(crate) columns: Vec<Column>,
}

/// How many rows of a series are needed, and from which end: rows beyond them may be left out.
#[derive(Clone, Debug)]
pub(crate) struct Few {
    /// Rows that count.
    pub(crate) rows: usize,
    /// The last ones in time, not the first.
    pub(crate) from_end: bool,
    /// A row counts that has one of these fields, named by their places; `None`: one of any.
    pub(crate) with_any: Option<Arc<[usize]>>,
    /// Whether rows that do not count can be left out, too: no row elsewhere has their time.
    pub(crate) is_alone: bool,
}

/// Most rows that are looked for one by one among rows that are not in order.
const FEW_ROWS_MAX: usize = 64;

/// Rows that are looked at together, field after field: they stay in the first cache meanwhile.
const ROWS_AT_ONCE: usize = 64;

/// Copies the rows of a series within `time` that have one of the fields, as far as these go; with `few` at
/// least those.
pub(super) fn read(
    shard: &Shard,
    series: Series<'_>,
    (time, arrived_before): (TimeRange, u32),
    places: &FieldPlaces,
    few: Option<&Few>,
) -> SeriesBlock {
    let positions = &places.positions;
    let wanted = Wanted { shard, series, time, arrived_before, with_field: &places.with_field };
    let few = few.filter(|few| (1..series.rows.rows as usize).contains(&few.rows));
    let counted: Vec<&Positions> = match few.and_then(|few| few.with_any.as_deref()) {
        Some(some) => some.iter().map(|field| &positions[*field]).collect(),
        None => positions.iter().collect(),
    };
    let columns = places.types.iter().map(|t| SlotColumn::new(shard, *t)).collect();
    let mut block = BlockBuilder { times: Vec::new(), positions, columns };
    let Some(mut found) = few.and_then(|few| wanted.few(few, &counted)) else {
        wanted.all(&mut block);
        return block.finish();
    };
    if few.is_some_and(|few| few.is_alone && few.with_any.is_some())
        // What was written later to the same time completes a row.
        && found.windows(2).all(|two| two[0].time_ns != two[1].time_ns)
    {
        found.retain(|row| has_any(row, &counted));
    }
    block.add(&found);
    block.finish()
}

/// Rows of one of several series, in a block of them all.
#[derive(Debug)]
pub(crate) struct FoundRows {
    /// Its place among those that were asked for.
    pub(crate) at: usize,
    pub(crate) rows: Range<usize>,
}

/// The rows of several series of a shard, as [`read`] copies them of each, one behind the other; of those that have any
/// where they are.
pub(super) fn read_many(
    shard: &Shard,
    wanted: &[(usize, SeriesId)],
    (time, arrived_before): (TimeRange, u32),
    places: &FieldPlaces,
) -> (SeriesBlock, Vec<FoundRows>) {
    let columns = places.types.iter().map(|t| SlotColumn::new(shard, *t)).collect();
    let mut block = BlockBuilder { times: Vec::new(), positions: &places.positions, columns };
    let mut found = Vec::with_capacity(wanted.len());
    for some in wanted.chunks(LOOKED_UP) {
        // Looked up one right behind the other, so that they are waited for together; then their rows are asked for.
        let mut series = [None; LOOKED_UP];
        for (series, (_, id)) in series.iter_mut().zip(some) {
            *series = shard.series(*id);
        }
        series.iter().flatten().for_each(|series| shard.prefetch(*series));
        for ((at, _), series) in some.iter().zip(series) {
            let Some(series) = series else { continue };
            let before = block.times.len();
            let with_field = &places.with_field;
            Wanted { shard, series, time, arrived_before, with_field }.all(&mut block);
            if block.times.len() > before {
                found.push(FoundRows { at: *at, rows: before..block.times.len() });
            }
        }
    }
    (block.finish(), found)
}

/// Series that are looked up together.
const LOOKED_UP: usize = 16;

/// Which rows of a series are wanted.
struct Wanted<'a> {
    shard: &'a Shard,
    series: Series<'a>,
    time: TimeRange,
    arrived_before: u32,
    /// Whether rows of a layout have one of the fields: others are nothing but their time.
    with_field: &'a [bool],
}

impl<'a> Wanted<'a> {
    fn has(&self, row: &StoredRow<'_>) -> bool {
        self.time.contains(row.time_ns)
            && row.arrival < self.arrived_before
            && self.with_field[row.layout as usize]
    }

    /// Adds all rows to `block`, in order of time.
    fn all(&self, block: &mut BlockBuilder<'a, '_>) {
        let rows = self.series.rows;
        let is_everything = self.time.min <= rows.min_time && self.time.max >= rows.max_time;
        let expected = if is_everything { rows.rows as usize } else { 0 };
        block.reserve(expected);
        if rows.is_ascending() {
            // Rows are looked at again while the first cache has them.
            let mut group = Vec::with_capacity(ROWS_AT_ONCE.min(rows.rows as usize));
            self.shard.for_each_row(self.series, self.time, |row| {
                if self.has(&row) {
                    group.push(row);
                    if group.len() == ROWS_AT_ONCE {
                        block.add_distinct(&group);
                        group.clear();
                    }
                }
            });
            block.add_distinct(&group);
            return;
        }
        let mut found: Vec<StoredRow<'a>> = Vec::with_capacity(expected);
        self.shard.for_each_row(self.series, self.time, |row| {
            if self.has(&row) {
                found.push(row);
            }
        });
        self.sort(&mut found);
        block.add(&found);
    }

    /// Rows until there are as many as `few` says, in order of time; `None`: all are needed.
    fn few(&self, few: &Few, counted: &[&Positions]) -> Option<Vec<StoredRow<'a>>> {
        let is_ascending = self.series.rows.is_ascending();
        if is_ascending || few.from_end {
            let (mut found, is_whole) = self.in_order(few, counted);
            if is_whole || is_ascending {
                if few.from_end {
                    found.reverse();
                }
                return Some(found);
            }
        }
        if few.rows > FEW_ROWS_MAX {
            return None;
        }
        let within = self.bound(few, counted)?;
        let mut found = Vec::new();
        self.shard.for_each_row(self.series, within, |row| {
            if within.contains(row.time_ns) && self.has(&row) {
                found.push(row);
            }
        });
        self.sort(&mut found);
        Some(found)
    }

    /// Rows from one end, of those that arrived in order of time and later than any that did not; and
    /// whether nothing beyond them is needed. Reading from the end they come with the last first.
    fn in_order(&self, few: &Few, counted: &[&Positions]) -> (Vec<StoredRow<'a>>, bool) {
        let mut found: Vec<StoredRow<'a>> = Vec::new();
        let late_max = self.series.rows.late_max;
        // All that is wanted may be later than any row that is not in order.
        let (mut left, mut is_whole) = (few.rows, self.time.min > late_max);
        // From the end nothing is behind what is in order.
        let after_late = TimeRange { min: self.time.min.max(late_max), max: self.time.max };
        let time = if few.from_end { after_late } else { self.time };
        self.shard.rows_until_enough(self.series, time, few.from_end, |row| {
            if row.time_ns <= late_max {
                return ControlFlow::Continue(());
            }
            let is_behind = if few.from_end {
                row.time_ns < self.time.min
            } else {
                row.time_ns > self.time.max
            };
            if is_behind {
                is_whole = true;
                return ControlFlow::Break(());
            }
            if !self.has(&row) {
                return ControlFlow::Continue(());
            }
            found.push(row);
            left -= usize::from(has_any(&row, counted));
            if left > 0 {
                return ControlFlow::Continue(());
            }
            is_whole = true;
            ControlFlow::Break(())
        });
        (found, is_whole)
    }

    /// The times that the rows are within that `few` wants; `None` if there are fewer.
    fn bound(&self, few: &Few, counted: &[&Positions]) -> Option<TimeRange> {
        let (series, mut within) = (self.series, self.time);
        // The nearest times so far, as distances from the end that is read from, descending.
        let mut nearest: Vec<i64> = Vec::with_capacity(few.rows + 1);
        self.shard.rows_still_wanted(series, self.time, few.from_end, |row| {
            if !within.contains(row.time_ns) || !self.has(&row) || !has_any(&row, counted) {
                return within;
            }
            let distance = if few.from_end { !row.time_ns } else { row.time_ns };
            let at = nearest.partition_point(|other| *other > distance);
            if nearest.get(at) == Some(&distance) {
                return within;
            }
            nearest.insert(at, distance);
            if nearest.len() > few.rows {
                nearest.remove(0);
            }
            if nearest.len() == few.rows {
                let farthest = nearest[0];
                if few.from_end {
                    within.min = !farthest;
                } else {
                    within.max = farthest;
                }
            }
            within
        });
        (nearest.len() == few.rows).then_some(within)
    }

    fn sort(&self, found: &mut [StoredRow<'_>]) {
        if !self.series.rows.is_ascending() {
            // Stable: of rows with one time the later written stays behind the earlier.
            found.sort_by_key(|row| row.time_ns);
        }
    }
}

/// Whether a row has a value of one of some fields.
fn has_any(row: &StoredRow<'_>, fields: &[&Positions]) -> bool {
    fields.iter().any(|of| of.slot(row).is_some())
}

/// Fields to read of a measurement's rows, and where these have them: the same for all of its series, so it is found once.
/// It is about the layouts that there were when it was made; rows that are read must be as old.
#[derive(Debug)]
pub(crate) struct FieldPlaces {
    types: Vec<FieldType>,
    positions: Vec<Positions>,
    /// Whether rows of a layout have one of the fields.
    with_field: Vec<bool>,
}

impl FieldPlaces {
    pub(super) fn new(
        layouts: &LayoutTable,
        measurement: MeasurementNo,
        fields: &[(FieldNo, FieldType)],
    ) -> Self {
        let places = fields.iter().map(|(field, _)| Positions::new(layouts, *field, measurement));
        let positions: Vec<Positions> = places.collect();
        let has_field = |layout: usize| positions.iter().any(|of| of.by_layout[layout].is_some());
        let with_field = (0..layouts.layouts.len()).map(has_field).collect();
        Self { types: fields.iter().map(|(_, t)| *t).collect(), positions, with_field }
    }
}

/// Where a field's value stands in rows of a measurement.
#[derive(Debug)]
struct Positions {
    by_layout: Vec<Option<u32>>,
    /// Its place in all of the measurement's rows, where there is one.
    everywhere: Option<u32>,
}

impl Positions {
    fn new(layouts: &LayoutTable, field: FieldNo, measurement: MeasurementNo) -> Self {
        let position = |fields: &[FieldNo]| fields.iter().position(|f| *f == field);
        let by_layout: Vec<Option<u32>> =
            layouts.iter().map(|l| position(&l.fields).map(|p| p as u32)).collect();
        let of_layouts = layouts.iter().zip(&by_layout);
        let mut of_rows = of_layouts.filter(|(l, _)| l.measurement == measurement);
        let first = of_rows.next().and_then(|(_, at)| *at);
        let everywhere = first.filter(|first| of_rows.all(|(_, at)| *at == Some(*first)));
        Self { by_layout, everywhere }
    }

    #[inline]
    fn slot(&self, row: &StoredRow<'_>) -> Option<u64> {
        self.by_layout[row.layout as usize].map(|at| row.values[at as usize])
    }
}

/// Builds the columns of a series' rows, which are added in order of time.
struct BlockBuilder<'a, 'p> {
    times: Vec<i64>,
    positions: &'p [Positions],
    columns: Vec<SlotColumn<'a>>,
}

impl BlockBuilder<'_, '_> {
    fn reserve(&mut self, rows: usize) {
        self.times.reserve(rows);
        self.columns.iter_mut().for_each(|column| column.reserve(rows));
    }

    /// Adds rows, of which several may have the same time.
    fn add(&mut self, rows: &[StoredRow<'_>]) {
        if rows.windows(2).all(|two| two[0].time_ns != two[1].time_ns) {
            rows.chunks(ROWS_AT_ONCE).for_each(|group| self.add_distinct(group));
        } else {
            self.add_merged(rows);
        }
    }

    /// Adds a few rows that all have different times.
    fn add_distinct(&mut self, rows: &[StoredRow<'_>]) {
        let Some(first) = rows.first() else { return };
        self.times.extend(rows.iter().map(|row| row.time_ns));
        let are_alike = rows.iter().all(|row| row.layout == first.layout);
        for (positions, column) in self.positions.iter().zip(&mut self.columns) {
            let of_first = positions.by_layout[first.layout as usize].filter(|_| are_alike);
            match positions.everywhere.or(of_first) {
                Some(at) => column.extend(rows.iter().map(|row| row.values[at as usize])),
                None => rows.iter().for_each(|row| column.push(positions.slot(row))),
            }
        }
    }

    /// Adds sorted rows some of which share a time: the last value of each time counts.
    fn add_merged(&mut self, rows: &[StoredRow<'_>]) {
        for group in rows.chunk_by(|a, b| a.time_ns == b.time_ns) {
            self.times.push(group[0].time_ns);
            for (positions, column) in self.positions.iter().zip(&mut self.columns) {
                column.push(group.iter().rev().find_map(|row| positions.slot(row)));
            }
        }
    }

    fn finish(self) -> SeriesBlock {
        let columns = self.columns.into_iter().map(SlotColumn::finish).collect();
        SeriesBlock { times: self.times, columns }
    }
}

/// Builds a column from slots of a shard.
struct SlotColumn<'a> {
    field_type: FieldType,
    /// Values; of texts nothing.
    slots: Vec<u64>,
    texts: Option<Texts<'a>>,
    missing: Vec<u32>,
}

/// Texts out of a shard: those of one slot there share their text here, too.
struct Texts<'a> {
    shard: &'a Shard,
    places: Vec<TextPlace>,
    bytes: Vec<u8>,
    known: Box<Memo<TextPlace>>,
}

impl Texts<'_> {
    fn push(&mut self, slot: Option<u64>) {
        let Some(slot) = slot else { return self.places.push((0, 0)) };
        let stored = string_slot_parts(slot);
        self.places.push(self.known.get(stored, || {
            let start = u32::try_from(self.bytes.len()).expect("BUG: a memtable of 4 GiB of text");
            self.bytes.extend_from_slice(self.shard.text(stored));
            (start, stored.1)
        }));
    }
}

impl<'a> SlotColumn<'a> {
    fn new(shard: &'a Shard, field_type: FieldType) -> Self {
        let texts = (field_type == FieldType::String).then(|| Texts {
            shard,
            places: Vec::new(),
            bytes: Vec::new(),
            known: Box::default(),
        });
        Self { field_type, slots: Vec::new(), texts, missing: Vec::new() }
    }

    fn len(&self) -> usize {
        self.texts.as_ref().map_or(self.slots.len(), |texts| texts.places.len())
    }

    fn reserve(&mut self, rows: usize) {
        match &mut self.texts {
            Some(texts) => texts.places.reserve(rows),
            None => self.slots.reserve(rows),
        }
    }

    /// Adds rows that all have a value.
    #[inline]
    fn extend(&mut self, slots: impl Iterator<Item = u64>) {
        match &mut self.texts {
            Some(texts) => slots.for_each(|slot| texts.push(Some(slot))),
            None => self.slots.extend(slots),
        }
    }

    #[inline]
    fn push(&mut self, slot: Option<u64>) {
        if slot.is_none() {
            self.missing.push(self.len() as u32);
        }
        match &mut self.texts {
            Some(texts) => texts.push(slot),
            None => self.slots.push(slot.unwrap_or(0)),
        }
    }

    fn finish(self) -> Column {
        let rows = self.len();
        let values = match self.field_type {
            FieldType::Float => Values::Float(self.slots.into_iter().map(f64::from_bits).collect()),
            FieldType::Integer => {
                Values::Integer(self.slots.into_iter().map(|s| s as i64).collect())
            }
            FieldType::Unsigned => Values::Unsigned(self.slots),
            FieldType::Boolean => {
                let word = |slots: &[u64]| {
                    slots.iter().rev().fold(0, |word, slot| word << 1 | u64::from(*slot != 0))
                };
                Values::Boolean(Bitmap::from_words(self.slots.chunks(64).map(word).collect(), rows))
            }
            FieldType::String => {
                let texts = self.texts.expect("BUG: a column of texts has them");
                let texts = Strings::from_places(texts.places, texts.bytes);
                Values::String(texts.expect("BUG: stored text is UTF-8"))
            }
        };
        let validity = (!self.missing.is_empty()).then(|| {
            let mut map = Bitmap::filled(rows, true);
            self.missing.iter().for_each(|at| map.set(*at as usize, false));
            map
        });
        Column { values, validity }
    }
}
