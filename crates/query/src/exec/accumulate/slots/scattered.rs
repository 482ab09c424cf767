//! Slots row by row, for series with a handful of rows each: a run of them would take longer to find than to add.

use std::ops::Range;

use codec::kernels::{STEPS_REACH_MAX, steps_of_i64};
use model::SeriesRun;

use super::{SEVERAL, SlotMap};
use crate::exec::accumulate::kernels::SEQUENTIAL_MAX;

/// In place of a slot: the row's series is in no group.
pub(crate) const NOWHERE: u32 = u32::MAX;
/// Series with fewer rows on average are better added row by row.
const ROWS_EACH: usize = 16;

/// If each slot has so many rows on average, it pays to put them together.
pub(crate) const ROWS_A_SLOT: usize = 8;

/// So many rows at most come before the times of the first ones do again.
const PERIOD_MAX: usize = 256;
/// Times repeat if they come so often at least: below that sums of floats are added from left to right, as elsewhere.
const REPEATS_MIN: usize = SEQUENTIAL_MAX;
/// Times that do not repeat are looked at for it once in so many rows at most.
const ROWS_A_LOOK: usize = 256;

/// The slots of rows.
#[derive(Debug, Default)]
pub(crate) struct RowSlots {
    /// The slot of each row, or [`NOWHERE`].
    pub(crate) of: Vec<u32>,
    /// Rows whose slots repeat, ascending, disjoint; none of them is [`NOWHERE`].
    pub(crate) repeated: Vec<Repeated>,
}

/// Rows of which each has the slot of the one `period` before it, where that is one of them: series with as many rows each,
/// at the same times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repeated {
    pub(crate) rows: Range<usize>,
    pub(crate) period: usize,
}

/// Where the times of series, one behind another, are those of the series before.
fn repeated(times: &[i64]) -> Vec<Repeated> {
    let (mut found, mut at, mut in_vain) = (Vec::new(), 0, 0);
    while times.len() - at >= REPEATS_MIN && in_vain * ROWS_A_LOOK <= at + PERIOD_MAX {
        // Within a series times ascend.
        let some = &times[at..times.len().min(at + PERIOD_MAX + 1)];
        let Some(last) = some.windows(2).position(|two| two[1] <= two[0]) else { break };
        let period = last + 1;
        let count = repeats_until(&times[at..], period) / period;
        if count >= REPEATS_MIN {
            let rows = at..at + count * period;
            at = rows.end;
            found.push(Repeated { rows, period });
        } else {
            at += count * period;
            in_vain += 1;
        }
    }
    found
}

/// How many of the first values there are before one that is not what stands `period` before it.
fn repeats_until(values: &[i64], period: usize) -> usize {
    const TOGETHER: usize = 64;
    let behind = values[period..].chunks(TOGETHER).zip(values.chunks(TOGETHER));
    let mut same = period;
    for (behind, before) in behind {
        if behind != &before[..behind.len()] {
            return same + behind.iter().zip(before).take_while(|(b, a)| a == b).count();
        }
        same += behind.len();
    }
    same
}

impl SlotMap {
    /// Whether rows are better added one by one, if it does not matter which series they are of.
    pub(crate) fn scatters(&self, rows: usize, series: &[SeriesRun]) -> bool {
        let has_many = match self {
            Self::Whole { groups, .. } => *groups > 1,
            Self::Grid { .. } => self.steps_are_in_reach(),
            Self::Listed { .. } => false,
        };
        let is_joined = |run: &SeriesRun| run.series == SEVERAL;
        has_many && (rows < series.len().saturating_mul(ROWS_EACH) || series.iter().any(is_joined))
    }

    /// Whether so many rows of so many series are many in each slot, but less than a `few` of a series in each window; only
    /// where rows can be added one by one.
    pub(crate) fn fills_windows(&self, rows: usize, series: usize, few: usize) -> bool {
        let Self::Grid { per_group, .. } = self else { return false };
        self.steps_are_in_reach()
            && rows >= self.len().saturating_mul(ROWS_A_SLOT)
            && rows < series.saturating_mul(*per_group).saturating_mul(few)
    }

    /// Whether the window of a row is found by a kernel.
    fn steps_are_in_reach(&self) -> bool {
        let Self::Grid { windows, per_group, .. } = self else { return false };
        let reach = u64::try_from(*per_group)
            .ok()
            .and_then(|count| count.checked_mul(windows.every_ns.cast_unsigned()));
        reach.is_some_and(|reach| reach <= STEPS_REACH_MAX)
    }

