//! Slots: which group and window a row belongs to, and how rows are cut into runs of one slot.
//!
//! Few windows: slots are laid out as a grid. Many, or windows of a zone: slots are numbered as they
//! turn up, so that memory follows the data and not the range.

mod scattered;

use std::ops::Range;

use hashbrown::HashMap;
use model::{Bitmap, SeriesRun, TimeRange};

#[cfg(test)]
pub(crate) use self::scattered::Repeated;
pub(crate) use self::scattered::{NOWHERE, ROWS_A_SLOT, RowSlots};

use crate::exec::window::{Window, Windows};

/// Consecutive rows of one series that belong to one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub slot: u32,
    pub start: u32,
    pub end: u32,
    /// Ordinal of the series in its scan, or [`SEVERAL`].
    pub series: u32,
}

/// In place of a series: rows of several, one behind another, each in order of time.
pub(crate) const SEVERAL: u32 = SeriesRun::SEVERAL;

/// A span of rows that was summed up, all of which belong to one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotSpan {
    pub slot: u32,
    /// Its number in the batch.
    pub span: u32,
}

/// Things in order of their slots; those of a slot as they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct BySlot {
    starts: Vec<u32>,
    /// Places of the things.
    order: Vec<u32>,
}

impl BySlot {
    /// Of things that belong to these slots, one after another.
    pub(crate) fn new(slots: usize, of: impl ExactSizeIterator<Item = u32> + Clone) -> Self {
        let mut starts = vec![0u32; slots + 1];
        of.clone().for_each(|slot| starts[slot as usize + 1] += 1);
        (0..slots).for_each(|slot| starts[slot + 1] += starts[slot]);
        let (mut next, mut order) = (starts.clone(), vec![0; of.len()]);
        for (slot, at) in of.zip(0..) {
            let place = &mut next[slot as usize];
            order[*place as usize] = at;
            *place += 1;
        }
        Self { starts, order }
    }

    /// The places of the things of a slot.
    pub(crate) fn of(&self, slot: usize) -> &[u32] {
        &self.order[self.starts[slot] as usize..self.starts[slot + 1] as usize]
    }
}

/// By slot of another set the slot that it is here.
pub(crate) fn targets(slots: &[(usize, usize)]) -> Vec<u32> {
    let mut targets = vec![0; slots.iter().map(|(from, _)| from + 1).max().unwrap_or(0)];
    slots.iter().for_each(|(from, to)| targets[*from] = *to as u32);
    targets
}

/// The slots of some groups.
#[derive(Clone, Debug)]
pub(crate) enum SlotMap {
    /// One window: the slot is the group. If `joins`, rows of neighbouring series of a group are one run.
    Whole { groups: usize, joins: bool },
    /// A grid of groups and windows.
    Grid { groups: usize, windows: Windows, first_end: i64, per_group: usize },
    /// Slots in the order they turned up.
    Listed { windows: Windows, slots: HashMap<(u32, i64), u32>, keys: Vec<(u32, i64)> },
}

impl SlotMap {
    /// Slots for `groups` groups over rows within `range`; a grid of at most `grid_slots_max`. If `joins`, it does not matter
    /// which series a row is of.
    pub(crate) fn new(
        windows: Option<&Windows>,
        range: TimeRange,
        groups: usize,
        grid_slots_max: usize,
        joins: bool,
    ) -> Self {
        let Some(windows) = windows else { return Self::Whole { groups, joins } };
        if windows.is_regular() && !range.is_empty() {
            let (first, last) = (windows.at(range.min), windows.at(range.max));
            let more = windows_between(first.end, last.end, windows.every_ns);
            let per_group = usize::try_from(more).unwrap_or(usize::MAX).saturating_add(1);
            if per_group.saturating_mul(groups) <= grid_slots_max {
                let (windows, first_end) = (windows.clone(), first.end);
                return Self::Grid { groups, windows, first_end, per_group };
            }
        }
        Self::Listed { windows: windows.clone(), slots: HashMap::new(), keys: Vec::new() }
    }

