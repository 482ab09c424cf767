//! Functions that ask which values there are, and how often: every value is kept once a slot, with how often it
//! occurs and when first and last. Memory follows the values that differ, not the rows.
//!
//! Mostly all rows of a slot come one after another (a host, an hour of it), and a small table of their values is all it
//! takes. Only of slots that come again, as hours do with the next host, values are found in one table for all.
//!
//! Where very many differ, none of that fits into the processor's caches: see [`spread`].
//!
//! Values are told apart by 64 bits, texts by a number that each gets. Integers that lie close to each other, and floats that
//! are decimals which do, are counted by their distance from the smallest of their run, without a lookup a row.

use std::cmp::Ordering;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use model::{Column, FieldType, Scalar, Values};

use self::by_text::SharedTexts;
use self::spread::Spread;
use self::texts::Texts;
use super::kernels;
use super::slots::{BySlot, Run, SEVERAL, targets};
use crate::functions::Function;
use crate::functions::values::{self, Occurrences, Value};

mod by_text;
mod spread;
mod texts;

/// Integers of a run within this distance are counted in a table: one that the first-level cache holds.
const TABLE_VALUES: u64 = 2048;

/// A lookup takes as long as reading so many places of a table.
const PLACES_A_ROW: u64 = 4;

/// So few floats are added faster than it is found out of what they are multiples.
const DECIMALS_MIN: usize = 16;

/// A table with so many times the places of what is in it is given up, rather than cleared.
const SPARSE: usize = 32;

/// A table of more values than this, with them, is far out of the second-level cache,
const SPREAD_FROM: usize = 1 << 17;
/// and moving them pays where so many rows come: measured, 420,000 rows of as many values take twice as long, 1,600,000 half.
const SPREAD_ROWS_MIN: usize = 6 * SPREAD_FROM;

/// The values of many slots, each once.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    function: Function,
    input: FieldType,
    entries: Vec<Entry>,
    /// The slot that was added to last, if any.
    open: Option<u32>,
    /// Places in `entries` of its values, if it was not met before.
    of_open: HashTable<u32>,
    /// What is known of each slot.
    slots: Vec<Met>,
    /// Places in `entries` by slot and value, of slots that came again.
    places: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// Where the value was that was looked up last: neighbours are often equal.
    near: usize,
    /// In place of `entries` and their tables, once one of these has very many.
    spread: Option<Spread>,
    spread_from: usize,
    /// Rows that come, at most.
    rows_expected: usize,
    texts: Texts,
    table: Vec<Counted>,
    /// Known at the end.
    by_slot: BySlot,
    /// In its place, of each slot how many values differ, if that is all that is asked and they were spread.
    counts: Vec<i64>,
}

/// A value of a slot.
#[derive(Clone, Copy, Debug)]
struct Entry {
    slot: u32,
    /// As it was met first in time: a zero has two signs.
    bits: u64,
    found: Occurrences,
}

impl Entry {
    /// Adds occurrences of the value, which has these bits there.
    #[inline]
    fn add(&mut self, bits: u64, found: Occurrences) {
        if found.first < self.found.first {
            self.bits = bits;
        }
        self.found.add(found);
    }
}

/// How often a slot was met.
#[derive(Clone, Copy, Debug, Default)]
enum Met {
    #[default]
    Never,
    /// Once; its entries are those from one on, up to another, which is known once it is over.
    Once { from: u32, to: u32 },
    /// Several times: its entries are in the table for all.
    Again,
}

/// What a run has of a value: rows of the run.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    count: u32,
    first: u32,
    last: u32,
}

/// Rows of a run.
#[derive(Clone, Copy)]
struct Rows<'a> {
    slot: u32,
    times: &'a [i64],
    /// Forwards or backwards.
    are_in_order: bool,
}

impl Tally {
    /// No values yet.
    pub(crate) fn new(function: Function, input: FieldType) -> Self {
        Self {
            function,
            input,
            entries: Vec::new(),
            open: None,
            of_open: HashTable::new(),
            slots: Vec::new(),
            places: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            near: 0,
            spread: None,
            spread_from: SPREAD_FROM,
            rows_expected: 0,
            texts: Texts::default(),
            table: Vec::new(),
            by_slot: BySlot::default(),
            counts: Vec::new(),
        }
    }

