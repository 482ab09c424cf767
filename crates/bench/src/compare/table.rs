//! A comparison as Markdown.

use super::{Comparison, Mixed, QueryFigures, SystemFigures};
use crate::workload::{HOUR_NS, SECOND_NS};

type Figure = fn(&SystemFigures) -> String;

const LOAD_FIGURES: [(&str, Figure); 10] = [
    ("load, M values/s", |system| format!("{:.2}", system.load.rate() / 1e6)),
    ("all loads, M values/s", |system| {
        let rates: Vec<String> =
            system.load_rates.iter().map(|rate| format!("{:.1}", rate / 1e6)).collect();
        rates.join(" ")
    }),
    ("server CPU, us/value", |system| optional(system.load.cpu_us_per_value(), 3)),
    ("write request, median / p99 ms", |system| {
        let latencies = &system.load.latencies;
        format!("{:.1} / {:.1}", latencies.quantile_ms(0.5), latencies.quantile_ms(0.99))
    }),
    ("slowest / fastest second, K rows", |system| {
        let rows = &system.load.rows_by_second;
        let thousands =
            |rows: Option<&u64>| rows.map_or_else(dash, |rows| format!("{}", rows / 1000));
        format!("{} / {}", thousands(rows.iter().min()), thousands(rows.iter().max()))
    }),
    ("bytes written per value", |system| {
        let written = system.load.usage.and_then(|(before, after)| {
            Some(after.written_bytes?.saturating_sub(before.written_bytes?) as f64)
        });
        optional(written.map(|bytes| bytes / system.load.sent.values as f64), 2)
    }),
    ("resident MB after the load", |system| megabytes(system.resident_bytes)),
    ("resident MB at most", |system| {
        system.load.usage.map_or_else(dash, |(_, after)| megabytes(after.resident_peak_bytes))
    }),
    ("bytes on disk per value, settled", |system| {
        format!("{:.3}", system.disk_bytes as f64 / system.load.sent.values as f64)
    }),
    ("seconds to settle", |system| format!("{:.0}", system.settle_seconds)),
];

const MIXED_FIGURES: [(&str, Figure); 3] = [
    ("single-groupby-1-1-1 beside a load at half the rate, queries/s (p99 ms)", |system| {
        system.mixed.map_or_else(dash, |m| format!("{:.0} ({:.2})", m.beside_load, m.p99_ms))
    }),
    ("the same, share of the rate without a load", |system| {
        system.mixed.map_or_else(dash, |m| format!("{:.0} %", 100.0 * m.beside_load / m.alone))
    }),
    ("rows of that load stored, share of those sent", |system| {
        let share = |m: &Mixed| format!("{:.0} %", 100.0 * m.rows_stored / m.rows_wanted);
        system.mixed.as_ref().map_or_else(dash, share)
    }),
];

/// Renders a comparison as a page.
#[must_use]
pub fn table(comparison: &Comparison) -> String {
    heading(comparison) + &print_comparison(comparison)
}

/// Renders a comparison without a heading.
#[must_use]
pub fn print_comparison(comparison: &Comparison) -> String {
    let mut out = String::new();
    for hint in &comparison.missing {
        out.push_str(&format!("Not measured: {hint}.\n\n"));
    }
    let names: Vec<&str> = comparison.systems.iter().map(|system| system.name).collect();
    push_row(&mut out, "", names.iter().map(ToString::to_string));
    push_row(&mut out, "---", names.iter().map(|_| "---".to_owned()));
    for (label, figure) in LOAD_FIGURES {
        push_row(&mut out, label, comparison.systems.iter().map(figure));
    }
    let first = comparison.systems.first().map_or(&[][..], |system| &system.queries);
    for (index, row) in first.iter().enumerate() {
        let label = format!("{}, {} clients", row.name, row.workers);
        let cells = comparison
            .systems
            .iter()
            .map(|system| system.queries.get(index).map_or_else(dash, cell));
        push_row(&mut out, &label, cells);
    }
    if comparison.systems.iter().any(|system| system.mixed.is_some()) {
        for (label, figure) in MIXED_FIGURES {
            push_row(&mut out, label, comparison.systems.iter().map(figure));
        }
    }
    if !first.is_empty() {
        out.push_str("\nQueries: queries/s (median / p99 ms, server CPU us/query).\n\n");
        push_agreement(&mut out, comparison);
    }
    out
}

fn heading(comparison: &Comparison) -> String {
    let data = &comparison.data;
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "# {}, {} hosts, {} h, one row every {} s, on {cores} cores\n\n",
        data.workload,
        data.scale,
        (data.end_ns - data.start_ns) / HOUR_NS,
        data.step_ns / SECOND_NS
    )
}

fn push_agreement(out: &mut String, comparison: &Comparison) {
    let (compared, found) = (comparison.answers_compared, &comparison.disagreements);
    if compared == 0 {
        out.push_str("Answers: nothing to compare.\n");
    } else if found.is_empty() {
        out.push_str(&format!("Answers: all {compared} agree.\n"));
    } else {
        out.push_str(&format!("Answers: {compared} compared, these differences:\n\n"));
        for difference in found {
            out.push_str(&format!("- {difference}\n"));
        }
    }
}

fn push_row(out: &mut String, label: &str, cells: impl Iterator<Item = String>) {
    out.push_str(&format!("| {label} |"));
    for cell in cells {
        out.push_str(&format!(" {cell} |"));
    }
    out.push('\n');
}

fn cell(figures: &QueryFigures) -> String {
    let Some(report) = &figures.report else { return dash() };
    let latencies = &report.latencies;
    format!(
        "{:.0} ({:.2} / {:.2}, {})",
        report.rate(),
        latencies.quantile_ms(0.5),
        latencies.quantile_ms(0.99),
        optional(report.cpu_us_per_query(), 0)
    )
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0}", bytes as f64 / 1e6)
}

fn optional(figure: Option<f64>, digits: usize) -> String {
    figure.map_or_else(dash, |figure| format!("{figure:.digits$}"))
}

fn dash() -> String {
    "-".to_owned()
}
