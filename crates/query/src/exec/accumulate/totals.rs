//! Counts, sums, extremes and ends of one field, for many slots side by side.
//!
//! A slot is a group in a window. Every part is a column over slots, and only the parts that some
//! function wants are kept. Also takes the store's summaries in place of rows.

mod scattered;
mod steady;

use std::borrow::Cow;
use std::ops::Range;

use model::{Bitmap, Column, FieldSummaries, FieldType, TimedValues, Values};

use super::kernels::{self, Number};
use super::slots::{Run, SlotSpan};
use crate::functions::Function;
pub(crate) use scattered::ShortRun;
pub(crate) use steady::{Stretch, cut as cut_stretches};

/// Which parts are kept besides the count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    pub sum: bool,
    pub min: bool,
    pub max: bool,
    pub first: bool,
    pub last: bool,
}

impl Parts {
    /// Adds what `function` needs; `false` if totals cannot give it.
    pub(crate) fn add(&mut self, function: &Function) -> bool {
        match function {
            Function::Count => {}
            Function::Sum | Function::Mean => self.sum = true,
            Function::Min => self.min = true,
            Function::Max => self.max = true,
            Function::Spread => (self.min, self.max) = (true, true),
            Function::First => self.first = true,
            Function::Last => self.last = true,
            _ => return false,
        }
        true
    }

    /// Bytes a slot takes.
    pub(crate) fn slot_bytes(self) -> usize {
        8 * (1 + usize::from(self.sum) + usize::from(self.min) + usize::from(self.max))
            + 16 * (usize::from(self.first) + usize::from(self.last))
    }
}

/// Totals of one field.
#[derive(Clone, Debug)]
pub(crate) enum Totals {
    Float(NumberTotals<f64>),
    Integer(NumberTotals<i64>),
    Unsigned(NumberTotals<u64>),
    /// Booleans, as 0 and 1.
    Boolean(NumberTotals<u64>),
    Text(TextTotals),
}

/// Totals of numbers.
#[derive(Clone, Debug)]
pub(crate) struct NumberTotals<T> {
    parts: Parts,
    /// Of two values at the earliest time the smaller one counts: InfluxDB's rule for booleans.
    first_prefers_small: bool,
    count: Vec<u64>,
    sum: Vec<T>,
    min: Vec<T>,
    max: Vec<T>,
    first: Vec<(i64, T)>,
    last: Vec<(i64, T)>,
}

/// Totals of text: it has no sums and no extremes.
#[derive(Clone, Debug)]
pub(crate) struct TextTotals {
    parts: Parts,
    count: Vec<u64>,
    first: Vec<(i64, Box<str>)>,
    last: Vec<(i64, Box<str>)>,
}

impl Totals {
    /// Empty totals of a field of type `field_type`.
    pub(crate) fn new(field_type: FieldType, parts: Parts) -> Self {
        match field_type {
            FieldType::Float => Self::Float(NumberTotals::new(parts, false)),
            FieldType::Integer => Self::Integer(NumberTotals::new(parts, false)),
            FieldType::Unsigned => Self::Unsigned(NumberTotals::new(parts, false)),
            FieldType::Boolean => Self::Boolean(NumberTotals::new(parts, true)),
            FieldType::String => Self::Text(TextTotals {
                parts,
                count: Vec::new(),
                first: Vec::new(),
                last: Vec::new(),
            }),
        }
    }

    /// Makes room for `slots` slots.
    pub(crate) fn grow(&mut self, slots: usize) {
        match self {
            Self::Float(t) => t.grow(slots),
            Self::Integer(t) => t.grow(slots),
            Self::Unsigned(t) | Self::Boolean(t) => t.grow(slots),
            Self::Text(t) => t.grow(slots),
        }
    }

