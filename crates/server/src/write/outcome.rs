//! What a writer is told of rows that were not stored.
//!
//! InfluxDB tells two kinds apart. Lines that cannot be read are named one by one; rows that may not
//! be stored are counted, and the first reason is given. If there are both, only the second kind is
//! reported. A bad key is found by the store but is a line that cannot be read all the same.

use std::fmt::Write;
use std::ops::Range;

use ingest::line_protocol::{Parsed, Problem, ProblemKind};
use model::LineBatch;
use store::{RejectReason, RejectedRow};

use crate::error::HttpError;

/// Longest list of lines that could not be read, bytes.
const LIST_BYTES_MAX: usize = 64 << 10;
/// Longest part of a line that is repeated, bytes.
const LINE_BYTES_MAX: usize = 4096;

/// Number of lines that could not be read.
pub(super) fn unparsable(problems: &[Problem]) -> usize {
    problems.iter().filter(|p| matches!(p.kind, ProblemKind::Unparsable(_))).count()
}

/// What became of a body's lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report<'a> {
    batch: &'a LineBatch<'a>,
    /// How many of the batch's rows are of the body.
    rows: usize,
    problems: &'a [Problem],
    rejected: &'a [RejectedRow],
}

impl<'a> Report<'a> {
    /// Of a body that was parsed alone.
    pub(super) fn of(parsed: &'a Parsed<'a>, rejected: &'a [RejectedRow]) -> Self {
        let Parsed { batch, problems } = parsed;
        Self { batch, rows: batch.rows.len(), problems, rejected }
    }

    /// Of one of several: its lines start where `lines` says.
    pub(super) fn within(
        parsed: &'a Parsed<'a>,
        rejected: &'a [RejectedRow],
        lines: Range<u32>,
    ) -> Self {
        let batch = &parsed.batch;
        let start_of = |rejected: &RejectedRow| batch.rows[rejected.row as usize].line_start;
        Self {
            batch,
            rows: within(&batch.rows, &lines, |row| row.line_start).len(),
            problems: within(&parsed.problems, &lines, |problem| problem.line_start),
            rejected: within(rejected, &lines, start_of),
        }
    }

    /// Whether there are rows that could be read.
    pub(super) fn has_rows(&self) -> bool {
        self.rows > 0
    }

    /// The refusal that tells of all that went wrong; none if nothing did.
    pub(super) fn answer(&self) -> Result<(), HttpError> {
        if self.problems.is_empty() && self.rejected.is_empty() {
            return Ok(());
        }
        if let Some(text) = self.dropped() {
            return Err(HttpError::bad_request(text));
        }
        let bad_keys = self.rejected.len();
        let lines = self.unreadable_lines();
        Err(HttpError::bad_request(if self.rows > bad_keys {
            format!("partial write: {lines} dropped=0")
        } else {
            lines
        }))
    }

    /// The message for rows that may not be stored, if there are any.
    fn dropped(&self) -> Option<String> {
        // What is too old is told only if nothing else is wrong, as InfluxDB does.
        let is_old = |row: &RejectedRow| matches!(row.reason, RejectReason::BeyondRetention);
        let by_rows = |row: &&RejectedRow| !matches!(row.reason, RejectReason::Key(_));
        let only_old = self.rejected.iter().filter(by_rows).all(is_old)
            && !self.problems.iter().any(|p| matches!(p.kind, ProblemKind::Dropped(_)));
        let by_store = self.rejected.iter().filter(by_rows).filter(|row| only_old || !is_old(row));
        let by_parser = self.problems.iter().filter_map(|problem| match &problem.kind {
            ProblemKind::Dropped(reason) => Some((problem.line_start, reason)),
            ProblemKind::Unparsable(_) => None,
        });
        let count = by_store.clone().count() + by_parser.clone().count();
        let start_of = |row: &RejectedRow| self.batch.rows[row.row as usize].line_start;
        let of_store = by_store.clone().next().map(|row| (start_of(row), row.reason.to_string()));
        let of_parser = by_parser.clone().next().map(|(start, reason)| (start, reason.clone()));
        let (_, reason) = of_store.into_iter().chain(of_parser).min_by_key(|(start, _)| *start)?;
        Some(format!("partial write: {reason} dropped={count}"))
    }

