//! Figures of past runs: a line of JSON a run, so that a loss of speed shows.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use jiff::Timestamp;

use super::{Comparison, SystemFigures};
use crate::system::System;
use crate::workload::HOUR_NS;

/// Appends Nyala's figures to a file; nothing if it was not measured.
///
/// # Errors
/// When the file cannot be written.
pub fn append_history(comparison: &Comparison, path: &Path) -> Result<()> {
    let name = System::Nyala(std::path::PathBuf::new()).name();
    let Some(nyala) = comparison.systems.iter().find(|system| system.name == name) else {
        return Ok(());
    };
    let line = line(comparison, nyala, &commit(), &Timestamp::now().to_string());
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The commit that is checked out; `unknown` outside of a repository.
pub(crate) fn commit() -> String {
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let text = output.ok().filter(|output| output.status.success());
    let text = text.and_then(|output| String::from_utf8(output.stdout).ok());
    text.map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}

pub(super) fn line(
    comparison: &Comparison,
    nyala: &SystemFigures,
    commit: &str,
    time: &str,
) -> String {
    let (data, load) = (&comparison.data, &nyala.load);
    let mut out = format!(
        "{{\"time\":\"{time}\",\"commit\":\"{commit}\",\"workload\":\"{}\",\"scale\":{},\"hours\":{},\
         \"load_values_per_s\":{:.0},\"load_cpu_us_per_value\":{:.4},\"disk_bytes_per_value\":{:.4}",
        data.workload,
        data.scale,
        (data.end_ns - data.start_ns) / HOUR_NS,
        load.rate(),
        load.cpu_us_per_value().unwrap_or_default(),
        nyala.disk_bytes as f64 / load.sent.values as f64,
    );
    out.push_str(",\"queries\":[");
    let reports = nyala.queries.iter().filter_map(|q| Some((q, q.report.as_ref()?)));
    for (at, (query, report)) in reports.enumerate() {
        let comma = if at > 0 { "," } else { "" };
        let written = write!(
            out,
            "{comma}{{\"type\":\"{}\",\"clients\":{},\"per_s\":{:.1},\"p50_ms\":{:.3},\"p99_ms\":{:.3},\"cpu_us\":{:.1}}}",
            query.name,
            query.workers,
            report.rate(),
            report.latencies.quantile_ms(0.5),
            report.latencies.quantile_ms(0.99),
            report.cpu_us_per_query().unwrap_or_default()
        );
        written.expect("BUG: text can grow");
    }
    out.push_str("]}\n");
    out
}
