//! Rows that filters found: which parts of a block are decoded for them, and what is taken of each part.
//!
//! What a filter finds often comes in stretches (a machine is busy for a while), so that most rows of a block
//! need not be decoded in the other fields.

use std::ops::Range;

use model::{Bitmap, Column};

use super::filter::both;
use super::piece::filter;

/// Rows that filters found among some rows of a block, and the fields they looked at for that.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) selection: Bitmap,
    columns: Vec<(usize, Column)>,
}

impl Found {
    /// What another filter leaves of it; of the first one everything.
    pub(super) fn and(mut self, selection: Bitmap, column: (usize, Column)) -> Self {
        self.selection = match self.columns.is_empty() {
            true => selection,
            false => both(&self.selection, &selection),
        };
        self.columns.push(column);
        self
    }

    /// The values of a field in all rows, if a filter looked at it.
    pub(super) fn column(&self, field: Option<usize>) -> Option<&Column> {
        self.columns.iter().find(|(at, _)| Some(*at) == field).map(|(_, column)| column)
    }
}

/// Found rows that are this close are decoded together: about so many are decoded in vain at the head of a
/// part.
const GAP_ROWS: usize = 256;
/// Bits of a word: all of its rows are closer than that.
const WORD_ROWS: usize = u64::BITS as usize;

/// Some rows, of which the first and the last were found.
#[derive(Debug, PartialEq)]
pub(super) struct Part {
    pub(super) rows: Range<usize>,
    /// Which of them were found, counted from the first.
    found: Bitmap,
}

/// The parts that have all rows whose bit is set, ascending.
pub(super) fn parts(selection: &Bitmap) -> Vec<Part> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    for (word, at) in selection.words().iter().zip((0..).step_by(WORD_ROWS)) {
        if *word == 0 {
            continue;
        }
        let first = at + word.trailing_zeros() as usize;
        let end = at + WORD_ROWS - word.leading_zeros() as usize;
        match parts.last_mut() {
            Some(part) if first - part.end < GAP_ROWS => part.end = end,
            _ => parts.push(first..end),
        }
    }
    let part = |rows: Range<usize>| Part { found: bits(selection, &rows), rows };
    parts.into_iter().map(part).collect()
}

/// Some of the bits.
pub(super) fn bits(selection: &Bitmap, rows: &Range<usize>) -> Bitmap {
    let mut some = Bitmap::new();
    some.extend_from(selection, rows.clone());
    some
}

/// The found entries of a column, of which each part was decoded.
pub(super) fn pick(parts: &[Part], columns: impl IntoIterator<Item = Column>) -> Column {
    let mut picked = parts.iter().zip(columns).map(|(part, column)| {
        if part.found.count_ones() == part.rows.len() {
            column
        } else {
            filter(&column, &part.found)
        }
    });
    let mut all = picked.next().expect("BUG: nothing was found");
    all.values.reserve(parts[1..].iter().map(|part| part.found.count_ones()).sum());
    picked.for_each(|column| all.extend_from(&column, 0..column.len()));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Values;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_have_what_was_found_and_little_else(
            stretches in prop::collection::vec((any::<bool>(), 1usize..600), 1..8),
            missing in any::<[prop::sample::Index; 3]>(),
        ) {
            let selection: Bitmap =
                stretches.iter().flat_map(|(found, len)| vec![*found; *len]).collect();
            let rows = selection.len();
            let mut column = Column::new(Values::Integer(Vec::new()));
            for row in 0..rows {
                match missing.iter().any(|at| at.index(rows) == row) {
                    true => column.extend_missing(1),
                    false => column.push(Some(&model::Scalar::Integer(row as i64))),
                }
            }
            let parts = parts(&selection);
            let found = |part: &Part| {
                part.found.ones().map(|at| part.rows.start + at).collect::<Vec<usize>>()
            };
            prop_assert!(parts.iter().flat_map(found).eq(selection.ones()));
            prop_assert!(parts.windows(2).all(|w| w[0].rows.end + GAP_ROWS <= w[1].rows.start));
            if parts.is_empty() {
                return Ok(());
            }
            let decoded = parts.iter().map(|part| {
                let mut out = Column::new(Values::Integer(Vec::new()));
                out.extend_from(&column, part.rows.clone());
                out
            });
            let picked = pick(&parts, decoded);
            let wanted: Vec<u32> = selection.ones().map(|row| row as u32).collect();
            prop_assert_eq!(picked.len(), wanted.len());
            for (at, row) in wanted.iter().enumerate() {
                prop_assert_eq!(picked.get(at), column.get(*row as usize));
            }
        }
    }
}
