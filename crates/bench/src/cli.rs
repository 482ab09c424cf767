//! The commands: generate, generate-queries, load, query, compare, report, discard, functions, chance.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bench::chance::{ChanceOptions, chance, chance_table};
use bench::compare::{
    CompareOptions, Settling, append_history, compare, create_database, plots, table,
};
use bench::discard::serve;
use bench::functions::{FunctionsOptions, Slower, append_functions, functions, functions_table};
use bench::http::target;
use bench::load::{Format, LoadOptions, load};
use bench::queries::{EXTRA_TYPES, QueryGenerator, QueryType, TSBS_TYPES};
use bench::query_run::{Dialect, QueryOptions, run as run_queries};
use bench::report::{ReportOptions, Section, report};
use bench::system::System;
use bench::workload::{HOUR_NS, SECOND_NS, Spec, TSBS_START_NS, Workload};
use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::Timestamp;

/// Hosts of the quick comparison.
const QUICK_SCALE: u64 = 100;

/// Generates time series workloads and measures servers with them.
#[derive(Parser)]
#[command(name = "bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write line protocol to the standard output.
    Generate(Data),
    /// Print queries of a type, one per line.
    GenerateQueries(GenerateQueries),
    /// Send line protocol to a server and measure.
    Load(Load),
    /// Ask queries and measure.
    Query(Query),
    /// Load and query InfluxDB, VictoriaMetrics, QuestDB, ClickHouse and Nyala side by side.
    Compare(Compare),
    /// Measure everything that is published, and write it as one page; takes more than an hour.
    Report(ReportCommand),
    /// Serve nothing: read and forget what is written, answer every question with the same bytes.
    Discard(Discard),
    /// Time every function of InfluxQL on InfluxDB and Nyala, or common questions over irregular data or many hosts.
    Functions(Functions),
    /// Ask questions put together by chance, and tell which take long.
    Chance(Chance),
}

/// What data there is.
#[derive(Args)]
struct Data {
    /// cpu-only, devops, iot, services, single-field or ycsb
    #[arg(long, default_value = "cpu-only")]
    workload: Workload,
    /// Hosts, trucks, tag sets or keys
    #[arg(long, default_value_t = 100)]
    scale: u64,
    /// First time: RFC 3339 or nanoseconds
    #[arg(long, default_value_t = TSBS_START_NS, value_parser = parse_time)]
    start: i64,
    /// End of data, exclusive: RFC 3339 or nanoseconds; three days after the start if absent
    #[arg(long, value_parser = parse_time)]
    end: Option<i64>,
    /// Hours of data, instead of --end
    #[arg(long, conflicts_with = "end")]
    hours: Option<i64>,
    /// Seconds between two rows of a series
    #[arg(long, default_value_t = 10)]
    step: i64,
    /// Seed of all random choices
    #[arg(long, default_value_t = 123)]
    seed: u64,
}

#[derive(Args)]
struct GenerateQueries {
    #[command(flatten)]
    data: Data,
    /// A TSBS query type
    #[arg(long = "type")]
    query_type: QueryType,
    /// How many
    #[arg(long, default_value_t = 10)]
    count: u64,
}

/// How `load` writes rows.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LoadFormat {
    /// Line protocol
    Lines,
    /// Line protocol packed with gzip, as most agents send it by default
    Gzip,
    /// Prometheus' remote write, a series for each number
    RemoteWrite,
}

#[derive(Args)]
struct Load {
    #[command(flatten)]
    data: Data,
    /// The server
    #[arg(long, default_value = "http://127.0.0.1:8086")]
    url: String,
    /// Database to write to
    #[arg(long, default_value = "benchmark")]
    db: String,
    /// Do not create the database first (for servers without /query)
    #[arg(long)]
    no_create: bool,
    /// Parallel connections
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Rows of one request
    #[arg(long, default_value_t = 10_000)]
    batch: u64,
    /// Rows a second at most, over all connections; as many as the server takes if absent
    #[arg(long)]
    rows_per_second: Option<f64>,
    /// Generate everything into memory before the clock starts
    #[arg(long)]
    pregenerate: bool,
    /// How rows are written; all but lines best with --pregenerate, packing takes longer than a server
    #[arg(long, value_enum, default_value_t = LoadFormat::Lines)]
    format: LoadFormat,
    /// Path and query that are posted to; those of the format at an InfluxDB if absent
    #[arg(long)]
    target: Option<String>,
    /// Process id of the server, to measure what it uses
    #[arg(long)]
    pid: Option<u32>,
}

