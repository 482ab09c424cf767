//! What a database has, as its server tells: measurements, tags and some of their values, fields and how their values lie.

use anyhow::{Context, Result, bail};

use crate::http::{Client, target};
use crate::json::Json;

/// Values of a tag that questions choose from.
const TAG_VALUES_MAX: usize = 200;
/// Texts of a field that questions choose from.
const TEXTS_MAX: usize = 20;
/// Percentiles of numbers that conditions compare with.
const PERCENTILES: [u32; 7] = [1, 10, 30, 50, 90, 99, 100];

/// A measurement that has rows; names of it, and in it, are quoted.
#[derive(Debug)]
pub(super) struct Measurement {
    pub(super) name: String,
    pub(super) tags: Vec<Tag>,
    pub(super) fields: Vec<Field>,
    pub(super) first_ns: i64,
    pub(super) last_ns: i64,
}

#[derive(Debug)]
pub(super) struct Tag {
    pub(super) key: String,
    pub(super) values: Vec<String>,
    /// How many values there are.
    pub(super) cardinality: usize,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// What values of a field are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Numbers; some of their percentiles, as they are written.
    Number(Vec<String>),
    /// Texts; some of them.
    Text(Vec<String>),
    /// true or false.
    Boolean,
}

impl Measurement {
    pub(super) fn has_numbers(&self) -> bool {
        self.fields.iter().any(Field::is_number)
    }
}

impl Field {
    pub(super) fn is_number(&self) -> bool {
        matches!(self.kind, Kind::Number(_))
    }
}

/// Asks for one statement, and gives its series: for each the rows of its values.
pub(super) fn rows(client: &mut Client, db: &str, statement: &str) -> Result<Vec<Vec<Json>>> {
    let response =
        client.get(&target("/query", &[("db", db), ("epoch", "ns"), ("q", statement)]))?;
    let answer = Json::parse(response.body).with_context(|| statement.to_owned())?;
    let result = match answer.get("results") {
        Some(Json::Array(results)) => results.first().cloned(),
        _ => None,
    };
    let result = result.with_context(|| format!("{statement}: {}", lossy(response.body)))?;
    if let Some(error) = result.get("error").or_else(|| answer.get("error")) {
        bail!("{statement}: {error}");
    }
    let Some(Json::Array(series)) = result.get("series") else { return Ok(Vec::new()) };
    let values = |series: &Json| match series.get("values") {
        Some(Json::Array(rows)) => rows.clone(),
        _ => Vec::new(),
    };
    Ok(series.iter().map(values).collect())
}

/// A name or text as InfluxQL has it between quotes.
pub(super) fn quoted(text: &str, quote: char) -> String {
    let mut quoted = String::from(quote);
    for c in text.chars() {
        match c {
            '\n' => quoted.push_str("\\n"),
            c if c == quote || c == '\\' => quoted.extend(['\\', c]),
            c => quoted.push(c),
        }
    }
    quoted.push(quote);
    quoted
}

fn lossy(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned()
}

/// A cell of a row, as it is written.
pub(super) fn cell(row: &Json, at: usize) -> Option<String> {
    let Json::Array(cells) = row else { return None };
    match cells.get(at)? {
        Json::String(text) | Json::Number(text) => Some(text.clone()),
        _ => None,
    }
}

fn column(rows: &[Vec<Json>], at: usize) -> Vec<String> {
    rows.iter().flatten().filter_map(|row| cell(row, at)).collect()
}

/// All measurements of a database that have a row.
pub(super) fn measurements(client: &mut Client, db: &str) -> Result<Vec<Measurement>> {
    let names = column(&rows(client, db, "SHOW MEASUREMENTS")?, 0);
    let found = names.into_iter().map(|name| measurement(client, db, quoted(&name, '"')));
    let found = found.collect::<Result<Vec<_>>>()?;
    let found: Vec<Measurement> = found.into_iter().flatten().collect();
    if found.is_empty() {
        bail!("{db} has no rows: load something into it first");
    }
    Ok(found)
}

fn measurement(client: &mut Client, db: &str, name: String) -> Result<Option<Measurement>> {
    let keys = column(&rows(client, db, &format!("SHOW TAG KEYS FROM {name}"))?, 0);
    let mut tags = Vec::new();
    for key in keys {
        let key = quoted(&key, '"');
        let values = format!("SHOW TAG VALUES FROM {name} WITH KEY = {key} LIMIT {TAG_VALUES_MAX}");
        let values = column(&rows(client, db, &values)?, 1);
        let counted = format!("SHOW TAG VALUES EXACT CARDINALITY FROM {name} WITH KEY = {key}");
        let counted = column(&rows(client, db, &counted)?, 0);
        let cardinality = counted.first().and_then(|count| count.parse().ok());
        tags.push(Tag { cardinality: cardinality.unwrap_or(values.len()), values, key });
    }
    let mut fields = Vec::new();
    for row in rows(client, db, &format!("SHOW FIELD KEYS FROM {name}"))?.iter().flatten() {
        let (Some(field), Some(kind)) = (cell(row, 0), cell(row, 1)) else { continue };
        let field = quoted(&field, '"');
        let kind = kind_of(client, db, &name, &field, &kind)?;
        fields.push(Field { name: field, kind });
    }
    // All series are asked most quickly about a number.
    let field = fields.iter().find(|field| field.is_number()).or(fields.first());
    let Some(field) = field else { return Ok(None) };
    let mut time = |call: &str| -> Result<Option<i64>> {
        let found = rows(client, db, &format!("SELECT {call}({}) FROM {name}", field.name))?;
        Ok(found.iter().flatten().find_map(|row| cell(row, 0)?.parse().ok()))
    };
    let (Some(first_ns), Some(last_ns)) = (time("first")?, time("last")?) else { return Ok(None) };
    Ok(Some(Measurement { name, tags, fields, first_ns, last_ns }))
}

fn kind_of(client: &mut Client, db: &str, name: &str, field: &str, kind: &str) -> Result<Kind> {
    Ok(match kind {
        "float" | "integer" | "unsigned" => {
            let calls = PERCENTILES.map(|percentile| format!("percentile({field}, {percentile})"));
            let found = rows(client, db, &format!("SELECT {} FROM {name}", calls.join(", ")))?;
            let Some(row) = found.iter().flatten().next() else {
                return Ok(Kind::Number(Vec::new()));
            };
            Kind::Number((1..=PERCENTILES.len()).filter_map(|at| cell(row, at)).collect())
        }
        "boolean" => Kind::Boolean,
        _ => {
            // Of millions of different ones no list would have room.
            let texts = format!("SELECT sample({field}, {TEXTS_MAX}) FROM {name}");
            let mut texts = column(&rows(client, db, &texts)?, 1);
            texts.sort_unstable();
            texts.dedup();
            Kind::Text(texts)
        }
    })
}
