//! Builds columns out of stored rows.
//!
//! What a row costs goes with the values that it has, not with the columns there are: what is missing is a bit, written
//! when a column goes on behind it. Readers get columns with gaps, flushes those without.

use model::{Bitmap, Column, FieldType, Memo, Strings, TextPlace, Values, string_slot_parts};
use segment::SparseColumn;

use super::places::{FieldPlaces, Found};
use super::read::SeriesBlock;
use super::shard::{Shard, StoredRow};

/// Rows that are looked at together, field after field: they stay in the first cache meanwhile.
const ROWS_AT_ONCE: usize = 64;

/// Builds the columns of rows: of one series or several, each in order of time.
pub(super) struct BlockBuilder<'a, 'p> {
    times: Vec<i64>,
    /// Rows that are not in the columns yet: fewer than are looked at together.
    waiting: Vec<StoredRow<'a>>,
    places: &'p FieldPlaces,
    columns: Vec<SlotColumn<'a>>,
}

impl<'a, 'p> BlockBuilder<'a, 'p> {
    /// Of columns that have room for missing values, or not.
    pub(super) fn new(shard: &'a Shard, places: &'p FieldPlaces, has_room: bool) -> Self {
        let columns = places.types.iter().map(|t| SlotColumn::new(shard, *t, has_room)).collect();
        Self { times: Vec::new(), waiting: Vec::new(), places, columns }
    }

    /// Rows so far.
    pub(super) fn rows(&self) -> usize {
        self.times.len() + self.waiting.len()
    }

    /// Makes room for rows.
    pub(super) fn reserve(&mut self, rows: usize) {
        self.times.reserve(rows);
        self.columns.iter_mut().for_each(|column| column.reserve(rows));
    }

    /// Adds a row that is later than the row of its series before it.
    #[inline]
    pub(super) fn push(&mut self, row: StoredRow<'a>) {
        if self.waiting.is_empty() {
            self.waiting.reserve(ROWS_AT_ONCE);
        }
        self.waiting.push(row);
        if self.waiting.len() == ROWS_AT_ONCE {
            self.add_waiting();
        }
    }

    fn add_waiting(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        self.add_distinct(&waiting);
        waiting.clear();
        self.waiting = waiting;
    }

    /// Adds rows of a series, of which several may have the same time.
    pub(super) fn add(&mut self, rows: &[StoredRow<'_>]) {
        self.add_waiting();
        if rows.windows(2).all(|two| two[0].time_ns != two[1].time_ns) {
            rows.chunks(ROWS_AT_ONCE).for_each(|group| self.add_distinct(group));
        } else {
            self.add_merged(rows);
        }
    }

    /// Adds a few rows that are rows of their own each.
    fn add_distinct(&mut self, rows: &[StoredRow<'_>]) {
        let Some(first) = rows.first() else { return };
        let before = self.times.len();
        self.times.extend(rows.iter().map(|row| row.time_ns));
        let columns = &mut self.columns;
        let mut add_all = |found: &Found| {
            let position = found.position as usize;
            let slots = rows.iter().map(|row| row.values[position]);
            columns[found.field as usize].extend(before, rows.len(), slots);
        };
        self.places.steady.iter().for_each(&mut add_all);
        if rows.iter().all(|row| row.layout == first.layout) {
            self.places.others_of(first.layout).iter().for_each(&mut add_all);
            return;
        }
        if self.places.are_dense(rows) {
            for field in self.places.others.iter().map(|field| *field as usize) {
                let positions = self.places.positions_of(field);
                let slots = rows.iter().map(|row| self.places.slot_at(positions, row));
                self.columns[field].extend_some(before, slots);
            }
            return;
        }
        for (row, at) in rows.iter().zip(before..) {
            for found in self.places.others_of(row.layout) {
                columns[found.field as usize].put(at, row.values[found.position as usize]);
            }
        }
    }

    /// Adds sorted rows some of which share a time: the last value of each time counts.
    fn add_merged(&mut self, rows: &[StoredRow<'_>]) {
        for group in rows.chunk_by(|a, b| a.time_ns == b.time_ns) {
            let at = self.times.len();
            self.times.push(group[0].time_ns);
            for row in group.iter().rev() {
                for found in self.places.steady.iter().chain(self.places.others_of(row.layout)) {
                    let column = &mut self.columns[found.field as usize];
                    // A later write may have had it already.
                    if column.len() <= at {
                        column.put(at, row.values[found.position as usize]);
                    }
                }
            }
        }
    }

    pub(super) fn finish(mut self) -> SeriesBlock {
        self.add_waiting();
        let rows = self.times.len();
        let columns = self.columns.into_iter().map(|column| {
            assert!(column.has_room, "BUG: columns without gaps");
            let (values, validity) = column.finish(rows);
            Column { values, validity }
        });
        SeriesBlock { columns: columns.collect(), times: self.times }
    }

    /// The times, and columns without gaps.
    pub(super) fn finish_sparse(mut self) -> (Vec<i64>, Vec<SparseColumn>) {
        self.add_waiting();
        let rows = self.times.len();
        let columns = self.columns.into_iter().map(|column| {
            assert!(!column.has_room, "BUG: columns with gaps");
            let (values, present) = column.finish(rows);
            SparseColumn { values, present }
        });
        let columns = columns.collect();
        (self.times, columns)
    }
}

/// Builds a column from slots of a shard.
struct SlotColumn<'a> {
    field_type: FieldType,
    /// Whether there is an entry for a missing value, 0 or an empty text.
    has_room: bool,
    /// Values; of texts nothing.
    slots: Vec<u64>,
    texts: Option<Texts<'a>>,
    /// Which rows have a value, once one has none. What is missing to the end comes when the column goes on.
    present: Option<Bitmap>,
}

/// Texts out of a shard: those of one slot there share their text here, too.
struct Texts<'a> {
    shard: &'a Shard,
    places: Vec<TextPlace>,
    bytes: Vec<u8>,
    known: Box<Memo<TextPlace>>,
}

impl Texts<'_> {
    fn push(&mut self, slot: u64) {
        let stored = string_slot_parts(slot);
        self.places.push(self.known.get(stored, || {
            let start = u32::try_from(self.bytes.len()).expect("BUG: a memtable of 4 GiB of text");
            self.bytes.extend_from_slice(self.shard.text(stored));
            (start, stored.1)
        }));
    }
}

