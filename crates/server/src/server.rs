//! Accepting, serving, and stopping in good order.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use catalog::Catalog;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use store::Store;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use crate::ServerConfig;
use crate::app::{App, Clock};
use crate::connection::{Activity, Connection};
use crate::continuous;
use crate::listener::{self, UnixSocket};
use crate::listeners::{self, Bound, Finishing, InFlight};
use crate::monitor;
use crate::retention;
use crate::roaming::Roaming;
use crate::service;
use crate::subscriber::Outbox;
use crate::threads::{Served, Threads};
use crate::tls::Tls;

/// Most bytes read at once, ahead of what is asked for, and so the longest head of a request.
pub(crate) const READ_BYTES_MAX: usize = 128 << 10;
/// Most headers of a request.
const HEADERS_MAX: usize = 128;

/// Most requests at a time on a connection of HTTP/2.
const STREAMS_MAX: u32 = 100;
/// Most bytes that a client of HTTP/2 may send before somebody reads them, a connection.
const WINDOW_BYTES: u32 = 256 << 10;
/// Most bytes of an answer that wait for the client, a request of HTTP/2.
const SEND_BYTES_MAX: usize = 64 << 10;

/// After a failure to accept (too many open files) so long passes before the next try.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Cancelled queries have so long to tell their clients.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    unix: Option<UnixSocket>,
    tls: Option<Arc<Tls>>,
    further: Vec<Bound>,
    app: Arc<App>,
    outbox: Outbox,
}

/// How a server stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Every request in flight was answered.
    Gracefully,
    /// Some took longer than [`ServerConfig::shutdown_grace`] and were cut off.
    InHaste,
}

impl Server {
    /// Starts to listen; connections wait until [`Server::serve`]. `now_ns` is the wall clock,
    /// nanoseconds since 1970-01-01 UTC.
    ///
    /// # Errors
    /// The address cannot be resolved or is in use; certificate or key cannot be used.
    pub fn bind(
        config: ServerConfig,
        store: Arc<dyn Store>,
        catalog: Arc<Catalog>,
        now_ns: Arc<dyn Fn() -> i64 + Send + Sync>,
    ) -> io::Result<Self> {
        let tls = config.tls.clone().map(Tls::load).transpose()?.map(Arc::new);
        let listener = listener::tcp(&config.http_bind)?;
        let address = listener.local_addr()?;
        let unix = config.unix_socket.as_deref().map(UnixSocket::listen).transpose()?;
        let further = listeners::bind(&config)?;
        let (app, outbox) = App::new(config, store, catalog, Clock(now_ns));
        let app = Arc::new(app);
        Ok(Self { listener, address, unix, tls, further, app, outbox })
    }

    /// The address that it listens on.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` is ready; then accepts no more and finishes what is in flight.
    /// Within a Tokio runtime with time and IO.
    ///
    /// # Errors
    /// The listener cannot be used with the runtime.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> io::Result<Stopped> {
        let Self { listener, unix, tls, further, app, outbox, .. } = self;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let local = unix.as_ref().map(UnixSocket::to_async).transpose()?;
        let graceful = GracefulShutdown::new();
        let (stop, stopping) = watch::channel(());
        let (in_flight, finishing) = InFlight::new(stopping.clone());
        // Dropped at the end, with which all connections that are left end.
        let (_open, open) = watch::channel(());
        let doorman = Doorman::new(&app, tls.clone(), stopping, open);
        let mut helpers = JoinSet::new();
        helpers.spawn(retention::enforce(Arc::clone(&app)));
        helpers.spawn(continuous::run(Arc::clone(&app)));
        helpers.spawn(monitor::run(Arc::clone(&app)));
        helpers.spawn(outbox.deliver(Arc::clone(&app)));
        if let Some(tls) = tls {
            helpers.spawn(tls.follow());
        }
        listeners::spawn(&app, further, &in_flight, &mut helpers)?;
        tokio::pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => {
                    accepted.map(|(stream, peer)| doorman.tcp(&graceful, stream, peer))
                }
                accepted = accept_local(local.as_ref()) => {
                    accepted.map(|stream| doorman.unix(&graceful, stream))
                }
                () = &mut shutdown => break,
            };
            if let Err(error) = accepted {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
        drop((listener, local, unix, stop, in_flight));
        helpers.abort_all();
        Ok(finish(&app, graceful, finishing).await)
    }
}

/// The next connection to the Unix socket; never one if there is none.
async fn accept_local(listener: Option<&UnixListener>) -> io::Result<UnixStream> {
    match listener {
        Some(listener) => listener.accept().await.map(|(stream, _)| stream),
        None => std::future::pending().await,
    }
}

