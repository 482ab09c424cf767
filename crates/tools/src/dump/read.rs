//! Takes a dump apart, line by line; a line goes on behind a line break inside a quoted text.

use std::io::BufRead;

use anyhow::{Context, Result, bail};

/// Longest line of a dump.
const LINE_BYTES_MAX: usize = 16 << 20;

/// A piece of a dump.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// A statement to execute.
    Statement(&'a str),
    /// Lines that follow belong to this database.
    Database(&'a str),
    /// Lines that follow belong to this retention policy.
    Policy(&'a str),
    /// A line of line protocol.
    Line(&'a [u8]),
}

/// Reads a dump.
pub(crate) struct DumpReader<R> {
    input: R,
    line: Vec<u8>,
    /// Of the first line in `line`.
    number: u64,
    next_number: u64,
    in_statements: bool,
}

impl<R: BufRead> DumpReader<R> {
    /// `only_lines`: lines come first, not statements; for files without headings.
    pub(crate) fn new(input: R, only_lines: bool) -> Self {
        Self { input, line: Vec::new(), number: 0, next_number: 1, in_statements: !only_lines }
    }

    /// Number of the line that was read last, from 1.
    pub(crate) fn line_number(&self) -> u64 {
        self.number
    }

    /// The next piece.
    ///
    /// # Errors
    /// The file cannot be read, or holds something that is no dump.
    pub(crate) fn next(&mut self) -> Result<Option<Item<'_>>> {
        loop {
            self.line.clear();
            self.number = self.next_number;
            if !self.read_on()? {
                return Ok(None);
            }
            let first = self.line.trim_ascii_start();
            if first.is_empty() {
                continue;
            }
            if first[0] != b'#' {
                break;
            }
            let comment = String::from_utf8_lossy(first.trim_ascii()).into_owned();
            match comment.as_str() {
                "# DDL" => self.in_statements = true,
                "# DML" => self.in_statements = false,
                _ if comment.starts_with("# CONTEXT-") => return self.context().map(Some),
                _ => {}
            }
        }
        if self.in_statements {
            let number = self.number;
            let text = std::str::from_utf8(self.line.trim_ascii());
            let text = text.with_context(|| format!("line {number}: not UTF-8"))?;
            return Ok(Some(Item::Statement(text)));
        }
        while ends_in_text(&self.line) {
            if !self.read_on()? {
                bail!("line {}: a text in quotes does not end", self.number);
            }
        }
        let end = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        Ok(Some(Item::Line(end.strip_suffix(b"\r").unwrap_or(end))))
    }

    fn context(&self) -> Result<Item<'_>> {
        let text = std::str::from_utf8(self.line.trim_ascii());
        let text = text.with_context(|| format!("line {}: not UTF-8", self.number))?;
        let Some((key, name)) = text.split_once(':') else {
            bail!("line {}: {text:?} has no colon", self.number)
        };
        match key {
            "# CONTEXT-DATABASE" => Ok(Item::Database(name.trim())),
            "# CONTEXT-RETENTION-POLICY" => Ok(Item::Policy(name.trim())),
            _ => bail!("line {}: unknown context {key:?}", self.number),
        }
    }

    /// Adds a line of the file; false at its end.
    fn read_on(&mut self) -> Result<bool> {
        let room = LINE_BYTES_MAX.saturating_sub(self.line.len());
        let mut limited = std::io::Read::take(&mut self.input, room as u64);
        let count = limited.read_until(b'\n', &mut self.line);
        let count = count.with_context(|| format!("line {}", self.next_number))?;
        if self.line.len() >= LINE_BYTES_MAX {
            bail!("line {}: longer than {LINE_BYTES_MAX} bytes", self.number);
        }
        self.next_number += 1;
        Ok(count > 0)
    }
}

/// Whether a line of line protocol stops inside a quoted text.
fn ends_in_text(line: &[u8]) -> bool {
    let mut bytes = line.iter();
    // Quotes mean nothing before the first space that is no part of a name.
    loop {
        match bytes.next() {
            None => return false,
            Some(b'\\') => drop(bytes.next()),
            Some(b' ') => break,
            Some(_) => {}
        }
    }
    let mut before = b' ';
    let mut in_text = false;
    while let Some(&byte) = bytes.next() {
        match (in_text, byte) {
            (_, b'\\') => drop(bytes.next()),
            (true, b'"') => in_text = false,
            (false, b'"') => in_text = before == b'=',
            _ => {}
        }
        before = byte;
    }
    in_text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(text: &str, only_lines: bool) -> Vec<String> {
        let mut reader = DumpReader::new(text.as_bytes(), only_lines);
        let mut items = Vec::new();
        while let Some(item) = reader.next().unwrap() {
            items.push(match item {
                Item::Line(line) => String::from_utf8(line.to_vec()).unwrap(),
                item => format!("{item:?}"),
            });
        }
        items
    }

    #[test]
    fn a_dump() {
        let text = "# INFLUXDB EXPORT: x\n# DDL\nCREATE DATABASE d WITH NAME autogen\n\n# DML\n\
                    # CONTEXT-DATABASE:d\n# CONTEXT-RETENTION-POLICY: autogen\n# writing\n\
                    m v=1 1\r\nm s=\"a\nb\\\"\nc\",t=\"\" 2\nm\\ \",q=\" v=2 3";
        let expected = [
            "Statement(\"CREATE DATABASE d WITH NAME autogen\")",
            "Database(\"d\")",
            "Policy(\"autogen\")",
            "m v=1 1",
            "m s=\"a\nb\\\"\nc\",t=\"\" 2",
            "m\\ \",q=\" v=2 3",
        ];
        assert_eq!(items(text, false), expected);
    }

    #[test]
    fn lines_without_headings() {
        assert_eq!(items("# note\nm v=1\n\n  m v=2\n", true), ["m v=1", "  m v=2"]);
    }

    #[test]
    fn mistakes() {
        let error = |text: &str| {
            let mut reader = DumpReader::new(text.as_bytes(), true);
            loop {
                match reader.next() {
                    Err(error) => break format!("{error:#}"),
                    Ok(item) => assert!(item.is_some(), "{text}"),
                }
            }
        };
        assert!(error("m v=1\nm s=\"a\nb").contains("line 2"), "{}", error("m v=1\nm s=\"a\nb"));
        assert!(error("# CONTEXT-X:1\n").contains("unknown context"));
        assert!(error(&"x".repeat(LINE_BYTES_MAX + 1)).contains("longer than"));
    }
}
