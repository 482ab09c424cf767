//! The first question after a start, with nothing of the data in memory: what a dashboard waits for after an upgrade,
//! or of data that nobody has looked at for days.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{Report, Started};
use crate::compare::settle;
use crate::http::Client;
use crate::load::note;
use crate::queries::{QueryGenerator, QueryType};
use crate::query_run::Dialect;
use crate::random::hash;
use crate::system::System;
use crate::workload::Spec;

const HOSTS: u64 = 1000;
const HOURS: i64 = 24;
const TYPES: [&str; 9] = [
    "single-groupby-1-1-1",
    "single-groupby-5-8-1",
    "cpu-max-all-8",
    "double-groupby-1",
    "double-groupby-all",
    "high-cpu-1",
    "high-cpu-all",
    "lastpoint",
    "groupby-orderby-limit-desc",
];
/// Starts for each type.
const ROUNDS: u64 = 3;
/// What a system still does after it began to answer is over then.
const REST: Duration = Duration::from_secs(1);
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Milliseconds that the first question took, and another one of its type after it.
type Times = (f64, f64);

impl Report<'_> {
    pub(super) fn cold(&mut self) -> Result<()> {
        self.push(&format!(
            "\n## From a cold page cache\n\n{} hosts, {HOURS} h, settled. For each question the system was stopped, what \
             the kernel has of files was dropped, and it was started again: ms of the first question, medians of {ROUNDS}. In \
             brackets another one of its type after it.\n\n",
            self.scale(HOSTS)
        ));
        // Before anything is loaded.
        if let Err(error) = forget_files() {
            note(&format!("{error:#}"));
            self.push(&format!("Not measured: {error:#}.\n"));
            return Ok(());
        }
        let systems: Vec<System> =
            self.systems().into_iter().filter(System::is_installed).collect();
        let mut columns = Vec::new();
        for system in &systems {
            note(&format!("== {}", system.name()));
            columns.push(self.cold_of(system).with_context(|| system.name().to_owned())?);
        }
        let names = systems.iter().map(System::name);
        self.row(std::iter::once("").chain(names));
        self.row(vec!["---"; 1 + systems.len()]);
        for (at, name) in TYPES.iter().enumerate() {
            let cells = columns.iter().map(|column| match column[at] {
                Some((first, next)) => format!("{first:.1} ({next:.1})"),
                None => "-".to_owned(),
            });
            self.row(std::iter::once((*name).to_owned()).chain(cells));
        }
        Ok(())
    }

    /// A figure for each type; `None` where the system's language cannot ask.
    fn cold_of(&self, system: &System) -> Result<Vec<Option<Times>>> {
        let data = Spec::cpu_only(self.scale(HOSTS), HOURS);
        let started = self.start(system)?;
        started.load(&data)?;
        // The server is to stop before its files go.
        let Started { directory, server, dialect } = started;
        settle(&server, &self.settling())?;
        drop(server);
        let mut found = Vec::new();
        for name in TYPES {
            let query_type: QueryType = name.parse()?;
            let mut times = Vec::new();
            for round in 0..ROUNDS {
                forget_files()?;
                let server = system.start(directory.path())?;
                std::thread::sleep(REST);
                let seed = hash(data.seed, round);
                times.extend(ask(server.url(), &dialect, query_type, &data, seed)?);
            }
            let median = |of: fn(&Times) -> f64| {
                let mut all: Vec<f64> = times.iter().map(of).collect();
                all.sort_by(f64::total_cmp);
                all.get(all.len() / 2).copied()
            };
            let medians = median(|times| times.0).zip(median(|times| times.1));
            if let Some((first, next)) = medians {
                note(&format!("{name}: {first:.1} ms, then {next:.1}"));
            }
            found.push(medians);
        }
        Ok(found)
    }
}

/// Asks two questions of a type.
fn ask(
    url: &str,
    dialect: &Dialect,
    query_type: QueryType,
    data: &Spec,
    seed: u64,
) -> Result<Option<Times>> {
    let mut client = Client::new(url)?;
    let mut questions = QueryGenerator::new(query_type, data, seed)?;
    let mut next = || -> Result<Option<f64>> {
        let Some(target) = dialect.target(query_type, &questions.choose()) else { return Ok(None) };
        let begun = Instant::now();
        let response = client.get(&target)?;
        let taken = begun.elapsed().as_secs_f64() * 1e3;
        if !response.is_success() {
            bail!("{target}: {} {}", response.status, String::from_utf8_lossy(response.body));
        }
        Ok(Some(taken))
    };
    Ok(next()?.zip(next()?))
}

/// Has the kernel forget what it holds of files.
fn forget_files() -> Result<()> {
    rustix::fs::sync();
    fs::write(DROP_CACHES, "3").with_context(|| format!("{DROP_CACHES} cannot be written: be root"))
}
