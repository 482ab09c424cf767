//! A panic is a bug of ours: it ends the request it happened in, and nothing else.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A future whose panics are results.
pub(crate) struct CatchPanic<F>(Pin<Box<F>>);

impl<F: Future> CatchPanic<F> {
    pub(crate) fn new(future: F) -> Self {
        Self(Box::pin(future))
    }
}

impl<F: Future> Future for CatchPanic<F> {
    type Output = Result<F::Output, String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // After a panic the future is not polled again, only dropped.
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(payload) => Poll::Ready(Err(text_of(&*payload))),
        }
    }
}

/// What a panic said.
pub(crate) fn text_of(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_results() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let fine = runtime.block_on(CatchPanic::new(async { 7 }));
        assert_eq!(fine, Ok(7));
        let bad = runtime.block_on(CatchPanic::new(async {
            tokio::task::yield_now().await;
            assert_eq!(1, 2, "BUG: {}", "arithmetic");
        }));
        assert!(bad.unwrap_err().contains("BUG: arithmetic"));
    }
}
