//! How many groups are read together: as many as fit into memory; of functions that keep values fewer, and on each thread
//! others.
//!
//! Where each thread reads some series for all groups, what the threads kept is put together afterwards, results are made by one of
//! them, and nothing fits into a cache: of a deviation by group a third was moving values. Groups share no values, so that a thread
//! can read a few of them, finish them, and forget what it kept. Where series are so short that all series of a block are better read
//! together, parts are cut where blocks end (`Parts`), if groups have their series side by side.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use model::TimeRange;
use store::ScanSlice;

use super::{Points, Run, unit};
use crate::QueryError;

/// One series in so many may be read in another part than where it lies, so that groups stay whole.
const MOVED_PART: usize = 16;

/// If as many series as this have the rows that are read at once, these are too few of each.
const SERIES_AT_ONCE_MAX: u64 = 256;

impl Run<'_> {
    /// How many groups fit into memory together.
    pub(super) fn groups_at_once(&self, done: usize) -> usize {
        let range = self.read_range();
        let left = self.unit.groups.len() - done;
        let share = (self.memory_left() as u64 / 4).min(self.context.tuning.state_bytes);
        let total = self.unit.groups.len() as u64;
        let rows = self.unit.rows_estimate(0..self.unit.groups.len()) / total.max(1);
        // No more windows can have rows than there are rows.
        let windows = self.windows_within(range).min(rows.saturating_mul(4).saturating_add(16));
        let slots = windows.saturating_mul(self.recipe.slot_bytes() as u64);
        let values = rows.saturating_mul(self.recipe.row_bytes(self.select) as u64);
        let each = slots.saturating_add(values).max(1);
        ((share / each).max(1) as usize).min(left)
    }

    /// How many groups are read at once, if they are better read apart.
    pub(super) fn groups_apart(&self, groups: &Range<usize>) -> Option<usize> {
        let keeps_values = self.recipe.row_bytes(self.select) > 0;
        let rows = self.unit.rows_estimate(groups.clone());
        let rows_at_once = self.context.tuning.kept_rows;
        if !keeps_values || rows < 2 * rows_at_once {
            return None;
        }
        // Short series are read with all that share a block with them, whichever groups they are of.
        let series: u64 =
            self.unit.inputs.iter().map(|input| u64::from(input.scan.series().len)).sum();
        let of_block = self.unit.extent.parts().iter().map(|part| part.rows).max().unwrap_or(0);
        if of_block / series.max(1) < rows_at_once / SERIES_AT_ONCE_MAX {
            return None;
        }
        let each = (rows / groups.len().max(1) as u64).max(1);
        let at_once = (rows_at_once / each).max(1) as usize;
        (at_once * 2 <= groups.len()).then_some(at_once)
    }

    /// The points of `groups`, `at_once` at a time.
    pub(super) fn read_apart(
        &self,
        groups: Range<usize>,
        at_once: usize,
        range: TimeRange,
    ) -> Result<Vec<Vec<Points>>, QueryError> {
        let parts: Vec<Range<usize>> = groups
            .clone()
            .step_by(at_once)
            .map(|start| start..groups.end.min(start + at_once))
            .collect();
        let found =
            part_by_part(self.context.threads, &parts, |part| self.read_part(part.clone(), range))?;
        Ok(found.into_iter().flatten().collect())
    }

    /// The points of `groups` of functions that keep values, in parts that the store cuts; `None`: there is one part only, or too
    /// many groups have series of several.
    pub(super) fn read_parts(
        &self,
        groups: Range<usize>,
        range: TimeRange,
    ) -> Result<Option<Vec<Vec<Points>>>, QueryError> {
        let keeps_values = self.recipe.row_bytes(self.select) > 0;
        let ([_], true) = (self.unit.inputs.as_slice(), keeps_values) else { return Ok(None) };
        let Some(slice) = self.unit.slice(0, groups.clone(), range) else { return Ok(None) };
        let rows = self.unit.rows_within(0, &slice) as u64;
        let threads = self.context.threads.max(1);
        let parts = rows.div_ceil(self.context.tuning.kept_rows.max(1)) as usize;
        if parts < 2 || groups.len() < parts {
            return Ok(None);
        }
        let shares = self.unit.cut(0, &slice, parts.next_multiple_of(threads))?;
        let number =
            |series| self.unit.groups.of(0, series).map(|group| group - groups.start as u32);
        let Some(parts) = Parts::of(shares, groups.len(), number) else { return Ok(None) };
        let found = part_by_part(threads, &parts.parts, |part| {
            let mut state = self.accumulator(part.groups.len(), range)?;
            let group_of = |series| Some(parts.places[number(series)? as usize]);
            self.read_share(&mut state, 0, &part.slice, group_of)?;
            Ok(state.finish(&self.unit.inputs))
        })?;
        let mut all = vec![Vec::new(); groups.len()];
        for (part, found) in parts.parts.iter().zip(found) {
            for (group, points) in part.groups.iter().zip(found) {
                all[*group as usize] = points;
            }
        }
        Ok(Some(all))
    }

    /// The points of some groups, read by one thread.
    fn read_part(
        &self,
        groups: Range<usize>,
        range: TimeRange,
    ) -> Result<Vec<Vec<Points>>, QueryError> {
        let mut state = self.accumulator(groups.len(), range)?;
        for at in 0..self.unit.inputs.len() {
            if let Some(slice) = self.unit.slice(at, groups.clone(), range) {
                self.read_share(&mut state, at, &slice, self.group_of(at, groups.clone(), None))?;
            }
        }
        Ok(state.finish(&self.unit.inputs))
    }
}

