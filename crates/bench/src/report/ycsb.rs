//! Rows of text under pressure: every row by itself from many clients, and in small batches.

use std::time::Duration;

use anyhow::Result;

use super::{Report, megabytes, optional};
use crate::compare::load_options_of;
use crate::load::{LoadOptions, LoadReport, load, note};
use crate::plot::{Series, lines};
use crate::workload::{Spec, Workload};

const DURATION: Duration = Duration::from_secs(300);
/// Before that: the disk has just been told that large stores of other sections are gone, and is slow for a
/// minute wherever it is told at once (`discard`).
const REST: Duration = Duration::from_secs(60);
const CLIENTS: usize = 16;
/// More keys than could be inserted meanwhile.
const KEYS: u64 = 90_000_000;

impl Report<'_> {
    pub(super) fn ycsb(&mut self) -> Result<()> {
        self.push(&format!(
            "\n## Inserts of text under pressure\n\nTen texts of 100 bytes a row, keys in hashed order, {CLIENTS} \
             clients, each waits for its acknowledgement; before, a minute without load.\n\n"
        ));
        self.row([
            "rows a request",
            "s",
            "rows/s",
            "slowest second, share of the mean",
            "median ms",
            "p99 ms",
            "p99.9 ms",
            "refused",
            "resident MB at most",
            "bytes written per byte of text",
        ]);
        self.row(["---"; 10]);
        note("the disk rests");
        std::thread::sleep(REST / u32::try_from(self.options.shrink).unwrap_or(u32::MAX));
        let mut plotted = Vec::new();
        for batch_rows in [1, 100] {
            let found = self.inserts(batch_rows)?;
            let by_second = found.rows_by_second.iter();
            plotted.push(Series {
                name: format!("{batch_rows} a request"),
                values: by_second.map(|rows| Some(*rows as f64)).collect(),
            });
        }
        let svg = lines("Inserts of rows of 1 KB of text: rows in each second", &plotted);
        self.plot("ycsb-rows.svg", "Rows inserted in each second", &svg)
    }

    fn inserts(&mut self, batch_rows: u64) -> Result<LoadReport> {
        let nyala = self.start(&self.options.nyala)?;
        let data = Spec { workload: Workload::Ycsb, ..Spec::cpu_only(KEYS, 1) };
        let duration = DURATION / u32::try_from(self.options.shrink).unwrap_or(u32::MAX);
        let options = LoadOptions {
            duration_max: Some(duration.max(Duration::from_secs(2))),
            ..load_options_of(&nyala.server, &nyala.dialect, CLIENTS, batch_rows)
        };
        let found = load(&data, &options)?;
        let mean = found.sent.rows as f64 / found.seconds;
        // The first second has the start of all connections in it.
        let slowest = found.rows_by_second.iter().skip(1).min();
        let written = found.usage.and_then(|(before, after)| {
            Some(after.written_bytes?.saturating_sub(before.written_bytes?) as f64)
        });
        let (latencies, peak) =
            (&found.latencies, found.usage.map_or(0, |(_, after)| after.resident_peak_bytes));
        self.row([
            batch_rows.to_string(),
            format!("{:.0}", found.seconds),
            format!("{mean:.0}"),
            optional(slowest.map(|rows| *rows as f64 / mean), 2),
            format!("{:.2}", latencies.quantile_ms(0.5)),
            format!("{:.2}", latencies.quantile_ms(0.99)),
            format!("{:.2}", latencies.quantile_ms(0.999)),
            found.refused.to_string(),
            megabytes(peak),
            optional(written.map(|bytes| bytes / (found.sent.values * 100) as f64), 2),
        ]);
        Ok(found)
    }
}
