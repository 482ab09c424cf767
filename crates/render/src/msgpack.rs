//! InfluxDB's MessagePack. Lengths stand in front of everything, so a document is kept until its
//! end: rows, then series, then results are counted and copied behind their length.

use std::ops::Range;
use std::sync::Arc;

use model::{Column, ColumnBatch, SeriesHeader, Values};

use crate::options::{Epoch, ZoneOffset};
use crate::sink::{Message, Sink};

/// Extension type of a time.
const TIME_TYPE: u8 = 5;

#[derive(Debug)]
pub(crate) struct MessagePackSink {
    epoch: Option<Epoch>,
    statement: u32,
    results: Counted,
    series: Counted,
    rows: Counted,
    header: SeriesHeader,
}

/// Encoded elements of an array and how many they are.
#[derive(Debug, Default)]
struct Counted {
    count: usize,
    bytes: Vec<u8>,
}

impl Counted {
    /// Writes the array; nothing is left.
    fn flush(&mut self, out: &mut Vec<u8>) {
        push_array(out, self.count);
        out.append(&mut self.bytes);
        self.count = 0;
    }

    fn clear(&mut self) {
        self.count = 0;
        self.bytes.clear();
    }
}

impl MessagePackSink {
    pub(crate) fn new(epoch: Option<Epoch>) -> Self {
        Self {
            epoch,
            statement: 0,
            results: Counted::default(),
            series: Counted::default(),
            rows: Counted::default(),
            header: SeriesHeader::default(),
        }
    }
}

impl Sink for MessagePackSink {
    fn begin_document(&mut self, _out: &mut Vec<u8>) {
        self.results.clear();
    }

    fn begin_result(&mut self, _out: &mut Vec<u8>, id: u32, _zone: Option<&ZoneOffset>) {
        self.statement = id;
        self.series.clear();
    }

    fn begin_series(&mut self, _out: &mut Vec<u8>, header: &SeriesHeader) {
        self.header = header.clone();
        self.rows.clear();
    }

    fn rows(&mut self, _out: &mut Vec<u8>, batch: &Arc<ColumnBatch>, rows: Range<usize>) {
        self.rows.count += rows.len();
        let out = &mut self.rows.bytes;
        for row in rows {
            push_array(out, batch.columns.len());
            for (at, column) in batch.columns.iter().enumerate() {
                match &column.values {
                    Values::String(texts) if self.header.list == Some(at) => {
                        let elements: Vec<&str> = texts.get(row).split('\n').collect();
                        push_array(out, elements.len());
                        elements.iter().for_each(|element| push_text(out, element.as_bytes()));
                    }
                    _ => push_cell(out, column, row, self.epoch.filter(|_| at == 0)),
                }
            }
        }
    }

    fn end_series(&mut self, _out: &mut Vec<u8>, partial: bool) {
        self.series.count += 1;
        let (header, out) = (&self.header, &mut self.series.bytes);
        let (has_name, has_tags) = (!header.name.is_empty(), !header.tags.is_empty());
        push_map(out, 2 + usize::from(has_name) + usize::from(has_tags) + usize::from(partial));
        if has_name {
            push_text(out, b"name");
            push_text(out, header.name.as_bytes());
        }
        if has_tags {
            push_text(out, b"tags");
            push_map(out, header.tags.len());
            for (key, value) in &header.tags {
                push_text(out, key.as_bytes());
                push_text(out, value.as_bytes());
            }
        }
        push_text(out, b"columns");
        push_array(out, header.columns.len());
        header.columns.iter().for_each(|column| push_text(out, column.as_bytes()));
        push_text(out, b"values");
        self.rows.flush(out);
        push_partial(out, partial);
    }

    fn end_result(&mut self, _out: &mut Vec<u8>, messages: &[Message], partial: bool) {
        self.results.count += 1;
        let out = &mut self.results.bytes;
        push_map(out, 2 + usize::from(!messages.is_empty()) + usize::from(partial));
        push_text(out, b"statement_id");
        push_i64(out, self.statement.into());
        if !messages.is_empty() {
            push_text(out, b"messages");
            push_array(out, messages.len());
            for message in messages {
                push_map(out, 2);
                push_text(out, b"level");
                push_text(out, message.level.as_bytes());
                push_text(out, b"text");
                push_text(out, message.text.as_bytes());
            }
        }
        push_text(out, b"series");
        self.series.flush(out);
        push_partial(out, partial);
    }

    /// A failed statement has no number.
    fn error_result(&mut self, _out: &mut Vec<u8>, _id: u32, text: &str) {
        self.results.count += 1;
        error_map(&mut self.results.bytes, text);
    }

    fn abandon_result(&mut self, _out: &mut Vec<u8>) -> bool {
        true
    }

    fn fail_result(&mut self, _out: &mut Vec<u8>, _text: &str) {
        unreachable!("BUG: a result can always be abandoned");
    }

