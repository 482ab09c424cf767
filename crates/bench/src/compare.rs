//! Runs the same load and the same queries on several systems, one at a time, and puts the figures side by side.
//!
//! Each system runs in a private directory on loopback ports and is stopped before the next one starts. InfluxDB's
//! and Nyala's answers to the same questions are compared as well: a fast wrong answer is no figure.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::http::{Client, target};
use crate::json::{Json, differences};
use crate::load::{Format, LoadOptions, LoadReport, note};
use crate::process::{disk_bytes, usage};
use crate::queries::{EXTRA_TYPES, QueryGenerator, QueryType, TSBS_TYPES, clickhouse};
use crate::query_run::{Dialect, QueryOptions, QueryReport, run as run_queries};
use crate::random::hash;
use crate::system::{Running, System};
use crate::workload::{Spec, Workload};

mod history;
mod loads;
mod mixed;
mod plots;
mod table;

pub use history::append_history;
pub(crate) use history::commit;
pub use mixed::Mixed;
pub use plots::plots;
pub use table::{print_comparison, table};

#[cfg(test)]
mod tests;

const DB: &str = "benchmark";
const POLL: Duration = Duration::from_secs(1);
/// Processor time per second that housekeeping of an idle server may take.
const IDLE_CPU_SECONDS: f64 = 0.05;
/// Turns that the time of a query type is divided into, each over new connections. Between two turns
/// of a type all others have theirs: a rate that depends on which thread met which connection first, or
/// on a minute in which the machine was slow, is averaged for every system alike.
pub const ROUNDS: u32 = 4;
/// Answers per query type that are compared between systems.
const ANSWERS: usize = 3;
const TOLERANCE: f64 = 1e-9;
const DIFFERENCES_MAX: usize = 3;

/// When a system has settled.
#[derive(Debug, Clone, Copy)]
pub struct Settling {
    /// Its files and its processor time have not moved for this long.
    pub quiet: Duration,
    /// That is waited for no longer than this; zero: sizes are taken right after the load.
    pub at_most: Duration,
    /// How long without writes Nyala waits before it tidies up; its default if absent. (InfluxDB is always
    /// told to wait for seconds only, or it would wait for hours.)
    pub nyala_idle_after: Option<Duration>,
}

impl Settling {
    /// Some tidy up only after a minute without writes.
    pub const PATIENT: Self = Self {
        quiet: Duration::from_secs(70),
        at_most: Duration::from_secs(300),
        nyala_idle_after: None,
    };
    /// For a run of minutes.
    pub const QUICK: Self = Self {
        quiet: Duration::from_secs(15),
        at_most: Duration::from_secs(60),
        nyala_idle_after: Some(Duration::from_secs(5)),
    };
}

/// What to run.
#[derive(Debug, Clone)]
pub struct CompareOptions {
    /// The data. Queries are asked of cpu-only alone.
    pub data: Spec,
    /// Connections of the load.
    pub load_workers: usize,
    /// Rows of one write request.
    pub batch_rows: u64,
    /// How often each system is loaded, each time a new server; the load of median rate counts, and the last
    /// server is asked.
    pub load_rounds: u32,
    /// Connections of the queries; every type is run with each of these.
    pub query_workers: Vec<usize>,
    /// How long each query type runs with each number of connections, in [`ROUNDS`] turns.
    pub query_duration: Duration,
    /// What is waited for between the load and the queries.
    pub settling: Settling,
    /// The systems, in the order of the table.
    pub systems: Vec<System>,
    /// Where the systems put their files; the system's directory for temporary files if absent.
    pub directory: Option<PathBuf>,
}

/// The figures of one query type on one system; `None` where its language cannot ask.
#[derive(Debug, Clone)]
pub struct QueryFigures {
    /// Name of the type.
    pub name: String,
    /// Connections.
    pub workers: usize,
    /// What was measured.
    pub report: Option<QueryReport>,
}

