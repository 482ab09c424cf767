//! Counters of a store.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use model::DatabaseId;
use store::{Metric, MetricKind};

use crate::engine::Engine;

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds to it.
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The number.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a store counts itself.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) rows_written: Counter,
    pub(crate) values_written: Counter,
    pub(crate) rows_rejected: Counter,
    pub(crate) writes_delayed: Counter,
    pub(crate) writes_refused: Counter,
    pub(crate) series_lookups: Counter,
    pub(crate) series_created: Counter,
    pub(crate) bytes_logged: Counter,
    pub(crate) flushes: Counter,
    pub(crate) bytes_flushed: Counter,
    pub(crate) compactions: Counter,
    pub(crate) bytes_compacted: Counter,
    pub(crate) scans: Counter,
    pub(crate) deletes: Counter,
    pub(crate) partitions_expired: Counter,
    pub(crate) partitions_joined: Counter,
    pub(crate) job_failures: Counter,
}

/// Every figure of an open store.
pub(crate) fn collect(engine: &Engine) -> Vec<Metric> {
    let mut all = counters(&engine.metrics);
    all.extend(gauges(engine));
    all.extend(of_databases(engine));
    all.extend(wal_metrics(engine));
    all
}

fn metric(name: &'static str, help: &'static str, kind: MetricKind, value: f64) -> Metric {
    Metric { name, help, kind, labels: Vec::new(), value }
}

fn counters(m: &Metrics) -> Vec<Metric> {
    let counter = |name, help, counter: &Counter| {
        metric(name, help, MetricKind::Counter, counter.get() as f64)
    };
    vec![
        counter("rows_written_total", "Rows stored.", &m.rows_written),
        counter("values_written_total", "Field values stored.", &m.values_written),
        counter("rows_rejected_total", "Rows refused one by one.", &m.rows_rejected),
        counter(
            "writes_delayed_total",
            "Writes slowed down by memory pressure.",
            &m.writes_delayed,
        ),
        counter("writes_refused_total", "Writes refused for lack of memory.", &m.writes_refused),
        counter(
            "series_index_lookups_total",
            "Series looked up in the index because they were not written lately.",
            &m.series_lookups,
        ),
        counter("series_created_total", "Series that came to be.", &m.series_created),
        counter("log_payload_bytes_total", "Bytes of rows in the log.", &m.bytes_logged),
        counter("flushes_total", "Memtables written to segments.", &m.flushes),
        counter("flushed_bytes_total", "Bytes of segments written by flushes.", &m.bytes_flushed),
        counter("compactions_total", "Merges of segments.", &m.compactions),
        counter(
            "compacted_bytes_total",
            "Bytes of segments written by compactions.",
            &m.bytes_compacted,
        ),
        counter("scans_total", "Scans opened.", &m.scans),
        counter("deletes_total", "Delete requests.", &m.deletes),
        counter("partitions_expired_total", "Partitions dropped.", &m.partitions_expired),
        counter(
            "partitions_joined_total",
            "Small partitions that became part of a longer one.",
            &m.partitions_joined,
        ),
        counter("job_failures_total", "Background jobs that failed.", &m.job_failures),
    ]
}

fn gauges(engine: &Engine) -> Vec<Metric> {
    let gauge = |name, help, value: f64| metric(name, help, MetricKind::Gauge, value);
    let view = engine.view();
    let (mut partitions, mut segments, mut bytes, mut rows) = (0, 0, 0, 0);
    for partition in view.partitions() {
        partitions += 1;
        segments += partition.segments.len();
        bytes += partition.segments.iter().map(|s| s.meta.bytes).sum::<u64>();
        rows += partition.segments.iter().map(|s| s.meta.rows).sum::<u64>();
    }
    let cache = engine.cache.stats();
    let memtables = engine.work.memtable_bytes();
    let pinned = engine.work.pinned_bytes();
    vec![
        gauge("memtable_bytes", "Memory of memtables.", memtables as f64),
        gauge("memtable_pinned_bytes", "Of that, flushed but still read.", pinned as f64),
        gauge("partitions", "Partitions.", f64::from(partitions)),
        gauge("segments", "Segments.", segments as f64),
        gauge("segment_bytes", "Bytes of segments on disk.", bytes as f64),
        gauge("segment_rows", "Rows in segments.", rows as f64),
        gauge("series_cached", "Raw series keys remembered.", engine.resolver.len() as f64),
        gauge(
            "series_index_bytes",
            "Memory of the series index.",
            engine.index.memory_bytes() as f64,
        ),
        gauge("page_cache_bytes", "Memory of the page cache.", cache.bytes_used as f64),
        metric(
            "page_cache_hits_total",
            "Pages found in memory.",
            MetricKind::Counter,
            cache.hits as f64,
        ),
        metric(
            "page_cache_misses_total",
            "Pages read from disk.",
            MetricKind::Counter,
            cache.misses as f64,
        ),
    ]
}

/// Figures of each database, under its id.
fn of_databases(engine: &Engine) -> Vec<Metric> {
    let view = engine.view();
    let ids: BTreeSet<DatabaseId> = view.policies().map(|(_, policy)| policy.database).collect();
    let mut all = Vec::new();
    // A run that cannot be read is reported by those who need it.
    let Ok(totals) = engine.index.totals() else { return all };
    for id in ids {
        let labels = vec![("database", id.0.to_string())];
        let gauge = |name, help, value: f64| {
            let plain = metric(name, help, MetricKind::Gauge, value);
            Metric { labels: labels.clone(), ..plain }
        };
        let totals = totals.get(&id).copied().unwrap_or_default();
        let (series, measurements) = (totals.series as f64, totals.measurements as f64);
        all.push(gauge("database_series", "Series of a database.", series));
        all.push(gauge("database_measurements", "Measurements of a database.", measurements));
    }
    all
}

fn wal_metrics(engine: &Engine) -> Vec<Metric> {
    let wal = engine.wal.metrics();
    let counter = |name, help, value: f64| metric(name, help, MetricKind::Counter, value);
    vec![
        counter("log_appends_total", "Records appended to the log.", wal.appends as f64),
        counter("log_bytes_total", "Bytes appended to the log.", wal.append_bytes as f64),
        counter(
            "log_fill_bytes_total",
            "Bytes that fill pages of the log, so that they are written once.",
            wal.fill_bytes as f64,
        ),
        counter("log_waits_total", "Appends that waited for the disk.", wal.append_waits as f64),
        counter("log_syncs_total", "Syncs of the log.", wal.syncs as f64),
        metric(
            "log_sync_seconds",
            "How long syncs of the log took.",
            MetricKind::Histogram(histogram(&wal.sync_us_histogram, 1e-6)),
            wal.sync_ns as f64 / 1e9,
        ),
        metric(
            "log_group_records",
            "Records that one write of the log took.",
            MetricKind::Histogram(histogram(&wal.group_records_histogram, 1.0)),
            wal.appends as f64,
        ),
        metric("log_disk_bytes", "Bytes of log files.", MetricKind::Gauge, wal.disk_bytes as f64),
    ]
}

/// Upper bounds and cumulative counts of a histogram of powers of two, whose bucket `i` counts
/// values below `2^i` units.
fn histogram(counts: &[u64], unit: f64) -> Vec<(f64, u64)> {
    let mut cumulative = 0;
    let buckets = counts.iter().enumerate().map(|(power, count)| {
        cumulative += count;
        (2f64.powi(power as i32) * unit, cumulative)
    });
    buckets.collect()
}
