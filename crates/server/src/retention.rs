//! Drops what its retention policy keeps no longer.

use std::sync::Arc;
use std::time::Duration;

use crate::app::App;

/// Looks for expired partitions now and every so often, for ever. 0: never.
pub(crate) async fn enforce(app: Arc<App>) {
    let interval = app.config.retention_check_interval;
    if interval == Duration::ZERO {
        return std::future::pending().await;
    }
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let worker = Arc::clone(&app);
        if let Err(failed) = tokio::task::spawn_blocking(move || worker.expire()).await {
            tracing::error!("retention enforcement failed by a bug: {failed}");
        }
    }
}

impl App {
    fn expire(&self) {
        for (database, policy, before_ns) in self.catalog.snapshot().expired(self.clock.now_ns()) {
            match self.store.expire(database, policy, before_ns) {
                Ok(0) => {}
                Ok(dropped) => {
                    self.metrics.partitions_expired.add(dropped);
                    tracing::info!(policy = policy.0, dropped, "dropped expired partitions");
                }
                Err(error) => {
                    self.metrics.retention_failures.add(1);
                    tracing::error!(policy = policy.0, "cannot drop expired partitions: {error}");
                }
            }
        }
    }
}
