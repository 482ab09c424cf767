//! The first rows of a group of many series, for LIMIT.
//!
//! Rows come in order of time, and of one time in an order of their series: by the texts of leading tags, then as they were
//! opened. So once a few series have as many rows as are wanted, of series behind them in that order only earlier rows
//! matter; where rows come at even times there are none, and nobody looks at the other series at all. Where the texts of rows
//! decide about that order, all rows of a short time are put in order.

use std::sync::Arc;

use model::{Column, Reservation, TimeRange};
use store::{ScanSlice, SeriesOrders};

use super::by_time;
use super::gather::Gathered;
use super::leading::Leading;
use super::nearest::Nearest;
use super::series_left::{Left, series_in_order};
use crate::exec::column::{append, arrange};
use crate::exec::rows::Block;
use crate::exec::unit::Unit;
use crate::plan::Select;
use crate::{QueryContext, QueryError};

/// How many times as many series are read each time.
const GROWTH: usize = 4;

/// How often a few series are read where it is a guess that they have all rows.
const GUESSES: usize = 2;

/// Series that are asked for where they begin, to guess what all do.
const SERIES_ASKED: usize = 8;

/// With a condition so many series are read at first for each row that is wanted.
const SERIES_A_ROW: usize = 8;

/// Series with more rows than this are better read slice by slice with a condition.
const FEW_ROWS: u64 = 64;

/// Whether the first rows of a group can be found series by series. A condition on fields may find its rows anywhere in
/// them: then it is better to go through time.
pub(super) fn is_possible(select: &Select, context: &QueryContext, unit: &Unit) -> bool {
    let [input] = unit.inputs.as_slice() else { return false };
    let wanted = select.limit.saturating_add(select.offset);
    select.limit > 0
        && wanted <= context.tuning.gather_rows
        && input.request.is_some()
        && input.filter.is_none()
}

/// Whether the first rows of a group that satisfy a condition may be those of series that come first: of very many that have a
/// handful of rows each, mostly at the same times.
pub(super) fn is_likely(
    select: &Select,
    context: &QueryContext,
    unit: &Unit,
    group: usize,
) -> bool {
    let [input] = unit.inputs.as_slice() else { return false };
    let series = unit.groups.series_count(group..group + 1);
    let wanted = select.limit.saturating_add(select.offset);
    (1..=SeriesOrders::FIRST_MAX as u64).contains(&wanted)
        && select.limit > 0
        && input.request.is_some()
        && input.filter.is_some()
        && context.limits.max_select_point == 0
        && series >= context.tuning.first_series
        && unit.rows_estimate(group..group + 1) < series as u64 * FEW_ROWS
        && !matches!(Leading::of(select, unit), Leading::Texts(_))
}

/// The first rows of a group that satisfy a condition, if series that come first have them and nobody has rows before; a guess
/// that is given up soon. `empty`: a time of which it is known that no series of the unit has rows then.
pub(super) fn of_first_series(
    select: &Select,
    context: &QueryContext,
    unit: &Unit,
    group: usize,
    empty: &mut TimeRange,
) -> Result<Option<(Block, Reservation)>, QueryError> {
    let mut left = series_in_order(select, unit, unit.groups.ordinals(0, group..group + 1));
    let mut nearest = Found::new(select, context, unit.extent.bounds(), &left)?;
    let few = nearest.wanted.saturating_mul(SERIES_A_ROW).min(SeriesOrders::FIRST_MAX);
    for count in [few, SeriesOrders::FIRST_MAX] {
        let next = left.take(count);
        nearest.add(&rows_of(select, context, unit, (next, nearest.within))?)?;
        if !nearest.is_of_one_time() {
            continue;
        }
        if !empty.covers(&nearest.within) {
            if unit.inputs[0].scan.has_rows(nearest.within)? {
                return Ok(None);
            }
            *empty = nearest.within;
        }
        return Ok(Some((nearest.best, nearest.held)));
    }
    Ok(None)
}

