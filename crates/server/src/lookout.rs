//! Keeps somebody waiting for requests while others are executed.
//!
//! Of tokio's worker threads one at a time waits for all sockets; then it runs what became ready itself,
//! and another one takes its place only if several tasks are ready at once. A light query holds that
//! thread for tens of microseconds in which nobody looks at the other connections: two clients that ask in
//! turns are served by one thread, whatever number there is. So a thread that starts a query wakes
//! another, if several connections are asking and a thread is idle. (Tokio has a setting to this end,
//! `enable_eager_driver_handoff`: unstable, and without regard to whether there is more than one client.)

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::task;

/// Knows how many threads execute queries, and who asked last.
#[derive(Debug)]
pub(crate) struct Lookout {
    threads: usize,
    executing: AtomicUsize,
    /// The task, and so the connection (or stream of HTTP/2), that asked last.
    last: Mutex<Option<task::Id>>,
}

/// Counts as executing until it is dropped.
#[derive(Debug)]
pub(crate) struct Executing<'a>(&'a Lookout);

impl Drop for Executing<'_> {
    fn drop(&mut self) {
        self.0.executing.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Lookout {
    /// One of a runtime with so many worker threads.
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads, executing: AtomicUsize::new(0), last: Mutex::new(None) }
    }

    /// To be called by a task before it executes what takes longer than waking a thread.
    pub(crate) fn execute(&self) -> Executing<'_> {
        let executing = self.executing.fetch_add(1, Ordering::Relaxed) + 1;
        if self.asked_by_another() && executing < self.threads {
            wake_a_thread();
        }
        Executing(self)
    }

    /// Whether another connection asked last.
    fn asked_by_another(&self) -> bool {
        let this = task::try_id();
        let last = std::mem::replace(&mut *self.last.lock(), this);
        last.is_some() && last != this
    }
}

/// Wakes a thread if one is idle, which then waits for sockets.
fn wake_a_thread() {
    // The task that a thread is to run next wakes nobody; a second one takes its place and makes it one that
    // others may have.
    for _ in 0..2 {
        drop(tokio::spawn(std::future::ready(())));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// A thread that was given a request holds it until the other connection was served: nobody but a thread
    /// woken for it can do so.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn requests_are_seen_while_another_is_executed() {
        let lookout = Arc::new(Lookout::new(2));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (served, was_served) = mpsc::channel();
        let (seen, mut was_seen) = tokio::sync::mpsc::unbounded_channel();
        let was_served = Arc::new(Mutex::new(was_served));
        tokio::spawn({
            let lookout = Arc::clone(&lookout);
            async move {
                loop {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    let (lookout, served) = (Arc::clone(&lookout), served.clone());
                    let (was_served, seen) = (Arc::clone(&was_served), seen.clone());
                    tokio::spawn(async move {
                        let mut byte = [0];
                        while stream.read_exact(&mut byte).await.is_ok() {
                            let _executing = lookout.execute();
                            match byte[0] {
                                b'w' => {
                                    let waited =
                                        was_served.lock().recv_timeout(Duration::from_secs(20));
                                    seen.send(waited.is_ok()).unwrap();
                                }
                                b's' => served.send(()).unwrap(),
                                _ => {}
                            }
                        }
                    });
                }
            }
        });
        let mut first = TcpStream::connect(address).await.unwrap();
        let mut second = TcpStream::connect(address).await.unwrap();
        // Known to be asking.
        second.write_all(b"-").await.unwrap();
        for _ in 0..20 {
            // Whoever executed before is idle by then.
            tokio::time::sleep(Duration::from_millis(5)).await;
            first.write_all(b"w").await.unwrap();
            // Not before the first is executed, or both are found ready at once.
            std::thread::sleep(Duration::from_millis(5));
            second.write_all(b"s").await.unwrap();
            assert!(was_seen.recv().await.unwrap(), "nobody looked at the second connection");
        }
    }
}
