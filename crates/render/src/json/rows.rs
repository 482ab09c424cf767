//! The hot loop: rows of a batch as JSON arrays.

use std::ops::Range;

use model::{Bitmap, Column, ColumnBatch, Strings, Values};

use super::CELL_BYTES;
use super::joined::{Joined, ShortColumns};
use super::texts::Texts;
use crate::number::{push_comma_i64, push_i64, push_json_float, push_u64};
use crate::options::Epoch;
use crate::output::{Output, Room};
use crate::text::push_string;
use crate::time::TimeWriter;

/// A row's closing bracket.
const ROW_END_LINE: &[u8] = b"\n                        ]";
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
    /// Floats without gaps behind another column.
    Floats(Vec<&'a [f64]>),
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
    is_first: bool,
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
    let mut room = Room::new(out, rows.len().saturating_mul((columns.len() + 1) * CELL_BYTES));
    if PRETTY || rows.len() < STRETCH_ROWS_MIN {
        for row in rows.clone() {
            start_row::<PRETTY>(&mut room, is_first && row == rows.start);
            for at in columns.clone() {
                let is_plain =
                    at > 0 && !PRETTY && push_plain(&mut room, row, &batch.columns[at], &texts[at]);
                if !is_plain {
                    push_cell::<PRETTY>(&mut room, row, &column(at), time);
                }
            }
            room.put(if PRETTY { ROW_END_LINE } else { b"]" });
        }
    } else {
        let mut stretches = Vec::new();
        columns.for_each(|at| push_column(&mut stretches, column(at)));
        join_texts(&mut stretches, joined);
        push_stretches(&mut room, &stretches, rows, is_first, (time, joined));
    }
    room.finish();
}

fn start_row<const PRETTY: bool>(room: &mut Room<'_>, is_first: bool) {
    room.put(match (PRETTY, is_first) {
        (true, true) => FIRST_ROW_LINE,
        (true, false) => NEXT_ROW_LINE,
        (false, true) => b"[",
        (false, false) => b",[",
    });
}

