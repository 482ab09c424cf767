//! What was collected, slot by slot: the results of functions.
//!
//! Of a slot whose rows lie side by side nothing is copied to find them.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use model::{Column, Scalar, Values};

use super::{Collect, Origin, OriginKey, Segment};
use crate::exec::accumulate::slots::BySlot;
use crate::exec::order;
use crate::functions::{Function, deviation, rank, ranked, values};

/// So many deviations are computed before others are looked at.
const DEVIATIONS_TOGETHER: usize = 64;

/// Collected values with their slots in order.
#[derive(Clone, Debug)]
pub(crate) struct Finished<'a> {
    collect: &'a Collect,
    /// What is made of them.
    function: &'a Function,
    /// The segments of each slot.
    by_slot: Arc<BySlot>,
    /// Of slots whose values are kept their deviation, if that is asked for.
    deviations: Arc<[Option<f64>]>,
}

/// One result of a slot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SlotResult {
    /// The row whose value, time and other columns are shown.
    pub row: Option<u32>,
    /// The value, if it is none of the rows'.
    pub value: Option<Scalar>,
}

impl<'a> Finished<'a> {
    pub(super) fn new(collect: &'a Collect, slots: usize) -> Self {
        let by_slot = Arc::new(collect.by_slot(slots));
        let mut finished =
            Self { collect, function: &collect.function, by_slot, deviations: Arc::new([]) };
        if collect.function == Function::Stddev {
            finished.deviations = match &collect.values.values {
                Values::Float(v) => finished.deviations_of(v, slots),
                Values::Integer(v) => finished.deviations_of(v, slots),
                Values::Unsigned(v) => finished.deviations_of(v, slots),
                other => panic!("BUG: the deviation of {other:?}"),
            };
        }
        finished
    }

    /// The same values for another function.
    pub(crate) fn with(&self, function: &'a Function) -> Self {
        Self { function, ..self.clone() }
    }
}

