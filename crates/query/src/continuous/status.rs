//! What continuous queries have done since the process started.

use std::collections::HashMap;
use std::time::Duration;

use catalog::{ContinuousQuery, Database};
use model::{Column, DatabaseId, Name, Values};
use parking_lot::Mutex;

use super::ContinuousSchedule;
use crate::answer::{header, text_column};
use crate::exec::stream::Part;
use crate::registry::rounded;
use crate::shards::time_text;
use crate::show::go_duration;
use crate::{Answer, QueryContext};

/// What is remembered of continuous queries, by database and name.
#[derive(Debug, Default)]
pub struct ContinuousStatus {
    queries: Mutex<HashMap<(DatabaseId, Name), Standing>>,
}

/// One query.
#[derive(Clone, Debug, Default)]
struct Standing {
    runs: u64,
    failures: u64,
    last: Option<LastRun>,
    next_ns: Option<i64>,
}

/// How a query ran last.
#[derive(Clone, Debug)]
pub struct LastRun {
    /// When it began.
    pub at_ns: i64,
    /// Start of the first window it computed; `None`: that of the first row.
    pub start_ns: Option<i64>,
    /// End of the last window it computed.
    pub end_ns: i64,
    /// How long it took.
    pub took: Duration,
    /// Rows written, or why it failed.
    pub outcome: Result<u64, String>,
}

impl ContinuousStatus {
    /// Remembers a run.
    pub fn ran(&self, database: DatabaseId, name: &Name, last: LastRun) {
        let mut queries = self.queries.lock();
        let standing = queries.entry((database, name.clone())).or_default();
        standing.runs += 1;
        standing.failures += u64::from(last.outcome.is_err());
        standing.last = Some(last);
    }

    /// Remembers when a query is due next.
    pub fn due(&self, database: DatabaseId, name: &Name, next_ns: i64) {
        self.queries.lock().entry((database, name.clone())).or_default().next_ns = Some(next_ns);
    }

    /// Forgets a query.
    pub fn forget(&self, database: DatabaseId, name: &Name) {
        self.queries.lock().remove(&(database, name.clone()));
    }

    /// Forgets the queries that `is_kept` does not name.
    pub fn retain(&self, is_kept: impl Fn(DatabaseId, &Name) -> bool) {
        self.queries.lock().retain(|(database, name), _| is_kept(*database, name));
    }

    fn of(&self, database: DatabaseId, name: &Name) -> Standing {
        self.queries.lock().get(&(database, name.clone())).cloned().unwrap_or_default()
    }
}

/// Runs SHOW CONTINUOUS QUERY STATUS: a series for each database that has queries and may be seen.
pub(crate) fn show(context: &QueryContext) -> Answer {
    let catalog = context.catalog.snapshot();
    let seen = catalog.databases().iter().filter(|database| context.sees(database.id));
    let some = seen.filter(|database| !database.continuous_queries.is_empty());
    Answer::ready(some.map(|database| part(database, context)).collect())
}

/// A line of the answer.
struct Row {
    name: Name,
    every: String,
    for_: String,
    standing: Standing,
    error: String,
}

impl Row {
    fn new(database: DatabaseId, query: &ContinuousQuery, context: &QueryContext) -> Self {
        let standing = context.continuous.of(database, &query.name);
        let (every, for_, error) = match ContinuousSchedule::parse(&query.text, context.now_ns) {
            Ok(Some(known)) => {
                let last = standing.last.as_ref().and_then(|last| last.outcome.as_ref().err());
                let error = last.cloned().unwrap_or_default();
                (go_duration(known.every_ns()), go_duration(known.for_ns()), error)
            }
            Ok(None) => {
                let why = "never run: it has no GROUP BY time()".to_owned();
                (String::new(), String::new(), why)
            }
            Err(error) => (String::new(), String::new(), error.to_string()),
        };
        Self { name: query.name.clone(), every, for_, standing, error }
    }

    /// A time of the last run; nothing if there was none.
    fn last_time(&self, time: impl Fn(&LastRun) -> Option<i64>) -> String {
        self.standing.last.as_ref().and_then(time).map(time_text).unwrap_or_default()
    }

    fn last_took(&self) -> String {
        self.standing.last.as_ref().map(|last| rounded(last.took)).unwrap_or_default()
    }

    fn last_written(&self) -> u64 {
        let outcome = self.standing.last.as_ref().map(|last| &last.outcome);
        outcome.and_then(|outcome| outcome.as_ref().ok()).copied().unwrap_or(0)
    }
}

/// The queries of a database.
fn part(database: &Database, context: &QueryContext) -> Part {
    let queries = database.continuous_queries.iter();
    let rows: Vec<Row> = queries.map(|query| Row::new(database.id, query, context)).collect();
    let text = |of: &dyn Fn(&Row) -> String| {
        let texts: Vec<String> = rows.iter().map(of).collect();
        text_column(texts.iter().map(String::as_str))
    };
    let number = |of: &dyn Fn(&Row) -> u64| {
        Column::new(Values::Integer(rows.iter().map(|row| of(row).cast_signed()).collect()))
    };
    let columns = [
        ("name", text(&|row| row.name.to_string())),
        ("every", text(&|row| row.every.clone())),
        ("for", text(&|row| row.for_.clone())),
        ("runs", number(&|row| row.standing.runs)),
        ("failures", number(&|row| row.standing.failures)),
        ("last_run", text(&|row| row.last_time(|last| Some(last.at_ns)))),
        ("last_start", text(&|row| row.last_time(|last| last.start_ns))),
        ("last_end", text(&|row| row.last_time(|last| Some(last.end_ns)))),
        ("last_written", number(&Row::last_written)),
        ("last_duration", text(&Row::last_took)),
        ("last_error", text(&|row| row.error.clone())),
        ("next_run", text(&|row| row.standing.next_ns.map(time_text).unwrap_or_default())),
    ];
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let header = header(&database.name, &names);
    Part::new(header, columns.into_iter().map(|(_, column)| column).collect())
}
