//! Slots row by row, for series with a handful of rows each: a run of them would take longer to find than to add.

use codec::kernels::{STEPS_REACH_MAX, steps_of_i64};
use model::SeriesRun;

use super::{SEVERAL, SlotMap};

/// In place of a slot: the row's series is in no group.
pub(crate) const NOWHERE: u32 = u32::MAX;
/// Series with fewer rows on average are better added row by row.
const ROWS_EACH: usize = 16;

impl SlotMap {
    /// Whether rows are better added one by one, if it does not matter which series they are of.
    pub(crate) fn scatters(&self, rows: usize, series: &[SeriesRun]) -> bool {
        let has_many = match self {
            Self::Whole { groups, .. } => *groups > 1,
            Self::Grid { windows, per_group, .. } => {
                let reach = u64::try_from(*per_group)
                    .ok()
                    .and_then(|count| count.checked_mul(windows.every_ns.cast_unsigned()));
                reach.is_some_and(|reach| reach <= STEPS_REACH_MAX)
            }
            Self::Listed { .. } => false,
        };
        let is_joined = |run: &SeriesRun| run.series == SEVERAL;
        has_many && (rows < series.len().saturating_mul(ROWS_EACH) || series.iter().any(is_joined))
    }

    /// The slot of each row, or [`NOWHERE`].
    ///
    /// # Panics
    /// Unless it [`Self::scatters`].
    pub(crate) fn of_rows(
        &self,
        times: &[i64],
        series: &[SeriesRun],
        group_of: impl Fn(u32) -> Option<u32>,
        slots: &mut Vec<u32>,
    ) {
        slots.clear();
        slots.reserve(times.len());
        match self {
            Self::Whole { .. } => {
                for run in series {
                    let slot = group_of(run.series).unwrap_or(NOWHERE);
                    slots.resize(slots.len() + run.rows as usize, slot);
                }
            }
            Self::Grid { windows, first_end, per_group, .. } => {
                let first_start = first_end.wrapping_sub(windows.every_ns);
                steps_of_i64(times, first_start, windows.every_ns, slots);
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
