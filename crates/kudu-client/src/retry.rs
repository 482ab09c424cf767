//! What to do about a failed attempt, and for how long.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::Error;
use crate::proto::{ErrorStatus, ServiceError};
use crate::rpc::{CallError, code};

/// First wait; each further one in a row is twice as long.
const BACK_OFF_FIRST: Duration = Duration::from_millis(5);
/// Longest wait.
const BACK_OFF_MAX: Duration = Duration::from_secs(1);
/// The time an attempt must have.
const ATTEMPT_MIN: Duration = Duration::from_millis(50);
/// Errors kept to be told when the time is over.
const TRACE_MAX: usize = 6;

/// The attempts of one operation.
#[derive(Debug)]
pub(crate) struct Attempts {
    operation: String,
    limit: Duration,
    deadline: Instant,
    attempt_began: Instant,
    attempt_timeout: Duration,
    waits: u32,
    count: u32,
    trace: VecDeque<String>,
}

impl Attempts {
    pub(crate) fn new(operation: String, limit: Duration, attempt_timeout: Duration) -> Self {
        Self {
            operation,
            limit,
            deadline: Instant::now() + limit,
            attempt_began: Instant::now(),
            attempt_timeout,
            waits: 0,
            count: 0,
            trace: VecDeque::new(),
        }
    }

    /// Attempts of a part of this operation: the same deadline.
    pub(crate) fn part(&self, operation: String) -> Self {
        Self {
            operation,
            limit: self.limit,
            deadline: self.deadline,
            attempt_began: Instant::now(),
            attempt_timeout: self.attempt_timeout,
            waits: 0,
            count: 0,
            trace: VecDeque::new(),
        }
    }

    /// How long the next attempt may take.
    pub(crate) fn next_timeout(&mut self) -> Result<Duration, Error> {
        self.attempt_began = Instant::now();
        let left = self.until_deadline();
        if left.is_zero() { Err(self.timed_out()) } else { Ok(left.min(self.attempt_timeout)) }
    }

    /// When the time limit of the last attempt was asked for.
    pub(crate) fn attempt_began(&self) -> Instant {
        self.attempt_began
    }

