//! Who may execute queries when.
//!
//! Light ones always may. The others take a place, of which there are many: a worker thread. Those
//! of them that compute also need one of as many slots as there are processors, and give it up
//! while their client is slow to take the answer. So reports queue with reports, and dashboards
//! with nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use model::{Budget, Interrupt};
use tokio::runtime::Handle;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::ServerConfig;
use crate::app::App;
use crate::error::HttpError;
use crate::metrics::Metrics;

/// Worker threads that queries may hold beyond one a processor: those that wait for a turn, for the
/// disk, or for a slow client. Those that find no place wait for one, as long as for a turn.
const PLACES_BEYOND: usize = 256;

/// What an execution waits for before it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// A thread that may wait for the disk.
    Thread,
    /// A thread and a processor.
    Processor,
}

/// The state all queries share.
#[derive(Debug)]
pub(crate) struct QueryGate {
    active: AtomicUsize,
    active_max: usize,
    places: Arc<Semaphore>,
    slots: Arc<Semaphore>,
    slots_total: usize,
    wait_max: Duration,
    memory: Budget,
    query_bytes_max: usize,
    next_id: AtomicU64,
    /// Those on worker threads, so that a stopping server can end them.
    running: parking_lot::Mutex<Vec<(u64, Interrupt)>>,
}

/// Counts a query as long as it lives.
#[derive(Debug)]
pub(crate) struct Active {
    app: Arc<App>,
}

/// The right to execute on a worker thread.
#[derive(Debug)]
pub(crate) struct Turn {
    _place: OwnedSemaphorePermit,
    slot: Option<OwnedSemaphorePermit>,
}

impl QueryGate {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        Self {
            active: AtomicUsize::new(0),
            active_max: match config.max_concurrent_queries {
                0 => usize::MAX,
                max => max,
            },
            places: Arc::new(Semaphore::new(config.threads + PLACES_BEYOND)),
            slots: Arc::new(Semaphore::new(config.threads)),
            slots_total: config.threads,
            wait_max: config.admission_wait,
            memory: Budget::new("queries-memory-limit", config.queries_memory_bytes),
            query_bytes_max: config.query_memory_bytes,
            next_id: AtomicU64::new(0),
            running: parking_lot::Mutex::default(),
        }
    }

    /// A budget for one request's statements.
    pub(crate) fn budget(&self) -> Budget {
        self.memory.child("query-memory-limit", self.query_bytes_max)
    }

    /// Threads that a heavy query may use: its share, with as many others as there are. `has_slot`: it is one of
    /// those that run by now.
    pub(crate) fn threads(&self, has_slot: bool) -> usize {
        threads_of(self.slots_total, self.slots.available_permits(), has_slot)
    }

    /// A place, and a slot if one is needed; both are waited for without a thread.
    pub(crate) async fn turn(&self, need: Need, metrics: &Metrics) -> Result<Turn, HttpError> {
        let waiting = async {
            let _place = Arc::clone(&self.places).acquire_owned().await?;
            let slot = match need {
                Need::Thread => None,
                Need::Processor => Some(Arc::clone(&self.slots).acquire_owned().await?),
            };
            Ok::<_, AcquireError>(Turn { _place, slot })
        };
        if let Ok(Ok(turn)) = tokio::time::timeout(self.wait_max, waiting).await {
            return Ok(turn);
        }
        metrics.queries_refused.add(1);
        let text = "overloaded: all processors are busy with other queries; try again in 1 s";
        Err(HttpError::overloaded(text, Duration::from_secs(1)))
    }

    /// Gives `turn` a slot if it has none. For worker threads, which wait as long as it takes.
    pub(crate) fn take_slot(&self, turn: &mut Turn, interrupt: &Interrupt) {
        const LOOK_UP: Duration = Duration::from_millis(200);
        while turn.slot.is_none() && interrupt.check().is_ok() {
            let slot = Arc::clone(&self.slots).acquire_owned();
            let slot =
                Handle::current().block_on(async { tokio::time::timeout(LOOK_UP, slot).await });
            match slot {
                Ok(Ok(slot)) => turn.slot = Some(slot),
                Ok(Err(_)) => return,
                Err(_) => {}
            }
        }
    }

    /// Remembers a query on a worker thread; the id is for [`QueryGate::forget`].
    pub(crate) fn remember(&self, interrupt: &Interrupt) -> u64 {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.running.lock().push((id, interrupt.clone()));
        id
    }

    pub(crate) fn forget(&self, id: u64) {
        self.running.lock().retain(|(other, _)| *other != id);
    }

    /// Ends all queries on worker threads.
    pub(crate) fn cancel_all(&self) {
        self.running.lock().iter().for_each(|(_, interrupt)| interrupt.cancel());
    }
}

/// The threads of one of the heavy queries that there are with it, of so many slots with so many free.
fn threads_of(slots: usize, free: usize, has_slot: bool) -> usize {
    let queries = slots.saturating_sub(free) + usize::from(!has_slot);
    (slots / queries.max(1)).max(1)
}

impl Turn {
    /// Leaves the slot to others.
    pub(crate) fn release_slot(&mut self) {
        self.slot = None;
    }

    pub(crate) fn has_slot(&self) -> bool {
        self.slot.is_some()
    }
}

impl Active {
    /// Counts one more query, unless there are as many as there may be: then the text says so.
    pub(crate) fn enter(app: &Arc<App>) -> Result<Self, String> {
        let gate = &app.queries;
        let before = gate.active.fetch_add(1, Ordering::Relaxed);
        let active = Self { app: Arc::clone(app) };
        app.metrics.queries_active.add(1);
        if before >= gate.active_max {
            app.metrics.queries_refused.add(1);
            let max = gate.active_max;
            return Err(format!("max-concurrent-queries limit exceeded({before}, {max})"));
        }
        Ok(active)
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.app.queries.active.fetch_sub(1, Ordering::Relaxed);
        self.app.metrics.queries_active.sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heavy_queries_share_the_processors() {
        let of_eight = |free, has_slot| threads_of(8, free, has_slot);
        assert_eq!(
            [(8, false), (7, true), (7, false), (6, true)].map(|(f, h)| of_eight(f, h)),
            [8, 8, 4, 4]
        );
        assert_eq!([(1, false), (0, true), (0, false)].map(|(f, h)| of_eight(f, h)), [1, 1, 1]);
        assert_eq!(
            [(2, false), (1, false), (1, true), (0, true)].map(|(f, h)| threads_of(2, f, h)),
            [2, 1, 2, 1]
        );
    }
}
