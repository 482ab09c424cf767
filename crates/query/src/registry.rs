//! The queries that are being executed: SHOW QUERIES, KILL QUERY.
//!
//! An entry is one request with all its statements, as InfluxDB counts. It is there as long as its
//! [`Registered`] lives; a killed one stays until it has noticed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use influxql::Statement;
use model::{Column, Interrupt, Values};
use parking_lot::Mutex;

use crate::answer::{header, text_column};
use crate::exec::stream::Part;
use crate::show::go_duration;
use crate::{Answer, QueryContext, QueryError};

/// All queries that are being executed.
#[derive(Debug, Default)]
pub struct QueryRegistry {
    running: Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    last_id: u64,
    queries: BTreeMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    /// Made text only when it is shown.
    statements: Arc<[Statement]>,
    database: Option<String>,
    started: Instant,
    interrupt: Interrupt,
    killed: bool,
}

/// A query's place in the registry; dropping it gives it up.
#[derive(Debug)]
pub struct Registered {
    registry: Arc<QueryRegistry>,
    id: u64,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.registry.running.lock().queries.remove(&self.id);
    }
}

impl QueryRegistry {
    /// Adds a query that `interrupt` ends.
    #[must_use]
    pub fn enter(
        self: &Arc<Self>,
        statements: Arc<[Statement]>,
        database: Option<String>,
        interrupt: Interrupt,
    ) -> Registered {
        let started = Instant::now();
        let entry = Entry { statements, database, started, interrupt, killed: false };
        let mut running = self.running.lock();
        running.last_id += 1;
        let id = running.last_id;
        running.queries.insert(id, entry);
        Registered { registry: Arc::clone(self), id }
    }

    /// Ends a query.
    ///
    /// # Errors
    /// If there is none with this id.
    pub(crate) fn kill(&self, id: u64) -> Result<(), QueryError> {
        let mut running = self.running.lock();
        let missing = || QueryError::invalid(format!("no such query id: {id}"));
        let entry = running.queries.get_mut(&id).ok_or_else(missing)?;
        entry.killed = true;
        entry.interrupt.cancel();
        Ok(())
    }
}

/// Runs SHOW QUERIES: those of requests to a database that may be seen.
pub(crate) fn show(context: &QueryContext) -> Answer {
    let catalog = context.catalog.snapshot();
    let sees = |entry: &Entry| {
        let database = entry.database.as_deref().and_then(|name| catalog.database(name));
        context.user.as_ref().is_none_or(|user| user.admin)
            || database.is_some_and(|found| context.sees(found.id))
    };
    let running = context.queries.running.lock();
    let seen: Vec<(&u64, &Entry)> = running.queries.iter().filter(|(_, e)| sees(e)).collect();
    let entries = || seen.iter().map(|(_, entry)| *entry);
    let texts: Vec<String> = entries().map(|entry| text_of(&entry.statements)).collect();
    let durations: Vec<String> = entries().map(|entry| rounded(entry.started.elapsed())).collect();
    let columns = vec![
        Column::new(Values::Integer(seen.iter().map(|(id, _)| id.cast_signed()).collect())),
        text_column(texts.iter().map(String::as_str)),
        text_column(entries().map(|entry| entry.database.as_deref().unwrap_or(""))),
        text_column(durations.iter().map(String::as_str)),
        text_column(entries().map(|entry| if entry.killed { "killed" } else { "running" })),
    ];
    if seen.is_empty() {
        return Answer::empty();
    }
    let names = ["qid", "query", "database", "duration", "status"];
    Answer::ready(vec![Part::new(header("", &names), columns)])
}

fn text_of(statements: &[Statement]) -> String {
    let texts: Vec<String> = statements.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

/// A duration in whole units of its size.
pub(crate) fn rounded(duration: Duration) -> String {
    let ns = duration.as_nanos();
    match ns {
        0..1_000 => format!("{ns}ns"),
        1_000..1_000_000 => format!("{}\u{b5}s", ns / 1_000),
        1_000_000..1_000_000_000 => format!("{}ms", ns / 1_000_000),
        _ => go_duration(
            i64::try_from(duration.as_secs()).unwrap_or(0).saturating_mul(1_000_000_000),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(text: &str) -> Arc<[Statement]> {
        influxql::parse_query(text, &influxql::Params::new()).unwrap().statements.into()
    }

    #[test]
    fn a_killed_query_is_interrupted_and_its_place_given_up() {
        let registry = Arc::new(QueryRegistry::default());
        let interrupt = Interrupt::new();
        let place =
            registry.enter(statements("SELECT v FROM m; SHOW QUERIES"), None, interrupt.clone());
        assert_eq!(
            text_of(&registry.running.lock().queries[&1].statements),
            "SELECT v FROM m; SHOW QUERIES"
        );
        assert_eq!(registry.kill(7).unwrap_err().to_string(), "no such query id: 7");
        assert!(interrupt.check().is_ok());
        registry.kill(1).unwrap();
        assert!(interrupt.check().is_err());
        drop(place);
        assert!(registry.kill(1).is_err());
    }

    #[test]
    fn durations_have_one_unit() {
        for (ns, text) in [
            (14, "14ns"),
            (14_999, "14\u{b5}s"),
            (2_000_001, "2ms"),
            (2_999_999_999, "2s"),
            (61_000_000_000, "1m1s"),
        ] {
            assert_eq!(rounded(Duration::from_nanos(ns)), text);
        }
    }
}
