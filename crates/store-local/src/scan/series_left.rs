//! The series of a scan that a cursor has not read yet.

use model::SeriesId;

use super::series_list::SeriesList;

/// The series of a scan that a cursor has not read yet, ascending.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeriesLeft<'a> {
    /// The series of the scan, by ordinal.
    series: &'a SeriesList,
    /// The ordinals of those to read; `None`: all.
    listed: Option<&'a [u32]>,
    /// How many of these are done.
    done: usize,
}

impl<'a> SeriesLeft<'a> {
    /// What is left of the `listed` ones, or of all, when so many are done.
    pub(super) fn new(series: &'a SeriesList, listed: Option<&'a [u32]>, done: usize) -> Self {
        Self { series, listed, done }
    }

    pub(super) fn len(&self) -> usize {
        self.listed.map_or(self.series.len(), <[u32]>::len) - self.done
    }

    /// The ordinal of one of them, and the series.
    #[inline]
    pub(super) fn at(&self, place: usize) -> (u32, SeriesId) {
        let place = self.done + place;
        let ordinal = self.listed.map_or(place as u32, |listed| listed[place]);
        (ordinal, self.series.at(ordinal as usize))
    }

    /// Ordinals and series.
    pub(super) fn iter(self) -> impl Iterator<Item = (u32, SeriesId)> + 'a {
        (0..self.len()).map(move |place| self.at(place))
    }

    /// How many of the next series lie between two, if those are all there are: their numbers follow one another. The
    /// first is the next one.
    pub(super) fn count_between(&self, first: SeriesId, last: SeriesId) -> Option<usize> {
        let count = usize::try_from(last.0 - first.0).ok()?.checked_add(1)?;
        let from = self.side_by_side(count)? as usize;
        let ends = (self.series.at(from), self.series.at(from + count - 1));
        (ends == (first, last)).then_some(count)
    }

    /// The ordinal of the first of the next `count` series, if no series of the scan lies between them that is not to be
    /// read.
    pub(super) fn side_by_side(&self, count: usize) -> Option<u32> {
        let first = match self.listed {
            None => self.done as u32,
            Some(listed) => {
                let listed = listed.get(self.done..self.done + count)?;
                let (first, last) = (*listed.first()?, *listed.last()?);
                if (last - first) as usize != count - 1 {
                    return None;
                }
                first
            }
        };
        (first as usize + count <= self.series.len()).then_some(first)
    }

    /// The series from this ordinal on.
    pub(super) fn from(
        &self,
        ordinal: u32,
        count: usize,
    ) -> impl ExactSizeIterator<Item = SeriesId> + 'a {
        let (series, from) = (self.series, ordinal as usize);
        (from..from + count).map(|ordinal| series.at(ordinal))
    }

    /// How many of them come before a series or are it.
    pub(super) fn count_until(&self, series: SeriesId) -> usize {
        series.0.checked_add(1).map_or(self.len(), |next| self.count_before(SeriesId(next)))
    }

    /// How many of them come before a series.
    pub(super) fn count_before(&self, series: SeriesId) -> usize {
        match self.listed {
            None => self.series.count_below(series).saturating_sub(self.done),
            Some(listed) => listed[self.done..]
                .partition_point(|ordinal| self.series.at(*ordinal as usize) < series),
        }
    }

    /// The ordinal of a series, if it is one of them.
    pub(super) fn ordinal_of(&self, series: SeriesId) -> Option<u32> {
        let place = self.count_before(series);
        if place == self.len() {
            return None;
        }
        let (ordinal, found) = self.at(place);
        (found == series).then_some(ordinal)
    }
}
