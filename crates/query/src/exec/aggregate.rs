//! Runs a SELECT with functions.
//!
//! Groups are worked on in the order of the result, as many at a time as memory allows: all of them
//! in one pass over the rows if their state is small. With a LIMIT time is read in slices, until there are enough rows: see
//! [`in_slices`].
//!
//! First and last values are read from the ends of series: see [`ends`]. A greatest or least value of all rows is known from
//! summaries, and its time looked for: see [`extreme`]; of a few greatest or least what they are at least: see [`bounded`].
//! Other columns of few points are read when it is known which rows they are: see [`beside`].
//!
//! Transformed functions look at windows before the range. Functions that look equally far are
//! computed together, in a pass over the rows of their range.

mod beside;
mod bounded;
mod by_group;
mod by_window;
mod ends;
mod extreme;
mod flat;
mod in_slices;
mod transformed;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use model::{Reservation, SeriesHeader, TimeRange};
use store::ScanSlice;

use self::ends::End;
pub(crate) use self::flat::Together;
use self::flat::{Flat, GroupPoints, Read};
use super::accumulate::{Accumulator, Points, Recipe};
use super::input::{ColumnSource, Input, ScanUse};
use super::rows::{RowMaker, Source};
use super::stream::{Part, outputs};
use super::transform::{Pipeline, Steps, source_select};
use super::unit::{self, Item, Reader, Unit, UnitStats};
use super::window::Windows;
use crate::functions::Function;
use crate::plan::Select;
use crate::{QueryContext, QueryError};

/// Of the memory that is left room is made at once for rows in this part: they may turn out to be few.
const EXPECTED_PART: usize = 8;

/// A running SELECT with functions.
pub(crate) struct Aggregate {
    select: Arc<Select>,
    context: QueryContext,
    passes: Vec<Pass>,
    /// For each function that is transformed, the SELECT that makes what it works on.
    inner: Vec<Option<Arc<Select>>>,
    units: VecDeque<Unit>,
    /// What was read for units that are done.
    finished: Vec<UnitStats>,
    /// Groups of the first unit that are done.
    done: usize,
    ready: VecDeque<(Arc<SeriesHeader>, Vec<Points>)>,
    /// Whether these points are transformed.
    are_transformed: bool,
    /// Rows of the first unit's groups, where they come together.
    flat: Option<Flat>,
    /// Memory of `ready`.
    held: Reservation,
    current: Option<(Arc<SeriesHeader>, RowMaker)>,
}

/// Functions that look at rows of one range.
struct Pass {
    range: TimeRange,
    recipe: Recipe,
    /// Whether a function belongs to the pass.
    calls: Vec<bool>,
}

impl Pass {
    /// The passes that all functions of `select` take.
    fn all(select: &Select) -> Vec<Self> {
        let mut ranges: Vec<TimeRange> = Vec::new();
        for call in &select.calls {
            let range = select.range_of(call);
            if !ranges.contains(&range) {
                ranges.push(range);
            }
        }
        let pass = |range| {
            let calls = select.calls.iter().map(|call| select.range_of(call) == range);
            let calls: Vec<bool> = calls.collect();
            let recipe = Recipe::of_calls(select, |at| calls[at]);
            Self { range, recipe, calls }
        };
        ranges.into_iter().map(pass).collect()
    }
}

impl Aggregate {
    /// Pins what is read; nothing is read yet.
    pub(crate) fn open(select: Arc<Select>, context: QueryContext) -> Result<Self, QueryError> {
        let units = unit::open(&select, usage(&select, &Recipe::new(&select)), &context)?;
        let inner =
            select.calls.iter().enumerate().map(|(at, call)| {
                (!call.transforms.is_empty()).then(|| source_select(&select, at))
            });
        let (inner, passes) = (inner.collect(), Pass::all(&select));
        let held = context.budget.reserve(0)?;
        Ok(Self {
            select,
            context,
            passes,
            inner,
            units: units.into(),
            finished: Vec::new(),
            done: 0,
            ready: VecDeque::new(),
            are_transformed: false,
            flat: None,
            held,
            current: None,
        })
    }

    /// What is read, for estimates and EXPLAIN.
    pub(crate) fn units(&self) -> impl Iterator<Item = &Unit> {
        self.units.iter()
    }

    /// What was read so far.
    pub(crate) fn stats(&self) -> Vec<UnitStats> {
        self.finished.iter().cloned().chain(self.units.iter().map(Unit::stats)).collect()
    }

