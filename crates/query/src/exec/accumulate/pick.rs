//! Selectors that show the point they chose: its time, and other columns of its row.

use std::cmp::Ordering;

use model::{Column, Scalar, Values};

use super::kernels::{self, Number};
use super::slots::Run;
use crate::exec::column::Cell;
use crate::functions::Function;

/// The chosen point of each slot.
#[derive(Clone, Debug)]
pub(crate) struct Pick {
    function: Function,
    points: Vec<Option<Point>>,
}

/// A chosen point.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub time: i64,
    pub value: Scalar,
    /// Cells of the other columns.
    pub aux: Vec<Cell>,
}

impl Pick {
    /// Points chosen by min, max, first or last.
    pub(crate) fn new(function: Function) -> Self {
        Self { function, points: Vec::new() }
    }

    /// Makes room for `slots` slots.
    pub(crate) fn grow(&mut self, slots: usize) {
        self.points.resize(slots, None);
    }

    /// Adds the rows of `runs`; `aux` gives the other cells of a row.
    pub(crate) fn add_rows(
        &mut self,
        column: &Column,
        times: &[i64],
        runs: &[Run],
        ascending: bool,
        aux: impl Fn(usize, u32) -> Vec<Cell>,
    ) {
        for run in runs {
            let Some(row) = self.candidate(column, run, ascending) else { continue };
            let value = column.get(row).expect("BUG: a candidate has a value");
            let time = times[row];
            let slot = &mut self.points[run.slot as usize];
            if slot.as_ref().is_none_or(|best| wins(&self.function, time, &value, best)) {
                *slot = Some(Point { time, value, aux: aux(row, run.series) });
            }
        }
    }

    /// The row of a run that is chosen.
    fn candidate(&self, column: &Column, run: &Run, ascending: bool) -> Option<usize> {
        let (start, end) = (run.start as usize, run.end as usize);
        let validity = column.validity.as_ref();
        let largest = match self.function {
            Function::First | Function::Last => {
                return if (self.function == Function::First) == ascending {
                    kernels::first_valid(validity, start, end)
                } else {
                    kernels::last_valid(validity, start, end)
                };
            }
            Function::Max => true,
            _ => false,
        };
        match &column.values {
            Values::Float(v) => extreme(v, column, (start, end), largest, ascending),
            Values::Integer(v) => extreme(v, column, (start, end), largest, ascending),
            Values::Unsigned(v) => extreme(v, column, (start, end), largest, ascending),
            Values::Boolean(v) => {
                let bits: Vec<u64> = (start..end).map(|row| u64::from(v.get(row))).collect();
                let rows = (start..end).filter(|row| column.is_valid(*row));
                let key =
                    |row: &usize| if largest { 1 - bits[row - start] } else { bits[row - start] };
                if ascending { rows.min_by_key(key) } else { rows.rev().min_by_key(key) }
            }
            _ => None,
        }
    }

    /// Adds the points of another set: their slot `from` into `to` here.
    pub(crate) fn merge(&mut self, other: Self, slots: impl Iterator<Item = (usize, usize)>) {
        let mut points = other.points;
        for (from, to) in slots {
            let Some(point) = points[from].take() else { continue };
            let slot = &mut self.points[to];
            if slot.as_ref().is_none_or(|b| wins(&self.function, point.time, &point.value, b)) {
                *slot = Some(point);
            }
        }
    }

    /// The point of `slot`.
    pub(crate) fn point(&self, slot: usize) -> Option<&Point> {
        self.points[slot].as_ref()
    }

    /// Bytes of memory taken, roughly.
    pub(crate) fn memory_bytes(&self) -> usize {
        let aux = self.points.iter().flatten().next().map_or(0, |point| point.aux.len());
        self.points.capacity() * (size_of::<Option<Point>>() + aux * size_of::<Cell>())
    }
}

/// The earliest row with the extreme value.
fn extreme<T: Number>(
    values: &[T],
    column: &Column,
    (start, end): (usize, usize),
    largest: bool,
    ascending: bool,
) -> Option<usize> {
    let mut best: Option<(T, usize)> = None;
    kernels::valid_stretches(column.validity.as_ref(), start, end, |from, to| {
        let stretch = &values[from..to];
        let value = if largest { kernels::max(stretch) } else { kernels::min(stretch) };
        let better = best.is_none_or(|(b, _)| {
            let strictly = if largest { value > b } else { value < b };
            strictly || (!ascending && value == b)
        });
        if better {
            let found = if ascending {
                stretch.iter().position(|v| *v == value)
            } else {
                stretch.iter().rposition(|v| *v == value)
            };
            best = found.map(|at| (value, from + at));
        }
    });
    best.map(|(_, row)| row)
}

/// Whether a point takes the place of the best one so far.
fn wins(function: &Function, time: i64, value: &Scalar, best: &Point) -> bool {
    let order = compare(value, &best.value);
    match function {
        Function::Max => order.is_gt() || (order.is_eq() && time < best.time),
        Function::Min => order.is_lt() || (order.is_eq() && time < best.time),
        Function::First => {
            let tie =
                if matches!(value, Scalar::Boolean(_)) { order.is_lt() } else { order.is_gt() };
            time < best.time || (time == best.time && tie)
        }
        _ => time > best.time || (time == best.time && order.is_gt()),
    }
}

fn compare(a: &Scalar, b: &Scalar) -> Ordering {
    match (a, b) {
        (Scalar::Float(a), Scalar::Float(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
        (Scalar::Integer(a), Scalar::Integer(b)) => a.cmp(b),
        (Scalar::Unsigned(a), Scalar::Unsigned(b)) => a.cmp(b),
        (Scalar::Boolean(a), Scalar::Boolean(b)) => a.cmp(b),
        (Scalar::String(a), Scalar::String(b)) => a.cmp(b),
        _ => panic!("BUG: values of two types"),
    }
}