#[derive(Args)]
struct Query {
    #[command(flatten)]
    data: Data,
    /// The server
    #[arg(long, default_value = "http://127.0.0.1:8086")]
    url: String,
    /// Database to ask
    #[arg(long, default_value = "benchmark")]
    db: String,
    /// A TSBS query type, or `all`
    #[arg(long = "type", default_value = "all")]
    query_type: String,
    /// Ask in PromQL at /api/v1/query_range
    #[arg(long)]
    promql: bool,
    /// Parallel connections
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Stop a type after this long
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Stop a type after this many queries
    #[arg(long, default_value_t = u64::MAX)]
    queries: u64,
    /// Ask the same query again and again
    #[arg(long)]
    repeated: bool,
    /// Process id of the server, to measure what it uses
    #[arg(long)]
    pid: Option<u32>,
}

#[derive(Args)]
struct Compare {
    /// cpu-only, devops or iot; queries are asked of cpu-only alone
    #[arg(long, default_value = "cpu-only")]
    workload: Workload,
    /// 100 hosts (26 M values in three days) instead of 4000 (1 G values), and seconds to settle: in all
    /// less than ten minutes
    #[arg(long, conflicts_with = "scale")]
    quick: bool,
    /// Hosts or trucks
    #[arg(long, default_value_t = 4000)]
    scale: u64,
    /// Hours of data
    #[arg(long, default_value_t = 72)]
    hours: i64,
    /// Connections of the load
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Rows of one write request
    #[arg(long, default_value_t = 10_000)]
    batch: u64,
    /// How often each system is loaded, in turns; the median counts
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    load_rounds: u32,
    /// Connections of the queries; may be given several times
    #[arg(long = "query-workers", default_values_t = [2])]
    query_workers: Vec<usize>,
    /// Seconds that each query type runs
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// influxdb, victoria-metrics, questdb, clickhouse or nyala; may be given several times, all if absent
    #[arg(long = "system")]
    systems: Vec<String>,
    /// Nyala's binary
    #[arg(long, default_value = "target/release/nyala")]
    nyala: PathBuf,
    /// QuestDB's jar; where Maven keeps it if absent
    #[arg(long)]
    questdb: Option<PathBuf>,
    /// Where the servers put their files
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Write the table here, as Markdown, instead of to the standard output
    #[arg(long)]
    out: Option<PathBuf>,
    /// Write plots (SVG) into this directory
    #[arg(long)]
    plots: Option<PathBuf>,
    /// Append Nyala's figures to this file, a line of JSON a run
    #[arg(long)]
    history: Option<PathBuf>,
}

#[derive(Args)]
struct ReportCommand {
    /// queries, scans, trucks, shapes, ceiling, series, published, ycsb, crowd, cold or growth; may be given several times, all if absent
    #[arg(long = "section", value_parser = parse_section)]
    sections: Vec<Section>,
    /// Seconds that each query type runs
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Divide all sizes by this, to see that everything works
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    shrink: u64,
    /// Nyala's binary
    #[arg(long, default_value = "target/release/nyala")]
    nyala: PathBuf,
    /// Nyala alone, without its peers
    #[arg(long)]
    alone: bool,
    /// QuestDB's jar; where Maven keeps it if absent
    #[arg(long)]
    questdb: Option<PathBuf>,
    /// Where the servers put their files: about 40 GB
    #[arg(long, default_value = "target/report")]
    directory: PathBuf,
    /// The page; docs/benchmarks/results.md if absent, or, of some sections alone, sections.md in the directory of the servers
    #[arg(long)]
    out: Option<PathBuf>,
    /// Write plots (SVG) into this directory
    #[arg(long)]
    plots: Option<PathBuf>,
    /// Append Nyala's figures to this file, a line of JSON a run
    #[arg(long)]
    history: Option<PathBuf>,
}

