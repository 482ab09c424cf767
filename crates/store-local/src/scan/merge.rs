//! Pieces whose times overlap, merged: later writes over earlier ones, field by field.
//!
//! Rows between which no other piece has one are copied together: a few late rows among thousands cost little more
//! than the copy.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use model::Column;

use super::piece::{Piece, empty_like};

/// Rows of a merge, in its order.
enum Part {
    /// Neighbours in one piece, no other has any of their times.
    Rows(usize, Range<usize>),
    /// Rows of several pieces with one time, oldest writes first, as places in a list.
    Same(Range<usize>),
}

/// Merges pieces whose times overlap, oldest writes first: of each time and field the value of the
/// latest piece that has one.
pub(crate) fn merge(pieces: &[Piece]) -> Piece {
    let (parts, same) = parts(pieces);
    let mut times = Vec::with_capacity(pieces.iter().map(|piece| piece.times.len()).sum());
    for part in &parts {
        match part {
            Part::Rows(piece, rows) => {
                times.extend_from_slice(&pieces[*piece].times[rows.clone()]);
            }
            Part::Same(rows) => {
                let (piece, row) = same[rows.start];
                times.push(pieces[piece].times[row]);
            }
        }
    }
    let fields = pieces.first().map_or(0, |p| p.columns.len());
    let rows = times.len();
    let column = |field| merge_column(pieces, field, (&parts, &same), rows);
    let columns = (0..fields).map(column).collect();
    Piece { times, columns }
}

/// The rows of all pieces in order of time, in parts as long as can be; and the rows that share a time with others.
fn parts(pieces: &[Piece]) -> (Vec<Part>, Vec<(usize, usize)>) {
    let (mut parts, mut same) = (Vec::new(), Vec::new());
    let mut done = vec![0; pieces.len()];
    let head =
        |piece: usize, row: usize| pieces[piece].times.get(row).map(|t| Reverse((*t, piece)));
    // The first row of each piece that is left: the earliest first, of one time the oldest write.
    let mut heads: BinaryHeap<_> = (0..pieces.len()).filter_map(|piece| head(piece, 0)).collect();
    while let Some(Reverse((time, piece))) = heads.pop() {
        let from = done[piece];
        let next = heads.peek().map(|Reverse((next, _))| *next);
        let to = match next {
            Some(next) if next == time => from + 1,
            Some(next) => from + leap(&pieces[piece].times[from..], next),
            None => pieces[piece].times.len(),
        };
        done[piece] = to;
        heads.extend(head(piece, to));
        if next != Some(time) {
            parts.push(Part::Rows(piece, from..to));
            continue;
        }
        let first = same.len();
        same.push((piece, from));
        while let Some(Reverse((other_time, other))) = heads.peek().copied()
            && other_time == time
        {
            heads.pop();
            same.push((other, done[other]));
            done[other] += 1;
            heads.extend(head(other, done[other]));
        }
        parts.push(Part::Same(first..same.len()));
    }
    (parts, same)
}

/// How many of `times`, which ascend and the first of which is earlier, are earlier than `bound`: looked for near the
/// beginning first.
fn leap(times: &[i64], bound: i64) -> usize {
    let mut reach = 1;
    while reach < times.len() && times[reach] < bound {
        reach *= 2;
    }
    let known = reach / 2;
    known + times[known..reach.min(times.len())].partition_point(|time| *time < bound)
}

fn merge_column(
    pieces: &[Piece],
    field: usize,
    (parts, same): (&[Part], &[(usize, usize)]),
    rows: usize,
) -> Column {
    let mut merged = empty_like(&pieces[0].columns[field]);
    merged.values.reserve(rows);
    for part in parts {
        match part {
            Part::Rows(piece, rows) => {
                merged.extend_from(&pieces[*piece].columns[field], rows.clone());
            }
            Part::Same(rows) => {
                let has = |key: &&(usize, usize)| pieces[key.0].columns[field].is_valid(key.1);
                match same[rows.clone()].iter().rev().find(has) {
                    Some((piece, row)) => {
                        merged.extend_from(&pieces[*piece].columns[field], *row..*row + 1);
                    }
                    None => merged.extend_missing(1),
                }
            }
        }
    }
    // A merge can fill every gap.
    if merged.validity.as_ref().is_some_and(|v| v.count_ones() == rows) {
        merged.validity = None;
    }
    merged
}