/// Writes rows stretch by stretch.
#[inline(never)]
fn push_stretches(
    room: &mut Room<'_>,
    stretches: &[Stretch<'_>],
    rows: Range<usize>,
    is_first: bool,
    (time, joined): (&mut TimeWriter, &mut Joined),
) {
    let (start, measured) = (room.len(), rows.start + MEASURED_ROWS);
    room.put(if is_first { b"[" } else { b",[" });
    for row in rows.clone() {
        if row == measured {
            // The others are about as long: room for them is made at once.
            let bytes = (room.len() - start) / MEASURED_ROWS * (rows.end - row);
            room.reserve((bytes + bytes / 8).min(ROOM_BYTES_MAX));
        }
        if row > rows.start {
            room.put_first(b"],[ ", 3);
        }
        stretches.iter().for_each(|stretch| stretch.push(room, row, time, joined));
    }
    room.put(b"]");
}

/// Writes one cell with the comma before it.
fn push_cell<const PRETTY: bool>(
    room: &mut Room<'_>,
    row: usize,
    (at, cells, validity): &(usize, Cells<'_>, Option<&Bitmap>),
    time: &mut TimeWriter,
) {
    if *at > 0 {
        room.put(b",");
    }
    cells.push_or_null::<PRETTY>(room, row, *validity, time);
}

/// Writes one cell with the comma before it, if it is of the kinds that most are.
#[inline]
fn push_plain(room: &mut Room<'_>, row: usize, column: &Column, texts: &Option<Texts>) -> bool {
    match (&column.values, &column.validity, texts) {
        (Values::Integer(values), None, _) => push_comma_i64(room, values[row]),
        (Values::Dictionary(codes, _), None, Some(Texts::Short(texts))) => {
            texts[codes[row] as usize].push(room);
        }
        _ => return false,
    }
    true
}

impl Stretch<'_> {
    #[inline]
    fn push(&self, room: &mut Room<'_>, row: usize, time: &mut TimeWriter, joined: &mut Joined) {
        match self {
            Stretch::Epoch(times, epoch) => time.push_number(room, epoch.convert(times[row])),
            Stretch::Integers(columns) => room.within(|room| {
                columns.iter().for_each(|values| push_comma_i64(room, values[row]));
            }),
            Stretch::Joined(columns) => joined.push(room, columns, row),
            _ => self.push_other(room, row, time),
        }
    }

    /// The kinds of which a row has one or two, and whose code would leave the others no registers.
    #[inline(never)]
    fn push_other(&self, room: &mut Room<'_>, row: usize, time: &mut TimeWriter) {
        match self {
            Stretch::Time(times) => time.push(room, times[row]),
            Stretch::Gaps(columns) => room.within(|room| {
                for (values, valid) in columns {
                    if valid.get(row) {
                        push_comma_i64(room, values[row]);
                    } else {
                        room.put(b",null");
                    }
                }
            }),
            Stretch::Floats(columns) => {
                for values in columns {
                    room.put_first(b", ", 1);
                    push_float(room, values[row]);
                }
            }
            Stretch::Short(columns) => room.within(|room| {
                for (codes, texts) in columns {
                    texts[codes[row] as usize].push(room);
                }
            }),
            Stretch::Column(at, cells, validity) => {
                if *at > 0 {
                    room.put(b",");
                }
                cells.push_or_null::<false>(room, row, *validity, time);
            }
            Stretch::Epoch(..) | Stretch::Integers(_) | Stretch::Joined(_) => {
                panic!("BUG: it is written where it is told apart")
            }
        }
    }
}

/// Adds a column: to the stretch before it, if both are alike.
fn push_column<'a>(
    stretches: &mut Vec<Stretch<'a>>,
    (at, cells, validity): (usize, Cells<'a>, Option<&'a Bitmap>),
) {
    // A column is written with the comma before it.
    let may_join = at > 0;
    match (cells, validity, stretches.last_mut()) {
        (Cells::Epoch(times, epoch), None, None) => {
            stretches.push(Stretch::Epoch(times, epoch));
        }
        (Cells::Time(times), None, None) => stretches.push(Stretch::Time(times)),
        (Cells::Integer(values), None, last) if may_join => match last {
            Some(Stretch::Integers(columns)) => columns.push(values),
            _ => stretches.push(Stretch::Integers(vec![values])),
        },
        (Cells::Integer(values), Some(valid), last) if may_join => match last {
            Some(Stretch::Gaps(columns)) => columns.push((values, valid)),
            _ => stretches.push(Stretch::Gaps(vec![(values, valid)])),
        },
        (Cells::Float(values), None, last) if may_join => match last {
            Some(Stretch::Floats(columns)) => columns.push(values),
            _ => stretches.push(Stretch::Floats(vec![values])),
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

fn push_list<const PRETTY: bool>(out: &mut impl Output, lines: &str) {
    out.put(b"[");
    for (at, element) in lines.split('\n').enumerate() {
        if at > 0 {
            out.put(b",");
        }
        if PRETTY {
            out.put(CELL_LINE);
            out.put(b"    ");
        }
        push_string(out, element.as_bytes());
    }
    if PRETTY {
        out.put(CELL_LINE);
    }
    out.put(b"]");
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
        out: &mut impl Output,
        row: usize,
        validity: Option<&Bitmap>,
        time: &mut TimeWriter,
    ) {
        if PRETTY {
            out.put(CELL_LINE);
        }
        if validity.is_some_and(|valid| !valid.get(row)) {
            out.put(b"null");
        } else if let Self::List(texts) = self {
            push_list::<PRETTY>(out, texts.get(row));
        } else {
            self.push(out, row, time);
        }
    }

    #[inline]
    fn push(&self, out: &mut impl Output, row: usize, time: &mut TimeWriter) {
        match self {
            Self::Integer(values) => push_i64(out, values[row]),
            Self::Float(values) => push_float(out, values[row]),
            Self::Time(times) => time.push(out, times[row]),
            Self::Epoch(times, epoch) => time.push_number(out, epoch.convert(times[row])),
            Self::Unsigned(values) => push_u64(out, values[row]),
            Self::Boolean(values) if values.get(row) => out.put(b"true"),
            Self::Boolean(_) => out.put(b"false"),
            Self::Text(texts) | Self::List(texts) => push_string(out, texts.get_bytes(row)),
            Self::Dictionary(codes, texts) => {
                push_string(out, texts.get_bytes(codes[row] as usize));
            }
            Self::Escaped(codes, texts) => texts.push(out, codes[row] as usize),
        }
    }
}

/// JSON has no notation for what is not finite.
fn push_float(out: &mut impl Output, value: f64) {
    if value.is_finite() {
        push_json_float(out, value);
    } else {
        out.put(b"null");
    }
}
