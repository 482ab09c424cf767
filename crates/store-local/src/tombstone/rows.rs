//! Single rows of many series, as a tombstone keeps them: few bytes each, and quick to find.
//!
//! Times of a series are cut into runs of at most [`RUN_ROWS_MAX`], each an integer page of the
//! `codec` crate with its bounds beside it: regular times take next to nothing, and whoever reads a
//! stretch of a series decodes the runs that touch it.
//!
//! Invariants
//! - Runs ascend by series and time, and share no time of a series; no run is empty.

use model::{SeriesId, TimeRange};
use roaring::RoaringTreemap;

use crate::bytes::{Malformed, PutBytes, Reader};

/// Rows of a run at most.
const RUN_ROWS_MAX: usize = 1024;

/// Rows by series and time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RowSet {
    runs: Vec<Run>,
    /// The pages of the runs, one after the other.
    pages: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    series: SeriesId,
    /// Times of the first and the last row.
    time: TimeRange,
    rows: u32,
    /// Where its page ends; it starts where the one before ends.
    page_end: u32,
}

impl RowSet {
    /// The set of these rows, in any order.
    pub(crate) fn new(mut rows: Vec<(SeriesId, Vec<i64>)>) -> Self {
        rows.sort_by_key(|(series, _)| *series);
        let mut set = Self::default();
        for of_series in rows.chunk_by_mut(|a, b| a.0 == b.0) {
            let Some(((series, times), others)) = of_series.split_first_mut() else { continue };
            others.iter().for_each(|(_, more)| times.extend_from_slice(more));
            times.sort_unstable();
            times.dedup();
            times.chunks(RUN_ROWS_MAX).for_each(|run| set.push(*series, run));
        }
        set
    }

    fn push(&mut self, series: SeriesId, times: &[i64]) {
        let (Some(first), Some(last)) = (times.first(), times.last()) else { return };
        codec::encode_i64(times, codec::Effort::Fast, &mut self.pages);
        let page_end = u32::try_from(self.pages.len()).expect("BUG: more rows than a request has");
        let time = TimeRange::new(*first, *last);
        self.runs.push(Run { series, time, rows: times.len() as u32, page_end });
    }

    /// Whether there are no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// How many runs there are: as many as series at least.
    pub(crate) fn run_count(&self) -> usize {
        self.runs.len()
    }

    /// Times of the first and the last row of all.
    pub(crate) fn time(&self) -> TimeRange {
        self.runs.iter().fold(TimeRange::EMPTY, |all, run| all.union(&run.time))
    }

    /// The series.
    pub(crate) fn series(&self) -> RoaringTreemap {
        self.runs.iter().map(|run| run.series.0).collect()
    }

    /// Whether some row may be of these series, first and last, and this time.
    pub(crate) fn touches(&self, (first, last): (SeriesId, SeriesId), time: TimeRange) -> bool {
        let from = self.runs.partition_point(|run| run.series < first);
        let of_series = self.runs[from..].iter().take_while(|run| run.series <= last);
        of_series.into_iter().any(|run| run.time.overlaps(&time))
    }

    /// Adds the times within `range` of the rows of a series, ascending.
    pub(crate) fn times(&self, series: SeriesId, range: TimeRange, out: &mut Vec<i64>) {
        let before =
            |run: &Run| run.series < series || (run.series == series && run.time.max < range.min);
        for at in self.runs.partition_point(before)..self.runs.len() {
            let run = &self.runs[at];
            if run.series != series || run.time.min > range.max {
                break;
            }
            let known = out.len();
            codec::decode_i64(self.page(at), run.rows as usize, out)
                .expect("BUG: a page of a set was looked at when the set was made");
            if !range.covers(&run.time) {
                let mut kept = out.split_off(known);
                kept.retain(|time| range.contains(*time));
                out.append(&mut kept);
            }
        }
    }

