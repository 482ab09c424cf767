//! Whether series of middling length share a block or get blocks of their own: what takes fewer bytes.
//!
//! Hosts of one kind have values alike, and pages that they share say once how these are distributed. Where series of a
//! measurement are different things (a tag `metric` and one field `value`), a shared page has the digits of the finest and a
//! table that fits none. Which it is lies in how a measurement is laid out, and seldom changes from block to block: both are
//! tried with one block, and what was found holds for those after it.

use std::ops::Range;

use codec::Effort;
use model::{FieldType, SeriesId};

use super::block::{RowsView, encode_page};
use crate::directory::Fields;

/// A series with less rows shares its blocks: readers of all series have about a microsecond of work with each block.
const MIDDLING_ROWS: u32 = 1 << 10;
/// What is found with one block holds for so many.
const BLOCKS_A_TRIAL: u32 = 8;
/// What a directory says of a block, and of a page: more than it takes mostly.
const BLOCK_BYTES: usize = 40;
const PAGE_BYTES: usize = 30;
/// Blocks are cut if that saves such a part of them.
const SAVED_PART: usize = 16;

/// What was found with earlier blocks of a measurement.
#[derive(Debug, Default)]
pub(super) struct Apart {
    is_smaller: bool,
    /// Blocks until both are tried again.
    blocks_left: u32,
}

/// A part of a block's runs, and their rows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) runs: Range<usize>,
    pub(super) rows: Range<usize>,
}

impl Apart {
    /// The blocks that the rows of one become: itself, or one for each series of middling length and
    /// others for what is between.
    pub(super) fn pieces(
        &mut self,
        view: &RowsView<'_>,
        fields: &Fields,
        effort: Effort,
    ) -> Vec<Piece> {
        let whole = || Piece { runs: 0..view.runs.len(), rows: view.range.clone() };
        // Texts are better compressed the more there are, and slow to try.
        let has_texts = || fields.iter().any(|(_, kind)| *kind == FieldType::String);
        let middling = view.runs.iter().filter(|run| run.1 >= MIDDLING_ROWS).count();
        if view.runs.len() < 2 || middling == 0 || has_texts() {
            return vec![whole()];
        }
        let pieces = pieces_of(view.runs, view.range.start);
        if self.blocks_left == 0 {
            self.blocks_left = BLOCKS_A_TRIAL;
            let mut scratch = Vec::new();
            let together = bytes_of(view, &whole(), effort, &mut scratch);
            let enough = together - together / SAVED_PART;
            let apart = pieces.iter().map(|piece| bytes_of(view, piece, effort, &mut scratch));
            self.is_smaller = apart.sum::<usize>() <= enough;
        }
        self.blocks_left -= 1;
        if self.is_smaller { pieces } else { vec![whole()] }
    }
}

/// Series of middling length by themselves, those between them together.
fn pieces_of(runs: &[(SeriesId, u32)], first_row: usize) -> Vec<Piece> {
    let (mut pieces, mut row, mut is_open) = (Vec::<Piece>::new(), first_row, false);
    for (at, (_, rows)) in runs.iter().enumerate() {
        let end = row + *rows as usize;
        let is_middling = *rows >= MIDDLING_ROWS;
        match pieces.last_mut() {
            Some(open) if is_open && !is_middling => {
                open.runs.end = at + 1;
                open.rows.end = end;
            }
            _ => pieces.push(Piece { runs: at..at + 1, rows: row..end }),
        }
        (row, is_open) = (end, !is_middling);
    }
    pieces
}

/// Bytes of a block with these rows, about.
fn bytes_of(view: &RowsView<'_>, piece: &Piece, effort: Effort, scratch: &mut Vec<u8>) -> usize {
    scratch.clear();
    codec::encode_i64(&view.rows.times[piece.rows.clone()], effort, scratch);
    let mut pages = 0;
    for column in &view.rows.columns {
        let column = column.view();
        let first = column.values_before(piece.rows.start);
        pages += usize::from(encode_page(column, piece.rows.clone(), first, effort, scratch) > 0);
    }
    scratch.len() + BLOCK_BYTES + pages * PAGE_BYTES
}

#[cfg(test)]
mod tests {
    use model::Values;

    use super::*;
    use crate::{SegmentRows, SparseColumn};

    fn runs(rows: &[u32]) -> Vec<(SeriesId, u32)> {
        rows.iter().enumerate().map(|(at, rows)| (SeriesId(at as u64), *rows)).collect()
    }

    #[test]
    fn short_series_between_others_stay_together() {
        let cut = |rows: &[u32]| {
            let pieces = pieces_of(&runs(rows), 100);
            pieces.into_iter().map(|p| (p.runs, p.rows)).collect::<Vec<_>>()
        };
        assert_eq!(cut(&[5, 6]), [(0..2, 100..111)]);
        assert_eq!(
            cut(&[1, 2000, 3000, 4, 5, 1024, 6]),
            [(0..1, 100..101), (1..2, 101..2101), (2..3, 2101..5101), (3..5, 5101..5110)]
                .into_iter()
                .chain([(5..6, 5110..6134), (6..7, 6134..6140)])
                .collect::<Vec<_>>()
        );
    }

    /// How many pieces each of so many blocks is cut into, of series with values of such sizes.
    fn pieces(scales: &[f64], blocks: usize, apart: &mut Apart) -> Vec<usize> {
        let runs = runs(&vec![2000; scales.len()]);
        let mut state = 1u64;
        let mut values = Vec::new();
        for scale in scales {
            values.extend((0..2000).map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (f64::from((state >> 40) as u32 % 100) * scale * 1000.0).round() / 1000.0
            }));
        }
        let rows = SegmentRows {
            runs: runs.clone(),
            times: (0..values.len() as i64).map(|at| at % 2000 * 60).collect(),
            columns: vec![SparseColumn::new(Values::Float(values))],
        };
        let view = RowsView { rows: &rows, runs: &runs, range: 0..rows.times.len() };
        let fields: Fields = vec![("value".into(), FieldType::Float)].into();
        (0..blocks).map(|_| apart.pieces(&view, &fields, Effort::Cold).len()).collect()
    }

    #[test]
    fn series_of_different_things_are_kept_apart() {
        let (alike, different) = ([1.0; 6], [0.001, 1.0, 17.0, 1000.0, 0.1, 123_456.0]);
        assert_eq!(pieces(&alike, 2, &mut Apart::default()), [1, 1]);
        let mut apart = Apart::default();
        assert_eq!(pieces(&different, 3, &mut apart), [6, 6, 6]);
        // What was found holds for some blocks, and not for ever.
        assert_eq!(pieces(&alike, 6, &mut apart), [6, 6, 6, 6, 6, 1]);
    }
}
