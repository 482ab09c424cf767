//! The series of a scan, ascending. Those of a whole measurement mostly follow one another: they are counted, not listed.

use model::SeriesId;
use roaring::RoaringTreemap;

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
    }
}
