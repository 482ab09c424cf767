//! The listener: accepting, serving, and stopping in good order.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use catalog::Catalog;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use store::Store;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::ServerConfig;
use crate::app::{App, Clock};
use crate::connection::{Activity, Connection};
use crate::service;
use crate::{continuous, retention};

/// Longest head of a request, and most bytes read ahead of what is asked for.
const HEAD_BYTES_MAX: usize = 128 << 10;
/// Most headers of a request.
const HEADERS_MAX: usize = 128;

/// After a failure to accept (too many open files) so long passes before the next try.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Cancelled queries have so long to tell their clients.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    app: Arc<App>,
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
    /// The address cannot be resolved or is in use.
    pub fn bind(
        config: ServerConfig,
        store: Arc<dyn Store>,
        catalog: Arc<Catalog>,
        now_ns: Arc<dyn Fn() -> i64 + Send + Sync>,
    ) -> io::Result<Self> {
        let listener = listen(&config.http_bind)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let app = Arc::new(App::new(config, store, catalog, Clock(now_ns)));
        Ok(Self { listener, address, app })
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
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let graceful = GracefulShutdown::new();
        let connections_max = match self.app.config.max_connections {
            0 => Semaphore::MAX_PERMITS,
            max => max,
        };
        let places = Arc::new(Semaphore::new(connections_max));
        let retention = tokio::spawn(retention::enforce(Arc::clone(&self.app)));
        let continuous = tokio::spawn(continuous::run(Arc::clone(&self.app)));
        tokio::pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut shutdown => break,
            };
            match accepted {
                Ok((stream, peer)) => match Arc::clone(&places).try_acquire_owned() {
                    Ok(place) => serve_connection(&self.app, &graceful, stream, peer, place),
                    // Dropping the stream closes it.
                    Err(_) => self.app.metrics.connections_refused.add(1),
                },
                Err(error) => {
                    tracing::warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(listener);
        retention.abort();
        continuous.abort();
        Ok(finish(&self.app, graceful).await)
    }
}

/// Listens on `host:port`; without a host on every address of the machine.
fn listen(address: &str) -> io::Result<TcpListener> {
    let Some(port) = address.strip_prefix(':') else { return TcpListener::bind(address) };
    let port = port.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
    // An IPv6 socket takes both kinds of connections; some machines have no IPv6.
    let addresses = [
        SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
        SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
    ];
    TcpListener::bind(&addresses[..])
}

/// Waits for requests in flight, and cuts off those that take too long.
async fn finish(app: &App, graceful: GracefulShutdown) -> Stopped {
    let finished = graceful.shutdown();
    tokio::pin!(finished);
    if tokio::time::timeout(app.config.shutdown_grace, &mut finished).await.is_ok() {
        return Stopped::Gracefully;
    }
    app.queries.cancel_all();
    drop(tokio::time::timeout(LAST_WORDS, finished).await);
    Stopped::InHaste
}

fn serve_connection(
    app: &Arc<App>,
    graceful: &GracefulShutdown,
    stream: TcpStream,
    peer: SocketAddr,
    place: OwnedSemaphorePermit,
) {
    // Without this, small answers wait for the acknowledgement of earlier ones.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, "cannot set TCP_NODELAY: {error}");
    }
    let activity = Activity::default();
    let io = TokioIo::new(Connection::new(stream, activity.clone()));
    let service = {
        let (app, activity) = (Arc::clone(app), activity.clone());
        service_fn(move |request| service::answer(Arc::clone(&app), activity.clone(), request))
    };
    let connection = http1::Builder::new()
        .title_case_headers(true)
        .header_read_timeout(None)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(io, service);
    let served = graceful.watch(connection);
    let app = Arc::clone(app);
    tokio::spawn(async move {
        let _place = place;
        app.metrics.connections.add(1);
        tokio::select! {
            outcome = served => if let Err(error) = outcome {
                tracing::debug!(%peer, "a connection failed: {error}");
            },
            why = activity.watch(&app.config.patience) => {
                tracing::debug!(%peer, "closed a connection: {why}");
            }
        }
        app.metrics.connections.sub(1);
    });
}
