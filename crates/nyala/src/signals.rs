//! SIGTERM and SIGINT: the first asks to stop in good order, the second stops.

use std::io;
use std::process::exit;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// As shells report a program that was ended by SIGINT.
const INTERRUPTED: i32 = 130;

/// Both signals, from now on.
#[derive(Debug)]
pub(crate) struct Signals {
    term: Signal,
    int: Signal,
}

impl Signals {
    /// Takes over both signals. Within a runtime.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(crate) fn listen() -> io::Result<Self> {
        let term = signal(SignalKind::terminate())?;
        Ok(Self { term, int: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.int.recv() => "SIGINT",
        }
    }

    /// Ready at the first signal. A second one ends the process at once.
    pub(crate) async fn first(mut self) {
        let name = self.next().await;
        tracing::info!("{name}: finishing what is in flight; once more stops at once");
        tokio::spawn(async move {
            let name = self.next().await;
            tracing::warn!("{name} again: stopped at once; the log is replayed at the next start");
            exit(INTERRUPTED);
        });
    }
}
