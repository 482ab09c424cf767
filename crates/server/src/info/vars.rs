//! `/debug/vars`: figures in the shape that InfluxDB's clients look for them.
//!
//! Only what Nyala has: there is no Go runtime, so `memstats` holds what the process takes.

use influxql::Timestamp;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::metrics::resident_bytes;
use crate::statistics::{self, Statistic};

/// The whole document.
pub(super) fn document(app: &App) -> String {
    let metrics = &app.metrics;
    let now_ns = app.clock.now_ns();
    let uptime = metrics.uptime();
    let uptime_ns = i64::try_from(uptime.as_nanos()).unwrap_or(i64::MAX);
    let time = |ns: i64| Timestamp::from_ns(ns).to_rfc3339_seconds();
    let mut all = Map::new();
    all.insert(
        "system".to_owned(),
        json!({
            "currentTime": time(now_ns),
            "started": time(now_ns.saturating_sub(uptime_ns)),
            "uptime": uptime.as_secs(),
        }),
    );
    // Arguments may be secrets.
    let program = std::env::args_os().next().unwrap_or_default();
    all.insert("cmdline".to_owned(), json!([program.to_string_lossy()]));
    let resident = resident_bytes().unwrap_or(0);
    all.insert("memstats".to_owned(), json!({ "Alloc": resident, "Sys": resident }));
    for Statistic { name, key, tags, values } in statistics::all(app) {
        let tags = if tags.is_empty() && name != "runtime" {
            Value::Null
        } else {
            tags.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect()
        };
        let values: Map<String, Value> =
            values.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect();
        all.insert(key, json!({ "name": name, "tags": tags, "values": values }));
    }
    let lines: Vec<String> =
        all.iter().map(|(key, value)| format!("{}: {value}", json!(key))).collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}
