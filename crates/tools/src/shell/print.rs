//! Prints answers as columns, CSV or JSON.
//!
//! A long answer comes in parts: as long as a part's first series has the name, tags and columns of
//! the one before, its rows follow without a new header.

use std::borrow::Cow;
use std::io::Write;

use anyhow::Result;

use super::json;
use super::table::align;
use crate::csv_text;
use crate::influx::{Documents, Series, StatementResult, text_of};

/// Columns line up over so much text at a time.
const ALIGNED_BYTES_MAX: usize = 64 << 20;

/// How answers look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Column,
    Csv,
    Json,
}

impl Format {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "column" => Some(Self::Column),
            "csv" => Some(Self::Csv),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Column => "column",
            Self::Csv => "csv",
            Self::Json => "json",
        }
    }
}

/// Name, tags and columns of a series.
type Header = (String, Vec<(String, String)>, Vec<String>);

/// Prints one answer.
pub(super) struct Printer<'o> {
    out: &'o mut dyn Write,
    format: Format,
    pretty: bool,
    /// Lines that are not lined up yet, cells separated by tabs.
    lines: String,
    header: Option<Header>,
    results: usize,
    /// The first failure of a statement.
    error: Option<String>,
}

impl<'o> Printer<'o> {
    pub(super) fn new(out: &'o mut dyn Write, format: Format, pretty: bool) -> Self {
        Self { out, format, pretty, lines: String::new(), header: None, results: 0, error: None }
    }

    /// Prints everything, and gives the first failure of a statement.
    ///
    /// # Errors
    /// The answer breaks off, or nobody reads what is printed.
    pub(super) fn print(mut self, documents: &mut Documents<'_>) -> Result<Option<String>> {
        while let Some(document) = documents.next()? {
            if let Some(error) = document.error {
                self.error.get_or_insert_with(|| error.into_owned());
            }
            for result in &document.results {
                if let Some(error) = &result.error {
                    self.error.get_or_insert_with(|| error.clone().into_owned());
                }
                match self.format {
                    Format::Json => self.json(result)?,
                    Format::Column | Format::Csv => self.rows(result)?,
                }
                self.results += 1;
            }
        }
        self.finish()?;
        Ok(self.error)
    }

    /// Prints that there is no answer, where that is part of the format.
    ///
    /// # Errors
    /// Nobody reads it.
    pub(super) fn refused(self, error: &str) -> Result<()> {
        if self.format != Format::Json {
            return Ok(());
        }
        let text = format!("{{\"error\":{}}}", json::string(error)?);
        let text = if self.pretty { json::indent(&text, 0) } else { text };
        Ok(writeln!(self.out, "{text}")?)
    }

    fn finish(&mut self) -> Result<()> {
        let end = match (self.format, self.results) {
            (Format::Json, 0) if self.error.is_none() => "{}\n",
            (Format::Json, 1..) if self.pretty => "\n    ]\n}\n",
            (Format::Json, 1..) => "]}\n",
            _ => "",
        };
        self.flush()?;
        self.out.write_all(end.as_bytes())?;
        Ok(self.out.flush()?)
    }

    fn json(&mut self, result: &StatementResult<'_>) -> Result<()> {
        let mut parts = Vec::new();
        if !result.series.is_empty() {
            let series: Vec<&str> = result.series.iter().map(|series| series.get()).collect();
            parts.push(format!("\"series\":[{}]", series.join(",")));
        }
        if let Some(messages) = result.messages {
            parts.push(format!("\"messages\":{}", messages.get()));
        }
        if let Some(error) = &result.error {
            parts.push(format!("\"error\":{}", json::string(error)?));
        }
        let text = format!("{{{}}}", parts.join(","));
        let first = self.results == 0;
        let before = match (self.pretty, first) {
            (false, true) => "{\"results\":[",
            (false, false) => ",",
            (true, true) => "{\n    \"results\": [\n        ",
            (true, false) => ",\n        ",
        };
        self.out.write_all(before.as_bytes())?;
        let text = if self.pretty { json::indent(&text, 2) } else { text };
        Ok(self.out.write_all(text.as_bytes())?)
    }

    fn rows(&mut self, result: &StatementResult<'_>) -> Result<()> {
        for message in result.each_message()? {
            self.text(&format!("{}: {}.", message.level, message.text))?;
        }
        let all = result.each_series()?;
        let header = all.first().map(header_of);
        let goes_on = header.is_some() && header == self.header;
        if !goes_on {
            if header.is_some() {
                self.header = header;
            }
            if self.results > 0 && self.format == Format::Column {
                self.text("")?;
            }
        }
        for (at, series) in all.iter().enumerate() {
            if !goes_on {
                self.header_lines(series, at)?;
            }
            self.series_rows(series)?;
        }
        Ok(())
    }

    fn header_lines(&mut self, series: &Series<'_>, at: usize) -> Result<()> {
        if self.format == Format::Csv {
            let mut names = Vec::new();
            if !series.name.is_empty() {
                names.push("name");
            }
            if !series.tags.is_empty() {
                names.push("tags");
            }
            names.extend(series.columns.iter().map(String::as_str));
            return self.line(&names);
        }
        if at > 0 {
            self.text("")?;
        }
        if !series.name.is_empty() {
            self.text(&format!("name: {}", series.name))?;
        }
        if !series.tags.is_empty() {
            self.text(&format!("tags: {}", tags_of(series, ", ")))?;
        }
        let dashes: Vec<String> =
            series.columns.iter().map(|name| "-".repeat(name.len())).collect();
        self.line(&series.columns)?;
        self.line(&dashes)
    }

    fn series_rows(&mut self, series: &Series<'_>) -> Result<()> {
        let mut first = Vec::new();
        if self.format == Format::Csv {
            if !series.name.is_empty() {
                first.push(series.name.to_string());
            }
            if !series.tags.is_empty() {
                first.push(tags_of(series, ","));
            }
        }
        for values in &series.values {
            let mut cells: Vec<Cow<'_, str>> =
                first.iter().map(|cell| Cow::Borrowed(cell.as_str())).collect();
            for value in values {
                cells.push(text_of(value)?.unwrap_or_default());
            }
            self.line(&cells)?;
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<()> {
        self.line(&[text])
    }

    fn line(&mut self, cells: &[impl AsRef<str>]) -> Result<()> {
        if self.format == Format::Csv {
            let record = csv_text::record(cells.iter().map(AsRef::as_ref));
            return Ok(self.out.write_all(record.as_bytes())?);
        }
        for (at, cell) in cells.iter().enumerate() {
            if at > 0 {
                self.lines.push('\t');
            }
            self.lines.push_str(cell.as_ref());
        }
        self.lines.push('\n');
        if self.lines.len() >= ALIGNED_BYTES_MAX {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let lines = std::mem::take(&mut self.lines);
        Ok(self.out.write_all(align(&lines).as_bytes())?)
    }
}

fn header_of(series: &Series<'_>) -> Header {
    let tags = series.tags.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    (series.name.clone().into_owned(), tags, series.columns.clone())
}

fn tags_of(series: &Series<'_>, separator: &str) -> String {
    let tags: Vec<String> =
        series.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
    tags.join(separator)
}
