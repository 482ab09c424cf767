//! What is asked of a server that speaks InfluxDB's API: statements and writes.
//!
//! Answers come as documents, one a line; one is held at a time, which `chunked` bounds.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::BufRead;

use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use form_urlencoded::Serializer;
use hyper::Method;
use influxql::{quote_ident, quote_string};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::http::{Answer, Ask, Client};

const FORM: &str = "application/x-www-form-urlencoded";

/// A `POST /query`; parameters that are empty are left out.
pub(crate) fn query(statements: &str, params: &[(&str, &str)], repeatable: bool) -> Ask {
    let mut form = Serializer::new(String::new());
    form.append_pair("q", statements);
    form.extend_pairs(params.iter().filter(|(_, value)| !value.is_empty()));
    Ask {
        method: Method::POST,
        target: "/query".to_owned(),
        content_type: FORM,
        body: form.finish().into(),
        repeatable,
    }
}

/// A `POST /write`; parameters that are empty are left out.
pub(crate) fn write(lines: Bytes, params: &[(&str, &str)]) -> Ask {
    let mut form = Serializer::new(String::new());
    form.extend_pairs(params.iter().filter(|(_, value)| !value.is_empty()));
    Ask {
        method: Method::POST,
        target: format!("/write?{}", form.finish()),
        content_type: "text/plain; charset=utf-8",
        body: lines,
        repeatable: true,
    }
}

/// Makes sure that a server is there, and gives its version.
///
/// # Errors
/// It is not.
pub(crate) fn ping(client: &mut Client) -> Result<String> {
    let answer = client.ask(&Ask::get("/ping"))?;
    let version = answer.header("X-Influxdb-Version").unwrap_or("unknown").to_owned();
    answer.finish()?;
    Ok(version)
}

/// An answer that breaks off, or is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadAnswer(String);

impl fmt::Display for BadAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn bad_answer(what: &str) -> BadAnswer {
    BadAnswer(what.to_owned())
}

/// One document of an answer.
#[derive(Debug, Deserialize)]
pub(crate) struct Document<'a> {
    #[serde(borrow, default)]
    pub(crate) results: Vec<StatementResult<'a>>,
    #[serde(borrow, default)]
    pub(crate) error: Option<Cow<'a, str>>,
}

/// What one statement says, or a part of it.
#[derive(Debug, Deserialize)]
pub(crate) struct StatementResult<'a> {
    #[serde(borrow, default)]
    pub(crate) series: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) messages: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) error: Option<Cow<'a, str>>,
}

/// Rows of one series.
#[derive(Debug, Deserialize)]
pub(crate) struct Series<'a> {
    #[serde(borrow, default)]
    pub(crate) name: Cow<'a, str>,
    #[serde(default)]
    pub(crate) tags: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) columns: Vec<String>,
    /// As written in the document: numbers keep every digit.
    #[serde(borrow, default)]
    pub(crate) values: Vec<Vec<&'a RawValue>>,
}

/// A remark of the server.
#[derive(Debug, Deserialize)]
pub(crate) struct Message {
    pub(crate) level: String,
    pub(crate) text: String,
}

impl<'a> StatementResult<'a> {
    /// The series, taken apart.
    ///
    /// # Errors
    /// They are not what a server sends.
    pub(crate) fn each_series(&self) -> Result<Vec<Series<'a>>> {
        let series = self.series.iter().map(|raw| serde_json::from_str(raw.get()));
        series.collect::<Result<_, _>>().context(bad_answer("not rows"))
    }

    /// The remarks.
    ///
    /// # Errors
    /// They are not what a server sends.
    pub(crate) fn each_message(&self) -> Result<Vec<Message>> {
        let messages = self.messages.map(|raw| serde_json::from_str(raw.get())).transpose();
        Ok(messages.context(bad_answer("not messages"))?.unwrap_or_default())
    }
}

/// The text that a value stands for; `None` for null.
pub(crate) fn text_of(value: &RawValue) -> Result<Option<Cow<'_, str>>> {
    let raw = value.get();
    match raw.as_bytes().first() {
        Some(b'n') => Ok(None),
        Some(b'"') => Ok(Some(Cow::Owned(serde_json::from_str(raw)?))),
        _ => Ok(Some(Cow::Borrowed(raw))),
    }
}

/// Reads the documents of an answer one by one.
#[derive(Debug)]
pub(crate) struct Documents<'c> {
    answer: Answer<'c>,
    line: Vec<u8>,
}

impl<'c> Documents<'c> {
    pub(crate) fn new(answer: Answer<'c>) -> Self {
        Self { answer, line: Vec::new() }
    }

    /// The next one; `None` after the last.
    ///
    /// # Errors
    /// The connection broke, or what comes is no document.
    pub(crate) fn next(&mut self) -> Result<Option<Document<'_>>> {
        loop {
            self.line.clear();
            let read = self.answer.read_until(b'\n', &mut self.line);
            if read.with_context(|| bad_answer("the answer broke off"))? == 0 {
                return Ok(None);
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        let document = serde_json::from_slice(&self.line).with_context(|| {
            let start = &self.line[..self.line.len().min(200)];
            BadAnswer(format!("not an answer of InfluxDB: {}", String::from_utf8_lossy(start)))
        })?;
        Ok(Some(document))
    }
}

/// Rows of an answer: what a small question is asked for.
pub(crate) type Rows = Vec<BTreeMap<String, String>>;

/// Asks a statement whose answer is small, and gives its rows as texts by column; the name and the
/// tags of a row's series are columns too, called `@name` and by the tags' names.
///
/// # Errors
/// The server cannot be asked, or refuses.
pub(crate) fn small_rows(client: &mut Client, db: &str, statement: &str) -> Result<Rows> {
    let ask = query(statement, &[("db", db), ("epoch", "ns")], true);
    let context = || format!("asked for {statement}");
    let mut documents = Documents::new(client.ask_ok(&ask).with_context(context)?);
    let mut rows = Vec::new();
    while let Some(document) = documents.next()? {
        if let Some(error) = document.error {
            return Err(anyhow!("{error}")).with_context(context);
        }
        for result in &document.results {
            if let Some(error) = &result.error {
                return Err(anyhow!("{error}")).with_context(context);
            }
            for series in result.each_series()? {
                add_rows(&series, &mut rows)?;
            }
        }
    }
    Ok(rows)
}

fn add_rows(series: &Series<'_>, rows: &mut Rows) -> Result<()> {
    for values in &series.values {
        let mut row = series.tags.clone();
        row.insert("@name".to_owned(), series.name.clone().into_owned());
        for (column, value) in series.columns.iter().zip(values) {
            if let Some(text) = text_of(value)? {
                row.insert(column.clone(), text.into_owned());
            }
        }
        rows.push(row);
    }
    Ok(())
}

/// Executes a statement that answers with nothing.
///
/// # Errors
/// The server cannot be asked, or refuses.
pub(crate) fn execute(client: &mut Client, db: &str, statement: &str) -> Result<()> {
    let ask = query(statement, &[("db", db)], false);
    let mut documents = Documents::new(client.ask_ok(&ask)?);
    while let Some(document) = documents.next()? {
        let failed = document.results.iter().find_map(|result| result.error.as_ref());
        if let Some(error) = document.error.as_ref().or(failed) {
            bail!("{error}");
        }
    }
    Ok(())
}

/// A name as InfluxQL quotes it, needed or not.
pub(crate) fn ident(name: &str) -> String {
    quote_ident(name).always().to_string()
}

/// A text as InfluxQL quotes it.
pub(crate) fn string(text: &str) -> String {
    quote_string(text).to_string()
}