/// What becomes of each part of some work, in order. Some take longer than others: a thread that is done takes the next one.
pub(super) fn part_by_part<P: Sync, T: Send>(
    threads: usize,
    parts: &[P],
    work: impl Fn(&P) -> Result<T, QueryError> + Sync,
) -> Result<Vec<T>, QueryError> {
    let next = AtomicUsize::new(0);
    let take = |_: &()| {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Relaxed);
            let Some(part) = parts.get(at) else { return Ok(done) };
            // After an error nobody takes more.
            let found = work(part).inspect_err(|_| next.store(parts.len(), Relaxed))?;
            done.push((at, found));
        }
    };
    let threads = vec![(); threads.clamp(1, parts.len().max(1))];
    let mut done: Vec<(usize, T)> =
        unit::on_threads(&threads, take)?.into_iter().flatten().collect();
    done.sort_unstable_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, found)| found).collect())
}

/// Series of whole groups that are read together.
struct Part {
    slice: ScanSlice,
    groups: Vec<u32>,
}

/// All series, in parts.
struct Parts {
    parts: Vec<Part>,
    /// Of each group its place in its part.
    places: Vec<u32>,
}

impl Parts {
    /// Shares with the series of each of `groups` groups in one of them: where its first series is. `None`: there is one share,
    /// or too many series would move.
    fn of(
        shares: Vec<ScanSlice>,
        groups: usize,
        group_of: impl Fn(u32) -> Option<u32>,
    ) -> Option<Self> {
        const NOWHERE: u32 = u32::MAX;
        if shares.len() < 2 {
            return None;
        }
        let mut of_group = vec![NOWHERE; groups];
        let mut places = vec![0; groups];
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); shares.len()];
        let mut lists: Vec<Vec<u32>> = vec![Vec::new(); shares.len()];
        let (mut moved, mut all) = (0, 0);
        for (share, at) in shares.iter().zip(0..) {
            for series in share.series.as_deref()? {
                let Some(group) = group_of(*series) else { continue };
                let of = &mut of_group[group as usize];
                if *of == NOWHERE {
                    *of = at;
                    let members = &mut members[at as usize];
                    places[group as usize] = members.len() as u32;
                    members.push(group);
                }
                moved += usize::from(*of != at);
                all += 1;
                lists[*of as usize].push(*series);
            }
        }
        let part = |((share, series), groups): ((ScanSlice, Vec<u32>), Vec<u32>)| {
            let series = Some(series.into());
            Part { slice: ScanSlice { series, ..share }, groups }
        };
        let parts = shares.into_iter().zip(lists).zip(members).map(part);
        let parts = parts.filter(|part| !part.groups.is_empty()).collect();
        (moved <= all / MOVED_PART).then_some(Self { parts, places })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(of: &[&[u32]], groups: usize, group_of: impl Fn(u32) -> Option<u32>) -> Option<Parts> {
        let share = |series: &&[u32]| {
            let series = Some((*series).into());
            ScanSlice { series, ..ScanSlice::all() }
        };
        let found = Parts::of(of.iter().map(share).collect(), groups, &group_of)?;
        for part in &found.parts {
            for series in part.slice.series.as_deref().unwrap() {
                let group = group_of(*series).unwrap();
                assert_eq!(part.groups[found.places[group as usize] as usize], group);
            }
        }
        Some(found)
    }

    fn series(parts: Option<Parts>) -> Option<Vec<Vec<u32>>> {
        Some(
            parts?
                .parts
                .iter()
                .map(|part| part.slice.series.as_deref().unwrap().to_vec())
                .collect(),
        )
    }

    #[test]
    fn groups_stay_whole_where_few_series_move() {
        let (low, high): (Vec<u32>, Vec<u32>) = ((0..50).collect(), (50..100).collect());
        let both = [&low[..], &high];
        // Pairs: the cut is between two of them, or in the middle of one.
        let found = parts(&both, 50, |series| Some(series / 2));
        assert_eq!(series(found), Some(vec![low.clone(), high.clone()]));
        let found = parts(&both, 51, |series| Some(series.div_ceil(2)));
        assert_eq!(series(found), Some(vec![(0..51).collect(), (51..100).collect()]));
        // In another order than groups have.
        let found = parts(&both, 100, |series| Some(99 - series));
        assert_eq!(series(found), Some(vec![low.clone(), high.clone()]));
        // Groups all over; one share; series of no group.
        assert_eq!(series(parts(&both, 20, |series| Some(series % 20))), None);
        assert_eq!(series(parts(&[&low], 50, Some)), None);
        let found = parts(&both, 100, |series| (series >= 50).then_some(series));
        assert_eq!(series(found), Some(vec![high]));
    }
}