impl<'a> SlotColumn<'a> {
    fn new(shard: &'a Shard, field_type: FieldType, has_room: bool) -> Self {
        let texts = (field_type == FieldType::String).then(|| Texts {
            shard,
            places: Vec::new(),
            bytes: Vec::new(),
            known: Box::default(),
        });
        Self { field_type, has_room, slots: Vec::new(), texts, present: None }
    }

    /// Rows so far.
    fn len(&self) -> usize {
        self.present.as_ref().map_or_else(|| self.entries(), Bitmap::len)
    }

    fn entries(&self) -> usize {
        self.texts.as_ref().map_or(self.slots.len(), |texts| texts.places.len())
    }

    fn reserve(&mut self, rows: usize) {
        match &mut self.texts {
            Some(texts) => texts.places.reserve(rows),
            None => self.slots.reserve(rows),
        }
    }

    /// Adds `count` rows from row `at` on, which all have a value.
    #[inline]
    fn extend(&mut self, at: usize, count: usize, slots: impl Iterator<Item = u64>) {
        self.leave_out_until(at);
        match &mut self.texts {
            Some(texts) => slots.for_each(|slot| texts.push(slot)),
            None => self.slots.extend(slots),
        }
        if let Some(present) = &mut self.present {
            present.extend_filled(count, true);
        }
    }

    /// Adds rows from row `at` on, 64 at most, of which some have a value.
    #[inline]
    fn extend_some(&mut self, at: usize, slots: impl Iterator<Item = Option<u64>>) {
        self.leave_out_until(at);
        let (mut bits, mut count) = (0u64, 0);
        for slot in slots {
            bits |= u64::from(slot.is_some()) << count;
            count += 1;
            match slot {
                Some(slot) => self.push(slot),
                None if self.has_room => self.push_nothing(1),
                None => {}
            }
        }
        let is_complete = bits.count_ones() as usize == count;
        if !is_complete || self.present.is_some() {
            let present = self.present.get_or_insert_with(|| Bitmap::filled(at, true));
            present.push_bits(bits, count);
        }
    }

    /// Adds row `at`.
    #[inline]
    fn put(&mut self, at: usize, slot: u64) {
        self.leave_out_until(at);
        self.push(slot);
        if let Some(present) = &mut self.present {
            present.push(true);
        }
    }

    /// Adds entries for missing values.
    #[inline]
    fn push_nothing(&mut self, count: usize) {
        match &mut self.texts {
            Some(texts) => texts.places.resize(texts.places.len() + count, (0, 0)),
            None => self.slots.resize(self.slots.len() + count, 0),
        }
    }

    #[inline]
    fn push(&mut self, slot: u64) {
        match &mut self.texts {
            Some(texts) => texts.push(slot),
            None => self.slots.push(slot),
        }
    }

    /// Rows before `at` that were not added have no value.
    #[inline]
    fn leave_out_until(&mut self, at: usize) {
        let len = self.len();
        if len < at {
            let present = self.present.get_or_insert_with(|| Bitmap::filled(len, true));
            present.extend_filled(at - len, false);
            if self.has_room {
                self.push_nothing(at - len);
            }
        }
    }

    /// The entries, and which of `rows` rows have a value.
    fn finish(mut self, rows: usize) -> (Values, Option<Bitmap>) {
        self.leave_out_until(rows);
        let entries = self.entries();
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
                Values::Boolean(Bitmap::from_words(
                    self.slots.chunks(64).map(word).collect(),
                    entries,
                ))
            }
            FieldType::String => {
                let texts = self.texts.expect("BUG: a column of texts has them");
                let texts = Strings::from_places(texts.places, texts.bytes);
                Values::String(texts.expect("BUG: stored text is UTF-8"))
            }
        };
        (values, self.present)
    }
}
