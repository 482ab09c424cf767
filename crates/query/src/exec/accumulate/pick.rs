//! Selectors that show the point they chose: its time, and other columns of its row.

use std::cmp::Ordering;

use model::{Column, FieldType, Values};

use super::kernels::{self, Number};
use super::slots::Run;
use crate::exec::column::Cell;
use crate::functions::Function;

/// The chosen point of each slot, column by column.
#[derive(Clone, Debug)]
pub(crate) struct Pick {
    function: Function,
    is_there: Vec<bool>,
    times: Vec<i64>,
    values: Chosen,
    /// Cells of the other columns, by slot; empty if there are none.
    aux: Vec<Vec<Cell>>,
    /// With other columns the input and the series of each point: of points that are alike the first by these is shown, in
    /// whichever order they were met.
    origins: Vec<(u32, u32)>,
    has_aux: bool,
}

/// Values by slot.
#[derive(Clone, Debug)]
enum Chosen {
    Float(Vec<f64>),
    Integer(Vec<i64>),
    Unsigned(Vec<u64>),
    Boolean(Vec<bool>),
    Text(Vec<Box<str>>),
}

/// The same expression over the values, whichever type they have.
macro_rules! each_type {
    ($chosen:expr, $values:ident => $body:expr) => {
        match $chosen {
            Chosen::Float($values) => $body,
            Chosen::Integer($values) => $body,
            Chosen::Unsigned($values) => $body,
            Chosen::Boolean($values) => $body,
            Chosen::Text($values) => $body,
        }
    };
}

impl Pick {
    /// Points with values of type `input` chosen by min, max, first or last.
    pub(crate) fn new(function: Function, input: FieldType, has_aux: bool) -> Self {
        let values = match input {
            FieldType::Float => Chosen::Float(Vec::new()),
            FieldType::Integer => Chosen::Integer(Vec::new()),
            FieldType::Unsigned => Chosen::Unsigned(Vec::new()),
            FieldType::Boolean => Chosen::Boolean(Vec::new()),
            FieldType::String => Chosen::Text(Vec::new()),
        };
        let (is_there, times) = (Vec::new(), Vec::new());
        let (aux, origins) = (Vec::new(), Vec::new());
        Self { function, is_there, times, values, aux, origins, has_aux }
    }

    /// Makes room for `slots` slots.
    pub(crate) fn grow(&mut self, slots: usize) {
        self.is_there.resize(slots, false);
        self.times.resize(slots, 0);
        each_type!(&mut self.values, values => values.resize(slots, Default::default()));
        if self.has_aux {
            self.aux.resize(slots, Vec::new());
            self.origins.resize(slots, (0, 0));
        }
    }

    /// Adds the rows of `runs` of an input; `aux` gives the other cells of a row.
    pub(crate) fn add_rows(
        &mut self,
        column: &Column,
        times: &[i64],
        (input, runs): (u32, &[Run]),
        ascending: bool,
        aux: impl Fn(usize, u32) -> Vec<Cell>,
    ) {
        for run in runs {
            let Some(row) = self.candidate(column, run, ascending) else { continue };
            let (slot, time) = (run.slot as usize, times[row]);
            let origin = (input, run.series);
            if self.offer(slot, time, (&column.values, row), origin) && self.has_aux {
                self.aux[slot] = aux(row, run.series);
            }
        }
    }

