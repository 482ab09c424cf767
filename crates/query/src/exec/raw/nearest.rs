//! Series that can have the first rows of their groups, for LIMIT, where a group has more series than rows are wanted of it.
//!
//! A store may say where each series begins, in the order of the query. If as many series as rows are wanted begin at a time
//! or before it, then series that begin later need not be read: unless it turns out that rows there lack what is wanted.

use std::ops::Range;
use std::sync::Arc;

use model::TimeRange;

use crate::exec::unit::Unit;
use crate::plan::Select;
use crate::{QueryContext, QueryError};

/// Series of the only input that can have the first rows of some groups.
pub(super) struct Nearest {
    /// These series, ascending.
    pub(super) series: Arc<[u32]>,
    /// Of each group where the others begin, as [`place`] says; `None`: there are no others.
    others: Vec<Option<i64>>,
    /// Where the first series begins, as [`place`] says.
    first: Option<i64>,
    /// Where as many series of the only group have begun as rows are wanted, if there are others behind.
    enough: Option<i64>,
    wanted: usize,
    ascending: bool,
}

impl Nearest {
    /// Those of `groups`, of which LIMIT and OFFSET want a few rows each; `None` if that is not known, or leaves out none.
    pub(super) fn of(
        select: &Select,
        context: &QueryContext,
        unit: &Unit,
        groups: Range<usize>,
    ) -> Result<Option<Self>, QueryError> {
        let [input] = unit.inputs.as_slice() else { return Ok(None) };
        let wanted = select.limit.saturating_add(select.offset);
        let count = unit.groups.series_count(groups.clone()) as u64;
        // Rows may have to be read again: where points are counted none are.
        if select.limit == 0
            || context.limits.max_select_point > 0
            || input.filter.is_some()
            || count <= wanted.saturating_mul(groups.len() as u64)
        {
            return Ok(None);
        }
        let series = unit.groups.ordinals(0, groups.clone());
        let Some(ends) = input.scan.ends(series.as_deref())? else { return Ok(None) };
        let all = 0..input.scan.series().len;
        let series = series.unwrap_or_else(|| all.collect());
        let group_of = |series: u32| unit.groups.of(0, series).map(|group| group as usize);
        let members = series.iter().zip(ends).filter_map(|(series, end)| {
            let group = group_of(*series).filter(|group| groups.contains(group))?;
            Some((group - groups.start, place(end, select.ascending), *series))
        });
        Ok(Some(Self::among(members.collect(), groups.len(), wanted as usize, select.ascending)))
    }

    /// Chooses among series, each with its group and the place where it begins.
    fn among(
        mut members: Vec<(usize, i64, u32)>,
        groups: usize,
        wanted: usize,
        ascending: bool,
    ) -> Self {
        members.sort_unstable();
        let (mut series, mut others) = (Vec::new(), vec![None; groups]);
        let mut enough = None;
        for of_group in members.chunk_by(|a, b| a.0 == b.0) {
            let last = of_group[(wanted - 1).min(of_group.len() - 1)].1;
            let count = of_group.partition_point(|(_, place, _)| *place <= last);
            series.extend(of_group[..count].iter().map(|(.., series)| *series));
            others[of_group[0].0] = of_group.get(count).map(|(_, place, _)| *place);
            enough = Some(last).filter(|_| groups == 1 && count < of_group.len());
        }
        series.sort_unstable();
        let first = members.iter().map(|(_, place, _)| *place).min();
        Self { series: series.into(), others, first, enough, wanted, ascending }
    }

    /// Whether the rows of a group, by its number among those asked for, are the first ones if these are found, in order.
    pub(super) fn are_first(&self, group: usize, times: &[i64]) -> bool {
        let Some(others) = self.others[group] else { return true };
        times.get(self.wanted - 1).is_some_and(|time| place(*time, self.ascending) < others)
    }

    /// What is left of a range of time: no row comes before the first series begins, and those that are wanted are there when
    /// enough have begun, unless some lack what is wanted, as [`Self::are_first`] tells.
    pub(super) fn within(&self, time: TimeRange) -> TimeRange {
        let first = self.first.unwrap_or(i64::MIN);
        let enough = self.enough.unwrap_or(i64::MAX);
        let (first, last) = (place(first, self.ascending), place(enough, self.ascending));
        let (min, max) = if self.ascending { (first, last) } else { (last, first) };
        time.intersect(&TimeRange { min, max })
    }

    /// Number of groups.
    pub(super) fn groups(&self) -> usize {
        self.others.len()
    }
}

/// A number that orders times as the query does.
fn place(time: i64, ascending: bool) -> i64 {
    if ascending { time } else { !time }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Series have a row where they begin and others behind it, but for those that lack it.
        #[test]
        fn no_row_of_the_first_is_left_out(
            series in prop::collection::vec((0usize..3, -20i64..20, 1i64..9, any::<bool>()), 1..40),
            groups in prop::sample::select(vec![1usize, 3]),
            wanted in 1usize..6,
            ascending in any::<bool>(),
            may_lack in any::<bool>(),
        ) {
            let begin = |at: i64| place(at, ascending);
            let group_of = |number: u32| series[number as usize].0 % groups;
            let members = series.iter().zip(0..).map(|((_, at, ..), number)| (group_of(number), *at, number));
            let nearest = Nearest::among(members.collect(), groups, wanted, ascending);
            let rows = |number: u32| {
                let (_, at, step, lacks_first) = series[number as usize];
                (i64::from(lacks_first && may_lack)..4).map(move |row| at + row * step)
            };
            for group in 0..nearest.groups() {
                let range = nearest.within(TimeRange::ALL);
                let is_of = |number: &u32| group_of(*number) == group;
                let first = |numbers: Vec<u32>, range: TimeRange| {
                    let is_there = |at: &i64| range.contains(begin(*at));
                    let found = numbers.into_iter().flat_map(rows).filter(is_there);
                    let mut found: Vec<i64> = found.collect();
                    found.sort_unstable();
                    found.truncate(wanted);
                    found
                };
                let all = first((0..series.len() as u32).filter(is_of).collect(), TimeRange::ALL);
                let chosen: Vec<u32> = nearest.series.iter().copied().filter(is_of).collect();
                let found = first(chosen, range);
                let times: Vec<i64> = found.iter().map(|at| begin(*at)).collect();
                if nearest.are_first(group, &times) {
                    prop_assert_eq!(found, all);
                } else {
                    prop_assert!(may_lack, "where no row is missing these are enough");
                }
            }
        }
    }
}
