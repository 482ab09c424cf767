//! Things that take memory to make and wait, when they are done with, to be used again.

use parking_lot::Mutex;

/// So many idle things at most.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    idle: Mutex<Vec<T>>,
    kept_max: usize,
}

impl<T> Pool<T> {
    /// An empty pool that keeps so many.
    pub(crate) const fn new(kept_max: usize) -> Self {
        Self { idle: Mutex::new(Vec::new()), kept_max }
    }

    /// One that was given back last, if there is any.
    pub(crate) fn take(&self) -> Option<T> {
        self.idle.lock().pop()
    }

    /// Keeps `item` for the next, unless enough are kept.
    pub(crate) fn give_back(&self, item: T) {
        let mut idle = self.idle.lock();
        if idle.len() < self.kept_max {
            idle.push(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_kept_than_are_wanted() {
        let pool = Pool::new(2);
        assert_eq!(pool.take(), None);
        (1..=3).for_each(|item| pool.give_back(item));
        assert_eq!([pool.take(), pool.take(), pool.take()], [Some(2), Some(1), None]);
    }
}
