//! Gathers lines and stores them in batches, one after another.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket as BoundSocket};
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use ingest::point::Lines;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::{ListenerStats, ListenerTarget};
use crate::app::App;
use crate::error::HttpError;
use crate::write::Target;

/// Longest datagram there is, bytes.
pub(crate) const DATAGRAM_BYTES_MAX: usize = 64 << 10;
/// Datagrams that are taken together at most: others that the thread serves wait meanwhile.
const DATAGRAMS_MAX: usize = 64;
/// A batch is stored when it has so many bytes, whatever else is configured.
const BATCH_BYTES: usize = 1 << 20;
/// Pieces that wait for the batch before them.
const PIECES_MAX: usize = 16;
/// A batch for which there is no room is tried so often, and so long apart.
const TRIES_MAX: usize = 10;
const TRY_PAUSE: Duration = Duration::from_secs(1);
/// After a failure to receive so long passes before the next try.
const RECEIVE_PAUSE: Duration = Duration::from_millis(100);

/// Some whole lines.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    pub(crate) text: Vec<u8>,
    pub(crate) points: usize,
}

/// Where pieces are put.
#[derive(Clone, Debug)]
pub(crate) struct Sender(mpsc::Sender<Piece>);

impl Sender {
    /// Puts a piece, and waits while too many wait already.
    pub(crate) async fn put(&self, piece: Piece) {
        // Whoever stores them goes on as long as there is a sender.
        if !piece.text.is_empty() && self.0.send(piece).await.is_err() {
            tracing::error!("BUG: nobody stores what a listener takes");
        }
    }

    /// Puts what was gathered of points.
    pub(crate) async fn put_lines(&self, lines: Lines) {
        let points = lines.points();
        self.put(Piece { text: lines.into_text(), points }).await;
    }
}

/// The pieces, on their way into the store.
#[derive(Debug)]
pub(crate) struct Batches {
    receiver: mpsc::Receiver<Piece>,
    target: Arc<Target>,
    points_max: usize,
    age_max: Duration,
}

/// The way of a listener into its target.
pub(super) fn of_listener(target: &ListenerTarget) -> (Sender, Batches) {
    let into = Arc::new(Target::of_listener(&target.database, &target.policy));
    let (points_max, age_max) = (target.batch_points, target.batch_age);
    let (sender, receiver) = mpsc::channel(PIECES_MAX);
    (Sender(sender), Batches { receiver, target: into, points_max, age_max })
}

impl Batches {
    /// Stores what comes, as long as there is a sender.
    pub(crate) async fn store(mut self, app: Arc<App>, stats: Arc<ListenerStats>) {
        while let Some(batch) = self.gather().await {
            let points = batch.points as u64;
            let stored = self.store_one(&app, batch).await;
            if let Err(error) = &stored {
                let database = self.target.database();
                tracing::warn!(database, "rows that a listener took: {}", error.text);
            }
            match stored {
                Ok(()) => {
                    stats.batches.add(1);
                    stats.points_stored.add(points);
                }
                Err(_) => stats.batches_failed.add(1),
            }
        }
    }

    async fn gather(&mut self) -> Option<Piece> {
        let mut batch = self.receiver.recv().await?;
        let deadline = Instant::now() + self.age_max;
        while batch.points < self.points_max && batch.text.len() < BATCH_BYTES {
            match timeout_at(deadline, self.receiver.recv()).await {
                Ok(Some(piece)) => {
                    batch.text.extend_from_slice(&piece.text);
                    batch.points += piece.points;
                }
                Ok(None) | Err(_) => break,
            }
        }
        Some(batch)
    }

    /// Stores a batch; tries again while there is no room.
    async fn store_one(&self, app: &Arc<App>, batch: Piece) -> Result<(), HttpError> {
        let text = Arc::new(batch.text);
        for attempt in 1.. {
            let (worker, target, text) =
                (Arc::clone(app), Arc::clone(&self.target), Arc::clone(&text));
            let stored =
                tokio::task::spawn_blocking(move || worker.store_batch(&target, &text)).await;
            match stored {
                Ok(Err(error))
                    if error.status == StatusCode::SERVICE_UNAVAILABLE && attempt < TRIES_MAX =>
                {
                    tokio::time::sleep(TRY_PAUSE).await;
                }
                Ok(stored) => return stored,
                Err(failed) => {
                    tracing::error!("storing what a listener took failed by a bug: {failed}");
                    break;
                }
            }
        }
        Err(HttpError::internal("a batch was lost"))
    }
}

impl App {
    /// Stores lines in a database that is made if it is missing.
    pub(super) fn store_batch(&self, target: &Target, text: &[u8]) -> Result<(), HttpError> {
        if self.catalog.snapshot().database(target.database()).is_none() {
            let made = self.catalog.create_database(target.database(), None);
            made.map_err(|error| HttpError::internal(error.to_string()))?;
        }
        self.store_lines(target, text, self.clock.now_ns())
    }
}

/// Binds a socket for datagrams that has room for `buffer` bytes of them, or as much as the system gives; without a host on
/// every address of the machine.
pub(super) fn bind_udp(address: &str, buffer: usize) -> io::Result<BoundSocket> {
    let socket = match address.strip_prefix(':') {
        None => BoundSocket::bind(address)?,
        Some(port) => {
            let port = port.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
            let addresses = [
                SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
                SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
            ];
            BoundSocket::bind(&addresses[..])?
        }
    };
    set_socket_recv_buffer_size(&socket, buffer).map_err(|error| {
        io::Error::other(format!("no room for {buffer} bytes of datagrams (read-buffer): {error}"))
    })?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Calls `take` with the next datagram, and with those that wait behind it: one hand-over does for all. With none if nothing
/// can be received for a moment.
pub(crate) async fn receive(socket: &UdpSocket, buffer: &mut [u8], mut take: impl FnMut(&[u8])) {
    let mut received = match socket.recv(buffer).await {
        Ok(len) => len,
        Err(error) => {
            tracing::warn!("cannot receive by UDP: {error}");
            return tokio::time::sleep(RECEIVE_PAUSE).await;
        }
    };
    take(&buffer[..received]);
    for _ in 1..DATAGRAMS_MAX {
        if received >= DATAGRAM_BYTES_MAX {
            return;
        }
        // Mostly there is none; what else is wrong is met by whoever waits for the next.
        let Ok(len) = socket.try_recv(buffer) else { return };
        take(&buffer[..len]);
        received += len;
    }
}
