//! Marks of one tight page, shared by those who read it.

use std::sync::atomic::{AtomicUsize, Ordering};

use codec::{Mark, Marks};
use parking_lot::Mutex;

/// What is known of a page that was read in parts.
#[derive(Debug, Default)]
pub(crate) struct PageMarks {
    marks: Mutex<Marks>,
    /// Bytes of marks that the cache does not count yet.
    bytes_added: AtomicUsize,
}

impl PageMarks {
    /// The last mark at or before a value.
    pub(crate) fn before(&self, value: usize) -> Option<Mark> {
        self.marks.lock().before(value)
    }

    /// Whether some values from this one on can be decoded with few others.
    pub(crate) fn reach(&self, value: usize) -> bool {
        self.marks.lock().reach(value)
    }

    /// Adds marks that were passed.
    pub(crate) fn add(&self, passed: &[Mark]) {
        if !passed.is_empty() {
            let added = self.marks.lock().add(passed);
            self.bytes_added.fetch_add(added * size_of::<Mark>(), Ordering::Relaxed);
        }
    }

    /// Bytes that were added since this was asked.
    pub(crate) fn take_bytes_added(&self) -> usize {
        self.bytes_added.swap(0, Ordering::Relaxed)
    }
}
