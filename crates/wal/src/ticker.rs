//! The thread that syncs a log at an interval.
//!
//! It ends when stopped or dropped, and when the log is poisoned: from then on the log itself tells
//! everyone who calls.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::error::WalError;
use crate::log::Inner;

#[derive(Debug)]
pub(crate) struct Ticker {
    stop: Arc<Stop>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Ticker {
    pub(crate) fn start(interval: Duration, log: &Arc<Inner>) -> io::Result<Self> {
        let stop = Arc::new(Stop::default());
        let (seen, log) = (Arc::clone(&stop), Arc::clone(log));
        let thread = std::thread::Builder::new()
            .name("wal-sync".to_owned())
            .spawn(move || run(interval, &seen, &log))?;
        Ok(Self { stop, thread: Mutex::new(Some(thread)) })
    }

    /// Ends the thread and waits for it.
    pub(crate) fn stop(&self) {
        *self.stop.stopped.lock() = true;
        self.stop.changed.notify_all();
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            // The log is poisoned if it panicked while writing; the message says the rest.
            tracing::error!("BUG: the thread that syncs the log panicked");
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(interval: Duration, stop: &Stop, log: &Inner) {
    let mut failing = false;
    let mut stopped = stop.stopped.lock();
    while !*stopped {
        if !stop.changed.wait_for(&mut stopped, interval).timed_out() {
            continue;
        }
        drop(stopped);
        match log.sync() {
            Ok(()) => failing = false,
            Err(error @ WalError::Poisoned { .. }) => {
                tracing::error!(%error, "syncing the log at an interval ends");
                return;
            }
            // Tried again at the next tick; said once.
            Err(error) => {
                if !failing {
                    tracing::warn!(%error, "syncing the log at an interval failed");
                }
                failing = true;
            }
        }
        stopped = stop.stopped.lock();
    }
}