/// The first rows of a group, no more than LIMIT and OFFSET want of them, and their memory. `None`: rows of one time come in the
/// order of their texts, and no short time has them.
pub(super) fn read(
    select: &Select,
    context: &QueryContext,
    unit: &Unit,
    group: usize,
) -> Result<Option<(Block, Reservation)>, QueryError> {
    let series = unit.groups.ordinals(0, group..group + 1);
    let all = || series_in_order(select, unit, series.clone());
    let bounds = unit.extent.bounds();
    // Where points are counted none is read again.
    let may_read_again = context.limits.max_select_point == 0;
    let is_by_texts = matches!(Leading::of(select, unit), Leading::Texts(_));
    // Where rows come at even times the first few series have them all, or some more if these lack a few.
    if may_read_again
        && !is_by_texts
        && let Some(found) = read_of(select, context, unit, all(), (bounds, true))?
    {
        return Ok(Some(found));
    }
    // Where they come at any time, a short one of all series has them. In the midst of rows it takes less to look there than to
    // find out where each series begins.
    let is_amid = is_amid(select, bounds);
    let by_time = |now: bool| match may_read_again && now {
        true => by_time::read(select, context, unit, (series.as_ref(), bounds)),
        false => Ok(None),
    };
    if let Some(found) = by_time(is_amid)? {
        return Ok(Some(found));
    }
    if let Some(nearest) = Nearest::of(select, context, unit, group..group + 1)? {
        let within = nearest.within(bounds);
        let is_short = unit.extent.rows_within(within) <= context.tuning.gather_rows;
        let found = if is_by_texts && !is_short {
            None
        } else if is_by_texts {
            let some = Arc::clone(&nearest.series);
            let block = rows_of(select, context, unit, (some, within))?;
            let held = context.budget.reserve(block.memory_bytes())?;
            Some((block, held))
        } else {
            let left = series_in_order(select, unit, Some(Arc::clone(&nearest.series)));
            read_of(select, context, unit, left, (within, false))?
        };
        if let Some(found) = found.filter(|(block, _)| nearest.are_first(0, &block.times)) {
            return Ok(Some(found));
        }
    }
    if let Some(found) = by_time(!is_amid)? {
        return Ok(Some(found));
    }
    if is_by_texts {
        return Ok(None);
    }
    read_of(select, context, unit, all(), (bounds, false))
}

/// Whether there may be rows before those that are asked for, so that no directory says where series begin.
fn is_amid(select: &Select, bounds: TimeRange) -> bool {
    let time = select.read_range();
    if select.ascending { bounds.min <= time.min } else { bounds.max >= time.max }
}

/// Whether series begin at the same time, as rows that come at even times do: most of some of them, if it is known where they begin.
fn begin_together(unit: &Unit, series: &[u32], ascending: bool) -> Result<bool, QueryError> {
    let some = &series[..series.len().min(SERIES_ASKED)];
    let Some(ends) = unit.inputs[0].scan.ends(Some(some))? else { return Ok(true) };
    let first = if ascending { ends.iter().min() } else { ends.iter().max() };
    let with_first = ends.iter().filter(|end| Some(*end) == first).count();
    Ok(with_first * 2 >= ends.len())
}

/// The first rows of some series, which have none outside of `within`. `None`: it was a guess that few of these have them, and
/// they do not.
fn read_of(
    select: &Select,
    context: &QueryContext,
    unit: &Unit,
    mut left: Left<'_>,
    (within, is_guess): (TimeRange, bool),
) -> Result<Option<(Block, Reservation)>, QueryError> {
    let mut nearest = Found::new(select, context, within, &left)?;
    let wanted = nearest.wanted;
    let rows_each = (unit.extent.rows() / left.len().max(1) as u64 + 1).min(wanted as u64);
    let series_for = |rows: u64| usize::try_from((rows / rows_each).max(1)).unwrap_or(usize::MAX);
    // Mostly rows of the first series are all that is wanted.
    let first_slice = series_for(context.tuning.first_slice_rows);
    let count_max = series_for(context.tuning.gather_rows);
    // Where points are counted none is read again.
    let mut goes_by_time = context.limits.max_select_point == 0;
    let mut count = wanted.min(if goes_by_time { count_max } else { first_slice });
    if is_guess {
        count = count.max(SERIES_ASKED);
    }
    let mut rounds = 0;
    while !left.is_empty() && !nearest.within.is_empty() {
        if is_guess && rounds == GUESSES {
            return Ok(None);
        }
        let few = unit.extent.rows_within(nearest.within) <= context.tuning.gather_rows;
        let before = left.place();
        let takes_all = few && rounds > 0 && !is_guess;
        let next = left.take(if takes_all { usize::MAX } else { count });
        if is_guess && rounds == 0 && !begin_together(unit, &next, select.ascending)? {
            return Ok(None);
        }
        if goes_by_time && !few && (2..=wanted).contains(&next.len()) {
            match by_time::read(select, context, unit, (Some(&next), nearest.within))? {
                Some((block, _held)) => nearest.add(&block)?,
                None => {
                    left.go_back(before);
                    (goes_by_time, count) = (false, wanted.min(first_slice));
                    continue;
                }
            }
        } else {
            nearest.add(&rows_of(select, context, unit, (next, nearest.within))?)?;
        }
        // Rows of one time, and maybe none before, where a range begins between two times.
        if is_guess
            && rounds == 0
            && nearest.is_of_one_time()
            && !nearest.within.is_empty()
            && !unit.inputs[0].scan.has_rows(nearest.within)?
        {
            break;
        }
        rounds += 1;
        let more = count.saturating_mul(GROWTH).max(if is_guess { 0 } else { first_slice });
        count = more.min(count_max.max(count));
    }
    Ok(Some((nearest.best, nearest.held)))
}

