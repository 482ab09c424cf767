//! Functions that need every value: they are kept, and worked on slot by slot at the end.
//!
//! Values, times and other columns lie one behind another in the order they came; segments say
//! which rows belong to which slot. `top()`, `bottom()` and `sample()` let go of rows that cannot
//! be in the result any more.

use std::sync::Arc;

use model::{Column, FieldType, Values};

use super::kernels;
use super::slots::Run;
use crate::exec::column::{self, append, take};
use crate::functions::ranked::{self, Draws, End};
use crate::functions::{Function, values};

/// Rows are let go when this many and twice what was kept last time are held.
const PRUNE_ROWS: usize = 1 << 16;

/// Values of many slots.
#[derive(Clone, Debug)]
pub(crate) struct Collect {
    function: Function,
    segments: Vec<Segment>,
    times: Vec<i64>,
    values: Column,
    /// Other columns of the rows; a column that is a tag stays empty.
    aux: Vec<Column>,
    draws: Vec<u64>,
    source: Draws,
    prune_at: usize,
}

/// Consecutive rows of one slot and one series.
#[derive(Clone, Copy, Debug)]
struct Segment {
    slot: u32,
    start: u32,
    rows: u32,
    input: u32,
    series: u32,
}

/// Where a row came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    pub input: u32,
    pub series: u32,
}

/// The other columns of a batch: a column, nothing, or a tag (which [`Origin`] leads to).
pub(crate) enum AuxColumn<'a> {
    Column(&'a Column),
    Missing,
    Tag,
}

/// What keeps apart rows that `top()` and `bottom()` take one of.
pub(crate) type OriginKey<'a> = &'a dyn Fn(Origin) -> u32;

impl Collect {
    /// No values yet; `aux` are the types of the other columns.
    pub(crate) fn new(
        function: Function,
        input: FieldType,
        aux: impl Iterator<Item = FieldType>,
        seed: u64,
    ) -> Self {
        Self {
            function,
            segments: Vec::new(),
            times: Vec::new(),
            values: Column::new(Values::empty(input)),
            aux: aux.map(|t| Column::new(Values::empty(t))).collect(),
            draws: Vec::new(),
            source: Draws::new(seed),
            prune_at: PRUNE_ROWS,
        }
    }

