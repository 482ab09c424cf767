//! The hot loop: rows of a batch as JSON arrays.

use std::ops::Range;

use model::{Bitmap, Column, ColumnBatch, Strings, Values};

use super::joined::{Joined, ShortColumns};
use super::texts::Texts;
use crate::number::{push_comma_i64, push_i64, push_json_float, push_u64};
use crate::options::Epoch;
use crate::text::push_string;
use crate::time::TimeWriter;

/// Before a row's closing bracket.
const ROW_LINE: &[u8] = b"\n                        ";
/// Up to the opening bracket of the first row, and of the others.
const FIRST_ROW_LINE: &[u8] = b"\n                        [";
const NEXT_ROW_LINE: &[u8] = b",\n                        [";
/// Before a cell.
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
    /// A dictionary that was escaped beforehand.
    Escaped(&'a [u32], &'a Texts),
}

/// Neighbouring columns that one loop writes: what they are is looked at once a row, not once a cell.
enum Stretch<'a> {
    /// Times in front.
    Time(&'a [i64]),
    /// The same as numbers.
    Epoch(&'a [i64], Epoch),
    /// Integers without gaps behind another column.
    Integers(Vec<&'a [i64]>),
    /// Integers with gaps behind another column.
    Gaps(Vec<(&'a [i64], &'a Bitmap)>),
    /// Dictionaries of short texts without gaps behind another column.
    Short(ShortColumns<'a>),
    /// The same, so many that they are written together.
    Joined(ShortColumns<'a>),
    /// A column by itself, with its number.
    Column(usize, Cells<'a>, Option<&'a Bitmap>),
}

/// Fewer rows are written column by column: stretches would take longer to make than they save.
const STRETCH_ROWS_MIN: usize = 4;

/// So many rows say how long the others are; if they are not, no more room than this was made in vain.
const MEASURED_ROWS: usize = 32;
const ROOM_BYTES_MAX: usize = 1 << 20;

/// Writes rows with the commas between them.
pub(super) fn push_rows<const PRETTY: bool>(
    out: &mut Vec<u8>,
    batch: &ColumnBatch,
    texts: &[Option<Texts>],
    rows: Range<usize>,
    mut is_first: bool,
    list: Option<usize>,
    (epoch, time, joined): (Option<Epoch>, &mut TimeWriter, &mut Joined),
) {
    let column = |at: usize| {
        let (column, epoch) = (&batch.columns[at], epoch.filter(|_| at == 0));
        let cells = match &column.values {
            Values::String(texts) if list == Some(at) => Cells::List(texts),
            _ => Cells::of(column, epoch, texts[at].as_ref()),
        };
        (at, cells, column.validity.as_ref())
    };
    let columns = 0..batch.columns.len();
    let mut stretches = Vec::new();
    let is_long = rows.len() >= STRETCH_ROWS_MIN;
    if is_long {
        columns.clone().for_each(|at| push_column::<PRETTY>(&mut stretches, column(at)));
        join_texts(&mut stretches, joined);
    }
    let (start, measured) = (out.len(), rows.start + MEASURED_ROWS);
    for row in rows.clone() {
        if row == measured {
            // The others are about as long: room for them is made at once.
            let bytes = (out.len() - start) / MEASURED_ROWS * (rows.end - row);
            out.reserve((bytes + bytes / 8).min(ROOM_BYTES_MAX));
        }
        match (PRETTY, is_first) {
            (true, true) => out.extend_from_slice(FIRST_ROW_LINE),
            (true, false) => out.extend_from_slice(NEXT_ROW_LINE),
            (false, true) => out.push(b'['),
            (false, false) => out.extend_from_slice(b",["),
        }
        is_first = false;
        if is_long {
            stretches.iter().for_each(|stretch| stretch.push::<PRETTY>(out, row, time, joined));
        } else {
            for at in columns.clone() {
                if !may_join::<PRETTY>(at) || !push_plain(out, row, &batch.columns[at], &texts[at])
                {
                    push_cell::<PRETTY>(out, row, &column(at), time);
                }
            }
        }
        if PRETTY {
            out.extend_from_slice(ROW_LINE);
        }
        out.push(b']');
    }
}

/// Whether a column is written with the comma before it.
fn may_join<const PRETTY: bool>(at: usize) -> bool {
    at > 0 && !PRETTY
}

/// Writes one cell with the comma before it.
fn push_cell<const PRETTY: bool>(
    out: &mut Vec<u8>,
    row: usize,
    (at, cells, validity): &(usize, Cells<'_>, Option<&Bitmap>),
    time: &mut TimeWriter,
) {
    if *at > 0 {
        out.push(b',');
    }
    cells.push_or_null::<PRETTY>(out, row, *validity, time);
}

/// Writes one cell with the comma before it, if it is of the kinds that most are.
#[inline]
fn push_plain(out: &mut Vec<u8>, row: usize, column: &Column, texts: &Option<Texts>) -> bool {
    match (&column.values, &column.validity, texts) {
        (Values::Integer(values), None, _) => push_comma_i64(out, values[row]),
        (Values::Dictionary(codes, _), None, Some(Texts::Short(texts))) => {
            texts[codes[row] as usize].push(out);
        }
        _ => return false,
    }
    true
}

impl Stretch<'_> {
    #[inline]
    fn push<const PRETTY: bool>(
        &self,
        out: &mut Vec<u8>,
        row: usize,
        time: &mut TimeWriter,
        joined: &mut Joined,
    ) {
        match self {
            Stretch::Time(times) => time.push(out, times[row]),
            Stretch::Epoch(times, epoch) => time.push_number(out, epoch.convert(times[row])),
            Stretch::Integers(columns) => {
                columns.iter().for_each(|values| push_comma_i64(out, values[row]));
            }
            Stretch::Gaps(columns) => {
                for (values, valid) in columns {
                    if valid.get(row) {
                        push_comma_i64(out, values[row]);
                    } else {
                        out.extend_from_slice(b",null");
                    }
                }
            }
            Stretch::Short(columns) => {
                for (codes, texts) in columns {
                    texts[codes[row] as usize].push(out);
                }
            }
            Stretch::Joined(columns) => joined.push(out, columns, row),
            Stretch::Column(at, cells, validity) => {
                if *at > 0 {
                    out.push(b',');
                }
                cells.push_or_null::<PRETTY>(out, row, *validity, time);
            }
        }
    }
}

/// Adds a column: to the stretch before it, if both are alike.
fn push_column<'a, const PRETTY: bool>(
    stretches: &mut Vec<Stretch<'a>>,
    (at, cells, validity): (usize, Cells<'a>, Option<&'a Bitmap>),
) {
    let may_join = may_join::<PRETTY>(at);
    match (cells, validity, stretches.last_mut()) {
        (Cells::Epoch(times, epoch), None, None) if !PRETTY => {
            stretches.push(Stretch::Epoch(times, epoch));
        }
        (Cells::Time(times), None, None) if !PRETTY => stretches.push(Stretch::Time(times)),
        (Cells::Integer(values), None, last) if may_join => match last {
            Some(Stretch::Integers(columns)) => columns.push(values),
            _ => stretches.push(Stretch::Integers(vec![values])),
        },
        (Cells::Integer(values), Some(valid), last) if may_join => match last {
            Some(Stretch::Gaps(columns)) => columns.push((values, valid)),
            _ => stretches.push(Stretch::Gaps(vec![(values, valid)])),
        },
        (Cells::Escaped(codes, Texts::Short(texts)), None, last) if may_join => match last {
            Some(Stretch::Short(columns)) => columns.push((codes, texts)),
            _ => stretches.push(Stretch::Short(vec![(codes, texts)])),
        },
        (cells, validity, _) => stretches.push(Stretch::Column(at, cells, validity)),
    }
}

/// Has the first columns of texts that are enough written together.
fn join_texts(stretches: &mut [Stretch<'_>], joined: &mut Joined) {
    for stretch in stretches {
        if let Stretch::Short(columns) = stretch
            && joined.prepare(columns)
        {
            *stretch = Stretch::Joined(std::mem::take(columns));
            return;
        }
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
    fn of(column: &'a Column, epoch: Option<Epoch>, texts: Option<&'a Texts>) -> Self {
        match (&column.values, epoch) {
            (Values::Time(times), None) => Self::Time(times),
            (Values::Time(times), Some(epoch)) => Self::Epoch(times, epoch),
            (Values::Integer(values), _) => Self::Integer(values),
            (Values::Unsigned(values), _) => Self::Unsigned(values),
            (Values::Float(values), _) => Self::Float(values),
            (Values::Boolean(values), _) => Self::Boolean(values),
            (Values::String(texts), _) => Self::Text(texts),
            (Values::Dictionary(codes, dictionary), _) => match texts {
                Some(texts) => Self::Escaped(codes, texts),
                None => Self::Dictionary(codes, dictionary),
            },
        }
    }

    #[inline]
    fn push_or_null<const PRETTY: bool>(
        &self,
        out: &mut Vec<u8>,
        row: usize,
        validity: Option<&Bitmap>,
        time: &mut TimeWriter,
    ) {
        if PRETTY {
            out.extend_from_slice(CELL_LINE);
        }
        if validity.is_some_and(|valid| !valid.get(row)) {
            out.extend_from_slice(b"null");
        } else if let Self::List(texts) = self {
            push_list::<PRETTY>(out, texts.get(row));
        } else {
            self.push(out, row, time);
        }
    }

    #[inline]
    fn push(&self, out: &mut Vec<u8>, row: usize, time: &mut TimeWriter) {
        match self {
            Self::Integer(values) => push_i64(out, values[row]),
            Self::Float(values) => push_float(out, values[row]),
            Self::Time(times) => time.push(out, times[row]),
            Self::Epoch(times, epoch) => time.push_number(out, epoch.convert(times[row])),
            Self::Unsigned(values) => push_u64(out, values[row]),
            Self::Boolean(values) if values.get(row) => out.extend_from_slice(b"true"),
            Self::Boolean(_) => out.extend_from_slice(b"false"),
            Self::Text(texts) | Self::List(texts) => push_string(out, texts.get_bytes(row)),
            Self::Dictionary(codes, texts) => {
                push_string(out, texts.get_bytes(codes[row] as usize));
            }
            Self::Escaped(codes, texts) => texts.push(out, codes[row] as usize),
        }
    }
}

/// JSON has no notation for what is not finite.
fn push_float(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        push_json_float(out, value);
    } else {
        out.extend_from_slice(b"null");
    }
}
