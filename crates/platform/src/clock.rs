//! Time, real and set by hand.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where the wall clock's time comes from.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Nanoseconds since 1970-01-01 UTC.
    fn now_ns(&self) -> i64;
}

/// The operating system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock others are to take")]
    fn now_ns(&self) -> i64 {
        let nanos = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => i128::try_from(after.as_nanos()).unwrap_or(i128::MAX),
            Err(before) => -i128::try_from(before.duration().as_nanos()).unwrap_or(i128::MAX),
        };
        nanos.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }
}

/// A clock that stands still until it is set.
#[derive(Debug, Default)]
pub struct ManualClock {
    now_ns: AtomicI64,
}

impl ManualClock {
    /// A clock that shows `now_ns`.
    #[must_use]
    pub fn new(now_ns: i64) -> Self {
        Self { now_ns: AtomicI64::new(now_ns) }
    }

    /// Sets the time.
    pub fn set(&self, now_ns: i64) {
        self.now_ns.store(now_ns, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_ns(&self) -> i64 {
        self.now_ns.load(Ordering::Relaxed)
    }
}
