//! Pieces whose times overlap, merged: later writes over earlier ones, field by field.
//!
//! Rows between which no other piece has one are copied together, and so are rows that were written again with the same
//! times: a few late rows among thousands, or all of them sent twice, cost little more than the copy.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use model::Column;

use super::piece::{Piece, empty_like};

/// Rows of a merge, in its order.
enum Part {
    /// Neighbours in one piece, no other has any of their times.
    Rows(usize, Range<usize>),
    /// So many neighbours in each of several pieces, which have the same times, and no other piece has any of them. Where
    /// they begin in each, oldest writes first, as places in a list.
    Same(Range<usize>, usize),
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
            Part::Same(firsts, rows) => {
                let (piece, row) = same[firsts.start];
                times.extend_from_slice(&pieces[piece].times[row..row + rows]);
            }
        }
    }
    let fields = pieces.first().map_or(0, |p| p.columns.len());
    let rows = times.len();
    let column = |field| merge_column(pieces, field, (&parts, &same), rows);
    let columns = (0..fields).map(column).collect();
    Piece { times, columns }
}

/// The rows of all pieces in order of time, in parts as long as can be; and where rows begin that share their times with others.
fn parts(pieces: &[Piece]) -> (Vec<Part>, Vec<(usize, usize)>) {
    let (mut parts, mut same) = (Vec::new(), Vec::new());
    let mut done = vec![0; pieces.len()];
    let head =
        |piece: usize, row: usize| pieces[piece].times.get(row).map(|t| Reverse((*t, piece)));
    // The first row of each piece that is left: the earliest first, of one time the oldest write.
    let mut heads: BinaryHeap<_> = (0..pieces.len()).filter_map(|piece| head(piece, 0)).collect();
    while let Some(Reverse((time, piece))) = heads.pop() {
        let first = same.len();
        same.push((piece, done[piece]));
        while let Some(Reverse((other_time, other))) = heads.peek().copied()
            && other_time == time
        {
            heads.pop();
            same.push((other, done[other]));
        }
        let next = heads.peek().map(|Reverse((next, _))| *next);
        let rows = same_times(pieces, &same[first..], next);
        for (piece, row) in &same[first..] {
            done[*piece] = row + rows;
            heads.extend(head(*piece, done[*piece]));
        }
        if let [(piece, row)] = same[first..] {
            parts.push(Part::Rows(piece, row..row + rows));
            same.truncate(first);
        } else {
            parts.push(Part::Same(first..same.len(), rows));
        }
    }
    (parts, same)
}

/// How many rows some pieces, or one, have the same times for, from where `firsts` says, where they have one at least, and
/// before `bound`.
fn same_times(pieces: &[Piece], firsts: &[(usize, usize)], bound: Option<i64>) -> usize {
    let times = |(piece, row): (usize, usize)| &pieces[piece].times[row..];
    let shared = firsts[1..]
        .iter()
        .fold(times(firsts[0]), |shared, other| &shared[..common_start(shared, times(*other))]);
    bound.map_or(shared.len(), |bound| leap(shared, bound))
}

/// How many times at the start of both are the same.
fn common_start(a: &[i64], b: &[i64]) -> usize {
    /// Compared at once.
    const STEP: usize = 32;
    let steps = a.chunks_exact(STEP).zip(b.chunks_exact(STEP)).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[steps * STEP..], &b[steps * STEP..]);
    steps * STEP + a.iter().zip(b).take_while(|(a, b)| a == b).count()
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
            Part::Same(firsts, rows) => {
                let newest_first = same[firsts.clone()].iter().rev();
                let columns =
                    newest_first.map(|(piece, row)| (&pieces[*piece].columns[field], *row));
                add_newest(&mut merged, &columns, *rows);
            }
        }
    }
    // A merge can fill every gap.
    if merged.validity.as_ref().is_some_and(|v| v.count_ones() == rows) {
        merged.validity = None;
    }
    merged
}

/// Adds so many rows, each of the first of some columns that has a value, which they have from some row on.
fn add_newest<'a>(
    merged: &mut Column,
    columns: &(impl Iterator<Item = (&'a Column, usize)> + Clone),
    rows: usize,
) {
    let valid_in = |(column, row): (&Column, usize)| match &column.validity {
        Some(validity) => validity.count_ones_in(row..row + rows),
        None => rows,
    };
    // What the newest has, if it has any, is mostly complete.
    match columns.clone().find_map(|some| Some((some, valid_in(some))).filter(|(_, n)| *n > 0)) {
        None => merged.extend_missing(rows),
        Some(((column, row), valid)) if valid == rows => {
            merged.extend_from(column, row..row + rows);
        }
        Some(_) => {
            for at in 0..rows {
                match columns.clone().find(|(column, row)| column.is_valid(row + at)) {
                    Some((column, row)) => merged.extend_from(column, row + at..row + at + 1),
                    None => merged.extend_missing(1),
                }
            }
        }
    }
}