#[derive(Args)]
struct Discard {
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:8086")]
    address: String,
}

#[derive(Args)]
struct Functions {
    /// cpu-only: every function, or, from 10,000 hosts on, what is asked of many; services: common questions over irregular
    /// data
    #[arg(long, default_value = "cpu-only", value_parser = parse_asked)]
    workload: Workload,
    /// Hosts
    #[arg(long, default_value_t = 10)]
    scale: u64,
    /// Hours of data
    #[arg(long, default_value_t = 24)]
    hours: i64,
    /// Seconds between two rows of a host
    #[arg(long, default_value_t = 10)]
    step: i64,
    /// How often each query is asked; the median counts
    #[arg(long, default_value_t = 7)]
    repeats: u32,
    /// Seconds between load and queries
    #[arg(long, default_value_t = 25.0)]
    rest: f64,
    /// Nyala's binary
    #[arg(long, default_value = "target/release/nyala")]
    nyala: PathBuf,
    /// Nyala alone, without InfluxDB
    #[arg(long)]
    alone: bool,
    /// Append Nyala's figures to this file; fails if a question takes half as long again as in its last run, when the
    /// others do not
    #[arg(long)]
    history: Option<PathBuf>,
}

#[derive(Args)]
struct Chance {
    /// The server, which should run with --query-cache-size 0
    #[arg(long, default_value = "http://127.0.0.1:8086")]
    url: String,
    /// Database to ask
    #[arg(long, default_value = "benchmark")]
    db: String,
    /// A server of an older build with the same database, to be asked in turns
    #[arg(long)]
    before: Option<String>,
    /// QuestDB with the same data
    #[arg(long)]
    questdb: Option<String>,
    /// Which questions
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many
    #[arg(long, default_value_t = 200)]
    count: u64,
    /// How often each is asked; the median counts
    #[arg(long, default_value_t = 5)]
    repeats: u32,
}

/// Runs the command that the arguments ask for.
pub(crate) fn run() -> Result<()> {
    match Cli::parse().command {
        Command::Generate(data) => generate(&data.spec()),
        Command::GenerateQueries(command) => generate_queries(&command),
        Command::Load(command) => run_load(&command),
        Command::Query(command) => run_query(&command),
        Command::Compare(command) => run_compare(&command),
        Command::Report(command) => run_report(command),
        Command::Discard(command) => serve(&command.address),
        Command::Functions(command) => run_functions(&command),
        Command::Chance(command) => run_chance(command),
    }
}

fn parse_time(text: &str) -> Result<i64> {
    if let Ok(ns) = text.parse::<i64>() {
        return Ok(ns);
    }
    let time: Timestamp = text.parse().context("neither RFC 3339 nor nanoseconds")?;
    i64::try_from(time.as_nanosecond()).context("outside of the times that nanoseconds can hold")
}

impl Data {
    fn spec(&self) -> Spec {
        let hours = self.hours.unwrap_or(72);
        let end_ns =
            self.end.unwrap_or_else(|| self.start.saturating_add(hours.saturating_mul(HOUR_NS)));
        Spec {
            workload: self.workload,
            scale: self.scale,
            start_ns: self.start,
            end_ns,
            step_ns: self.step.saturating_mul(SECOND_NS),
            seed: self.seed,
        }
    }
}

fn generate(spec: &Spec) -> Result<()> {
    let mut generator = spec.generator()?;
    let mut out = io::stdout().lock();
    let mut bytes = Vec::new();
    while generator.fill(10_000, &mut bytes).rows > 0 {
        match out.write_all(&bytes) {
            // The reader has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            other => other?,
        }
        bytes.clear();
    }
    out.flush()?;
    Ok(())
}

