//! InfluxDB's JSON, compact or indented.
//!
//! Members appear in InfluxDB's order and only if they say something; those whose presence is known
//! late (`series`, `values`) are opened when their first element comes.

mod head;
mod joined;
mod rows;
mod texts;

use std::ops::Range;
use std::sync::Arc;

use model::{ColumnBatch, SeriesHeader};

use self::head::HeadText;
use self::joined::Joined;
use self::rows::push_rows;
use self::texts::BatchTexts;
use crate::options::{Epoch, ZoneOffset};
use crate::sink::{Message, Sink};
use crate::text::push_string;
use crate::time::TimeWriter;

/// How deep things are, in steps of indentation.
const RESULT: usize = 2;
const RESULT_MEMBER: usize = 3;
const SERIES: usize = 4;
const SERIES_MEMBER: usize = 5;
const SERIES_VALUE: usize = 6;

/// Bytes of a cell, about.
const CELL_BYTES: usize = 8;
/// Most bytes that room is made for before they are needed.
const RESERVE_BYTES_MAX: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct JsonSink {
    pretty: bool,
    epoch: Option<Epoch>,
    time: TimeWriter,
    /// Results of the open document.
    results: usize,
    /// Where the open result starts in the buffer, unless some of it was handed out.
    result_start: Option<usize>,
    /// Series of the open result.
    series: usize,
    /// Whether the open series has rows.
    has_rows: bool,
    /// The column of the open series that has lists.
    list: Option<usize>,
    /// The head of the series before, without what is its alone.
    head: HeadText,
    texts: BatchTexts,
    joined: Joined,
}

impl JsonSink {
    pub(crate) fn new(pretty: bool, epoch: Option<Epoch>) -> Self {
        Self {
            pretty,
            epoch,
            time: TimeWriter::new(None),
            results: 0,
            result_start: None,
            series: 0,
            has_rows: false,
            list: None,
            head: HeadText::default(),
            texts: BatchTexts::default(),
            joined: Joined::default(),
        }
    }

    /// Goes to a new line, if there are lines.
    fn line(&self, out: &mut Vec<u8>, depth: usize) {
        if self.pretty {
            out.push(b'\n');
            out.resize(out.len() + 4 * depth, b' ');
        }
    }

    /// Starts an element of an array or object.
    fn element(&self, out: &mut Vec<u8>, depth: usize, is_first: bool) {
        if !is_first {
            out.push(b',');
        }
        self.line(out, depth);
    }

    /// Starts a member of an object, whose name has nothing to escape.
    fn member(&self, out: &mut Vec<u8>, depth: usize, is_first: bool, name: &'static str) {
        self.element(out, depth, is_first);
        out.push(b'"');
        out.extend_from_slice(name.as_bytes());
        out.push(b'"');
        self.colon(out);
    }

    fn colon(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.pretty { b": " } else { b":" });
    }

    fn close(&self, out: &mut Vec<u8>, depth: usize, bracket: u8) {
        self.line(out, depth);
        out.push(bracket);
    }

    /// Starts a result with its number.
    fn open_result(&mut self, out: &mut Vec<u8>, id: u32) {
        if self.results == 0 {
            out.push(b'{');
            self.member(out, 1, true, "results");
            out.push(b'[');
        }
        self.element(out, RESULT, self.results == 0);
        self.results += 1;
        out.push(b'{');
        self.member(out, RESULT_MEMBER, true, "statement_id");
        crate::number::push_u64(out, id.into());
    }

    fn close_series_list(&self, out: &mut Vec<u8>) {
        if self.series > 0 {
            self.close(out, RESULT_MEMBER, b']');
        }
    }

    fn push_messages(&self, out: &mut Vec<u8>, messages: &[Message]) {
        if messages.is_empty() {
            return;
        }
        self.member(out, RESULT_MEMBER, false, "messages");
        out.push(b'[');
        for (at, message) in messages.iter().enumerate() {
            self.element(out, SERIES, at == 0);
            out.push(b'{');
            self.member(out, SERIES_MEMBER, true, "level");
            push_string(out, message.level.as_bytes());
            self.member(out, SERIES_MEMBER, false, "text");
            push_string(out, message.text.as_bytes());
            self.close(out, SERIES, b'}');
        }
        self.close(out, RESULT_MEMBER, b']');
    }

    /// Writes the head of a series; calls `gap` in place of each tag's value.
    fn push_head(&self, out: &mut Vec<u8>, header: &SeriesHeader, gap: &mut dyn FnMut(&Vec<u8>)) {
        out.push(b'{');
        let mut is_first = true;
        if !header.name.is_empty() {
            self.member(out, SERIES_MEMBER, is_first, "name");
            push_string(out, header.name.as_bytes());
            is_first = false;
        }
        if !header.tags.is_empty() {
            self.member(out, SERIES_MEMBER, is_first, "tags");
            out.push(b'{');
            for (at, (key, _)) in header.tags.iter().enumerate() {
                self.element(out, SERIES_VALUE, at == 0);
                push_string(out, key.as_bytes());
                self.colon(out);
                gap(out);
            }
            self.close(out, SERIES_MEMBER, b'}');
            is_first = false;
        }
        self.member(out, SERIES_MEMBER, is_first, "columns");
        out.push(b'[');
        for (at, column) in header.columns.iter().enumerate() {
            self.element(out, SERIES_VALUE, at == 0);
            push_string(out, column.as_bytes());
        }
        self.close(out, SERIES_MEMBER, b']');
    }

    fn push_error(&self, out: &mut Vec<u8>, text: &str) {
        self.member(out, RESULT_MEMBER, false, "error");
        push_string(out, text.as_bytes());
        self.close(out, RESULT, b'}');
    }
}

