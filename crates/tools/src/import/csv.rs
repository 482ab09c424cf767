//! CSV to lines: what `nyala export --format csv` and InfluxDB's own `/query` write, and tables of
//! anybody.
//!
//! Columns by name: `database`, `retention_policy`, `measurement` (or `name`), `time`, `tags`
//! (`a=b,c=d`); `x::tag` and the columns of `--tags` are tags; `x::float` and so on are fields of that
//! type. Every row has a time. A column without a type is one of floats, booleans or texts, whichever its first value is.
//! A new header may follow at any time. An empty cell is no value.

use std::collections::HashMap;
use std::io::BufRead;

use anyhow::{Context, Result, bail};
use csv::{ReaderBuilder, StringRecord};
use jiff::Timestamp;

use super::options::Options;
use crate::line::{push_key, push_series, push_text};
use crate::progress::Progress;
use crate::source::FieldType;
use crate::write::{LineWriter, Target};

/// What a column holds.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Column {
    Database,
    Policy,
    Measurement,
    Time,
    /// Several tags in one cell.
    Tags,
    Tag(String),
    /// The type is found out from the first value.
    Field(String, Option<FieldType>),
}

/// Reads CSV and writes its rows.
///
/// # Errors
/// It cannot be read, or makes no sense; the text says in which line.
pub(super) fn load(
    input: impl BufRead,
    writer: &mut LineWriter<'_>,
    options: &Options,
    progress: &mut Progress,
) -> Result<()> {
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input);
    let mut record = StringRecord::new();
    let mut columns: Vec<Column> = Vec::new();
    let default = writer.target().clone();
    let mut line = Vec::new();
    while reader.read_record(&mut record)? {
        let number = record.position().map_or(0, csv::Position::line);
        let context = || format!("line {number}");
        if columns.is_empty() || is_header(&record, &columns) {
            columns = header(&record, options).with_context(context)?;
            continue;
        }
        if record.len() != columns.len() {
            bail!("line {number}: {} cells under {} columns", record.len(), columns.len());
        }
        let mut target = default.clone();
        let wrote = row(&record, &mut columns, options, &mut target, &mut line);
        if !wrote.with_context(context)? {
            continue;
        }
        if target.database.is_empty() {
            bail!("line {number}: which database? Say --database");
        }
        if target != *writer.target() {
            writer.set_target(target)?;
        }
        writer.add(&line).with_context(context)?;
        progress.add(1, || format!("line {number}"));
    }
    writer.flush()
}

/// Whether a record names columns again: a row has no time called `time`.
fn is_header(record: &StringRecord, columns: &[Column]) -> bool {
    let time = columns.iter().position(|column| *column == Column::Time);
    let first = record.get(0).unwrap_or("");
    time.is_some_and(|at| record.get(at) == Some("time"))
        || (first == "name" && (record.get(1) == Some("time") || record.get(2) == Some("time")))
}

fn header(record: &StringRecord, options: &Options) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    for cell in record {
        let (name, kind) = match cell.rsplit_once("::") {
            Some((name, kind)) => (name, Some(kind)),
            None => (cell, None),
        };
        columns.push(match (cell, kind) {
            ("database", _) => Column::Database,
            ("retention_policy", _) => Column::Policy,
            ("measurement" | "name", _) if options.measurement.is_empty() => Column::Measurement,
            ("time", _) => Column::Time,
            ("tags", _) => Column::Tags,
            (_, Some("tag")) => Column::Tag(name.to_owned()),
            (_, Some(kind)) => Column::Field(name.to_owned(), Some(FieldType::parse(kind)?)),
            (_, None) if options.tags.iter().any(|tag| tag == name) => Column::Tag(name.to_owned()),
            (_, None) => Column::Field(name.to_owned(), None),
        });
    }
    if options.measurement.is_empty() && !columns.contains(&Column::Measurement) {
        bail!("no column `measurement` or `name`: say --measurement");
    }
    if !columns.contains(&Column::Time) {
        bail!("no column `time`: rows of a series without one would replace each other");
    }
    if let Some(missing) =
        options.tags.iter().find(|tag| !columns.contains(&Column::Tag((*tag).clone())))
    {
        bail!("no column {missing:?}, which --tags names");
    }
    if !columns.iter().any(|column| matches!(column, Column::Field(..))) {
        bail!("no column is a field");
    }
    Ok(columns)
}

