//! Which rows of a block belong to which series.

use std::ops::Range;

use codec::Effort;
use model::SeriesId;

use crate::input::{Input, Malformed, put_bytes, put_varint};

/// The series of a block, ascending, each with its consecutive rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runs {
    series: Vec<u64>,
    /// One past the last row of each series.
    ends: Vec<u32>,
}

impl Runs {
    pub(crate) fn one(series: SeriesId, rows: u32) -> Self {
        Self { series: vec![series.0], ends: vec![rows] }
    }

    /// Number of series.
    #[must_use]
    pub fn len(&self) -> usize {
        self.series.len()
    }

    /// Whether there are none; never the case in a block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// The rows of a series, if the block has any.
    #[must_use]
    pub fn rows_of(&self, series: SeriesId) -> Option<Range<usize>> {
        let at = self.series.binary_search(&series.0).ok()?;
        Some(self.rows(at))
    }

    /// The rows of the series at `index`.
    #[must_use]
    pub fn rows(&self, index: usize) -> Range<usize> {
        let from = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        from as usize..self.ends[index] as usize
    }

    /// The series at `index`.
    #[must_use]
    pub fn series(&self, index: usize) -> SeriesId {
        SeriesId(self.series[index])
    }

    /// Whether the series from `index` on are these, and no others.
    #[must_use]
    pub fn ends_with(&self, index: usize, series: impl ExactSizeIterator<Item = SeriesId>) -> bool {
        let mine = self.series.get(index..).unwrap_or_default();
        mine.len() == series.len()
            && mine.iter().zip(series).all(|(mine, series)| *mine == series.0)
    }

    /// The index of the first series that is not below `series`; `len` if there is none.
    #[must_use]
    pub fn index_from(&self, series: SeriesId) -> usize {
        self.series.partition_point(|s| *s < series.0)
    }

    /// The same, where those before `index` are known to be below `series`.
    #[must_use]
    pub fn index_near(&self, index: usize, series: SeriesId) -> usize {
        let Some(here) = self.series.get(index).filter(|here| **here < series.0) else {
            return index;
        };
        // It is no further behind than its number is above; mostly numbers follow one another, and it is just there.
        let left = self.series.len() - index;
        let farthest = usize::try_from(series.0 - here).map_or(left, |above| above.min(left));
        let (near, behind) = self.series[index..].split_at(farthest);
        if behind.first() == Some(&series.0) {
            return index + farthest;
        }
        index + near.partition_point(|near| *near < series.0)
    }

    /// The series at `row`, by index.
    #[must_use]
    pub fn index_at(&self, row: usize) -> usize {
        self.ends.partition_point(|end| *end as usize <= row)
    }

    /// The same of a series that is not before that of number `from`: near where it would be if all had as many rows. Of rows that
    /// ascend the one before is known.
    ///
    /// # Panics
    /// If there are no rows from there on.
    #[must_use]
    pub fn index_at_from(&self, from: usize, row: usize) -> usize {
        let ends = &self.ends[from..];
        let start = from.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        let rows = *ends.last().expect("BUG: a row behind the last one") as usize - start;
        let share = row.saturating_sub(start) as u64 * ends.len() as u64 / rows.max(1) as u64;
        let guess = (share as usize).min(ends.len() - 1);
        let is_behind = |at: usize| ends[at] as usize <= row;
        // Those before `low` end before the row, that at `high` and those behind it do not.
        let (low, high) = if is_behind(guess) {
            let (mut low, mut step) = (guess + 1, 1);
            while low + step < ends.len() && is_behind(low + step) {
                low += step + 1;
                step *= 2;
            }
            (low, ends.len().min(low + step))
        } else {
            let (mut high, mut step) = (guess, 1);
            while high >= step && !is_behind(high - step) {
                high -= step;
                step *= 2;
            }
            (high.saturating_sub(step), high)
        };
        from + low + ends[low..high].partition_point(|end| *end as usize <= row)
    }

