//! Which rows of a batch are of one series.

use hashbrown::HashMap;

use crate::rows::BatchRow;

/// For each row of a batch the row before it of the same series.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// How many rows before it that row stands; 0: the row is the first of its series.
    back: Vec<u64>,
    firsts: usize,
    /// Rows that do not stand behind the row before of their series.
    steps: usize,
}

impl Links {
    /// Links the rows of a batch.
    pub(crate) fn of(rows: &[BatchRow]) -> Self {
        let mut links = Self::default();
        links.back.reserve(rows.len());
        if rows.is_sorted_by_key(|row| row.series) {
            for at in 0..rows.len() {
                let same = at > 0 && rows[at - 1].series == rows[at].series;
                links.push(u64::from(same));
            }
        } else {
            let mut latest = HashMap::with_capacity(rows.len());
            for (at, row) in rows.iter().enumerate() {
                let before = latest.insert(row.series, at as u32);
                links.push(before.map_or(0, |before| at as u64 - u64::from(before)));
            }
        }
        links
    }

    fn push(&mut self, back: u64) {
        self.back.push(back);
        self.firsts += usize::from(back == 0);
        self.steps += usize::from(back != 1);
    }

    /// See the field.
    pub(crate) fn back(&self) -> &[u64] {
        &self.back
    }

    /// Rows of a series, on average, rounded down.
    pub(crate) fn rows_per_series(&self) -> usize {
        self.back.len() / self.firsts.max(1)
    }

    /// Rows of a series that stand together, on average, rounded down.
    pub(crate) fn rows_together(&self) -> usize {
        self.back.len() / self.steps.max(1)
    }
}

#[cfg(test)]
mod tests {
    use model::SeriesId;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_row_is_linked_to_the_one_before_of_its_series(
            mut ids in prop::collection::vec(prop_oneof![0u64..5, any::<u64>()], 0..200),
            sorted: bool,
        ) {
            if sorted {
                ids.sort_unstable();
            }
            let row = |id: &u64| BatchRow {
                series: SeriesId(*id),
                time_ns: 0,
                layout: 0,
                values_start: 0,
            };
            let rows: Vec<BatchRow> = ids.iter().map(row).collect();
            let links = Links::of(&rows);
            let before = |at: usize| ids[..at].iter().rposition(|id| *id == ids[at]);
            let expected: Vec<u64> =
                (0..ids.len()).map(|at| before(at).map_or(0, |b| (at - b) as u64)).collect();
            prop_assert_eq!(links.back(), expected);
            let firsts = links.back().iter().filter(|back| **back == 0).count();
            prop_assert_eq!(links.rows_per_series(), ids.len() / firsts.max(1));
            let runs = ids.chunk_by(|a, b| a == b).count();
            prop_assert_eq!(links.rows_together(), ids.len() / runs.max(1));
        }
    }
}