    /// Adds the rows of `runs` that have a value.
    pub(crate) fn add_rows(
        &mut self,
        column: &Column,
        times: &[i64],
        runs: &[Run],
        input: u32,
        aux: &[AuxColumn<'_>],
    ) {
        for run in runs {
            let (start, end) = (run.start as usize, run.end as usize);
            kernels::valid_stretches(column.validity.as_ref(), start, end, |from, to| {
                self.add_stretch(column, times, run, input, (from, to), aux);
            });
        }
    }

    fn add_stretch(
        &mut self,
        column: &Column,
        times: &[i64],
        run: &Run,
        input: u32,
        (from, to): (usize, usize),
        aux: &[AuxColumn<'_>],
    ) {
        let start = self.times.len() as u32;
        let rows = (to - from) as u32;
        match self.segments.last_mut() {
            Some(last)
                if last.slot == run.slot && last.input == input && last.series == run.series =>
            {
                last.rows += rows;
            }
            _ => self.segments.push(Segment {
                slot: run.slot,
                start,
                rows,
                input,
                series: run.series,
            }),
        }
        self.times.extend_from_slice(&times[from..to]);
        column::extend_plain(&mut self.values.values, &column.values, from..to);
        for (mine, theirs) in self.aux.iter_mut().zip(aux) {
            match theirs {
                AuxColumn::Column(theirs) => append(mine, &column::slice(theirs, from..to)),
                AuxColumn::Missing => mine.extend_missing(to - from),
                AuxColumn::Tag => {}
            }
        }
        if matches!(self.function, Function::Sample(_)) {
            self.draws.extend((from..to).map(|_| self.source.draw()));
        }
    }

    /// Lets go of rows that cannot be in the result any more, if it is time to.
    pub(crate) fn prune(&mut self, slots: usize, key: OriginKey<'_>) {
        if self.times.len() < self.prune_at || !self.function.keeps_times() {
            return;
        }
        let by_slot = self.rows_by_slot(slots);
        let mut kept: Vec<(u32, u32)> = Vec::new();
        for slot in 0..slots {
            let rows = by_slot.rows(slot).to_vec();
            kept.extend(self.select(rows, &by_slot, key).into_iter().map(|r| (slot as u32, r)));
        }
        let rows: Vec<u32> = kept.iter().map(|k| k.1).collect();
        let segments = kept.iter().enumerate().map(|(start, (slot, row))| {
            let Origin { input, series } = by_slot.origin(*row);
            Segment { slot: *slot, start: start as u32, rows: 1, input, series }
        });
        self.segments = segments.collect();
        self.times = rows.iter().map(|row| self.times[*row as usize]).collect();
        self.values = take(&self.values, &rows);
        for column in &mut self.aux {
            if !column.is_empty() {
                *column = take(column, &rows);
            }
        }
        if !self.draws.is_empty() {
            self.draws = rows.iter().map(|row| self.draws[*row as usize]).collect();
        }
        self.prune_at = PRUNE_ROWS.max(self.times.len() * 2);
    }

    /// The rows of a slot that `top()`, `bottom()` or `sample()` choose, best first.
    fn select(&self, rows: Vec<u32>, by_slot: &RowsBySlot, key: OriginKey<'_>) -> Vec<u32> {
        let (end, chosen) = match &self.function {
            Function::Sample(count) => return ranked::sample(rows, &self.draws, *count),
            Function::Top(chosen) => (End::Largest, chosen),
            Function::Bottom(chosen) => (End::Smallest, chosen),
            _ => return rows,
        };
        macro_rules! best {
            ($values:expr) => {{
                let (values, times) = ($values, &self.times);
                if chosen.by.is_empty() {
                    ranked::best(end, values, times, rows, chosen.count)
                } else {
                    let key = |row| key(by_slot.origin(row));
                    let leaders = ranked::best_of_each(end, values, times, &rows, key);
                    ranked::best(end, values, times, leaders, chosen.count)
                }
            }};
        }
        match &self.values.values {
            Values::Float(v) => best!(v),
            Values::Integer(v) => best!(v),
            Values::Unsigned(v) => best!(v),
            _ => rows,
        }
    }

    /// Adds the values of another set: their slot `from` is `to` here.
    pub(crate) fn merge(&mut self, other: Self, slots: &[(usize, usize)]) {
        let mut target = vec![0u32; slots.iter().map(|s| s.0 + 1).max().unwrap_or(0)];
        for (from, to) in slots {
            target[*from] = *to as u32;
        }
        let base = self.times.len() as u32;
        self.segments.extend(other.segments.into_iter().map(|segment| Segment {
            slot: target[segment.slot as usize],
            start: segment.start + base,
            ..segment
        }));
        self.times.extend(other.times);
        append(&mut self.values, &other.values);
        for (mine, theirs) in self.aux.iter_mut().zip(&other.aux) {
            append(mine, theirs);
        }
        self.draws.extend(other.draws);
    }

    /// Bytes of memory taken.
    pub(crate) fn memory_bytes(&self) -> usize {
        let aux: usize = self.aux.iter().map(|column| column.values.memory_bytes()).sum();
        self.times.capacity() * 8
            + self.draws.capacity() * 8
            + self.values.values.memory_bytes()
            + self.segments.capacity() * size_of::<Segment>()
            + aux
    }

    /// Everything collected, ready to be worked on slot by slot.
    pub(crate) fn finish(&self, slots: usize) -> Finished<'_> {
        let by_slot = Arc::new(self.rows_by_slot(slots));
        Finished { collect: self, function: &self.function, by_slot }
    }

    fn sort_by_time(&self, rows: &mut [u32]) {
        // With their times beside them rows are sorted without looking anything up; the sort finds
        // the runs of the series and merges them.
        let mut timed: Vec<(i64, u32)> =
            rows.iter().map(|row| (self.times[*row as usize], *row)).collect();
        timed.sort_by_key(|(time, _)| *time);
        for (row, (_, sorted)) in rows.iter_mut().zip(timed) {
            *row = sorted;
        }
    }

    /// The rows of every slot; of each in order of time (of origin where times are equal), if the
    /// function looks at that.
    fn rows_by_slot(&self, slots: usize) -> RowsBySlot {
        let mut starts = vec![0u32; slots + 1];
        for segment in &self.segments {
            starts[segment.slot as usize + 1] += segment.rows;
        }
        for slot in 0..slots {
            starts[slot + 1] += starts[slot];
        }
        let mut rows = vec![0u32; self.times.len()];
        let mut origins = vec![Origin { input: 0, series: 0 }; self.times.len()];
        let mut next = starts.clone();
        let mut single = vec![true; slots];
        for segment in &self.segments {
            let place = &mut next[segment.slot as usize];
            // Rows of one series come in order of time.
            single[segment.slot as usize] &= *place == starts[segment.slot as usize];
            for row in segment.start..segment.start + segment.rows {
                rows[*place as usize] = row;
                origins[row as usize] = Origin { input: segment.input, series: segment.series };
                *place += 1;
            }
        }
        if self.function.needs_time_order() {
            for slot in (0..slots).filter(|slot| !single[*slot]) {
                let (from, to) = (starts[slot] as usize, starts[slot + 1] as usize);
                self.sort_by_time(&mut rows[from..to]);
            }
        }
        RowsBySlot { starts, rows, origins }
    }
}

/// Which rows each slot has.
#[derive(Debug)]
struct RowsBySlot {
    starts: Vec<u32>,
    rows: Vec<u32>,
    origins: Vec<Origin>,
}

impl RowsBySlot {
    fn rows(&self, slot: usize) -> &[u32] {
        &self.rows[self.starts[slot] as usize..self.starts[slot + 1] as usize]
    }

