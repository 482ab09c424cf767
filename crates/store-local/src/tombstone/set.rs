//! The tombstones of one source, by the series they hide rows of.
//!
//! Whoever drops thousands of series one by one hangs as many tombstones of one series each on every source, until merges
//! have carried them out: those of a series are found without a look at the others.

use std::sync::Arc;

use model::{SeriesId, TimeRange};

use super::{HiddenSeries, Tombstone, Visible, visible};

/// So many are asked one by one.
const ASKED_MAX: usize = 16;

/// A tombstone of so many series is listed by them.
const LISTED_SERIES_MAX: u64 = 16;

/// Tombstones, in no order.
#[derive(Clone, Debug, Default)]
pub(crate) struct TombstoneSet {
    all: Vec<Arc<Tombstone>>,
    /// How many of them, the first ones, have to be asked for each series.
    asked: usize,
    /// The places of the others by series, ascending.
    listed: Vec<(SeriesId, u32)>,
}

impl TombstoneSet {
    pub(crate) fn new(tombstones: Vec<Arc<Tombstone>>) -> Self {
        let are_few = tombstones.len() <= ASKED_MAX;
        let is_asked = |stone: &Arc<Tombstone>| are_few || stone.has_many_series();
        let (mut all, others): (Vec<_>, Vec<_>) = tombstones.into_iter().partition(is_asked);
        let (asked, mut listed) = (all.len(), Vec::new());
        for stone in others {
            let at = all.len() as u32;
            stone.each_series(|series| listed.push((series, at)));
            all.push(stone);
        }
        listed.sort_unstable();
        Self { all, asked, listed }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// What they leave of a series within `range`.
    pub(crate) fn visible(&self, series: SeriesId, range: TimeRange) -> Visible {
        let from = self.listed.partition_point(|(listed, _)| *listed < series);
        let of_series = self.listed[from..].iter().take_while(|(listed, _)| *listed == series);
        let of_series = of_series.map(|(_, at)| &self.all[*at as usize]);
        visible(self.all[..self.asked].iter().chain(of_series), series, range)
    }
}

impl Tombstone {
    /// Whether it hides rows of too many series to be listed by them.
    fn has_many_series(&self) -> bool {
        match &self.series {
            HiddenSeries::All => true,
            HiddenSeries::Some(set) => set.len() > LISTED_SERIES_MAX,
            HiddenSeries::Rows(rows) => rows.run_count() as u64 > LISTED_SERIES_MAX,
        }
    }

    /// Calls `visit` with each series that it names.
    fn each_series(&self, visit: impl FnMut(SeriesId)) {
        match &self.series {
            HiddenSeries::All => {}
            HiddenSeries::Some(set) => set.iter().map(SeriesId).for_each(visit),
            HiddenSeries::Rows(rows) => rows.series().into_iter().map(SeriesId).for_each(visit),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::DatabaseId;
    use proptest::prelude::*;

    use super::super::RowSet;
    use super::*;

    fn any_hidden() -> impl Strategy<Value = HiddenSeries> {
        let times = prop::collection::vec(0i64..40, 1..4);
        let rows = prop::collection::vec((0u64..30, times), 1..25);
        prop_oneof![
            1 => Just(HiddenSeries::All),
            6 => prop::collection::btree_set(0u64..30, 0..4)
                .prop_map(|set| HiddenSeries::Some(set.into_iter().collect())),
            2 => prop::collection::btree_set(0u64..30, 14..24)
                .prop_map(|set| HiddenSeries::Some(set.into_iter().collect())),
            6 => rows.prop_map(|rows| {
                let rows = rows.into_iter().map(|(series, times)| (SeriesId(series), times));
                HiddenSeries::Rows(RowSet::new(rows.collect()))
            }),
        ]
    }

    proptest! {
        #[test]
        fn of_a_series_all_leave_what_each_leaves(
            hidden in prop::collection::vec((any_hidden(), 0i64..40, 0i64..10), 0..50),
            range in (0i64..40, 0i64..40),
        ) {
            let stone = |(series, min, span): (HiddenSeries, i64, i64)| {
                let time = match &series {
                    HiddenSeries::Rows(rows) => rows.time(),
                    _ => TimeRange::new(min, min + span),
                };
                let (database, policy, measurement) = (DatabaseId(1), None, None);
                Arc::new(Tombstone { id: 1, database, policy, measurement, series, time })
            };
            let stones: Vec<Arc<Tombstone>> = hidden.into_iter().map(stone).collect();
            let range = TimeRange::new(range.0.min(range.1), range.0.max(range.1));
            let set = TombstoneSet::new(stones.clone());
            prop_assert_eq!(set.is_empty(), stones.is_empty());
            for series in (0..31).map(SeriesId) {
                let (found, expected) = (set.visible(series, range), visible(&stones, series, range));
                prop_assert_eq!(found.parts, expected.parts);
                prop_assert_eq!(found.hidden, expected.hidden);
            }
        }
    }
}