    /// Adds the rows of `runs`, which are cut into `stretches`. `column` has the totals' type.
    pub(crate) fn add_rows(
        &mut self,
        column: &Column,
        times: &[i64],
        (runs, stretches): (&[Run], &[Stretch]),
        ascending: bool,
    ) {
        let (validity, of) = (column.validity.as_ref(), (runs, stretches));
        match (self, &column.values) {
            (Self::Float(t), Values::Float(v)) => t.add_rows(v, validity, times, of, ascending),
            (Self::Integer(t), Values::Integer(v)) => {
                t.add_rows(v, validity, times, of, ascending);
            }
            (Self::Unsigned(t), Values::Unsigned(v)) => {
                t.add_rows(v, validity, times, of, ascending);
            }
            (Self::Boolean(t), Values::Boolean(v)) => {
                let v: Vec<u64> = (0..v.len()).map(|row| u64::from(v.get(row))).collect();
                t.add_rows(&v, validity, times, of, ascending);
            }
            (Self::Text(t), values) => t.add_rows(values, validity, times, runs, ascending),
            _ => panic!("BUG: totals of another type"),
        }
    }

    /// Adds summaries of rows: of each span in `spans`, by its number, to the slot it belongs to.
    pub(crate) fn add_summaries(&mut self, spans: &[SlotSpan], field: &FieldSummaries) {
        match self {
            Self::Float(t) => t.add_summaries(spans, field, |values| match values {
                Values::Float(v) => Some(Cow::Borrowed(v)),
                _ => None,
            }),
            Self::Integer(t) => t.add_summaries(spans, field, |values| match values {
                Values::Integer(v) => Some(Cow::Borrowed(v)),
                _ => None,
            }),
            Self::Unsigned(t) => t.add_summaries(spans, field, |values| match values {
                Values::Unsigned(v) => Some(Cow::Borrowed(v)),
                _ => None,
            }),
            Self::Boolean(t) => t.add_summaries(spans, field, |values| match values {
                Values::Boolean(v) => Some((0..v.len()).map(|at| u64::from(v.get(at))).collect()),
                _ => None,
            }),
            Self::Text(t) => t.add_summaries(spans, field),
        }
    }

    /// Adds totals of other rows: slot `from` of theirs into `to` of these, for each pair.
    pub(crate) fn merge(&mut self, other: &Self, slots: impl Iterator<Item = (usize, usize)>) {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => a.merge(b, slots),
            (Self::Integer(a), Self::Integer(b)) => a.merge(b, slots),
            (Self::Unsigned(a), Self::Unsigned(b)) | (Self::Boolean(a), Self::Boolean(b)) => {
                a.merge(b, slots);
            }
            (Self::Text(a), Self::Text(b)) => a.merge(b, slots),
            _ => panic!("BUG: totals of two types"),
        }
    }

    /// Number of values of `slot`.
    pub(crate) fn count(&self, slot: usize) -> u64 {
        match self {
            Self::Float(t) => t.count[slot],
            Self::Integer(t) => t.count[slot],
            Self::Unsigned(t) | Self::Boolean(t) => t.count[slot],
            Self::Text(t) => t.count[slot],
        }
    }

    /// These slots as a range, if they ascend side by side and all have values.
    pub(crate) fn all_counted(&self, slots: &[(usize, i64)]) -> Option<Range<usize>> {
        let ((first, _), (last, _)) = (slots.first()?, slots.last()?);
        let range = *first..last + 1;
        // No two slots of a group are the same: so many from one to another are all there are.
        let side_by_side = range.len() == slots.len() && slots.is_sorted_by_key(|slot| slot.0);
        let counts = match self {
            Self::Float(t) => &t.count,
            Self::Integer(t) => &t.count,
            Self::Unsigned(t) | Self::Boolean(t) => &t.count,
            Self::Text(t) => &t.count,
        };
        (side_by_side && counts[range.clone()].iter().all(|count| *count > 0)).then_some(range)
    }

    /// The results of `function` for `slots`; of those without values anything.
    pub(crate) fn results(
        &self,
        function: &Function,
        slots: impl Iterator<Item = usize>,
    ) -> Column {
        if *function == Function::Count {
            let counts = slots.map(|slot| self.count(slot).cast_signed());
            return Column::new(Values::Integer(counts.collect()));
        }
        Column::new(match self {
            Self::Float(t) => Values::Float(match function {
                Function::Mean => t.each(slots, |t, s| t.sum[s] / t.count[s] as f64),
                Function::Spread => t.each(slots, |t, s| t.max[s] - t.min[s]),
                other => t.part(other, slots),
            }),
            Self::Integer(t) => match function {
                Function::Mean => {
                    Values::Float(t.each(slots, |t, s| t.sum[s] as f64 / t.count[s] as f64))
                }
                Function::Spread => {
                    Values::Integer(t.each(slots, |t, s| t.max[s].wrapping_sub(t.min[s])))
                }
                other => Values::Integer(t.part(other, slots)),
            },
            Self::Unsigned(t) => match function {
                Function::Mean => {
                    Values::Float(t.each(slots, |t, s| t.sum[s] as f64 / t.count[s] as f64))
                }
                Function::Spread => {
                    Values::Unsigned(t.each(slots, |t, s| t.max[s].wrapping_sub(t.min[s])))
                }
                other => Values::Unsigned(t.part(other, slots)),
            },
            Self::Boolean(t) => {
                let bits = t.part(function, slots);
                Values::Boolean(bits.into_iter().map(|bit| bit == 1).collect())
            }
            Self::Text(t) => {
                let ends = if *function == Function::First { &t.first } else { &t.last };
                Values::String(slots.map(|slot| &*ends[slot].1).collect())
            }
        })
    }

    /// Bytes of memory taken.
    pub(crate) fn memory_bytes(&self) -> usize {
        let (slots, parts) = match self {
            Self::Float(t) => (t.count.capacity(), t.parts),
            Self::Integer(t) => (t.count.capacity(), t.parts),
            Self::Unsigned(t) | Self::Boolean(t) => (t.count.capacity(), t.parts),
            Self::Text(t) => (t.count.capacity() * 4, t.parts),
        };
        slots * parts.slot_bytes()
    }
}