/// All figures of one system.
#[derive(Debug, Clone)]
pub struct SystemFigures {
    /// The system's name.
    pub name: &'static str,
    /// The load of median rate.
    pub load: LoadReport,
    /// Values a second of all loads, in their order.
    pub load_rates: Vec<f64>,
    /// Resident memory right after the load.
    pub resident_bytes: u64,
    /// Disk space after settling.
    pub disk_bytes: u64,
    /// How long settling took, the quiet time included.
    pub settle_seconds: f64,
    /// The queries.
    pub queries: Vec<QueryFigures>,
    /// The first query type while a load at half the rate runs, with its rate without one.
    pub mixed: Option<Mixed>,
    /// Answers to the same questions, for comparison; none where the language differs.
    answers: Vec<(String, Json)>,
}

/// Everything that a comparison found.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The data.
    pub data: Spec,
    /// One per system.
    pub systems: Vec<SystemFigures>,
    /// Systems that are not installed, with what to do about it.
    pub missing: Vec<String>,
    /// How many answers InfluxDB and Nyala gave to the same questions.
    pub answers_compared: usize,
    /// Where those answers differ.
    pub disagreements: Vec<String>,
}

/// Runs everything; says on stderr how it goes.
///
/// # Errors
/// When no system is installed, or one of them fails.
pub fn compare(options: &CompareOptions) -> Result<Comparison> {
    let able: Vec<&System> =
        options.systems.iter().filter(|system| can_take(system, options.data.workload)).collect();
    let (installed, missing): (Vec<&System>, Vec<&System>) =
        able.into_iter().partition(|system| system.is_installed());
    let missing: Vec<String> =
        missing.iter().map(|system| system.how_to_install().to_owned()).collect();
    for hint in &missing {
        note(hint);
    }
    if installed.is_empty() {
        bail!("none of the systems is installed");
    }
    let mut systems = Vec::new();
    for (system, loads) in installed.iter().zip(loads::in_turns(&installed, options)?) {
        note(&format!("== {}", system.name()));
        systems.push(measure(system, loads, options).with_context(|| system.name().to_owned())?);
    }
    let (answers_compared, disagreements) = compare_answers(&systems);
    Ok(Comparison { data: options.data.clone(), systems, missing, answers_compared, disagreements })
}

/// Whether a system can be given a workload: ClickHouse has no line protocol, and one table here.
fn can_take(system: &System, workload: Workload) -> bool {
    *system != System::ClickHouse || workload == Workload::CpuOnly
}

/// Loads once more than before, and asks.
fn measure(
    system: &System,
    mut loads: Vec<LoadReport>,
    options: &CompareOptions,
) -> Result<SystemFigures> {
    let loads::Loaded { server, dialect, load, .. } = &loads::load_new(system, options)?;
    loads.push(load.clone());
    let load = loads::median(&loads).expect("BUG: there is one").clone();
    let resident_bytes = usage(server.pid())?.resident_bytes;
    note("settling");
    let (disk_bytes, settled) = settle(server, &options.settling)?;
    note(&format!("settled after {:.0} s, {disk_bytes} bytes on disk", settled.as_secs_f64()));
    let mut queries = Vec::new();
    let asks = options.data.workload == Workload::CpuOnly;
    for (&workers, pass) in options.query_workers.iter().zip(1..).filter(|_| asks) {
        queries.extend(ask_all(server, dialect, workers, pass, options)?);
    }
    let asks = asks && !options.query_workers.is_empty();
    let answers = if asks { collect_answers(server, dialect, &options.data)? } else { Vec::new() };
    let mixed = if asks { mixed::measure(server, dialect, &load, options)? } else { None };
    Ok(SystemFigures {
        name: system.name(),
        load,
        load_rates: loads.iter().map(LoadReport::rate).collect(),
        resident_bytes,
        disk_bytes,
        settle_seconds: settled.as_secs_f64(),
        queries,
        mixed,
        answers,
    })
}

/// The language that a system is asked in.
pub(crate) fn dialect(system: &System) -> Dialect {
    match system {
        System::VictoriaMetrics => Dialect::PromQl,
        System::QuestDb(_) => Dialect::QuestDbSql,
        System::ClickHouse => Dialect::ClickHouseSql,
        System::InfluxDb | System::Nyala(_) | System::Discard => {
            Dialect::InfluxQl { db: DB.to_owned() }
        }
    }
}

