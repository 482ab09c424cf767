//! InfluxDB's CSV: a header a statement, and a new one where the columns change.

use std::ops::Range;
use std::sync::Arc;

use model::key::escape;
use model::{Column, ColumnBatch, Name, SeriesHeader, Values};

use crate::number::{push_i64, push_plain_float, push_u64};
use crate::options::{Epoch, ZoneOffset};
use crate::sink::{Message, Sink};

/// A statement and the names of its columns.
type Header = (u32, Arc<[Name]>);

#[derive(Debug)]
pub(crate) struct CsvSink {
    epoch: Option<Epoch>,
    statement: u32,
    /// The last header line: its statement and columns.
    header: Option<Header>,
    /// Name and tags of the open series, as every row starts.
    prefix: Vec<u8>,
    /// Where the open result starts in the buffer, and the header before it; unless some of the
    /// result was handed out.
    result_start: Option<(usize, Option<Header>)>,
}

impl CsvSink {
    pub(crate) fn new(epoch: Option<Epoch>) -> Self {
        Self { epoch, statement: 0, header: None, prefix: Vec::new(), result_start: None }
    }
}

impl Sink for CsvSink {
    fn begin_document(&mut self, _out: &mut Vec<u8>) {}

    fn begin_result(&mut self, out: &mut Vec<u8>, id: u32, _zone: Option<&ZoneOffset>) {
        self.statement = id;
        self.result_start = Some((out.len(), self.header.clone()));
    }

    fn begin_series(&mut self, out: &mut Vec<u8>, header: &SeriesHeader) {
        let wanted = (self.statement, &header.columns);
        let written = self.header.as_ref().map(|(id, columns)| (*id, columns));
        if written != Some(wanted) {
            if written.is_some() {
                out.push(b'\n');
            }
            out.extend_from_slice(b"name,tags");
            for column in header.columns.iter() {
                out.push(b',');
                push_text(out, column.as_bytes());
            }
            out.push(b'\n');
            self.header = Some((self.statement, Arc::clone(&header.columns)));
        }
        self.prefix.clear();
        push_text(&mut self.prefix, header.name.as_bytes());
        self.prefix.push(b',');
        push_text(&mut self.prefix, tags_text(&header.tags).as_bytes());
    }

    fn rows(&mut self, out: &mut Vec<u8>, batch: &Arc<ColumnBatch>, rows: Range<usize>) {
        out.reserve(rows.len() * (self.prefix.len() + 4 * batch.columns.len() + 20));
        for row in rows {
            out.extend_from_slice(&self.prefix);
            for (at, column) in batch.columns.iter().enumerate() {
                out.push(b',');
                if column.is_valid(row) {
                    push_cell(out, column, row, self.epoch.filter(|_| at == 0));
                }
            }
            out.push(b'\n');
        }
    }

    fn end_series(&mut self, _out: &mut Vec<u8>, _partial: bool) {}

    fn end_result(&mut self, _out: &mut Vec<u8>, _messages: &[Message], _partial: bool) {}

    fn error_result(&mut self, _out: &mut Vec<u8>, _id: u32, _text: &str) {}

    fn abandon_result(&mut self, out: &mut Vec<u8>) -> bool {
        let Some((start, header)) = self.result_start.take() else { return false };
        out.truncate(start);
        self.header = header;
        true
    }

    fn fail_result(&mut self, out: &mut Vec<u8>, text: &str) {
        out.push(b'\n');
        error_lines(out, text);
    }

    fn end_document(&mut self, _out: &mut Vec<u8>) {}

    fn taken(&mut self) {
        self.result_start = None;
    }

    fn held_bytes(&self) -> usize {
        0
    }
}

/// The two lines that are nothing but an error.
pub(crate) fn error_lines(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(b"error\n");
    push_text(out, text.as_bytes());
    out.push(b'\n');
}

fn push_cell(out: &mut Vec<u8>, column: &Column, row: usize, epoch: Option<Epoch>) {
    match &column.values {
        Values::Time(times) => {
            push_i64(out, epoch.unwrap_or(Epoch::Nanoseconds).convert(times[row]));
        }
        Values::Integer(values) => push_i64(out, values[row]),
        Values::Unsigned(values) => push_u64(out, values[row]),
        Values::Float(values) => push_float(out, values[row]),
        Values::Boolean(values) if values.get(row) => out.extend_from_slice(b"true"),
        Values::Boolean(_) => out.extend_from_slice(b"false"),
        Values::String(texts) => push_text(out, texts.get_bytes(row)),
        Values::Dictionary(codes, texts) => push_text(out, texts.get_bytes(codes[row] as usize)),
    }
}

/// A NaN is no value; infinities have names.
fn push_float(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        push_plain_float(out, value);
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"+Inf" } else { b"-Inf" });
    }
}

/// Tags as line protocol has them.
fn tags_text(tags: &[(Name, Name)]) -> String {
    let mut text = String::new();
    for (key, value) in tags.iter().filter(|(_, value)| !value.is_empty()) {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&escape(key, b",= "));
        text.push('=');
        text.push_str(&escape(value, b",= "));
    }
    text
}

/// Writes a cell, with quotes if it could be misread.
fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    let special = text.iter().any(|byte| matches!(byte, b',' | b'"' | b'\r' | b'\n'));
    if !special && text != b"\\." && !starts_with_space(text) {
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    for byte in text {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

fn starts_with_space(text: &[u8]) -> bool {
    match text.first() {
        None => false,
        Some(0x21..0x80) => false,
        Some(_) => {
            let start = text.utf8_chunks().next().map_or("", |chunk| chunk.valid());
            start.starts_with(char::is_whitespace)
        }
    }
}