    /// All series with their rows.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (SeriesId, Range<usize>)> + '_ {
        (0..self.len()).map(|at| (self.series(at), self.rows(at)))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.series.capacity() * 8 + self.ends.capacity() * 4 + size_of::<Self>()
    }

    /// Writes a page; the last series' rows are what the block has left.
    pub(crate) fn encode(runs: &[(SeriesId, u32)], effort: Effort, out: &mut Vec<u8>) {
        let series: Vec<u64> = runs.iter().map(|(s, _)| s.0).collect();
        let rows: Vec<u64> = runs.iter().map(|(_, n)| u64::from(*n)).collect();
        let mut encoded = Vec::new();
        codec::encode_u64(&series, effort, &mut encoded);
        put_varint(out, runs.len() as u64);
        put_bytes(out, &encoded);
        codec::encode_u64(&rows, effort, out);
    }

    /// Reads the page of a block of `rows` rows, whose series lie between `bounds`.
    pub(crate) fn decode(
        bytes: &[u8],
        rows: u32,
        bounds: (SeriesId, SeriesId),
    ) -> Result<Self, Malformed> {
        let mut input = Input::new(bytes);
        let count = input.bounded(u64::from(rows), "the number of series")?;
        let (mut series, mut counts) = (Vec::new(), Vec::new());
        codec::decode_u64(input.bytes()?, count, &mut series)?;
        codec::decode_u64(input.rest(), count, &mut counts)?;
        let ends_fit = series.first() == Some(&bounds.0.0) && series.last() == Some(&bounds.1.0);
        if !ends_fit || !series.is_sorted_by(|a, b| a < b) {
            return Err(input.fail("the series of a block are not those of its directory"));
        }
        let mut end = 0u64;
        let mut ends = Vec::with_capacity(count);
        for count in counts {
            // Both are far below 64 bits wide as long as the check has held so far.
            if count == 0 || count > u64::from(rows) - end {
                return Err(input.fail("the rows of a block's series are not those of the block"));
            }
            end += count;
            ends.push(end as u32);
        }
        if end != u64::from(rows) {
            return Err(input.fail("the rows of a block's series are not those of the block"));
        }
        Ok(Self { series, ends })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn only_the_series_of_a_block_are_accepted(
            steps in prop::collection::vec((0u64..3, 0u32..4), 1..20),
            rows in 1u32..40,
            right_rows in any::<bool>(),
        ) {
            let mut series = 5;
            let runs: Vec<(SeriesId, u32)> = steps
                .iter()
                .map(|(step, rows)| { series += step; (SeriesId(series), *rows) })
                .collect();
            let total: u32 = runs.iter().map(|r| r.1).sum();
            let rows = if right_rows { total.max(1) } else { rows };
            let bounds = (runs[0].0, runs[runs.len() - 1].0);
            let mut bytes = Vec::new();
            Runs::encode(&runs, Effort::Hot, &mut bytes);
            let decoded = Runs::decode(&bytes, rows, bounds);
            let valid = total == rows
                && runs.iter().all(|r| r.1 > 0)
                && runs.is_sorted_by(|a, b| a.0 < b.0);
            prop_assert_eq!(decoded.is_ok(), valid);
            prop_assert!(Runs::decode(&bytes, rows, (SeriesId(1), bounds.1)).is_err());
            let Ok(decoded) = decoded else { return Ok(()) };
            let found: Vec<_> = decoded.iter().map(|(s, r)| (s, r.len() as u32)).collect();
            prop_assert_eq!(&found, &runs);
            for (at, (id, range)) in decoded.iter().enumerate() {
                prop_assert_eq!(decoded.rows_of(id), Some(range.clone()));
                prop_assert_eq!(decoded.index_from(id), at);
                let behind: Vec<SeriesId> = runs[at..].iter().map(|run| run.0).collect();
                prop_assert!(decoded.ends_with(at, behind.iter().copied()));
                prop_assert!(!decoded.ends_with(at, behind[1..].iter().copied()));
                prop_assert!(!decoded.ends_with(at + 1, behind.iter().copied()));
                for near in 0..=at {
                    prop_assert_eq!(decoded.index_near(near, id), at);
                }
                for row in range {
                    prop_assert_eq!(decoded.index_at(row), at);
                    for from in 0..=at {
                        prop_assert_eq!(decoded.index_at_from(from, row), at);
                    }
                }
            }
            prop_assert_eq!(decoded.rows_of(SeriesId(2)), None);
        }
    }
}
