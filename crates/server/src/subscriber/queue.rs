//! Copies that wait for one destination, or for one of several in turn.
//!
//! Invariant: a queue holds no more bytes than its share, or one copy. What is being sent counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;

use super::Copy;

/// Where copies are put.
#[derive(Debug)]
pub(super) struct Queue {
    sender: mpsc::Sender<Waiting>,
    held_bytes: Arc<AtomicUsize>,
}

/// A copy that waits, or is being sent.
#[derive(Debug)]
pub(super) struct Waiting {
    copy: Arc<Copy>,
    held_bytes: Arc<AtomicUsize>,
}

impl Queue {
    /// A queue for so many copies, and its other end.
    pub(super) fn new(copies_max: usize) -> (Self, mpsc::Receiver<Waiting>) {
        let (sender, receiver) = mpsc::channel(copies_max);
        (Self { sender, held_bytes: Arc::default() }, receiver)
    }

    /// Puts a copy unless the queue has its share already; says whether it did. One caller at a time.
    pub(super) fn put(&self, copy: &Arc<Copy>, share_bytes: usize) -> bool {
        let held = self.held_bytes.load(Ordering::Relaxed);
        if held > 0 && held.saturating_add(copy.text.len()) > share_bytes {
            return false;
        }
        self.held_bytes.fetch_add(copy.text.len(), Ordering::Relaxed);
        let held_bytes = Arc::clone(&self.held_bytes);
        self.sender.try_send(Waiting { copy: Arc::clone(copy), held_bytes }).is_ok()
    }
}

impl Waiting {
    pub(super) fn copy(&self) -> &Copy {
        &self.copy
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.held_bytes.fetch_sub(self.copy.text.len(), Ordering::Relaxed);
    }
}
