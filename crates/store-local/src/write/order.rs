//! The order in which the rows of a request go to the log and to memtables: by series, where a request
//! has several rows of each.
//!
//! Agents and collectors send rows as they come: all hosts at one time, then all hosts at the next.
//! Standing by series, values are near their neighbours, which makes the log a third as large, and a
//! memtable looks each series up and touches its memory once instead of row by row. Rows of one series
//! keep their order, because of two with one time the later one wins.

use model::SeriesId;

use super::links::Links;
use crate::rows::BatchRow;

/// Rows of a series, on average, from which on it pays to bring them together.
const TOGETHER_ROWS_MIN: usize = 4;

/// Fewer rows are sorted by comparing, which needs no table of counts.
const COUNTED_ROWS_MIN: usize = 512;

const DIGIT_BITS: u32 = 11;

/// Brings rows of one series together, in the order of series, each series' rows in the order they
/// have. Leaves everything as it is if most series have a few rows only.
pub(super) fn by_series(rows: &mut Vec<BatchRow>) -> Links {
    let links = Links::of(rows);
    if links.rows_per_series() < TOGETHER_ROWS_MIN || rows.is_sorted_by_key(|row| row.series) {
        return links;
    }
    if rows.len() < COUNTED_ROWS_MIN {
        rows.sort_by_key(|row| row.series);
    } else {
        sort_counting(rows);
    }
    Links::of(rows)
}

/// Sorts by series digit by digit from the lowest, each time by counting: stable, and one pass over the
/// rows for every 2048-fold of the span of ids.
fn sort_counting(rows: &mut Vec<BatchRow>) {
    let ids = || rows.iter().map(|row| row.series.0);
    let (Some(min), Some(max)) = (ids().min(), ids().max()) else { return };
    let bits = u64::BITS - (max - min).leading_zeros();
    let mut to = rows.clone();
    for shift in (0..bits).step_by(DIGIT_BITS as usize) {
        let digit = |series: SeriesId| ((series.0 - min) >> shift) as usize % (1 << DIGIT_BITS);
        let mut places = [0u32; 1 << DIGIT_BITS];
        rows.iter().for_each(|row| places[digit(row.series)] += 1);
        let mut next = 0;
        for place in &mut places {
            next += std::mem::replace(place, next);
        }
        for row in rows.iter() {
            let place = &mut places[digit(row.series)];
            to[*place as usize] = *row;
            *place += 1;
        }
        std::mem::swap(rows, &mut to);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(ids: &[u64]) -> Vec<BatchRow> {
        let row = |(at, id): (usize, &u64)| BatchRow {
            series: SeriesId(*id),
            time_ns: 0,
            layout: 0,
            values_start: at as u32,
        };
        ids.iter().enumerate().map(row).collect()
    }

    proptest! {
        #[test]
        fn rows_are_together_and_keep_their_order_within_a_series(
            few in prop::collection::vec(any::<u64>(), 1..40),
            picks in prop::collection::vec(any::<prop::sample::Index>(), 160..1500),
            near: bool,
        ) {
            let ids: Vec<u64> =
                picks.iter().map(|p| if near { *p.get(&few) % 5000 } else { *p.get(&few) }).collect();
            let sent = rows(&ids);
            let mut expected = sent.clone();
            expected.sort_by_key(|row| row.series);
            let mut ordered = sent;
            by_series(&mut ordered);
            prop_assert_eq!(ordered, expected);
        }
    }

    #[test]
    fn few_rows_of_each_series_stay_as_they_were_sent() {
        let ids: Vec<u64> = (0..3000).map(|at| (at * 7919) % 1000).collect();
        let sent = rows(&ids);
        let mut ordered = sent.clone();
        by_series(&mut ordered);
        assert_eq!(ordered, sent);
    }
}
