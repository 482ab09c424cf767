//! The screen at the start: what runs, where, with what.

use std::fmt::Write;
use std::net::SocketAddr;

use store_local::OpenReport;

use crate::machine;
use crate::settings::{MemoryLimit, MemoryPlan, Settings, Sync};

/// Where the rows are.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) data: String,
    pub(crate) durability: String,
    /// What opening it found, if that means anything.
    pub(crate) recovered: Option<String>,
}

/// The screen.
pub(crate) fn screen(
    settings: &Settings,
    plan: &MemoryPlan,
    address: SocketAddr,
    place: &Place,
) -> String {
    let limit = match settings.memory_limit {
        MemoryLimit::Bytes(_) => String::new(),
        MemoryLimit::Percent(percent) => {
            format!(" ({percent}% of {})", bytes(machine::memory_bytes()))
        }
    };
    let memory = format!(
        "{}{limit}: store {}, queries {}, requests {}",
        bytes(plan.total as u64),
        bytes(plan.store as u64),
        bytes((plan.queries + plan.query_cache) as u64),
        bytes(plan.bodies as u64)
    );
    let mut listening = format!("{}://{address}", scheme(settings));
    if let Some(path) = &settings.unix_socket {
        listening.push_str(&format!(" and {}", path.display()));
    }
    let mut lines = vec![
        ("listening", listening),
        ("data", place.data.clone()),
        ("memory", memory),
        ("durability", place.durability.clone()),
    ];
    lines.extend(place.recovered.clone().map(|text| ("recovered", text)));
    let mut out = format!(
        "Nyala {}: a time-series database that speaks InfluxDB {}\n\n",
        env!("CARGO_PKG_VERSION"),
        server::COMPATIBLE_VERSION
    );
    for (name, text) in lines {
        writeln!(out, "  {name:<12}{text}").expect("BUG: a string takes any text");
    }
    out.push('\n');
    out
}

/// What addresses start with.
pub(crate) fn scheme(settings: &Settings) -> &'static str {
    if settings.tls.is_some() { "https" } else { "http" }
}

pub(crate) fn durability(sync: Sync) -> String {
    match sync {
        Sync::Always => "every write is synced to the disk before it is acknowledged".to_owned(),
        Sync::Interval(interval) => {
            format!("writes are synced every {interval:?}: power loss may take that much")
        }
        Sync::Never => "writes are synced when the operating system likes".to_owned(),
    }
}

/// What opening the store found.
pub(crate) fn recovered(report: &OpenReport) -> String {
    if report.segments == 0 && report.log_records == 0 {
        return "nothing: the store is empty".to_owned();
    }
    let closed = if report.clean { "closed properly" } else { "not closed properly" };
    let mut text = format!(
        "{} segments; {} rows replayed from {} of log; {closed}",
        report.segments,
        report.rows_replayed,
        bytes(report.log_bytes)
    );
    if report.torn_bytes > 0 {
        let torn = format!("; {} of an unfinished write left out", bytes(report.torn_bytes));
        text.push_str(&torn);
    }
    if !report.damage.is_empty() {
        text.push_str(&format!("; {} damaged files, see the log", report.damage.len()));
    }
    text
}

/// Bytes as people read them.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_for_people() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(6 << 30), "6.0 GiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
    }

    #[test]
    fn reports() {
        assert_eq!(recovered(&OpenReport::default()), "nothing: the store is empty");
        let report = OpenReport {
            segments: 3,
            rows_replayed: 10,
            log_bytes: 2048,
            torn_bytes: 7,
            damage: vec!["x".to_owned()],
            ..OpenReport::default()
        };
        assert_eq!(
            recovered(&report),
            "3 segments; 10 rows replayed from 2.0 KiB of log; not closed properly; 7 B of an \
             unfinished write left out; 1 damaged files, see the log"
        );
    }
}