fn generate_queries(command: &GenerateQueries) -> Result<()> {
    let spec = command.data.spec();
    let mut generator = QueryGenerator::new(command.query_type, &spec, spec.seed)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut print = || {
        (0..command.count).try_for_each(|_| writeln!(out, "{}", generator.next_influxql()))?;
        out.flush()
    };
    match print() {
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

fn run_load(command: &Load) -> Result<()> {
    let has_texts = matches!(command.data.workload, Workload::Services | Workload::Ycsb);
    if command.format == LoadFormat::RemoteWrite && has_texts {
        bail!(
            "remote write has numbers only, and the rows of this workload texts: take another workload, or --format lines"
        );
    }
    if !command.no_create {
        create_database(&command.url, &command.db)?;
    }
    let (path, format) = match command.format {
        LoadFormat::Lines => ("/write", Format::Lines),
        LoadFormat::Gzip => ("/write", Format::GzipLines),
        LoadFormat::RemoteWrite => ("/api/v1/prom/write", Format::RemoteWrite),
    };
    let options = LoadOptions {
        url: command.url.clone(),
        target: command.target.clone().unwrap_or_else(|| target(path, &[("db", &command.db)])),
        format,
        workers: command.workers,
        batch_rows: command.batch,
        rows_per_second: command.rows_per_second,
        duration_max: None,
        pregenerate: command.pregenerate,
        pid: command.pid,
        progress: true,
    };
    print!("{}", load(&command.data.spec(), &options)?);
    Ok(())
}

fn run_query(command: &Query) -> Result<()> {
    let types: Vec<(&str, QueryType)> = match command.query_type.as_str() {
        "all" => TSBS_TYPES.iter().chain(&EXTRA_TYPES).copied().collect(),
        name => vec![(name, name.parse()?)],
    };
    let spec = command.data.spec();
    let dialect =
        if command.promql { Dialect::PromQl } else { Dialect::InfluxQl { db: command.db.clone() } };
    let options = QueryOptions {
        url: command.url.clone(),
        dialect,
        workers: command.workers,
        duration: Duration::try_from_secs_f64(command.seconds).context("--seconds")?,
        queries_max: command.queries,
        repeated: command.repeated,
        seed: spec.seed,
        pid: command.pid,
    };
    for (name, query_type) in types {
        match run_queries(query_type, &spec, &options)? {
            Some(report) => println!("{name}\n{report}"),
            None => println!("{name}\nthe language has no way to ask this\n"),
        }
    }
    Ok(())
}

/// Where Maven puts what it was asked to get.
fn questdb_jar() -> PathBuf {
    const JAR: &str = ".m2/repository/org/questdb/questdb/9.3.1/questdb-9.3.1.jar";
    std::env::home_dir().unwrap_or_default().join(JAR)
}

fn run_compare(command: &Compare) -> Result<()> {
    let known = [
        ("influxdb", System::InfluxDb),
        ("victoria-metrics", System::VictoriaMetrics),
        ("questdb", System::QuestDb(command.questdb.clone().unwrap_or_else(questdb_jar))),
        ("clickhouse", System::ClickHouse),
        ("nyala", System::Nyala(command.nyala.clone())),
    ];
    let mut systems = Vec::new();
    for name in &command.systems {
        match known.iter().find(|(known, _)| known == name) {
            Some((_, system)) => systems.push(system.clone()),
            None => {
                let known = known.map(|(known, _)| known).join(", ");
                bail!("unknown system {name:?}: use one of {known}")
            }
        }
    }
    if systems.is_empty() {
        systems.extend(known.into_iter().map(|(_, system)| system));
    }
    let comparison = compare(&CompareOptions {
        data: Spec {
            workload: command.workload,
            ..Spec::cpu_only(if command.quick { QUICK_SCALE } else { command.scale }, command.hours)
        },
        load_workers: command.workers,
        batch_rows: command.batch,
        load_rounds: command.load_rounds,
        query_workers: command.query_workers.clone(),
        query_duration: Duration::try_from_secs_f64(command.seconds).context("--seconds")?,
        settling: if command.quick { Settling::QUICK } else { Settling::PATIENT },
        systems,
        directory: command.directory.clone(),
    })?;
    if let Some(directory) = &command.plots {
        plots(&comparison, directory)?;
    }
    if let Some(path) = &command.history {
        append_history(&comparison, path)?;
    }
    let text = table(&comparison);
    match &command.out {
        Some(path) => {
            fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        None => print!("{text}"),
    }
    if !comparison.disagreements.is_empty() {
        bail!("{} answers differ between systems, see the table", comparison.disagreements.len());
    }
    Ok(())
}

fn parse_section(name: &str) -> Result<Section> {
    let known = || Section::ALL.map(|(known, _)| known).join(", ");
    let found = Section::ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, section)| *section).with_context(|| format!("use one of {}", known()))
}

fn run_report(command: ReportCommand) -> Result<()> {
    let mut sections = command.sections;
    // A few sections are not the page of all.
    let page = match sections.is_empty() {
        true => PathBuf::from("docs/benchmarks/results.md"),
        false => command.directory.join("sections.md"),
    };
    if sections.is_empty() {
        sections.extend(Section::ALL.iter().map(|(_, section)| *section));
    }
    let peers = vec![
        System::InfluxDb,
        System::VictoriaMetrics,
        System::QuestDb(command.questdb.unwrap_or_else(questdb_jar)),
        System::ClickHouse,
    ];
    report(&ReportOptions {
        sections,
        peers: if command.alone { Vec::new() } else { peers },
        nyala: System::Nyala(command.nyala),
        query_duration: Duration::try_from_secs_f64(command.seconds).context("--seconds")?,
        shrink: command.shrink,
        directory: command.directory,
        out: command.out.unwrap_or(page),
        plots: command.plots,
        history: command.history,
    })
}

/// A workload that there are questions about.
fn parse_asked(name: &str) -> Result<Workload, String> {
    match name.parse() {
        Ok(known @ (Workload::CpuOnly | Workload::Services)) => Ok(known),
        _ => Err("use cpu-only or services".to_owned()),
    }
}

fn run_functions(command: &Functions) -> Result<()> {
    let nyala = System::Nyala(command.nyala.clone());
    let options = FunctionsOptions {
        data: Spec {
            workload: command.workload,
            step_ns: command.step.saturating_mul(SECOND_NS),
            ..Spec::cpu_only(command.scale, command.hours)
        },
        systems: if command.alone { vec![nyala] } else { vec![System::InfluxDb, nyala] },
        repeats: command.repeats,
        rest: Duration::try_from_secs_f64(command.rest).context("--rest")?,
    };
    let figures = functions(&options)?;
    print!("{}", functions_table(&options.systems, &figures));
    let Some(path) = &command.history else { return Ok(()) };
    let slower = append_functions(&options, &figures, path)?;
    if slower.is_empty() {
        return Ok(());
    }
    let tell = |slower: &Slower| {
        let Slower { name, before_ms, now_ms, commit } = slower;
        format!("\n  {name}: {now_ms:.2} ms, {before_ms:.2} ms at {commit}")
    };
    let told: Vec<String> = slower.iter().map(tell).collect();
    bail!("slower than in the last run, when the other questions are not:{}", told.concat())
}

fn run_chance(command: Chance) -> Result<()> {
    let Chance { url, db, before, questdb, seed, count, repeats } = command;
    let options = ChanceOptions { url, db, before, questdb, seed, count, repeats };
    let (figures, errors) = chance(&options)?;
    print!("{}", chance_table(&figures));
    for error in &errors {
        println!("Refused: {error}");
    }
    let differ = figures.iter().filter(|figure| figure.differs).count();
    if differ > 0 {
        bail!("{differ} questions are answered otherwise than before, see above");
    }
    Ok(())
}
