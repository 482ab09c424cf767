//! One negotiated connection: a task owns the socket, callers send it calls and await answers.
//!
//! Invariants
//! - Call ids grow and are never used twice on a connection; answers come in any order.
//! - Dropping a call's future is all it takes to cancel it: an unsent call is not sent any more, a
//!   late answer is thrown away.
//! - When the connection ends, every call on it gets [`CallError::Network`].

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::frame::{self, Frame, OUTGOING_BYTES_MAX};
use super::transport::Transport;
use crate::error::Error;
use crate::proto::{ErrorStatus, RemoteMethod, RequestHeader, RequestId};

/// Calls that wait for the connection's task before a caller has to wait to hand over another.
const QUEUED_CALLS_MAX: usize = 256;
/// Bytes that wait for the socket before the task takes no further calls.
const OUTGOING_BYTES_SOFT: usize = 4 << 20;
/// Reads in a row before the task looks after its callers again.
const READS_MAX: usize = 32;
/// From this many unanswered calls on, those that nobody waits for are forgotten.
const PENDING_SWEEP: usize = 64;

/// Why a call has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The connection failed or ended: whether the call was carried out is unknown.
    #[error("network: {0}")]
    Network(String),
    /// No answer in time: whether the call was carried out is unknown.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The server says it could not carry out the call.
    #[error("server error {}: {}", .0.code.unwrap_or_default(), .0.message)]
    Remote(ErrorStatus),
    /// The peer does not keep to the protocol.
    #[error("protocol: {0}")]
    Protocol(String),
    /// Repeating the call is of no use.
    #[error("{0}")]
    Definitive(Box<Error>),
}

impl From<io::Error> for CallError {
    fn from(error: io::Error) -> Self {
        Self::Network(error.to_string())
    }
}

/// The bytes of a request: a message, and parts of it that are not copied into one buffer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    segments: Vec<Bytes>,
}

impl Body {
    pub(crate) fn message(message: &impl Message) -> Self {
        Self { segments: vec![message.encode_to_vec().into()] }
    }

    pub(crate) fn push(&mut self, segment: Bytes) {
        self.segments.push(segment);
    }

    pub(crate) fn len(&self) -> usize {
        self.segments.iter().map(Bytes::len).sum()
    }
}

/// What is called, and how.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) service: &'static str,
    pub(crate) method: &'static str,
    pub(crate) features: Vec<u32>,
    pub(crate) request_id: Option<RequestId>,
    pub(crate) timeout: Duration,
    pub(crate) body: Body,
}

/// The answer to a call.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) body: Bytes,
    pub(crate) sidecars: Vec<Bytes>,
}

impl Answer {
    pub(crate) fn decode<M: Message + Default>(&self) -> Result<M, CallError> {
        M::decode(self.body.clone()).map_err(|e| CallError::Protocol(format!("bad answer: {e}")))
    }
}

type Reply = oneshot::Sender<Result<Answer, CallError>>;

/// A handle of the connection; clones share it. The socket is closed when the last one is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    calls: mpsc::Sender<(Call, Option<Reply>)>,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    closed: AtomicBool,
    started: Instant,
    /// When something was last received, milliseconds after `started`.
    received_ms: AtomicU64,
}

impl Connection {
    /// Takes over a negotiated socket.
    pub(crate) fn start(transport: Transport) -> Self {
        let (calls, queue) = mpsc::channel(QUEUED_CALLS_MAX);
        let state = Arc::new(State {
            closed: AtomicBool::new(false),
            started: Instant::now(),
            received_ms: AtomicU64::new(0),
        });
        let driver = Driver {
            transport,
            queue,
            pending: HashMap::new(),
            next_call_id: 0,
            state: Arc::clone(&state),
        };
        tokio::spawn(driver.run());
        Self { calls, state }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.closed.load(Ordering::Acquire) || self.calls.is_closed()
    }

    /// Makes a call and waits for its answer, at most for the call's time limit.
    pub(crate) async fn call(&self, call: Call) -> Result<Answer, CallError> {
        if call.body.len() > OUTGOING_BYTES_MAX {
            let message = format!("request of {} bytes is too large to send", call.body.len());
            return Err(CallError::Definitive(Box::new(Error::InvalidArgument(message))));
        }
        let timeout = call.timeout;
        let begun = Instant::now();
        let exchange = async {
            let (reply, answer) = oneshot::channel();
            let ended = || CallError::Network("connection ended".to_owned());
            self.calls.send((call, Some(reply))).await.map_err(|_| ended())?;
            answer.await.unwrap_or_else(|_| Err(ended()))
        };
        match tokio::time::timeout(timeout, exchange).await {
            Ok(result) => result,
            Err(_) => {
                // A peer that was silent all the time may be gone without a trace: the next call
                // shall find out with a connection of its own.
                let silent_since = self.state.started + Duration::from_millis(self.received_ms());
                if silent_since < begun {
                    self.state.closed.store(true, Ordering::Release);
                }
                Err(CallError::TimedOut(timeout))
            }
        }
    }

