//! Admission: writes slow down before memory runs out, then wait, then are refused.

use std::time::Duration;

use store::StoreError;

use crate::engine::Engine;

/// Longest delay of a write while memory is short but not used up.
const DELAY_MAX: Duration = Duration::from_millis(20);
/// What a refused client is told to wait.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How long a write is delayed with `used` bytes of memtables: nothing below `soft`, rising evenly
/// to [`DELAY_MAX`] at `hard`.
fn delay(used: usize, soft: usize, hard: usize) -> Duration {
    let over = used.saturating_sub(soft) as f64 / (hard - soft).max(1) as f64;
    DELAY_MAX.mul_f64(over.min(1.0))
}

/// What counts of `all` bytes of memtables, `pinned` of which are flushed already and wait for readers.
fn counted(all: usize, pinned: usize, pinned_max: usize) -> usize {
    all.saturating_sub(pinned.min(pinned_max))
}

/// Bytes of memtables that count against the limits.
pub(crate) fn used_bytes(engine: &Engine) -> usize {
    let (all, pinned) = (engine.work.memtable_bytes(), engine.work.pinned_bytes());
    counted(all, pinned, engine.memory.memtables_pinned)
}

/// Lets a write in, perhaps after a while.
pub(super) fn admit(engine: &Engine) -> Result<(), StoreError> {
    let used = || used_bytes(engine);
    let (soft, hard) = (engine.memory.memtables_soft, engine.memory.memtables_hard);
    let now = used();
    if now <= soft {
        return Ok(());
    }
    engine.work.notify();
    if now < hard {
        std::thread::sleep(delay(now, soft, hard));
        engine.metrics.writes_delayed.add(1);
        return Ok(());
    }
    engine.metrics.writes_delayed.add(1);
    let enough = || used() < hard || engine.check_writable().is_err();
    if engine.work.wait_room(engine.options.write_wait_max, enough) {
        return engine.check_writable();
    }
    engine.metrics.writes_refused.add(1);
    let reason = format!(
        "{} MiB of rows wait to be written to disk, or for long queries that read them from memory; the limit \
         is {} MiB (a share of memory-limit)",
        used() >> 20,
        hard >> 20
    );
    Err(StoreError::Overloaded { reason, retry_after: RETRY_AFTER })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_rises_evenly() {
        assert_eq!(delay(10, 10, 20), Duration::ZERO);
        assert_eq!(delay(15, 10, 20), DELAY_MAX / 2);
        assert_eq!(delay(99, 10, 20), DELAY_MAX);
        assert_eq!(delay(5, 10, 20), Duration::ZERO);
    }

    #[test]
    fn pinned_memtables_count_above_their_share() {
        assert_eq!(counted(100, 0, 30), 100);
        assert_eq!(counted(100, 20, 30), 80);
        assert_eq!(counted(100, 50, 30), 70);
    }
}