    /// Memory it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.runs.capacity() * size_of::<Run>() + self.pages.capacity()
    }

    fn page(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.runs[before].page_end as usize);
        &self.pages[start..self.runs[at].page_end as usize]
    }

    /// Adds its bytes.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_varint(self.runs.len() as u64);
        let mut series = 0;
        for (at, run) in self.runs.iter().enumerate() {
            out.put_varint(run.series.0 - series);
            out.put_varint(u64::from(run.rows));
            out.put_block(self.page(at));
            series = run.series.0;
        }
    }

    /// Reads what [`RowSet::encode`] wrote.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let runs = reader.count(3)?;
        let mut set = Self::default();
        let (mut series, mut times) = (0u64, Vec::new());
        for _ in 0..runs {
            let step = reader.varint()?;
            series = series.checked_add(step).ok_or(reader.malformed())?;
            let rows = reader.varint()?;
            if rows == 0 || rows > RUN_ROWS_MAX as u64 {
                return Err(reader.malformed());
            }
            times.clear();
            let page = reader.block()?;
            codec::decode_i64(page, rows as usize, &mut times).map_err(|_| reader.malformed())?;
            let last = set.runs.last().filter(|last| last.series.0 == series);
            let follows = last.is_none_or(|last| last.time.max < times[0]);
            if !follows || times.windows(2).any(|w| w[0] >= w[1]) {
                return Err(reader.malformed());
            }
            if set.pages.len().saturating_add(times.len() * 16) > u32::MAX as usize {
                return Err(reader.malformed());
            }
            set.push(SeriesId(series), &times);
        }
        if set.is_empty() { Err(reader.malformed()) } else { Ok(set) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn rows() -> impl Strategy<Value = Vec<(u64, Vec<i64>)>> {
        let times = prop_oneof![
            prop::collection::vec(any::<i64>(), 0..4),
            prop::collection::vec(0i64..60, 0..20),
            (0i64..5000, 1i64..9).prop_map(|(n, step)| (0..n).map(|t| t * step).collect()),
        ];
        prop::collection::vec((0u64..6, times), 0..8)
    }

    proptest! {
        #[test]
        fn has_the_rows_it_was_made_of(
            rows in rows(),
            ranges in prop::collection::vec((0u64..7, any::<(i64, i64)>(), 0i64..90, 0i64..90), 1..6),
        ) {
            let made = rows.iter().map(|(id, times)| (SeriesId(*id), times.clone())).collect();
            let set = RowSet::new(made);
            let all: BTreeSet<(u64, i64)> =
                rows.iter().flat_map(|(id, times)| times.iter().map(|t| (*id, *t))).collect();
            prop_assert_eq!(set.is_empty(), all.is_empty());
            let bounds = all.iter().fold(TimeRange::EMPTY, |b, (_, t)| b.union(&TimeRange::new(*t, *t)));
            prop_assert_eq!(set.time(), bounds);
            prop_assert!(set.series().iter().eq(all.iter().map(|r| r.0).collect::<BTreeSet<_>>()));
            for (id, any, a, b) in ranges {
                for (a, b) in [any, (a, b), (a.min(b), a.max(b)), (i64::MIN, i64::MAX)] {
                    let (range, id) = (TimeRange::new(a, b), SeriesId(id));
                    let of = |r: &&(u64, i64)| r.0 == id.0 && range.contains(r.1);
                    let want: Vec<i64> = all.iter().filter(of).map(|r| r.1).collect();
                    let mut got = vec![-1];
                    set.times(id, range, &mut got);
                    prop_assert_eq!(&got[1..], &want[..]);
                    prop_assert!(want.is_empty() || set.touches((id, id), range));
                }
            }
            let mut bytes = Vec::new();
            set.encode(&mut bytes);
            let read = RowSet::decode(&mut Reader::new(&bytes, "test"));
            prop_assert_eq!(read.ok(), (!set.is_empty()).then_some(set));
        }

        #[test]
        fn arbitrary_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(set) = RowSet::decode(&mut Reader::new(&bytes, "test")) {
                let mut again = Vec::new();
                set.encode(&mut again);
                prop_assert_eq!(RowSet::decode(&mut Reader::new(&again, "test")), Ok(set));
            }
        }
    }

    #[test]
    fn regular_times_take_next_to_nothing() {
        let times: Vec<i64> = (0..60_000).map(|n| n * 10_000_000_000).collect();
        let set = RowSet::new(vec![(SeriesId(1), times)]);
        assert!(set.memory_bytes() < 60_000 / 8, "{}", set.memory_bytes());
    }

    #[test]
    fn what_does_not_ascend_is_malformed() {
        let page = |times: &[i64]| {
            let mut out = Vec::new();
            out.put_varint(times.len() as u64);
            let mut page = Vec::new();
            codec::encode_i64(times, codec::Effort::Fast, &mut page);
            out.put_block(&page);
            out
        };
        for (runs, good) in [
            (vec![(1, page(&[1, 2])), (0, page(&[3]))], true),
            (vec![(1, page(&[1, 2])), (0, page(&[2]))], false),
            (vec![(1, page(&[2, 2]))], false),
            (vec![(1, page(&[3, 2]))], false),
            (vec![(1, page(&[]))], false),
            (vec![(u64::MAX, page(&[1])), (1, page(&[1]))], false),
            (vec![], false),
        ] {
            let mut bytes = Vec::new();
            bytes.put_varint(runs.len() as u64);
            for (step, run) in &runs {
                bytes.put_varint(*step);
                bytes.extend_from_slice(run);
            }
            let read = RowSet::decode(&mut Reader::new(&bytes, "test"));
            assert_eq!(read.is_ok(), good, "{runs:?}");
        }
    }
}
