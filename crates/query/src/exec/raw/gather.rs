//! Rows of several series, read together and put in order: by group, time, and for equal times by
//! the text of leading columns and by series.

use std::cmp::Ordering;
use std::ops::Range;

use model::{Column, FieldType, Reservation, TimeRange, Values};
use store::ScanSlice;

use crate::exec::column::{append, take, type_of};
use crate::exec::rows::Block;
use crate::exec::unit::{Item, Reader, Unit, on_threads};
use crate::plan::Select;
use crate::{QueryContext, QueryError};

/// Rows in the order they were read.
pub(super) struct Gathered {
    times: Vec<i64>,
    groups: Vec<u32>,
    slots: Vec<Column>,
    /// Leading columns of text, which decide between equal times; of rows from the store only.
    texts: usize,
    /// Rows stay in the order they were read.
    in_read_order: bool,
    reservation: Reservation,
}

/// What decides where a row goes.
#[derive(Clone, Copy)]
struct Key {
    /// Group, then time, as one number.
    place: u128,
    row: u32,
}

/// A number that orders as the signed one does.
fn ordered(time: i64) -> u64 {
    time.cast_unsigned() ^ (1 << 63)
}

impl Gathered {
    /// Reads the rows of `groups` within `time`, about `rows` of them.
    pub(super) fn read(
        select: &Select,
        context: &QueryContext,
        unit: &Unit,
        groups: Range<usize>,
        time: TimeRange,
        rows: u64,
    ) -> Result<Self, QueryError> {
        let mut all = Self::empty(select, context)?;
        let cells = rows.saturating_mul(select.aux.len() as u64);
        for at in 0..unit.inputs.len() {
            let Some(slice) = unit.slice(at, groups.clone(), time) else { continue };
            let shares = unit.shares(at, slice, cells, context);
            if let [slice] = shares.as_slice() {
                all.read_slice(context, unit, at, slice)?;
                continue;
            }
            let parts = on_threads(&shares, |share| {
                let mut part = Self::empty(select, context)?;
                part.read_slice(context, unit, at, share)?;
                Ok(part)
            })?;
            for part in parts {
                all.append(part)?;
            }
        }
        let is_text = |c: &Column| type_of(&c.values) == FieldType::String;
        all.in_read_order = select.shows_groups();
        if unit.inputs.iter().all(|input| input.request.is_some()) {
            all.texts = all.slots.iter().take_while(|c| is_text(c)).count();
        }
        Ok(all)
    }

    fn empty(select: &Select, context: &QueryContext) -> Result<Self, QueryError> {
        let slots = select.aux.iter().map(|aux| Column::new(Values::empty(aux.kind.field_type())));
        Ok(Self {
            times: Vec::new(),
            groups: Vec::new(),
            slots: slots.collect(),
            texts: 0,
            in_read_order: false,
            reservation: context.budget.reserve(0)?,
        })
    }

    fn read_slice(
        &mut self,
        context: &QueryContext,
        unit: &Unit,
        at: usize,
        slice: &ScanSlice,
    ) -> Result<(), QueryError> {
        let input = &unit.inputs[at];
        let table = input.scan.series();
        let reader = Reader { context, interrupt: &context.interrupt };
        reader.read(input, slice, |item| {
            let Item::Rows(batch) = item else {
                panic!("BUG: summaries were not asked for");
            };
            self.times.extend_from_slice(batch.times());
            for run in &batch.runs {
                // A store may hand out only the series it was asked for.
                let group = unit.groups.of(at, run.series).unwrap_or(u32::MAX);
                self.groups.resize(self.groups.len() + run.rows as usize, group);
            }
            for (slot, source) in self.slots.iter_mut().zip(&input.aux) {
                append(slot, &source.column(&batch, table));
            }
            self.reserve()
        })
    }

    /// Adds rows that were read elsewhere.
    fn append(&mut self, part: Self) -> Result<(), QueryError> {
        if self.times.is_empty() {
            *self = part;
            return Ok(());
        }
        self.times.extend(part.times);
        self.groups.extend(part.groups);
        for (slot, more) in self.slots.iter_mut().zip(&part.slots) {
            append(slot, more);
        }
        drop(part.reservation);
        self.reserve()
    }

    fn reserve(&mut self) -> Result<(), QueryError> {
        let columns: usize = self.slots.iter().map(|c| c.values.memory_bytes()).sum();
        let bytes = columns + self.times.capacity() * 12;
        // Rows exist twice while they are put in order, which takes keys and numbers of rows besides.
        let wanted = bytes * 2 + self.times.len() * (size_of::<Key>() + size_of::<u32>());
        if wanted > self.reservation.bytes() {
            self.reservation.resize(wanted)?;
        }
        Ok(())
    }

    /// All rows in order, group after group in the direction of the query; where the rows of each
    /// group are; and the memory they take.
    pub(super) fn sorted(
        self,
        ascending: bool,
    ) -> (Block, Vec<(usize, Range<usize>)>, Reservation) {
        let order = self.order(ascending);
        let group_of = |row: &u32| self.groups[*row as usize];
        let mut groups = Vec::new();
        let mut from = 0;
        for rows in order.chunk_by(|a, b| group_of(a) == group_of(b)) {
            groups.push((group_of(&rows[0]) as usize, from..from + rows.len()));
            from += rows.len();
        }
        let block = if order.is_sorted() {
            Block { times: self.times, slots: self.slots }
        } else {
            Block {
                times: order.iter().map(|row| self.times[*row as usize]).collect(),
                slots: self.slots.iter().map(|column| take(column, &order)).collect(),
            }
        };
        (block, groups, self.reservation)
    }

    /// The rows by their numbers in the order of the result.
    fn order(&self, ascending: bool) -> Vec<u32> {
        let key = |row: usize| Key {
            place: u128::from(self.groups[row]) << 64 | u128::from(ordered(self.times[row])),
            row: row as u32,
        };
        let mut order: Vec<Key> = (0..self.times.len()).map(key).collect();
        if self.in_read_order {
            order.sort_by_key(|key| key.place >> 64);
        } else {
            // Few rows have equal times: only those are looked at any closer.
            order.sort_by_key(|key| key.place);
            if self.texts > 0 {
                for equal in order.chunk_by_mut(|a, b| a.place == b.place) {
                    equal.sort_by(|a, b| self.compare_texts(a.row as usize, b.row as usize));
                }
            }
        }
        if !ascending {
            order.reverse();
        }
        order.into_iter().map(|key| key.row).collect()
    }

    /// Order by leading text, as far as both rows have it.
    fn compare_texts(&self, x: usize, y: usize) -> Ordering {
        for column in &self.slots[..self.texts] {
            if !column.is_valid(x) || !column.is_valid(y) {
                return Ordering::Equal;
            }
            let order = match &column.values {
                // The texts of a tag are sorted: their numbers order as they do.
                Values::Dictionary(codes, _) => codes[x].cmp(&codes[y]),
                Values::String(texts) => texts.get_bytes(x).cmp(texts.get_bytes(y)),
                _ => return Ordering::Equal,
            };
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }
}
