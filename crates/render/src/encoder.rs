//! The encoder of one answer: which documents, results and series there are, and what is partial.
//!
//! Not here: how anything is written down (json, csv, msgpack).

#[cfg(test)]
mod tests;

use std::ops::Range;

use model::{Documents, ResultBatch, SeriesHeader};

use crate::sink::{Message, Sink};
use crate::{Options, ZoneOffset};

const NOT_EXECUTED: &str = "not executed";

/// Turns the answer of one request into bytes.
///
/// For every statement: [`Encoder::begin_statement`], any number of [`Encoder::rows`] and
/// [`Encoder::message`], then [`Encoder::end_statement`] or [`Encoder::fail_statement`]; at last
/// [`Encoder::end`]. The bytes collect inside; the caller takes them whenever it wants to send some.
///
/// Where it differs from InfluxDB, which builds answers in memory before it sends them:
/// - Infinite floats are `null` in JSON; there, they turn the whole answer into an error.
/// - A statement that fails after rows of it were taken keeps these rows: JSON has its `error`
///   behind them; CSV has an empty line and the two lines of an error.
///
/// MessagePack says how long everything is in front of it: nothing can be taken before the end of
/// a document. Watch [`Encoder::buffered_bytes`].
#[derive(Debug)]
pub struct Encoder {
    out: Vec<u8>,
    sink: Box<dyn Sink>,
    options: Options,
    document_open: bool,
    /// Rows written so far.
    rows: usize,
    /// `max_rows` is reached: nothing is written any more but what closes what is open.
    full: bool,
    /// What makes a document in the statement's answer, if the answer is chunked.
    documents: Documents,
    statement: Option<Statement>,
}

#[derive(Debug)]
struct Statement {
    id: u32,
    zone: Option<ZoneOffset>,
    messages: Vec<Message>,
    piece: Option<Piece>,
    /// It began before the answer was full, so that it has a result.
    writes: bool,
}

/// Room for most short answers, so that they do not grow name by name and are not copied when their rows come.
const FIRST_BYTES: usize = 4 << 10;

/// The series that is open.
#[derive(Clone, Copy, Debug)]
struct Piece {
    rows: usize,
    /// The last batch said that more rows of the series follow.
    continues: bool,
}

