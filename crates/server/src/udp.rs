//! Line protocol over UDP. Nobody is answered, and nobody is asked who they are.
//!
//! Datagrams are gathered and stored together, one batch after another: while one is being stored
//! the next waits in the socket's buffer, and what does not fit there is lost, as UDP has it. So
//! memory stays bounded.
//!
//! Invariant: a datagram with a line that cannot be read is dropped as a whole.

use std::io;
use std::net::UdpSocket as BoundSocket;
use std::sync::Arc;
use std::time::Duration;

use ingest::line_protocol::{LineParser, ParseOptions, Precision};
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout_at};

use crate::app::App;
use crate::error::HttpError;
use crate::write::Target;

/// Longest datagram there is, bytes.
const DATAGRAM_BYTES_MAX: usize = 64 << 10;
/// A batch is stored when it has so many bytes, or is so old.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_AGE: Duration = Duration::from_secs(1);
/// After a failure to receive so long passes before the next try.
const RECEIVE_PAUSE: Duration = Duration::from_millis(100);

/// A listener for line protocol over UDP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// Address to listen on: `host:port`.
    pub bind: String,
    /// The database that rows go to; made if missing.
    pub database: String,
    /// Its retention policy; empty: the default one.
    pub policy: String,
    /// Unit of the timestamps: `n`, `u`, `ms`, `s`, `m` or `h`.
    pub precision: Precision,
}

/// Some datagrams, each with the line end that it may lack.
#[derive(Debug, Default)]
struct Batch {
    text: Vec<u8>,
    /// Where each datagram ends in `text`.
    ends: Vec<usize>,
}

impl Batch {
    fn add(&mut self, datagram: &[u8]) {
        self.text.extend_from_slice(datagram);
        self.text.push(b'\n');
        self.ends.push(self.text.len());
    }

    fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.text[start..*end])
    }

    /// The text of the datagrams whose lines can all be read, and the number of the others.
    fn readable(&self, parser: &mut LineParser, options: &ParseOptions) -> (Vec<u8>, u64) {
        let mut text = Vec::with_capacity(self.text.len());
        let mut dropped = 0;
        for datagram in self.datagrams() {
            let parsed = parser.parse(datagram, options);
            if parsed.problems.is_empty() {
                text.extend_from_slice(datagram);
            } else {
                dropped += 1;
            }
            parser.recycle(parsed.batch);
        }
        (text, dropped)
    }
}

/// Binds the socket.
pub(crate) fn bind(config: &UdpConfig) -> io::Result<BoundSocket> {
    let socket = BoundSocket::bind(&config.bind).map_err(|error| {
        io::Error::other(format!("cannot listen on UDP {}: {error}", config.bind))
    })?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Receives and stores, for ever.
pub(crate) async fn serve(app: Arc<App>, socket: UdpSocket, config: Arc<UdpConfig>) {
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    loop {
        let batch = gather(&app, &socket, &mut buffer).await;
        let (worker, config) = (Arc::clone(&app), Arc::clone(&config));
        let stored = tokio::task::spawn_blocking(move || worker.store_datagrams(&batch, &config));
        match stored.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("rows that came by UDP: {}", error.text),
            Err(failed) => tracing::error!("storing what came by UDP failed by a bug: {failed}"),
        }
    }
}

/// Waits for a datagram, and takes what follows soon.
async fn gather(app: &App, socket: &UdpSocket, buffer: &mut [u8]) -> Batch {
    let mut batch = Batch::default();
    let mut deadline = None;
    while batch.text.len() < BATCH_BYTES {
        let received = match deadline {
            None => socket.recv(buffer).await,
            Some(deadline) => match timeout_at(deadline, socket.recv(buffer)).await {
                Ok(received) => received,
                Err(_) => break,
            },
        };
        match received {
            Ok(len) => {
                app.metrics.udp_datagrams.add(1);
                app.metrics.bytes_in.add(len as u64);
                batch.add(&buffer[..len]);
                deadline.get_or_insert_with(|| Instant::now() + BATCH_AGE);
            }
            Err(error) => {
                tracing::warn!("cannot receive by UDP: {error}");
                tokio::time::sleep(RECEIVE_PAUSE).await;
            }
        }
    }
    batch
}

impl App {
    fn store_datagrams(&self, batch: &Batch, config: &UdpConfig) -> Result<(), HttpError> {
        let (database, policy) = (config.database.as_str(), config.policy.as_str());
        if self.catalog.snapshot().database(database).is_none() {
            let made = self.catalog.create_database(database, None);
            made.map_err(|error| HttpError::internal(error.to_string()))?;
        }
        let now_ns = self.clock.now_ns();
        let default_time_ns = now_ns - now_ns.rem_euclid(config.precision.unit_ns());
        let options = ParseOptions { precision: config.precision, default_time_ns };
        let mut parser = self.parsers.take();
        let (text, dropped) = batch.readable(&mut parser, &options);
        self.metrics.udp_datagrams_dropped.add(dropped);
        let parsed = parser.parse(&text, &options);
        let target = Target::of_listener(database, policy);
        let stored = self.store_parsed(&target, &parsed, now_ns);
        parser.recycle(parsed.batch);
        self.parsers.give_back(parser, text.len());
        stored
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bad_line_drops_its_datagram() {
        let options = ParseOptions { precision: Precision::Nanosecond, default_time_ns: 7 };
        let mut batch = Batch::default();
        for datagram in ["m v=1", "m v=2\nbad\nm v=3\n", "", "m s=\"open", "m v=4 5\nm v=6"] {
            batch.add(datagram.as_bytes());
        }
        let (text, dropped) = batch.readable(&mut LineParser::new(), &options);
        assert_eq!(String::from_utf8(text).unwrap(), "m v=1\n\nm v=4 5\nm v=6\n");
        assert_eq!(dropped, 2);
    }
}