    fn end_document(&mut self, out: &mut Vec<u8>) {
        push_map(out, 1);
        push_text(out, b"results");
        self.results.flush(out);
    }

    fn taken(&mut self) {}

    fn held_bytes(&self) -> usize {
        self.results.bytes.len() + self.series.bytes.len() + self.rows.bytes.len()
    }
}

/// The map that is nothing but an error.
pub(crate) fn error_map(out: &mut Vec<u8>, text: &str) {
    push_map(out, 1);
    push_text(out, b"error");
    push_text(out, text.as_bytes());
}

fn push_partial(out: &mut Vec<u8>, partial: bool) {
    if partial {
        push_text(out, b"partial");
        push_bool(out, true);
    }
}

fn push_cell(out: &mut Vec<u8>, column: &Column, row: usize, epoch: Option<Epoch>) {
    if !column.is_valid(row) {
        out.push(0xc0);
        return;
    }
    match &column.values {
        Values::Time(times) => match epoch {
            Some(epoch) => push_i64(out, epoch.convert(times[row])),
            None => push_time(out, times[row]),
        },
        Values::Integer(values) => push_i64(out, values[row]),
        Values::Unsigned(values) => push_u64(out, values[row]),
        Values::Float(values) if values[row].is_nan() => out.push(0xc0),
        Values::Float(values) => push_tagged(out, 0xcb, values[row].to_be_bytes()),
        Values::Boolean(values) => push_bool(out, values.get(row)),
        Values::String(texts) => push_text(out, texts.get_bytes(row)),
        Values::Dictionary(codes, texts) => {
            push_text(out, texts.get_bytes(codes[row] as usize));
        }
    }
}

fn push_tagged<const N: usize>(out: &mut Vec<u8>, tag: u8, bytes: [u8; N]) {
    out.push(tag);
    out.extend_from_slice(&bytes);
}

fn push_bool(out: &mut Vec<u8>, value: bool) {
    out.push(if value { 0xc3 } else { 0xc2 });
}

fn push_time(out: &mut Vec<u8>, time_ns: i64) {
    out.extend_from_slice(&[0xc7, 12, TIME_TYPE]);
    out.extend_from_slice(&time_ns.div_euclid(1_000_000_000).to_be_bytes());
    out.extend_from_slice(&(time_ns.rem_euclid(1_000_000_000) as u32).to_be_bytes());
}

/// The shortest signed form.
fn push_i64(out: &mut Vec<u8>, value: i64) {
    if (-32..128).contains(&value) {
        out.push(value as u8);
    } else if let Ok(value) = i8::try_from(value) {
        push_tagged(out, 0xd0, value.to_be_bytes());
    } else if let Ok(value) = i16::try_from(value) {
        push_tagged(out, 0xd1, value.to_be_bytes());
    } else if let Ok(value) = i32::try_from(value) {
        push_tagged(out, 0xd2, value.to_be_bytes());
    } else {
        push_tagged(out, 0xd3, value.to_be_bytes());
    }
}

/// The shortest unsigned form.
fn push_u64(out: &mut Vec<u8>, value: u64) {
    if value < 128 {
        out.push(value as u8);
    } else if let Ok(value) = u8::try_from(value) {
        push_tagged(out, 0xcc, value.to_be_bytes());
    } else if let Ok(value) = u16::try_from(value) {
        push_tagged(out, 0xcd, value.to_be_bytes());
    } else if let Ok(value) = u32::try_from(value) {
        push_tagged(out, 0xce, value.to_be_bytes());
    } else {
        push_tagged(out, 0xcf, value.to_be_bytes());
    }
}

fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    if text.len() < 32 {
        out.push(0xa0 | text.len() as u8);
    } else if let Ok(len) = u8::try_from(text.len()) {
        push_tagged(out, 0xd9, len.to_be_bytes());
    } else {
        push_len(out, text.len(), [0xda, 0xdb]);
    }
    out.extend_from_slice(text);
}

fn push_array(out: &mut Vec<u8>, len: usize) {
    if len < 16 {
        out.push(0x90 | len as u8);
    } else {
        push_len(out, len, [0xdc, 0xdd]);
    }
}

fn push_map(out: &mut Vec<u8>, len: usize) {
    if len < 16 {
        out.push(0x80 | len as u8);
    } else {
        push_len(out, len, [0xde, 0xdf]);
    }
}

/// A length in 16 bits or else 32.
fn push_len(out: &mut Vec<u8>, len: usize, tags: [u8; 2]) {
    match u16::try_from(len) {
        Ok(len) => push_tagged(out, tags[0], len.to_be_bytes()),
        Err(_) => {
            let len = u32::try_from(len).expect("BUG: callers bound their answers below 4 G");
            push_tagged(out, tags[1], len.to_be_bytes());
        }
    }
}
