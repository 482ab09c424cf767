//! Many series: how fast they are made, what they take, how soon they are there again.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::{Report, Started, megabytes, millions, optional, per_value};
use crate::http::{Client, target};
use crate::load::note;
use crate::system::System;
use crate::workload::{SECOND_NS, Spec, Workload};

const DB: &str = "benchmark";

struct Scenario {
    name: &'static str,
    spec: Spec,
    systems: Vec<System>,
    /// Statements that are timed after a restart; Nyala's alone.
    probes: Vec<(&'static str, String)>,
}

impl Report<'_> {
    pub(super) fn series(&mut self) -> Result<()> {
        self.push("\n## Many series\n\n");
        self.row([
            "load",
            "system",
            "M rows",
            "M values",
            "M values/s",
            "K series/s",
            "server CPU, us/value",
            "resident MB at most",
            "bytes on disk per value, right after",
            "stop, start again, s",
        ]);
        self.row(["---"; 10]);
        let mut probed = Vec::new();
        for scenario in self.scenarios() {
            for system in &scenario.systems {
                if system.is_installed() {
                    probed.extend(self.scenario(&scenario, system)?);
                }
            }
        }
        self.push("\nStatements after the restart, ms (the first time, then the median of nine more):\n\n");
        self.row(["load", "statement", "first", "again"]);
        self.row(["---"; 4]);
        for row in probed {
            self.row(row);
        }
        Ok(())
    }

    fn scenarios(&self) -> Vec<Scenario> {
        let wide = |scale: u64, step_s: i64, steps: i64| {
            let data = Spec::cpu_only(self.scale(scale), 1);
            let step_ns = step_s * SECOND_NS;
            Spec { step_ns, end_ns: data.start_ns + step_ns * steps, ..data }
        };
        let one_host = |scale: u64| {
            let host = self.scale(scale) - 1;
            (
                "max of one host",
                format!("SELECT max(usage_user) FROM cpu WHERE hostname = 'host_{host}'"),
            )
        };
        let cardinality = ("series cardinality", "SHOW SERIES CARDINALITY".to_owned());
        let nyala = || vec![self.options.nyala.clone()];
        let single = Spec { workload: Workload::SingleField, ..wide(40_000_000, 3600, 2) };
        let id = single.scale * 3 / 4;
        vec![
            Scenario {
                name: "4 M metrics: 400 K hosts x 10 fields, 6 steps",
                spec: wide(400_000, 600, 6),
                systems: vec![System::VictoriaMetrics, self.options.nyala.clone()],
                probes: vec![one_host(400_000), cardinality.clone()],
            },
            Scenario {
                name: "40 M metrics: 4 M hosts x 10 fields, 3 steps",
                spec: wide(4_000_000, 3600, 3),
                systems: nyala(),
                probes: vec![one_host(4_000_000), cardinality.clone()],
            },
            Scenario {
                name: "40 M series of one field, 2 steps",
                spec: single,
                systems: nyala(),
                probes: vec![
                    cardinality,
                    ("values of a tag of 1000", "SHOW TAG VALUES WITH KEY = site".to_owned()),
                    (
                        "five values of a tag of 40 M",
                        "SHOW TAG VALUES WITH KEY = id LIMIT 5".to_owned(),
                    ),
                    ("one series", format!("SELECT value FROM sensor WHERE id = 'sensor_{id}'")),
                ],
            },
        ]
    }

    fn scenario(&mut self, scenario: &Scenario, system: &System) -> Result<Vec<[String; 4]>> {
        note(&format!("== {}: {}", scenario.name, system.name()));
        let started = self.start(system)?;
        let loaded = started.load(&scenario.spec)?;
        // The server is to stop before its files go.
        let Started { directory, server, .. } = started;
        let on_disk = per_value(server.data(), loaded.sent.values)?;
        let is_nyala = matches!(system, System::Nyala(_));
        let (mut probed, mut restart) = (Vec::new(), "-".to_owned());
        if is_nyala {
            self.remember(scenario.spec.scale, &loaded);
            let begun = Instant::now();
            drop(server);
            let stopped = begun.elapsed();
            let begun = Instant::now();
            let server = system.start(directory.path())?;
            restart = format!("{:.1}, {:.1}", stopped.as_secs_f64(), begun.elapsed().as_secs_f64());
            for (name, statement) in &scenario.probes {
                let (first, again) = probe(server.url(), statement)?;
                probed.push([scenario.name.to_owned(), (*name).to_owned(), first, again]);
            }
        }
        let peak = loaded.usage.map_or(0, |(_, after)| after.resident_peak_bytes);
        // Every series is new in the first step.
        let steps = (scenario.spec.end_ns - scenario.spec.start_ns) / scenario.spec.step_ns;
        let first_step = loaded.seconds_until(loaded.sent.rows / steps.max(1).unsigned_abs());
        self.row([
            scenario.name.to_owned(),
            system.name().to_owned(),
            millions(loaded.sent.rows as f64),
            millions(loaded.sent.values as f64),
            millions(loaded.rate()),
            optional(first_step.map(|s| scenario.spec.scale as f64 / s / 1e3), 0),
            optional(loaded.cpu_us_per_value(), 3),
            megabytes(peak),
            format!("{on_disk:.2}"),
            restart,
        ]);
        Ok(probed)
    }
}

/// Asks a statement ten times: how long the first took, and the median of the others.
fn probe(url: &str, statement: &str) -> Result<(String, String)> {
    let mut client = Client::new(url)?;
    let target = target("/query", &[("db", DB), ("q", statement)]);
    let mut times = Vec::new();
    for _ in 0..10 {
        let begun = Instant::now();
        let response = client.get(&target)?;
        times.push(begun.elapsed());
        let text = String::from_utf8_lossy(&response.body[..response.body.len().min(300)]);
        if !response.is_success() || text.contains("\"error\"") || !text.contains("\"values\"") {
            bail!("{statement}: {} {text}", response.status);
        }
    }
    times[1..].sort_unstable();
    let shown = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1e3);
    Ok((shown(times[0]), shown(times[5])))
}