impl Encoder {
    /// An encoder of one answer.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            out: Vec::with_capacity(FIRST_BYTES),
            sink: options.format.sink(options.epoch),
            options,
            document_open: false,
            rows: 0,
            full: false,
            documents: Documents::Rows,
            statement: None,
        }
    }

    /// Starts the answer to statement number `id`. Times of its rows are local to `zone`.
    ///
    /// # Panics
    /// If the statement before has not ended.
    pub fn begin_statement(&mut self, id: u32, zone: Option<ZoneOffset>) {
        self.begin_statement_in(id, zone, Documents::Rows);
    }

    /// Starts the answer to a statement as [`Encoder::begin_statement`] does; in a chunked answer it
    /// is cut into these documents.
    ///
    /// # Panics
    /// If the statement before has not ended.
    pub fn begin_statement_in(&mut self, id: u32, zone: Option<ZoneOffset>, documents: Documents) {
        assert!(self.statement.is_none(), "BUG: a statement begins within another");
        self.documents = documents;
        let writes = !self.full;
        if writes && !self.in_pieces() {
            self.open_document();
            self.sink.begin_result(&mut self.out, id, zone.as_ref());
        }
        self.statement = Some(Statement { id, zone, messages: Vec::new(), piece: None, writes });
    }

    /// Adds all rows of a batch.
    ///
    /// # Panics
    /// If no statement was begun.
    pub fn batch(&mut self, part: &ResultBatch) {
        self.rows(part, part.rows.clone());
    }

    /// Adds `rows` of a batch: to the series before, if what was added last said that it continues.
    /// Rows of a batch are added in order, all of them.
    ///
    /// # Panics
    /// If no statement was begun.
    pub fn rows(&mut self, part: &ResultBatch, rows: Range<usize>) {
        if self.full {
            return;
        }
        let mut piece = self.statement().piece.take();
        if piece.take_if(|open| !open.continues).is_some() {
            self.close_piece(false, self.documents == Documents::Rows);
        }
        let mut piece = piece.unwrap_or_else(|| self.open_piece(&part.header));
        let continues = part.continues || rows.end < part.rows.end;
        let end = rows.end.min(rows.start.saturating_add(self.rows_left()));
        let chunk = self.chunk_rows();
        let mut from = rows.start;
        while from < end {
            if piece.rows == chunk {
                self.close_piece(true, true);
                piece = self.open_piece(&part.header);
            }
            let to = end.min(from.saturating_add(chunk - piece.rows));
            self.sink.rows(&mut self.out, &part.batch, from..to);
            piece.rows += to - from;
            from = to;
        }
        self.rows += from - rows.start;
        piece.continues = continues;
        if self.rows_left() == 0 {
            self.full = true;
            let cut = from < rows.end || continues;
            self.close_piece(cut, false);
        } else {
            self.statement().piece = Some(piece);
        }
    }

    /// Adds a remark on the statement.
    ///
    /// # Panics
    /// If no statement was begun.
    pub fn message(&mut self, level: &str, text: &str) {
        let message = Message { level: level.to_owned(), text: text.to_owned() };
        self.statement().messages.push(message);
    }

    /// Ends the answer to a statement that succeeded.
    ///
    /// # Panics
    /// If no statement was begun.
    pub fn end_statement(&mut self) {
        let statement = self.take_statement();
        if self.in_pieces() {
            if statement.piece.is_none() {
                self.open_document();
                self.sink.begin_result(&mut self.out, statement.id, statement.zone.as_ref());
            } else {
                self.sink.end_series(&mut self.out, false);
            }
            self.sink.end_result(&mut self.out, &statement.messages, false);
            self.close_document();
            return;
        }
        if statement.piece.is_some() {
            self.close_piece(false, false);
        }
        if statement.writes {
            self.sink.end_result(&mut self.out, &statement.messages, false);
        }
        if self.chunked() {
            self.close_document();
        }
    }

    /// Ends the answer to a statement that failed. `not_executed` is the number of statements
    /// behind it, none of which will be begun.
    ///
    /// # Panics
    /// If no statement was begun.
    pub fn fail_statement(&mut self, text: &str, not_executed: u32) {
        let statement = self.take_statement();
        let id = statement.id;
        if self.in_pieces() {
            if let Some(piece) = statement.piece {
                self.close_piece(piece.continues, true);
            }
            self.error_document(id, text);
        } else if statement.writes {
            // In one document what is said of the others replaces what was said of this one: they
            // have its number.
            let is_replaced = not_executed > 0 && !self.chunked();
            let text = if is_replaced { NOT_EXECUTED } else { text };
            if self.sink.abandon_result(&mut self.out) {
                self.sink.error_result(&mut self.out, id, text);
            } else {
                if statement.piece.is_some() {
                    self.sink.end_series(&mut self.out, false);
                }
                self.sink.fail_result(&mut self.out, text);
            }
            if self.chunked() {
                self.close_document();
            }
        }
        if self.chunked() {
            // InfluxDB gives all of them the failed statement's number.
            (0..not_executed).for_each(|_| self.error_document(id, NOT_EXECUTED));
        }
    }

    /// Ends the answer.
    ///
    /// # Panics
    /// If a statement has not ended.
    pub fn end(&mut self) {
        assert!(self.statement.is_none(), "BUG: an answer ends within a statement");
        if !self.chunked() {
            self.open_document();
            self.close_document();
        }
    }

    /// Whether rows will be ignored from now on, because `max_rows` were written.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Bytes of memory that the answer takes at the moment.
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.out.len() + self.sink.held_bytes()
    }

    /// The bytes that are ready to be sent.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        if self.out.is_empty() {
            return Vec::new();
        }
        self.sink.taken();
        // The next bytes will be about as many, and nearly all of them would be copied for a few more.
        let next = Vec::with_capacity(self.out.len() + self.out.len() / 8);
        std::mem::replace(&mut self.out, next)
    }

    fn chunked(&self) -> bool {
        self.options.chunk_rows.is_some()
    }

    /// Whether a statement's answer is more than one document.
    fn in_pieces(&self) -> bool {
        self.chunked() && self.documents != Documents::Statement
    }

    /// Rows of a document.
    fn chunk_rows(&self) -> usize {
        match self.options.chunk_rows {
            Some(rows) if self.documents == Documents::Rows => rows.get(),
            _ => usize::MAX,
        }
    }

    fn rows_left(&self) -> usize {
        match self.options.max_rows {
            Some(max) if !self.chunked() => max.get().saturating_sub(self.rows),
            _ => usize::MAX,
        }
    }

    fn statement(&mut self) -> &mut Statement {
        self.statement.as_mut().expect("BUG: no statement was begun")
    }

    fn take_statement(&mut self) -> Statement {
        self.statement.take().expect("BUG: no statement was begun")
    }

    fn open_document(&mut self) {
        if !self.document_open {
            self.document_open = true;
            self.sink.begin_document(&mut self.out);
        }
    }

    fn close_document(&mut self) {
        self.document_open = false;
        self.sink.end_document(&mut self.out);
    }

    fn error_document(&mut self, id: u32, text: &str) {
        self.open_document();
        self.sink.error_result(&mut self.out, id, text);
        self.close_document();
    }

    fn open_piece(&mut self, header: &SeriesHeader) -> Piece {
        if self.in_pieces() {
            self.open_document();
            let statement = self.statement.as_ref().expect("BUG: no statement was begun");
            self.sink.begin_result(&mut self.out, statement.id, statement.zone.as_ref());
        }
        self.sink.begin_series(&mut self.out, header);
        Piece { rows: 0, continues: false }
    }

    /// Ends a series, or a piece of it that is a document.
    fn close_piece(&mut self, series_partial: bool, result_partial: bool) {
        self.sink.end_series(&mut self.out, series_partial);
        if self.in_pieces() {
            self.sink.end_result(&mut self.out, &[], result_partial);
            self.close_document();
        }
    }
}