    /// All lines that could not be read, in the order they came in.
    fn unreadable_lines(&self) -> String {
        let mut problems = self.problems.iter().peekable();
        let mut keys = self.rejected.iter().peekable();
        let mut list = List::default();
        loop {
            let key_row = keys.peek().map(|r| &self.batch.rows[r.row as usize]);
            let problem_first = match (problems.peek(), key_row) {
                (None, None) => return list.finish(),
                (Some(problem), Some(row)) => problem.line_start < row.line_start,
                (problem, _) => problem.is_some(),
            };
            if problem_first {
                match problems.next().map(|problem| &problem.kind) {
                    Some(ProblemKind::Unparsable(text) | ProblemKind::Dropped(text)) => {
                        list.add(text);
                    }
                    None => {}
                }
            } else if let (Some(row), Some(rejected)) = (key_row, keys.next()) {
                list.add(&bad_key(self.batch.line(row), &rejected.reason));
            }
        }
    }
}

/// The part of `all`, which ascend by line, whose lines start within `lines`.
fn within<'a, T>(all: &'a [T], lines: &Range<u32>, start_of: impl Fn(&T) -> u32) -> &'a [T] {
    let first = all.partition_point(|one| start_of(one) < lines.start);
    let behind = all.partition_point(|one| start_of(one) < lines.end);
    &all[first..behind]
}

fn bad_key(line: &[u8], reason: &RejectReason) -> String {
    let quoted = String::from_utf8_lossy(&line[..line.len().min(LINE_BYTES_MAX)]);
    let more = if line.len() > LINE_BYTES_MAX { "..." } else { "" };
    format!("unable to parse '{quoted}{more}': {reason}")
}

/// Lines of text, as many as fit.
#[derive(Default)]
struct List {
    text: String,
    left_out: usize,
}

impl List {
    fn add(&mut self, line: &str) {
        if self.left_out > 0 || self.text.len() + line.len() > LIST_BYTES_MAX {
            self.left_out += 1;
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(line);
    }

    fn finish(mut self) -> String {
        if self.left_out > 0 {
            let more = write!(self.text, "\n... and {} more", self.left_out);
            more.expect("BUG: a string takes any text");
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ingest::line_protocol::{LineParser, ParseOptions, Precision};
    use model::KeyError;

    const OPTIONS: ParseOptions =
        ParseOptions { precision: Precision::Nanosecond, default_time_ns: 0 };

    /// What is said of `text` when the store refuses some of its rows.
    fn said(text: &str, rejected: &[(u32, RejectReason)]) -> String {
        let parsed = LineParser::new().parse(text.as_bytes(), &OPTIONS);
        let rejected: Vec<RejectedRow> = rejected
            .iter()
            .map(|(row, reason)| RejectedRow { row: *row, reason: reason.clone() })
            .collect();
        Report::of(&parsed, &rejected)
            .answer()
            .map_or_else(|error| error.text, |()| "fine".to_owned())
    }

    #[test]
    fn lines_that_cannot_be_read() {
        assert_eq!(said("m v=1 1\n# only a comment\n", &[]), "fine");
        assert_eq!(said("m", &[]), "unable to parse 'm': missing fields");
        assert_eq!(
            said("m\nm v=1 x\n", &[]),
            "unable to parse 'm': missing fields\nunable to parse 'm v=1 x': bad timestamp"
        );
        assert_eq!(
            said("m v=1\nm\n", &[]),
            "partial write: unable to parse 'm': missing fields dropped=0"
        );
    }

    #[test]
    fn keys_that_the_store_refuses_are_such_lines() {
        let key = RejectReason::Key(KeyError::DuplicateTags);
        let line = "unable to parse 'm,a=1,a=2 v=1': duplicate tags";
        assert_eq!(said("m,a=1,a=2 v=1", &[(0, key.clone())]), line);
        assert_eq!(
            said("x\nm,a=1,a=2 v=1\ny\nm v=1", &[(0, key)]),
            format!(
                "partial write: unable to parse 'x': missing fields\n{line}\nunable to parse 'y': \
                 missing fields dropped=0"
            )
        );
    }

    #[test]
    fn rows_that_may_not_be_stored() {
        let late = RejectReason::BeyondRetention;
        assert_eq!(
            said("m v=1 1\nm v=2 2\nm v=3 3", &[(0, late.clone()), (2, late.clone())]),
            "partial write: points beyond retention policy dropped=2"
        );
        assert_eq!(
            said("bad\nm v=1 1\nm time=2 2\nm v=3 3", &[(1, late)]),
            "partial write: invalid field name: input field \"time\" on measurement \"m\" is \
             invalid dropped=1",
            "neither rows that are too old nor lines that cannot be read"
        );
    }

    #[test]
    fn long_lists_are_cut() {
        let text = "bad\n".repeat(100_000);
        let said = said(&text, &[]);
        assert!(said.len() < LIST_BYTES_MAX + 100);
        let lines = said.lines().count() - 1;
        assert!(said.ends_with(&format!("\n... and {} more", 100_000 - lines)), "{lines}");
    }
}
