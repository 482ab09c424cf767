//! The first rows of a group of many series, for LIMIT.
//!
//! Rows come in order of time, and of one time in an order of their series: by the texts of leading tags, then as they were
//! opened. So once a few series have as many rows as are wanted, of series behind them in that order only earlier rows
//! matter; where rows come at even times there are none, and nobody looks at the other series at all.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use model::{Column, Name, Reservation, TimeRange};
use store::{ScanSlice, SeriesOrders};

use super::by_time;
use super::gather::Gathered;
use super::leading::{Leading, LeadingTag, compare_series};
use super::nearest::Nearest;
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
        && !matches!(Leading::of(select, unit), Leading::Texts(_))
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

/// The first rows of a group, no more than LIMIT and OFFSET want of them, and their memory.
pub(super) fn read(
    select: &Select,
    context: &QueryContext,
    unit: &Unit,
    group: usize,
) -> Result<(Block, Reservation), QueryError> {
    let all = || series_in_order(select, unit, unit.groups.ordinals(0, group..group + 1));
    let bounds = unit.extent.bounds();
    // Where points are counted none is read again.
    if context.limits.max_select_point == 0 {
        // Where rows come at even times the first few series have them all, or some more if these lack a few.
        if let Some(found) = read_of(select, context, unit, all(), (bounds, true))? {
            return Ok(found);
        }
        // Where they come at any time, to read a short one of all takes less than to find where each series begins.
        let series = unit.groups.ordinals(0, group..group + 1);
        if let Some(found) = by_time::read(select, context, unit, (series.as_ref(), bounds))? {
            return Ok(found);
        }
    }
    if let Some(nearest) = Nearest::of(select, context, unit, group..group + 1)? {
        let left = series_in_order(select, unit, Some(Arc::clone(&nearest.series)));
        let within = nearest.within(bounds);
        let found = read_of(select, context, unit, left, (within, false))?;
        if let Some(found) = found.filter(|(block, _)| nearest.are_first(0, &block.times)) {
            return Ok(found);
        }
    }
    let found = read_of(select, context, unit, all(), (bounds, false))?;
    Ok(found.expect("BUG: there is no limit"))
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
    let mut rounds = 0;
    while !left.is_empty() && !nearest.within.is_empty() {
        if is_guess && rounds == GUESSES {
            return Ok(None);
        }
        let few = unit.extent.rows_within(nearest.within) <= context.tuning.gather_rows;
        let before = (left.taken, left.last);
        let takes_all = few && rounds > 0 && !is_guess;
        let next = left.take(if takes_all { usize::MAX } else { count });
        if is_guess && rounds == 0 && !begin_together(unit, &next, select.ascending)? {
            return Ok(None);
        }
        if goes_by_time && !few && (2..=wanted).contains(&next.len()) {
            match by_time::read(select, context, unit, (Some(&next), nearest.within))? {
                Some((block, _held)) => nearest.add(&block)?,
                None => {
                    (left.taken, left.last) = before;
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
        let (times, slots) = (&self.best.times, &self.best.slots);
        let columns: usize = slots.iter().map(Column::memory_bytes).sum();
        self.held.resize(self.listed + columns + times.len() * size_of::<i64>())?;
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

/// Series that are left, in the order in which rows of one time come.
struct Left<'a> {
    /// All of them, ascending; `None`: the first `count`.
    series: Option<Arc<[u32]>>,
    count: usize,
    /// How many were taken, and the last one of them.
    taken: usize,
    last: Option<u32>,
    tags: Vec<LeadingTag<'a>>,
    ascending: bool,
    /// What is known of the order of all.
    orders: &'a SeriesOrders,
}

fn series_in_order<'a>(select: &Select, unit: &'a Unit, series: Option<Arc<[u32]>>) -> Left<'a> {
    let of_input = unit.inputs[0].scan.series().len as usize;
    let count = series.as_ref().map_or(of_input, |series| series.len());
    let tags = match Leading::of(select, unit) {
        Leading::Tags(tags) => tags,
        Leading::Nothing | Leading::Texts(_) => Vec::new(),
    };
    let orders = &unit.inputs[0].scan.series().orders;
    Left { series, count, taken: 0, last: None, tags, ascending: select.ascending, orders }
}

impl Left<'_> {
    fn len(&self) -> usize {
        self.count - self.taken
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The series at a place among all, also those that were taken.
    #[inline]
    fn at(&self, place: usize) -> u32 {
        self.series.as_ref().map_or(place as u32, |series| series[place])
    }

    /// The first tags, as far as their ranks fit into one number: mostly these decide.
    fn leading(&self) -> &[LeadingTag<'_>] {
        let (mut count, mut all) = (0, 0);
        for tag in &self.tags {
            if all + tag.bits > KEY_BITS || all >= KEY_BITS_ENOUGH {
                break;
            }
            all += tag.bits;
            count += 1;
        }
        &self.tags[..count]
    }

    /// The numbers of the series at some places, as [`key_of`] says.
    fn fill_keys(&self, leading: &[LeadingTag], places: Range<usize>, keys: &mut Vec<u32>) {
        keys.clear();
        keys.resize(places.len(), 0);
        for tag in leading {
            match &self.series {
                None => {
                    for (key, rank) in keys.iter_mut().zip(tag.ranks(places.clone())) {
                        *key = with_rank(*key, tag, rank);
                    }
                }
                Some(series) => {
                    for (key, series) in keys.iter_mut().zip(&series[places.clone()]) {
                        *key = with_rank(*key, tag, tag.rank(*series));
                    }
                }
            }
        }
    }

    /// Whether series with these numbers all come behind one with that; `same_is_behind`: one with the same number does.
    fn are_behind(&self, keys: &[u32], bar: u32, same_is_behind: bool) -> bool {
        let keys = keys.iter().copied();
        let nearest = if self.ascending { keys.min() } else { keys.max() };
        nearest.is_none_or(|nearest| match nearest.cmp(&bar) {
            Ordering::Equal => same_is_behind,
            order => order.is_gt() == self.ascending,
        })
    }

    fn compare(&self, a: u32, b: u32) -> Ordering {
        let order = compare_series(&self.tags, a, b).then(a.cmp(&b));
        if self.ascending { order } else { order.reverse() }
    }

    /// Takes the next ones; they ascend by their numbers.
    fn take(&mut self, count: usize) -> Arc<[u32]> {
        let count = count.min(self.len());
        let are_known = self.series.is_none()
            && self.taken == 0
            && self.count >= ORDERED_SERIES_MIN
            && count <= SeriesOrders::FIRST_MAX;
        let mut next = if are_known { self.first()[..count].to_vec() } else { self.find(count) };
        if let Some(last) = next.iter().copied().max_by(|a, b| self.compare(*a, *b)) {
            self.last = Some(last);
        }
        next.sort_unstable();
        self.taken += next.len();
        Arc::from(next)
    }

    /// The first of all, in order.
    fn first(&self) -> Arc<[u32]> {
        let keys: Vec<&Name> = self.tags.iter().map(|tag| tag.key).collect();
        self.orders.first((&keys, self.ascending), || {
            let mut first = self.find(SeriesOrders::FIRST_MAX.min(self.count));
            first.sort_unstable_by(|a, b| self.compare(*a, *b));
            first
        })
    }

    /// The next ones, in no order; at least one. Series are looked at once each: few of many are the next ones.
    fn find(&self, count: usize) -> Vec<u32> {
        if count == 0 {
            return Vec::new();
        }
        let leading = self.leading();
        let mut keys = Vec::with_capacity(SERIES_TOGETHER);
        let mut next: Vec<u32> = Vec::new();
        // As many as are wanted come before this one, or are it.
        let mut bar: Option<(u32, u32)> = None;
        let select = |next: &mut Vec<u32>| {
            if count < next.len() {
                next.select_nth_unstable_by(count - 1, |a, b| self.compare(*a, *b));
                next.truncate(count);
            }
            next.last().copied()
        };
        // Where tags do not decide it is the number of a series, which those that are looked at later have behind it.
        let same_is_behind = leading.len() == self.tags.len();
        let parts = self.count.div_ceil(SERIES_TOGETHER);
        for part in 0..parts {
            let from = SERIES_TOGETHER * if self.ascending { part } else { parts - 1 - part };
            let places = from..self.count.min(from + SERIES_TOGETHER);
            self.fill_keys(leading, places.clone(), &mut keys);
            // Mostly all of them are behind.
            if bar.is_some_and(|(of_bar, _)| self.are_behind(&keys, of_bar, same_is_behind)) {
                continue;
            }
            for (key, series) in keys.iter().zip(places.map(|place| self.at(place))) {
                let is_behind = |(of_bar, bar): (u32, u32)| match key.cmp(&of_bar) {
                    Ordering::Equal => self.compare(bar, series).is_le(),
                    order => order.is_gt() == self.ascending,
                };
                if bar.is_some_and(is_behind)
                    || self.last.is_some_and(|last| self.compare(series, last).is_le())
                {
                    continue;
                }
                next.push(series);
                if next.len() >= count.saturating_mul(2).max(SELECTED_MIN) {
                    bar = select(&mut next).map(|series| (key_of(leading, series), series));
                }
            }
        }
        select(&mut next);
        next
    }
}

/// Of so many series the first ones in order are found once: looking at each takes longer than what is asked for.
const ORDERED_SERIES_MIN: usize = 2048;

/// Bits of a number that series are compared by first, and after which no more tags are looked at.
const KEY_BITS: u32 = u32::BITS;
const KEY_BITS_ENOUGH: u32 = 16;

/// Series that are looked at together, one tag after another.
const SERIES_TOGETHER: usize = 1024;

/// The ranks of the first tags as a number that orders as they do.
#[inline]
fn key_of(leading: &[LeadingTag], series: u32) -> u32 {
    leading.iter().fold(0, |key, tag| with_rank(key, tag, tag.rank(series)))
}

/// A number with the rank of one more tag.
#[inline]
fn with_rank(key: u32, tag: &LeadingTag, rank: u32) -> u32 {
    // The first tag may have all bits.
    key.unbounded_shl(tag.bits) | rank
}

/// So many series are found before it is asked which of them are the first.
const SELECTED_MIN: usize = 64;

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
    use proptest::prelude::*;
    use store::TagColumn;

    use super::*;

    /// Up to ten texts, of which the first may stand for none.
    fn tag(codes: Vec<u32>, has_missing: bool) -> TagColumn {
        let first = if has_missing { "" } else { "0" };
        let values =
            Arc::new([first, "1", "2", "3", "4", "5", "6", "7", "8", "9"].into_iter().collect());
        TagColumn { key: "tag".into(), codes: codes.into(), values }
    }

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

    proptest! {
        #[test]
        fn all_series_are_taken_in_order(
            // Also of more series than are looked at together.
            codes in prop::collection::vec((0u32..5, 0u32..9), 1..SERIES_TOGETHER * 5 / 2),
            tags in 0usize..3,
            counts in prop::collection::vec(1usize..90, 1..20),
            ascending in any::<bool>(),
            every in 1usize..3,
            has_missing in any::<bool>(),
        ) {
            let (a, b): (Vec<u32>, Vec<u32>) = codes.iter().copied().unzip();
            let series: Vec<u32> = (0..codes.len() as u32).step_by(every).collect();
            let mut sorted = series.clone();
            let place = |code: u32| (has_missing && code == 0, code);
            sorted.sort_by_key(|series| {
                let (a, b) = codes[*series as usize];
                let places = [place(a), place(b)].map(Some);
                let used = |at: usize| places[at].filter(|_| at < tags);
                (used(0), used(1), *series)
            });
            if !ascending {
                sorted.reverse();
            }
            let listed = (every > 1).then(|| Arc::from(series.as_slice()));
            let (a, b) = (tag(a, has_missing), tag(b, has_missing));
            let (mut tags, used) = (vec![LeadingTag::of(&a), LeadingTag::of(&b)], tags);
            tags.truncate(used);
            let count = series.len();
            let orders = SeriesOrders::default();
            let mut left = Left { series: listed, count, taken: 0, last: None, tags, ascending, orders: &orders };
            let mut rest = sorted.as_slice();
            for count in counts {
                let (next, behind) = rest.split_at(count.min(rest.len()));
                let mut next = next.to_vec();
                next.sort_unstable();
                prop_assert_eq!(&*left.take(count), next.as_slice());
                rest = behind;
                prop_assert_eq!(left.len(), rest.len());
            }
        }
    }

    #[test]
    fn series_are_taken_in_the_order_of_their_tags() {
        let codes = tag(vec![2, 0, 1, 0, 2], false);
        let orders = SeriesOrders::default();
        let left = |ascending| {
            let tags = vec![LeadingTag::of(&codes)];
            Left { series: None, count: 5, taken: 0, last: None, tags, ascending, orders: &orders }
        };
        let mut forward = left(true);
        assert_eq!(*forward.take(2), [1, 3]);
        assert_eq!(*forward.take(2), [0, 2]);
        assert_eq!(*forward.take(9), [4]);
        assert!(forward.is_empty());
        let mut backward = left(false);
        assert_eq!(*backward.take(3), [0, 2, 4]);
    }
}
