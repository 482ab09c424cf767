//! Values of groups and windows, gathered while rows stream by.
//!
//! Four kinds of state, chosen per function: totals (fixed size a slot), picks (a point a slot), tallies
//! (every value once), collections (every value). Everything taken is reserved from the query's budget.

mod arranged;
pub(crate) mod collect;
pub(crate) mod flat;
pub(crate) mod kernels;
mod output;
pub(crate) mod pick;
mod points;
pub(crate) mod slots;
mod tally;
pub(crate) mod totals;

use std::borrow::Cow;
use std::sync::Arc;

use hashbrown::HashMap;
use model::{Column, ColumnBatch, FieldType, Reservation, Scalar, SummaryBatch, TimeRange, Values};

use self::collect::{AuxColumn, Collect, Finished, Origin};
use self::output::PointsOutput;
use self::pick::Pick;
pub(crate) use self::points::Points;
use self::slots::{RowSlots, Run, SlotMap, SlotSpan};
use self::tally::Tally;
use self::totals::{Parts, Stretch, Totals};
use super::column::Cell;
use super::input::{ColumnSource, Input};
use crate::QueryError;
use crate::functions::Function;
use crate::plan::{CallPlan, Select};

/// Deviations of runs with so many rows are soon put together.
const LONG_RUN_ROWS: u64 = 64;

/// Reservations follow memory in steps of this.
const RESERVE_STEP_BYTES: usize = 1 << 20;

/// What is computed, independent of groups and rows.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    kinds: Vec<Kind>,
    totals: Vec<TotalsPlan>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Totals, by their index.
    Totals(usize),
    Pick,
    /// The values that differ, of each group and window.
    Tally,
    /// Values of each group and window.
    Collect,
    /// The values that another function has collected.
    Collected(usize),
    /// Values of each group over all windows.
    CollectGroup,
    /// The field does not exist.
    Nothing,
}

#[derive(Clone, Debug)]
struct TotalsPlan {
    /// A function over the field.
    call: usize,
    input: FieldType,
    parts: Parts,
}

impl Recipe {
    /// How the functions of `select` are computed.
    pub(crate) fn new(select: &Select) -> Self {
        Self::of_calls(select, |_| true)
    }

    /// The same where no time of a point is wanted.
    pub(crate) fn without_points(select: &Select) -> Self {
        Self::showing(select, |_| true, false)
    }

    /// The same for some of the functions only; the others have no points.
    pub(crate) fn of_calls(select: &Select, is_wanted: impl Fn(usize) -> bool) -> Self {
        let shows_point = select.calls.len() == 1
            && select.calls[0].function.is_selector()
            && (select.windows.is_none() || !select.aux.is_empty());
        Self::showing(select, is_wanted, shows_point)
    }

    fn showing(select: &Select, is_wanted: impl Fn(usize) -> bool, shows_point: bool) -> Self {
        let mut recipe = Self { kinds: Vec::new(), totals: Vec::new() };
        // There may be thousands of functions.
        let mut known: HashMap<(&str, FieldType), usize> = HashMap::new();
        for (at, call) in select.calls.iter().enumerate() {
            let Some(input) = call.input.filter(|_| is_wanted(at)) else {
                recipe.kinds.push(Kind::Nothing);
                continue;
            };
            let mut parts = Parts::default();
            let kind = match &call.function {
                Function::Integral { .. } | Function::Values => Kind::CollectGroup,
                Function::Mode | Function::Distinct | Function::CountDistinct => Kind::Tally,
                function if !parts.add(function) => recipe.collect(select, at),
                _ if shows_point => Kind::Pick,
                function => {
                    let index = *known.entry((&*call.field, input)).or_insert_with(|| {
                        let parts = Parts::default();
                        recipe.totals.push(TotalsPlan { call: at, input, parts });
                        recipe.totals.len() - 1
                    });
                    recipe.totals[index].parts.add(function);
                    Kind::Totals(index)
                }
            };
            recipe.kinds.push(kind);
        }
        recipe
    }

