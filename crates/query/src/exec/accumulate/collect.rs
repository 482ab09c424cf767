//! Functions that need every value: they are kept, and worked on slot by slot at the end (`finished`).
//!
//! Values, times and other columns lie one behind another in the order they came; segments say
//! which rows belong to which slot. `top()`, `bottom()` and `sample()` take in only rows that may be in the
//! result (`bars`), and let go of those that cannot be in it any more. Of many values of several series `stddev()` keeps
//! what it takes to put their deviation together (`moments`): in order of time they would have to be sorted. The order of
//! adding shows in the last digits, as in sums.

mod bars;
mod finished;
mod moments;

use std::ops::Range;

use model::{Column, FieldType, Values};

use self::bars::{Bars, Goal};
pub(crate) use self::finished::Finished;
use self::moments::Moments;
use super::kernels;
use super::slots::{BySlot, Run, SEVERAL, targets};
use crate::exec::column::{self, append, take};
use crate::functions::Function;
use crate::functions::ranked::{self, Draws, End};

/// Rows are let go when this many and twice what was kept last time are held.
const PRUNE_ROWS: usize = 1 << 16;

/// So many runs are looked at together before each of them is.
const RUNS_TOGETHER: usize = 64;

/// Slots of several series with fewer values keep them: then digits are InfluxDB's.
pub(crate) const FOLD_ROWS_MIN: u32 = 256;

/// Values of many slots.
#[derive(Clone, Debug)]
pub(crate) struct Collect {
    function: Function,
    /// Whether the row that a value is of is asked for, not the value alone.
    shows_rows: bool,
    segments: Vec<Segment>,
    /// None where nobody asks for them.
    times: Vec<i64>,
    values: Column,
    /// Other columns of the rows; one that is known by where a row came from stays empty.
    aux: Vec<Column>,
    draws: Vec<u64>,
    source: Draws,
    prune_at: usize,
    bars: Option<Bars>,
    /// Of each slot what is known of values that are not kept.
    folded: Vec<Moments>,
}

/// Consecutive rows of one slot and one series, or of [`SEVERAL`].
#[derive(Clone, Copy, Debug)]
struct Segment {
    slot: u32,
    start: u32,
    rows: u32,
    input: u32,
    series: u32,
}

impl Segment {
    fn range(&self) -> Range<usize> {
        self.start as usize..(self.start + self.rows) as usize
    }
}

/// Where a row came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    pub input: u32,
    pub series: u32,
}

/// The other columns of a batch: a column, nothing, or what a row's [`Origin`] and time tell.
pub(crate) enum AuxColumn<'a> {
    Column(&'a Column),
    Missing,
    Known,
}

/// What keeps apart rows that `top()` and `bottom()` take one of.
pub(crate) type OriginKey<'a> = &'a dyn Fn(Origin) -> u32;

impl Collect {
    /// No values yet; `aux` are the types of the other columns. `shows_rows`: the row that a value is of is asked for,
    /// not the value alone.
    pub(crate) fn new(
        function: Function,
        shows_rows: bool,
        input: FieldType,
        aux: impl Iterator<Item = FieldType>,
        seed: u64,
    ) -> Self {
        Self {
            bars: Bars::of(&function),
            function,
            shows_rows,
            segments: Vec::new(),
            times: Vec::new(),
            values: Column::new(Values::empty(input)),
            aux: aux.map(|t| Column::new(Values::empty(t))).collect(),
            draws: Vec::new(),
            source: Draws::new(seed),
            prune_at: PRUNE_ROWS,
            folded: Vec::new(),
        }
    }

    /// Makes room for so many more rows, if all are kept: growing copies what is there.
    pub(crate) fn expect(&mut self, rows: usize) {
        if self.bars.is_some() {
            return;
        }
        if self.has_times() {
            self.times.reserve(rows);
        }
        match &mut self.values.values {
            Values::Float(v) => v.reserve(rows),
            Values::Integer(v) => v.reserve(rows),
            Values::Unsigned(v) => v.reserve(rows),
            _ => {}
        }
    }

