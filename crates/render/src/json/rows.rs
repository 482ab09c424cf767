//! The hot loop: rows of a batch as JSON arrays.

use std::ops::Range;

use model::{Bitmap, Column, ColumnBatch, Strings, Values};

use crate::number::{push_i64, push_json_float, push_u64};
use crate::options::Epoch;
use crate::text::push_string;
use crate::time::TimeWriter;

/// Between rows, after a row's bracket, between cells and before a row's closing bracket.
const ROW_LINE: &[u8] = b"\n                        ";
const CELL_LINE: &[u8] = b"\n                            ";

/// A column as it is written.
enum Cells<'a> {
    Time(&'a [i64]),
    Epoch(&'a [i64], Epoch),
    Integer(&'a [i64]),
    Unsigned(&'a [u64]),
    Float(&'a [f64]),
    Boolean(&'a Bitmap),
    Text(&'a Strings),
    Dictionary(&'a [u32], &'a Strings),
    /// Lists, an element a line.
    List(&'a Strings),
    /// A dictionary that was escaped beforehand: every entry in quotes, with its boundaries.
    Escaped(&'a [u32], Vec<u8>, Vec<usize>),
    /// The same where all entries are short.
    Short(&'a [u32], Vec<ShortText>),
}

/// Some bytes and, last, how many: all are copied at once and those too many taken back, which is
/// faster than a copy of unknown length.
type ShortText = [u8; 32];

/// Writes rows with the commas between them.
pub(super) fn push_rows<const PRETTY: bool>(
    out: &mut Vec<u8>,
    batch: &ColumnBatch,
    rows: Range<usize>,
    mut is_first: bool,
    list: Option<usize>,
    (epoch, time): (Option<Epoch>, &mut TimeWriter),
) {
    let columns = batch.columns.iter().enumerate();
    let cells: Vec<(Cells<'_>, Option<&Bitmap>)> = columns
        .map(|(at, column)| {
            let epoch = epoch.filter(|_| at == 0);
            let cells = match &column.values {
                Values::String(texts) if list == Some(at) => Cells::List(texts),
                _ => Cells::of(column, epoch, rows.len()),
            };
            (cells, column.validity.as_ref())
        })
        .collect();
    out.reserve(rows.len() * (4 * cells.len() + 24));
    for row in rows {
        if !is_first {
            out.push(b',');
        }
        is_first = false;
        if PRETTY {
            out.extend_from_slice(ROW_LINE);
        }
        out.push(b'[');
        for (at, (cell, validity)) in cells.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            if PRETTY {
                out.extend_from_slice(CELL_LINE);
            }
            if validity.is_some_and(|valid| !valid.get(row)) {
                out.extend_from_slice(b"null");
            } else if let Cells::List(texts) = cell {
                push_list::<PRETTY>(out, texts.get(row));
            } else {
                cell.push(out, row, time);
            }
        }
        if PRETTY {
            out.extend_from_slice(ROW_LINE);
        }
        out.push(b']');
    }
}

fn push_list<const PRETTY: bool>(out: &mut Vec<u8>, lines: &str) {
    out.push(b'[');
    for (at, element) in lines.split('\n').enumerate() {
        if at > 0 {
            out.push(b',');
        }
        if PRETTY {
            out.extend_from_slice(CELL_LINE);
            out.extend_from_slice(b"    ");
        }
        push_string(out, element.as_bytes());
    }
    if PRETTY {
        out.extend_from_slice(CELL_LINE);
    }
    out.push(b']');
}

impl<'a> Cells<'a> {
    fn of(column: &'a Column, epoch: Option<Epoch>, rows: usize) -> Self {
        match (&column.values, epoch) {
            (Values::Time(times), None) => Self::Time(times),
            (Values::Time(times), Some(epoch)) => Self::Epoch(times, epoch),
            (Values::Integer(values), _) => Self::Integer(values),
            (Values::Unsigned(values), _) => Self::Unsigned(values),
            (Values::Float(values), _) => Self::Float(values),
            (Values::Boolean(values), _) => Self::Boolean(values),
            (Values::String(texts), _) => Self::Text(texts),
            (Values::Dictionary(codes, texts), _) if texts.len() <= rows => {
                let (mut bytes, mut ends) = (Vec::new(), vec![0]);
                for at in 0..texts.len() {
                    push_string(&mut bytes, texts.get_bytes(at));
                    ends.push(bytes.len());
                }
                match short_texts(&bytes, &ends) {
                    Some(texts) => Self::Short(codes, texts),
                    None => Self::Escaped(codes, bytes, ends),
                }
            }
            (Values::Dictionary(codes, texts), _) => Self::Dictionary(codes, texts),
        }
    }

    #[inline]
    fn push(&self, out: &mut Vec<u8>, row: usize, time: &mut TimeWriter) {
        match self {
            Self::Integer(values) => push_i64(out, values[row]),
            Self::Float(values) => push_float(out, values[row]),
            Self::Time(times) => time.push(out, times[row]),
            Self::Epoch(times, epoch) => push_i64(out, epoch.convert(times[row])),
            Self::Unsigned(values) => push_u64(out, values[row]),
            Self::Boolean(values) if values.get(row) => out.extend_from_slice(b"true"),
            Self::Boolean(_) => out.extend_from_slice(b"false"),
            Self::Text(texts) | Self::List(texts) => push_string(out, texts.get_bytes(row)),
            Self::Dictionary(codes, texts) => {
                push_string(out, texts.get_bytes(codes[row] as usize));
            }
            Self::Escaped(codes, bytes, ends) => {
                let code = codes[row] as usize;
                out.extend_from_slice(&bytes[ends[code]..ends[code + 1]]);
            }
            Self::Short(codes, texts) => {
                let text = &texts[codes[row] as usize];
                let end = out.len() + usize::from(text[31]);
                out.extend_from_slice(text);
                out.truncate(end);
            }
        }
    }
}

fn short_texts(bytes: &[u8], ends: &[usize]) -> Option<Vec<ShortText>> {
    let short = |bounds: &[usize]| {
        let text = &bytes[bounds[0]..bounds[1]];
        let mut padded = [0; 32];
        padded[..31].get_mut(..text.len())?.copy_from_slice(text);
        padded[31] = text.len() as u8;
        Some(padded)
    };
    ends.windows(2).map(short).collect()
}

/// JSON has no notation for what is not finite.
fn push_float(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        push_json_float(out, value);
    } else {
        out.extend_from_slice(b"null");
    }
}
