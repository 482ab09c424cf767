//! Asks a server queries of one type from several workers, for a time or a number of queries.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::http::{Client, target};
use crate::latency::Latencies;
use crate::process;
use crate::queries::promql::range_query;
use crate::queries::questdb::sql;
use crate::queries::{Choice, QueryGenerator, QueryType, clickhouse, influxql};
use crate::random::hash;
use crate::system::Running;
use crate::workload::Spec;

#[cfg(test)]
mod tests;

/// Answers up to this size are searched for an error message; larger ones hold data.
const CHECKED_BYTES_MAX: usize = 2048;
const SHOWN_BYTES_MAX: usize = 500;

/// The language of a server, and where it listens for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dialect {
    /// InfluxQL at `/query`, in this database.
    InfluxQl {
        /// The database.
        db: String,
    },
    /// PromQL at `/api/v1/query_range`.
    PromQl,
    /// QuestDB's SQL at `/exec`.
    QuestDbSql,
    /// ClickHouse's SQL at `/`.
    ClickHouseSql,
}

impl Dialect {
    /// Path and query that ask one query; `None` where the language cannot ask it.
    #[must_use]
    pub fn target(&self, query_type: QueryType, choice: &Choice) -> Option<String> {
        match self {
            Self::InfluxQl { db } => {
                let text = influxql(query_type, choice);
                Some(target("/query", &[("db", db), ("epoch", "ns"), ("q", &text)]))
            }
            Self::PromQl => {
                let query = range_query(query_type, choice)?;
                let [start, end, step] =
                    [query.start_s, query.end_s, query.step_s].map(|s| s.to_string());
                let parameters = [
                    ("query", query.text.as_str()),
                    ("start", &start),
                    ("end", &end),
                    ("step", &step),
                ];
                Some(target("/api/v1/query_range", &parameters))
            }
            Self::ClickHouseSql => {
                let text = clickhouse::sql(query_type, choice);
                Some(target("/", &[("query", &text)]))
            }
            Self::QuestDbSql => {
                Some(target("/exec", &[("query", sql(query_type, choice).as_str())]))
            }
        }
    }
}

/// How to ask.
#[derive(Debug, Clone)]
pub struct QueryOptions {
    /// The server: `http://HOST:PORT`.
    pub url: String,
    /// Its language.
    pub dialect: Dialect,
    /// Parallel connections.
    pub workers: usize,
    /// Stop after this time.
    pub duration: Duration,
    /// Stop after this many queries.
    pub queries_max: u64,
    /// Ask the same query again and again, as a dashboard that refreshes.
    pub repeated: bool,
    /// Seed of hosts and windows.
    pub seed: u64,
    /// The server's process, if its usage is wanted.
    pub pid: Option<u32>,
}

impl QueryOptions {
    /// Ever new questions to a server that runs here, as many as it answers in `duration`.
    #[must_use]
    pub fn of(
        server: &Running,
        dialect: &Dialect,
        workers: usize,
        duration: Duration,
        seed: u64,
    ) -> Self {
        Self {
            url: server.url().to_owned(),
            dialect: dialect.clone(),
            workers,
            duration,
            queries_max: u64::MAX,
            repeated: false,
            seed,
            pid: Some(server.pid()),
        }
    }
}

/// What a query run measured.
#[derive(Debug, Clone)]
pub struct QueryReport {
    /// Wall time.
    pub seconds: f64,
    /// Latencies of queries.
    pub latencies: Latencies,
    /// Bytes of all answers.
    pub bytes: u64,
    /// Answers without data. Rare ones are a matter of chance, many mean that the wrong question was asked.
    pub empty: u64,
    /// Processor time the server spent, if its process is known.
    pub cpu_seconds: Option<f64>,
    /// Resident memory of the server afterwards, if its process is known.
    pub resident_bytes: Option<u64>,
}

impl QueryReport {
    /// A run and those of the same query type before it, if any, as one.
    #[must_use]
    pub fn after(before: Option<Self>, mut this: Self) -> Self {
        let Some(before) = before else { return this };
        this.seconds += before.seconds;
        this.latencies.merge(&before.latencies);
        this.bytes += before.bytes;
        this.empty += before.empty;
        this.cpu_seconds = this.cpu_seconds.zip(before.cpu_seconds).map(|(a, b)| a + b);
        this
    }

    /// Queries per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.latencies.count() as f64 / self.seconds
    }

    /// Microseconds of the server's processor time per query.
    #[must_use]
    pub fn cpu_us_per_query(&self) -> Option<f64> {
        Some(self.cpu_seconds? * 1e6 / self.latencies.count() as f64)
    }
}