    /// The next rows, at most `rows_max`.
    pub(crate) fn next(&mut self, rows_max: usize) -> Result<Option<Part>, QueryError> {
        loop {
            if let Some((header, maker)) = &mut self.current {
                self.context.interrupt.check()?;
                if let Some(block) = maker.next(rows_max)? {
                    let columns = outputs(&self.select, block);
                    return Ok(Some(Part::new(Arc::clone(header), columns)));
                }
                self.current = None;
            }
            if let Some(part) = self.next_flat(rows_max)? {
                return Ok(Some(part));
            }
            if let Some((header, points)) = self.ready.pop_front() {
                self.current = Some((header, self.row_maker(points)?));
                continue;
            }
            let Some(unit) = self.units.front() else { return Ok(None) };
            let left = unit.groups.len() - self.done;
            if left == 0 {
                self.finish_unit();
                continue;
            }
            let (read, found) = match self.read_together(unit)? {
                Some(found) => found,
                None => {
                    let (groups, points) = self.next_groups(unit)?;
                    (groups.len(), self.rows_of_points(groups, points)?)
                }
            };
            self.done += read;
            let (groups, GroupPoints { of_groups, are_transformed }) = match found {
                Read::Points(groups, points) => (groups, points),
                Read::Flat(flat) => {
                    self.flat = Some(flat);
                    continue;
                }
            };
            let unit = &self.units[0];
            self.are_transformed = are_transformed;
            let headers =
                groups.zip(of_groups).filter(|(_, p)| p.iter().any(|p| !p.times.is_empty()));
            let headers = headers.map(|(group, points)| (unit.header(group, &self.select), points));
            self.ready = headers.collect();
            let points = self.ready.iter().flat_map(|(_, points)| points);
            self.held.resize(points.map(Points::memory_bytes).sum())?;
            if !self.select.ascending {
                self.ready.make_contiguous().reverse();
            }
        }
    }
}

impl Aggregate {
    /// Goes on to the next unit.
    fn finish_unit(&mut self) {
        self.finished.extend(self.units.pop_front().map(|unit| unit.stats()));
        self.done = 0;
    }

    /// The points of the next groups of a unit. Going backwards in time, groups come from the last
    /// to the first; the range says which, always ascending.
    fn next_groups(&self, unit: &Unit) -> Result<(Range<usize>, Vec<Vec<Points>>), QueryError> {
        let runs: Vec<Run<'_>> = self.passes.iter().map(|pass| self.run(pass, unit)).collect();
        let count = runs.iter().map(|run| run.groups_at_once(self.done)).min().unwrap_or(1);
        let groups = if self.select.ascending {
            self.done..self.done + count
        } else {
            let end = unit.groups.len() - self.done;
            end - count..end
        };
        let alone = runs.len() == 1;
        let mut points: Vec<Vec<Points>> = Vec::new();
        for (run, pass) in runs.iter().zip(&self.passes) {
            let found = run.points(groups.clone(), alone)?;
            if points.is_empty() {
                points = found;
                continue;
            }
            for (points, found) in points.iter_mut().zip(found) {
                if points.is_empty() {
                    *points = found;
                    continue;
                }
                let mine = points.iter_mut().zip(found).zip(&pass.calls);
                mine.filter(|(_, is_mine)| **is_mine).for_each(|((mine, more), _)| *mine = more);
            }
        }
        Ok((groups, points))
    }

    fn run<'a>(&'a self, pass: &'a Pass, unit: &'a Unit) -> Run<'a> {
        Run {
            select: &self.select,
            context: &self.context,
            range: pass.range,
            recipe: &pass.recipe,
            unit,
            combinations: combinations(&self.select, &unit.inputs),
        }
    }

    /// What makes rows of the points of a group.
    fn row_maker(&self, points: Vec<Points>) -> Result<RowMaker, QueryError> {
        let mut sources = Vec::with_capacity(points.len());
        for (at, points) in points.into_iter().enumerate() {
            sources.push(match self.inner[at].as_ref().filter(|_| !self.are_transformed) {
                None => Source::Points(points),
                Some(inner) => {
                    let mut points = points;
                    if self.select.calls[at].function == Function::Stddev {
                        points.name_missing();
                    }
                    let points = std::iter::once(Source::Points(points));
                    let inner = RowMaker::new(Arc::clone(inner), points);
                    let steps = Steps::new(&self.select, at, &self.context)?;
                    Source::Pipeline(Box::new(Pipeline::new(inner, steps)))
                }
            });
        }
        Ok(RowMaker::new(Arc::clone(&self.select), sources.into_iter()))
    }
}

/// How the scans of a SELECT with functions are used.
fn usage(select: &Select, recipe: &Recipe) -> ScanUse {
    let mut usage = ScanUse { ascending: true, ..ScanUse::default() };
    if let Some(end) = End::of(select) {
        usage.ascending = end == End::First;
        return usage;
    }
    usage.joins_series = select.dimensions.is_empty() && recipe.ignores_series(select);
    let parts = recipe.summary_parts();
    usage.windows = parts.and_then(|parts| match &select.windows {
        None => Some(store::Windows { every_ns: None, offset_ns: 0, parts }),
        Some(Windows { every_ns, offset_ns, zone: None, .. }) => {
            Some(store::Windows { every_ns: Some(*every_ns), offset_ns: *offset_ns, parts })
        }
        Some(_) => None,
    });
    usage
}

