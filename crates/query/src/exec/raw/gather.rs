//! Rows of several series, read together and put in order: by group, time, and for equal times by
//! the text of leading columns and by series.

use std::ops::Range;

use hashbrown::HashMap;
use model::{Column, ColumnBatch, Reservation, TimeRange, Values};
use store::ScanSlice;

use super::Sorted;
use super::leading::{Leading, compare_series, compare_texts};
use crate::exec::column::{append, arrange};
use crate::exec::input::{ColumnSource, tag_of_series};
use crate::exec::order::{Step, bits, ordered, radix};
use crate::exec::rows::Block;
use crate::exec::unit::{Item, Reader, Unit, on_threads};
use crate::plan::Select;
use crate::{QueryContext, QueryError};

/// Rows in the order they were read.
pub(super) struct Gathered<'a> {
    select: &'a Select,
    unit: &'a Unit,
    read: Batches,
    times: Vec<i64>,
    tie: Tie,
    /// Rows stay in the order they were read.
    in_read_order: bool,
}

/// What was read, batch by batch. A column is joined when it is put in order and forgotten then: so all
/// columns are joined in the same memory, which the processor's cache has.
struct Batches {
    /// Each with the number of its input.
    batches: Vec<(usize, ColumnBatch)>,
    runs: Vec<Run>,
    rows: usize,
    /// Memory of the batches, of the columns they will be, and of the largest one of these.
    bytes: usize,
    largest: usize,
    /// Memory of all that, and of putting it in order.
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
    /// The texts of the leading columns.
    Texts(Vec<Column>),
}

/// Bytes that putting a row in order takes at most: a key and a number.
const ORDER_BYTES: usize = size_of::<(u128, u32)>() + size_of::<u32>();

impl Batches {
    fn new(context: &QueryContext) -> Result<Self, QueryError> {
        let reservation = context.budget.reserve(0)?;
        Ok(Self {
            batches: Vec::new(),
            runs: Vec::new(),
            rows: 0,
            bytes: 0,
            largest: 0,
            reservation,
        })
    }

    /// Reads a slice as long as there are no more rows than that; whether that was to its end.
    fn read_slice(
        &mut self,
        context: &QueryContext,
        unit: &Unit,
        (at, slice): (usize, &ScanSlice),
        rows_max: usize,
    ) -> Result<bool, QueryError> {
        let input = &unit.inputs[at];
        // Columns that batches do not have, a number or a place among texts a row.
        let is_there = |source: &&ColumnSource| matches!(source, ColumnSource::Column { .. });
        let n_there = input.aux.iter().filter(is_there).count();
        let more = (input.aux.len() - n_there) * size_of::<u64>();
        let reader = Reader { context, interrupt: &context.interrupt };
        reader.read_while(input, slice, |item| {
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
            let largest = batch.columns.iter().map(Column::memory_bytes).max().unwrap_or(0);
            self.largest += largest.max(batch.rows * size_of::<u64>());
            self.batches.push((at, batch));
            self.reserve()?;
            Ok(self.rows <= rows_max)
        })
    }

    /// Reads slices of inputs, which have about so many `cells`; `None`: they have more rows than that, or one of the threads
    /// that share them has more than its share of it.
    fn of_slices(
        context: &QueryContext,
        unit: &Unit,
        slices: Vec<(usize, ScanSlice)>,
        cells: u64,
        rows_max: usize,
    ) -> Result<Option<Self>, QueryError> {
        let mut read = Self::new(context)?;
        for (at, slice) in slices {
            let shares = unit.shares(at, slice, cells, context)?;
            if let [slice] = shares.as_slice() {
                if !read.read_slice(context, unit, (at, slice), rows_max)? {
                    return Ok(None);
                }
                continue;
            }
            let parts = on_threads(&shares, |share| {
                let mut part = Self::new(context)?;
                let is_all =
                    part.read_slice(context, unit, (at, share), rows_max / shares.len())?;
                Ok(is_all.then_some(part))
            })?;
            for part in parts {
                let Some(part) = part else { return Ok(None) };
                read.append(part)?;
            }
        }
        Ok(Some(read))
    }

    /// Adds what was read elsewhere.
    fn append(&mut self, part: Self) -> Result<(), QueryError> {
        self.batches.extend(part.batches);
        self.runs.extend(part.runs);
        self.rows += part.rows;
        self.bytes += part.bytes;
        self.largest += part.largest;
        drop(part.reservation);
        self.reserve()
    }

