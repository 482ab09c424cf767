//! One connection as a byte stream whose client is not waited for for ever.
//!
//! The stream only notes what goes on; a watchdog beside it looks at the notes now and then. So no
//! timer is touched while requests flow, and deadlines are exact to a quarter of the shortest.
//!
//! Not here: the pace of a request's body, see `body`.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep};

use crate::Patience;

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It wants to know something.
    Asks,
    /// It brings rows.
    Writes,
}

impl Kind {
    /// How many kinds there are; as numbers they count from 0.
    pub(crate) const COUNT: usize = 2;
}

/// What goes on on a connection; shared by its stream, its requests and its watchdog.
#[derive(Clone, Debug, Default)]
pub(crate) struct Activity(Arc<Notes>);

#[derive(Debug, Default)]
struct Notes {
    /// Who is at the other end; nobody that has an address on a Unix socket.
    peer: Option<IpAddr>,
    /// Number of requests that are being answered; more than one on HTTP/2 only.
    active: AtomicUsize,
    /// The client speaks HTTP/2.
    is_http2: AtomicBool,
    /// Number of answers of which the client could have more but is not ready for it.
    untaken: AtomicUsize,
    /// Number of requests that have begun.
    requests: AtomicU64,
    /// The last of them brought rows.
    has_written: AtomicBool,
    /// Some of the next request's head has arrived.
    head_started: AtomicBool,
    /// The client does not take what there is for it.
    write_blocked: AtomicBool,
    /// Number of writes that got something done.
    writes: AtomicU64,
}

/// What a connection waits for its client to do, with a number that changes when it has done it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// Nothing, or something that others look after.
    No,
    /// Send the rest of a head, or anything at all on a new connection.
    Head(u64),
    /// Send another request.
    Next(u64),
    /// Take some of the answer.
    Write(u64),
}

impl Activity {
    /// What goes on with a client at `peer`.
    pub(crate) fn new(peer: Option<IpAddr>) -> Self {
        Self(Arc::new(Notes { peer, ..Notes::default() }))
    }

    /// Who is at the other end.
    pub(crate) fn peer(&self) -> Option<IpAddr> {
        self.0.peer
    }

    /// There is more of an answer than was asked for.
    pub(crate) fn begin_untaken(&self) {
        self.0.untaken.fetch_add(1, Ordering::Relaxed);
    }

    /// It is asked for, or is not wanted any more.
    pub(crate) fn end_untaken(&self) {
        self.0.untaken.fetch_sub(1, Ordering::Relaxed);
        self.0.writes.fetch_add(1, Ordering::Relaxed);
    }

    /// A request's head has arrived.
    pub(crate) fn begin_request(&self, kind: Kind) {
        self.0.has_written.store(kind == Kind::Writes, Ordering::Relaxed);
        self.0.requests.fetch_add(1, Ordering::Relaxed);
        self.0.head_started.store(false, Ordering::Relaxed);
        self.0.active.fetch_add(1, Ordering::Relaxed);
    }

    /// The request is answered.
    pub(crate) fn end_request(&self) {
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }

    /// Number of requests that have begun.
    pub(crate) fn requests(&self) -> u64 {
        self.0.requests.load(Ordering::Relaxed)
    }

    /// What the client did last.
    pub(crate) fn kind(&self) -> Kind {
        if self.0.has_written.load(Ordering::Relaxed) { Kind::Writes } else { Kind::Asks }
    }

    /// Whether another thread could go on: no request is being answered, and none will be by a task of its own.
    pub(crate) fn may_move(&self) -> bool {
        self.0.active.load(Ordering::Relaxed) == 0 && !self.0.is_http2.load(Ordering::Relaxed)
    }

    /// Whether nothing can happen until the client sends something: no request is being answered, and no answer is
    /// on its way.
    pub(crate) fn waits_for_request(&self) -> bool {
        self.may_move() && !self.0.write_blocked.load(Ordering::Relaxed)
    }

    fn waiting(&self) -> Waiting {
        let notes = &self.0;
        let requests = notes.requests.load(Ordering::Relaxed);
        let is_http2 = notes.is_http2.load(Ordering::Relaxed);
        // On HTTP/2 a client that takes no more of an answer is not seen by the socket.
        let is_untaken = is_http2 && notes.untaken.load(Ordering::Relaxed) > 0;
        if notes.write_blocked.load(Ordering::Relaxed) || is_untaken {
            Waiting::Write(notes.writes.load(Ordering::Relaxed))
        } else if notes.active.load(Ordering::Relaxed) > 0 {
            Waiting::No
        } else if requests == 0 || (!is_http2 && notes.head_started.load(Ordering::Relaxed)) {
            Waiting::Head(requests)
        } else {
            Waiting::Next(requests)
        }
    }