impl Finished<'_> {
    /// Whether a slot has values.
    pub(crate) fn has(&self, slot: usize) -> bool {
        let segments = self.by_slot.of(slot);
        !segments.is_empty() || self.collect.moments(slot, segments).is_some()
    }

    /// The results of a slot; none if it has no values.
    pub(crate) fn results(&self, slot: usize, key: OriginKey<'_>) -> Vec<SlotResult> {
        if let Some(moments) = self.collect.moments(slot, self.by_slot.of(slot)) {
            return vec![SlotResult { row: None, value: moments.deviation().map(Scalar::Float) }];
        }
        if self.by_slot.of(slot).is_empty() {
            return Vec::new();
        }
        if self.function.keeps_times() {
            let shown = |row: u32| SlotResult { row: Some(row), value: None };
            let mut chosen = self.collect.select(self.collect.rows(self.by_slot.of(slot)), key);
            ranked::by_time(&mut chosen, &self.collect.times);
            return chosen.into_iter().map(shown).collect();
        }
        if let Some(deviation) = self.deviations.get(slot) {
            // A single value has no deviation, but a row.
            return vec![SlotResult { row: None, value: deviation.map(Scalar::Float) }];
        }
        let result = match &self.collect.values.values {
            Values::Float(v) => self.of_numbers(v, slot),
            Values::Integer(v) => self.of_numbers(v, slot),
            Values::Unsigned(v) => self.of_numbers(v, slot),
            other => panic!("BUG: collected {other:?}"),
        };
        result.into_iter().collect()
    }

    /// Time of a row.
    pub(crate) fn time(&self, row: u32) -> i64 {
        self.collect.times[row as usize]
    }

    /// Origin of a row.
    pub(crate) fn origin(&self, row: u32) -> Origin {
        self.collect.origin(row)
    }

    /// The collected values.
    pub(crate) fn values(&self) -> &Column {
        &self.collect.values
    }

    /// The other column `at`.
    pub(crate) fn aux(&self, at: usize) -> &Column {
        &self.collect.aux[at]
    }

    /// The rows of a slot in order of time, where times are equal as they came.
    pub(crate) fn rows(&self, slot: usize) -> Vec<u32> {
        let mut rows = self.collect.rows(self.by_slot.of(slot));
        // Rows of one series come in order of time.
        let segments = self.by_slot.of(slot);
        let are_in_order = segments.iter().all(|segment| self.collect.is_in_order(*segment));
        let runs = if are_in_order { segments.len() } else { rows.len() };
        if runs > 1 {
            order::by_time(&mut rows, runs, |row| self.time(row));
        }
        rows
    }

    /// Values and times of a slot in order of time.
    pub(crate) fn in_order<'v, T: Copy>(
        &'v self,
        v: &'v [T],
        slot: usize,
        ascending: bool,
    ) -> (Cow<'v, [T]>, Cow<'v, [i64]>) {
        let times = &self.collect.times;
        if let (Some(rows), true) = (self.only_range(slot), ascending) {
            return (Cow::Borrowed(&v[rows.clone()]), Cow::Borrowed(&times[rows]));
        }
        let mut rows = self.rows(slot);
        if !ascending {
            rows.reverse();
        }
        let of_rows = |row: &u32| (v[*row as usize], times[*row as usize]);
        let (values, times): (Vec<T>, Vec<i64>) = rows.iter().map(of_rows).unzip();
        (Cow::Owned(values), Cow::Owned(times))
    }

    /// The rows of a slot that lie side by side in order of time.
    fn only_range(&self, slot: usize) -> Option<Range<usize>> {
        let [segment] = self.by_slot.of(slot) else { return None };
        let range = self.collect.segments[*segment as usize].range();
        let is_in_order = self.collect.is_in_order(*segment)
            || self.collect.has_times() && self.collect.times[range.clone()].is_sorted();
        is_in_order.then_some(range)
    }

    /// The deviations of slots, some side by side.
    fn deviations_of<T: values::Number>(&self, v: &[T], slots: usize) -> Arc<[Option<f64>]> {
        let is_kept = |slot: &usize| {
            let folded = self.collect.folded.get(*slot);
            !self.by_slot.of(*slot).is_empty() && folded.is_none_or(|folded| folded.count == 0)
        };
        let kept: Vec<usize> = (0..slots).filter(is_kept).collect();
        let mut found = vec![None; slots];
        for slots in kept.chunks(DEVIATIONS_TOGETHER) {
            let sets: Vec<Cow<'_, [T]>> =
                slots.iter().map(|slot| self.in_order(v, *slot, true).0).collect();
            let sets: Vec<&[T]> = sets.iter().map(|set| &**set).collect();
            for (slot, deviation) in slots.iter().zip(deviation::stddev_of_each(&sets)) {
                found[*slot] = deviation;
            }
        }
        found.into()
    }

    fn ranges(&self, slot: usize) -> impl Iterator<Item = Range<usize>> {
        let segments = self.by_slot.of(slot).iter().map(|at| &self.collect.segments[*at as usize]);
        segments.map(Segment::range)
    }

    fn of_numbers<T: values::Number>(&self, v: &[T], slot: usize) -> Option<SlotResult> {
        let float =
            |value: Option<f64>| Some(SlotResult { row: None, value: value.map(Scalar::Float) });
        let parts = || self.ranges(slot).map(|range| &v[range]).collect::<Vec<&[T]>>();
        match self.function {
            Function::Median => float(rank::median(&parts())),
            Function::Percentile(percentage) => {
                let parts = parts();
                let count = parts.iter().map(|part| part.len()).sum();
                let nth = rank::nth(&parts, rank::percentile_rank(count, *percentage)?)?;
                Some(match self.collect.has_times() {
                    true => SlotResult { row: Some(self.nth_equal(v, slot, nth)), value: None },
                    false => SlotResult { row: None, value: Some(signed(&parts, nth).scalar()) },
                })
            }
            other => panic!("BUG: {}() is not of collected values", other.name()),
        }
    }

    /// Of the rows of a slot with one value the one that comes at a place by time, then as they came.
    fn nth_equal<T: values::Value>(
        &self,
        v: &[T],
        slot: usize,
        rank::Nth { value, among_equals }: rank::Nth<T>,
    ) -> u32 {
        let mut equal: Vec<(i64, u32)> = Vec::new();
        for range in self.ranges(slot) {
            let of_range = v[range.clone()].iter().zip(&self.collect.times[range.clone()]);
            for ((other, time), row) in of_range.zip(range.start as u32..) {
                if other.order(value).is_eq() {
                    equal.push((*time, row));
                }
            }
        }
        equal.select_nth_unstable(among_equals).1.1
    }
}

/// The value itself: of zeros, which differ by their sign alone, the one that came at that place among them.
fn signed<T: values::Number>(parts: &[&[T]], rank::Nth { value, among_equals }: rank::Nth<T>) -> T {
    if value.to_f64() != 0.0 {
        return value;
    }
    let all = parts.iter().flat_map(|part| part.iter()).copied();
    all.filter(|other| other.order(value).is_eq()).nth(among_equals).unwrap_or(value)
}