    /// Says that so many rows come, at most.
    pub(crate) fn expect(&mut self, rows: usize) {
        self.rows_expected = rows;
    }

    /// Adds the rows of `runs` that have a value; those of a run of one series are in order of time, forwards or backwards.
    /// `column` has the tally's type.
    pub(crate) fn add_rows(&mut self, column: &Column, times: &[i64], runs: &[Run]) {
        let mut shared = match &column.values {
            Values::String(v) => v.numbered().map(SharedTexts::new),
            _ => None,
        };
        for run in runs {
            let (start, end) = (run.start as usize, run.end as usize);
            let (slot, are_in_order) = (run.slot, run.series != SEVERAL);
            kernels::valid_stretches(column.validity.as_ref(), start, end, |from, to| {
                let times = &times[from..to];
                match &column.values {
                    Values::Float(v) => {
                        self.add_floats(Rows { slot, times, are_in_order }, &v[from..to]);
                    }
                    Values::Integer(v) => {
                        let rows = Rows { slot, times, are_in_order };
                        self.add_whole(rows, &v[from..to], i64::cast_unsigned);
                    }
                    Values::Unsigned(v) => {
                        let rows = Rows { slot, times, are_in_order };
                        self.add_whole(rows, &v[from..to], |v| v);
                    }
                    Values::Boolean(v) => {
                        let bits: Vec<u64> = (from..to).map(|row| u64::from(v.get(row))).collect();
                        self.add_whole(Rows { slot, times, are_in_order }, &bits, |v| v);
                    }
                    Values::String(v) => {
                        let rows = Rows { slot, times, are_in_order };
                        match &mut shared {
                            Some(shared) => self.add_shared_texts(rows, v, shared, from..to),
                            None => {
                                let texts = (from..to).map(|row| v.get_bytes(row));
                                self.add_texts(slot, texts, times);
                            }
                        }
                    }
                    Values::Dictionary(codes, texts) => {
                        let texts =
                            codes[from..to].iter().map(|code| texts.get_bytes(*code as usize));
                        self.add_texts(slot, texts, times);
                    }
                    Values::Time(_) => panic!("BUG: a tally of times"),
                }
            });
        }
    }

    /// Adds floats: as whole numbers of thousandths or the like if all of them are, and lie close to each other.
    fn add_floats(&mut self, rows: Rows<'_>, values: &[f64]) {
        let decimals = match values.len() < DECIMALS_MIN {
            true => None,
            false => codec::to_decimals(values),
        };
        let is_added = decimals.is_some_and(|(digits, integers)| {
            let float = |integer: u64| {
                let mut bits = [integer];
                codec::from_decimals(digits, &mut bits).expect("BUG: more digits than there are");
                bits[0]
            };
            self.add_close(rows, &integers, i64::cast_unsigned, float)
        });
        if !is_added {
            for (value, time) in values.iter().zip(rows.times) {
                self.add(rows.slot, value.to_bits(), Occurrences::one(*time));
            }
        }
    }

    /// Adds whole numbers: by a table if they lie close to each other.
    fn add_whole<T: kernels::Number>(
        &mut self,
        rows: Rows<'_>,
        values: &[T],
        bits: impl Fn(T) -> u64 + Copy,
    ) {
        if !self.add_close(rows, values, bits, |bits| bits) {
            for (value, time) in values.iter().zip(rows.times) {
                self.add(rows.slot, bits(*value), Occurrences::one(*time));
            }
        }
    }

