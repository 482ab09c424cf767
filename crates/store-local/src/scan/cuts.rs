//! Where the series of a scan are cut into parts that take about as long to read: by the rows that the largest segment has of
//! them, and where blocks end, so that no two parts decode the same one.

use model::SeriesId;
use segment::SeriesStretch;
use store::{StoreError, even_cuts};

use super::ScanPlan;
use crate::error::segment_error;
use crate::view::Segment;

/// The places to cut series at, see [`store::Scan::cuts`].
pub(super) fn cuts(
    plan: &ScanPlan,
    series: Option<&[u32]>,
    parts: usize,
) -> Result<Vec<usize>, StoreError> {
    let len = series.map_or(plan.series.len(), <[u32]>::len);
    let segments =
        plan.partitions.iter().flat_map(|partition| &partition.segments).map(|segment| &**segment);
    // Only of those that the scan reads: others may be damaged.
    let is_read = |segment: &&Segment| {
        let (first, last) = segment.meta.series;
        let bounds = plan.series.bounds();
        segment.meta.time.overlaps(&plan.time)
            && bounds.is_some_and(|(from, to)| first <= to && from <= last)
    };
    let segments = segments.filter(is_read);
    let rows = |segment: &&Segment| {
        segment.measurement(&plan.measurement.name).map_or(0, |(_, rows)| rows)
    };
    let Some(largest) = segments.filter(|segment| rows(segment) > 0).max_by_key(rows) else {
        return Ok(even_cuts(len, parts));
    };
    let reader = largest.reader()?;
    let directory = reader.directory(&plan.measurement.name).map_err(segment_error)?;
    let Some(directory) = directory else { return Ok(even_cuts(len, parts)) };
    let stretches = reader.stretches(&directory).map_err(segment_error)?;
    let at = |place: usize| plan.series.at(series.map_or(place, |series| series[place] as usize));
    Ok(cuts_by_rows(&stretches, (at, len), parts).unwrap_or_else(|| even_cuts(len, parts)))
}

/// Cuts `len` series, of which each place has one and which ascend; `None`: there are no rows of them.
fn cuts_by_rows(
    stretches: &[SeriesStretch],
    (at, len): (impl Fn(usize) -> SeriesId, usize),
    parts: usize,
) -> Option<Vec<usize>> {
    // How many series come before one.
    let before = |wanted: u64| {
        let (mut low, mut high) = (0, len);
        while low < high {
            let middle = low + (high - low) / 2;
            if at(middle).0 < wanted { low = middle + 1 } else { high = middle }
        }
        low
    };
    let mut ends = Vec::with_capacity(stretches.len());
    let mut rows = 0.0;
    for (number, stretch) in stretches.iter().enumerate() {
        let (first, last) = (stretch.first.0, stretch.last.0);
        let end = before(last + 1);
        let wanted = (end - before(first)) as f64 / (last - first + 1) as f64;
        rows += stretch.rows as f64 * wanted;
        let next = stretches.get(number + 1);
        let is_between_blocks = next.is_none_or(|next| next.first > stretch.last);
        ends.push((end, rows, is_between_blocks));
    }
    if rows == 0.0 {
        return None;
    }
    let of_block = rows / stretches.len() as f64;
    let nearest = |part: usize| {
        let wanted = rows * part as f64 / parts as f64;
        // Where a series goes on in the next block, both parts decode that one: as good as a few rows more in one of them.
        let cost = |(_, rows, is_between_blocks): &(usize, f64, bool)| {
            (rows - wanted).abs() + if *is_between_blocks { 0.0 } else { of_block }
        };
        ends.iter().min_by(|a, b| cost(a).total_cmp(&cost(b))).map(|(end, ..)| *end)
    };
    let mut cuts: Vec<usize> = (1..parts).filter_map(nearest).collect();
    cuts.dedup();
    cuts.retain(|cut| (1..len).contains(cut));
    Some(cuts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stretch((first, last, rows): (u64, u64, u64)) -> SeriesStretch {
        SeriesStretch { first: SeriesId(first), last: SeriesId(last), rows }
    }

    fn cut(stretches: &[(u64, u64, u64)], series: &[u64], parts: usize) -> Option<Vec<usize>> {
        let stretches: Vec<SeriesStretch> = stretches.iter().copied().map(stretch).collect();
        cuts_by_rows(&stretches, (|place| SeriesId(series[place]), series.len()), parts)
    }

    #[test]
    fn parts_have_as_many_rows_and_end_where_blocks_do() {
        // Two long series of two blocks each, and many short ones in one.
        let stretches = [(0, 0, 100), (0, 0, 90), (1, 1, 100), (1, 1, 90), (2, 11, 20)];
        let all: Vec<u64> = (0..12).collect();
        assert_eq!(cut(&stretches, &all, 2), Some(vec![1]));
        assert_eq!(cut(&stretches, &all, 3), Some(vec![1]));
        // Without the first one it is short ones that stand against the second.
        assert_eq!(cut(&stretches, &all[1..], 2), Some(vec![1]));
        // Every block has a series of the one before.
        let spanned = [(0, 5, 30), (5, 10, 30), (10, 15, 30), (15, 20, 30)];
        assert_eq!(cut(&spanned, &(0..21).collect::<Vec<u64>>(), 2), Some(vec![11]));
        assert_eq!(cut(&stretches, &[0], 4), Some(vec![]));
        assert_eq!(cut(&stretches, &[12, 13], 2), None);
    }

    proptest! {
        #[test]
        fn cuts_ascend_and_leave_no_part_empty(
            blocks in prop::collection::vec((0u64..3, 0u64..9, 1u64..500), 1..40),
            wanted in prop::collection::btree_set(0u64..200, 1..60),
            parts in 1usize..9,
        ) {
            let mut first = 0;
            let mut stretches = Vec::new();
            for (gap, more, rows) in blocks {
                stretches.push((first + gap, first + gap + more, rows));
                first += gap + more;
            }
            let wanted: Vec<u64> = wanted.into_iter().collect();
            let cuts = cut(&stretches, &wanted, parts).unwrap_or_default();
            prop_assert!(cuts.len() < parts);
            prop_assert!(cuts.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(cuts.iter().all(|cut| (1..wanted.len()).contains(cut)));
        }
    }
}
