//! InfluxDB's line protocol.
//!
//! One pass over the text, in place. The series key (everything up to the first unescaped space) is
//! found and hashed, not taken apart: a store that knows the hash never looks inside. Fields are
//! *verified*, not looked up: the line before tells which layout to expect, and the names need only
//! compare equal. Whatever does not fit goes to the exact path, which also finds the reasons that
//! InfluxDB gives for bad lines.
//!
//! Beyond InfluxDB: lines may end in CR LF, and `5u` is an unsigned value. Lines that are not UTF-8
//! are refused.
//!
//! Not here: whether a key is well-formed (`model::SeriesKey`, asked by the store once a series) and
//! whether a field may have its type (the store).

mod fields;
mod layouts;
mod problem;
mod time;
mod value;

use memchr::{memchr, memchr3};
use model::key::KEY_BYTES_MAX;
use model::{KeyError, LineBatch, LineRow, LineText, key_hash};

use layouts::Layouts;
pub use problem::{Problem, ProblemKind};
pub use time::Precision;

/// What a body does not say about itself.
#[derive(Clone, Copy, Debug)]
pub struct ParseOptions {
    /// Unit of the timestamps.
    pub precision: Precision,
    /// Time of rows that have none, nanoseconds; already cut to `precision`.
    pub default_time_ns: i64,
}

impl ParseOptions {
    /// For rows that arrive at `now_ns`.
    #[must_use]
    pub fn at(precision: Precision, now_ns: i64) -> Self {
        let into_unit = now_ns.rem_euclid(precision.unit_ns());
        Self { precision, default_time_ns: now_ns.saturating_sub(into_unit) }
    }
}

/// A parsed body.
#[derive(Debug, Default)]
pub struct Parsed<'a> {
    /// The good rows.
    pub batch: LineBatch<'a>,
    /// The bad lines, in order.
    pub problems: Vec<Problem>,
}

/// Longest body: rows name their bytes by 32-bit offsets.
pub const BODY_BYTES_MAX: usize = u32::MAX as usize;

/// What InfluxDB puts between a series key and a field's name; together they may be as long as a key.
const FIELD_SEPARATOR_BYTES: usize = 4;

/// Parses bodies, one after another; keeps its buffers between them.
#[derive(Debug, Default)]
pub struct LineParser {
    rows: Vec<LineRow>,
    values: Vec<u64>,
    strings: Vec<u8>,
}

