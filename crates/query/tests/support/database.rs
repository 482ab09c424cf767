//! A database in memory that tests fill with lines and question with InfluxQL.

#![allow(dead_code, reason = "each test binary uses a part")]

use std::fmt::Write as _;
use std::sync::Arc;

use catalog::Catalog;
use influxql::{Params, parse_query};
use model::{Column, ResultBatch, Scalar};
use query::{QueryContext, execute};
use store::Store;
use store::reference::{ReferenceOptions, ReferenceStore};
use store::testing::{Row, write};

/// The present, unless a test says otherwise.
pub(crate) const NOW_NS: i64 = 1_000_000_000_000_000_000;

/// A database called `t`.
pub(crate) struct Database {
    pub(crate) context: QueryContext,
}

impl Database {
    /// An empty database over a reference store.
    pub(crate) fn new(options: ReferenceOptions) -> Self {
        Self::over(Arc::new(ReferenceStore::with_options(options)))
    }

    /// An empty database over an empty store.
    pub(crate) fn over(store: Arc<dyn Store>) -> Self {
        let catalog = Arc::new(Catalog::open(Arc::clone(&store)).expect("a fresh catalog"));
        catalog.create_database("t", None).expect("a legal name");
        let mut context = QueryContext::new(store, catalog, NOW_NS);
        context.database = Some("t".to_owned());
        Self { context }
    }

    /// A database with these lines.
    pub(crate) fn with_lines(lines: &str) -> Self {
        let database = Self::new(ReferenceOptions::default());
        database.write(lines);
        database
    }

    /// Writes lines into the default policy.
    pub(crate) fn write(&self, lines: &str) {
        self.write_rows(
            &lines.lines().filter(|l| !l.trim().is_empty()).map(row).collect::<Vec<_>>(),
        );
    }

    /// Writes rows into the default policy.
    pub(crate) fn write_rows(&self, rows: &[Row]) {
        let policy =
            self.context.catalog.snapshot().resolve("t", None).expect("the database exists");
        let outcome = write(&*self.context.store, policy, rows, NOW_NS).expect("a working store");
        assert_eq!(outcome.rejected, [], "rows were refused");
    }

    /// The batches of the answer to one statement.
    pub(crate) fn batches(&self, text: &str) -> Result<Vec<ResultBatch>, String> {
        let query = parse_query(text, &Params::new()).map_err(|e| format!("parse: {e}"))?;
        let mut batches = Vec::new();
        for statement in &query.statements {
            let mut answer = execute(statement, &self.context).map_err(|e| e.to_string())?;
            while let Some(batch) = answer.next().map_err(|e| e.to_string())? {
                batches.push(batch);
            }
        }
        Ok(batches)
    }

    /// The answer as InfluxDB's JSON of one result, times in nanoseconds.
    pub(crate) fn json(&self, text: &str) -> String {
        match self.batches(text) {
            Ok(batches) => result(&batches),
            Err(error) => format!("{{\"statement_id\":0,\"error\":{}}}", string(&error)),
        }
    }

    /// The answer in short: `name,tag=value time column...`, one row after another.
    pub(crate) fn short(&self, text: &str) -> String {
        let batches = match self.batches(text) {
            Ok(batches) => batches,
            Err(error) => return format!("error: {error}"),
        };
        let mut out = Vec::new();
        let mut continues = false;
        for batch in &batches {
            if !continues {
                out.push(title(batch));
            }
            continues = batch.continues;
            for row in batch.rows.clone() {
                let cells: Vec<String> = batch.batch.columns.iter().map(|c| cell(c, row)).collect();
                out.push(cells.join(" "));
            }
        }
        out.join("\n")
    }
}

fn title(batch: &ResultBatch) -> String {
    let header = &batch.header;
    let mut title = header.name.to_string();
    for (key, value) in &header.tags {
        write!(title, ",{key}={value}").expect("text can grow");
    }
    let columns: Vec<&str> = header.columns.iter().map(|c| &**c).collect();
    format!("{title}: {}", columns.join(" "))
}

fn result(batches: &[ResultBatch]) -> String {
    let mut out = String::from("{\"statement_id\":0");
    let mut continues = false;
    for (at, batch) in batches.iter().enumerate() {
        if !continues {
            out.push_str(if at == 0 { ",\"series\":[" } else { "," });
            out.push('{');
            let header = &batch.header;
            if !header.name.is_empty() {
                write!(out, "\"name\":{},", string(&header.name)).expect("text can grow");
            }
            if !header.tags.is_empty() {
                let tag =
                    |(k, v): &(model::Name, model::Name)| format!("{}:{}", string(k), string(v));
                let tags: Vec<String> = header.tags.iter().map(tag).collect();
                write!(out, "\"tags\":{{{}}},", tags.join(",")).expect("text can grow");
            }
            let columns: Vec<String> = header.columns.iter().map(|c| string(c)).collect();
            write!(out, "\"columns\":[{}]", columns.join(",")).expect("text can grow");
        }
        for row in batch.rows.clone() {
            out.push_str(if row == batch.rows.start && !continues { ",\"values\":[" } else { "," });
            let cells: Vec<String> = batch.batch.columns.iter().map(|c| cell(c, row)).collect();
            write!(out, "[{}]", cells.join(",")).expect("text can grow");
        }
        continues = batch.continues;
        if !continues {
            out.push_str(if !batch.rows.is_empty() { "]}" } else { "}" });
        }
    }
    out.push_str(if batches.is_empty() { "}" } else { "]}" });
    out
}

fn cell(column: &Column, row: usize) -> String {
    match column.get(row) {
        None => "null".to_owned(),
        Some(Scalar::Float(v)) => v.to_string(),
        Some(Scalar::Integer(v)) => v.to_string(),
        Some(Scalar::Unsigned(v)) => v.to_string(),
        Some(Scalar::Boolean(v)) => v.to_string(),
        Some(Scalar::String(v)) => string(&v),
    }
}

fn string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A row of a line without escapes in its fields: `key field=value,... time`.
pub(crate) fn row(line: &str) -> Row {
    let line = line.trim();
    let (rest, time) = line.rsplit_once(' ').expect("a time");
    let (key, fields) = rest.split_once(' ').expect("fields");
    let fields = fields.split(',').map(|field| {
        let (name, value) = field.split_once('=').expect("a value");
        let value = match value {
            "true" | "t" => Scalar::Boolean(true),
            "false" | "f" => Scalar::Boolean(false),
            v if v.starts_with('"') => Scalar::String(v.trim_matches('"').into()),
            v if v.ends_with('i') => {
                Scalar::Integer(v.trim_end_matches('i').parse().expect("a number"))
            }
            v if v.ends_with('u') => {
                Scalar::Unsigned(v.trim_end_matches('u').parse().expect("a number"))
            }
            v => Scalar::Float(v.parse().expect("a number")),
        };
        (name.into(), value)
    });
    Row { key: key.to_owned(), fields: fields.collect(), time_ns: time.parse().expect("a number") }
}
