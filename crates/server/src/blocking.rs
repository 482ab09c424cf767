//! Work that waits for the disk, away from the threads that serve many connections.

use std::time::Duration;

use crate::error::HttpError;
use crate::threads;

/// Does `work` on a thread that may wait: this one, if it serves one connection alone. A panic of it goes on here.
///
/// # Errors
/// 503: the server stops.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, HttpError> {
    if threads::own_runtime().is_some() {
        return Ok(work());
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done),
        Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
        Err(_) => Err(HttpError::overloaded("the server stops", Duration::from_secs(5))),
    }
}
