//! Queries while a load runs.

use anyhow::{Context, Result};

use super::{CompareOptions, load_options};
use crate::load::{LoadOptions, LoadReport, load, note};
use crate::queries::TSBS_TYPES;
use crate::query_run::{Dialect, QueryOptions, run};
use crate::system::Running;
use crate::workload::Spec;

/// Share of the highest load rate that runs beside the queries.
const LOAD_SHARE: f64 = 0.5;

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
/// the rate of the load; `None` if the language cannot ask it.
pub(super) fn measure(
    server: &Running,
    dialect: &Dialect,
    loaded: &LoadReport,
    options: &CompareOptions,
) -> Result<Option<Mixed>> {
    let query = QueryOptions::of(
        server,
        dialect,
        options.query_workers.first().copied().unwrap_or(2),
        options.query_duration,
        options.data.seed,
    );
    let (name, query_type) = TSBS_TYPES[0];
    let ask = || run(query_type, &options.data, &query).with_context(|| name.to_owned());
    let Some(alone) = ask()? else { return Ok(None) };
    let rows_wanted = loaded.sent.rows as f64 / loaded.seconds * LOAD_SHARE;
    // A little more than the queries take, so that they never run alone.
    let seconds = options.query_duration.as_secs_f64() * 1.2 + 0.5;
    let steps = (rows_wanted * seconds / options.data.scale as f64).ceil().max(1.0) as i64;
    let start_ns = options.data.end_ns;
    let end_ns = start_ns.saturating_add(options.data.step_ns.saturating_mul(steps));
    let data = Spec { start_ns, end_ns, ..options.data.clone() };
    let paced = LoadOptions {
        rows_per_second: Some(rows_wanted),
        progress: false,
        ..load_options(server, dialect, options)
    };
    let (beside, stored) = std::thread::scope(|scope| {
        let load = scope.spawn(|| load(&data, &paced));
        let beside = ask();
        (beside, load.join().expect("BUG: a worker panicked"))
    });
    let (Some(beside), stored) = (beside?, stored?) else { return Ok(None) };
    let mixed = Mixed {
        alone: alone.rate(),
        beside_load: beside.rate(),
        p99_ms: beside.latencies.quantile_ms(0.99),
        rows_wanted,
        rows_stored: stored.sent.rows as f64 / stored.seconds,
    };
    note(&format!(
        "{name} beside a load of {:.0} K rows/s: {:.1} queries/s, alone {:.1}",
        mixed.rows_stored / 1e3,
        mixed.beside_load,
        mixed.alone
    ));
    Ok(Some(mixed))
}
