//! Work that waits for the disk, away from the threads that serve many connections.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::app::App;
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

/// As [`blocking`], for a write that shares none with others: of many at once some are at work, and the rest
/// wait for their turn without a thread.
///
/// # Errors
/// 503: the server stops, or no turn came in time.
pub(crate) async fn storing<T: Send + 'static>(
    app: &App,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, HttpError> {
    if threads::own_runtime().is_some() {
        return Ok(work());
    }
    let turn = Arc::clone(&app.write_turns).acquire_owned();
    let Ok(Ok(turn)) = timeout(app.config.admission_wait, turn).await else {
        app.metrics.writes_refused.add(1);
        let text = "overloaded: too many writes wait for their turn; try again in 1 s";
        return Err(HttpError::overloaded(text, Duration::from_secs(1)));
    };
    blocking(move || {
        // Until it is done, whether or not somebody waits for that.
        let _turn = turn;
        work()
    })
    .await
}
