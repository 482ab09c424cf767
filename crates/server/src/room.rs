//! Memory for the bodies of requests, and for what is made of them.
//!
//! Invariants
//! - What has arrived of a body is counted; nothing is set aside for a client that only announces
//!   one. So slow clients cannot keep others out.
//! - A body that is more than [`START_BYTES`] gets room for all of it at once, or waits: two bodies
//!   never wait for what the other one holds.
//! - Nobody waits longer than the configured time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::HttpError;

/// Up to here a body is counted as it arrives.
pub(crate) const START_BYTES: usize = 256 << 10;

/// The room there is, shared by all requests.
#[derive(Clone, Debug)]
pub(crate) struct BodyRoom {
    /// For the starts of bodies.
    starts: Arc<Pool>,
    /// For whole bodies and what is made of them.
    wholes: Arc<Pool>,
}

/// A number of KiB.
#[derive(Debug)]
struct Pool {
    free: Arc<Semaphore>,
    total_kib: u32,
    wait_max: Duration,
}

/// Room that is taken; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Room {
    pool: Arc<Pool>,
    permit: OwnedSemaphorePermit,
}

impl BodyRoom {
    /// `total_bytes` in all; whoever waits longer than `wait_max` is refused.
    pub(crate) fn new(total_bytes: usize, wait_max: Duration) -> Self {
        let starts_bytes = (total_bytes / 4).max(START_BYTES);
        let pool = |bytes| Arc::new(Pool::new(bytes, wait_max));
        Self { starts: pool(starts_bytes), wholes: pool(total_bytes - total_bytes / 4) }
    }

    /// Room for the first bytes of a body.
    pub(crate) async fn start(&self, bytes: usize) -> Result<Room, HttpError> {
        self.starts.take(bytes).await
    }

    /// Room for `bytes`, all of it at once. What is more than there is at all gets all there is.
    pub(crate) async fn whole(&self, bytes: usize) -> Result<Room, HttpError> {
        self.wholes.take(bytes).await
    }
}

impl Pool {
    fn new(bytes: usize, wait_max: Duration) -> Self {
        let total_kib = kib(bytes).max(1);
        Self { free: Arc::new(Semaphore::new(total_kib as usize)), total_kib, wait_max }
    }

    async fn take(self: &Arc<Self>, bytes: usize) -> Result<Room, HttpError> {
        let wanted = kib(bytes).min(self.total_kib);
        let acquired = match Arc::clone(&self.free).try_acquire_many_owned(wanted) {
            Ok(permit) => Ok(permit),
            Err(_) => {
                let waiting = Arc::clone(&self.free).acquire_many_owned(wanted);
                tokio::time::timeout(self.wait_max, waiting).await.map_err(|_| self.refusal())
            }
            .and_then(|acquired| acquired.map_err(|_| self.refusal())),
        };
        Ok(Room { pool: Arc::clone(self), permit: acquired? })
    }

    fn refusal(&self) -> HttpError {
        let text = format!(
            "overloaded: request bodies take all of the {} KiB they may have; try again in 1 s",
            self.total_kib
        );
        HttpError::overloaded(text, Duration::from_secs(1))
    }
}

impl Room {
    /// Holds room for `bytes` in all, without waiting for it.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), HttpError> {
        let wanted = kib(bytes).min(self.pool.total_kib);
        let more = wanted.saturating_sub(self.permit.num_permits() as u32);
        if more > 0 {
            let free = Arc::clone(&self.pool.free);
            let permit = free.try_acquire_many_owned(more).map_err(|_| self.pool.refusal())?;
            self.permit.merge(permit);
        }
        Ok(())
    }

    /// Gives back what is more than `bytes`.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let surplus = self.permit.num_permits().saturating_sub(kib(bytes) as usize);
        drop(self.permit.split(surplus));
    }
}

/// KiB that hold `bytes`.
fn kib(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(test: impl Future<Output = ()>) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().start_paused(true).build().unwrap().block_on(test);
    }

    #[test]
    fn room_is_taken_and_given_back() {
        run(async {
            let room = BodyRoom::new(4 << 20, Duration::from_secs(10));
            let mut first = room.whole(2 << 20).await.unwrap();
            let _second = room.whole(1 << 20).await.unwrap();
            let refused = room.whole(1 << 20).await.unwrap_err();
            assert_eq!(refused.status.as_u16(), 503);
            assert!(refused.text.contains("3072 KiB"), "{refused}");
            assert!(first.grow(3 << 20).is_err());
            first.shrink(1 << 20);
            let _third = room.whole(1 << 20).await.unwrap();
            drop(first);
            let mut fourth = room.whole(1).await.unwrap();
            fourth.grow(1 << 20).unwrap();
        });
    }

    #[test]
    fn a_body_larger_than_everything_is_let_in_alone() {
        run(async {
            let room = BodyRoom::new(1 << 20, Duration::from_secs(10));
            let mut huge = room.whole(1 << 40).await.unwrap();
            huge.grow(1 << 41).unwrap();
            assert!(room.whole(1).await.is_err());
            assert!(room.start(1000).await.is_ok(), "starts have room of their own");
        });
    }
}