impl<T: Number> NumberTotals<T> {
    fn new(parts: Parts, first_prefers_small: bool) -> Self {
        Self {
            parts,
            first_prefers_small,
            count: Vec::new(),
            sum: Vec::new(),
            min: Vec::new(),
            max: Vec::new(),
            first: Vec::new(),
            last: Vec::new(),
        }
    }

    fn grow(&mut self, slots: usize) {
        let zero = T::default();
        self.count.resize(slots, 0);
        let grow = |wanted: bool, part: &mut Vec<T>| {
            if wanted {
                part.resize(slots, zero);
            }
        };
        grow(self.parts.sum, &mut self.sum);
        grow(self.parts.min, &mut self.min);
        grow(self.parts.max, &mut self.max);
        if self.parts.first {
            self.first.resize(slots, (0, zero));
        }
        if self.parts.last {
            self.last.resize(slots, (0, zero));
        }
    }

    fn add_rows(
        &mut self,
        values: &[T],
        validity: Option<&Bitmap>,
        times: &[i64],
        (runs, stretches): (&[Run], &[Stretch]),
        ascending: bool,
    ) {
        if let Some(valid) = validity {
            return self.add_valid(values, valid, times, runs, ascending);
        }
        let has_ends = self.parts.first || self.parts.last;
        for Stretch { runs: of_stretch, rows_each } in stretches {
            let runs = &runs[of_stretch.clone()];
            match rows_each.filter(|_| !has_ends) {
                Some(rows) => self.add_steady(values, runs, rows),
                None => self.add_runs(values, times, runs, ascending),
            }
        }
    }

    /// Rows that all have a value. Runs are short: what is done besides adding values counts.
    fn add_runs(&mut self, values: &[T], times: &[i64], runs: &[Run], ascending: bool) {
        let parts = self.parts;
        for run in runs {
            let (slot, start, end) = (run.slot as usize, run.start as usize, run.end as usize);
            let of_run = &values[start..end];
            let fresh = self.count[slot] == 0;
            if parts.sum {
                self.sum[slot] = self.sum[slot].plus(kernels::sum(of_run));
            }
            if parts.min {
                let min = kernels::min(of_run);
                if fresh || min < self.min[slot] {
                    self.min[slot] = min;
                }
            }
            if parts.max {
                let max = kernels::max(of_run);
                if fresh || max > self.max[slot] {
                    self.max[slot] = max;
                }
            }
            let (early, late) = if ascending { (start, end - 1) } else { (end - 1, start) };
            if parts.first {
                self.add_first(slot, (times[early], values[early]));
            }
            if parts.last {
                self.add_last(slot, (times[late], values[late]));
            }
            self.count[slot] += of_run.len() as u64;
        }
    }

