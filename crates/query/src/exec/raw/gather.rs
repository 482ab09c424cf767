//! Rows of several series, read together and put in order: by group, time, and for equal times by
//! the text of leading columns and by series.

use std::cmp::Ordering;
use std::ops::Range;

use hashbrown::HashMap;
use model::{Column, FieldType, Reservation, TimeRange, Values};
use store::ScanSlice;

use crate::exec::column::{append, take, type_of};
use crate::exec::input::ColumnSource;
use crate::exec::rows::Block;
use crate::exec::unit::{Item, Reader, Unit, on_threads};
use crate::plan::Select;
use crate::{QueryContext, QueryError};

/// Rows in the order they were read.
pub(super) struct Gathered {
    times: Vec<i64>,
    runs: Vec<Run>,
    slots: Vec<Column>,
    tie: Tie,
    /// Rows stay in the order they were read.
    in_read_order: bool,
    reservation: Reservation,
}

/// Rows that follow one another and are of one series.
struct Run {
    group: u32,
    series: u32,
    rows: usize,
}

/// What decides between rows of a group that have the same time.
enum Tie {
    /// The order they were read in.
    Read,
    /// The rank of each series by the texts of its leading tags.
    Ranks(HashMap<u32, u32>),
    /// The texts of this many leading columns.
    Texts(usize),
}

/// Bytes that putting a row in order takes at most: a key and a number.
const ORDER_BYTES: usize = size_of::<(u128, u32)>() + size_of::<u32>();

/// A number that orders as the signed one does.
fn ordered(time: i64) -> u64 {
    time.cast_unsigned() ^ (1 << 63)
}

