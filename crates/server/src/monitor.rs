//! Keeps the server's own figures as rows, as InfluxDB does in its database `_internal`. Off unless
//! it is asked for: a store at rest stays at rest.

use std::sync::Arc;

use catalog::{CatalogError, PolicySpec};
use tokio::time::MissedTickBehavior;

use crate::app::App;
use crate::config::MonitorConfig;
use crate::error::HttpError;
use crate::own::hostname;
use crate::statistics;
use crate::write::Target;

/// The policy that keeps the figures, and how long it does.
const POLICY: &str = "monitor";
const DAY_NS: i64 = 24 * 3_600_000_000_000;

/// Writes the figures every so often, for ever.
pub(crate) async fn run(app: Arc<App>) {
    let Some(config) = app.config.monitor.clone() else { return std::future::pending().await };
    let mut ticks = tokio::time::interval(config.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let host = hostname();
    loop {
        ticks.tick().await;
        let (worker, config, host) = (Arc::clone(&app), config.clone(), host.clone());
        let stored = tokio::task::spawn_blocking(move || worker.store_figures(&config, &host));
        match stored.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("cannot keep the server's figures: {}", error.text),
            Err(failed) => tracing::error!("keeping figures failed by a bug: {failed}"),
        }
    }
}

impl App {
    fn store_figures(&self, config: &MonitorConfig, host: &str) -> Result<(), HttpError> {
        let database = config.database.as_str();
        self.make_monitor_database(database)
            .map_err(|error| HttpError::internal(error.to_string()))?;
        let now_ns = self.clock.now_ns();
        let every_ns = i64::try_from(config.interval.as_nanos()).unwrap_or(i64::MAX).max(1);
        let text = self.figures_text(host, now_ns - now_ns.rem_euclid(every_ns));
        self.store_lines(&Target::of_listener(database, POLICY), &text, now_ns)
    }

    fn make_monitor_database(&self, database: &str) -> Result<(), CatalogError> {
        if self.catalog.snapshot().database(database).is_some_and(|d| d.policy(POLICY).is_some()) {
            return Ok(());
        }
        let spec = PolicySpec {
            duration_ns: Some(7 * DAY_NS),
            shard_duration_ns: Some(DAY_NS),
            replica_n: Some(1),
            ..PolicySpec::named(POLICY)
        };
        if self.catalog.snapshot().database(database).is_none() {
            return self.catalog.create_database(database, Some(&spec));
        }
        self.catalog.create_policy(database, &spec, false)
    }

    /// The figures in line protocol.
    fn figures_text(&self, host: &str, time_ns: i64) -> Vec<u8> {
        let mut lines = ingest::point::Lines::default();
        for statistic in statistics::all(self) {
            let tags = statistic.tags.iter().map(|(key, value)| (*key, value.as_str()));
            let tags = tags.chain([("hostname", host)]);
            let fields = statistic.values.iter().map(|(name, value)| (*name, *value));
            // Names that cannot be written down are left out, and so are modules without figures.
            let _ = lines.push_integers(statistic.name, tags, fields, time_ns);
        }
        lines.into_text()
    }
}
