//! The series of a scan, ascending. Those of a whole measurement mostly follow one another: they are counted, not listed.

use model::{SeriesId, TimeRange};
use roaring::RoaringTreemap;

use crate::tombstone::HiddenSeries;

/// So many are looked up one by one.
const FEW_SERIES: usize = 64;

/// Series by ordinal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SeriesList {
    /// So many that follow one another.
    Range { first: SeriesId, len: usize },
    /// Any.
    Listed(Box<[SeriesId]>),
}

impl SeriesList {
    /// The series of a set.
    pub(crate) fn of(series: &RoaringTreemap) -> Self {
        match (series.min(), series.max()) {
            (Some(first), Some(last)) if last - first == series.len() - 1 => {
                Self::Range { first: SeriesId(first), len: series.len() as usize }
            }
            _ => Self::Listed(series.iter().map(SeriesId).collect()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Range { len, .. } => *len,
            Self::Listed(series) => series.len(),
        }
    }

    /// The series of an ordinal below [`Self::len`].
    pub(crate) fn at(&self, ordinal: usize) -> SeriesId {
        match self {
            Self::Range { first, .. } => SeriesId(first.0 + ordinal as u64),
            Self::Listed(series) => series[ordinal],
        }
    }

    /// The first and the last one.
    pub(crate) fn bounds(&self) -> Option<(SeriesId, SeriesId)> {
        let last = self.len().checked_sub(1)?;
        Some((self.at(0), self.at(last)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = SeriesId> + '_ {
        (0..self.len()).map(|ordinal| self.at(ordinal))
    }

    /// How many are below a series.
    pub(crate) fn count_below(&self, series: SeriesId) -> usize {
        match self {
            Self::Range { first, len } => usize::try_from(series.0.saturating_sub(first.0))
                .map_or(*len, |below| below.min(*len)),
            Self::Listed(all) => all.partition_point(|listed| *listed < series),
        }
    }

    fn contains(&self, series: SeriesId) -> bool {
        match self {
            Self::Range { first, len } => {
                series.0.checked_sub(first.0).is_some_and(|behind| behind < *len as u64)
            }
            Self::Listed(all) => all.binary_search(&series).is_ok(),
        }
    }

    /// Whether a tombstone may hide rows of some of them: those of series that were dropped hide none of others.
    pub(crate) fn may_have_hidden(&self, hidden: &HiddenSeries) -> bool {
        let Some((first, last)) = self.bounds() else { return false };
        match hidden {
            HiddenSeries::All => true,
            HiddenSeries::Some(set) if self.len() <= FEW_SERIES => {
                self.iter().any(|series| set.contains(series.0))
            }
            HiddenSeries::Some(set) if set.len() <= FEW_SERIES as u64 => {
                set.iter().any(|series| self.contains(SeriesId(series)))
            }
            HiddenSeries::Some(set) => set.range_cardinality(first.0..=last.0) > 0,
            HiddenSeries::Rows(rows) => rows.touches((first, last), TimeRange::ALL),
        }
    }

    /// Bytes of memory taken.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::Range { .. } => 0,
            Self::Listed(series) => size_of_val(&**series),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_list_of_a_set_has_all_of_it(
            first in 0u64..1 << 33,
            steps in prop_oneof![
                prop::collection::vec(Just(1u64), 0..50),
                prop::collection::vec(1u64..4, 0..50),
            ],
        ) {
            let next = |at: &mut u64, step: u64| Some(std::mem::replace(at, *at + step));
            let series: Vec<u64> = steps.into_iter().scan(first, next).collect();
            let found = SeriesList::of(&series.iter().copied().collect());
            let expected: Vec<SeriesId> = series.into_iter().map(SeriesId).collect();
            let ends = expected.first().copied().zip(expected.last().copied());
            prop_assert_eq!((found.len(), found.bounds()), (expected.len(), ends));
            prop_assert_eq!(found.iter().collect::<Vec<_>>(), expected);
        }

        #[test]
        fn what_is_hidden_of_a_list_is_found(
            list in prop::collection::btree_set(0u64..400, 0..200),
            hidden in prop::collection::btree_set(0u64..400, 0..100),
            first in 0u64..300,
        ) {
            // Also one that is counted.
            for list in [list.clone(), (first..first + list.len() as u64).collect()] {
                let of_list = SeriesList::of(&list.iter().copied().collect());
                let meet = list.intersection(&hidden).next().is_some();
                let found = of_list.may_have_hidden(&HiddenSeries::Some(hidden.iter().copied().collect()));
                let is_exact = list.len().min(hidden.len()) <= FEW_SERIES;
                prop_assert!(found == meet || found && !is_exact);
                prop_assert_eq!(of_list.may_have_hidden(&HiddenSeries::All), !list.is_empty());
                for series in 0..400 {
                    prop_assert_eq!(of_list.contains(SeriesId(series)), list.contains(&series));
                    let below = list.range(..series).count();
                    prop_assert_eq!(of_list.count_below(SeriesId(series)), below);
                }
            }
        }
    }
}
