//! Where one block ends and the next begins: pure functions of the rows at hand.

use model::{SeriesId, Strings, Values};

use super::WriterOptions;
use crate::format::BLOCK_TEXT_LIMIT;
use crate::rows::{RunPosition, SegmentRows};
use crate::sparse::SparseColumn;

/// Values of a block at most: writing one takes several times their memory, however many fields a measurement has.
const BLOCK_VALUES_MAX: usize = 4 << 20;
/// The same, missing ones included: who reads all fields of a block that several series share has room for each.
const BLOCK_CELLS_MAX: usize = 8 << 20;
/// Rows of a block that get more than usual for having few values: so many as those written for keeping.
const SPARSE_ROWS_MAX: usize = 64 << 10;

/// How much goes into the blocks of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockLimits {
    fields: usize,
    /// Of rows that have all fields.
    full_rows: usize,
    /// Of rows like those at hand.
    rows: usize,
    text_bytes: usize,
}

impl BlockLimits {
    /// Those of a measurement with so many fields.
    pub(crate) fn new(options: &WriterOptions, fields: usize) -> Self {
        let fields = fields.max(1);
        let rows = (BLOCK_VALUES_MAX / fields).clamp(1, options.block_rows_max as usize);
        Self {
            fields,
            full_rows: rows,
            rows,
            text_bytes: (options.block_text_bytes_max as usize).min(BLOCK_TEXT_LIMIT),
        }
    }

    /// Lets blocks have as many values, about, if rows have few of the fields: what is said of a page would take more
    /// than the handful of values in it otherwise.
    pub(crate) fn adapt(&mut self, rows: usize, values: usize) {
        let sparsity = (rows * self.fields / values.max(1)).max(1);
        let cells_max = (BLOCK_CELLS_MAX / self.fields).min(SPARSE_ROWS_MAX);
        self.rows = self.full_rows.saturating_mul(sparsity).min(cells_max).max(self.full_rows);
    }
}

/// How many of `rows`, from row `at`, can be added to `pending` before a block is full.
pub(crate) fn rows_that_fit(
    pending: &SegmentRows,
    rows: &SegmentRows,
    at: usize,
    limits: &BlockLimits,
) -> usize {
    // More than that may be pending if the rows before had fewer of the fields.
    let room = limits.rows.saturating_sub(pending.len());
    let fit = room.min(rows.len() - at);
    let mut room = limits.text_bytes;
    // Bytes of text of each row; empty without texts.
    let mut text_of = Vec::new();
    for (mine, theirs) in pending.columns.iter().zip(&rows.columns) {
        if let (Values::String(mine), Values::String(texts)) = (&mine.values, &theirs.values) {
            room = room.saturating_sub(mine.text_bytes());
            text_of.resize(fit, 0);
            add_texts(theirs, texts, at, &mut text_of);
        }
    }
    if text_of.is_empty() {
        return fit;
    }
    let mut text = 0;
    let fits = |of_row: &&usize| {
        text += **of_row;
        text <= room
    };
    let fit = text_of.iter().take_while(fits).count();
    // A row longer than the limit of a block gets a block of its own.
    if pending.is_empty() { fit.max(1) } else { fit }
}

/// Adds the bytes of each row's text, from row `at` on.
fn add_texts(column: &SparseColumn, texts: &Strings, at: usize, text_of: &mut [usize]) {
    let rows = at..at + text_of.len();
    let places = &texts.places()[column.view().values_of(&rows)];
    match &column.present {
        None => text_of.iter_mut().zip(places).for_each(|(sum, place)| *sum += place.1 as usize),
        Some(present) => {
            let with_text = rows.filter(|row| present.get(*row));
            with_text.zip(places).for_each(|(row, place)| text_of[row - at] += place.1 as usize);
        }
    }
}

/// A series with as large a part of a full block gets blocks of its own: they are read without
/// those of others, and have edges.
pub(super) const LONG_SERIES_PART: usize = 8;