    fn add_valid(
        &mut self,
        values: &[T],
        validity: &Bitmap,
        times: &[i64],
        runs: &[Run],
        ascending: bool,
    ) {
        let (parts, validity) = (self.parts, Some(validity));
        for run in runs {
            let (slot, start, end) = (run.slot as usize, run.start as usize, run.end as usize);
            let fresh = self.count[slot] == 0;
            let mut counted = 0;
            kernels::valid_stretches(validity, start, end, |from, to| {
                let stretch = &values[from..to];
                let first = fresh && counted == 0;
                if parts.sum {
                    self.sum[slot] = self.sum[slot].plus(kernels::sum(stretch));
                }
                if parts.min {
                    let min = kernels::min(stretch);
                    if first || min < self.min[slot] {
                        self.min[slot] = min;
                    }
                }
                if parts.max {
                    let max = kernels::max(stretch);
                    if first || max > self.max[slot] {
                        self.max[slot] = max;
                    }
                }
                counted += to - from;
            });
            if counted == 0 {
                continue;
            }
            if parts.first || parts.last {
                let head = kernels::first_valid(validity, start, end);
                let tail = kernels::last_valid(validity, start, end);
                let (early, late) = if ascending { (head, tail) } else { (tail, head) };
                if let Some(row) = early.filter(|_| parts.first) {
                    self.add_first(slot, (times[row], values[row]));
                }
                if let Some(row) = late.filter(|_| parts.last) {
                    self.add_last(slot, (times[row], values[row]));
                }
            }
            self.count[slot] += counted as u64;
        }
    }

    fn add_first(&mut self, slot: usize, (time, value): (i64, T)) {
        let (best_time, best) = self.first[slot];
        let wins = if self.first_prefers_small { value < best } else { value > best };
        if self.count[slot] == 0 || time < best_time || (time == best_time && wins) {
            self.first[slot] = (time, value);
        }
    }

    fn add_last(&mut self, slot: usize, (time, value): (i64, T)) {
        let (best_time, best) = self.last[slot];
        if self.count[slot] == 0 || time > best_time || (time == best_time && value > best) {
            self.last[slot] = (time, value);
        }
    }

    fn add_summaries<'a>(
        &mut self,
        spans: &[SlotSpan],
        field: &'a FieldSummaries,
        numbers: impl Fn(&'a Values) -> Option<Cow<'a, [T]>>,
    ) where
        T: 'a,
    {
        let parts = self.parts;
        let part = |is_used: bool, values: &'a Values| match is_used {
            true => numbers(values).expect("BUG: a summary has the field's type"),
            false => Cow::Borrowed(&[][..]),
        };
        let (sums, mins) = (part(parts.sum, &field.sums), part(parts.min, &field.mins));
        let maxs = part(parts.max, &field.maxs);
        let firsts = part(parts.first, &field.firsts.values);
        let lasts = part(parts.last, &field.lasts.values);
        for SlotSpan { slot, span } in spans {
            let (slot, span) = (*slot as usize, *span as usize);
            let count = field.counts[span];
            if count == 0 {
                continue;
            }
            let fresh = self.count[slot] == 0;
            if parts.sum {
                self.sum[slot] = self.sum[slot].plus(sums[span]);
            }
            if parts.min && (fresh || mins[span] < self.min[slot]) {
                self.min[slot] = mins[span];
            }
            if parts.max && (fresh || maxs[span] > self.max[slot]) {
                self.max[slot] = maxs[span];
            }
            if parts.first {
                self.add_first(slot, (field.firsts.times[span], firsts[span]));
            }
            if parts.last {
                self.add_last(slot, (field.lasts.times[span], lasts[span]));
            }
            self.count[slot] += count;
        }
    }

    fn merge(&mut self, other: &Self, slots: impl Iterator<Item = (usize, usize)>) {
        for (from, to) in slots {
            if other.count[from] == 0 {
                continue;
            }
            let fresh = self.count[to] == 0;
            if self.parts.sum {
                self.sum[to] = self.sum[to].plus(other.sum[from]);
            }
            if self.parts.min && (fresh || other.min[from] < self.min[to]) {
                self.min[to] = other.min[from];
            }
            if self.parts.max && (fresh || other.max[from] > self.max[to]) {
                self.max[to] = other.max[from];
            }
            if self.parts.first {
                self.add_first(to, other.first[from]);
            }
            if self.parts.last {
                self.add_last(to, other.last[from]);
            }
            self.count[to] += other.count[from];
        }
    }

    fn each<R>(
        &self,
        slots: impl Iterator<Item = usize>,
        result: impl Fn(&Self, usize) -> R,
    ) -> Vec<R> {
        slots.map(|slot| result(self, slot)).collect()
    }

    fn part(&self, function: &Function, slots: impl Iterator<Item = usize>) -> Vec<T> {
        match function {
            Function::Sum => self.each(slots, |t, s| t.sum[s]),
            Function::Min => self.each(slots, |t, s| t.min[s]),
            Function::Max => self.each(slots, |t, s| t.max[s]),
            Function::First => self.each(slots, |t, s| t.first[s].1),
            Function::Last => self.each(slots, |t, s| t.last[s].1),
            other => panic!("BUG: {}() is no total", other.name()),
        }
    }
}

