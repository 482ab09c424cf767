//! Times with one step between all neighbours: rows are found, and times told, by calculation.
//!
//! Whoever reads such a page first leaves the step in the directory that is in memory. Others then need neither the
//! page nor a look into the cache for it.

use std::ops::Range;

use model::TimeRange;

use crate::directory::Block;

/// Regular times: that of row `i` is `first + i * step`, of all rows of the block within 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reader) struct Regular {
    first: i64,
    step: u64,
}

impl Regular {
    /// What somebody has left in the directory.
    pub(in crate::reader) fn known(block: &Block) -> Option<Self> {
        let entry = block.entry();
        entry.known_times.step().map(|step| Self { first: entry.first.1, step })
    }

    /// What a page says, unless it is of another kind, does not ascend, or wraps around. Left in the directory if
    /// `remember`.
    pub(in crate::reader) fn of_page(page: &[u8], block: &Block, remember: bool) -> Option<Self> {
        let found = Self::parse(page, block.rows())?;
        let entry = block.entry();
        if remember && found.first == entry.first.1 {
            entry.known_times.set_step(found.step);
        }
        Some(found)
    }

    fn parse(page: &[u8], rows: usize) -> Option<Self> {
        let (first, step) = codec::regular_i64(page)?;
        let step = u64::try_from(step).ok().filter(|step| *step > 0)?;
        let last = (rows as u64).saturating_sub(1).checked_mul(step)?;
        first.checked_add_unsigned(last)?;
        Some(Self { first, step })
    }

    /// The time of a row of the block.
    pub(in crate::reader) fn at(self, row: usize) -> i64 {
        // No row of the block is out of range, as was checked.
        self.first.wrapping_add_unsigned((row as u64).wrapping_mul(self.step))
    }

    /// Adds the times of some rows of the block to `out`.
    pub(in crate::reader) fn append(self, rows: Range<usize>, out: &mut Vec<i64>) {
        let mut next = self.at(rows.start);
        // Each is told from the one before: sums of steps are made side by side, products are not.
        out.extend(rows.map(|_| {
            let time = next;
            next = next.wrapping_add_unsigned(self.step);
            time
        }));
    }

    /// The rows inside `time` among `rows`.
    pub(in crate::reader) fn rows_in(self, rows: &Range<usize>, time: TimeRange) -> Range<usize> {
        let not_before = |time: i64| {
            let distance = if time <= self.first { 0 } else { time.abs_diff(self.first) };
            let steps = usize::try_from(distance.div_ceil(self.step)).unwrap_or(usize::MAX);
            steps.clamp(rows.start, rows.end)
        };
        let start = not_before(time.min);
        let end = time.max.checked_add(1).map_or(rows.end, not_before);
        start..end.max(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_of_regular_times_are_found_by_calculation(
            first in prop_oneof![-50i64..50, Just(i64::MIN), Just(i64::MAX - 2000)],
            step in 1i64..40,
            count in 2usize..50,
            ends in prop::collection::vec(prop_oneof![-60i64..2060, Just(i64::MIN), Just(i64::MAX)], 2),
            part in any::<[prop::sample::Index; 2]>(),
        ) {
            let times: Vec<i64> = (0..count as i64).map(|row| first + row * step).collect();
            let mut page = Vec::new();
            codec::encode_i64(&times, codec::Effort::Hot, &mut page);
            let place = |end: i64| if end.unsigned_abs() < 3000 && first.unsigned_abs() > 3000 { first.saturating_add(end) } else { end };
            let time = TimeRange { min: place(ends[0].min(ends[1])), max: place(ends[0].max(ends[1])) };
            let [a, b] = part.map(|index| index.index(count + 1));
            let rows = a.min(b)..a.max(b);
            let inside = |row: &usize| time.min <= times[*row] && times[*row] <= time.max;
            let wanted: Vec<usize> = rows.clone().filter(inside).collect();
            let regular = Regular::parse(&page, count).expect("the page is regular");
            prop_assert_eq!((0..count).map(|row| regular.at(row)).collect::<Vec<i64>>(), times.clone());
            let mut appended = vec![7];
            regular.append(rows.clone(), &mut appended);
            prop_assert_eq!(&appended[1..], &times[rows.clone()]);
            let found = regular.rows_in(&rows, time);
            prop_assert!(found.start >= rows.start && found.end <= rows.end);
            prop_assert_eq!(found.collect::<Vec<usize>>(), wanted);
        }
    }

    #[test]
    fn other_pages_are_not_taken_for_regular_ones() {
        for times in [vec![1, 2, 4], vec![5, 5], vec![3, 2, 1], vec![i64::MAX, i64::MIN]] {
            let mut page = Vec::new();
            codec::encode_i64(&times, codec::Effort::Hot, &mut page);
            assert_eq!(Regular::parse(&page, times.len()), None, "{times:?}");
        }
        assert_eq!(Regular::parse(&[], 1), None);
    }

    #[test]
    fn pages_that_wrap_around_within_the_block_are_not_regular() {
        let mut page = Vec::new();
        codec::encode_i64(&[i64::MAX - 2, i64::MAX - 1, i64::MAX], codec::Effort::Hot, &mut page);
        assert!(Regular::parse(&page, 3).is_some());
        assert_eq!(Regular::parse(&page, 4), None);
    }
}
