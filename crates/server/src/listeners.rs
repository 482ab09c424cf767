//! Further listeners: Graphite, OpenTSDB, collectd, and line protocol over UDP. All are off unless
//! configured; nobody is asked who they are.
//!
//! Sockets are here, formats in `ingest`. What arrives becomes line protocol and is stored in batches
//! (`batches`). Where nobody is answered, up to a batch may be lost when the server stops.
//!
//! Invariants
//! - Memory is bounded: a connection holds a piece, a listener some pieces and a batch.
//! - Who sends nothing for a long time is disconnected: there are only so many places.
//! - While a batch is being stored, TCP senders wait; what UDP senders send is lost when the
//!   socket's buffer is full.

mod batches;
mod collectd;
mod connections;
mod graphite;
mod opentsdb;
mod udp;

use std::convert::Infallible;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use ingest::collectd::CollectdParser;
use ingest::graphite::GraphiteParser;
use ingest::line_protocol::Precision;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::app::App;
use crate::config::ServerConfig;
use crate::listener;
use crate::metrics::Counter;

/// What all listeners have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTarget {
    /// Address to listen on: `host:port`, or `:port` for every address of the machine.
    pub bind: String,
    /// The database that rows go to; made if missing.
    pub database: String,
    /// Its retention policy; empty: the default one.
    pub policy: String,
    /// A batch is stored when it has so many points. At least 1.
    pub batch_points: usize,
    /// A batch is stored when it is so old. Not 0.
    pub batch_age: Duration,
    /// Bytes that the system is asked to keep of datagrams that wait; it may give less. At least 1.
    pub receive_buffer: usize,
}

impl ListenerTarget {
    /// The same with room for so many bytes of datagrams that wait; 0 is taken for nothing said.
    #[must_use]
    pub fn with_buffer(self, bytes: usize) -> Self {
        let receive_buffer = if bytes == 0 { self.receive_buffer } else { bytes };
        Self { receive_buffer, ..self }
    }
}

/// How packets travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Connections.
    Tcp,
    /// Datagrams.
    Udp,
}

impl Transport {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// A listener for Graphite's plain text.
#[derive(Clone, Debug)]
pub struct GraphiteConfig {
    /// Where from and where to.
    pub target: ListenerTarget,
    /// What is listened on.
    pub transport: Transport,
    /// How lines are read.
    pub parser: GraphiteParser,
}

/// A listener for OpenTSDB's lines and HTTP.
#[derive(Clone, Debug)]
pub struct OpenTsdbConfig {
    /// Where from and where to.
    pub target: ListenerTarget,
}

/// A listener for collectd's packets.
#[derive(Clone, Debug)]
pub struct CollectdConfig {
    /// Where from and where to.
    pub target: ListenerTarget,
    /// How packets are read.
    pub parser: CollectdParser,
}

/// A listener for line protocol over UDP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// Where from and where to.
    pub target: ListenerTarget,
    /// Unit of the timestamps.
    pub precision: Precision,
}

/// One listener.
#[derive(Clone, Debug)]
pub enum ListenerConfig {
    /// Line protocol over UDP.
    Udp(UdpConfig),
    /// Graphite.
    Graphite(GraphiteConfig),
    /// OpenTSDB.
    OpenTsdb(OpenTsdbConfig),
    /// collectd.
    Collectd(CollectdConfig),
}

impl ListenerConfig {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Udp(_) => "udp",
            Self::Graphite(_) => "graphite",
            Self::OpenTsdb(_) => "opentsdb",
            Self::Collectd(_) => "collectd",
        }
    }

    pub(crate) fn target(&self) -> &ListenerTarget {
        match self {
            Self::Udp(config) => &config.target,
            Self::Graphite(config) => &config.target,
            Self::OpenTsdb(config) => &config.target,
            Self::Collectd(config) => &config.target,
        }
    }

    fn transport(&self) -> Transport {
        match self {
            Self::Graphite(config) => config.transport,
            Self::OpenTsdb(_) => Transport::Tcp,
            Self::Udp(_) | Self::Collectd(_) => Transport::Udp,
        }
    }
}

/// What is counted of one listener.
#[derive(Debug, Default)]
pub(crate) struct ListenerStats {
    pub(crate) name: &'static str,
    pub(crate) bind: String,
    /// Shown where a protocol may have either.
    pub(crate) transport: Option<Transport>,
    pub(crate) bytes: Counter,
    pub(crate) points: Counter,
    pub(crate) points_stored: Counter,
    /// Lines, packets and points that are none.
    pub(crate) unparsable: Counter,
    pub(crate) batches: Counter,
    pub(crate) batches_failed: Counter,
    pub(crate) connections: Counter,
    pub(crate) connections_active: AtomicU64,
    /// Closed at once, because there were too many.
    pub(crate) connections_refused: Counter,
}