impl LineParser {
    /// A parser with empty buffers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses a whole body.
    ///
    /// # Panics
    /// If `text` is longer than [`BODY_BYTES_MAX`]: the caller bounds bodies far below.
    pub fn parse<'a>(&mut self, text: &'a [u8], options: &ParseOptions) -> Parsed<'a> {
        self.parse_with(&[text], options, false).expect("BUG: nothing is behind the last piece")
    }

    /// Parses a body in pieces, each of which ends with a line (in a newline) but the last. `None`: one
    /// does not after all, since that newline stands in a quoted value; then the pieces have to be put
    /// together first.
    ///
    /// # Panics
    /// If they are longer than [`BODY_BYTES_MAX`] together.
    pub fn parse_pieces<'a>(
        &mut self,
        pieces: &[&'a [u8]],
        options: &ParseOptions,
    ) -> Option<Parsed<'a>> {
        self.parse_with(pieces, options, false)
    }

    /// Parses several bodies into one batch, each with what it does not say about itself. A body ends with its last
    /// line, whatever is open there; rows and problems come body after body, and their lines start where they would
    /// if the bodies stood one behind the other.
    ///
    /// # Panics
    /// If they are longer than [`BODY_BYTES_MAX`] together.
    pub fn parse_bodies<'a>(&mut self, bodies: &[(&'a [u8], ParseOptions)]) -> Parsed<'a> {
        let piece = |&(text, options)| Piece { text, options, is_last: true };
        let parsed = self.parse_each(bodies.iter().map(piece), false);
        parsed.expect("BUG: a line goes on behind its body")
    }

    /// As [`LineParser::parse_pieces`]; with `exact_only` no line takes the fast path. Both give the same.
    pub(crate) fn parse_with<'a>(
        &mut self,
        pieces: &[&'a [u8]],
        options: &ParseOptions,
        exact_only: bool,
    ) -> Option<Parsed<'a>> {
        let pieces = pieces.iter().enumerate().map(|(at, &text)| Piece {
            text,
            options: *options,
            is_last: at + 1 == pieces.len(),
        });
        self.parse_each(pieces, exact_only)
    }

    fn parse_each<'a>(
        &mut self,
        pieces: impl Iterator<Item = Piece<'a>>,
        exact_only: bool,
    ) -> Option<Parsed<'a>> {
        let mut body = Body {
            text: &[],
            offset: 0,
            is_last: false,
            is_open: false,
            options: ParseOptions::at(Precision::Nanosecond, 0),
            exact_only,
            layouts: Layouts::default(),
            last_time: time::LastTime::default(),
            rows: std::mem::take(&mut self.rows),
            values: std::mem::take(&mut self.values),
            strings: std::mem::take(&mut self.strings),
            problems: Vec::new(),
        };
        let mut text = LineText::default();
        for piece in pieces {
            body.offset = text.push(piece.text);
            assert!(text.len() <= BODY_BYTES_MAX, "BUG: a body of 4 GiB or more");
            body.piece(&piece, exact_only);
        }
        let Body { is_open, layouts, rows, values, strings, problems, .. } = body;
        let layouts = layouts.into_layouts();
        let batch = LineBatch { text, layouts, rows, values, strings };
        if is_open {
            self.recycle(batch);
            return None;
        }
        Some(Parsed { batch, problems })
    }

    /// Takes the buffers of a batch that is done with, for the next body.
    pub fn recycle(&mut self, batch: LineBatch<'_>) {
        let LineBatch { mut rows, mut values, mut strings, .. } = batch;
        rows.clear();
        values.clear();
        strings.clear();
        (self.rows, self.values, self.strings) = (rows, values, strings);
    }
}

/// What is parsed at a time.
struct Piece<'a> {
    text: &'a [u8],
    options: ParseOptions,
    /// No piece of the same body is behind it.
    is_last: bool,
}

/// The state while bodies are parsed.
struct Body<'a> {
    /// The piece that is being parsed.
    text: &'a [u8],
    /// Where it starts in the whole text.
    offset: u32,
    /// No piece of the same body is behind it.
    is_last: bool,
    /// Some line does not end with its piece: what was made of it is wrong.
    is_open: bool,
    options: ParseOptions,
    /// No line takes the fast path: the piece as a whole is not UTF-8, so each has to be looked at.
    exact_only: bool,
    layouts: Layouts<'a>,
    last_time: time::LastTime,
    rows: Vec<LineRow>,
    values: Vec<u64>,
    strings: Vec<u8>,
    problems: Vec<Problem>,
}

/// What the fast path makes of a line.
enum Fast {
    /// Parsed; the next line starts here.
    Row(usize),
    /// Not as expected: the exact path has to look.
    Unsure,
}

impl<'a> Body<'a> {
    /// Handles a piece. One at a time is made ready and read, so that it stays in a cache meanwhile.
    fn piece(&mut self, piece: &Piece<'a>, exact_only: bool) {
        let text = piece.text;
        (self.text, self.options, self.is_last) = (text, piece.options, piece.is_last);
        self.exact_only = exact_only || (!text.is_ascii() && std::str::from_utf8(text).is_err());
        self.last_time = time::LastTime::default();
        let mut at = 0;
        while at < text.len() && !self.is_open {
            at = self.line(at);
        }
    }

    /// Handles the line that starts at `start`; returns where the next one starts.
    #[inline]
    fn line(&mut self, start: usize) -> usize {
        let mut start = start;
        while let Some(b' ' | b'\t' | 0) = self.text.get(start) {
            start += 1;
        }
        match self.text.get(start) {
            None => return start,
            Some(b'\n') => return start + 1,
            Some(b'\r') if matches!(self.text.get(start + 1), None | Some(b'\n')) => {
                return start + 2;
            }
            Some(b'#') => return self.line_end(start) + 1,
            Some(_) => {}
        }
        if !self.exact_only {
            let (values, strings) = (self.values.len(), self.strings.len());
            match self.fast_line(start) {
                Fast::Row(next) => return next,
                Fast::Unsure => {
                    self.values.truncate(values);
                    self.strings.truncate(strings);
                }
            }
        }
        self.exact_line(start)
    }