    pub(super) fn has_times(&self) -> bool {
        match self.function {
            Function::Median => false,
            Function::Percentile(_) => self.shows_rows,
            _ => true,
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
        key: OriginKey<'_>,
    ) {
        let mut bars = self.bars.take();
        let mut draws = Vec::new();
        for runs in runs.chunks(RUNS_TOGETHER) {
            let is_complete = column.validity.is_none();
            if bars.as_ref().is_some_and(|bars| is_complete && bars.pass_none(&column.values, runs))
            {
                continue;
            }
            for run in runs {
                let (start, end) = (run.start as usize, run.end as usize);
                kernels::valid_stretches(column.validity.as_ref(), start, end, |from, to| {
                    let Some(bars) = &mut bars else {
                        return self.add_stretch(column, times, run, input, from..to, aux);
                    };
                    if bars.goal() == Goal::Drawn {
                        draws.clear();
                        draws.extend((from..to).map(|_| self.source.draw()));
                    }
                    let key = key(Origin { input, series: run.series });
                    bars.pass((run.slot, key), &column.values, &draws, times, from..to, |rows| {
                        self.add_stretch(column, times, run, input, rows.clone(), aux);
                        if !draws.is_empty() {
                            let of_rows = rows.start - from..rows.end - from;
                            self.draws.extend_from_slice(&draws[of_rows]);
                        }
                    });
                });
            }
        }
        self.bars = bars;
    }

    fn add_stretch(
        &mut self,
        column: &Column,
        times: &[i64],
        run: &Run,
        input: u32,
        Range { start: from, end: to }: Range<usize>,
        aux: &[AuxColumn<'_>],
    ) {
        if let Some(folded) = self.folded.get_mut(run.slot as usize)
            && folded.count > 0
        {
            *folded = folded.with(Moments::of_rows(&column.values, from..to));
            return;
        }
        let start = self.values.len() as u32;
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
        if self.has_times() {
            self.times.extend_from_slice(&times[from..to]);
        }
        column::extend_plain(&mut self.values.values, &column.values, from..to);
        for (mine, theirs) in self.aux.iter_mut().zip(aux) {
            match theirs {
                AuxColumn::Column(theirs) => append(mine, &column::slice(theirs, from..to)),
                AuxColumn::Missing => mine.extend_missing(to - from),
                AuxColumn::Known => {}
            }
        }
    }

    /// Whether rows of several series, so many in each slot, need not be kept: it would let go of them.
    pub(crate) fn folds(&self, column: &Column, counts: &[u32]) -> bool {
        self.function == Function::Stddev
            && column.validity.is_none()
            && counts.iter().all(|rows| *rows == 0 || *rows >= FOLD_ROWS_MIN)
    }

    /// Adds rows that it [`Self::folds`], each to its slot.
    pub(crate) fn add_folded(&mut self, column: &Column, slots: &[u32], counts: &[u32]) {
        let moments = Moments::of_slots(&column.values, slots, counts);
        self.folded.resize(counts.len().max(self.folded.len()), Moments::default());
        for (folded, of) in self.folded.iter_mut().zip(moments) {
            *folded = folded.with(of);
        }
    }

    /// Lets go of rows that cannot be in the result any more, or need not be kept, if it is time to.
    pub(crate) fn prune(&mut self, slots: usize, key: OriginKey<'_>) {
        if self.values.len() < self.prune_at {
            return;
        }
        if self.function == Function::Stddev {
            return self.fold(slots);
        }
        if !self.function.keeps_times() {
            return;
        }
        let by_slot = self.by_slot(slots);
        let mut kept: Vec<(u32, u32)> = Vec::new();
        for slot in 0..slots {
            let rows = self.rows(by_slot.of(slot));
            kept.extend(self.select(rows, key).into_iter().map(|r| (slot as u32, r)));
        }
        let rows: Vec<u32> = kept.iter().map(|k| k.1).collect();
        let segments = kept.iter().enumerate().map(|(start, (slot, row))| {
            let Origin { input, series } = self.origin(*row);
            Segment { slot: *slot, start: start as u32, rows: 1, input, series }
        });
        self.segments = segments.collect();
        self.keep_rows(&rows);
    }

    /// Lets go of the values of slots that several series have many of.
    fn fold(&mut self, slots: usize) {
        let by_slot = self.by_slot(slots);
        self.folded.resize(slots, Moments::default());
        let mut are_all_kept = true;
        for (slot, folded) in self.folded.iter_mut().enumerate() {
            let segments = by_slot.of(slot).iter().map(|at| &self.segments[*at as usize]);
            let origins = || segments.clone().map(|segment| (segment.input, segment.series));
            let are_of_several = origins().any(|(_, series)| series == SEVERAL)
                || origins().zip(origins().skip(1)).any(|(a, b)| a != b);
            let rows: u32 = segments.clone().map(|segment| segment.rows).sum();
            if folded.count > 0 || are_of_several && rows >= FOLD_ROWS_MIN {
                let moments = |of: &Segment| Moments::of_rows(&self.values.values, of.range());
                are_all_kept &= rows == 0;
                *folded = segments.map(moments).fold(*folded, Moments::with);
            }
        }
        if are_all_kept {
            self.prune_at = self.values.len() * 2;
            return;
        }
        let (mut rows, folded) = (Vec::new(), &self.folded);
        self.segments.retain_mut(|segment| {
            let is_kept = folded[segment.slot as usize].count == 0;
            if is_kept {
                let range = segment.range();
                segment.start = rows.len() as u32;
                rows.extend(range.start as u32..range.end as u32);
            }
            is_kept
        });
        self.keep_rows(&rows);
    }

    fn keep_rows(&mut self, rows: &[u32]) {
        self.times = rows.iter().map(|row| self.times[*row as usize]).collect();
        self.values = take(&self.values, rows);
        for column in &mut self.aux {
            if !column.is_empty() {
                *column = take(column, rows);
            }
        }
        if !self.draws.is_empty() {
            self.draws = rows.iter().map(|row| self.draws[*row as usize]).collect();
        }
        self.prune_at = PRUNE_ROWS.max(self.values.len() * 2);
    }

    /// What is known of the values of a slot that were not kept, with those that were.
    fn moments(&self, slot: usize, segments: &[u32]) -> Option<Moments> {
        let folded = self.folded.get(slot).filter(|folded| folded.count > 0)?;
        let kept = segments.iter().map(|at| self.segments[*at as usize].range());
        let moments = |rows| Moments::of_rows(&self.values.values, rows);
        Some(kept.map(moments).fold(*folded, Moments::with))
    }

    /// The rows of a slot that `top()`, `bottom()` or `sample()` choose, best first.
    fn select(&self, rows: Vec<u32>, key: OriginKey<'_>) -> Vec<u32> {
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
                    let key = |row| key(self.origin(row));
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
        let target = targets(slots);
        let base = self.values.len() as u32;
        self.segments.extend(other.segments.into_iter().map(|segment| Segment {
            slot: target[segment.slot as usize],
            start: segment.start + base,
            ..segment
        }));
        if self.values.is_empty() {
            // Nothing need be copied.
            (self.times, self.values, self.aux) = (other.times, other.values, other.aux);
        } else {
            self.times.extend(other.times);
            append(&mut self.values, &other.values);
            for (mine, theirs) in self.aux.iter_mut().zip(&other.aux) {
                append(mine, theirs);
            }
        }
        self.draws.extend(other.draws);
        for (theirs, slot) in other.folded.into_iter().zip(target) {
            if theirs.count > 0 {
                let slot = slot as usize;
                self.folded.resize(self.folded.len().max(slot + 1), Moments::default());
                self.folded[slot] = self.folded[slot].with(theirs);
            }
        }
    }

    /// Bytes of memory taken.
    pub(crate) fn memory_bytes(&self) -> usize {
        let aux: usize = self.aux.iter().map(|column| column.values.memory_bytes()).sum();
        self.times.capacity() * 8
            + self.draws.capacity() * 8
            + self.values.values.memory_bytes()
            + self.segments.capacity() * size_of::<Segment>()
            + self.folded.capacity() * size_of::<Moments>()
            + self.bars.as_ref().map_or(0, Bars::memory_bytes)
            + aux
    }

    /// The segments of each slot.
    fn by_slot(&self, slots: usize) -> BySlot {
        BySlot::new(slots, self.segments.iter().map(|segment| segment.slot))
    }

    /// The rows of segments, as they came.
    fn rows(&self, segments: &[u32]) -> Vec<u32> {
        let segments = segments.iter().map(|at| &self.segments[*at as usize]);
        segments.flat_map(|segment| segment.start..segment.start + segment.rows).collect()
    }

    /// Whether rows of a segment are in order of time.
    fn is_in_order(&self, segment: u32) -> bool {
        self.segments[segment as usize].series != SEVERAL
    }

    /// Where a row came from.
    fn origin(&self, row: u32) -> Origin {
        let behind = self.segments.partition_point(|segment| segment.start <= row);
        let segment = &self.segments[behind - 1];
        Origin { input: segment.input, series: segment.series }
    }

    /// Everything collected, ready to be worked on slot by slot.
    pub(crate) fn finish(&self, slots: usize) -> Finished<'_> {
        Finished::new(self, slots)
    }
}

#[cfg(test)]
mod tests {
    use model::Scalar;
    use proptest::prelude::*;