impl TextTotals {
    fn grow(&mut self, slots: usize) {
        self.count.resize(slots, 0);
        if self.parts.first {
            self.first.resize(slots, (0, Box::default()));
        }
        if self.parts.last {
            self.last.resize(slots, (0, Box::default()));
        }
    }

    fn add_rows(
        &mut self,
        values: &Values,
        validity: Option<&Bitmap>,
        times: &[i64],
        runs: &[Run],
        ascending: bool,
    ) {
        let text = |row: usize| match values {
            Values::String(v) => v.get(row),
            Values::Dictionary(codes, texts) => texts.get(codes[row] as usize),
            _ => panic!("BUG: totals of another type"),
        };
        for run in runs {
            let (slot, start, end) = (run.slot as usize, run.start as usize, run.end as usize);
            let mut counted = 0;
            kernels::valid_stretches(validity, start, end, |from, to| counted += to - from);
            if counted == 0 {
                continue;
            }
            let head = kernels::first_valid(validity, start, end);
            let tail = kernels::last_valid(validity, start, end);
            let (early, late) = if ascending { (head, tail) } else { (tail, head) };
            if let Some(row) = early.filter(|_| self.parts.first) {
                self.add_first(slot, times[row], text(row));
            }
            if let Some(row) = late.filter(|_| self.parts.last) {
                self.add_last(slot, times[row], text(row));
            }
            self.count[slot] += counted as u64;
        }
    }

    fn add_first(&mut self, slot: usize, time: i64, text: &str) {
        let (best_time, best) = &self.first[slot];
        if self.count[slot] == 0 || time < *best_time || (time == *best_time && text > &**best) {
            self.first[slot] = (time, text.into());
        }
    }

    fn add_last(&mut self, slot: usize, time: i64, text: &str) {
        let (best_time, best) = &self.last[slot];
        if self.count[slot] == 0 || time > *best_time || (time == *best_time && text > &**best) {
            self.last[slot] = (time, text.into());
        }
    }

    fn add_summaries(&mut self, spans: &[SlotSpan], field: &FieldSummaries) {
        fn end(ends: &TimedValues, span: usize) -> (i64, &str) {
            match &ends.values {
                Values::String(texts) => (ends.times[span], texts.get(span)),
                _ => panic!("BUG: a summary has the field's type"),
            }
        }
        for SlotSpan { slot, span } in spans {
            let (slot, span) = (*slot as usize, *span as usize);
            if field.counts[span] == 0 {
                continue;
            }
            if self.parts.first {
                let (time, text) = end(&field.firsts, span);
                self.add_first(slot, time, text);
            }
            if self.parts.last {
                let (time, text) = end(&field.lasts, span);
                self.add_last(slot, time, text);
            }
            self.count[slot] += field.counts[span];
        }
    }

    fn merge(&mut self, other: &Self, slots: impl Iterator<Item = (usize, usize)>) {
        for (from, to) in slots {
            if other.count[from] == 0 {
                continue;
            }
            if self.parts.first {
                let (time, text) = &other.first[from];
                self.add_first(to, *time, text);
            }
            if self.parts.last {
                let (time, text) = &other.last[from];
                self.add_last(to, *time, text);
            }
            self.count[to] += other.count[from];
        }
    }
}
