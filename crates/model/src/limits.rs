//! Limits that travel with a piece of work: how much memory it may take and how long it may run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// A share of memory that one query (or one job) may use; clones share it.
#[derive(Clone, Debug)]
pub struct Budget {
    state: Arc<BudgetState>,
}

#[derive(Debug)]
struct BudgetState {
    name: &'static str,
    limit_bytes: usize,
    used_bytes: AtomicUsize,
    parent: Option<Budget>,
}

/// The budget is spent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} limit exceeded: {wanted_bytes} bytes wanted beyond {used_bytes} of {limit_bytes}")]
pub struct OverBudget {
    /// Which limit, as the configuration names it.
    pub name: &'static str,
    /// Bytes that were asked for.
    pub wanted_bytes: usize,
    /// Bytes in use.
    pub used_bytes: usize,
    /// The limit.
    pub limit_bytes: usize,
}

impl Budget {
    /// A budget of `limit_bytes`; `name` is what the configuration calls it.
    #[must_use]
    pub fn new(name: &'static str, limit_bytes: usize) -> Self {
        Self::with_parent(name, limit_bytes, None)
    }

    /// A budget for a part of this one's work: what it takes counts here as well.
    #[must_use]
    pub fn child(&self, name: &'static str, limit_bytes: usize) -> Self {
        Self::with_parent(name, limit_bytes, Some(self.clone()))
    }

    /// A budget that is never spent, for tests and tools.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new("unlimited", usize::MAX)
    }

    fn with_parent(name: &'static str, limit_bytes: usize, parent: Option<Self>) -> Self {
        let used_bytes = AtomicUsize::new(0);
        Self { state: Arc::new(BudgetState { name, limit_bytes, used_bytes, parent }) }
    }

    /// Takes `bytes`, given back when the reservation is dropped.
    ///
    /// # Errors
    /// [`OverBudget`] if this budget or one above it has less left; nothing is taken then.
    pub fn reserve(&self, bytes: usize) -> Result<Reservation, OverBudget> {
        self.take(bytes)?;
        Ok(Reservation { budget: self.clone(), bytes })
    }

    /// Bytes in use.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.state.used_bytes.load(Ordering::Relaxed)
    }

    /// The limit.
    #[must_use]
    pub fn limit_bytes(&self) -> usize {
        self.state.limit_bytes
    }

    fn take(&self, bytes: usize) -> Result<(), OverBudget> {
        let state = &self.state;
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= state.limit_bytes);
        state.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).map_err(
            |used_bytes| OverBudget {
                name: state.name,
                wanted_bytes: bytes,
                used_bytes,
                limit_bytes: state.limit_bytes,
            },
        )?;
        let Some(parent) = &state.parent else { return Ok(()) };
        parent.take(bytes).inspect_err(|_| {
            state.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
        })
    }

    fn give_back(&self, bytes: usize) {
        let before = self.state.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "BUG: more given back to a budget than taken");
        if let Some(parent) = &self.state.parent {
            parent.give_back(bytes);
        }
    }
}

/// Memory taken from a budget; dropping it gives it back.
#[derive(Debug)]
pub struct Reservation {
    budget: Budget,
    bytes: usize,
}

impl Reservation {
    /// Takes or gives back so that `bytes` are held.
    ///
    /// # Errors
    /// [`OverBudget`] if there is not that much; the old amount stays held.
    pub fn resize(&mut self, bytes: usize) -> Result<(), OverBudget> {
        if bytes > self.bytes {
            self.budget.take(bytes - self.bytes)?;
        } else {
            self.budget.give_back(self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Takes `bytes` more.
    ///
    /// # Errors
    /// As [`Reservation::resize`].
    pub fn grow(&mut self, bytes: usize) -> Result<(), OverBudget> {
        self.resize(self.bytes.saturating_add(bytes))
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

/// Why work has to stop early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Interrupted {
    /// The client went away, or someone killed the query.
    #[error("query interrupted")]
    Cancelled,
    /// The deadline passed.
    #[error("query-timeout limit exceeded")]
    Deadline,
}

/// A flag and a deadline that long work looks at between batches; clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    cancelled: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl Interrupt {
    /// Never interrupted by itself.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Interrupted at `deadline` at the latest.
    #[must_use]
    pub fn with_deadline(deadline: Instant) -> Self {
        Self { cancelled: Arc::default(), deadline: Some(deadline) }
    }

    /// Asks the work to stop.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether to go on.
    ///
    /// # Errors
    /// [`Interrupted`] says why not.
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Interrupted::Cancelled);
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Interrupted::Deadline),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_takes_from_its_parent_and_gives_back() {
        let whole = Budget::new("memory", 100);
        let part = whole.child("query", 80);
        let mut held = part.reserve(60).unwrap();
        assert_eq!((whole.used_bytes(), part.used_bytes()), (60, 60));
        assert!(part.reserve(30).is_err());
        let _other = whole.reserve(30).unwrap();
        assert!(held.grow(15).is_err(), "the parent is short");
        assert_eq!((whole.used_bytes(), part.used_bytes()), (90, 60));
        held.resize(10).unwrap();
        drop(held);
        assert_eq!((whole.used_bytes(), part.used_bytes()), (30, 0));
    }

    #[test]
    fn cancelling_reaches_clones() {
        let interrupt = Interrupt::new();
        let clone = interrupt.clone();
        assert_eq!(clone.check(), Ok(()));
        interrupt.cancel();
        assert_eq!(clone.check(), Err(Interrupted::Cancelled));
        let late = Interrupt::with_deadline(Instant::now());
        assert_eq!(late.check(), Err(Interrupted::Deadline));
    }
}