/// Makes what rows are written to, where they do not make it themselves.
pub(crate) fn prepare(server: &Running, dialect: &Dialect) -> Result<()> {
    match dialect {
        Dialect::InfluxQl { db } => create_database(server.url(), db),
        Dialect::ClickHouseSql => {
            let mut client = Client::new(server.url())?;
            let response = client.post(&target("/", &[("query", clickhouse::TABLE)]), &[], &[])?;
            if !response.is_success() {
                bail!("no table: {}", String::from_utf8_lossy(response.body));
            }
            Ok(())
        }
        Dialect::PromQl | Dialect::QuestDbSql => Ok(()),
    }
}

/// Creates a database through `/query`.
///
/// # Errors
/// When the server refuses.
pub fn create_database(url: &str, db: &str) -> Result<()> {
    let mut client = Client::new(url)?;
    let statement = format!("CREATE DATABASE \"{db}\"");
    let response = client.post(&target("/query", &[("q", &statement)]), &[], &[])?;
    if !response.is_success() {
        bail!("{statement}: {} {}", response.status, String::from_utf8_lossy(response.body));
    }
    Ok(())
}

fn load_options(server: &Running, dialect: &Dialect, options: &CompareOptions) -> LoadOptions {
    load_options_of(server, dialect, options.load_workers, options.batch_rows)
}

/// How a server is loaded, in its own language, as fast as it takes rows.
pub(crate) fn load_options_of(
    server: &Running,
    dialect: &Dialect,
    workers: usize,
    batch_rows: u64,
) -> LoadOptions {
    let (target, format) = match dialect {
        Dialect::ClickHouseSql => {
            let insert = "INSERT INTO cpu FORMAT TabSeparated";
            (target("/", &[("query", insert)]), Format::ClickHouseTsv)
        }
        _ => (target("/write", &[("db", DB)]), Format::Lines),
    };
    LoadOptions {
        url: server.url().to_owned(),
        target,
        format,
        workers,
        batch_rows,
        rows_per_second: None,
        duration_max: None,
        pregenerate: false,
        pid: Some(server.pid()),
        progress: true,
    }
}

/// Waits until nothing moves; returns the disk space and how long that took.
pub(crate) fn settle(server: &Running, settling: &Settling) -> Result<(u64, Duration)> {
    let started = Instant::now();
    let mut quiet_since = started;
    let mut bytes_before = disk_bytes(server.data())?;
    let mut cpu_before = usage(server.pid())?.cpu_seconds;
    while quiet_since.elapsed() < settling.quiet && started.elapsed() < settling.at_most {
        std::thread::sleep(POLL);
        let bytes = disk_bytes(server.data())?;
        let cpu = usage(server.pid())?.cpu_seconds;
        if bytes != bytes_before || cpu - cpu_before > IDLE_CPU_SECONDS {
            quiet_since = Instant::now();
        }
        (bytes_before, cpu_before) = (bytes, cpu);
    }
    Ok((bytes_before, started.elapsed()))
}

/// The seed of the questions of a turn: none asks what was asked in another one, or systems that keep
/// answers would be asked for them.
fn turn_seed(data: &Spec, pass: u64, round: u32) -> u64 {
    hash(hash(data.seed, pass), round.into())
}