    /// Ends when the client has taken too long, and says with what.
    pub(crate) async fn watch(&self, patience: &Patience) -> &'static str {
        let tick = patience.head.min(patience.idle).min(patience.write) / 4;
        let mut before = (self.waiting(), Instant::now());
        loop {
            sleep(tick.max(Duration::from_millis(1))).await;
            let waiting = self.waiting();
            if waiting != before.0 {
                before = (waiting, Instant::now());
            }
            let (limit, what) = match waiting {
                Waiting::No => continue,
                Waiting::Head(_) => (patience.head, "the head of a request takes too long"),
                Waiting::Next(_) => (patience.idle, "no further request for a long time"),
                Waiting::Write(_) => (patience.write, "the client takes no more of its answer"),
            };
            if before.1.elapsed() >= limit {
                return what;
            }
        }
    }
}

/// A stream that notes what goes on.
#[derive(Debug)]
pub(crate) struct Connection<S> {
    stream: S,
    activity: Activity,
    /// Bytes of [`PREFACE`] seen; `None`: it is known what the client speaks.
    preface_seen: Option<usize>,
}

/// What a client that speaks HTTP/2 starts with; no request of HTTP/1 does.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";

impl<S> Connection<S> {
    pub(crate) fn new(stream: S, activity: Activity) -> Self {
        Self { stream, activity, preface_seen: Some(0) }
    }

    /// Looks for the start of HTTP/2 in the first bytes of a connection.
    fn note_first_bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let Some(seen) = self.preface_seen else { return };
            self.preface_seen = (PREFACE.get(seen) == Some(byte)).then_some(seen + 1);
            if seen + 1 == PREFACE.len() && self.preface_seen.is_some() {
                self.preface_seen = None;
                self.activity.0.is_http2.store(true, Ordering::Relaxed);
            }
        }
    }

    fn note_write<T>(&self, outcome: &Poll<io::Result<T>>) {
        let notes = &self.activity.0;
        notes.write_blocked.store(outcome.is_pending(), Ordering::Relaxed);
        if outcome.is_ready() {
            notes.writes.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let outcome = Pin::new(&mut this.stream).poll_read(cx, buf);
        if this.preface_seen.is_some() {
            this.note_first_bytes(&buf.filled()[before..]);
        }
        let notes = &this.activity.0;
        if outcome.is_ready() && notes.active.load(Ordering::Relaxed) == 0 {
            notes.head_started.store(true, Ordering::Relaxed);
        }
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.note_write(&outcome);
        outcome
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write_vectored(cx, slices);
        this.note_write(&outcome);
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_flush(cx);
        this.activity.0.write_blocked.store(outcome.is_pending(), Ordering::Relaxed);
        outcome
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    const PATIENCE: Patience = Patience {
        head: Duration::from_secs(8),
        idle: Duration::from_secs(80),
        body: Duration::from_secs(8),
        write: Duration::from_secs(16),
        lines: Duration::from_secs(1),
    };

    /// Runs with a clock that moves on by itself whenever nothing else can.
    fn with_paused_clock(test: impl Future<Output = ()>) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().start_paused(true).build().unwrap().block_on(test);
    }

    fn connected() -> (DuplexStream, Connection<DuplexStream>, Activity) {
        let activity = Activity::default();
        let (client, server) = duplex(64);
        (client, Connection::new(server, activity.clone()), activity)
    }

    /// Seconds until the watchdog barks, to its precision.
    async fn seconds_until_bark(activity: &Activity) -> u64 {
        let start = Instant::now();
        activity.watch(&PATIENCE).await;
        start.elapsed().as_secs()
    }

    #[test]
    fn silent_and_slow_clients() {
        with_paused_clock(async {
            let (_client, _server, activity) = connected();
            assert_eq!(seconds_until_bark(&activity).await, 8, "a new connection says nothing");

            let (mut client, mut server, activity) = connected();
            client.write_all(b"GET /").await.unwrap();
            server.read_exact(&mut [0; 5]).await.unwrap();
            assert_eq!(seconds_until_bark(&activity).await, 8, "half a head");
        });
    }

    #[test]
    fn a_request_may_take_long_and_the_next_one_too() {
        with_paused_clock(async {
            let (mut client, mut server, activity) = connected();
            client.write_all(b"GET /").await.unwrap();
            server.read_exact(&mut [0; 5]).await.unwrap();
            activity.begin_request(Kind::Asks);
            let hour = Duration::from_secs(3600);
            let bark = tokio::time::timeout(hour, activity.watch(&PATIENCE)).await;
            assert!(bark.is_err(), "no deadline while a request is being answered");
            activity.end_request();
            assert_eq!(seconds_until_bark(&activity).await, 80);
            client.write_all(b"G").await.unwrap();
            server.read_exact(&mut [0; 1]).await.unwrap();
            assert_eq!(seconds_until_bark(&activity).await, 8, "the next head has begun");
        });
    }

    #[test]
    fn a_client_that_does_not_read() {
        with_paused_clock(async {
            let (_client, mut server, activity) = connected();
            activity.begin_request(Kind::Asks);
            let blocked = server.write_all(&[0; 100]);
            tokio::select! {
                _ = blocked => panic!("more written than fits"),
                seconds = seconds_until_bark(&activity) => assert!((16..=18).contains(&seconds)),
            }
        });
    }
}