/// Waits for requests in flight, and cuts off those that take too long.
async fn finish(app: &App, graceful: GracefulShutdown, finishing: Finishing) -> Stopped {
    let finished = async { tokio::join!(graceful.shutdown(), finishing.finished()) };
    tokio::pin!(finished);
    if tokio::time::timeout(app.config.shutdown_grace, &mut finished).await.is_ok() {
        return Stopped::Gracefully;
    }
    app.queries.cancel_all();
    drop(tokio::time::timeout(LAST_WORDS, finished).await);
    Stopped::InHaste
}

/// Lets connections in, as many as there are places, and sees to them.
#[derive(Debug)]
struct Doorman {
    app: Arc<App>,
    threads: Arc<Threads>,
    tls: Option<Arc<Tls>>,
    places: Arc<Semaphore>,
    /// Closed when the server stops.
    stopping: watch::Receiver<()>,
}

impl Doorman {
    fn new(
        app: &Arc<App>,
        tls: Option<Arc<Tls>>,
        stopping: watch::Receiver<()>,
        open: watch::Receiver<()>,
    ) -> Self {
        let connections_max = match app.config.max_connections {
            0 => Semaphore::MAX_PERMITS,
            max => max,
        };
        let places = Arc::new(Semaphore::new(connections_max));
        let threads = Arc::new(Threads::new(app, open));
        Self { app: Arc::clone(app), threads, tls, places, stopping }
    }

    /// A place for one more connection. Without one it is dropped, and so closed.
    fn place(&self) -> Option<OwnedSemaphorePermit> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok();
        if place.is_none() {
            self.app.metrics.connections_refused.add(1);
        }
        place
    }

    fn tcp(&self, graceful: &GracefulShutdown, stream: TcpStream, peer: SocketAddr) {
        let Some(place) = self.place() else { return };
        // Without this, small answers wait for the acknowledgement of earlier ones.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%peer, "cannot set TCP_NODELAY: {error}");
        }
        let (app, watcher) = (Arc::clone(&self.app), graceful.watcher());
        let (threads, stream) = (Arc::clone(&self.threads), Roaming::new(stream));
        let Some(tls) = &self.tls else {
            tokio::spawn(threads.serve(connection(app, watcher, stream, Some(peer), place)));
            return;
        };
        let (acceptor, mut stopping) = (tls.acceptor(), self.stopping.clone());
        tokio::spawn(async move {
            let patience = app.config.patience.head;
            let handshake = tokio::time::timeout(patience, acceptor.accept(stream));
            let outcome = tokio::select! {
                outcome = handshake => outcome,
                _ = stopping.changed() => return,
            };
            match outcome {
                Ok(Ok(stream)) => {
                    threads.serve(connection(app, watcher, stream, Some(peer), place)).await;
                }
                Ok(Err(error)) => tracing::debug!(%peer, "no TLS connection: {error}"),
                Err(_) => tracing::debug!(%peer, "a TLS handshake takes too long"),
            }
        });
    }

    fn unix(&self, graceful: &GracefulShutdown, stream: UnixStream) {
        let Some(place) = self.place() else { return };
        let (app, watcher) = (Arc::clone(&self.app), graceful.watcher());
        let connection = connection(app, watcher, Roaming::new(stream), None, place);
        tokio::spawn(Arc::clone(&self.threads).serve(connection));
    }
}

/// A connection that speaks HTTP/1.1, or HTTP/2 if the client starts with that.
fn connection<S>(
    app: Arc<App>,
    watcher: Watcher,
    stream: S,
    peer: Option<SocketAddr>,
    place: OwnedSemaphorePermit,
) -> Served
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Activity::new(peer.map(|peer| peer.ip()));
    let io = TokioIo::new(Connection::new(stream, activity.clone()));
    let service = {
        let (app, activity) = (Arc::clone(&app), activity.clone());
        service_fn(move |request| service::answer(Arc::clone(&app), activity.clone(), request))
    };
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .title_case_headers(true)
        .header_read_timeout(None)
        .max_buf_size(READ_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(READ_BYTES_MAX as u32)
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_send_buf_size(SEND_BYTES_MAX);
    let served = watcher.watch(builder.serve_connection(io, service).into_owned());
    let open = Open::new(app, place);
    Served::new(activity, async move {
        let _open = open;
        if let Err(error) = served.await {
            tracing::debug!(?peer, "a connection failed: {error}");
        }
    })
}

/// Counts a connection as open as long as it lives.
struct Open {
    app: Arc<App>,
    _place: OwnedSemaphorePermit,
}

impl Open {
    fn new(app: Arc<App>, place: OwnedSemaphorePermit) -> Self {
        app.metrics.connections.add(1);
        Self { app, _place: place }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.app.metrics.connections.sub(1);
    }
}