impl Sink for JsonSink {
    fn begin_document(&mut self, _out: &mut Vec<u8>) {
        self.results = 0;
    }

    fn begin_result(&mut self, out: &mut Vec<u8>, id: u32, zone: Option<&ZoneOffset>) {
        self.texts = BatchTexts::default();
        self.joined.clear();
        self.time = TimeWriter::new(zone.cloned());
        self.series = 0;
        self.result_start = Some(out.len());
        self.open_result(out, id);
    }

    fn begin_series(&mut self, out: &mut Vec<u8>, header: &SeriesHeader) {
        if self.series == 0 {
            self.member(out, RESULT_MEMBER, false, "series");
            out.push(b'[');
        }
        self.element(out, SERIES, self.series == 0);
        self.series += 1;
        self.has_rows = false;
        self.list = header.list;
        if !self.head.is_of(header) {
            self.head = HeadText::new(header, |out, gap| self.push_head(out, header, gap));
        }
        self.head.push(out, header);
    }

    fn rows(&mut self, out: &mut Vec<u8>, batch: &Arc<ColumnBatch>, rows: Range<usize>) {
        if rows.is_empty() {
            return;
        }
        if !self.has_rows {
            if self.pretty {
                self.member(out, SERIES_MEMBER, false, "values");
                out.push(b'[');
            } else {
                out.extend_from_slice(b",\"values\":[");
            }
        }
        let is_first = !self.has_rows;
        self.has_rows = true;
        if !self.texts.are_of(batch) {
            self.texts = BatchTexts::new(batch);
            self.joined.clear();
            // Rows of many series come in as many calls: room for all of them is made at once.
            let cells = batch.rows.saturating_mul((batch.columns.len() + 2) * CELL_BYTES);
            let heads = (batch.rows / rows.len()).saturating_mul(self.head.bytes());
            out.reserve(cells.saturating_add(heads).min(RESERVE_BYTES_MAX));
        }
        let writers = (self.epoch, &mut self.time, &mut self.joined);
        let texts = self.texts.columns();
        if self.pretty {
            push_rows::<true>(out, batch, texts, rows, is_first, self.list, writers);
        } else {
            push_rows::<false>(out, batch, texts, rows, is_first, self.list, writers);
        }
    }

    fn end_series(&mut self, out: &mut Vec<u8>, partial: bool) {
        if self.has_rows {
            self.close(out, SERIES_MEMBER, b']');
        }
        if partial {
            self.member(out, SERIES_MEMBER, false, "partial");
            out.extend_from_slice(b"true");
        }
        self.close(out, SERIES, b'}');
    }

    fn end_result(&mut self, out: &mut Vec<u8>, messages: &[Message], partial: bool) {
        self.texts = BatchTexts::default();
        self.joined.clear();
        self.close_series_list(out);
        self.push_messages(out, messages);
        if partial {
            self.member(out, RESULT_MEMBER, false, "partial");
            out.extend_from_slice(b"true");
        }
        self.close(out, RESULT, b'}');
    }

    fn error_result(&mut self, out: &mut Vec<u8>, id: u32, text: &str) {
        self.open_result(out, id);
        self.push_error(out, text);
    }

    fn abandon_result(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(start) = self.result_start.take() else { return false };
        out.truncate(start);
        self.results -= 1;
        true
    }

    fn fail_result(&mut self, out: &mut Vec<u8>, text: &str) {
        self.close_series_list(out);
        self.push_error(out, text);
    }

    fn end_document(&mut self, out: &mut Vec<u8>) {
        if self.results == 0 {
            out.push(b'{');
        } else {
            self.close(out, 1, b']');
            self.line(out, 0);
        }
        out.extend_from_slice(b"}\n");
    }

    fn taken(&mut self) {
        self.result_start = None;
    }

    fn held_bytes(&self) -> usize {
        0
    }
}

/// The document that is nothing but an error.
pub(crate) fn error_document(out: &mut Vec<u8>, text: &str, pretty: bool) {
    let sink = JsonSink::new(pretty, None);
    out.push(b'{');
    sink.member(out, 1, true, "error");
    push_string(out, text.as_bytes());
    sink.close(out, 0, b'}');
    out.push(b'\n');
}
