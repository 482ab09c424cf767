//! Slots row by row, for series with a handful of rows each: a run of them would take longer to find than to add.

use model::SeriesRun;

use super::SlotMap;

/// In place of a slot: the row's series is in no group.
pub(crate) const NOWHERE: u32 = u32::MAX;
/// Series with fewer rows on average are better added row by row.
const ROWS_EACH: usize = 16;

/// What a number is divided by, and two to the power of 64 by that.
#[derive(Clone, Copy)]
struct Divisor {
    by: u64,
    reciprocal: u64,
}

impl Divisor {
    fn new(by: u64) -> Self {
        Self { by, reciprocal: u64::MAX / by }
    }

    /// The quotient. Below 2^63 what the reciprocal's missing fraction takes away is less than one.
    #[inline]
    fn divide(self, number: u64) -> u64 {
        if number >> 63 != 0 {
            return number / self.by;
        }
        let near = ((u128::from(number) * u128::from(self.reciprocal)) >> 64) as u64;
        near + u64::from(number - near * self.by >= self.by)
    }
}

impl SlotMap {
    /// Whether rows are better added one by one, if it does not matter which series they are of.
    pub(crate) fn scatters(&self, rows: usize, series: usize) -> bool {
        let has_many = match self {
            Self::Whole { groups, .. } => *groups > 1,
            Self::Grid { .. } => true,
            Self::Listed { .. } => false,
        };
        has_many && rows < series.saturating_mul(ROWS_EACH)
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
                let every = Divisor::new(windows.every_ns.cast_unsigned());
                // All of time is more than an `i64` holds.
                let behind = |time: i64| time.wrapping_sub(*first_end).cast_unsigned();
                let window = |time: &i64| match *time < *first_end {
                    true => 0,
                    false => 1 + every.divide(behind(*time)) as u32,
                };
                let mut at = 0;
                for run in series {
                    let of_run = &times[at..at + run.rows as usize];
                    at += of_run.len();
                    match group_of(run.series) {
                        Some(group) => {
                            let first = group * *per_group as u32;
                            slots.extend(of_run.iter().map(|time| first + window(time)));
                        }
                        None => slots.resize(slots.len() + of_run.len(), NOWHERE),
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

    proptest! {
        #[test]
        fn quotients_are_exact(
            number in prop_oneof![any::<u64>(), 0u64..1 << 63, 0u64..1000, Just((1 << 63) - 1)],
            by in prop_oneof![1u64..1 << 63, 1u64..1000, Just(1), Just((1 << 63) - 1)],
            factor in 0u64..1000,
        ) {
            let divisor = Divisor::new(by);
            prop_assert_eq!(divisor.divide(number), number / by);
            for near in [by.saturating_mul(factor), by.saturating_mul(factor).saturating_sub(1)] {
                let near = near.min((1 << 63) - 1);
                prop_assert_eq!(divisor.divide(near), near / by);
            }
        }
    }
}
