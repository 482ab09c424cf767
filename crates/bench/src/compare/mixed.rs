//! Queries while a load runs.

use anyhow::{Context, Result};

use super::{CompareOptions, ROUNDS, load_options, turn_seed};
use crate::load::{LoadOptions, LoadReport, load, note};
use crate::queries::TSBS_TYPES;
use crate::query_run::{Dialect, QueryOptions, QueryReport, run};
use crate::system::Running;
use crate::workload::Spec;

/// Share of the highest load rate that runs beside the queries.
const LOAD_SHARE: f64 = 0.5;
/// Passes of questions, beyond those of the query types.
const ALONE: u64 = 1001;
const BESIDE: u64 = 1002;

/// Queries of one type without and with a load beside them.
#[derive(Debug, Clone, Copy)]
pub struct Mixed {
    /// Queries a second alone.
    pub alone: f64,
    /// Queries a second while the load ran.
    pub beside_load: f64,
    /// Their 99th percentile, ms.
    pub p99_ms: f64,
    /// Rows a second that were aimed at.
    pub rows_wanted: f64,
    /// Rows a second that were stored meanwhile.
    pub rows_stored: f64,
}

/// Asks the first query type alone and while data that follows on what was loaded comes in at half
/// the rate of the load, in turns; `None` if the language cannot ask it.
pub(super) fn measure(
    server: &Running,
    dialect: &Dialect,
    loaded: &LoadReport,
    options: &CompareOptions,
) -> Result<Option<Mixed>> {
    let (name, query_type) = TSBS_TYPES[0];
    let rows_wanted = loaded.sent.rows as f64 / loaded.seconds * LOAD_SHARE;
    let duration = options.query_duration / ROUNDS;
    // A little more than the queries take, so that they never run alone.
    let seconds = duration.as_secs_f64() * 1.2 + 0.5;
    let steps = (rows_wanted * seconds / options.data.scale as f64).ceil().max(1.0) as i64;
    let paced = LoadOptions {
        rows_per_second: Some(rows_wanted),
        progress: false,
        ..load_options(server, dialect, options)
    };
    let workers = options.query_workers.first().copied().unwrap_or(2);
    let (mut alone, mut beside): (Option<QueryReport>, Option<QueryReport>) = (None, None);
    let (mut rows, mut load_seconds) = (0, 0.0);
    let mut start_ns = options.data.end_ns;
    for round in 0..ROUNDS {
        let ask = |pass| {
            let seed = turn_seed(&options.data, pass, round);
            let query = QueryOptions::of(server, dialect, workers, duration, seed);
            run(query_type, &options.data, &query).with_context(|| name.to_owned())
        };
        let Some(found) = ask(ALONE)? else { return Ok(None) };
        alone = Some(QueryReport::after(alone, found));
        let end_ns = start_ns.saturating_add(options.data.step_ns.saturating_mul(steps));
        let data = Spec { start_ns, end_ns, ..options.data.clone() };
        start_ns = end_ns;
        let (found, stored) = std::thread::scope(|scope| {
            let load = scope.spawn(|| load(&data, &paced));
            let found = ask(BESIDE);
            (found, load.join().expect("BUG: a worker panicked"))
        });
        let (Some(found), stored) = (found?, stored?) else { return Ok(None) };
        beside = Some(QueryReport::after(beside, found));
        rows += stored.sent.rows;
        load_seconds += stored.seconds;
    }
    let (Some(alone), Some(beside)) = (alone, beside) else { return Ok(None) };
    let mixed = Mixed {
        alone: alone.rate(),
        beside_load: beside.rate(),
        p99_ms: beside.latencies.quantile_ms(0.99),
        rows_wanted,
        rows_stored: rows as f64 / load_seconds,
    };
    note(&format!(
        "{name} beside a load of {:.0} K rows/s: {:.1} queries/s, alone {:.1}",
        mixed.rows_stored / 1e3,
        mixed.beside_load,
        mixed.alone
    ));
    Ok(Some(mixed))
}