impl ListenerStats {
    /// One for each configured listener, in their order.
    pub(crate) fn of(config: &ServerConfig) -> Vec<Arc<Self>> {
        let stats = |listener: &ListenerConfig| {
            let either = matches!(listener, ListenerConfig::Graphite(_));
            Arc::new(Self {
                name: listener.name(),
                bind: listener.target().bind.clone(),
                transport: either.then(|| listener.transport()),
                ..Self::default()
            })
        };
        config.listeners.iter().map(stats).collect()
    }
}

/// A socket that a listener has.
#[derive(Debug)]
pub(crate) enum Bound {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

/// Binds the sockets of all listeners, in their order.
pub(crate) fn bind(config: &ServerConfig) -> io::Result<Vec<Bound>> {
    config.listeners.iter().map(bind_one).collect()
}

fn bind_one(config: &ListenerConfig) -> io::Result<Bound> {
    let (address, name) = (&config.target().bind, config.name());
    let buffer = config.target().receive_buffer;
    let bound = match config.transport() {
        Transport::Tcp => listener::tcp(address).map(Bound::Tcp),
        Transport::Udp => batches::bind_udp(address, buffer).map(Bound::Udp),
    };
    bound.map_err(|error| {
        io::Error::other(format!("cannot listen for {name} on {address}: {error}"))
    })
}

/// What a listener's requests in flight hold, so that they are waited for when the server stops.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    stopping: watch::Receiver<()>,
    _waited_for: mpsc::Sender<Infallible>,
}

/// Waits for requests in flight.
#[derive(Debug)]
pub(crate) struct Finishing(mpsc::Receiver<Infallible>);

impl InFlight {
    /// `stopping` is closed when the server stops.
    pub(crate) fn new(stopping: watch::Receiver<()>) -> (Self, Finishing) {
        let (sender, receiver) = mpsc::channel(1);
        (Self { stopping, _waited_for: sender }, Finishing(receiver))
    }

    /// Waits until the server stops.
    async fn stopping(&mut self) {
        // Nothing is ever sent.
        while self.stopping.changed().await.is_ok() {}
    }
}

impl Finishing {
    /// Waits until none is left.
    pub(crate) async fn finished(mut self) {
        while self.0.recv().await.is_some() {}
    }
}

/// Starts to serve all listeners.
pub(crate) fn spawn(
    app: &Arc<App>,
    bound: Vec<Bound>,
    in_flight: &InFlight,
    helpers: &mut JoinSet<()>,
) -> io::Result<()> {
    let configs = app.config.listeners.iter().zip(&app.listeners);
    for ((config, stats), bound) in configs.zip(bound) {
        let (app, stats) = (Arc::clone(app), Arc::clone(stats));
        match (config.clone(), bound) {
            (ListenerConfig::Graphite(config), Bound::Tcp(listener)) => {
                let listener = tokio::net::TcpListener::from_std(listener)?;
                helpers.spawn(graphite::serve_tcp(app, stats, listener, config));
            }
            (ListenerConfig::Graphite(config), Bound::Udp(socket)) => {
                let socket = tokio::net::UdpSocket::from_std(socket)?;
                helpers.spawn(graphite::serve_udp(app, stats, socket, config));
            }
            (ListenerConfig::OpenTsdb(config), Bound::Tcp(listener)) => {
                let listener = tokio::net::TcpListener::from_std(listener)?;
                helpers.spawn(opentsdb::serve(
                    app,
                    stats,
                    listener,
                    config.target,
                    in_flight.clone(),
                ));
            }
            (ListenerConfig::Collectd(config), Bound::Udp(socket)) => {
                let socket = tokio::net::UdpSocket::from_std(socket)?;
                helpers.spawn(collectd::serve(app, stats, socket, config));
            }
            (ListenerConfig::Udp(config), Bound::Udp(socket)) => {
                let socket = tokio::net::UdpSocket::from_std(socket)?;
                helpers.spawn(udp::serve(app, stats, socket, config));
            }
            (ListenerConfig::OpenTsdb(_), Bound::Udp(_))
            | (ListenerConfig::Collectd(_) | ListenerConfig::Udp(_), Bound::Tcp(_)) => {
                panic!("BUG: a socket of another kind than the listener's")
            }
        }
    }
    Ok(())
}
