//! The plots of a comparison.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{Comparison, QueryFigures, SystemFigures};
use crate::plot::{Series, bars, lines};
use crate::process::Usage;

/// Writes the plots into a directory: the load over time (rows, memory, processors) and the queries
/// (rate, median and 99th percentile) for each number of clients.
///
/// # Errors
/// When a file cannot be written.
pub fn plots(comparison: &Comparison, directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let save = |name: &str, svg: String| {
        let path = directory.join(format!("{name}.svg"));
        fs::write(&path, svg).with_context(|| format!("cannot write {}", path.display()))
    };
    let over_time = |values: &dyn Fn(&SystemFigures) -> Vec<f64>| -> Vec<Series> {
        let series = |system: &SystemFigures| Series {
            name: system.name.to_owned(),
            values: values(system).into_iter().map(Some).collect(),
        };
        comparison.systems.iter().map(series).collect()
    };
    let rows =
        over_time(&|system| system.load.rows_by_second.iter().map(|rows| *rows as f64).collect());
    save("load-rows", lines("Load: rows acknowledged in each second", &rows))?;
    let memory = over_time(&|system| {
        system.load.usage_by_second.iter().map(|usage| usage.resident_bytes as f64).collect()
    });
    save("load-memory", lines("Load: resident memory of the server, bytes", &memory))?;
    let cpu =
        over_time(&|system| busy(system.load.usage.map(|u| u.0), &system.load.usage_by_second));
    save("load-cpu", lines("Load: processors the server keeps busy", &cpu))?;
    let first = comparison.systems.first().map_or(&[][..], |system| &system.queries);
    let mut clients: Vec<usize> = first.iter().map(|query| query.workers).collect();
    clients.sort_unstable();
    clients.dedup();
    for clients in clients {
        let names: Vec<String> = queries(first, clients).map(|query| query.name.clone()).collect();
        let of = |figure: &dyn Fn(&QueryFigures) -> Option<f64>| -> Vec<Series> {
            let series = |system: &SystemFigures| Series {
                name: system.name.to_owned(),
                values: queries(&system.queries, clients).map(figure).collect(),
            };
            comparison.systems.iter().map(series).collect()
        };
        let rate = of(&|query| Some(query.report.as_ref()?.rate()));
        let title = format!("Queries a second, {clients} clients");
        save(&format!("query-rate-{clients}"), bars(&title, &names, &rate))?;
        for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
            let latency = of(&|query| Some(query.report.as_ref()?.latencies.quantile_ms(quantile)));
            let title = format!("Latency of queries, {name}, ms, {clients} clients");
            save(&format!("query-{name}-{clients}"), bars(&title, &names, &latency))?;
        }
    }
    Ok(())
}

fn queries(all: &[QueryFigures], clients: usize) -> impl Iterator<Item = &QueryFigures> {
    all.iter().filter(move |query| query.workers == clients)
}

/// Processor seconds used in each second.
fn busy(before: Option<Usage>, by_second: &[Usage]) -> Vec<f64> {
    let mut last = before.map_or(0.0, |usage| usage.cpu_seconds);
    let since = |usage: &Usage| {
        let used = usage.cpu_seconds - last;
        last = usage.cpu_seconds;
        used
    };
    by_second.iter().map(since).collect()
}