    /// Takes a row's value for a slot if it wins there; whether it does.
    #[inline]
    fn offer(
        &mut self,
        slot: usize,
        time: i64,
        (values, row): (&Values, usize),
        origin: (u32, u32),
    ) -> bool {
        let best = self.is_there[slot].then(|| self.times[slot]);
        let shown = self.has_aux.then(|| self.origins[slot]);
        let function = &self.function;
        let takes = |is_boolean: bool, order: Ordering| {
            best.is_none_or(|best| match contest(function, is_boolean, time, order, best) {
                Ordering::Greater => true,
                Ordering::Equal => shown.is_some_and(|shown| origin < shown),
                Ordering::Less => false,
            })
        };
        macro_rules! number {
            ($mine:expr, $value:expr) => {{
                let (mine, value) = (&mut $mine[slot], $value);
                let wins = takes(false, value.partial_cmp(mine).unwrap_or(Ordering::Equal));
                if wins {
                    *mine = value;
                }
                wins
            }};
        }
        let wins = match (&mut self.values, values) {
            (Chosen::Float(mine), Values::Float(v)) => number!(mine, v[row]),
            (Chosen::Integer(mine), Values::Integer(v)) => number!(mine, v[row]),
            (Chosen::Unsigned(mine), Values::Unsigned(v)) => number!(mine, v[row]),
            (Chosen::Boolean(mine), Values::Boolean(v)) => {
                let (mine, value) = (&mut mine[slot], v.get(row));
                let wins = takes(true, value.cmp(mine));
                if wins {
                    *mine = value;
                }
                wins
            }
            (Chosen::Text(mine), Values::String(_) | Values::Dictionary(..)) => {
                let (mine, value) = (&mut mine[slot], text_at(values, row));
                let wins = takes(false, value.cmp(mine));
                if wins {
                    *mine = value.into();
                }
                wins
            }
            (_, other) => panic!("BUG: {other:?} are values of another type"),
        };
        if wins {
            self.is_there[slot] = true;
            self.times[slot] = time;
            if self.has_aux {
                self.origins[slot] = origin;
            }
        }
        wins
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
    pub(crate) fn merge(&mut self, mut other: Self, slots: impl Iterator<Item = (usize, usize)>) {
        let is_boolean = matches!(self.values, Chosen::Boolean(_));
        for (from, to) in slots {
            if !other.is_there[from] {
                continue;
            }
            let time = other.times[from];
            let order = || self.values.compare(to, &other.values, from);
            let (function, best) = (&self.function, self.times[to]);
            if self.is_there[to] {
                let is_first = || self.has_aux && other.origins[from] < self.origins[to];
                match contest(function, is_boolean, time, order(), best) {
                    Ordering::Greater => {}
                    Ordering::Equal if is_first() => {}
                    Ordering::Equal | Ordering::Less => continue,
                }
            }
            self.is_there[to] = true;
            self.times[to] = time;
            self.values.take(to, &mut other.values, from);
            if self.has_aux {
                self.aux[to] = std::mem::take(&mut other.aux[from]);
                self.origins[to] = other.origins[from];
            }
        }
    }

    /// Whether a slot has a point.
    pub(crate) fn has(&self, slot: usize) -> bool {
        self.is_there[slot]
    }

    /// The time of a slot's point.
    pub(crate) fn time(&self, slot: usize) -> i64 {
        self.times[slot]
    }

    /// The other cells of a slot's point.
    pub(crate) fn aux(&self, slot: usize) -> &[Cell] {
        self.aux.get(slot).map_or(&[], Vec::as_slice)
    }

    /// The values of the points of some slots, which all have one.
    pub(crate) fn values(&self, slots: impl Iterator<Item = usize>) -> Values {
        match &self.values {
            Chosen::Float(v) => Values::Float(slots.map(|slot| v[slot]).collect()),
            Chosen::Integer(v) => Values::Integer(slots.map(|slot| v[slot]).collect()),
            Chosen::Unsigned(v) => Values::Unsigned(slots.map(|slot| v[slot]).collect()),
            Chosen::Boolean(v) => Values::Boolean(slots.map(|slot| v[slot]).collect()),
            Chosen::Text(v) => Values::String(slots.map(|slot| &*v[slot]).collect()),
        }
    }

    /// Bytes of memory taken, roughly.
    pub(crate) fn memory_bytes(&self) -> usize {
        let cells = self.aux.iter().map(Vec::len).max().unwrap_or(0) * size_of::<Cell>();
        let aux = self.aux.capacity() * (size_of::<Vec<Cell>>() + cells)
            + self.origins.capacity() * size_of::<(u32, u32)>();
        let of_slot = each_type!(&self.values, values => size_of_val(&values[..]));
        self.is_there.capacity() + self.times.capacity() * 8 + of_slot + aux
    }
}

impl Chosen {
    /// How a value of `other` stands to one of these.
    fn compare(&self, at: usize, other: &Self, from: usize) -> Ordering {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => {
                b[from].partial_cmp(&a[at]).unwrap_or(Ordering::Equal)
            }
            (Self::Integer(a), Self::Integer(b)) => b[from].cmp(&a[at]),
            (Self::Unsigned(a), Self::Unsigned(b)) => b[from].cmp(&a[at]),
            (Self::Boolean(a), Self::Boolean(b)) => b[from].cmp(&a[at]),
            (Self::Text(a), Self::Text(b)) => b[from].cmp(&a[at]),
            _ => panic!("BUG: values of two types"),
        }
    }

    fn take(&mut self, at: usize, other: &mut Self, from: usize) {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => a[at] = b[from],
            (Self::Integer(a), Self::Integer(b)) => a[at] = b[from],
            (Self::Unsigned(a), Self::Unsigned(b)) => a[at] = b[from],
            (Self::Boolean(a), Self::Boolean(b)) => a[at] = b[from],
            (Self::Text(a), Self::Text(b)) => a[at] = std::mem::take(&mut b[from]),
            _ => panic!("BUG: values of two types"),
        }
    }
}

fn text_at(values: &Values, row: usize) -> &str {
    match values {
        Values::String(v) => v.get(row),
        Values::Dictionary(codes, texts) => texts.get(codes[row] as usize),
        other => panic!("BUG: {other:?} are no texts"),
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

/// How a point stands to the best one so far, to whose value its own stands in this `order`: the greater is chosen.
fn contest(
    function: &Function,
    is_boolean: bool,
    time: i64,
    order: Ordering,
    best: i64,
) -> Ordering {
    let earlier = best.cmp(&time);
    match function {
        Function::Max => order.then(earlier),
        Function::Min => order.reverse().then(earlier),
        Function::First if is_boolean => earlier.then(order.reverse()),
        Function::First => earlier.then(order),
        _ => earlier.reverse().then(order),
    }
}