/// The rows of some series within a time, in order: of each no more than can be wanted.
fn rows_of(
    select: &Select,
    context: &QueryContext,
    unit: &Unit,
    (series, time): (Arc<[u32]>, TimeRange),
) -> Result<Block, QueryError> {
    let slice = ScanSlice {
        series: Some(series),
        time,
        rows_per_series: unit.inputs[0].rows_per_series,
        ..ScanSlice::all()
    };
    let rows = unit.rows_within(0, &slice) as u64;
    let slices = vec![(0, slice)];
    let found = Gathered::read_slices(select, context, unit, slices, (rows, usize::MAX))?;
    let (found, ..) = found.expect("BUG: there is no limit").sorted(select.ascending);
    Ok(found)
}

/// The first rows of those that were read.
struct Found {
    best: Block,
    wanted: usize,
    ascending: bool,
    /// Rows that others may have and that come before the last of these.
    within: TimeRange,
    /// Memory of these, and of the series that are left, each of which may be in a slice, and be put in order before.
    held: Reservation,
    listed: usize,
}

impl Found {
    fn new(
        select: &Select,
        context: &QueryContext,
        within: TimeRange,
        left: &Left<'_>,
    ) -> Result<Self, QueryError> {
        let wanted = select.limit.saturating_add(select.offset);
        let listed = left.len() * 2 * size_of::<u32>();
        Ok(Self {
            best: Block { times: Vec::new(), slots: Vec::new() },
            wanted: usize::try_from(wanted).unwrap_or(usize::MAX),
            ascending: select.ascending,
            within,
            held: context.budget.reserve(listed)?,
            listed,
        })
    }

    /// Whether as many rows as are wanted have the same time, so that there may be none before them.
    fn is_of_one_time(&self) -> bool {
        let times = &self.best.times;
        times.len() == self.wanted && times.first() == times.last()
    }

    /// Adds rows, in order, of series that come behind all before.
    fn add(&mut self, found: &Block) -> Result<(), QueryError> {
        let none = Block { times: Vec::new(), slots: Vec::new() };
        let best = std::mem::replace(&mut self.best, none);
        self.best = merged(best, found, self.ascending, self.wanted);
        self.held.resize(self.listed + self.best.memory_bytes())?;
        let times = &self.best.times;
        if let Some(last) = times.last().filter(|_| times.len() == self.wanted) {
            if self.ascending {
                self.within.max = self.within.max.min(last.saturating_sub(1));
            } else {
                self.within.min = self.within.min.max(last.saturating_add(1));
            }
        }
        Ok(())
    }
}

/// The first `wanted` rows of two blocks that are in order; of one time those of `a` come first.
pub(super) fn merged(a: Block, b: &Block, ascending: bool, wanted: usize) -> Block {
    let (from_a, from_b) = (a.times.len(), b.times.len());
    let mut order = Vec::with_capacity(wanted.min(from_a + from_b));
    let (mut at, mut other) = (0, 0);
    while order.len() < wanted && (at < from_a || other < from_b) {
        let is_a = match (a.times.get(at), b.times.get(other)) {
            (Some(a), Some(b)) => {
                if ascending {
                    a <= b
                } else {
                    a >= b
                }
            }
            (a, _) => a.is_some(),
        };
        if is_a {
            order.push(at as u32);
            at += 1;
        } else {
            order.push((from_a + other) as u32);
            other += 1;
        }
    }
    let all_times = [&a.times[..], &b.times[..]].concat();
    let times = order.iter().map(|row| all_times[*row as usize]).collect();
    let mut slots = a.slots;
    if slots.is_empty() {
        slots = b.slots.iter().map(|column| Column::new(column.values.empty_like())).collect();
    }
    for (mine, theirs) in slots.iter_mut().zip(&b.slots) {
        append(mine, theirs);
        *mine = arrange(mine, &order);
    }
    Block { times, slots }
}

#[cfg(test)]
mod tests {
    use model::Values;

    use super::*;

    fn block(rows: &[(i64, i64)]) -> Block {
        let times = rows.iter().map(|row| row.0).collect();
        let values = Values::Integer(rows.iter().map(|row| row.1).collect());
        Block { times, slots: vec![Column::new(values)] }
    }

    #[test]
    fn of_one_time_the_rows_found_first_come_first() {
        let (a, b) = (block(&[(1, 10), (3, 11)]), block(&[(0, 20), (1, 21), (2, 22), (3, 23)]));
        let rows = |block: Block| -> Vec<(i64, i64)> {
            let Values::Integer(values) = &block.slots[0].values else { panic!("integers") };
            block.times.iter().copied().zip(values.iter().copied()).collect()
        };
        let found = rows(merged(a, &b, true, 5));
        assert_eq!(found, [(0, 20), (1, 10), (1, 21), (2, 22), (3, 11)]);
        let (a, b) = (block(&[(3, 10)]), block(&[(3, 20), (2, 21)]));
        assert_eq!(rows(merged(a, &b, false, 9)), [(3, 10), (3, 20), (2, 21)]);
        let nothing = Block { times: Vec::new(), slots: Vec::new() };
        assert_eq!(rows(merged(nothing, &block(&[(1, 1), (2, 2)]), true, 1)), [(1, 1)]);
    }
}