    /// Adds whole numbers, which stand for `value` of their bits, by a table; not if they do not lie close to each other.
    fn add_close<T: kernels::Number>(
        &mut self,
        Rows { slot, times, are_in_order }: Rows<'_>,
        values: &[T],
        bits: impl Fn(T) -> u64,
        mut value: impl FnMut(u64) -> u64,
    ) -> bool {
        let least = bits(kernels::min(values));
        let width = bits(kernels::max(values)).wrapping_sub(least);
        // A table that has many more places than there are rows takes longer to read than they do.
        if width >= TABLE_VALUES.min(PLACES_A_ROW * values.len() as u64) {
            return false;
        }
        let mut table = std::mem::take(&mut self.table);
        table.clear();
        table.resize(width as usize + 1, Counted::default());
        for (number, row) in values.iter().zip(0..) {
            let counted = &mut table[bits(*number).wrapping_sub(least) as usize];
            if counted.count == 0 {
                (counted.first, counted.last) = (row, row);
            }
            counted.count += 1;
            if are_in_order {
                counted.last = row;
                continue;
            }
            let time_of = |row: u32| times[row as usize];
            if time_of(row) < time_of(counted.first) {
                counted.first = row;
            }
            if time_of(row) > time_of(counted.last) {
                counted.last = row;
            }
        }
        for (counted, distance) in table.iter().zip(0..).filter(|(counted, _)| counted.count > 0) {
            let (a, b) = (times[counted.first as usize], times[counted.last as usize]);
            let count = counted.count.into();
            let found = Occurrences { count, first: a.min(b), last: a.max(b) };
            self.add(slot, value(least.wrapping_add(distance)), found);
        }
        self.table = table;
        true
    }

    /// Adds occurrences of a value.
    #[inline]
    fn add(&mut self, slot: u32, bits: u64, found: Occurrences) {
        if let Some(spread) = &mut self.spread {
            return spread.add(Entry { slot, bits, found });
        }
        let identity = identity(self.input, bits);
        let is_it = |entry: &Entry| {
            entry.slot == slot && self::identity(self.input, entry.bits) == identity
        };
        if !self.entries.get(self.near).is_some_and(is_it) {
            let new = Entry { slot, bits, found: Occurrences { count: 0, ..found } };
            self.near = self.place(new) as usize;
        }
        self.entries[self.near].add(bits, found);
        if self.of_open.len().max(self.places.len()) > self.spread_from
            && self.rows_expected >= SPREAD_ROWS_MIN
        {
            self.spread_out();
        }
    }

    fn spread_out(&mut self) {
        self.spread = Some(Spread::of(self.input, std::mem::take(&mut self.entries)));
        (self.of_open, self.places) = (HashTable::new(), HashTable::new());
        (self.slots, self.open) = (Vec::new(), None);
    }

    /// The place of the entry with the slot and the value of `new`, which is added if there is none.
    fn place(&mut self, new: Entry) -> u32 {
        if self.open != Some(new.slot) {
            self.turn_to(new.slot);
        }
        if self.is_only(new.slot) {
            let at = new.bits as u32;
            if at as usize == self.entries.len() {
                self.entries.push(new);
            }
            return at;
        }
        let (input, entries, hasher) = (self.input, &mut self.entries, &self.hasher);
        let wanted = identity(input, new.bits);
        let at = entries.len() as u32;
        let found = if matches!(self.slots[new.slot as usize], Met::Once { .. }) {
            let value = |at: &u32| identity(input, entries[*at as usize].bits);
            let hash = |at: &u32| hasher.hash_one(value(at));
            let is_it = |at: &u32| value(at) == wanted;
            *self.of_open.entry(hasher.hash_one(wanted), is_it, hash).or_insert(at).get()
        } else {
            let key = |at: &u32| {
                (entries[*at as usize].slot, identity(input, entries[*at as usize].bits))
            };
            let wanted = (new.slot, wanted);
            let hash = |at: &u32| hasher.hash_one(key(at));
            let is_it = |at: &u32| key(at) == wanted;
            *self.places.entry(hasher.hash_one(wanted), is_it, hash).or_insert(at).get()
        };
        if found == at {
            entries.push(new);
        }
        found
    }

