//! The set that others publish figures of: 4000 hosts, three days, a billion values.

use std::time::Duration;

use anyhow::{Context, Result};

use super::{Report, Started, megabytes, millions, optional, per_value};
use crate::compare::{Settling, settle};
use crate::load::note;
use crate::queries::{EXTRA_TYPES, QueryType, TSBS_TYPES};
use crate::query_run::{QueryOptions, run};
use crate::workload::{SECOND_NS, Spec};

/// A billion values are merged in one go.
const SETTLE_MAX: Duration = Duration::from_secs(1200);

impl Report<'_> {
    pub(super) fn published(&mut self) -> Result<()> {
        let data = Spec::cpu_only(self.scale(4000), 72);
        let nyala = self.start(&self.options.nyala)?;
        let loaded = nyala.load(&data)?;
        let Started { server, dialect, .. } = &nyala;
        self.remember(data.scale, &loaded);
        let peak = loaded.usage.map_or(0, |(_, after)| after.resident_peak_bytes);
        let after = per_value(server.data(), loaded.sent.values)?;
        let settling = self.settling();
        let at_most = if self.options.shrink > 1 { settling.at_most } else { SETTLE_MAX };
        let (bytes, settled) = settle(server, &Settling { at_most, ..settling })?;
        self.push("\n## 4000 hosts, three days\n\n");
        self.row(["what", "Nyala"]);
        self.row(["---"; 2]);
        self.row(["M values".to_owned(), millions(loaded.sent.values as f64)]);
        self.row(["load, M values/s".to_owned(), millions(loaded.rate())]);
        self.row(["server CPU, us/value".to_owned(), optional(loaded.cpu_us_per_value(), 3)]);
        self.row(["resident MB at most".to_owned(), megabytes(peak)]);
        self.row(["bytes on disk per value, right after".to_owned(), format!("{after:.3}")]);
        let share = bytes as f64 / loaded.sent.values as f64;
        self.row([format!("the same after {:.0} s", settled.as_secs_f64()), format!("{share:.3}")]);
        self.push("\nQueries, 2 clients, after that time:\n\n");
        self.row([
            "type",
            "queries/s",
            "median ms",
            "p99 ms",
            "server CPU, us/query",
            "median over 100 hosts",
        ]);
        self.row(["---"; 6]);
        for (name, query_type) in TSBS_TYPES.iter().chain(&EXTRA_TYPES) {
            let asked =
                QueryOptions::of(server, dialect, 2, self.options.query_duration, data.seed);
            let found =
                run(*query_type, &data, &asked)?.context("BUG: InfluxQL asks everything")?;
            note(&format!("{name}: {:.1} queries/s, {}", found.rate(), found.latencies));
            let median = found.latencies.quantile_ms(0.5);
            let before = self.nyala.as_ref().and_then(|nyala| {
                let same = |q: &&crate::compare::QueryFigures| q.name == *name && q.workers == 2;
                let report = nyala.queries.iter().find(same)?.report.as_ref()?;
                Some(median / report.latencies.quantile_ms(0.5))
            });
            self.row([
                (*name).to_owned(),
                format!("{:.1}", found.rate()),
                format!("{median:.2}"),
                format!("{:.2}", found.latencies.quantile_ms(0.99)),
                optional(found.cpu_us_per_query(), 0),
                before.map_or_else(|| "-".to_owned(), |times| format!("{times:.2} x")),
            ]);
            if let QueryType::DoubleGroupby { fields } = query_type {
                let steps = query_type.window_hours() * 3600 * SECOND_NS / data.step_ns;
                let cells = steps as f64 * data.scale as f64 * *fields as f64 * found.rate();
                self.push(&format!("| {name}, G cells/s | {:.2} | | | | |\n", cells / 1e9));
            }
        }
        Ok(())
    }
}