    /// How the values of function `at` are collected: percentiles of one field are found in one set.
    fn collect(&self, select: &Select, at: usize) -> Kind {
        let is_percentile =
            |at: &usize| matches!(select.calls[*at].function, Function::Percentile(_));
        let (field, input) = (&select.calls[at].field, select.calls[at].input);
        let has_same = |other: &usize| {
            self.kinds[*other] == Kind::Collect
                && is_percentile(other)
                && (&select.calls[*other].field, select.calls[*other].input) == (field, input)
        };
        let same = (0..self.kinds.len()).find(has_same).filter(|_| is_percentile(&at));
        same.map_or(Kind::Collect, Kind::Collected)
    }

    /// Whether summaries can stand for rows; then which parts of them are used.
    pub(crate) fn summary_parts(&self) -> Option<store::SummaryParts> {
        if !self.are_totals() || self.totals.is_empty() {
            return None;
        }
        let any = |part: fn(&Parts) -> bool| self.totals.iter().any(|plan| part(&plan.parts));
        Some(store::SummaryParts {
            sum: any(|p| p.sum),
            min_max: any(|p| p.min || p.max),
            first_last: any(|p| p.first || p.last),
        })
    }

    /// Whether values are kept by window, and by nothing else, if a window has so many, and so many of each series.
    pub(crate) fn keeps_by_window(&self, select: &Select, rows: u64, of_series: u64) -> bool {
        let are_folded_well = self.ignores_series(select) || of_series >= LONG_RUN_ROWS;
        let are_many = rows >= u64::from(collect::FOLD_ROWS_MIN) && are_folded_well;
        let is_folded = |call: &CallPlan| are_many && call.function == Function::Stddev;
        let is_kept = |(kind, call): (&Kind, &CallPlan)| match kind {
            Kind::Tally => true,
            Kind::Collect => !is_folded(call),
            _ => false,
        };
        self.kinds.iter().zip(&select.calls).any(is_kept)
            && !self.kinds.contains(&Kind::CollectGroup)
    }

    /// Whether it does not matter which series a row is of, nor that rows of several are not in order of time.
    pub(crate) fn ignores_series(&self, select: &Select) -> bool {
        let has_ends = |plan: &TotalsPlan| plan.parts.first || plan.parts.last;
        let ignores = |(kind, call): (&Kind, &CallPlan)| match kind {
            Kind::Totals(_) | Kind::Tally | Kind::Collected(_) | Kind::Nothing => true,
            Kind::Collect => {
                let is_unordered = matches!(
                    call.function,
                    Function::Median | Function::Percentile(_) | Function::Stddev
                );
                is_unordered && select.aux.is_empty()
            }
            Kind::Pick | Kind::CollectGroup => false,
        };
        !self.totals.iter().any(has_ends) && self.kinds.iter().zip(&select.calls).all(ignores)
    }

    /// Bytes a slot takes in totals and picks.
    pub(crate) fn slot_bytes(&self) -> usize {
        let totals: usize = self.totals.iter().map(|plan| plan.parts.slot_bytes()).sum();
        let picks = self.kinds.iter().filter(|kind| **kind == Kind::Pick).count();
        totals + picks * 64 + 8
    }

    /// Bytes that [`Accumulator::expect`] takes for a row: a number and its time in each collection.
    pub(crate) fn expected_row_bytes(&self) -> usize {
        let is_kept = |kind: &&Kind| matches!(kind, Kind::Collect | Kind::CollectGroup);
        16 * self.kinds.iter().filter(is_kept).count()
    }

    /// Bytes a row takes in collections.
    pub(crate) fn row_bytes(&self, select: &Select) -> usize {
        // A tally takes as much where no value comes twice.
        let is_kept = |k: &&Kind| matches!(k, Kind::Tally | Kind::Collect | Kind::CollectGroup);
        let collects = self.kinds.iter().filter(is_kept);
        collects.count() * (40 + 16 * select.aux.len())
    }
}