/// Whether a series with so many rows gets blocks of its own.
pub(crate) fn is_long(rows: u32, limits: &BlockLimits) -> bool {
    rows as usize >= limits.rows.div_ceil(LONG_SERIES_PART)
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
    use model::FieldType;

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
    fn many_fields_and_much_text_make_blocks_of_fewer_rows() {
        let options = WriterOptions { block_text_bytes_max: 100, ..WriterOptions::hot(1) };
        let text = |len: usize| {
            SparseColumn::new(Values::String(
                vec!["x".repeat(len).as_str(); 40].into_iter().collect(),
            ))
        };
        let rows = |columns: Vec<SparseColumn>| SegmentRows {
            runs: vec![(SeriesId(1), 40)],
            times: (0..40).collect(),
            columns,
        };
        let none =
            SegmentRows::empty(&[("a".into(), FieldType::String), ("b".into(), FieldType::String)]);
        let limits = BlockLimits::new(&options, 2);
        let fit = |a, b, at| rows_that_fit(&none, &rows(vec![text(a), text(b)]), at, &limits);
        assert_eq!(fit(1, 2, 0), 33, "of both fields together");
        assert_eq!(fit(0, 0, 10), 30);
        assert_eq!(fit(1, 1, 0), 40);
        assert_eq!(fit(90, 90, 3), 1, "more than a block has");
        assert_eq!(fit(40, 10, 0), 2);
        let half =
            SegmentRows { runs: Vec::new(), times: vec![0; 10], columns: vec![text(1), text(1)] };
        assert_eq!(rows_that_fit(&half, &rows(vec![text(3), text(1)]), 0, &limits), 5);

        let numbers = |fields: usize| BlockLimits::new(&WriterOptions::cold(1), fields).rows;
        assert_eq!((numbers(0), numbers(64), numbers(1024)), (65536, 65536, 4096));
        assert_eq!(numbers(usize::MAX), 1);
    }

    #[test]
    fn blocks_have_more_rows_where_these_have_few_of_the_fields() {
        let rows = |fields: usize, rows: usize, values: usize| {
            let mut limits = BlockLimits::new(&WriterOptions::hot(1), fields);
            limits.adapt(rows, values);
            limits.rows
        };
        assert_eq!(rows(10, 100, 1000), 8192);
        assert_eq!(rows(10, 100, 501), 8192, "more than half of them");
        assert_eq!(rows(10, 100, 300), 3 * 8192);
        assert_eq!(rows(10, 100, 0), 65536, "no more than a block can have");
        assert_eq!(rows(1000, 100, 100), 8388, "no more cells than are read at once");
        assert_eq!(rows(1 << 23, 1, 1 << 23), 1);
    }

    #[test]
    fn rows_without_a_text_have_none_to_count() {
        let options = WriterOptions { block_text_bytes_max: 5, ..WriterOptions::hot(1) };
        let mut texts =
            SparseColumn::new(Values::String(["abc", "d", "efg"].into_iter().collect()));
        texts.present = Some([false, true, false, true, false, true].into_iter().collect());
        let none = SegmentRows::empty(&[("a".into(), FieldType::String)]);
        let rows = SegmentRows {
            runs: vec![(SeriesId(1), 6)],
            times: (0..6).collect(),
            columns: vec![texts],
        };
        let limits = BlockLimits::new(&options, 1);
        assert_eq!(
            [0, 1, 2, 3, 5].map(|at| rows_that_fit(&none, &rows, at, &limits)),
            [5, 4, 4, 3, 1]
        );
    }

    #[test]
    fn a_run_begun_counts_with_what_is_left() {
        let runs = [(SeriesId(1), 5), (SeriesId(2), 100), (SeriesId(3), 7)];
        let left = run_rows_from(&runs, RunPosition { run: 1, used: 60 });
        assert_eq!(left.collect::<Vec<_>>(), [40, 7]);
    }
}
