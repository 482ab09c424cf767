//! The rows of a block in order of time, about: where very many series share it, a short time has one row in hundreds, and to find
//! those takes decoding all times.
//!
//! Time is cut into slots of one length, a few thousand a block, and the rows of each are listed: two bytes a row. Rows of the
//! slots at both ends of a time may lie beside it: their times decide.

use model::TimeRange;

/// Rows that a slot has on average, at least: what is looked at in vain at either end.
const SLOT_ROWS: usize = 16;
/// Rows are listed in so many bits.
const ROWS_MAX: usize = 1 << u16::BITS;

/// See the module.
#[derive(Debug)]
pub(super) struct ByTime {
    /// The earliest time.
    first: i64,
    /// Slots are two to this many nanoseconds long.
    shift: u32,
    /// Where the rows of each slot begin in the list, and its end.
    starts: Box<[u32]>,
    /// Ascending in each slot.
    rows: Box<[u16]>,
}

impl ByTime {
    /// Of a block with these times; `None`: it has too many rows.
    pub(super) fn of(times: &[i64]) -> Option<Self> {
        if times.len() > ROWS_MAX {
            return None;
        }
        let (first, last) = (*times.iter().min()?, *times.iter().max()?);
        let span = last.abs_diff(first);
        let slots = (times.len() / SLOT_ROWS).max(2) as u64;
        let shift = (0..u64::BITS).find(|shift| span >> shift < slots)?;
        let slot = |time: i64| (time.abs_diff(first) >> shift) as usize;
        let mut starts = vec![0u32; (span >> shift) as usize + 2];
        times.iter().for_each(|time| starts[slot(*time) + 1] += 1);
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut rows = vec![0; times.len()];
        for (row, time) in times.iter().enumerate() {
            let place = &mut next[slot(*time)];
            rows[*place as usize] = row as u16;
            *place += 1;
        }
        Some(Self { first, shift, starts: starts.into(), rows: rows.into() })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.starts) + size_of_val(&*self.rows)
    }

    /// All rows that may be within a time, those of each slot ascending.
    pub(super) fn near(&self, time: TimeRange) -> Near<'_> {
        let slots = self.starts.len() - 1;
        if time.is_empty() || time.max < self.first {
            return Near::default();
        }
        let slot = |time: i64| time.max(self.first).abs_diff(self.first) >> self.shift;
        let Some(from) = usize::try_from(slot(time.min)).ok().filter(|from| *from < slots) else {
            return Near::default();
        };
        let last = slot(time.max).min(slots as u64 - 1) as usize;
        let rows = |from: usize, to: usize| {
            &self.rows[self.starts[from] as usize..self.starts[to] as usize]
        };
        let inside = from + 1..last.max(from + 1);
        let last = if last > from { rows(last, last + 1) } else { &[] };
        Near { ends: [rows(from, from + 1), last], inside: rows(inside.start, inside.end) }
    }
}

/// Rows that may be within a time.
#[derive(Debug, Default)]
pub(super) struct Near<'a> {
    /// Of the slots that have its ends: some may lie beside it.
    pub(super) ends: [&'a [u16]; 2],
    /// Of those between.
    pub(super) inside: &'a [u16],
}

impl Near<'_> {
    /// How many they are.
    pub(super) fn len(&self) -> usize {
        self.ends[0].len() + self.inside.len() + self.ends[1].len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_rows_of_a_time_are_near(
            times in prop::collection::vec(
                prop_oneof![-1000i64..1000, Just(i64::MIN), Just(i64::MAX), any::<i64>()],
                1..300,
            ),
            ends in any::<(prop::sample::Index, prop::sample::Index)>(),
            around in (-2i64..3, -2i64..3),
        ) {
            let by_time = ByTime::of(&times).unwrap();
            let end = |at: prop::sample::Index, by: i64| at.get(&times).saturating_add(by);
            let time = TimeRange::new(end(ends.0, around.0), end(ends.1, around.1));
            let Near { ends: [first, last], inside: between } = by_time.near(time);
            prop_assert!(between.iter().all(|row| time.contains(times[usize::from(*row)])));
            let near = [first, between, last].into_iter().flatten();
            let mut near: Vec<usize> = near.map(|row| usize::from(*row)).collect();
            prop_assert_eq!(near.len(), by_time.near(time).len());
            near.sort_unstable();
            let all = near.len();
            near.dedup();
            prop_assert_eq!(near.len(), all);
            let inside = |row: &usize| time.contains(times[*row]);
            let expected: Vec<usize> = (0..times.len()).filter(inside).collect();
            near.retain(inside);
            prop_assert_eq!(near, expected);
        }

        #[test]
        fn few_are_near_that_are_not_inside(
            times in prop::collection::vec(0i64..1_000_000, 2000..3000),
            from in 0i64..1_000_000,
        ) {
            let by_time = ByTime::of(&times).unwrap();
            let time = TimeRange::new(from, from + 1000);
            let inside = times.iter().filter(|at| time.contains(**at)).count();
            prop_assert!(by_time.near(time).len() <= inside + 8 * SLOT_ROWS);
        }
    }

    #[test]
    fn a_block_with_too_many_rows_has_no_list() {
        assert!(ByTime::of(&vec![1; ROWS_MAX]).is_some());
        assert!(ByTime::of(&vec![1; ROWS_MAX + 1]).is_none());
        assert!(ByTime::of(&[]).is_none());
    }
}
