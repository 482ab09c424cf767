//! Who waits for whom: maintenance for work, writers and deletes for memory.
//!
//! A memtable's memory is gone when nobody holds it any more, which can be long after it was flushed: a
//! query reads one view to its end. Waiting does not give such memory back sooner, so it counts apart.
//!
//! Not here: how much memory there may be (`options`), who has to wait (`write::admit`).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Wakes maintenance threads, and writers that wait for room.
#[derive(Debug, Default)]
pub(crate) struct WorkSignal {
    /// Bytes of all memtables that exist, frozen and pinned ones included.
    memtable_bytes: AtomicUsize,
    /// Bytes of those that are flushed, and that somebody holds on to.
    pinned_bytes: AtomicUsize,
    /// Counts announcements of work.
    announced: Mutex<u64>,
    work: Condvar,
    room: Condvar,
}

impl WorkSignal {
    /// Bytes of all memtables that exist.
    pub(crate) fn memtable_bytes(&self) -> usize {
        self.memtable_bytes.load(Ordering::Relaxed)
    }

    /// Counts memory that a memtable took.
    pub(crate) fn memtable_grew(&self, bytes: usize) {
        self.memtable_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes of memtables that are flushed, and that readers hold on to.
    pub(crate) fn pinned_bytes(&self) -> usize {
        self.pinned_bytes.load(Ordering::Relaxed)
    }

    /// Counts memory of a memtable that is flushed, and tells who waits for room.
    pub(crate) fn memtable_flushed(&self, bytes: usize) {
        self.pinned_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.notify_room();
    }

    /// Counts memory that is gone with a memtable, and tells who waits for it. Whoever held the memtable last
    /// does so: a flush that is done, or a reader.
    pub(crate) fn memtable_gone(&self, bytes: usize, was_flushed: bool) {
        self.memtable_bytes.fetch_sub(bytes, Ordering::Relaxed);
        if was_flushed {
            self.pinned_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        self.notify_room();
    }

    /// Says that there may be something to do.
    pub(crate) fn notify(&self) {
        *self.announced.lock() += 1;
        self.work.notify_all();
    }

    /// Says that there may be room.
    pub(crate) fn notify_room(&self) {
        drop(self.announced.lock());
        self.room.notify_all();
    }

    /// Wakes everybody who waits.
    pub(crate) fn notify_all(&self) {
        self.notify();
        self.room.notify_all();
    }

    /// How much work was announced so far.
    pub(crate) fn announced(&self) -> u64 {
        *self.announced.lock()
    }

    /// Waits until more work is announced than `seen`, no longer than `timeout`.
    pub(crate) fn wait_work(&self, seen: u64, timeout: Duration) {
        let mut announced = self.announced.lock();
        if *announced == seen {
            self.work.wait_for(&mut announced, timeout);
        }
    }

    /// Waits until `enough` holds, no longer than `timeout`; says whether it holds.
    pub(crate) fn wait_room(&self, timeout: Duration, enough: impl Fn() -> bool) -> bool {
        let deadline = Instant::now() + timeout;
        let mut announced = self.announced.lock();
        while !enough() {
            if self.room.wait_until(&mut announced, deadline).timed_out() {
                return enough();
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use model::{DatabaseId, PolicyId, TimeRange};
    use wal::Lsn;

    use super::*;
    use crate::memtable::Memtable;

    /// A flush or a query may hold a memtable for a while after it left the view.
    #[test]
    fn a_writer_goes_on_as_soon_as_the_last_holder_of_a_memtable_lets_go() {
        let work = Arc::new(WorkSignal::default());
        let (database, policy) = (DatabaseId(1), PolicyId(1));
        let table = Memtable::new(database, policy, TimeRange::ALL, Lsn(0), Arc::clone(&work));
        table.grew(100);
        assert_eq!(work.memtable_bytes(), 100);
        let (done, is_done) = mpsc::channel();
        let waiting = Arc::clone(&work);
        std::thread::spawn(move || {
            let enough = || waiting.memtable_bytes() == 0;
            done.send(waiting.wait_room(Duration::from_secs(600), enough))
        });
        assert!(is_done.recv_timeout(Duration::from_millis(50)).is_err(), "there is no room yet");
        drop(table);
        assert_eq!(is_done.recv_timeout(Duration::from_secs(60)), Ok(true));
    }

    #[test]
    fn a_flushed_memtable_counts_as_pinned_while_somebody_holds_it() {
        let work = Arc::new(WorkSignal::default());
        let (database, policy) = (DatabaseId(1), PolicyId(1));
        let new = || Memtable::new(database, policy, TimeRange::ALL, Lsn(0), Arc::clone(&work));
        let (flushed, active) = (new(), new());
        flushed.grew(100);
        active.grew(10);
        flushed.flushed();
        assert_eq!((work.memtable_bytes(), work.pinned_bytes()), (110, 100));
        drop(flushed);
        assert_eq!((work.memtable_bytes(), work.pinned_bytes()), (10, 0));
        drop(active);
        assert_eq!((work.memtable_bytes(), work.pinned_bytes()), (0, 0));
    }
}
