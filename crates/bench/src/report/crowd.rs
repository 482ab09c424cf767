//! Many connections that write: agents on many machines, each of which sends little and waits for its answer.

use std::time::Duration;

use anyhow::Result;

use super::{Report, megabytes, optional};
use crate::compare::load_options_of;
use crate::load::{LoadOptions, LoadReport, load, note};
use crate::system::System;
use crate::workload::Spec;

const DURATION: Duration = Duration::from_secs(10);
/// Connections, and rows of a request.
const CROWDS: [(usize, u64); 4] = [(16, 1), (256, 1), (256, 50), (1000, 50)];
/// More than could be written meanwhile.
const HOSTS: u64 = 500;
const HOURS: i64 = 1000;

impl Report<'_> {
    pub(super) fn crowd(&mut self) -> Result<()> {
        self.push(&format!(
            "\n## Many connections that write\n\nRows of cpu-only, {HOSTS} hosts, {} s each; every connection waits for its \
             answer. The clients run on the same processors.\n\n",
            DURATION.as_secs()
        ));
        self.row([
            "",
            "connections",
            "rows a request",
            "rows/s",
            "median ms",
            "p99 ms",
            "server CPU us a row",
            "resident MB at most",
        ]);
        self.row(["---"; 8]);
        for system in self.systems() {
            for (connections, batch_rows) in CROWDS {
                let found = self.crowd_of(&system, connections, batch_rows);
                let start = [system.name(), &connections.to_string(), &batch_rows.to_string()]
                    .map(str::to_owned);
                let cells = match &found {
                    Ok(found) => figures(found),
                    // Some end connections beyond a number.
                    Err(error) => {
                        note(&format!("{}: {error:#}", system.name()));
                        let text = error.to_string();
                        let said = text.split(['\n', '|']).next().unwrap_or_default();
                        let mut cells = vec![format!("failed: {said}")];
                        cells.resize(5, "-".to_owned());
                        cells
                    }
                };
                self.row(start.into_iter().chain(cells));
            }
        }
        Ok(())
    }

    fn crowd_of(&self, system: &System, connections: usize, batch_rows: u64) -> Result<LoadReport> {
        let started = self.start(system)?;
        let duration = DURATION / u32::try_from(self.options.shrink).unwrap_or(u32::MAX);
        let options = LoadOptions {
            duration_max: Some(duration.max(Duration::from_secs(2))),
            ..load_options_of(&started.server, &started.dialect, connections, batch_rows)
        };
        load(&Spec::cpu_only(HOSTS, HOURS), &options)
    }
}

fn figures(found: &LoadReport) -> Vec<String> {
    let rows = found.sent.rows as f64;
    let cpu_us =
        found.usage.map(|(before, after)| (after.cpu_seconds - before.cpu_seconds) * 1e6 / rows);
    let peak = found.usage.map_or(0, |(_, after)| after.resident_peak_bytes);
    vec![
        format!("{:.0}", rows / found.seconds),
        format!("{:.2}", found.latencies.quantile_ms(0.5)),
        format!("{:.2}", found.latencies.quantile_ms(0.99)),
        optional(cpu_us, 2),
        megabytes(peak),
    ]
}