    /// Number of slots so far.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Whole { groups, .. } => *groups,
            Self::Grid { groups, per_group, .. } => groups * per_group,
            Self::Listed { keys, .. } => keys.len(),
        }
    }

    /// The slot of `group` at `time_ns`.
    pub(crate) fn slot(&mut self, group: u32, time_ns: i64) -> u32 {
        match self {
            Self::Whole { .. } => group,
            Self::Grid { windows, .. } => {
                let window = windows.at(time_ns);
                self.slot_of_window(group, window)
            }
            Self::Listed { windows, .. } => {
                let window = windows.at(time_ns);
                self.slot_of_window(group, window)
            }
        }
    }

    /// The slot of `group` at `time_ns`, where the one before may have been of the window before it or the same: no division
    /// tells which then. `last` is that one's place in its group, for the next.
    #[inline]
    pub(crate) fn slot_near(&mut self, group: u32, time_ns: i64, last: &mut usize) -> u32 {
        let Self::Grid { windows, first_end, per_group, .. } = self else {
            return self.slot(group, time_ns);
        };
        // Where window `at` ends, less the time: what is in the range fits, whatever the product does.
        let left = |at: usize| {
            let end = first_end.wrapping_add(windows.every_ns.wrapping_mul(at as i64));
            end.wrapping_sub(time_ns)
        };
        let is_within = |at: &usize| (1..=windows.every_ns).contains(&left(*at));
        match [*last + 1, *last, 0].into_iter().find(is_within) {
            Some(at) if at < *per_group => {
                *last = at;
                (group as usize * *per_group + at) as u32
            }
            _ => {
                let per_group = *per_group;
                let slot = self.slot(group, time_ns);
                *last = slot as usize - group as usize * per_group;
                slot
            }
        }
    }

    fn slot_of_window(&mut self, group: u32, window: Window) -> u32 {
        match self {
            Self::Whole { .. } => group,
            Self::Grid { windows, first_end, per_group, .. } => {
                let at = windows_between(*first_end, window.end, windows.every_ns);
                (group as usize * *per_group + at as usize) as u32
            }
            Self::Listed { slots, keys, .. } => {
                let key = (group, window.start);
                *slots.entry(key).or_insert_with(|| {
                    keys.push(key);
                    (keys.len() - 1) as u32
                })
            }
        }
    }

    /// Cuts rows into runs. `group_of` says which group a series is of, `None`: none, its rows are
    /// left out. `times` of a series ascend or descend strictly; those of [`SEVERAL`] do not.
    pub(crate) fn cut(
        &mut self,
        times: &[i64],
        series: &[SeriesRun],
        group_of: impl Fn(u32) -> Option<u32>,
        ascending: bool,
        runs: &mut Vec<Run>,
    ) {
        let mut at = 0;
        for run in series {
            let end = at + run.rows as usize;
            if let Some(group) = group_of(run.series) {
                self.cut_series(times, (at, end), group, run.series, ascending, runs);
            }
            at = end;
        }
    }

    fn cut_series(
        &mut self,
        times: &[i64],
        (start, end): (usize, usize),
        group: u32,
        series: u32,
        ascending: bool,
        runs: &mut Vec<Run>,
    ) {
        if series == SEVERAL {
            return self.cut_unordered(times, (start, end), group, runs);
        }
        let windows = match self {
            Self::Whole { joins, .. } => {
                let (start, end) = (start as u32, end as u32);
                if let Some(last) = runs.last_mut().filter(|_| *joins)
                    && (last.slot, last.end) == (group, start)
                {
                    last.end = end;
                    last.series = if last.series == series { series } else { SEVERAL };
                    return;
                }
                runs.push(Run { slot: group, start, end, series });
                return;
            }
            Self::Grid { per_group, .. } => {
                runs.reserve((*per_group).min(end - start));
                let rows = (start, end);
                if ascending {
                    self.cut_grid::<true>(times, rows, group, series, runs);
                } else {
                    self.cut_grid::<false>(times, rows, group, series, runs);
                }
                return;
            }
            Self::Listed { windows, .. } => windows.clone(),
        };
        let mut at = start;
        let mut window = windows.at(times[at]);
        let mut rows = 0;
        loop {
            let inside = |t: &i64| {
                if ascending { *t < window.end } else { *t >= window.start }
            };
            rows = prefix_len(&times[at..end], rows, inside).max(1);
            let to = at + rows;
            let slot = self.slot_of_window(group, window);
            runs.push(Run { slot, start: at as u32, end: to as u32, series });
            if to == end {
                return;
            }
            at = to;
            // The next window holds the next row more often than not.
            window = match windows.after(window) {
                Some(next) if ascending && next.start <= times[at] && times[at] < next.end => next,
                _ => windows.at(times[at]),
            };
        }
    }

    /// The same of rows in no order.
    fn cut_unordered(
        &mut self,
        times: &[i64],
        (start, end): (usize, usize),
        group: u32,
        runs: &mut Vec<Run>,
    ) {
        let mut at = start;
        while at < end {
            let (to, slot) = match self {
                Self::Whole { .. } => (end, group),
                Self::Grid { windows, .. } | Self::Listed { windows, .. } => {
                    let window = windows.at(times[at]);
                    let is_inside = |time: &&i64| window.start <= **time && **time < window.end;
                    let rows = times[at..end].iter().take_while(is_inside).count().max(1);
                    (at + rows, self.slot_of_window(group, window))
                }
            };
            runs.push(Run { slot, start: at as u32, end: to as u32, series: SEVERAL });
            at = to;
        }
    }

    /// The same in a grid, where the next row is in the next slot more often than not: no division tells which.
    fn cut_grid<const ASCENDING: bool>(
        &mut self,
        times: &[i64],
        (start, end): (usize, usize),
        group: u32,
        series: u32,
        runs: &mut Vec<Run>,
    ) {
        let Self::Grid { windows, .. } = self else { panic!("BUG: a grid is asked for") };
        let windows = windows.clone();
        let (mut at, mut rows) = (start, 0);
        let mut window = windows.at(times[at]);
        let mut slot = self.slot_of_window(group, window);
        loop {
            let inside = |time: &i64| match ASCENDING {
                true => *time < window.end,
                false => *time >= window.start,
            };
            rows = prefix_len(&times[at..end], rows, inside).max(1);
            let to = at + rows;
            runs.push(Run { slot, start: at as u32, end: to as u32, series });
            if to == end {
                return;
            }
            at = to;
            match windows.beside::<ASCENDING>(window) {
                Some(next) if next.start <= times[at] && times[at] < next.end => {
                    window = next;
                    slot = if ASCENDING { slot + 1 } else { slot - 1 };
                }
                _ => {
                    window = windows.at(times[at]);
                    slot = self.slot_of_window(group, window);
                }
            }
        }
    }

    /// The slots of `group` with the starts of their windows, ascending; `whole_start` stands for
    /// the only window. Call [`SlotMap::sort`] before.
    pub(crate) fn of_group(&self, group: u32, whole_start: i64) -> Vec<(usize, i64)> {
        match self {
            Self::Whole { .. } => vec![(group as usize, whole_start)],
            Self::Grid { windows, first_end, per_group, .. } => (0..*per_group)
                .map(|at| {
                    let start = match at.checked_sub(1) {
                        None => first_end.saturating_sub(windows.every_ns),
                        // What is in the range fits, whatever the product does.
                        Some(before) => {
                            first_end.wrapping_add(windows.every_ns.wrapping_mul(before as i64))
                        }
                    };
                    (group as usize * per_group + at, start.max(model::MIN_TIME_NS))
                })
                .collect(),
            Self::Listed { slots, keys, .. } => {
                let from = keys.partition_point(|key| key.0 < group);
                let to = keys.partition_point(|key| key.0 <= group);
                keys[from..to].iter().map(|key| (slots[key] as usize, key.1)).collect()
            }
        }
    }

    /// The groups that have a slot, if slots are listed.
    pub(crate) fn listed_groups(&self, groups: usize) -> Option<Bitmap> {
        let Self::Listed { keys, .. } = self else { return None };
        let mut words = vec![0u64; groups.div_ceil(u64::BITS as usize)];
        for (group, _) in keys {
            words[(*group / u64::BITS) as usize] |= 1 << (*group % u64::BITS);
        }
        Some(Bitmap::from_words(words, groups))
    }

    /// The slots of a group, if they are not listed.
    pub(crate) fn grid_of_group(&self, group: usize) -> Range<usize> {
        match self {
            Self::Whole { .. } => group..group + 1,
            Self::Grid { per_group, .. } => group * per_group..(group + 1) * per_group,
            Self::Listed { .. } => 0..0,
        }
    }

    /// Puts listed slots in order, so that those of a group can be found. No slot is added after.
    pub(crate) fn sort(&mut self) {
        if let Self::Listed { keys, .. } = self {
            keys.sort_unstable();
        }
    }

    /// The pairs (slot of `other`, slot here) of the same group and window; slots that are new are
    /// added.
    pub(crate) fn adopt(&mut self, other: &Self) -> Vec<(usize, usize)> {
        match (self, other) {
            (Self::Listed { slots, keys, .. }, Self::Listed { keys: theirs, .. }) => {
                let adopt = |(from, key): (usize, &(u32, i64))| {
                    let to = *slots.entry(*key).or_insert_with(|| {
                        keys.push(*key);
                        (keys.len() - 1) as u32
                    });
                    (from, to as usize)
                };
                theirs.iter().enumerate().map(adopt).collect()
            }
            (mine, _) => (0..mine.len()).map(|slot| (slot, slot)).collect(),
        }
    }

    /// Bytes of memory taken.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::Listed { slots, keys, .. } => slots.capacity() * 25 + keys.capacity() * 16,
            _ => 0,
        }
    }
}