    /// Gets ready for values of another slot than before.
    fn turn_to(&mut self, slot: u32) {
        let now = self.entries.len() as u32;
        if let Some(open) = self.open.replace(slot)
            && let Met::Once { to, .. } = &mut self.slots[open as usize]
        {
            *to = now;
        }
        // A slot of many values does not make those after it clear as much.
        if self.of_open.capacity() > SPARSE * self.of_open.len().max(SPARSE) {
            self.of_open = HashTable::new();
        }
        self.of_open.clear();
        if self.slots.len() <= slot as usize {
            self.slots.resize(slot as usize + 1, Met::Never);
        }
        match self.slots[slot as usize] {
            Met::Never => self.slots[slot as usize] = Met::Once { from: now, to: now },
            Met::Once { from, to } => {
                let (input, entries, hasher) = (self.input, &self.entries, &self.hasher);
                let hash = |at: &u32| {
                    let entry = &entries[*at as usize];
                    hasher.hash_one((entry.slot, identity(input, entry.bits)))
                };
                for at in from..to {
                    self.places.insert_unique(hash(&at), at, hash);
                }
                self.slots[slot as usize] = Met::Again;
            }
            Met::Again => {}
        }
    }

    /// Adds the values of another set: their slot `from` is `to` here.
    pub(crate) fn merge(&mut self, other: Self, slots: &[(usize, usize)]) {
        let target = targets(slots);
        let Self { entries, spread, texts: of_other, .. } = other;
        if spread.is_some() && self.spread.is_none() {
            self.spread_out();
        }
        let are_same = target.iter().zip(0..).all(|(to, from)| *to == from);
        let spread = match (spread, &mut self.spread) {
            (Some(theirs), Some(mine)) if self.input != FieldType::String && are_same => {
                return mine.merge(theirs);
            }
            (spread, _) => spread,
        };
        let of_parts = spread.into_iter().flat_map(Spread::into_entries);
        let entries = of_parts.flatten().chain(entries);
        let to = |entry: &Entry| target[entry.slot as usize];
        if self.input != FieldType::String {
            entries.for_each(|entry| self.add(to(&entry), entry.bits, entry.found));
            return;
        }
        let mut known = std::mem::take(&mut self.texts);
        let (mut entries, mut some) = (entries, Vec::with_capacity(texts::TOGETHER));
        loop {
            some.clear();
            some.extend(entries.by_ref().take(texts::TOGETHER));
            if some.is_empty() {
                break;
            }
            let of_texts = some.iter().map(|entry| of_other.text(entry.bits).as_bytes());
            let mut rest = some.iter();
            known.numbers(of_texts, &self.hasher.clone(), |numbers| {
                for (number, entry) in numbers.iter().zip(&mut rest) {
                    self.add(to(entry), (*number).into(), entry.found);
                }
            });
        }
        self.texts = known;
    }

    /// Puts what was added in order of slots, so that results can be asked for.
    pub(crate) fn sort(&mut self, slots: usize) {
        if let Some(spread) = self.spread.take() {
            let of_parts: Vec<Vec<Entry>> = spread.into_entries().collect();
            if self.function == Function::CountDistinct {
                self.counts = vec![0; slots];
                let all = of_parts.iter().flatten();
                all.for_each(|entry| self.counts[entry.slot as usize] += 1);
                return;
            }
            if self.function == Function::Mode {
                self.entries = self.leading(&of_parts, slots);
            } else {
                self.entries.reserve_exact(of_parts.iter().map(Vec::len).sum());
                // A part goes once it was taken over, so that there are not two of each at a time.
                of_parts.into_iter().for_each(|part| self.entries.extend_from_slice(&part));
            }
        }
        self.by_slot = BySlot::new(slots, self.entries.iter().map(|entry| entry.slot));
    }

    /// Of all values those that may be the most frequent one of their slot.
    fn leading(&self, of_parts: &[Vec<Entry>], slots: usize) -> Vec<Entry> {
        let mut best: Vec<Option<Entry>> = vec![None; slots];
        for entry in of_parts.iter().flatten() {
            let best = &mut best[entry.slot as usize];
            let order = |best: &Entry| {
                let count = entry.found.count.cmp(&best.found.count);
                let smaller = self.order(best.bits, entry.bits);
                // Where both booleans come equally often it is true.
                let is_boolean = self.input == FieldType::Boolean;
                count.then(if is_boolean { smaller.reverse() } else { smaller })
            };
            if best.as_ref().is_none_or(|best| order(best) == Ordering::Greater) {
                *best = Some(*entry);
            }
        }
        // Of values that come once it is the smallest.
        let is_leading = |entry: &&Entry| {
            let most = best[entry.slot as usize].map_or(0, |best| best.found.count);
            most > 1 && entry.found.count == most
        };
        let alone = best.iter().flatten().filter(|best| best.found.count == 1);
        let all = of_parts.iter().flatten();
        alone.chain(all.filter(is_leading)).copied().collect()
    }