/// State of some groups.
pub(crate) struct Accumulator<'a> {
    select: &'a Select,
    recipe: &'a Recipe,
    slots: SlotMap,
    groups: usize,
    totals: Vec<Totals>,
    states: Vec<State>,
    runs: Vec<Run>,
    stretches: Vec<Stretch>,
    ignores_series: bool,
    row_slots: RowSlots,
    group_runs: Vec<Run>,
    spans: Vec<SlotSpan>,
    reservation: Reservation,
    /// Per input and series, what `top()` and `bottom()` tell apart.
    combinations: &'a [Arc<[u32]>],
}

enum State {
    Totals,
    Pick(Pick),
    Tally(Tally),
    Collect(Collect),
    Nothing,
}

impl<'a> Accumulator<'a> {
    /// Empty state of `groups` groups over rows within `range`.
    pub(crate) fn new(
        select: &'a Select,
        recipe: &'a Recipe,
        groups: usize,
        range: TimeRange,
        grid_slots_max: usize,
        reservation: Reservation,
        combinations: &'a [Arc<[u32]>],
        seed: u64,
    ) -> Self {
        let totals = recipe.totals.iter().map(|plan| Totals::new(plan.input, plan.parts)).collect();
        let aux_types = || select.aux.iter().map(|aux| aux.kind.field_type());
        let shows_rows = !select.aux.is_empty() || output::has_own_times(select);
        let state = |(kind, call): (&Kind, &CallPlan)| match (kind, call.input) {
            (Kind::Totals(_), _) => State::Totals,
            (Kind::Pick, Some(input)) => {
                State::Pick(Pick::new(call.function.clone(), input, !select.aux.is_empty()))
            }
            (Kind::Tally, Some(input)) => State::Tally(Tally::new(call.function.clone(), input)),
            (Kind::Collect | Kind::CollectGroup, Some(input)) => {
                let function = call.function.clone();
                State::Collect(Collect::new(function, shows_rows, input, aux_types(), seed))
            }
            _ => State::Nothing,
        };
        Self {
            select,
            recipe,
            slots: SlotMap::new(
                select.windows.as_ref(),
                range,
                groups,
                grid_slots_max,
                recipe.ignores_series(select),
            ),
            groups,
            totals,
            states: recipe.kinds.iter().zip(&select.calls).map(state).collect(),
            runs: Vec::new(),
            stretches: Vec::new(),
            ignores_series: recipe.ignores_series(select),
            row_slots: RowSlots::default(),
            group_runs: Vec::new(),
            spans: Vec::new(),
            reservation,
            combinations,
        }
    }

    /// Says that so many rows come, at most, with those of others that are merged.
    pub(crate) fn expect_at_most(&mut self, rows: usize) {
        for state in &mut self.states {
            if let State::Tally(tally) = state {
                tally.expect(rows);
            }
        }
    }

    /// Makes room for so many rows where all of them are kept.
    pub(crate) fn expect(&mut self, rows: usize) {
        for state in &mut self.states {
            if let State::Collect(collect) = state {
                collect.expect(rows);
            }
        }
    }

    /// Adds rows of an input. `group_of` gives the local group of a series.
    pub(crate) fn add_rows(
        &mut self,
        at: usize,
        input: &Input,
        batch: &ColumnBatch,
        group_of: impl Fn(u32) -> Option<u32> + Copy,
    ) -> Result<(), QueryError> {
        let (times, ascending) = (batch.times(), input.ascending);
        if self.scatters(batch.rows, &batch.runs)
            && self.add_scattered(at, input, batch, group_of)?
        {
            return Ok(());
        }
        self.runs.clear();
        self.slots.cut(times, &batch.runs, group_of, ascending, &mut self.runs);
        if !self.totals.is_empty() {
            totals::cut_stretches(&self.runs, &mut self.stretches);
        }
        let slots = self.slots.len();
        let table = input.scan.series();
        for (totals, plan) in self.totals.iter_mut().zip(&self.recipe.totals) {
            totals.grow(slots);
            if let source @ ColumnSource::Column { .. } = &input.calls[plan.call] {
                let column = source.column(batch, table);
                let runs = (self.runs.as_slice(), self.stretches.as_slice());
                totals.add_rows(&column, times, runs, ascending);
            }
        }
        if self.recipe.kinds.contains(&Kind::CollectGroup) {
            let mut whole = SlotMap::Whole { groups: self.groups, joins: false };
            self.group_runs.clear();
            whole.cut(times, &batch.runs, group_of, ascending, &mut self.group_runs);
        }
        self.add_points(at, input, batch, slots);
        self.reserve()
    }