/// How many windows lie between the ends of two, of which the later may be cut to the end of time.
#[inline]
fn windows_between(end: i64, later: i64, every_ns: i64) -> u64 {
    // All of time is more than an `i64` holds.
    (later.wrapping_sub(end).cast_unsigned()).div_ceil(every_ns.cast_unsigned())
}

/// The length of the prefix that is `inside`: as long as the one before, which is found with two looks, or found by
/// growing steps, since prefixes are short.
fn prefix_len(times: &[i64], before: usize, inside: impl Fn(&i64) -> bool) -> usize {
    if before > 0
        && times.get(before - 1).is_some_and(&inside)
        && times.get(before).is_none_or(|time| !inside(time))
    {
        return before;
    }
    let mut step = 1;
    while step < times.len() && inside(&times[step]) {
        step *= 2;
    }
    let from = step / 2;
    let to = step.min(times.len());
    from + times[from..to].partition_point(inside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_in_no_order_are_cut_as_they_come(
            times in prop::collection::vec(-200i64..200, 1..60),
            (every, offset) in (1i64..90, 0i64..50),
            grid in any::<bool>(),
        ) {
            let windows = Windows::new(every, offset, None);
            let range = TimeRange::new(-200, 200);
            let mut map = SlotMap::new(Some(&windows), range, 1, if grid { 1 << 20 } else { 0 }, true);
            let series = [SeriesRun { series: SEVERAL, rows: times.len() as u32 }];
            let mut runs = Vec::new();
            map.cut(&times, &series, |_| Some(0), true, &mut runs);
            let of_rows: Vec<u32> = times.iter().map(|time| map.slot(0, *time)).collect();
            let mut last = 0;
            let near = times.iter().map(|time| map.slot_near(0, *time, &mut last));
            prop_assert_eq!(near.collect::<Vec<u32>>(), of_rows.clone());
            let of_run = |run: &Run| vec![run.slot; (run.end - run.start) as usize];
            prop_assert_eq!(runs.iter().flat_map(of_run).collect::<Vec<u32>>(), of_rows);
            prop_assert!(runs.iter().all(|run| run.series == SEVERAL));
        }

        #[test]
        fn runs_cover_rows_and_agree_with_windows(
            mut times in prop::collection::btree_set(-500i64..500, 1..120),
            every in 1i64..90,
            offset in 0i64..50,
            grid in any::<bool>(),
            ascending in any::<bool>(),
        ) {
            let windows = Windows::new(every, offset, None);
            let range = TimeRange::new(*times.first().unwrap(), *times.last().unwrap());
            let mut map = SlotMap::new(Some(&windows), range, 2, if grid { 1 << 20 } else { 0 }, false);
            let mut list: Vec<i64> = std::mem::take(&mut times).into_iter().collect();
            if !ascending {
                list.reverse();
            }
            let series = [SeriesRun { series: 7, rows: list.len() as u32 }];
            let mut runs = Vec::new();
            map.cut(&list, &series, |s| (s == 7).then_some(1), ascending, &mut runs);
            map.sort();
            let starts: HashMap<usize, i64> = map.of_group(1, 0).into_iter().collect();
            if grid {
                let mut slots = RowSlots::default();
                map.of_rows(&list, &series, |s| (s == 7).then_some(1), &mut slots);
                let of_runs = runs.iter().flat_map(|run| vec![run.slot; (run.end - run.start) as usize]);
                prop_assert_eq!(slots.of, of_runs.collect::<Vec<u32>>());
            }
            let mut at = 0;
            for run in &runs {
                prop_assert_eq!(run.start, at);
                for time in &list[run.start as usize..run.end as usize] {
                    prop_assert_eq!(starts[&(run.slot as usize)], windows.at(*time).start);
                }
                at = run.end;
            }
            prop_assert_eq!(at as usize, list.len());
            prop_assert!(runs.windows(2).all(|w| w[0].slot != w[1].slot));
            prop_assert!(runs.iter().all(|run| (run.slot as usize) < map.len()));
        }
    }

    #[test]
    fn grids_reach_the_ends_of_time() {
        for every in [1 << 55, 1 << 60, (1 << 61) + 12_345, i64::MAX / 3, i64::MAX] {
            let windows = Windows::new(every, 77, None);
            let range = TimeRange::new(model::MIN_TIME_NS, model::MAX_TIME_NS);
            let step = 1i64 << 59;
            let mut times: Vec<i64> = (-15..=15).map(|at| at * step).collect();
            times.insert(0, model::MIN_TIME_NS);
            times.push(model::MAX_TIME_NS);
            for ascending in [true, false] {
                let range = match every >> 55 {
                    // So far all are calculated.
                    1 => TimeRange::new(-(1 << 61), (1 << 61) - (1 << 56)),
                    _ => range,
                };
                times.retain(|time| range.contains(*time));
                let mut map = SlotMap::new(Some(&windows), range, 1, 200, false);
                assert!(matches!(map, SlotMap::Grid { .. }));
                let series = [SeriesRun { series: 0, rows: times.len() as u32 }];
                let mut runs = Vec::new();
                map.cut(&times, &series, |_| Some(0), ascending, &mut runs);
                let joined = SeriesRun { series: SEVERAL, ..series[0] };
                let mut slots = RowSlots::default();
                let is_calculated = map.scatters(times.len(), &[joined]);
                assert_eq!(is_calculated, every >> 55 == 1);
                if is_calculated {
                    map.of_rows(&times, &series, |_| Some(0), &mut slots);
                }
                for (time, slot) in times.iter().zip(slots.of) {
                    assert_eq!(slot, map.slot(0, *time), "{time} in windows of {every}");
                }
                for run in runs {
                    for time in &times[run.start as usize..run.end as usize] {
                        assert_eq!(run.slot, map.slot(0, *time), "{time} in windows of {every}");
                        let (_, start) = map.of_group(0, 0)[run.slot as usize];
                        assert_eq!(start, windows.at(*time).start);
                    }
                }
                times.reverse();
            }
        }
    }

    #[test]
    fn listed_slots_of_two_maps_meet() {
        let windows = Windows::new(10, 0, None);
        let range = TimeRange::new(0, 100);
        let mut a = SlotMap::new(Some(&windows), range, 1, 0, false);
        let mut b = a.clone();
        a.slot(0, 5);
        b.slot(0, 25);
        b.slot(0, 5);
        assert_eq!(a.adopt(&b), [(0, 1), (1, 0)]);
        a.sort();
        assert_eq!(a.of_group(0, 0), [(0, 0), (1, 20)]);
    }
}