    /// Whether a slot has values.
    pub(crate) fn has(&self, slot: usize) -> bool {
        match self.counts.get(slot) {
            Some(count) => *count > 0,
            None => !self.by_slot.of(slot).is_empty(),
        }
    }

    /// The results of a slot, in the order they are shown; none if it has no values.
    pub(crate) fn results(&self, slot: usize, ascending: bool) -> Vec<Scalar> {
        if let Some(count) = self.counts.get(slot) {
            return if *count > 0 { vec![Scalar::Integer(*count)] } else { Vec::new() };
        }
        let places = self.by_slot.of(slot);
        if places.is_empty() {
            return Vec::new();
        }
        if self.function == Function::CountDistinct {
            return vec![Scalar::Integer(places.len() as i64)];
        }
        let found = places.iter().map(|at| &self.entries[*at as usize]);
        if self.function == Function::Mode {
            return self.mode(found.collect()).into_iter().collect();
        }
        // Going backwards the last appearance is the first one met; results ascend all the same.
        let appears = |entry: &Entry| if ascending { entry.found.first } else { entry.found.last };
        let mut found: Vec<(i64, u64)> = found.map(|entry| (appears(entry), entry.bits)).collect();
        found.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.order(a.1, b.1)));
        found.into_iter().map(|(_, bits)| self.scalar(bits)).collect()
    }

    fn mode(&self, mut found: Vec<&Entry>) -> Option<Scalar> {
        if self.input == FieldType::Boolean {
            let count = |wanted: u64| {
                let of = found.iter().find(|entry| entry.bits == wanted);
                of.map_or(0, |entry| entry.found.count)
            };
            return Some(Scalar::Boolean(count(1) >= count(0)));
        }
        // Only those can be it that come most often, and of those that come once the smallest is.
        let most = found.iter().map(|entry| entry.found.count).max()?;
        if most == 1 {
            let least = found.into_iter().min_by(|a, b| self.order(a.bits, b.bits));
            return least.map(|entry| self.scalar(entry.bits));
        }
        found.retain(|entry| entry.found.count == most);
        found.sort_unstable_by(|a, b| self.order(a.bits, b.bits));
        let best = values::mode(found.iter().map(|entry| entry.found))?;
        Some(self.scalar(found[best].bits))
    }

    fn order(&self, a: u64, b: u64) -> Ordering {
        match self.input {
            FieldType::Float => f64::from_bits(a).order(f64::from_bits(b)),
            FieldType::Integer => a.cast_signed().cmp(&b.cast_signed()),
            FieldType::Unsigned | FieldType::Boolean => a.cmp(&b),
            FieldType::String => self.texts.text(a).cmp(self.texts.text(b)),
        }
    }

    fn scalar(&self, bits: u64) -> Scalar {
        match self.input {
            FieldType::Float => Scalar::Float(f64::from_bits(bits)),
            FieldType::Integer => Scalar::Integer(bits.cast_signed()),
            FieldType::Unsigned => Scalar::Unsigned(bits),
            FieldType::Boolean => Scalar::Boolean(bits == 1),
            FieldType::String => Scalar::String(self.texts.text(bits).into()),
        }
    }

    /// Bytes of memory taken.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.slots.capacity() * size_of::<Met>()
            + self.of_open.allocation_size()
            + self.places.allocation_size()
            + self.texts.memory_bytes()
            + self.spread.as_ref().map_or(0, Spread::memory_bytes)
    }
}

/// What tells values apart: a zero of either sign is the same number.
fn identity(input: FieldType, bits: u64) -> u64 {
    const MINUS_ZERO: u64 = 1 << 63;
    if input == FieldType::Float && bits == MINUS_ZERO { 0 } else { bits }
}

#[cfg(test)]
mod tests;