    fn reserve(&mut self) -> Result<(), QueryError> {
        // All of it exists twice when it is in order, and before that a column as it was joined; keys
        // and numbers of rows besides.
        let runs = self.runs.capacity() * size_of::<Run>();
        let wanted = self.bytes * 2 + self.largest + runs + self.rows * ORDER_BYTES;
        if wanted > self.reservation.bytes() {
            self.reservation.resize(wanted)?;
        }
        Ok(())
    }

    fn times(&self) -> Vec<i64> {
        let mut times = Vec::with_capacity(self.rows);
        self.batches.iter().for_each(|(_, batch)| times.extend_from_slice(batch.times()));
        times
    }

    /// The series of each row.
    fn series(&self) -> Vec<u32> {
        let mut series = Vec::with_capacity(self.rows);
        for run in &self.runs {
            series.resize(series.len() + run.rows, run.series);
        }
        series
    }
}

impl<'a> Gathered<'a> {
    /// Reads the rows of `groups` within `time`, about `rows` of them.
    pub(super) fn read(
        select: &'a Select,
        context: &QueryContext,
        unit: &'a Unit,
        groups: Range<usize>,
        time: TimeRange,
        rows: u64,
    ) -> Result<Self, QueryError> {
        let slices = unit.slices(groups, time);
        let read = Self::read_slices(select, context, unit, slices, (rows, usize::MAX))?;
        Ok(read.expect("BUG: there is no limit"))
    }

    /// Reads slices of inputs, which have about `rows`; `None` if more than `rows_max` of them satisfy the condition.
    pub(super) fn read_slices(
        select: &'a Select,
        context: &QueryContext,
        unit: &'a Unit,
        slices: Vec<(usize, ScanSlice)>,
        (rows, rows_max): (u64, usize),
    ) -> Result<Option<Self>, QueryError> {
        let cells = rows.saturating_mul(select.aux.len() as u64);
        let read = Batches::of_slices(context, unit, slices, cells, rows_max)?;
        Ok(read.map(|read| Self::of(select, unit, read)))
    }

    fn of(select: &'a Select, unit: &'a Unit, read: Batches) -> Self {
        let times = read.times();
        let in_read_order = select.shows_groups();
        let mut all = Self { select, unit, read, times, tie: Tie::Read, in_read_order };
        all.tie = all.tie();
        all
    }

    /// A column in the order it was read.
    fn joined(&self, number: usize) -> Column {
        let mut joined = Column::new(Values::empty(self.select.aux[number].kind.field_type()));
        for (at, batch) in &self.read.batches {
            let input = &self.unit.inputs[*at];
            joined.values.reserve(self.read.rows - joined.len());
            append(&mut joined, &input.aux[number].column(batch, input.scan.series()));
        }
        joined
    }

    /// All columns in an order of the rows; `None`: that in which they were read.
    fn columns(&self, order: Option<&[u32]>) -> Vec<Column> {
        let only_input = match self.unit.inputs.as_slice() {
            [input] => Some(input),
            _ => None,
        };
        let mut series = None;
        let columns = (0..self.select.aux.len()).map(|number| {
            // Which tags a row has, its series says: they need not be put in order one by one.
            if let Some(input) = only_input
                && let ColumnSource::Tag { at, blank } = input.aux[number]
            {
                let series = series.get_or_insert_with(|| self.series_in(order));
                return tag_of_series(&input.scan.series().tags[at], series, blank);
            }
            match order {
                Some(order) => arrange(&self.joined(number), order),
                None => self.joined(number),
            }
        });
        columns.collect()
    }

    /// The series of each row in an order.
    fn series_in(&self, order: Option<&[u32]>) -> Vec<u32> {
        let series = self.read.series();
        match order {
            Some(order) => order.iter().map(|row| series[*row as usize]).collect(),
            None => series,
        }
    }

    /// What decides between rows of the same time.
    fn tie(&self) -> Tie {
        let tags = match Leading::of(self.select, self.unit) {
            Leading::Nothing => return Tie::Read,
            Leading::Texts(count) => {
                return Tie::Texts((0..count).map(|number| self.joined(number)).collect());
            }
            Leading::Tags(tags) => tags,
        };
        let mut series: Vec<u32> = self.read.runs.iter().map(|run| run.series).collect();
        series.dedup();
        let compare = |a: &u32, b: &u32| compare_series(&tags, *a, *b);
        series.sort_unstable_by(compare);
        let equal = series.chunk_by(|a, b| compare(a, b).is_eq());
        let ranks =
            equal.zip(0..).flat_map(|(series, rank)| series.iter().map(move |s| (*s, rank)));
        Tie::Ranks(ranks.collect())
    }