    /// Makes a call whose answer nobody waits for. It may get lost.
    pub(crate) fn call_and_forget(&self, call: Call) {
        let _lost_if_full = self.calls.try_send((call, None));
    }

    fn received_ms(&self) -> u64 {
        self.state.received_ms.load(Ordering::Relaxed)
    }
}

/// The task that owns the socket.
struct Driver {
    transport: Transport,
    queue: mpsc::Receiver<(Call, Option<Reply>)>,
    pending: HashMap<i32, Reply>,
    next_call_id: i32,
    state: Arc<State>,
}

impl Driver {
    async fn run(mut self) {
        let error = match self.drive().await {
            Ok(()) => CallError::Network("connection was closed".to_owned()),
            Err(error) => error,
        };
        self.state.closed.store(true, Ordering::Release);
        self.queue.close();
        let unsent = std::iter::from_fn(|| self.queue.try_recv().ok()).filter_map(|(_, r)| r);
        for reply in self.pending.drain().map(|(_, reply)| reply).chain(unsent) {
            let _nobody_waits = reply.send(Err(error.clone()));
        }
    }

    async fn drive(&mut self) -> Result<(), CallError> {
        let mut handles_left = true;
        // Whoever waits for an answer holds a handle.
        while handles_left || self.transport.outgoing_bytes() > 0 {
            let room = self.transport.outgoing_bytes() < OUTGOING_BYTES_SOFT;
            tokio::select! {
                next = self.queue.recv(), if handles_left && room => match next {
                    Some((call, reply)) => {
                        self.send(call, reply)?;
                        self.send_waiting()?;
                        self.transport.flush()?;
                    }
                    None => handles_left = false,
                },
                ready = self.transport.ready() => {
                    ready?;
                    self.transport.flush()?;
                    self.receive()?;
                }
            }
        }
        Ok(())
    }

    fn send_waiting(&mut self) -> Result<(), CallError> {
        while self.transport.outgoing_bytes() < OUTGOING_BYTES_SOFT {
            let Ok((call, reply)) = self.queue.try_recv() else { break };
            self.send(call, reply)?;
        }
        Ok(())
    }

    fn send(&mut self, call: Call, reply: Option<Reply>) -> Result<(), CallError> {
        if reply.as_ref().is_some_and(Reply::is_closed) {
            return Ok(());
        }
        if self.pending.len() >= PENDING_SWEEP {
            self.pending.retain(|_, reply| !reply.is_closed());
        }
        let call_id = self.next_call_id;
        self.next_call_id = call_id
            .checked_add(1)
            .ok_or_else(|| CallError::Network("call ids are used up".to_owned()))?;
        let header = RequestHeader {
            call_id,
            remote_method: Some(RemoteMethod {
                service_name: call.service.to_owned(),
                method_name: call.method.to_owned(),
            }),
            timeout_millis: Some(u32::try_from(call.timeout.as_millis()).unwrap_or(u32::MAX)),
            required_feature_flags: call.features,
            request_id: call.request_id,
        };
        self.transport.queue(frame::prefix(&header, call.body.len()))?;
        for segment in call.body.segments {
            self.transport.queue(segment)?;
        }
        self.pending.extend(reply.map(|reply| (call_id, reply)));
        Ok(())
    }

    fn receive(&mut self) -> Result<(), CallError> {
        for _ in 0..READS_MAX {
            if !self.transport.fill()? {
                break;
            }
            let now_ms = self.state.started.elapsed().as_millis() as u64;
            self.state.received_ms.store(now_ms, Ordering::Relaxed);
            while let Some(frame) = self.transport.take_frame()? {
                self.deliver(frame)?;
            }
        }
        Ok(())
    }

    fn deliver(&mut self, frame: Frame) -> Result<(), CallError> {
        let Some(reply) = self.pending.remove(&frame.header.call_id) else { return Ok(()) };
        let result = if frame.header.is_error == Some(true) {
            let status = ErrorStatus::decode(frame.body)
                .map_err(|e| CallError::Protocol(format!("bad error: {e}")))?;
            Err(CallError::Remote(status))
        } else {
            Ok(Answer { body: frame.body, sidecars: frame.sidecars })
        };
        let _nobody_waits = reply.send(result);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever has ended the task, the pool has to make another connection.
    #[test]
    fn a_connection_without_its_task_is_closed() {
        let (calls, queue) = mpsc::channel(1);
        let state = State {
            closed: AtomicBool::new(false),
            started: Instant::now(),
            received_ms: AtomicU64::new(0),
        };
        let connection = Connection { calls, state: Arc::new(state) };
        assert!(!connection.is_closed());
        drop(queue);
        assert!(connection.is_closed());
    }
}
