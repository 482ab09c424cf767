//! `/debug/vars`: figures in the shape that InfluxDB's clients look for them.
//!
//! Only what Nyala has: there is no Go runtime, so `memstats` holds what the process takes.

use influxql::Timestamp;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::metrics::{Metrics, resident_bytes};
use crate::routes::Route;

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
    let bind = &app.config.http_bind;
    for (key, name, tags, values) in [
        ("runtime".to_owned(), "runtime", json!({}), json!({ "Alloc": resident, "Sys": resident })),
        (format!("httpd:{bind}"), "httpd", json!({ "bind": bind }), httpd(metrics)),
        ("queryExecutor".to_owned(), "queryExecutor", Value::Null, queries(metrics)),
        ("write".to_owned(), "write", Value::Null, writes(metrics)),
    ] {
        all.insert(key, json!({ "name": name, "tags": tags, "values": values }));
    }
    let lines: Vec<String> =
        all.iter().map(|(key, value)| format!("{}: {value}", json!(key))).collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

fn httpd(metrics: &Metrics) -> Value {
    let requests = |routes: &[Route]| -> u64 {
        routes.iter().map(|route| metrics.requests_of(*route, |_| true)).sum()
    };
    let ended = |class: u16| -> u64 {
        let of_class = |status: u16| status / 100 == class;
        Route::ALL.iter().map(|route| metrics.requests_of(*route, of_class)).sum()
    };
    let took_ns =
        |routes: &[Route]| -> u64 { routes.iter().map(|route| metrics.took_ns(*route)).sum() };
    json!({
        "authFail": metrics.authentication_failures.get(),
        "clientError": ended(4),
        "pingReq": requests(&[Route::Ping]),
        "pointsWrittenDropped": metrics.rows_rejected.get(),
        "pointsWrittenOK": metrics.rows_written.get(),
        "promReadReq": requests(&[Route::PrometheusRead]),
        "promWriteReq": requests(&[Route::PrometheusWrite]),
        "queryReq": requests(&[Route::Query]),
        "queryReqDurationNs": took_ns(&[Route::Query]),
        "recoveredPanics": metrics.panics.get(),
        "req": requests(&Route::ALL),
        "reqActive": metrics.requests_active.get(),
        "reqDurationNs": took_ns(&Route::ALL),
        "serverError": ended(5),
        "statusReq": requests(&[Route::Status]),
        "writeReq": requests(&[Route::Write, Route::V2Write]),
        "writeReqDurationNs": took_ns(&[Route::Write, Route::V2Write]),
    })
}

fn queries(metrics: &Metrics) -> Value {
    json!({
        "queriesActive": metrics.queries_active.get(),
        "queriesExecuted": metrics.statements.get(),
        "queryDurationNs": metrics.queries_took_ns(),
        "recoveredPanics": metrics.panics.get(),
    })
}

fn writes(metrics: &Metrics) -> Value {
    json!({
        "pointReq": metrics.rows_written.get().saturating_add(metrics.rows_rejected.get()),
        "req": metrics.requests_of(Route::Write, |_| true),
        "writeDrop": metrics.rows_rejected.get(),
        "writeError": metrics.writes_refused.get(),
        "writeOk": metrics.requests_of(Route::Write, |status| status == 204),
    })
}
