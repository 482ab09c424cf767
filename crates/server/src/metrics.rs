//! Figures of the server itself, kept in atomics that are only ever added to.

mod process;
mod text;

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hyper::StatusCode;

pub(crate) use process::resident_bytes;
pub(crate) use text::exposition;

use crate::routes::Route;

/// A figure that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A figure that goes up and down.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicI64);

impl Gauge {
    pub(crate) fn add(&self, count: i64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn sub(&self, count: i64) {
        self.0.fetch_sub(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper bounds of the buckets of durations, seconds.
const BOUNDS_S: [f64; 16] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    10.0, 60.0,
];

/// How long something took.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    /// Observations a bucket, not cumulative; the last is for what lasted longer than all bounds.
    buckets: [Counter; BOUNDS_S.len() + 1],
    sum_ns: Counter,
}

impl Histogram {
    pub(crate) fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = BOUNDS_S.partition_point(|bound| *bound < seconds);
        self.buckets[bucket].add(1);
        self.sum_ns.add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Bounds with cumulative counts, infinity last.
    fn cumulative(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS_S.iter().copied().chain([f64::INFINITY]);
        let mut total = 0;
        bounds
            .zip(&self.buckets)
            .map(|(bound, bucket)| {
                total += bucket.get();
                (bound, total)
            })
            .collect()
    }

    fn sum_s(&self) -> f64 {
        self.sum_ns.get() as f64 / 1e9
    }
}

/// Statuses that are counted one by one. 499, as proxies write it, stands for a client that went
/// away before it had an answer; the last one for all others.
const STATUSES: [u16; 14] = [200, 204, 400, 401, 403, 404, 405, 408, 413, 431, 499, 500, 503, 0];

/// Everything that is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    started: Instant,
    requests: [[Counter; STATUSES.len()]; Route::ALL.len()],
    durations: [Histogram; Route::ALL.len()],
    active: [Gauge; Route::ALL.len()],
    sent: [Counter; Route::ALL.len()],
    pub(crate) connections: Gauge,
    /// Those that have a thread of their own.
    pub(crate) connections_alone: Gauge,
    pub(crate) connections_refused: Counter,
    pub(crate) authentication_failures: Counter,
    pub(crate) panics: Counter,
    pub(crate) bytes_in: Counter,
    /// Bodies of writes, unpacked.
    pub(crate) write_bytes: Counter,
    pub(crate) bytes_out: Counter,
    pub(crate) rows_written: Counter,
    pub(crate) rows_rejected: Counter,
    /// Rows of writes that failed as a whole.
    pub(crate) rows_failed: Counter,
    pub(crate) lines_unparsable: Counter,
    pub(crate) writes_refused: Counter,
    pub(crate) udp_datagrams: Counter,
    pub(crate) udp_datagrams_dropped: Counter,
    pub(crate) queries_active: Gauge,
    pub(crate) queries_refused: Counter,
    pub(crate) statements: Counter,
    pub(crate) statements_failed: Counter,
    pub(crate) query_cache_hits: Counter,
    pub(crate) light_queries: Histogram,
    pub(crate) heavy_queries: Histogram,
    pub(crate) partitions_expired: Counter,
    pub(crate) retention_failures: Counter,
    pub(crate) continuous_queries: Counter,
    pub(crate) continuous_query_failures: Counter,
    pub(crate) subscription_writes: Counter,
    pub(crate) subscription_writes_dropped: Counter,
    pub(crate) subscription_rows: Counter,
    pub(crate) subscription_failures: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            requests: Default::default(),
            durations: Default::default(),
            active: Default::default(),
            sent: Default::default(),
            connections: Gauge::default(),
            connections_alone: Gauge::default(),
            connections_refused: Counter::default(),
            authentication_failures: Counter::default(),
            panics: Counter::default(),
            bytes_in: Counter::default(),
            write_bytes: Counter::default(),
            bytes_out: Counter::default(),
            rows_written: Counter::default(),
            rows_rejected: Counter::default(),
            rows_failed: Counter::default(),
            lines_unparsable: Counter::default(),
            writes_refused: Counter::default(),
            udp_datagrams: Counter::default(),
            udp_datagrams_dropped: Counter::default(),
            queries_active: Gauge::default(),
            queries_refused: Counter::default(),
            statements: Counter::default(),
            statements_failed: Counter::default(),
            query_cache_hits: Counter::default(),
            light_queries: Histogram::default(),
            heavy_queries: Histogram::default(),
            partitions_expired: Counter::default(),
            retention_failures: Counter::default(),
            continuous_queries: Counter::default(),
            continuous_query_failures: Counter::default(),
            subscription_writes: Counter::default(),
            subscription_writes_dropped: Counter::default(),
            subscription_rows: Counter::default(),
            subscription_failures: Counter::default(),
        }
    }
}

impl Metrics {
    /// Time since the start.
    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Requests to `route` that ended with a status that `counts`.
    pub(crate) fn requests_of(&self, route: Route, counts: impl Fn(u16) -> bool) -> u64 {
        let of_route = STATUSES.iter().zip(&self.requests[route as usize]);
        of_route.filter(|(status, _)| counts(**status)).map(|(_, count)| count.get()).sum()
    }

    /// Time that requests to `route` took, nanoseconds.
    pub(crate) fn took_ns(&self, route: Route) -> u64 {
        self.durations[route as usize].sum_ns.get()
    }

    /// Time that queries took, nanoseconds.
    pub(crate) fn queries_took_ns(&self) -> u64 {
        self.light_queries.sum_ns.get().saturating_add(self.heavy_queries.sum_ns.get())
    }

    /// Requests to any of `routes` that are being answered.
    pub(crate) fn active(&self, routes: &[Route]) -> i64 {
        routes.iter().map(|route| self.active[*route as usize].get()).sum()
    }

    /// Bytes of answers of `route`.
    pub(crate) fn sent(&self, route: Route) -> u64 {
        self.sent[route as usize].get()
    }

    /// Counts a request that has begun.
    pub(crate) fn request_begun(&self, route: Route) {
        self.active[route as usize].add(1);
    }

    /// Counts a request that is over, and the bytes of its answer; without a status the client went
    /// away before it had one.
    pub(crate) fn request_done(
        &self,
        route: Route,
        status: Option<StatusCode>,
        took: Duration,
        bytes_out: u64,
    ) {
        self.active[route as usize].sub(1);
        self.bytes_out.add(bytes_out);
        self.sent[route as usize].add(bytes_out);
        let status = status.map_or(499, |status| status.as_u16());
        let index = STATUSES.iter().position(|s| *s == status).unwrap_or(STATUSES.len() - 1);
        self.requests[route as usize][index].add(1);
        self.durations[route as usize].observe(took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_are_cumulative() {
        let histogram = Histogram::default();
        for us in [1, 100, 101, 5_000_000, 3_600_000_000] {
            histogram.observe(Duration::from_micros(us));
        }
        let counts = histogram.cumulative();
        assert_eq!(counts[0], (0.000_1, 2), "bounds belong to their bucket");
        assert_eq!(counts[1], (0.000_25, 3));
        assert_eq!(counts[14], (10.0, 4));
        assert_eq!(counts[16], (f64::INFINITY, 5));
        assert!((histogram.sum_s() - 3605.000202).abs() < 1e-9);
    }

    #[test]
    fn routes_index_their_arrays() {
        for (index, route) in Route::ALL.into_iter().enumerate() {
            assert_eq!(route as usize, index);
        }
    }
}
