//! Figures in InfluxDB's modules and under its names, as far as Nyala has them: SHOW STATS,
//! `/debug/vars` and the monitor's rows all come from here.
//!
//! Module `store` is Nyala's own: what the store counts, under the names of `/metrics`.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use store::{Metric, MetricKind};

use crate::app::App;
use crate::metrics::{Metrics, resident_bytes};
use crate::routes::Route;

/// The figures of one module, or of one thing that it has several of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statistic {
    /// The module.
    pub(crate) name: &'static str,
    /// What tells it from others of the module in `/debug/vars`.
    pub(crate) key: String,
    /// Sorted by key.
    pub(crate) tags: Vec<(&'static str, String)>,
    /// Sorted by name.
    pub(crate) values: Vec<(&'static str, i64)>,
}

impl Statistic {
    fn new(name: &'static str, values: Vec<(&'static str, u64)>) -> Self {
        Self::tagged(name, name.to_owned(), Vec::new(), values)
    }

    fn tagged(
        name: &'static str,
        key: String,
        tags: Vec<(&'static str, String)>,
        values: Vec<(&'static str, u64)>,
    ) -> Self {
        let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let mut values: Vec<_> =
            values.into_iter().map(|(name, value)| (name, signed(value))).collect();
        values.sort_unstable();
        Self { name, key, tags, values }
    }
}

/// Every module's figures.
pub(crate) fn all(app: &App) -> Vec<Statistic> {
    let metrics = &*app.metrics;
    let resident = resident_bytes().unwrap_or(0);
    let mut all = vec![
        Statistic::new("runtime", vec![("Alloc", resident), ("Sys", resident)]),
        queries(metrics),
    ];
    all.extend(of_store(app));
    all.extend([writes(metrics), subscriptions(metrics), continuous(metrics), httpd(app)]);
    all.extend(app.listeners.iter().map(|stats| listener(stats)));
    all
}

/// Databases, and the store as a whole.
fn of_store(app: &App) -> Vec<Statistic> {
    let figures = app.store_metrics();
    let catalog = app.catalog.snapshot();
    let of_database = |metric: &Metric| {
        let (_, database) = metric.labels.iter().find(|(key, _)| *key == "database")?;
        Some(((metric.name, database.clone()), metric.value as u64))
    };
    let of_databases: HashMap<(&str, String), u64> =
        figures.iter().filter_map(of_database).collect();
    let mut all = Vec::new();
    for database in catalog.databases() {
        let figure = |name| {
            of_databases.get(&(name, database.name.to_string())).copied().unwrap_or_default()
        };
        all.push(Statistic::tagged(
            "database",
            format!("database:{}", database.name),
            vec![("database", database.name.to_string())],
            vec![
                ("numMeasurements", figure("database_measurements")),
                ("numSeries", figure("database_series")),
            ],
        ));
    }
    let plain = figures.iter().filter(|metric| {
        metric.labels.is_empty() && !matches!(metric.kind, MetricKind::Histogram(_))
    });
    all.push(Statistic::new("store", plain.map(|m| (m.name, m.value as u64)).collect()));
    all
}

fn httpd(app: &App) -> Statistic {
    let metrics = &*app.metrics;
    let requests = |routes: &[Route]| -> u64 {
        routes.iter().map(|route| metrics.requests_of(*route, |_| true)).sum()
    };
    let ended = |class: u16| -> u64 {
        let of_class = |status: u16| status / 100 == class;
        Route::ALL.iter().map(|route| metrics.requests_of(*route, of_class)).sum()
    };
    let took_ns =
        |routes: &[Route]| -> u64 { routes.iter().map(|route| metrics.took_ns(*route)).sum() };
    let active = |routes: &[Route]| -> u64 { u64::try_from(metrics.active(routes)).unwrap_or(0) };
    let bind = &app.config.http_bind;
    Statistic::tagged(
        "httpd",
        format!("httpd:{bind}"),
        vec![("bind", bind.clone())],
        vec![
            ("authFail", metrics.authentication_failures.get()),
            ("clientError", ended(4)),
            ("pingReq", requests(&[Route::Ping])),
            ("pointsWrittenDropped", metrics.rows_rejected.get()),
            ("pointsWrittenFail", metrics.rows_failed.get()),
            ("pointsWrittenOK", metrics.rows_written.get()),
            ("promReadReq", requests(&[Route::PrometheusRead])),
            ("promWriteReq", requests(&[Route::PrometheusWrite])),
            ("queryReq", requests(&[Route::Query])),
            ("queryReqDurationNs", took_ns(&[Route::Query])),
            ("queryRespBytes", metrics.sent(Route::Query)),
            ("recoveredPanics", metrics.panics.get()),
            ("req", requests(&Route::ALL)),
            ("reqActive", active(&Route::ALL)),
            ("reqDurationNs", took_ns(&Route::ALL)),
            ("serverError", ended(5)),
            ("statusReq", requests(&[Route::Status])),
            ("writeReq", requests(&[Route::Write, Route::V2Write])),
            ("writeReqActive", active(&[Route::Write, Route::V2Write])),
            ("writeReqBytes", metrics.write_bytes.get()),
            ("writeReqDurationNs", took_ns(&[Route::Write, Route::V2Write])),
        ],
    )
}

fn queries(metrics: &Metrics) -> Statistic {
    let active = u64::try_from(metrics.queries_active.get()).unwrap_or(0);
    let executed = metrics.statements.get();
    Statistic::new(
        "queryExecutor",
        vec![
            ("queriesActive", active),
            ("queriesExecuted", executed),
            ("queriesFinished", executed.saturating_sub(active)),
            ("queryDurationNs", metrics.queries_took_ns()),
            ("recoveredPanics", metrics.panics.get()),
        ],
    )
}

fn writes(metrics: &Metrics) -> Statistic {
    Statistic::new(
        "write",
        vec![
            ("pointReq", metrics.rows_written.get().saturating_add(metrics.rows_rejected.get())),
            ("req", metrics.requests_of(Route::Write, |_| true)),
            ("subWriteDrop", metrics.subscription_writes_dropped.get()),
            ("subWriteOk", metrics.subscription_writes.get()),
            ("writeDrop", metrics.rows_rejected.get()),
            ("writeError", metrics.writes_refused.get()),
            ("writeOk", metrics.requests_of(Route::Write, |status| status == 204)),
        ],
    )
}

fn subscriptions(metrics: &Metrics) -> Statistic {
    Statistic::new(
        "subscriber",
        vec![
            ("pointsWritten", metrics.subscription_rows.get()),
            ("writeFailures", metrics.subscription_failures.get()),
        ],
    )
}

fn continuous(metrics: &Metrics) -> Statistic {
    let (runs, failed) =
        (metrics.continuous_queries.get(), metrics.continuous_query_failures.get());
    Statistic::new("cq", vec![("queryFail", failed), ("queryOk", runs.saturating_sub(failed))])
}

fn listener(stats: &crate::listeners::ListenerStats) -> Statistic {
    let mut tags = vec![("bind", stats.bind.clone())];
    let mut key = stats.bind.clone();
    if let Some(transport) = stats.transport {
        tags.push(("proto", transport.as_str().to_owned()));
        key = format!("{}:{key}", transport.as_str());
    }
    let mut values = vec![
        ("batchesTx", stats.batches.get()),
        ("batchesTxFail", stats.batches_failed.get()),
        ("bytesRx", stats.bytes.get()),
        ("pointsParseFail", stats.unparsable.get()),
        ("pointsRx", stats.points.get()),
        ("pointsTx", stats.points_stored.get()),
    ];
    if !matches!(stats.name, "collectd" | "udp") {
        values.push(("connsActive", stats.connections_active.load(Ordering::Relaxed)));
        values.push(("connsHandled", stats.connections.get()));
        values.push(("connsRefused", stats.connections_refused.get()));
    }
    Statistic::tagged(stats.name, format!("{}:{key}", stats.name), tags, values)
}
