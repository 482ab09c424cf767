//! Statements that the server itself answers: SHOW STATS and SHOW DIAGNOSTICS.

use influxql::{Statement, Timestamp};
use model::{Name, Scalar};
use query::{Answer, Table};

use crate::app::App;
use crate::config::COMPATIBLE_VERSION;
use crate::listeners::ListenerConfig;
use crate::statistics::{self, Statistic};

/// Whether `statement` is one of these. They look at many things.
pub(crate) fn is_own(statement: &Statement) -> bool {
    let statement = statement.without_limit();
    matches!(statement, Statement::ShowStats { .. } | Statement::ShowDiagnostics { .. })
}

/// The answer to `statement`, if it is one of these.
pub(crate) fn answer(app: &App, statement: &Statement) -> Option<Answer> {
    let answer = Answer::of_tables(tables(app, statement.without_limit())?);
    Some(match statement {
        Statement::Limited { limit, offset, .. } => answer.limited(*limit, *offset),
        _ => answer,
    })
}

fn tables(app: &App, statement: &Statement) -> Option<Vec<Table>> {
    match statement {
        Statement::ShowStats { module } => Some(stats(app, module.as_deref())),
        Statement::ShowDiagnostics { module } => {
            let mut tables = diagnostics(app);
            tables.sort_by(|a, b| a.name.cmp(&b.name));
            if let Some(module) = module {
                tables.retain(|table| *table.name == **module);
            }
            Some(tables)
        }
        _ => None,
    }
}

fn stats(app: &App, module: Option<&str>) -> Vec<Table> {
    if module == Some("indexes") {
        let bytes = app.store_metrics().into_iter().find(|m| m.name == "series_index_bytes");
        let bytes = bytes.map_or(0, |metric| metric.value as i64);
        return vec![table("indexes", vec![("memoryBytes", Scalar::Integer(bytes))])];
    }
    let mut all = statistics::all(app);
    all.retain(|statistic| module.is_none_or(|module| module == statistic.name));
    all.into_iter().map(|statistic| table_of(&statistic)).collect()
}

fn table_of(statistic: &Statistic) -> Table {
    let tags = statistic.tags.iter().map(|(k, v)| (Name::from(*k), v.as_str().into())).collect();
    let values = statistic.values.iter().map(|(name, value)| (*name, Scalar::Integer(*value)));
    Table { tags, ..table(statistic.name, values.collect()) }
}

/// One row.
fn table(name: &str, cells: Vec<(&str, Scalar)>) -> Table {
    let (columns, row): (Vec<Name>, Vec<Scalar>) =
        cells.into_iter().map(|(column, value)| (Name::from(column), value)).unzip();
    Table { name: name.into(), tags: Vec::new(), columns, rows: vec![row] }
}

fn text(text: impl AsRef<str>) -> Scalar {
    Scalar::String(text.as_ref().into())
}

fn whole(number: u64) -> Scalar {
    Scalar::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn duration(duration: std::time::Duration) -> Scalar {
    text(format!("{duration:?}"))
}

fn diagnostics(app: &App) -> Vec<Table> {
    let now_ns = app.clock.now_ns();
    let uptime = app.metrics.uptime();
    let uptime_ns = i64::try_from(uptime.as_nanos()).unwrap_or(i64::MAX);
    let time = |ns: i64| text(Timestamp::from_ns(ns).to_rfc3339_seconds());
    let mut all = vec![
        table(
            "build",
            vec![
                ("Branch", text("")),
                ("Build Time", text("")),
                ("Commit", text("")),
                ("Version", text(COMPATIBLE_VERSION)),
                ("Nyala", text(env!("CARGO_PKG_VERSION"))),
            ],
        ),
        table("network", vec![("hostname", text(hostname()))]),
        table(
            "runtime",
            vec![
                ("GOARCH", text(std::env::consts::ARCH)),
                ("GOMAXPROCS", whole(app.config.threads as u64)),
                ("GOOS", text(std::env::consts::OS)),
                ("version", text("Rust")),
            ],
        ),
        table(
            "system",
            vec![
                ("PID", whole(std::process::id().into())),
                ("currentTime", time(now_ns)),
                ("started", time(now_ns.saturating_sub(uptime_ns))),
                ("uptime", duration(uptime)),
            ],
        ),
    ];
    all.extend(configuration(app));
    all.extend(listeners(app));
    all
}

fn configuration(app: &App) -> Vec<Table> {
    let config = &app.config;
    let monitor = config.monitor.as_ref();
    vec![
        table(
            "config-coordinator",
            vec![
                ("max-concurrent-queries", whole(config.max_concurrent_queries as u64)),
                ("max-select-buckets", whole(config.max_select_buckets)),
                ("max-select-point", whole(config.max_select_point)),
                ("max-select-series", whole(config.max_select_series)),
                ("query-timeout", duration(config.query_timeout)),
            ],
        ),
        table(
            "config-cqs",
            vec![
                ("enabled", Scalar::Boolean(!config.continuous_query_interval.is_zero())),
                ("run-interval", duration(config.continuous_query_interval)),
            ],
        ),
        table(
            "config-httpd",
            vec![
                ("bind-address", text(&config.http_bind)),
                ("enabled", Scalar::Boolean(true)),
                ("https-enabled", Scalar::Boolean(config.tls.is_some())),
                ("max-connection-limit", whole(config.max_connections as u64)),
                ("max-row-limit", whole(config.max_row_limit as u64)),
            ],
        ),
        table(
            "config-monitor",
            vec![
                ("store-database", text(monitor.map_or("", |m| m.database.as_str()))),
                ("store-enabled", Scalar::Boolean(monitor.is_some())),
                ("store-interval", duration(monitor.map(|m| m.interval).unwrap_or_default())),
            ],
        ),
        table(
            "config-retention",
            vec![
                ("check-interval", duration(config.retention_check_interval)),
                ("enabled", Scalar::Boolean(!config.retention_check_interval.is_zero())),
            ],
        ),
    ]
}

/// A table a kind of listener, a row each.
fn listeners(app: &App) -> Vec<Table> {
    let mut all: Vec<Table> = Vec::new();
    for config in &app.config.listeners {
        let name = format!("config-{}", config.name());
        let target = config.target();
        let mut cells = vec![
            ("enabled", Scalar::Boolean(true)),
            ("bind-address", text(&target.bind)),
            ("database", text(&target.database)),
            ("retention-policy", text(&target.policy)),
            ("batch-size", whole(target.batch_points as u64)),
            ("batch-timeout", duration(target.batch_age)),
        ];
        if let ListenerConfig::Graphite(graphite) = config {
            cells.push(("protocol", text(graphite.transport.as_str())));
        }
        let one = table(&name, cells);
        match all.iter_mut().find(|table| table.name == one.name) {
            Some(table) => table.rows.extend(one.rows),
            None => all.push(one),
        }
    }
    all
}

/// What the machine is called; empty where nobody says.
pub(crate) fn hostname() -> String {
    let said = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let said = said.or_else(|| std::env::var("HOSTNAME").ok());
    said.map(|name| name.trim().to_owned()).unwrap_or_default()
}