    /// The slots of rows.
    ///
    /// # Panics
    /// Unless it [`Self::scatters`].
    pub(crate) fn of_rows(
        &self,
        times: &[i64],
        series: &[SeriesRun],
        group_of: impl Fn(u32) -> Option<u32>,
        slots: &mut RowSlots,
    ) {
        let RowSlots { of: slots, repeated: repeated_rows } = slots;
        slots.clear();
        slots.reserve(times.len());
        repeated_rows.clear();
        match self {
            Self::Whole { .. } => {
                for run in series {
                    let slot = group_of(run.series).unwrap_or(NOWHERE);
                    slots.resize(slots.len() + run.rows as usize, slot);
                }
            }
            Self::Grid { windows, first_end, per_group, .. } => {
                let first_start = first_end.wrapping_sub(windows.every_ns);
                if let [run] = series
                    && group_of(run.series).is_some()
                {
                    *repeated_rows = repeated(times);
                }
                for Repeated { rows, period } in repeated_rows.iter() {
                    let once = rows.start..rows.start + period;
                    let new = &times[slots.len()..once.end];
                    steps_of_i64(new, first_start, windows.every_ns, slots);
                    while slots.len() < rows.end {
                        let more = (slots.len() - rows.start).min(rows.end - slots.len());
                        slots.extend_from_within(rows.start..rows.start + more);
                    }
                }
                steps_of_i64(&times[slots.len()..], first_start, windows.every_ns, slots);
                let mut at = 0;
                for run in series {
                    let of_run = &mut slots[at..at + run.rows as usize];
                    at += of_run.len();
                    match group_of(run.series) {
                        Some(0) => {}
                        Some(group) => {
                            let first = group * *per_group as u32;
                            of_run.iter_mut().for_each(|slot| *slot += first);
                        }
                        None => of_run.fill(NOWHERE),
                    }
                }
            }
            Self::Listed { .. } => panic!("BUG: slots that are listed are not calculated"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Series with the same times, but for some that lack a few.
    fn any_times() -> impl Strategy<Value = Vec<i64>> {
        let series = (1usize..40, prop_oneof![Just(1usize), 1usize..2000], any::<bool>());
        prop::collection::vec(series, 1..5).prop_map(|parts| {
            let mut times = Vec::new();
            for (period, count, lacks) in parts {
                let of_series = (0..period as i64).map(|at| at * 10 + period as i64);
                (0..count).for_each(|_| times.extend(of_series.clone()));
                if lacks {
                    times.pop();
                }
            }
            times
        })
    }

    proptest! {
        #[test]
        fn rows_repeat_where_their_times_do(times in any_times()) {
            let found = repeated(&times);
            let mut at = 0;
            for Repeated { rows, period } in &found {
                prop_assert!(rows.start >= at && rows.len() >= period * REPEATS_MIN);
                prop_assert_eq!(rows.len() % period, 0);
                let times = &times[rows.clone()];
                prop_assert_eq!(&times[*period..], &times[..times.len() - period]);
                at = rows.end;
            }
            prop_assert!(at <= times.len());
        }

        #[test]
        fn values_repeat_until_one_differs(
            values in prop::collection::vec(0i64..3, 1..10),
            count in 1usize..60,
            other in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let period = values.len();
            let mut all = values.repeat(count);
            let mut expected = all.len();
            if let Some(at) = other.map(|at| at.index(all.len())) {
                all[at] = 9;
                expected = if at >= period { at } else { (at + period).min(all.len()) };
            }
            prop_assert_eq!(repeats_until(&all, period), expected);
        }
    }

    #[test]
    fn series_that_lack_rows_are_passed_over() {
        let of_series = [10, 20, 30, 40, 50, 60];
        let mut times = of_series.repeat(1000);
        // The first of the 501st, the last of the 601st.
        times.remove(500 * 6);
        times.remove(600 * 6 + 4);
        let found = repeated(&times);
        let rows: Vec<Range<usize>> = found.iter().map(|found| found.rows.clone()).collect();
        // The row that is one more than the 601st series has is taken for a series.
        assert_eq!(rows, [0..500 * 6, 602 * 6 - 2..1000 * 6 - 2]);
        assert!(found.iter().all(|found| found.period == 6));
        let none: Vec<i64> = (0..5000).map(|at| at * 7919 % 5003).collect();
        assert_eq!(repeated(&none), []);
        assert_eq!(repeated(&(0..5000).collect::<Vec<i64>>()), [], "one series");
    }
}
