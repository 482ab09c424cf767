//! Latencies of many requests: recorded per worker, merged at the end.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

/// Longest latency that is told apart from longer ones.
const LATENCY_NS_MAX: u64 = 600_000_000_000;
const DIGITS: u8 = 3;

/// A histogram of request latencies with three significant digits.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        Self(
            Histogram::new_with_bounds(1, LATENCY_NS_MAX, DIGITS)
                .expect("BUG: the bounds are valid"),
        )
    }
}

impl Latencies {
    /// Adds one request.
    pub fn record(&mut self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.0.saturating_record(ns.clamp(1, LATENCY_NS_MAX));
    }

    /// Adds all requests of another worker.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("BUG: all histograms have the same bounds");
    }

    /// Number of requests.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency that this share of requests did not exceed, in milliseconds.
    #[must_use]
    pub fn quantile_ms(&self, quantile: f64) -> f64 {
        self.0.value_at_quantile(quantile) as f64 / 1e6
    }

    /// Mean in milliseconds.
    #[must_use]
    pub fn mean_ms(&self) -> f64 {
        self.0.mean() / 1e6
    }
}

impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "min {:.3} median {:.3} mean {:.3} p95 {:.3} p99 {:.3} max {:.3} ms",
            self.quantile_ms(0.0),
            self.quantile_ms(0.5),
            self.mean_ms(),
            self.quantile_ms(0.95),
            self.quantile_ms(0.99),
            self.quantile_ms(1.0)
        )
    }
}