    use super::*;
    use crate::functions::deviation::stddev;

    const SLOTS: usize = 3;

    /// Adds the values of a series, `PRUNE_ROWS / 2` at least, to the slots in turn, in stretches of this length.
    fn add(collect: &mut Collect, series: u32, stretch: usize) -> [Vec<i64>; SLOTS] {
        let values: Vec<i64> = (0..PRUNE_ROWS as i64 / 2).map(|at| at * at % 977).collect();
        let times: Vec<i64> = (0..values.len() as i64).collect();
        let (mut runs, mut added) = (Vec::new(), [const { Vec::new() }; SLOTS]);
        for (at, part) in values.chunks(stretch).enumerate() {
            // The last slot has rows of the first series only.
            let slot = if series == 0 { at % SLOTS } else { at % (SLOTS - 1) };
            let start = (at * stretch) as u32;
            runs.push(Run { slot: slot as u32, start, end: start + part.len() as u32, series });
            added[slot].extend_from_slice(part);
        }
        let column = Column::new(Values::Integer(values));
        collect.add_rows(&column, &times, &runs, 0, &[], &|_| 0);
        collect.prune(SLOTS, &|_| 0);
        added
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn deviations_are_those_of_all_values(
            series in prop::collection::vec(prop::collection::vec(20usize..3000, 1..5), 1..4),
        ) {
            let none = std::iter::empty;
            let new = || Collect::new(Function::Stddev, false, FieldType::Integer, none(), 1);
            let (mut all, mut expected) = (new(), [const { Vec::new() }; SLOTS]);
            let mut number = 0;
            for of_thread in &series {
                let mut collect = new();
                for stretch in of_thread {
                    let added = add(&mut collect, number, *stretch);
                    let kept = collect.values.len();
                    prop_assert!(kept < PRUNE_ROWS, "{kept} values are kept");
                    expected.iter_mut().zip(added).for_each(|(all, added)| all.extend(added));
                    number += 1;
                }
                all.merge(collect, &[(0, 0), (1, 1), (2, 2)]);
            }
            let finished = all.finish(SLOTS);
            for (slot, values) in expected.iter().enumerate() {
                let found: Vec<_> =
                    finished.results(slot, &|_| 0).into_iter().map(|result| result.value).collect();
                let [Some(Scalar::Float(found))] = found.as_slice() else {
                    panic!("{found:?}");
                };
                let wanted = stddev(values).unwrap();
                prop_assert!((found - wanted).abs() < 1e-9 * wanted, "{found} {wanted}");
                if slot == SLOTS - 1 {
                    prop_assert_eq!(*found, wanted, "values of one series are added in their order");
                }
            }
        }

        #[test]
        fn rows_of_several_series_are_as_those_of_each(
            series in prop::collection::vec(
                prop::collection::btree_map(0i64..40, -5i64..5, 1..30), 1..5),
            function in prop::sample::select(vec![
                Function::Median, Function::Percentile(40.0), Function::Stddev,
            ]),
            shows_rows in any::<bool>(),
        ) {
            let (mut times, mut values, mut runs) = (Vec::new(), Vec::new(), Vec::new());
            for (rows, series) in series.iter().zip(0..) {
                let start = times.len() as u32;
                times.extend(rows.keys());
                values.extend(rows.values());
                runs.push(Run { slot: 0, start, end: times.len() as u32, series });
            }
            let joined = Run { slot: 0, start: 0, end: times.len() as u32, series: SEVERAL };
            let column = Column::new(Values::Integer(values));
            let results = |runs: &[Run]| {
                let (function, none) = (function.clone(), std::iter::empty());
                let mut collect =
                    Collect::new(function, shows_rows, FieldType::Integer, none, 1);
                collect.add_rows(&column, &times, runs, 0, &[], &|_| 0);
                collect.finish(1).results(0, &|_| 0)
            };
            prop_assert_eq!(results(&[joined]), results(&runs));
        }
    }
}
