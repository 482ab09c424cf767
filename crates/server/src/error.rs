//! Requests that fail as a whole, and how the failures of the layers below look to a client.

use std::time::Duration;

use hyper::StatusCode;
use store::StoreError;

/// A request that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{status}: {text}")]
pub(crate) struct HttpError {
    pub(crate) status: StatusCode,
    pub(crate) text: String,
    /// When trying again makes sense.
    pub(crate) retry_after: Option<Duration>,
    /// The rest of the request is not read: the connection cannot go on.
    pub(crate) close: bool,
}

impl HttpError {
    pub(crate) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), retry_after: None, close: false }
    }

    pub(crate) fn bad_request(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    pub(crate) fn internal(text: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, text)
    }

    pub(crate) fn too_large() -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large")
    }

    pub(crate) fn overloaded(text: impl Into<String>, retry_after: Duration) -> Self {
        let retry_after = Some(retry_after);
        Self { retry_after, ..Self::new(StatusCode::SERVICE_UNAVAILABLE, text) }
    }

    pub(crate) fn and_close(self) -> Self {
        Self { close: true, ..self }
    }
}

impl From<StoreError> for HttpError {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        match error {
            StoreError::Invalid(_) | StoreError::Unsupported(_) => Self::bad_request(text),
            StoreError::Overloaded { retry_after, .. } => Self::overloaded(text, retry_after),
            StoreError::OverBudget(_) => Self::overloaded(text, Duration::from_secs(1)),
            StoreError::Closed => Self::overloaded(text, Duration::from_secs(5)),
            StoreError::Interrupted(_)
            | StoreError::Corruption { .. }
            | StoreError::Io(_)
            | StoreError::ReadOnly(_) => Self::internal(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stores_say() {
        let wait = Duration::from_secs(3);
        let overloaded = StoreError::Overloaded { reason: "memory".to_owned(), retry_after: wait };
        let error = HttpError::from(overloaded);
        assert_eq!((error.status.as_u16(), error.retry_after), (503, Some(wait)));
        assert_eq!(error.text, "overloaded: memory; try again in 3 s");
        assert_eq!(HttpError::from(StoreError::Invalid("x".to_owned())).status.as_u16(), 400);
        assert_eq!(HttpError::from(StoreError::Io("x".to_owned())).status.as_u16(), 500);
    }
}