/// Makes a line of a record; false if it has no value.
fn row(
    record: &StringRecord,
    columns: &mut [Column],
    options: &Options,
    target: &mut Target,
    line: &mut Vec<u8>,
) -> Result<bool> {
    let mut measurement = options.measurement.as_str();
    let mut time = String::new();
    let mut tags = Vec::new();
    let mut fields = Vec::new();
    for (column, cell) in columns.iter_mut().zip(record) {
        if cell.is_empty() {
            continue;
        }
        match column {
            Column::Database => cell.clone_into(&mut target.database),
            Column::Policy => cell.clone_into(&mut target.policy),
            Column::Measurement => measurement = cell,
            Column::Time => time = time_of(cell, &options.precision)?,
            Column::Tags => tags.extend(split_tags(cell)?),
            Column::Tag(key) => tags.push((key.clone(), cell.to_owned())),
            Column::Field(key, kind) => {
                let kind = *kind.get_or_insert_with(|| kind_of(cell));
                if !fields.is_empty() {
                    fields.push(b',');
                }
                push_key(&mut fields, key);
                fields.push(b'=');
                push_value(&mut fields, key, kind, cell)?;
            }
        }
    }
    if fields.is_empty() {
        return Ok(false);
    }
    if measurement.is_empty() {
        bail!("no measurement");
    }
    if time.is_empty() {
        bail!("no time");
    }
    line.clear();
    push_series(line, measurement, &tags);
    line.push(b' ');
    line.extend_from_slice(&fields);
    line.push(b' ');
    line.extend_from_slice(time.as_bytes());
    Ok(true)
}

/// A time as lines have it: digits stay, texts as in RFC 3339 are counted in the unit.
fn time_of(cell: &str, precision: &str) -> Result<String> {
    if cell.parse::<i64>().is_ok() {
        return Ok(cell.to_owned());
    }
    let time: Timestamp = cell.parse().with_context(|| format!("{cell:?} is not a time"))?;
    let unit = match precision {
        "u" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => 1,
    };
    Ok(time.as_nanosecond().div_euclid(unit).to_string())
}

fn kind_of(cell: &str) -> FieldType {
    if cell.parse::<f64>().is_ok_and(f64::is_finite) {
        FieldType::Float
    } else if matches!(cell, "true" | "false") {
        FieldType::Boolean
    } else {
        FieldType::String
    }
}

fn push_value(line: &mut Vec<u8>, key: &str, kind: FieldType, cell: &str) -> Result<()> {
    let suffix: &[u8] = match kind {
        FieldType::String => {
            push_text(line, cell);
            return Ok(());
        }
        FieldType::Float if cell.parse::<f64>().is_ok_and(f64::is_finite) => b"",
        FieldType::Integer if cell.parse::<i64>().is_ok() => b"i",
        FieldType::Unsigned if cell.parse::<u64>().is_ok() => b"u",
        FieldType::Boolean if matches!(cell, "true" | "false") => b"",
        _ => bail!(
            "column {key:?} is {kind}, and {cell:?} is not; its name can say another type: \
             {key}::string"
        ),
    };
    line.extend_from_slice(cell.trim_start_matches('+').as_bytes());
    line.extend_from_slice(suffix);
    Ok(())
}

/// `a=b,c=d` with escapes as in line protocol.
fn split_tags(cell: &str) -> Result<HashMap<String, String>> {
    let mut tags = HashMap::new();
    let (mut key, mut text) = (None, String::new());
    let mut chars = cell.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if matches!(chars.peek(), Some(',' | '=' | ' ')) => text.extend(chars.next()),
            '=' if key.is_none() => key = Some(std::mem::take(&mut text)),
            ',' => {
                let key = key.take().with_context(|| format!("{cell:?} are no tags"))?;
                tags.insert(key, std::mem::take(&mut text));
            }
            c => text.push(c),
        }
    }
    tags.insert(key.with_context(|| format!("{cell:?} are no tags"))?, text);
    Ok(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells() {
        assert_eq!(kind_of("1"), FieldType::Float);
        assert_eq!(kind_of("true"), FieldType::Boolean);
        assert_eq!(kind_of("NaN"), FieldType::String);
        assert_eq!(time_of("1970-01-01T00:00:01.5Z", "ms").unwrap(), "1500");
        assert_eq!(time_of("-7", "ms").unwrap(), "-7");
        assert!(time_of("x", "ns").is_err());
        let tags = split_tags("a=b\\,c,d\\=e=f=g").unwrap();
        assert_eq!(tags["a"], "b,c");
        assert_eq!(tags["d=e"], "f=g");
        assert!(split_tags("a").is_err());
        let mut line = Vec::new();
        assert!(push_value(&mut line, "k", FieldType::Integer, "1.5").is_err());
        assert!(push_value(&mut line, "k", FieldType::Float, "inf").is_err());
    }
}