    /// How long the whole operation may still take.
    pub(crate) fn until_deadline(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Notes an attempt that failed.
    pub(crate) fn failed(&mut self, server: &str, error: &dyn std::fmt::Display) {
        self.count += 1;
        tracing::debug!(operation = %self.operation, server, %error, "attempt failed");
        self.trace.push_front(format!("{server}: {error}"));
        self.trace.truncate(TRACE_MAX);
    }

    /// A part has succeeded: waits start from the shortest again.
    pub(crate) fn succeeded(&mut self) {
        self.waits = 0;
    }

    /// Waits before the next attempt, longer each time.
    pub(crate) async fn back_off(&mut self) -> Result<(), Error> {
        let full = BACK_OFF_FIRST.saturating_mul(1 << self.waits.min(16)).min(BACK_OFF_MAX);
        self.waits += 1;
        let wait = full.mul_f64(rand::random_range(0.5..1.0));
        // With less time than that an attempt would end at the deadline, and hide what the others met.
        let least = ATTEMPT_MIN.min(self.limit / 20);
        if Instant::now() + wait + least >= self.deadline {
            return Err(self.timed_out());
        }
        tokio::time::sleep(wait).await;
        Ok(())
    }

    pub(crate) fn timed_out(&self) -> Error {
        let trace: Vec<&str> = self.trace.iter().map(String::as_str).collect();
        Error::TimedOut {
            operation: self.operation.clone(),
            limit: self.limit,
            trace: match trace.is_empty() {
                true => "no attempt had failed before".to_owned(),
                false => format!("{} attempts failed: {}", self.count, trace.join("; ")),
            },
        }
    }
}

/// Codes of the status inside answers.
pub(crate) mod status {
    pub(crate) const NOT_FOUND: i32 = 1;
    pub(crate) const INVALID_ARGUMENT: i32 = 4;
    pub(crate) const ALREADY_PRESENT: i32 = 6;
    pub(crate) const ILLEGAL_STATE: i32 = 9;
    pub(crate) const ABORTED: i32 = 11;
    pub(crate) const SERVICE_UNAVAILABLE: i32 = 13;
    pub(crate) const TIMED_OUT: i32 = 14;
}

/// Codes of errors of tablet servers.
mod tablet_code {
    pub(super) const UNKNOWN_ERROR: i32 = 1;
    pub(super) const INVALID_SCHEMA: i32 = 2;
    pub(super) const MISMATCHED_SCHEMA: i32 = 5;
    pub(super) const TABLET_NOT_FOUND: i32 = 6;
    pub(super) const SCANNER_EXPIRED: i32 = 7;
    pub(super) const TABLET_NOT_RUNNING: i32 = 12;
    pub(super) const INVALID_SNAPSHOT: i32 = 13;
    pub(super) const INVALID_SCAN_CALL_SEQ_ID: i32 = 14;
    pub(super) const NOT_THE_LEADER: i32 = 15;
    pub(super) const WRONG_SERVER_UUID: i32 = 16;
    pub(super) const THROTTLED: i32 = 19;
    pub(super) const TABLET_FAILED: i32 = 20;
}

/// What a failure asks for.
#[derive(Clone, Debug)]
pub(crate) enum Reaction {
    /// The server is overloaded: wait, then ask it again.
    Wait,
    /// This replica cannot do it: ask another one.
    OtherReplica,
    /// The server cannot be reached, or lost the call: ask another one, and remember.
    ServerFailed,
    /// The master has to tell anew where the tablet is.
    Relocate,
    /// A new authorization token from the master is needed.
    NewAuthorization,
    /// A new authentication token from the master is needed.
    NewAuthentication,
    /// The server has forgotten the scanner.
    ScannerGone(String),
    /// Nothing helps.
    Fail(Error),
}

/// Reaction to a call to `server` that has no answer.
pub(crate) fn on_call_error(error: &CallError, server: &str, method: &str) -> Reaction {
    match error {
        CallError::Network(_) | CallError::TimedOut(_) => Reaction::ServerFailed,
        CallError::Protocol(message) => Reaction::Fail(Error::protocol(server, message)),
        CallError::Definitive(error) => Reaction::Fail(error.as_ref().clone()),
        CallError::Remote(status) => on_remote(status, server, method),
    }
}

/// How a server's message begins that does not let the user call a method.
const NOT_AUTHORIZED: &str = "Not authorized:";

fn on_remote(status: &ErrorStatus, server: &str, method: &str) -> Reaction {
    let code = status.code.unwrap_or_default();
    let server = server.to_owned();
    let method = method.to_owned();
    let message = status.message.clone();
    match code {
        code::SERVER_TOO_BUSY | code::UNAVAILABLE => Reaction::Wait,
        // A server that is starting has not registered its services yet.
        code::NO_SUCH_SERVICE | code::FATAL_SERVER_SHUTTING_DOWN => Reaction::ServerFailed,
        code::INVALID_AUTHENTICATION_TOKEN => Reaction::NewAuthentication,
        code::INVALID_AUTHORIZATION_TOKEN => Reaction::NewAuthorization,
        code::REQUEST_STALE => Reaction::Fail(Error::OutcomeUnknown(message)),
        code::FATAL_UNAUTHORIZED => Reaction::Fail(Error::NotAuthorized { server, message }),
        // All that tells it from other failures of a method.
        code::APPLICATION if message.starts_with(NOT_AUTHORIZED) => {
            let message = format!("{message} (is its user name in --user_acl of the server?)");
            Reaction::Fail(Error::NotAuthorized { server, message })
        }
        code::NO_SUCH_METHOD => {
            Reaction::Fail(Error::Unsupported { server, method, features: Vec::new() })
        }
        code::INVALID_REQUEST if !status.unsupported_feature_flags.is_empty() => {
            let features = status.unsupported_feature_flags.clone();
            Reaction::Fail(Error::Unsupported { server, method, features })
        }
        _ => Reaction::Fail(Error::Remote { server, method, code, message }),
    }
}

/// Reaction to an error that a tablet server answers with.
pub(crate) fn on_tablet_error(
    error: &ServiceError,
    server: &str,
    operation: &str,
    table: &str,
) -> Reaction {
    let message = error.status.message.clone().unwrap_or_default();
    let refused = || Error::Tablet {
        server: server.to_owned(),
        operation: operation.to_owned(),
        code: error.code,
        status: error.status.code,
        message: message.clone(),
    };
    match (error.code, error.status.code) {
        (tablet_code::TABLET_NOT_FOUND | tablet_code::TABLET_FAILED, _)
        | (tablet_code::WRONG_SERVER_UUID, _) => Reaction::Relocate,
        (tablet_code::TABLET_NOT_RUNNING | tablet_code::NOT_THE_LEADER, _) => {
            Reaction::OtherReplica
        }
        (tablet_code::SCANNER_EXPIRED | tablet_code::INVALID_SCAN_CALL_SEQ_ID, _) => {
            Reaction::ScannerGone(message)
        }
        (tablet_code::THROTTLED, _) => Reaction::Wait,
        (tablet_code::INVALID_SNAPSHOT, _) => Reaction::Fail(Error::SnapshotUnavailable(message)),
        // The same code stands for damaged rows, which is not the schema's fault.
        (tablet_code::MISMATCHED_SCHEMA, status::INVALID_ARGUMENT)
        | (tablet_code::INVALID_SCHEMA, _) => {
            Reaction::Fail(Error::SchemaChanged { table: table.to_owned(), message })
        }
        (tablet_code::MISMATCHED_SCHEMA, _) => Reaction::Fail(refused()),
        // A row for another tablet: it was routed by partitions that have changed since.
        (tablet_code::UNKNOWN_ERROR, status::NOT_FOUND) if operation == "write" => {
            Reaction::Fail(Error::SchemaChanged { table: table.to_owned(), message })
        }
        // Followers, and leaders that lost their office, say no more than this; TIMED_OUT is what a
        // replica says that waits for its leader in vain, of moments that it cannot read yet.
        (_, status::ILLEGAL_STATE | status::ABORTED | status::TIMED_OUT) => Reaction::OtherReplica,
        (_, status::SERVICE_UNAVAILABLE) => Reaction::Wait,
        _ => Reaction::Fail(refused()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::AppStatus;

    fn tablet_error(code: i32, status: i32) -> Reaction {
        let status = AppStatus { code: status, message: None };
        on_tablet_error(&ServiceError { code, status }, "s", "write", "t")
    }

    #[test]
    fn malformed_rows_are_not_a_changed_schema() {
        assert!(matches!(tablet_error(5, 4), Reaction::Fail(Error::SchemaChanged { .. })));
        assert!(matches!(tablet_error(5, 2), Reaction::Fail(Error::Tablet { .. })));
    }

    #[test]
    fn followers_are_left_for_another_replica() {
        assert!(matches!(tablet_error(1, 9), Reaction::OtherReplica));
        assert!(matches!(tablet_error(1, 11), Reaction::OtherReplica));
        assert!(matches!(tablet_error(1, 14), Reaction::OtherReplica));
        assert!(matches!(tablet_error(6, 9), Reaction::Relocate));
        assert!(matches!(tablet_error(1, 1), Reaction::Fail(Error::SchemaChanged { .. })));
    }

    #[tokio::test]
    async fn the_trace_tells_what_was_tried() {
        let limit = Duration::from_millis(5);
        let mut attempts = Attempts::new("write".to_owned(), limit, limit);
        attempts.failed("a:1", &"refused");
        let error = loop {
            if let Err(error) = attempts.back_off().await {
                break error;
            }
        };
        assert!(error.to_string().contains("a:1: refused"), "{error}");
        assert!(error.is_transient());
    }
}