    fn add_points(&mut self, at: usize, input: &Input, batch: &ColumnBatch, slots: usize) {
        let (times, table) = (batch.times(), input.scan.series());
        let mut aux: Option<Vec<Cow<'_, Column>>> = None;
        let has_points = |state: &State| !matches!(state, State::Totals | State::Nothing);
        if self.states.iter().any(has_points) {
            let column = |source: &ColumnSource| match source {
                // Looked up per series where it is needed.
                ColumnSource::Tag { .. } | ColumnSource::RowSeries | ColumnSource::RowTime => {
                    Cow::Owned(Column::new(Values::empty(FieldType::String)))
                }
                source => source.column(batch, table),
            };
            aux = Some(input.aux.iter().map(column).collect());
        }
        let Some(aux) = aux else { return };
        let combinations = self.combinations;
        let key = |origin: Origin| combination(combinations, origin);
        for ((state, kind), source) in
            self.states.iter_mut().zip(&self.recipe.kinds).zip(&input.calls)
        {
            let ColumnSource::Column { .. } = source else {
                if let State::Pick(pick) = state {
                    pick.grow(slots);
                }
                continue;
            };
            match state {
                State::Pick(pick) => {
                    pick.grow(slots);
                    let column = source.column(batch, table);
                    let cells =
                        |row: usize, series: u32| aux_cells(input, (&aux, times), row, series);
                    let runs = (at as u32, self.runs.as_slice());
                    pick.add_rows(&column, times, runs, input.ascending, cells);
                }
                State::Tally(tally) => {
                    tally.add_rows(&source.column(batch, table), times, &self.runs);
                }
                State::Collect(collect) => {
                    let whole = *kind == Kind::CollectGroup;
                    let runs = if whole { &self.group_runs } else { &self.runs };
                    let column = source.column(batch, table);
                    let columns: Vec<AuxColumn<'_>> =
                        input.aux.iter().zip(&aux).map(aux_column).collect();
                    collect.add_rows(&column, times, runs, at as u32, &columns, &key);
                    collect.prune(if whole { self.groups } else { slots }, &key);
                }
                State::Totals | State::Nothing => {}
            }
        }
    }

    /// Adds summaries of an input's rows.
    pub(crate) fn add_summaries(
        &mut self,
        input: &Input,
        batch: &SummaryBatch,
        group_of: impl Fn(u32) -> Option<u32>,
    ) -> Result<(), QueryError> {
        self.spans.clear();
        let mut last = 0;
        for (span, at) in batch.spans.iter().zip(0..) {
            if let Some(group) = group_of(span.series) {
                let slot = self.slots.slot_near(group, span.min_time, &mut last);
                self.spans.push(SlotSpan { slot, span: at });
            }
        }
        let slots = self.slots.len();
        for (totals, plan) in self.totals.iter_mut().zip(&self.recipe.totals) {
            totals.grow(slots);
            if let ColumnSource::Column { at: column, .. } = &input.calls[plan.call] {
                totals.add_summaries(&self.spans, &batch.fields[column - 1]);
            }
        }
        self.reserve()
    }