/// Runs every query type in turns.
fn ask_all(
    server: &Running,
    dialect: &Dialect,
    workers: usize,
    pass: u64,
    options: &CompareOptions,
) -> Result<Vec<QueryFigures>> {
    let again = (TSBS_TYPES[0].0, TSBS_TYPES[0].1, true);
    let all = TSBS_TYPES.iter().chain(&EXTRA_TYPES).map(|(name, of)| (*name, *of, false));
    let mut figures = Vec::new();
    for (name, query_type, repeated) in all.chain([again]) {
        let name = if repeated { format!("{name}, repeated") } else { name.to_owned() };
        figures.push((query_type, repeated, QueryFigures { name, workers, report: None }));
    }
    for round in 0..ROUNDS {
        note(&format!("{workers} connections, round {} of {ROUNDS}", round + 1));
        for (query_type, repeated, figures) in &mut figures {
            // The one question stays the same in all turns.
            let round = if *repeated { 0 } else { round };
            let seed = turn_seed(&options.data, pass, round);
            let duration = options.query_duration / ROUNDS;
            let asked = QueryOptions {
                repeated: *repeated,
                ..QueryOptions::of(server, dialect, workers, duration, seed)
            };
            let found = run_queries(*query_type, &options.data, &asked)
                .with_context(|| figures.name.clone())?;
            let before = figures.report.take();
            figures.report = found.map(|found| QueryReport::after(before, found));
        }
    }
    for (query_type, _, QueryFigures { name, report, .. }) in &figures {
        let Some(report) = report else { continue };
        // Queries lie inside the data; only a filter on values may find nothing.
        let may_be_empty = matches!(query_type, QueryType::HighCpuOne | QueryType::HighCpuAll);
        if report.empty > 0 && !may_be_empty {
            bail!("{name}: {} of {} answers have no data", report.empty, report.latencies.count());
        }
        note(&format!("{name}: {:.1} queries/s, {}", report.rate(), report.latencies));
    }
    Ok(figures.into_iter().map(|(_, _, figures)| figures).collect())
}

fn collect_answers(
    server: &Running,
    dialect: &Dialect,
    data: &Spec,
) -> Result<Vec<(String, Json)>> {
    let mut answers = Vec::new();
    let mut client = Client::new(server.url())?;
    // Others shape their answers in ways of their own.
    if !matches!(dialect, Dialect::InfluxQl { .. }) {
        return Ok(answers);
    }
    for (name, query_type) in TSBS_TYPES.iter().chain(&EXTRA_TYPES) {
        let mut generator = QueryGenerator::new(*query_type, data, data.seed)?;
        for number in 1..=ANSWERS {
            let choice = generator.choose();
            let Some(target) = dialect.target(*query_type, &choice) else { continue };
            let response = client.get(&target)?;
            let answer =
                Json::parse(response.body).with_context(|| format!("the answer to {name}"))?;
            answers.push((format!("{name} {number}"), without_partial(answer)));
        }
    }
    Ok(answers)
}

/// Compares the answers of every system with those of the first that has any.
fn compare_answers(systems: &[SystemFigures]) -> (usize, Vec<String>) {
    let mut answering = systems.iter().filter(|system| !system.answers.is_empty());
    let Some(reference) = answering.next() else { return (0, Vec::new()) };
    let (mut compared, mut found) = (0, Vec::new());
    for system in answering {
        for ((name, expected), (_, actual)) in reference.answers.iter().zip(&system.answers) {
            compared += 1;
            for difference in differences(expected, actual, TOLERANCE, DIFFERENCES_MAX) {
                found.push(format!(
                    "{name}: {} and {} differ at {difference}",
                    reference.name, system.name
                ));
            }
        }
    }
    (compared, found)
}

/// Takes the remark `partial` off all series of an answer that came in one document. InfluxDB 1.6 makes it of every
/// series that it put together from more than one part of 10,000 rows, though nothing is left out: that rows are
/// complete shows when they are compared.
fn without_partial(mut answer: Json) -> Json {
    fn elements<'a>(value: &'a mut Json, name: &str) -> impl Iterator<Item = &'a mut Json> {
        let members =
            if let Json::Object(members) = value { members.as_mut_slice() } else { &mut [] };
        let list = members.iter_mut().find(|(key, _)| key == name).map(|(_, list)| list);
        let list = if let Some(Json::Array(list)) = list { list.as_mut_slice() } else { &mut [] };
        list.iter_mut()
    }
    for result in elements(&mut answer, "results") {
        for series in elements(result, "series") {
            if let Json::Object(members) = series {
                members.retain(|(key, value)| key != "partial" || *value != Json::Bool(true));
            }
        }
    }
    answer
}
