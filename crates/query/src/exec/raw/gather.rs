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

/// What decides where a row goes, side by side: sorting looks up text only for equal times.
#[derive(Clone, Copy)]
struct Key {
    group: u32,
    row: u32,
    time: i64,
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
        // Rows exist twice while they are put in order.
        let wanted = bytes * 2;
        if wanted > self.reservation.bytes() {
            self.reservation.resize(wanted)?;
        }
        Ok(())
    }

    /// The rows of each group in order, group after group in the direction of the query, and the
    /// memory they take.
    pub(super) fn blocks(self, ascending: bool) -> (Vec<(usize, Block)>, Reservation) {
        let mut order: Vec<Key> = (0..self.times.len())
            .map(|row| Key { group: self.groups[row], time: self.times[row], row: row as u32 })
            .collect();
        if !ascending {
            order.sort_by(|a, b| self.compare(b, a));
        } else if !order.is_sorted_by(|a, b| self.compare(a, b).is_le()) {
            order.sort_by(|a, b| self.compare(a, b));
        }
        let order: Vec<u32> = order.into_iter().map(|key| key.row).collect();
        let mut blocks = Vec::new();
        let mut from = 0;
        while from < order.len() {
            let group = self.groups[order[from] as usize];
            let same = |row: &u32| self.groups[*row as usize] == group;
            let to = from + order[from..].iter().take_while(|row| same(row)).count();
            let rows = &order[from..to];
            let identity = rows.len() == self.times.len() && rows.is_sorted();
            let block = if identity {
                Block { times: self.times.clone(), slots: self.slots.clone() }
            } else {
                Block {
                    times: rows.iter().map(|row| self.times[*row as usize]).collect(),
                    slots: self.slots.iter().map(|column| take(column, rows)).collect(),
                }
            };
            blocks.push((group as usize, block));
            from = to;
        }
        (blocks, self.reservation)
    }

    fn compare(&self, a: &Key, b: &Key) -> Ordering {
        if self.in_read_order {
            return (a.group, a.row).cmp(&(b.group, b.row));
        }
        let by_place = (a.group, a.time).cmp(&(b.group, b.time));
        by_place
            .then_with(|| self.compare_texts(a.row as usize, b.row as usize))
            .then(a.row.cmp(&b.row))
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