/// Bits that numbers up to `max` take.
fn bits(max: u64) -> u32 {
    u64::BITS - max.leading_zeros()
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
        all.in_read_order = select.shows_groups();
        all.tie = all.tie(unit);
        Ok(all)
    }

    fn empty(select: &Select, context: &QueryContext) -> Result<Self, QueryError> {
        let slots = select.aux.iter().map(|aux| Column::new(Values::empty(aux.kind.field_type())));
        Ok(Self {
            times: Vec::new(),
            runs: Vec::new(),
            slots: slots.collect(),
            tie: Tie::Read,
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
                self.runs.push(Run { group, series: run.series, rows: run.rows as usize });
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
        self.runs.extend(part.runs);
        for (slot, more) in self.slots.iter_mut().zip(&part.slots) {
            append(slot, more);
        }
        drop(part.reservation);
        self.reserve()
    }

    fn reserve(&mut self) -> Result<(), QueryError> {
        let columns: usize = self.slots.iter().map(|c| c.values.memory_bytes()).sum();
        let bytes = columns + self.times.capacity() * 8 + self.runs.capacity() * size_of::<Run>();
        // Rows exist twice while they are put in order, which takes keys and numbers of rows besides.
        let wanted = bytes * 2 + self.times.len() * ORDER_BYTES;
        if wanted > self.reservation.bytes() {
            self.reservation.resize(wanted)?;
        }
        Ok(())
    }

    /// What decides between rows of the same time: the text of leading columns, of rows from the
    /// store only. Mostly these are tags, so that it is the series that decides.
    fn tie(&self, unit: &Unit) -> Tie {
        let groups = unit.groups.len();
        let one_series_each = unit.groups.series_count(0..groups) == groups;
        let from_store = unit.inputs.iter().all(|input| input.request.is_some());
        if self.in_read_order || one_series_each || !from_store {
            return Tie::Read;
        }
        let is_text = |c: &&Column| type_of(&c.values) == FieldType::String;
        let texts = self.slots.iter().take_while(is_text).count();
        if texts == 0 {
            return Tie::Read;
        }
        let [input] = unit.inputs.as_slice() else { return Tie::Texts(texts) };
        let table = input.scan.series();
        let tag = |source: &ColumnSource| match source {
            // All series have the tag if the least of its values is a text.
            ColumnSource::Tag { at, .. } => {
                let tag = &table.tags[*at];
                (!tag.values.is_empty() && !tag.values.get_bytes(0).is_empty())
                    .then_some(&tag.codes)
            }
            _ => None,
        };
        let tags: Option<Vec<&Vec<u32>>> = input.aux[..texts].iter().map(tag).collect();
        let Some(tags) = tags else { return Tie::Texts(texts) };
        let mut series: Vec<u32> = self.runs.iter().map(|run| run.series).collect();
        series.dedup();
        let compare = |a: &u32, b: &u32| {
            let codes = tags.iter().map(|codes| codes[*a as usize].cmp(&codes[*b as usize]));
            codes.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        series.sort_unstable_by(compare);
        let equal = series.chunk_by(|a, b| compare(a, b).is_eq());
        let ranks =
            equal.zip(0..).flat_map(|(series, rank)| series.iter().map(move |s| (*s, rank)));
        Tie::Ranks(ranks.collect())
    }

    /// All rows in order, group after group in the direction of the query; where the rows of each
    /// group are; and the memory they take.
    pub(super) fn sorted(
        self,
        ascending: bool,
    ) -> (Block, Vec<(usize, Range<usize>)>, Reservation) {
        let mut order = self.order();
        let mut of_groups: Vec<(u32, usize)> =
            self.runs.iter().map(|run| (run.group, run.rows)).collect();
        of_groups.sort_by_key(|(group, _)| *group);
        if !ascending {
            order.reverse();
            of_groups.reverse();
        }
        let mut groups = Vec::new();
        let mut from = 0;
        for same in of_groups.chunk_by(|a, b| a.0 == b.0) {
            let rows = same.iter().map(|(_, rows)| *rows).sum::<usize>();
            groups.push((same[0].0 as usize, from..from + rows));
            from += rows;
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

    /// The rows by their numbers, ascending by group, time and what decides between equal times.
    fn order(&self) -> Vec<u32> {
        if self.in_read_order {
            return self.order_by(|group, _, _| group);
        }
        let least = self.times.iter().min().map_or(0, |time| ordered(*time));
        let span = self.times.iter().max().map_or(0, |time| ordered(*time) - least);
        let group_max = self.runs.iter().map(|run| run.group).max().unwrap_or(0);
        let rank_max = match &self.tie {
            Tie::Ranks(ranks) => ranks.len() as u64,
            _ => 0,
        };
        let (time_bits, rank_bits) = (bits(span), bits(rank_max));
        // Mostly everything that counts fits into a word.
        if bits(group_max.into()) + time_bits + rank_bits < u64::BITS {
            self.order_by(|group, time, rank| {
                let place = u64::from(group) << time_bits | (ordered(time) - least);
                place << rank_bits | u64::from(rank)
            })
        } else {
            self.order_by(|group, time, rank| {
                let place = u128::from(group) << 64 | u128::from(ordered(time));
                place << 32 | u128::from(rank)
            })
        }
    }

    /// The rows by their numbers, ascending by a key of group, time and rank.
    fn order_by<K: Ord + Copy>(&self, key: impl Fn(u32, i64, u32) -> K) -> Vec<u32> {
        let mut keys = Vec::with_capacity(self.times.len());
        for run in &self.runs {
            let rank = match &self.tie {
                Tie::Ranks(ranks) => ranks.get(&run.series).copied().unwrap_or(0),
                _ => 0,
            };
            for row in keys.len()..keys.len() + run.rows {
                keys.push((key(run.group, self.times[row], rank), row as u32));
            }
        }
        // Rows of a series ascend or descend already, which this sort makes use of.
        keys.sort();
        if let Tie::Texts(texts) = self.tie {
            // Few rows have equal times: only those are looked at any closer.
            for equal in keys.chunk_by_mut(|a, b| a.0 == b.0) {
                equal.sort_by(|a, b| self.compare_texts(texts, a.1 as usize, b.1 as usize));
            }
        }
        keys.into_iter().map(|(_, row)| row).collect()
    }

    /// Order by leading text, as far as both rows have it.
    fn compare_texts(&self, texts: usize, x: usize, y: usize) -> Ordering {
        for column in &self.slots[..texts] {
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