    /// All rows in order, group after group in the direction of the query; where the rows of each
    /// group are; and the memory they take.
    pub(super) fn sorted(mut self, ascending: bool) -> Sorted {
        // In read order it is runs that are put in order.
        let runs = &self.read.runs;
        let mut of_groups: Vec<(u32, u32, u32)> = Vec::with_capacity(runs.len());
        let mut start = 0;
        for run in runs {
            of_groups.push((run.group, start, run.rows as u32));
            start += run.rows as u32;
        }
        of_groups.sort_by_key(|(group, ..)| *group);
        let mut order = match self.in_read_order {
            true => of_groups.iter().flat_map(|(_, start, rows)| *start..start + rows).collect(),
            false => self.order(),
        };
        // Texts that it compared are not held beside the columns.
        self.tie = Tie::Read;
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
            Block { slots: self.columns(None), times: self.times }
        } else {
            Block {
                times: order.iter().map(|row| self.times[*row as usize]).collect(),
                slots: self.columns(Some(&order)),
            }
        };
        (block, groups, self.read.reservation)
    }

    /// The rows by their numbers, ascending by group, time and what decides between equal times.
    fn order(&self) -> Vec<u32> {
        let least = self.times.iter().min().map_or(0, |time| ordered(*time));
        let span = self.times.iter().max().map_or(0, |time| ordered(*time) - least);
        let group_max = self.read.runs.iter().map(|run| run.group).max().unwrap_or(0);
        let rank_max = match &self.tie {
            Tie::Ranks(ranks) => ranks.len() as u64,
            _ => 0,
        };
        let step = Step::of(self.times.iter().map(|time| ordered(*time) - least));
        let (time_bits, rank_bits) = (bits(step.exact(span)), bits(rank_max));
        let row_bits = bits(self.times.len() as u64);
        // Mostly everything that counts fits into a word, and takes few bits of it.
        let all_bits = bits(group_max.into()) + time_bits + rank_bits;
        let place = |group: u32, time: i64, rank: u32| {
            let steps = step.exact(ordered(time) - least);
            let place = u64::from(group) << time_bits | steps;
            place << rank_bits | u64::from(rank)
        };
        if all_bits + row_bits <= u64::BITS {
            let key = |(group, time, rank), row| place(group, time, rank) << row_bits | row as u64;
            let row = |key: u64| (key & ((1 << row_bits) - 1)) as u32;
            let sort = |keys: &mut Vec<u64>| radix::sort(keys, row_bits..row_bits + all_bits);
            self.order_by(key, sort, |key| key >> row_bits, row)
        } else if all_bits < u64::BITS {
            let key = |(group, time, rank), row| (place(group, time, rank), row as u32);
            self.order_by(key, |keys| keys.sort_unstable(), |key| key.0, |key| key.1)
        } else {
            let key = |(group, time, rank), row| {
                let place = u128::from(group) << 64 | u128::from(ordered(time));
                (place << 32 | u128::from(rank), row as u32)
            };
            self.order_by(
                key,
                |keys: &mut Vec<(u128, u32)>| keys.sort_unstable(),
                |key| key.0,
                |key| key.1,
            )
        }
    }

    /// The rows by their numbers, ascending by a key of group, time and rank, then by what decides between
    /// those that are equal in its `place`. The key holds the number of the row: no two are equal.
    fn order_by<K: Copy, P: PartialEq>(
        &self,
        key: impl Fn((u32, i64, u32), usize) -> K,
        sort: impl FnOnce(&mut Vec<K>),
        place: impl Fn(K) -> P,
        row: impl Fn(K) -> u32,
    ) -> Vec<u32> {
        let mut keys = Vec::with_capacity(self.times.len());
        for run in &self.read.runs {
            let rank = match &self.tie {
                Tie::Ranks(ranks) => ranks.get(&run.series).copied().unwrap_or(0),
                _ => 0,
            };
            let times = keys.len()..keys.len() + run.rows;
            keys.extend(times.map(|row| key((run.group, self.times[row], rank), row)));
        }
        sort(&mut keys);
        if let Tie::Texts(columns) = &self.tie {
            // Few rows have equal times: only those are looked at any closer.
            for equal in keys.chunk_by_mut(|a, b| place(*a) == place(*b)) {
                equal.sort_by(|a, b| compare_texts(columns, row(*a) as usize, row(*b) as usize));
            }
        }
        keys.into_iter().map(row).collect()
    }
}
