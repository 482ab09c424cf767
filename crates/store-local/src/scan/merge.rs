//! Pieces whose times overlap, merged: later writes over earlier ones, field by field.

use model::{Column, Values};

use super::piece::{Piece, empty_like};
use super::sweep::{Part, Parts, sweep};

/// Merges pieces whose times overlap, oldest writes first: of each time and field the value of the
/// latest piece that has one.
pub(crate) fn merge(pieces: &[Piece]) -> Piece {
    let times: Vec<&[i64]> = pieces.iter().map(|piece| piece.times.as_slice()).collect();
    let parts = sweep(&times);
    let mut merged = Piece { times: Vec::with_capacity(parts.rows), columns: Vec::new() };
    copy_newest(&times, &parts, &mut merged.times);
    let fields = pieces.first().map_or(0, |p| p.columns.len());
    merged.columns.extend((0..fields).map(|field| merge_column(pieces, field, &parts)));
    merged
}

fn merge_column(pieces: &[Piece], field: usize, parts: &Parts) -> Column {
    let mut merged = empty_like(&pieces[0].columns[field]);
    merged.values.reserve(parts.rows);
    if pieces.iter().all(|piece| piece.columns[field].validity.is_none())
        && merge_complete(pieces, field, parts, &mut merged.values)
    {
        return merged;
    }
    for part in &parts.parts {
        match *part {
            Part::Rows { piece, row, rows } => {
                let rows = row as usize..(row + rows) as usize;
                merged.extend_from(&pieces[piece as usize].columns[field], rows);
            }
            Part::Same { first, pieces: sharing, rows } => {
                let sharing = &parts.same[first as usize..(first + sharing) as usize];
                let newest_first = sharing.iter().rev();
                let columns = newest_first
                    .map(|(piece, row)| (&pieces[*piece as usize].columns[field], *row as usize));
                add_newest(&mut merged, &columns, rows as usize);
            }
        }
    }
    // A merge can fill every gap.
    if merged.validity.as_ref().is_some_and(|v| v.count_ones() == parts.rows) {
        merged.validity = None;
    }
    merged
}

/// Merges numbers of which none is missing: those of the newest piece count. Whether they are numbers.
fn merge_complete(pieces: &[Piece], field: usize, parts: &Parts, merged: &mut Values) -> bool {
    let of_pieces = || pieces.iter().map(|piece| &piece.columns[field].values);
    macro_rules! copy {
        ($kind:ident, $merged:expr) => {{
            let values = of_pieces().map(|values| match values {
                Values::$kind(values) => values.as_slice(),
                _ => panic!("BUG: columns of two types"),
            });
            copy_newest(&values.collect::<Vec<_>>(), parts, $merged);
        }};
    }
    match merged {
        Values::Float(merged) => copy!(Float, merged),
        Values::Integer(merged) => copy!(Integer, merged),
        Values::Unsigned(merged) => copy!(Unsigned, merged),
        _ => return false,
    }
    true
}

/// Copies what pieces have, where several share a time that of the newest.
fn copy_newest<T: Copy>(pieces: &[&[T]], parts: &Parts, out: &mut Vec<T>) {
    for part in &parts.parts {
        let (piece, row, rows) = match *part {
            Part::Rows { piece, row, rows } => (piece, row, rows),
            Part::Same { first, pieces, rows } => {
                let (piece, row) = parts.same[(first + pieces - 1) as usize];
                (piece, row, rows)
            }
        };
        out.extend_from_slice(&pieces[piece as usize][row as usize..(row + rows) as usize]);
    }
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
