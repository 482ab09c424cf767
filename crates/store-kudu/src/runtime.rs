//! The runtime that the client's connections live on, hidden from callers who know no futures.
//!
//! A caller's thread drives its own operation and sleeps while the network has nothing for it; scans
//! run on the runtime's threads and hand over through bounded channels.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use model::Interrupt;
use parking_lot::Mutex;
use store::StoreError;
use tokio::runtime::{Builder, Handle};

/// Threads that look after connections.
const THREADS: usize = 2;
/// How often a waiting caller looks whether it was interrupted.
const INTERRUPT_CHECK: Duration = Duration::from_millis(20);

/// A runtime that can be entered from anywhere, also from another runtime's threads.
#[derive(Debug)]
pub(crate) struct Runtime {
    handle: Handle,
    runtime: Mutex<Option<tokio::runtime::Runtime>>,
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Runtime {
    pub(crate) fn start() -> Result<Self, StoreError> {
        let mut builder = Builder::new_multi_thread();
        let runtime =
            builder.worker_threads(THREADS).thread_name("nyala-kudu").enable_all().build();
        let runtime =
            runtime.map_err(|e| StoreError::Io(format!("cannot start threads for Kudu: {e}")))?;
        let handle = runtime.handle().clone();
        Ok(Self { handle, runtime: Mutex::new(Some(runtime)) })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Drives `future` on this thread.
    pub(crate) fn wait<T>(
        &self,
        future: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        wait(&self.handle, None, future)
    }

    /// Like `wait`, until `interrupt` says stop.
    pub(crate) fn wait_for<T>(
        &self,
        interrupt: &Interrupt,
        future: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        wait(&self.handle, Some(interrupt), future)
    }

    /// Ends what runs. Nothing may be waiting any more.
    pub(crate) fn stop(&self) {
        if let Some(runtime) = self.runtime.lock().take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Drives `future` on this thread until it is done or interrupted.
pub(crate) fn wait<T>(
    handle: &Handle,
    interrupt: Option<&Interrupt>,
    future: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let _inside = handle.enter();
    // The caller may itself be a task of another runtime, whose allowance would never be renewed.
    let mut future = pin!(tokio::task::unconstrained(future));
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return result;
        }
        match interrupt {
            None => std::thread::park(),
            Some(interrupt) => {
                interrupt.check()?;
                std::thread::park_timeout(INTERRUPT_CHECK);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_wait_from_anywhere() {
        let runtime = Runtime::start().unwrap();
        let work = || async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(7)
        };
        assert_eq!(runtime.wait(work()).unwrap(), 7);
        let other = Builder::new_current_thread().enable_all().build().unwrap();
        other.block_on(async { assert_eq!(runtime.wait(work()).unwrap(), 7) });
        let interrupt = Interrupt::new();
        interrupt.cancel();
        let never = std::future::pending::<Result<(), StoreError>>();
        assert!(matches!(runtime.wait_for(&interrupt, never), Err(StoreError::Interrupted(_))));
    }
}
