//! Runs a SELECT without functions: rows as they are, in order of time.
//!
//! One series: its rows stream through. Several groups of few rows: they are read together and
//! sorted. A group of many series and many rows: time is read in slices, so that memory stays
//! bounded and a LIMIT stops the reading; with a LIMIT alone its rows are looked for series by series.

mod by_time;
mod first;
mod gather;
mod leading;
mod nearest;
mod series_left;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use influxql::Fill;
use model::{Column, ColumnBatch, Reservation, SeriesHeader, TimeRange};
use store::{ScanCursor, ScanItem, ScanSlice};

use self::gather::Gathered;
use self::nearest::Nearest;
use super::column::{Cell, fill_forward, fill_missing, slice};
use super::input::{Input, ScanUse};
use super::rows::{Block, number};
use super::stream::{Part, outputs};
use super::unit::{self, Unit, UnitStats};
use crate::plan::Select;
use crate::{QueryContext, QueryError};

/// So many columns are usual: rows of thousands count as more than one.
const COLUMNS_USUAL: u64 = 16;

/// Rows in order, where those of each group are, and the memory they take.
type Sorted = (Block, Vec<(usize, Range<usize>)>, Reservation);

/// A running SELECT without functions.
pub(crate) struct Raw {
    select: Arc<Select>,
    context: QueryContext,
    units: VecDeque<Unit>,
    /// What was read for units that are done.
    finished: Vec<UnitStats>,
    /// Groups of the first unit that are done.
    done: usize,
    ready: VecDeque<Part>,
    /// Memory of `ready`.
    held: Option<Reservation>,
    /// The group whose rows are being read part by part.
    current: Option<Current>,
    /// A time when no series of the first unit has rows, if that is known of one.
    empty: TimeRange,
    /// Series that was handed out last, with what its next rows depend on.
    series: Option<SeriesState>,
}

struct Current {
    group: usize,
    header: Arc<SeriesHeader>,
    reading: Reading,
}

enum Reading {
    /// One series: rows in order.
    Stream { input: usize, cursor: Box<dyn ScanCursor> },
    /// Slices of time; what is done, the size of the next one, and of any to come, and how many rows were found.
    Slices { done: Option<i64>, rows: u64, rows_max: u64, found: u64 },
}

/// What passes from one part of a series' rows to the next.
struct SeriesState {
    header: Arc<SeriesHeader>,
    skip: u64,
    left: u64,
    last: Vec<Cell>,
}