    /// Adds the state of other rows of the same groups.
    pub(crate) fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        let slots = self.slots.adopt(&other.slots);
        let count = self.slots.len();
        for (mine, mut theirs) in self.totals.iter_mut().zip(other.totals) {
            mine.grow(count);
            theirs.grow(other.slots.len());
            mine.merge(&theirs, slots.iter().copied());
        }
        let groups: Vec<(usize, usize)> = (0..self.groups).map(|g| (g, g)).collect();
        for ((mine, theirs), kind) in
            self.states.iter_mut().zip(other.states).zip(&self.recipe.kinds)
        {
            match (mine, theirs) {
                (State::Pick(mine), State::Pick(mut theirs)) => {
                    mine.grow(count);
                    theirs.grow(other.slots.len());
                    mine.merge(theirs, slots.iter().copied());
                }
                (State::Tally(mine), State::Tally(theirs)) => mine.merge(theirs, &slots),
                (State::Collect(mine), State::Collect(theirs)) => {
                    let whole = *kind == Kind::CollectGroup;
                    mine.merge(theirs, if whole { &groups } else { &slots });
                }
                _ => {}
            }
        }
        drop(other.reservation);
        self.reserve()
    }

    fn reserve(&mut self) -> Result<(), QueryError> {
        let totals: usize = self.totals.iter().map(Totals::memory_bytes).sum();
        let states: usize = self
            .states
            .iter()
            .map(|state| match state {
                State::Pick(pick) => pick.memory_bytes(),
                State::Tally(tally) => tally.memory_bytes(),
                State::Collect(collect) => collect.memory_bytes(),
                State::Totals | State::Nothing => 0,
            })
            .sum();
        let bytes = totals + states + self.slots.memory_bytes();
        let step = bytes.div_ceil(RESERVE_STEP_BYTES) * RESERVE_STEP_BYTES;
        if step > self.reservation.bytes() {
            self.reservation.resize(step)?;
        }
        Ok(())
    }

    /// The points of every group, of each function, when all rows were added; of a group that has none, nothing.
    pub(crate) fn finish(mut self, inputs: &[Input]) -> Vec<Vec<Points>> {
        let count = self.slots.len();
        self.totals.iter_mut().for_each(|totals| totals.grow(count));
        for state in &mut self.states {
            match state {
                State::Pick(pick) => pick.grow(count),
                State::Tally(tally) => tally.sort(count),
                State::Totals | State::Collect(_) | State::Nothing => {}
            }
        }
        self.slots.sort();
        let finished: Vec<Option<Finished<'_>>> = self
            .states
            .iter()
            .zip(&self.recipe.kinds)
            .map(|(state, kind)| match state {
                State::Collect(collect) if *kind == Kind::CollectGroup => {
                    Some(collect.finish(self.groups))
                }
                State::Collect(collect) => Some(collect.finish(count)),
                _ => None,
            })
            .collect();
        let function = |at: usize| &self.select.calls[at].function;
        let finished: Vec<Option<Finished<'_>>> = self
            .recipe
            .kinds
            .iter()
            .enumerate()
            .map(|(at, kind)| match kind {
                Kind::Collected(other) => {
                    finished[*other].as_ref().map(|found| found.with(function(at)))
                }
                _ => finished[at].clone(),
            })
            .collect();
        PointsOutput { accumulator: &self, inputs, finished: &finished }.of_groups()
    }
}

fn combination(combinations: &[Arc<[u32]>], origin: Origin) -> u32 {
    combinations.get(origin.input as usize).map_or(0, |of| of[origin.series as usize])
}

fn aux_column<'b>((source, column): (&ColumnSource, &'b Cow<'_, Column>)) -> AuxColumn<'b> {
    match source {
        ColumnSource::Tag { .. } | ColumnSource::RowSeries | ColumnSource::RowTime => {
            AuxColumn::Known
        }
        ColumnSource::Missing(_) => AuxColumn::Missing,
        ColumnSource::Column { .. } => AuxColumn::Column(column),
    }
}

/// The other cells of a row.
fn aux_cells(
    input: &Input,
    (aux, times): (&[Cow<'_, Column>], &[i64]),
    row: usize,
    series: u32,
) -> Vec<Cell> {
    let of = |(source, column): (&ColumnSource, &Cow<'_, Column>)| match source {
        ColumnSource::Tag { at, blank } => input.tag_cell(*at, *blank, series),
        ColumnSource::Missing(_) => None,
        ColumnSource::Column { .. } => column.get(row),
        ColumnSource::RowSeries => Some(Scalar::Unsigned(series.into())),
        ColumnSource::RowTime => Some(Scalar::Integer(times[row])),
    };
    input.aux.iter().zip(aux).map(of).collect()
}
