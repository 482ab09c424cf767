//! Counters of a handle.

use std::sync::atomic::{AtomicU64, Ordering};

use store::{Metric, MetricKind};

use crate::shared::Shared;

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    fn get(&self) -> f64 {
        self.0.load(Ordering::Relaxed) as f64
    }
}

#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) rows_written: Counter,
    pub(crate) rows_rejected: Counter,
    pub(crate) writes_repeated: Counter,
    pub(crate) series_created: Counter,
    pub(crate) scans: Counter,
    pub(crate) rows_scanned: Counter,
    pub(crate) ranges_created: Counter,
    pub(crate) columns_created: Counter,
    pub(crate) deletes: Counter,
    pub(crate) partitions_expired: Counter,
}

/// Every figure of an open store.
pub(crate) fn collect(shared: &Shared) -> Vec<Metric> {
    let m = &shared.metrics;
    let metric = |name, help, kind, value| Metric { name, help, kind, labels: Vec::new(), value };
    let counter =
        |name, help, counter: &Counter| metric(name, help, MetricKind::Counter, counter.get());
    let gauge = |name, help, value| metric(name, help, MetricKind::Gauge, value);
    vec![
        counter("rows_written_total", "Rows stored.", &m.rows_written),
        counter("rows_rejected_total", "Rows refused one by one.", &m.rows_rejected),
        counter(
            "kudu_writes_repeated_total",
            "Writes done again because a table or name had changed meanwhile.",
            &m.writes_repeated,
        ),
        counter("series_created_total", "Series that came to be.", &m.series_created),
        counter("scans_total", "Scans opened.", &m.scans),
        counter("rows_scanned_total", "Rows handed out by scans.", &m.rows_scanned),
        counter("kudu_ranges_created_total", "Range partitions added.", &m.ranges_created),
        counter("kudu_columns_created_total", "Columns added to tables.", &m.columns_created),
        counter("deletes_total", "Deletes.", &m.deletes),
        counter("partitions_expired_total", "Partitions dropped by age.", &m.partitions_expired),
        gauge(
            "series_cached",
            "Series whose ids are remembered.",
            shared.known_series.len() as f64,
        ),
        gauge(
            "measurements_cached",
            "Measurements whose fields are remembered.",
            shared.measurements.len() as f64,
        ),
    ]
}