    fn origin(&self, row: u32) -> Origin {
        self.origins[row as usize]
    }
}

/// Collected values with their slots in order.
#[derive(Clone, Debug)]
pub(crate) struct Finished<'a> {
    collect: &'a Collect,
    /// What is made of them.
    function: &'a Function,
    by_slot: Arc<RowsBySlot>,
}

/// One result of a slot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SlotResult {
    /// The row whose value, time and other columns are shown.
    pub row: Option<u32>,
    /// The value, if it is none of the rows'.
    pub value: Option<model::Scalar>,
}

impl<'a> Finished<'a> {
    /// The same values for another function, which looks at them in the same order.
    pub(crate) fn with(&self, function: &'a Function) -> Self {
        Self { function, ..self.clone() }
    }
}

impl Finished<'_> {
    /// The results of a slot; none if it has no values.
    pub(crate) fn results(&self, slot: usize, key: OriginKey<'_>) -> Vec<SlotResult> {
        let rows = self.by_slot.rows(slot);
        if rows.is_empty() {
            return Vec::new();
        }
        let shown = |row: u32| SlotResult { row: Some(row), value: None };
        if self.function.keeps_times() {
            let mut chosen = self.collect.select(rows.to_vec(), &self.by_slot, key);
            ranked::by_time(&mut chosen, &self.collect.times);
            return chosen.into_iter().map(shown).collect();
        }
        let times: Vec<i64> = rows.iter().map(|row| self.time(*row)).collect();
        match &self.collect.values.values {
            Values::Float(v) => self.of_numbers(&gather(v, rows), &times, rows),
            Values::Integer(v) => self.of_numbers(&gather(v, rows), &times, rows),
            Values::Unsigned(v) => self.of_numbers(&gather(v, rows), &times, rows),
            other => panic!("BUG: collected {other:?}"),
        }
    }

    /// Time of a row.
    pub(crate) fn time(&self, row: u32) -> i64 {
        self.collect.times[row as usize]
    }

    /// Origin of a row.
    pub(crate) fn origin(&self, row: u32) -> Origin {
        self.by_slot.origin(row)
    }

    /// The collected values.
    pub(crate) fn values(&self) -> &Column {
        &self.collect.values
    }

    /// The other column `at`.
    pub(crate) fn aux(&self, at: usize) -> &Column {
        &self.collect.aux[at]
    }

    /// The rows of a slot in order of time.
    pub(crate) fn rows(&self, slot: usize) -> &[u32] {
        self.by_slot.rows(slot)
    }

    fn of_numbers<T: values::Number>(
        &self,
        v: &[T],
        times: &[i64],
        rows: &[u32],
    ) -> Vec<SlotResult> {
        let float = |value: Option<f64>| {
            vec![SlotResult { row: None, value: value.map(model::Scalar::Float) }]
        };
        match self.function {
            Function::Median => float(values::median(&mut v.to_vec())),
            // A single value has no deviation, but a row.
            Function::Stddev => float(values::stddev(v)),
            Function::Percentile(percentage) => {
                let Some(rank) = values::percentile_rank(v.len(), *percentage) else {
                    return Vec::new();
                };
                let row = rows[values::nth_by_value(v, times, rank) as usize];
                vec![SlotResult { row: Some(row), value: None }]
            }
            other => panic!("BUG: {}() is not of collected values", other.name()),
        }
    }
}

fn gather<T: Copy>(values: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().map(|row| values[*row as usize]).collect()
}
