//! Where one block ends and the next begins: pure functions of the rows at hand.

use model::{SeriesId, Values};

use super::WriterOptions;
use crate::format::BLOCK_TEXT_LIMIT;
use crate::rows::{RunPosition, SegmentRows};

/// How many of `rows`, from row `at`, can be added to `pending` before a block is full.
pub(crate) fn rows_that_fit(
    pending: &SegmentRows,
    rows: &SegmentRows,
    at: usize,
    options: &WriterOptions,
) -> usize {
    let room = options.block_rows_max as usize - pending.len();
    let mut fit = room.min(rows.len() - at);
    let text_max = (options.block_text_bytes_max as usize).min(BLOCK_TEXT_LIMIT);
    for (mine, theirs) in pending.columns.iter().zip(&rows.columns) {
        let (Values::String(mine), Values::String(theirs)) = (&mine.values, &theirs.values) else {
            continue;
        };
        let room = text_max.saturating_sub(mine.bytes().len());
        let offsets = &theirs.offsets()[at..=at + fit];
        fit = offsets[1..].partition_point(|end| (end - offsets[0]) as usize <= room);
    }
    // A value longer than the limit of a block gets a block of its own.
    if pending.is_empty() { fit.max(1) } else { fit }
}

/// A series with as large a part of a full block gets blocks of its own: they are read without
/// those of others, and have edges.
const LONG_SERIES_PART: usize = 8;

/// Whether a series with so many rows gets blocks of its own.
pub(crate) fn is_long(rows: u32, options: &WriterOptions) -> bool {
    rows as usize >= (options.block_rows_max as usize).div_ceil(LONG_SERIES_PART)
}

/// How many rows the next block gets when `limit` rows could be in it. `runs` are the rows of each
/// series, the first `limit` rows at least, and whether it is a long one. Long series are kept
/// apart; otherwise the block gets all rows, or a few less if a series then need not be cut in two.
pub(crate) fn block_rows(runs: impl Iterator<Item = (u32, bool)>, limit: usize) -> usize {
    let enough = limit - limit / 8;
    let mut whole_series = None;
    let mut end = 0;
    for (rows, long) in runs {
        if long {
            return if end == 0 { limit.min(rows as usize) } else { end.min(limit) };
        }
        end += rows as usize;
        if end > limit {
            break;
        }
        if end >= enough {
            whole_series = Some(end);
        }
    }
    whole_series.unwrap_or(limit)
}

/// The rows of each run from `at` on, beginning with what is left of the first.
pub(crate) fn run_rows_from(
    runs: &[(SeriesId, u32)],
    at: RunPosition,
) -> impl Iterator<Item = u32> + '_ {
    let skipped = std::iter::once(at.used).chain(std::iter::repeat(0));
    runs[at.run..].iter().zip(skipped).map(|((_, rows), used)| rows - used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_ends_with_a_series_if_that_costs_little() {
        let rows = |runs: &[u32]| block_rows(runs.iter().map(|rows| (*rows, false)), 80);
        assert_eq!(rows(&[100]), 80);
        assert_eq!(rows(&[75, 100]), 75);
        assert_eq!(rows(&[72, 5, 100]), 77);
        assert_eq!(rows(&[69, 100]), 80, "too much would be left out");
        assert_eq!(rows(&[80, 100]), 80);
        assert_eq!(block_rows([(1, false), (1, false)].into_iter(), 1), 1);
    }

    #[test]
    fn a_long_series_gets_blocks_of_its_own() {
        let rows = |runs: &[(u32, bool)]| block_rows(runs.iter().copied(), 80);
        assert_eq!(rows(&[(100, true)]), 80);
        assert_eq!(rows(&[(50, true), (50, true)]), 50);
        assert_eq!(rows(&[(3, true), (10, false)]), 3, "what is left of a long one");
        assert_eq!(rows(&[(5, false), (6, false), (50, true)]), 11);
        assert_eq!(rows(&[(90, false), (50, true)]), 80);
    }

    #[test]
    fn a_run_begun_counts_with_what_is_left() {
        let runs = [(SeriesId(1), 5), (SeriesId(2), 100), (SeriesId(3), 7)];
        let left = run_rows_from(&runs, RunPosition { run: 1, used: 60 });
        assert_eq!(left.collect::<Vec<_>>(), [40, 7]);
    }
}