impl fmt::Display for QueryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.latencies.count();
        writeln!(f, "{count} queries in {:.3} s: {:.1} queries/s", self.seconds, self.rate())?;
        writeln!(f, "{}", self.latencies)?;
        let answer_bytes = self.bytes as f64 / count as f64;
        writeln!(f, "{answer_bytes:.0} bytes per answer, {} answers without data", self.empty)?;
        if let (Some(cpu_us), Some(resident)) = (self.cpu_us_per_query(), self.resident_bytes) {
            writeln!(f, "server CPU {cpu_us:.1} us/query, memory {:.0} MB", resident as f64 / 1e6)?;
        }
        Ok(())
    }
}

/// Asks queries of one type; `None` if the dialect cannot ask them.
///
/// # Errors
/// When the data is too small for the type, or the server answers with an error.
pub fn run(
    query_type: QueryType,
    data: &Spec,
    options: &QueryOptions,
) -> Result<Option<QueryReport>> {
    if options.workers == 0 || options.queries_max == 0 {
        bail!("workers and the number of queries must be at least 1");
    }
    let mut probe = QueryGenerator::new(query_type, data, options.seed)?;
    let repeated = probe.choose();
    if options.dialect.target(query_type, &repeated).is_none() {
        return Ok(None);
    }
    let usage = |pid: u32| process::usage(pid).context("cannot read the server's usage");
    let before = options.pid.map(usage).transpose()?;
    let asked = AtomicU64::new(0);
    let started = Instant::now();
    let worker = |number: usize| -> Result<(Latencies, u64, u64)> {
        let seed = hash(options.seed, number as u64);
        let mut generator = QueryGenerator::new(query_type, data, seed)?;
        let mut client = Client::new(&options.url)?;
        let (mut latencies, mut bytes, mut empty) = (Latencies::default(), 0, 0);
        while started.elapsed() < options.duration
            && asked.fetch_add(1, Ordering::Relaxed) < options.queries_max
        {
            let choice = if options.repeated { repeated.clone() } else { generator.choose() };
            let target = options
                .dialect
                .target(query_type, &choice)
                .context("BUG: the dialect has this type")?;
            let sent = Instant::now();
            let response = client.get(&target)?;
            latencies.record(sent.elapsed());
            bytes += response.body.len() as u64;
            check(&target, response.status, response.body)?;
            empty += u64::from(is_empty(response.body));
        }
        Ok((latencies, bytes, empty))
    };
    let outcomes = std::thread::scope(|scope| {
        let handles: Vec<_> =
            (0..options.workers).map(|number| scope.spawn(move || worker(number))).collect();
        handles
            .into_iter()
            .map(|handle| handle.join().expect("BUG: a worker panicked"))
            .collect::<Vec<_>>()
    });
    let seconds = started.elapsed().as_secs_f64();
    let (mut latencies, mut bytes, mut empty) = (Latencies::default(), 0, 0);
    for outcome in outcomes {
        let (of_worker, bytes_of_worker, empty_of_worker) = outcome?;
        latencies.merge(&of_worker);
        bytes += bytes_of_worker;
        empty += empty_of_worker;
    }
    let after = options.pid.map(usage).transpose()?;
    let cpu_seconds =
        after.zip(before).map(|(after, before)| after.cpu_seconds - before.cpu_seconds);
    let resident_bytes = after.map(|after| after.resident_bytes);
    Ok(Some(QueryReport { seconds, latencies, bytes, empty, cpu_seconds, resident_bytes }))
}

/// Whether an answer has no series, or no rows.
pub(crate) fn is_empty(body: &[u8]) -> bool {
    const INFLUXQL: &[u8] = br#"{"results":[{"statement_id":0}]}"#;
    const PROMQL: &[u8] = br#""result":[]"#;
    const SQL: &[u8] = br#""dataset":[]"#;
    const CLICKHOUSE: &[u8] = b"\"rows\": 0,";
    let has = |text: &[u8]| body.windows(text.len()).any(|window| window == text);
    body.trim_ascii() == INFLUXQL
        || (body.len() <= CHECKED_BYTES_MAX && (has(PROMQL) || has(SQL) || has(CLICKHOUSE)))
}

/// A failed query must not count as a fast one.
pub(crate) fn check(target: &str, status: u16, body: &[u8]) -> Result<()> {
    let has_error = || body.windows(8).any(|window| window == b"\"error\":");
    if status == 200 && (body.len() > CHECKED_BYTES_MAX || !has_error()) {
        return Ok(());
    }
    let shown = String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES_MAX)]);
    bail!("the server answered {status} to {target}: {shown}");
}
