//! Rows of a slice, and rows as lines.

use anyhow::{Context, Result, bail};

use super::layout::{FieldType, Layout, Value};
use super::slices::Slice;
use crate::http::Client;
use crate::influx::{self, Documents, ident};
use crate::line::{push_key, push_series, push_text};

/// Rows in a part of an answer.
const CHUNK_ROWS: &str = "5000";

/// One row.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    /// Keys and values, the empty ones too.
    pub(crate) tags: &'a [(String, String)],
    pub(crate) time_ns: &'a str,
    /// Names as written, types, values.
    pub(crate) fields: &'a [(&'a str, FieldType, Value<'a>)],
}

/// Reads the rows of one measurement in one slice of time, and gives their number.
///
/// # Errors
/// The source breaks off, or `take` fails.
pub(crate) fn read_slice(
    client: &mut Client,
    place: (&str, &str),
    layout: &Layout,
    slice: Slice,
    take: &mut dyn FnMut(&Row<'_>) -> Result<()>,
) -> Result<u64> {
    let (db, policy) = place;
    let from = format!("{}.{}.{}", ident(db), ident(policy), ident(&layout.measurement));
    let statement = format!("SELECT *::field FROM {from} WHERE {} GROUP BY *", slice.condition());
    let params = [("db", db), ("epoch", "ns"), ("chunked", "true"), ("chunk_size", CHUNK_ROWS)];
    let ask = influx::query(&statement, &params, true);
    let mut documents = Documents::new(client.ask_ok(&ask)?);
    let mut count = 0;
    while let Some(document) = documents.next()? {
        if let Some(error) = document.error {
            bail!("{statement}: {error}");
        }
        for result in &document.results {
            if let Some(error) = &result.error {
                bail!("{statement}: {error}");
            }
            for series in result.each_series()? {
                count += take_series(&series, layout, take)?;
            }
        }
    }
    Ok(count)
}

fn take_series(
    series: &influx::Series<'_>,
    layout: &Layout,
    take: &mut dyn FnMut(&Row<'_>) -> Result<()>,
) -> Result<u64> {
    let tags: Vec<(String, String)> =
        series.tags.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let mut texts: Vec<Option<String>> = Vec::new();
    for values in &series.values {
        let Some((time, values)) = values.split_first() else { bail!("a row without a time") };
        texts.clear();
        for value in values {
            let is_text = value.get().starts_with('"');
            let text = is_text.then(|| serde_json::from_str(value.get())).transpose();
            texts.push(text.context("not a text")?);
        }
        let mut fields = Vec::with_capacity(values.len());
        for ((column, raw), text) in series.columns[1..].iter().zip(values).zip(&texts) {
            let value = match (raw.get(), text) {
                ("null", _) => continue,
                ("true", _) => Value::Boolean(true),
                ("false", _) => Value::Boolean(false),
                (_, Some(text)) => Value::Text(text),
                (digits, None) => Value::Number(digits),
            };
            let (name, kind) = layout.place(column, value)?;
            fields.push((name, kind, value));
        }
        if !fields.is_empty() {
            take(&Row { tags: &tags, time_ns: time.get(), fields: &fields })?;
        }
    }
    Ok(series.values.len() as u64)
}

/// Makes a line of a row, without the line end.
pub(crate) fn line_of(measurement: &str, row: &Row<'_>, line: &mut Vec<u8>) {
    line.clear();
    push_series(line, measurement, row.tags);
    let mut separator = b' ';
    for (name, kind, value) in row.fields {
        line.push(separator);
        separator = b',';
        push_key(line, name);
        line.push(b'=');
        match value {
            Value::Boolean(true) => line.extend_from_slice(b"true"),
            Value::Boolean(false) => line.extend_from_slice(b"false"),
            Value::Text(text) => push_text(line, text),
            Value::Number(digits) => {
                line.extend_from_slice(digits.as_bytes());
                match kind {
                    FieldType::Integer => line.push(b'i'),
                    FieldType::Unsigned => line.push(b'u'),
                    _ => {}
                }
            }
        }
    }
    line.push(b' ');
    line.extend_from_slice(row.time_ns.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let tags =
            [("a b".to_owned(), "x=y,\u{e9}".to_owned()), ("none".to_owned(), String::new())];
        let fields = [
            ("f=", FieldType::Float, Value::Number("-1e-7")),
            ("i", FieldType::Integer, Value::Number("-9223372036854775808")),
            ("u", FieldType::Unsigned, Value::Number("18446744073709551615")),
            ("s", FieldType::String, Value::Text("a\\\"\n,= ")),
            ("b", FieldType::Boolean, Value::Boolean(false)),
        ];
        let row = Row { tags: &tags, time_ns: "-5", fields: &fields };
        let mut line = Vec::new();
        line_of("m,=\" x", &row, &mut line);
        let expected = "m\\,=\"\\ x,a\\ b=x\\=y\\,\u{e9} f\\==-1e-7,i=-9223372036854775808i,\
                        u=18446744073709551615u,s=\"a\\\\\\\"\n,= \",b=false -5";
        assert_eq!(String::from_utf8(line).unwrap(), expected);
    }
}
