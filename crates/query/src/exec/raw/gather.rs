//! Rows of several series, read together and put in order: by group, time, and for equal times by
//! the text of leading columns and by series.

use std::cmp::Ordering;
use std::ops::Range;

use hashbrown::HashMap;
use model::{Column, ColumnBatch, FieldType, Reservation, TimeRange, Values};
use store::ScanSlice;

use super::radix;
use crate::exec::column::{append, take, type_of};
use crate::exec::input::ColumnSource;
use crate::exec::rows::Block;
use crate::exec::unit::{Item, Reader, Unit, on_threads};
use crate::plan::{AuxPlan, Select};
use crate::{QueryContext, QueryError};

/// Rows in the order they were read.
pub(super) struct Gathered {
    times: Vec<i64>,
    runs: Vec<Run>,
    slots: Vec<Column>,
    tie: Tie,
    /// Rows stay in the order they were read.
    in_read_order: bool,
    /// Memory of the above, and of putting it in order.
    reservation: Reservation,
}

/// What was read, batch by batch: how long columns become is known when all of it is there.
struct Batches {
    /// Each with the number of its input.
    batches: Vec<(usize, ColumnBatch)>,
    runs: Vec<Run>,
    rows: usize,
    /// Memory of the batches, and of the columns they will be.
    bytes: usize,
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

/// What all times are multiples of, counted from the least; mostly the interval of the rows.
fn step_of(times: &[i64], least: u64) -> u64 {
    times.iter().fold(0, |step, time| {
        let distance = ordered(*time) - least;
        if step == 1 || (step > 0 && distance.is_multiple_of(step)) {
            step
        } else {
            gcd(step, distance)
        }
    })
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Bits that numbers up to `max` take.
fn bits(max: u64) -> u32 {
    u64::BITS - max.leading_zeros()
}

impl Batches {
    fn new(context: &QueryContext) -> Result<Self, QueryError> {
        let reservation = context.budget.reserve(0)?;
        Ok(Self { batches: Vec::new(), runs: Vec::new(), rows: 0, bytes: 0, reservation })
    }

    fn read_slice(
        &mut self,
        context: &QueryContext,
        unit: &Unit,
        at: usize,
        slice: &ScanSlice,
    ) -> Result<(), QueryError> {
        let input = &unit.inputs[at];
        // Columns that batches do not have, a number or a place among texts a row.
        let is_there = |source: &&ColumnSource| matches!(source, ColumnSource::Column { .. });
        let n_there = input.aux.iter().filter(is_there).count();
        let more = (input.aux.len() - n_there) * size_of::<u64>();
        let reader = Reader { context, interrupt: &context.interrupt };
        reader.read(input, slice, |item| {
            let Item::Rows(batch) = item else {
                panic!("BUG: summaries were not asked for");
            };
            for run in &batch.runs {
                // A store may hand out only the series it was asked for.
                let group = unit.groups.of(at, run.series).unwrap_or(u32::MAX);
                self.runs.push(Run { group, series: run.series, rows: run.rows as usize });
            }
            self.rows += batch.rows;
            // Stores may hand out batches of a row each.
            let columns = batch.columns.len() * size_of::<Column>();
            self.bytes += batch.memory_bytes() + columns + batch.rows * more;
            self.batches.push((at, batch));
            self.reserve()
        })
    }

    /// Adds what was read elsewhere.
    fn append(&mut self, part: Self) -> Result<(), QueryError> {
        self.batches.extend(part.batches);
        self.runs.extend(part.runs);
        self.rows += part.rows;
        self.bytes += part.bytes;
        drop(part.reservation);
        self.reserve()
    }

    fn reserve(&mut self) -> Result<(), QueryError> {
        // All of it exists twice while it is joined, and again while it is put in order, which takes
        // keys and numbers of rows besides.
        let runs = self.runs.capacity() * size_of::<Run>();
        let wanted = self.bytes * 2 + runs + self.rows * ORDER_BYTES;
        if wanted > self.reservation.bytes() {
            self.reservation.resize(wanted)?;
        }
        Ok(())
    }

    /// All rows as one: each column is copied once, into its whole length.
    fn join(self, select: &Select, unit: &Unit) -> Gathered {
        let mut times = Vec::with_capacity(self.rows);
        self.batches.iter().for_each(|(_, batch)| times.extend_from_slice(batch.times()));
        let slot = |(number, aux): (usize, &AuxPlan)| {
            let mut slot = Column::new(Values::empty(aux.kind.field_type()));
            for (at, batch) in &self.batches {
                let input = &unit.inputs[*at];
                slot.values.reserve(self.rows - slot.len());
                append(&mut slot, &input.aux[number].column(batch, input.scan.series()));
            }
            slot
        };
        let slots = select.aux.iter().enumerate().map(slot).collect();
        let (runs, reservation) = (self.runs, self.reservation);
        Gathered { times, runs, slots, tie: Tie::Read, in_read_order: false, reservation }
    }
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
        let mut read = Batches::new(context)?;
        let cells = rows.saturating_mul(select.aux.len() as u64);
        for at in 0..unit.inputs.len() {
            let Some(slice) = unit.slice(at, groups.clone(), time) else { continue };
            let shares = unit.shares(at, slice, cells, context);
            if let [slice] = shares.as_slice() {
                read.read_slice(context, unit, at, slice)?;
                continue;
            }
            let parts = on_threads(&shares, |share| {
                let mut part = Batches::new(context)?;
                part.read_slice(context, unit, at, share)?;
                Ok(part)
            })?;
            for part in parts {
                read.append(part)?;
            }
        }
        let mut all = read.join(select, unit);
        all.in_read_order = select.shows_groups();
        all.tie = all.tie(unit);
        Ok(all)
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
        // In read order it is runs that are put in order.
        let mut of_groups: Vec<(u32, u32, u32)> = Vec::with_capacity(self.runs.len());
        let mut start = 0;
        for run in &self.runs {
            of_groups.push((run.group, start, run.rows as u32));
            start += run.rows as u32;
        }
        of_groups.sort_by_key(|(group, ..)| *group);
        let mut order = match self.in_read_order {
            true => of_groups.iter().flat_map(|(_, start, rows)| *start..start + rows).collect(),
            false => self.order(),
        };
        if !ascending {
            order.reverse();
            of_groups.reverse();
        }
        let mut groups = Vec::with_capacity(of_groups.len());
        let mut from = 0;
        for same in of_groups.chunk_by(|a, b| a.0 == b.0) {
            let rows = same.iter().map(|(.., rows)| *rows as usize).sum::<usize>();
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
        let least = self.times.iter().min().map_or(0, |time| ordered(*time));
        let span = self.times.iter().max().map_or(0, |time| ordered(*time) - least);
        let group_max = self.runs.iter().map(|run| run.group).max().unwrap_or(0);
        let rank_max = match &self.tie {
            Tie::Ranks(ranks) => ranks.len() as u64,
            _ => 0,
        };
        let step = step_of(&self.times, least).max(1);
        let (time_bits, rank_bits) = (bits(span / step), bits(rank_max));
        // Mostly everything that counts fits into a word, and takes few bits of it.
        let all_bits = bits(group_max.into()) + time_bits + rank_bits;
        if all_bits < u64::BITS {
            let place = |group: u32, time: i64, rank: u32| {
                let steps = (ordered(time) - least) / step;
                let place = u64::from(group) << time_bits | steps;
                place << rank_bits | u64::from(rank)
            };
            self.order_by(place, |keys| radix::sort(keys, all_bits))
        } else {
            self.order_by(
                |group, time, rank| {
                    let place = u128::from(group) << 64 | u128::from(ordered(time));
                    place << 32 | u128::from(rank)
                },
                |keys| keys.sort(),
            )
        }
    }

    /// The rows by their numbers, ascending by a key of group, time and rank.
    fn order_by<K: Ord + Copy>(
        &self,
        key: impl Fn(u32, i64, u32) -> K,
        sort: impl FnOnce(&mut Vec<(K, u32)>),
    ) -> Vec<u32> {
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
        sort(&mut keys);
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