    /// Where the line that `from` lies in ends, quotes not regarded.
    fn line_end(&self, from: usize) -> usize {
        memchr(b'\n', &self.text[from..]).map_or(self.text.len(), |n| from + n)
    }

    /// A line whose fields are those expected after the line before.
    #[inline]
    fn fast_line(&mut self, start: usize) -> Fast {
        let text = self.text;
        let Some(found) = memchr3(b' ', b'\\', b'\n', &text[start..]) else { return Fast::Unsure };
        let key_end = start + found;
        if text[key_end] != b' ' {
            return Fast::Unsure;
        }
        let key = &text[start..key_end];
        let Some(layout) = self.layouts.expected(key) else { return Fast::Unsure };
        let values_start = self.values.len();
        let expected = self.layouts.raw(layout);
        let fields_end =
            fields::verify(text, key_end + 1, expected, &mut self.values, &mut self.strings);
        let Some(fields_end) = fields_end else { return Fast::Unsure };
        let Some((time_ns, end, next)) = self.last_time.read(text, fields_end, &self.options)
        else {
            return Fast::Unsure;
        };
        self.layouts.seen(layout);
        self.rows.push(LineRow {
            key_hash: key_hash(key),
            time_ns,
            line_start: self.offset + start as u32,
            line_len: (end - start) as u32,
            key_len: (key_end - start) as u32,
            layout,
            values_start: values_start as u32,
        });
        Fast::Row(next)
    }

    /// Any line: finds where it ends, parses it field by field, or says what is wrong with it.
    #[cold]
    fn exact_line(&mut self, start: usize) -> usize {
        let fields::LineEnd { end, next, is_open } = fields::exact_line_end(self.text, start);
        if is_open && !self.is_last {
            self.is_open = true;
            return next;
        }
        let line = &self.text[start..end];
        let line_start = self.offset + start as u32;
        if self.exact_only && std::str::from_utf8(line).is_err() {
            self.problems.push(Problem::parse(line_start, line, "invalid UTF-8"));
            return next;
        }
        let (values, strings) = (self.values.len(), self.strings.len());
        match self.exact_row(start, line) {
            Ok(row) => self.rows.push(row),
            Err(kind) => {
                self.values.truncate(values);
                self.strings.truncate(strings);
                self.problems.push(Problem { line_start, kind });
            }
        }
        next
    }

    fn exact_row(&mut self, start: usize, line: &[u8]) -> Result<LineRow, ProblemKind> {
        let line_start = self.offset + start as u32;
        let key_len = fields::key_len(line);
        // Whether the key is well-formed is for the store to find out, once a series and not once a
        // row. A line that is bad anyway blames its key first, as InfluxDB does.
        let blame = |reason: String| {
            let reason = fields::check_key(&line[..key_len]).err().unwrap_or(reason);
            Problem::parse(line_start, line, &reason).kind
        };
        let spaces = line[key_len..].iter().take_while(|b| **b == b' ').count();
        let fields_start = start + key_len + spaces;
        let end = start + line.len();
        let values_start = self.values.len();
        let parsed =
            fields::parse(self.text, fields_start..end, &mut self.values, &mut self.strings)
                .map_err(blame)?;
        let longest = parsed.fields.iter().map(|field| field.name.len() - 1).max().unwrap_or(0);
        let together = key_len + FIELD_SEPARATOR_BYTES + longest;
        if key_len <= KEY_BYTES_MAX && together > KEY_BYTES_MAX {
            return Err(blame(KeyError::TooLong(together).to_string()));
        }
        let time_ns = time::exact(&self.text[parsed.end..end], &self.options).map_err(blame)?;
        let key = &self.text[start..start + key_len];
        let layout = self
            .layouts
            .resolve(self.text, key, &parsed.fields, &mut self.values, values_start)
            .map_err(ProblemKind::Dropped)?;
        Ok(LineRow {
            key_hash: key_hash(key),
            time_ns,
            line_start,
            line_len: line.len() as u32,
            key_len: key_len as u32,
            layout,
            values_start: values_start as u32,
        })
    }
}

#[cfg(test)]
mod tests;