/// What `top()` and `bottom()` take one value of: a number per series for each combination of tags.
fn combinations(select: &Select, inputs: &[Input]) -> Vec<Arc<[u32]>> {
    let by = match select.calls.first().map(|call| &call.function) {
        Some(function) => function.column_args(),
        None => return Vec::new(),
    };
    if by.is_empty() {
        return Vec::new();
    }
    let tag_of = |input: &Input, name: &str| {
        let at = select.aux.iter().position(|aux| *aux.name == *name)?;
        match input.aux[at] {
            ColumnSource::Tag { at, .. } => Some(at),
            _ => None,
        }
    };
    if let ([input], [name]) = (inputs, by)
        && let Some(at) = tag_of(input, name)
    {
        // Its texts are numbered already.
        return vec![Arc::clone(&input.scan.series().tags[at].codes)];
    }
    let mut known: hashbrown::HashMap<Vec<&str>, u32> = hashbrown::HashMap::new();
    let mut numbers = Vec::with_capacity(inputs.len());
    for input in inputs {
        let tags: Vec<Option<usize>> = by.iter().map(|name| tag_of(input, name)).collect();
        let of_series = (0..input.scan.series().len).map(|series| {
            let text = |at: &Option<usize>| at.map_or("", |at| input.tag(at, series));
            let next = known.len() as u32;
            *known.entry(tags.iter().map(text).collect()).or_insert(next)
        });
        numbers.push(of_series.collect());
    }
    numbers
}

/// One step of a running SELECT: some groups of one unit.
struct Run<'a> {
    select: &'a Select,
    context: &'a QueryContext,
    /// Times of rows that are looked at.
    range: TimeRange,
    recipe: &'a Recipe,
    unit: &'a Unit,
    combinations: Vec<Arc<[u32]>>,
}