impl Raw {
    /// Pins what is read; nothing is read yet.
    pub(crate) fn open(select: Arc<Select>, context: QueryContext) -> Result<Self, QueryError> {
        let enough = select.limit.saturating_add(select.offset);
        let usage = ScanUse {
            ascending: select.ascending,
            rows_per_series: (select.limit > 0).then_some(enough),
            windows: None,
            joins_series: false,
        };
        let units = unit::open(&select, usage, &context)?;
        Ok(Self {
            select,
            context,
            units: units.into(),
            finished: Vec::new(),
            done: 0,
            ready: VecDeque::new(),
            held: None,
            current: None,
            series: None,
            empty: TimeRange::EMPTY,
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

    /// Whether the next rows are there already.
    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The next rows.
    pub(crate) fn next(&mut self) -> Result<Option<Part>, QueryError> {
        loop {
            if let Some(part) = self.ready.pop_front() {
                return Ok(Some(part));
            }
            self.context.interrupt.check()?;
            if let Some(current) = self.current.take() {
                self.read_part(current)?;
                continue;
            }
            let Some(unit) = self.units.front() else { return Ok(None) };
            if self.done == unit.groups.len() {
                self.finished.extend(self.units.pop_front().map(|unit| unit.stats()));
                self.empty = TimeRange::EMPTY;
                self.done = 0;
                continue;
            }
            self.start_groups()?;
        }
    }

    /// Makes rows of a block ready: those of each series within OFFSET and LIMIT.
    fn make_ready(&mut self, block: Block, series: Vec<(Arc<SeriesHeader>, Range<usize>)>) {
        if fills(self.select.fill) {
            for (header, range) in series {
                let Some(range) = self.limited(&header, range) else { continue };
                let block = self.filled(&block, range);
                let columns = outputs(&self.select, block);
                self.ready.push_back(Part::new(header, columns));
            }
            return;
        }
        let rows = block.times.len();
        let columns = outputs(&self.select, block);
        let batch = Arc::new(ColumnBatch { rows, runs: Vec::new(), columns });
        for (header, range) in series {
            if let Some(range) = self.limited(&header, range) {
                self.ready.push_back(Part { header, batch: Arc::clone(&batch), range });
            }
        }
    }

    /// What OFFSET and LIMIT leave of some rows of a series.
    fn limited(&mut self, header: &Arc<SeriesHeader>, rows: Range<usize>) -> Option<Range<usize>> {
        let select = &self.select;
        if self.series.as_ref().is_none_or(|series| !Arc::ptr_eq(&series.header, header)) {
            self.series = Some(SeriesState {
                header: Arc::clone(header),
                skip: select.offset,
                left: if select.limit == 0 { u64::MAX } else { select.limit },
                last: if fills(select.fill) { vec![None; select.aux.len()] } else { Vec::new() },
            });
        }
        let state = self.series.as_mut()?;
        let skipped = state.skip.min(rows.len() as u64);
        state.skip -= skipped;
        let from = rows.start + skipped as usize;
        let count = ((rows.end - from) as u64).min(state.left);
        state.left -= count;
        (count > 0).then(|| from..from + count as usize)
    }

    /// Rows of the series that was looked at last, with values where they have none.
    fn filled(&mut self, block: &Block, rows: Range<usize>) -> Block {
        let mut slots: Vec<Column> =
            block.slots.iter().map(|column| slice(column, rows.clone())).collect();
        if let Some(state) = &mut self.series {
            for (column, last) in slots.iter_mut().zip(&mut state.last) {
                fill(column, last, self.select.fill);
            }
        }
        Block { times: block.times[rows].to_vec(), slots }
    }

    /// Whether the series has had all rows that LIMIT allows.
    fn is_full(&self, header: &Arc<SeriesHeader>) -> bool {
        let same = |series: &&SeriesState| Arc::ptr_eq(&series.header, header);
        self.series.as_ref().filter(same).is_some_and(|series| series.left == 0)
    }

    /// Starts on the next groups of the first unit.
    fn start_groups(&mut self) -> Result<(), QueryError> {
        let unit = &self.units[0];
        let groups = self.next_groups(unit);
        let count = groups.len();
        if count == 1 {
            let group = groups.start;
            let header = unit.header(group, &self.select);
            let in_slices = self.looks_in_slices(unit, group);
            if in_slices && unit.only_series(group).is_some() {
                let rows = self.first_slice_of_one();
                let reading = Reading::Slices { done: None, rows, rows_max: u64::MAX, found: 0 };
                self.current = Some(Current { group, header, reading });
                self.done += count;
                return Ok(());
            }
            if let Some((input, series)) = unit.only_series(group) {
                let mut slice = ScanSlice::all();
                slice.series = Some(Arc::new([series]));
                slice.rows_per_series = unit.inputs[input].rows_per_series;
                let cursor = unit.inputs[input].cursor(&slice)?;
                let reading = Reading::Stream { input, cursor };
                self.current = Some(Current { group, header, reading });
                self.done += count;
                return Ok(());
            }
            let rows_wanted = self.rows_wanted(unit, groups.clone());
            let many = rows_wanted > self.context.tuning.first_slice_rows;
            let cells = rows_wanted.saturating_mul(self.select.aux.len() as u64);
            let are_wide = cells / COLUMNS_USUAL > self.context.tuning.first_slice_rows;
            if (many || are_wide || self.wants_fewer_than_series(unit, group))
                && !self.select.shows_groups()
                && first::is_possible(&self.select, &self.context, unit)
                && let Some((block, held)) = first::read(&self.select, &self.context, unit, group)?
            {
                if !block.times.is_empty() {
                    let rows = 0..block.times.len();
                    self.make_ready(block, vec![(header, rows)]);
                    self.held = Some(held);
                }
                self.done += count;
                return Ok(());
            }
            if many
                && !self.select.shows_groups()
                && first::is_likely(&self.select, &self.context, unit, group)
                && let Some((block, held)) = first::of_first_series(
                    &self.select,
                    &self.context,
                    unit,
                    group,
                    &mut self.empty,
                )?
            {
                let rows = 0..block.times.len();
                self.make_ready(block, vec![(header, rows)]);
                self.held = Some(held);
                self.done += count;
                return Ok(());
            }
            if many && !self.select.shows_groups() {
                let rows = self.first_slice(unit, group);
                let reading = Reading::Slices { done: None, rows, rows_max: u64::MAX, found: 0 };
                self.current = Some(Current { group, header, reading });
                self.done += count;
                return Ok(());
            }
        }
        self.gather(groups)?;
        self.done += count;
        Ok(())
    }

    /// Rows of a group that LIMIT and OFFSET want to be read.
    fn enough(&self) -> u64 {
        self.select.limit.saturating_add(self.select.offset)
    }

    /// Whether LIMIT wants fewer rows of a group than it has series: mostly some of these have them all.
    fn wants_fewer_than_series(&self, unit: &Unit, group: usize) -> bool {
        self.enough() < unit.groups.series_count(group..group + 1) as u64
    }

    /// Rows of the first slice of time of a group. A condition may leave so few that all are read at once: of many short
    /// series each slice reads everything again.
    fn first_slice(&self, unit: &Unit, group: usize) -> u64 {
        let tuning = self.context.tuning;
        let is_filtered = unit.inputs.iter().all(|input| input.filter.is_some());
        let goes_far = is_filtered && self.may_read_again();
        if self.select.limit > 0 {
            let series = unit.groups.series_count(group..group + 1) as u64;
            let at_once = if goes_far { series.saturating_mul(ROWS_AT_ONCE) } else { 0 };
            return self.enough().max(self.first_slice_rows()).max(at_once / self.width());
        }
        if goes_far {
            unit.rows_estimate(group..group + 1).max(tuning.gather_rows)
        } else {
            tuning.gather_rows
        }
    }

    /// Whether a condition and LIMIT leave so few rows of a group that these are looked for slice by slice, where all rows of
    /// its series would be read at once.
    fn looks_in_slices(&self, unit: &Unit, group: usize) -> bool {
        // A subquery would be worked out for each slice anew.
        let is_stored = |input: &Input| input.filter.is_some() && input.request.is_some();
        let is_filtered = unit.inputs.iter().all(is_stored);
        let rows = unit.rows_estimate(group..group + 1);
        self.select.limit > 0
            && is_filtered
            && self.may_read_again()
            && !self.select.shows_groups()
            && rows > self.first_slice_of_one().saturating_mul(GROWTH)
    }

    /// Rows of the first slice of time of a group with one series, of which few are wanted.
    fn first_slice_of_one(&self) -> u64 {
        let least = self.first_slice_rows() / FEW_OF_ONE;
        self.enough().saturating_mul(ROWS_AT_ONCE).max(least)
    }

    /// Rows of a first slice of time: of many columns as few more cells are read in vain.
    fn first_slice_rows(&self) -> u64 {
        (self.context.tuning.first_slice_rows / self.width()).max(1)
    }

    /// How many times as many columns as usual rows have.
    fn width(&self) -> u64 {
        (self.select.aux.len() as u64 / COLUMNS_USUAL).max(1)
    }

    /// Rows of the slice after one that had too many: a condition leaves many, so that a few rows have what LIMIT wants.
    fn next_after_too_many(&self) -> u64 {
        let few = self.enough().max(self.first_slice_rows());
        if self.select.limit > 0 { few } else { u64::MAX }
    }

    /// Rows of a group that the next slice should have, after so many were found.
    fn wanted_next(&self, found: u64) -> u64 {
        let most = self.context.tuning.gather_rows;
        if self.select.limit == 0 {
            return most;
        }
        self.enough().saturating_sub(found).saturating_mul(MARGIN).clamp(1, most)
    }

    /// Most rows that are put in order together, of a slice that may be read again as smaller ones.
    fn sorted_max(&self) -> u64 {
        let tuning = self.context.tuning;
        let most = tuning.gather_rows.saturating_mul(2);
        if self.select.limit == 0 {
            return most;
        }
        self.enough().saturating_add(tuning.first_slice_rows).saturating_mul(GROWTH).min(most)
    }

    /// Whether a slice that has too many rows may be read again as smaller ones: where points are counted none is.
    fn may_read_again(&self) -> bool {
        self.context.limits.max_select_point == 0
    }

    /// The groups to read together, in a range that always ascends.
    fn next_groups(&self, unit: &Unit) -> Range<usize> {
        let total = unit.groups.len();
        let at = |count: usize| {
            if self.select.ascending {
                self.done..self.done + count
            } else {
                total - self.done - count..total - self.done
            }
        };
        let left = total - self.done;
        let next = if self.select.ascending { self.done } else { total - self.done - 1 };
        if self.looks_in_slices(unit, next) {
            return at(1);
        }
        let each = (self.rows_wanted(unit, 0..total) / total as u64).max(1);
        let count = (self.context.tuning.gather_rows / each).max(1);
        at((count as usize).min(left))
    }

    /// An estimate of the rows of `groups` that have to be read.
    fn rows_wanted(&self, unit: &Unit, groups: Range<usize>) -> u64 {
        let rows = unit.rows_estimate(groups.clone());
        let filtered = unit.inputs.iter().any(|input| input.filter.is_some());
        if self.select.limit == 0 || filtered {
            return rows;
        }
        rows.min(self.enough().saturating_mul(unit.groups.series_count(groups) as u64))
    }

    /// Reads the next part of a group.
    fn read_part(&mut self, mut current: Current) -> Result<(), QueryError> {
        if self.is_full(&current.header) {
            return Ok(());
        }
        let unit = &self.units[0];
        match &mut current.reading {
            Reading::Stream { input, cursor } => {
                let Some(item) = cursor.next()? else { return Ok(()) };
                let ScanItem::Rows(batch) = item else {
                    panic!("BUG: summaries were not asked for");
                };
                self.context.count_points(batch.rows)?;
                let input = &unit.inputs[*input];
                let mut batch = input.wanted_rows(batch);
                if batch.rows > 0 {
                    let slots = input.take_aux(&mut batch);
                    let block = Block { times: batch.times().to_vec(), slots };
                    let series = vec![(Arc::clone(&current.header), 0..batch.rows)];
                    self.make_ready(block, series);
                }
            }
            Reading::Slices { done, rows, rows_max, found: before } => {
                // What was ready has been handed out.
                self.held = None;
                // The extent is that of all groups.
                let of_group = unit.rows_estimate(current.group..current.group + 1).max(1);
                let of_all =
                    u128::from(*rows) * u128::from(unit.extent.rows()) / u128::from(of_group);
                let of_all = u64::try_from(of_all).unwrap_or(u64::MAX);
                let slice = unit.extent.slice(*done, of_all, self.select.ascending);
                let Some(slice) = slice else { return Ok(()) };
                match self.gather_slice((current.group, &current.header), slice, *rows)? {
                    Some(found) => {
                        *done = Some(if self.select.ascending { slice.max } else { slice.min });
                        *before += found;
                        let next = next_slice(*rows, found, self.wanted_next(*before));
                        *rows = next.min(*rows_max);
                    }
                    None => {
                        *rows_max = *rows / GROWTH;
                        *rows = (*rows_max).min(self.next_after_too_many());
                    }
                }
            }
        }
        self.current = Some(current);
        Ok(())
    }

    /// Reads and sorts a slice of a group, which has about so many rows; returns how many were wanted of them. `None`: too many
    /// to be put in order together.
    fn gather_slice(
        &mut self,
        (group, header): (usize, &Arc<SeriesHeader>),
        time: TimeRange,
        rows: u64,
    ) -> Result<Option<u64>, QueryError> {
        let (unit, groups) = (&self.units[0], group..group + 1);
        let tuning = self.context.tuning;
        let can_shrink = self.may_read_again() && rows / GROWTH >= tuning.first_slice_rows;
        let rows_max = if can_shrink { self.sorted_max() } else { u64::MAX };
        let read = unit.slices(groups, time);
        let read = Gathered::read_slices(
            &self.select,
            &self.context,
            unit,
            read,
            (rows, usize::try_from(rows_max).unwrap_or(usize::MAX)),
        );
        let gathered = match read {
            Ok(Some(gathered)) => gathered,
            Ok(None) => return Ok(None),
            Err(QueryError::OverBudget(_)) if can_shrink => return Ok(None),
            Err(error) => return Err(error),
        };
        let (block, groups, held) = gathered.sorted(self.select.ascending);
        let found = block.times.len() as u64;
        self.make_group_ready(block, groups, header);
        self.held = Some(held);
        Ok(Some(found))
    }

    /// Makes rows of one group ready.
    fn make_group_ready(
        &mut self,
        block: Block,
        groups: Vec<(usize, Range<usize>)>,
        header: &Arc<SeriesHeader>,
    ) {
        let rows = groups.into_iter().map(|(_, rows)| (Arc::clone(header), rows)).collect();
        self.make_ready(block, rows);
    }

    /// Reads and sorts the rows of `groups`.
    fn gather(&mut self, groups: Range<usize>) -> Result<(), QueryError> {
        let unit = &self.units[0];
        let (block, groups, held) = match self.gather_nearest(unit, groups.clone())? {
            Some(found) => found,
            None => {
                let rows = self.rows_wanted(unit, groups.clone());
                let time = TimeRange::ALL;
                Gathered::read(&self.select, &self.context, unit, groups, time, rows)?
                    .sorted(self.select.ascending)
            }
        };
        let header = |group| unit.header(group, &self.select);
        let series = groups.into_iter().map(|(group, rows)| (header(group), rows)).collect();
        self.make_ready(block, series);
        self.held = Some(held);
        Ok(())
    }

    /// Reads and sorts the rows of `groups`, if few series can have the first ones.
    fn gather_nearest(
        &self,
        unit: &Unit,
        groups: Range<usize>,
    ) -> Result<Option<Sorted>, QueryError> {
        let Some(nearest) = Nearest::of(&self.select, &self.context, unit, groups.clone())? else {
            return Ok(None);
        };
        let slice = ScanSlice {
            series: Some(Arc::clone(&nearest.series)),
            rows_per_series: unit.inputs[0].rows_per_series,
            ..ScanSlice::all()
        };
        let rows = nearest.series.len() as u64;
        let slices = vec![(0, slice)];
        let (select, context) = (&*self.select, &self.context);
        let found = Gathered::read_slices(select, context, unit, slices, (rows, usize::MAX))?;
        let found = found.expect("BUG: there is no limit").sorted(select.ascending);
        let (block, of_groups, _) = &found;
        let mut ranges = vec![0..0; nearest.groups()];
        for (group, rows) in of_groups {
            ranges[group - groups.start] = rows.clone();
        }
        let are_first =
            |(group, rows): (usize, Range<usize>)| nearest.are_first(group, &block.times[rows]);
        Ok(ranges.into_iter().enumerate().all(are_first).then_some(found))
    }
}

/// With a condition, slices of time that have fewer rows of each series than this are not smaller for whoever reads them.
const ROWS_AT_ONCE: u64 = 16;

/// The first slice of a single series has so many times fewer rows than one of several: there is another for each series.
const FEW_OF_ONE: u64 = 8;

/// How many times as many rows a slice of time has than the one before, at most; and how many times fewer if these were too many.
const GROWTH: u64 = 4;

/// How many times as many rows as LIMIT still wants a slice is to have: it may turn out to have fewer.
const MARGIN: u64 = 2;

/// About how many rows a slice of time should have, so that about `wanted` of them are, after one of `rows` of which `found` were.
fn next_slice(rows: u64, found: u64, wanted: u64) -> u64 {
    let fitting = u128::from(rows) * u128::from(wanted) / u128::from(found.max(1));
    u64::try_from(fitting)
        .unwrap_or(u64::MAX)
        .clamp(rows / GROWTH, rows.saturating_mul(GROWTH))
        .max(1)
}

/// Whether rows without functions are filled.
fn fills(fill: Fill) -> bool {
    matches!(fill, Fill::Previous) || number(fill).is_some()
}

/// `fill()` of rows without functions: a number or the value before.
fn fill(column: &mut Column, last: &mut Cell, fill: Fill) {
    match fill {
        Fill::Previous => fill_forward(column, last),
        fill => {
            if let Some(value) = number(fill) {
                fill_missing(column, &value);
            }
        }
    }
}