impl Run<'_> {
    /// The points of groups; `alone`: all functions are computed here.
    fn points(&self, groups: Range<usize>, alone: bool) -> Result<Vec<Vec<Points>>, QueryError> {
        if alone && let Some(point) = extreme::point(self)? {
            return Ok(vec![vec![point]]);
        }
        if alone && let Some(points) = bounded::points(self)? {
            return Ok(points);
        }
        if alone && let Some(points) = beside::points(self, &groups)? {
            return Ok(points);
        }
        let range = self.read_range();
        if alone && self.reads_in_slices(&groups, range) {
            return self.read_slices(groups, range);
        }
        self.read(groups, range, None)
    }

    /// The times that have rows.
    fn read_range(&self) -> TimeRange {
        let (bounds, mut range) = (self.unit.extent.bounds(), self.range);
        let from_subquery = self.unit.inputs.iter().any(|input| input.request.is_none());
        if from_subquery && !range.is_empty() {
            // Rows of a subquery have the names of its windows, which may begin before the range.
            range.min = match &self.select.windows {
                Some(windows) => windows.at(range.min).start,
                None if self.shows_every_point() => bounds.min,
                None => range.min,
            };
        }
        range.intersect(&bounds)
    }

    /// Whether every function works on points one by one.
    fn shows_every_point(&self) -> bool {
        self.select.calls.iter().all(|call| call.function == Function::Values)
    }

    fn windows_within(&self, range: TimeRange) -> u64 {
        let Some(windows) = &self.select.windows else { return 1 };
        if range.is_empty() {
            return 0;
        }
        let span = i128::from(range.max) - i128::from(range.min);
        (span / i128::from(windows.every_ns) + 2).min(i128::from(u64::MAX)) as u64
    }

    fn memory_left(&self) -> usize {
        let budget = &self.context.budget;
        budget.limit_bytes().saturating_sub(budget.used_bytes())
    }

    /// The points of `groups` from rows within `range`; `only` leaves out groups that need no more.
    fn read(
        &self,
        groups: Range<usize>,
        range: TimeRange,
        only: Option<&[bool]>,
    ) -> Result<Vec<Vec<Points>>, QueryError> {
        if let (None, Some(at_once)) = (only, self.groups_apart(&groups)) {
            return self.read_apart(groups, at_once, range);
        }
        if let (None, Some(ranges)) = (only, self.windows_apart(&groups, range)) {
            return self.read_windows(&groups, &ranges);
        }
        if only.is_none()
            && let Some(points) = self.read_parts(groups.clone(), range)?
        {
            return Ok(points);
        }
        let state = self.read_state(groups, range, only)?;
        Ok(state.finish(&self.unit.inputs))
    }

    /// What functions know of `groups` from rows within `range`.
    fn read_state(
        &self,
        groups: Range<usize>,
        range: TimeRange,
        only: Option<&[bool]>,
    ) -> Result<Accumulator<'_>, QueryError> {
        let mut state = self.accumulator(groups.len(), range)?;
        for at in 0..self.unit.inputs.len() {
            let Some(mut slice) = self.unit.slice(at, groups.clone(), range) else { continue };
            if let Some(only) = only.filter(|only| !only.iter().all(|wanted| *wanted)) {
                slice.series = Some(self.series_of(at, &slice, groups.clone(), only));
            }
            let rows = match End::of(self.select) {
                Some(_) => self.unit.groups.series_count(groups.clone()) as u64,
                None => self.unit.rows_within(at, &slice) as u64,
            };
            let cells = rows.saturating_mul(self.select.calls.len() as u64);
            let shares = self.unit.shares(at, slice, cells, self.context)?;
            if let [slice] = shares.as_slice() {
                self.read_share(&mut state, at, slice, self.group_of(at, groups.clone(), only))?;
                continue;
            }
            let numbered: Vec<(usize, ScanSlice)> = shares.into_iter().enumerate().collect();
            let parts = unit::on_threads(&numbered, |(number, share)| {
                let mut part = self.accumulator(groups.len(), range)?;
                if *number == 0 {
                    // What others keep is put behind what this one does.
                    self.expect_rows(&mut part, at, usize::try_from(rows).unwrap_or(usize::MAX));
                }
                self.read_share(&mut part, at, share, self.group_of(at, groups.clone(), only))?;
                Ok(part)
            })?;
            for part in parts {
                state.merge(part)?;
            }
        }
        Ok(state)
    }

    fn accumulator(&self, groups: usize, range: TimeRange) -> Result<Accumulator<'_>, QueryError> {
        let rows = self.unit.extent.rows().min(1 << 40) as usize;
        let grid = self.context.tuning.grid_slots.min(rows.saturating_mul(4) + 4096);
        let mut state = Accumulator::new(
            self.select,
            self.recipe,
            groups,
            range,
            grid,
            self.context.budget.reserve(0)?,
            &self.combinations,
            self.context.now_ns.cast_unsigned(),
        );
        // What threads find of their shares comes together.
        state.expect_at_most(rows);
        Ok(state)
    }

    /// Of a series of input `at` its place among `groups`, of these those that are wanted.
    fn group_of<'b>(
        &'b self,
        at: usize,
        groups: Range<usize>,
        only: Option<&'b [bool]>,
    ) -> impl Fn(u32) -> Option<u32> + Copy + 'b {
        let (start, end) = (groups.start as u32, groups.end as u32);
        move |series| {
            let group = self.unit.groups.of(at, series)?;
            let local = (start <= group && group < end).then(|| group - start)?;
            only.is_none_or(|only| only[local as usize]).then_some(local)
        }
    }

    fn read_share(
        &self,
        state: &mut Accumulator<'_>,
        at: usize,
        slice: &ScanSlice,
        group_of: impl Fn(u32) -> Option<u32> + Copy,
    ) -> Result<(), QueryError> {
        let input = &self.unit.inputs[at];
        if let Some(rows) = End::of(self.select).and_then(|_| ends::first_rows(input)) {
            let first = ScanSlice { rows_per_series: Some(rows), ..slice.clone() };
            return self.read_ends(state, at, first, group_of);
        }
        self.expect_rows(state, at, self.unit.rows_within(at, slice));
        let reader = Reader { context: self.context, interrupt: &self.context.interrupt };
        reader.read(input, slice, |item| match item {
            Item::Rows(batch) => state.add_rows(at, input, &batch, group_of),
            Item::Summaries(batch) => state.add_summaries(input, &batch, group_of),
        })
    }

    /// Makes room for so many rows of input `at`, if none of them is filtered out, and as memory allows.
    fn expect_rows(&self, state: &mut Accumulator<'_>, at: usize, rows: usize) {
        if self.unit.inputs[at].filter.is_none() {
            let row_bytes = self.recipe.expected_row_bytes().max(1);
            state.expect(rows.min(self.memory_left() / EXPECTED_PART / row_bytes));
        }
    }

    /// The series of a slice whose groups are wanted.
    fn series_of(
        &self,
        at: usize,
        slice: &ScanSlice,
        groups: Range<usize>,
        only: &[bool],
    ) -> Arc<[u32]> {
        let wanted = |series: &u32| {
            let group = self.unit.groups.of(at, *series).map(|group| group as usize);
            group.is_some_and(|g| groups.contains(&g) && only[g - groups.start])
        };
        match &slice.series {
            Some(series) => series.iter().copied().filter(wanted).collect(),
            None => (0..self.unit.inputs[at].scan.series().len).filter(wanted).collect(),
        }
    }
}
