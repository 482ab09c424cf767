//! OpenTSDB's lines and its HTTP, on one port: the first line of a connection decides. Requests are
//! finished when the server stops, as those of its own HTTP.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use ingest::opentsdb::{Command, parse_json, parse_line};
use ingest::point::Lines;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::batches::{self, Sender};
use super::connections::{self, LineReader, texts};
use super::{InFlight, ListenerStats, ListenerTarget};
use crate::app::App;
use crate::blocking::storing;
use crate::body::{self, BodyLimits, Packing};
use crate::error::HttpError;
use crate::panic::CatchPanic;
use crate::response::{self, Response};
use crate::write::Target;

/// Lines, and rows and values that become of them, take up to about so many times the bytes of the
/// JSON that they come from; so do the tags of one point.
const MEMORY_FACTOR: usize = 8;
/// What a client is told that asks who is there.
const VERSION: &[u8] = b"InfluxDB TSDB proxy";

/// What the connections of a listener share.
#[derive(Clone, Debug)]
struct Shared {
    app: Arc<App>,
    stats: Arc<ListenerStats>,
    target: Arc<ListenerTarget>,
    sender: Sender,
    in_flight: InFlight,
}

/// Serves connections, for ever.
pub(super) async fn serve(
    app: Arc<App>,
    stats: Arc<ListenerStats>,
    listener: TcpListener,
    target: ListenerTarget,
    in_flight: InFlight,
) {
    let (sender, batches) = batches::of_listener(&target);
    let (app_too, stats_too) = (Arc::clone(&app), Arc::clone(&stats));
    let shared = Shared { app, stats, target: Arc::new(target), sender, in_flight };
    let serve = |stream: TcpStream| serve_one(shared.clone(), stream);
    let accepting = connections::accept(listener, Arc::clone(&stats_too), serve);
    tokio::join!(accepting, batches.store(app_too, stats_too));
}

async fn serve_one(shared: Shared, stream: TcpStream) -> io::Result<()> {
    let patience = shared.app.config.patience;
    let mut reader = LineReader::new(stream, patience.lines);
    let Some(first) = reader.peek_line().await? else { return Ok(()) };
    if memchr::memmem::find(first, b" HTTP/1.").is_none() {
        return serve_lines(shared, reader).await;
    }
    let (read, stream) = reader.into_parts();
    // Goes on when the listener is stopped, which drops this: requests are finished.
    let serving = tokio::spawn(serve_http(shared, Prefixed { read, stream }));
    serving.await.map_err(io::Error::other)?
}

async fn serve_http(shared: Shared, stream: Prefixed) -> io::Result<()> {
    let patience = shared.app.config.patience.head;
    let mut in_flight = shared.in_flight.clone();
    let service = service_fn(move |request| answer(shared.clone(), request));
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let served = tokio::select! {
        served = &mut connection => served,
        () = in_flight.stopping() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    served.map_err(io::Error::other)
}

async fn serve_lines(shared: Shared, mut reader: LineReader<TcpStream>) -> io::Result<()> {
    while let Some(text) = reader.lines().await? {
        let (texts, mut bad) = texts(&text);
        let (mut lines, mut asked) = (Lines::default(), 0);
        for line in &texts {
            match parse_line(line, &mut lines) {
                Ok(Command::Put | Command::Nothing) => {}
                Ok(Command::Version) => asked += 1,
                Err(error) => {
                    tracing::debug!("a line of OpenTSDB was dropped: {error}");
                    bad += 1;
                }
            }
        }
        shared.count(text.len(), lines.points(), bad);
        shared.sender.put_lines(lines).await;
        let answers = VERSION.repeat(asked);
        let written = reader.stream().write_all(&answers);
        timeout(shared.app.config.patience.write, written).await??;
    }
    Ok(())
}

impl Shared {
    fn count(&self, bytes: usize, points: usize, bad: u64) {
        self.stats.bytes.add(bytes as u64);
        self.stats.points.add(points as u64);
        self.stats.unparsable.add(bad);
    }

    /// Stores the points of a body; the answer says that they are.
    fn store(&self, body: &[u8]) -> Result<(), HttpError> {
        let mut lines = Lines::default();
        parse_json(body, &mut lines).map_err(|error| {
            self.stats.unparsable.add(1);
            HttpError::bad_request(error.to_string())
        })?;
        let points = lines.points() as u64;
        self.stats.points.add(points);
        if points == 0 {
            return Ok(());
        }
        let target = Target::of_listener(&self.target.database, &self.target.policy);
        let stored = self.app.store_batch(&target, &lines.into_text());
        match &stored {
            Ok(()) => {
                self.stats.batches.add(1);
                self.stats.points_stored.add(points);
            }
            Err(_) => self.stats.batches_failed.add(1),
        }
        stored.map_err(|error| HttpError {
            text: format!("write series error: {}", error.text),
            ..error
        })
    }
}

async fn answer(shared: Shared, request: Request<Incoming>) -> Result<Response, Infallible> {
    let answered = CatchPanic::new(dispatch(&shared, request)).await;
    let answered = answered.unwrap_or_else(|panic| {
        shared.app.metrics.panics.add(1);
        tracing::error!("a request failed by a bug: {panic}");
        Err(HttpError::internal("internal error"))
    });
    Ok(answered.unwrap_or_else(|error| response::refusal_as_text(&error)))
}

async fn dispatch(shared: &Shared, request: Request<Incoming>) -> Result<Response, HttpError> {
    match request.uri().path() {
        "/api/metadata/put" => return Ok(response::empty(StatusCode::NO_CONTENT)),
        "/api/put" if request.method() == Method::POST => {}
        "/api/put" => {
            let status = StatusCode::METHOD_NOT_ALLOWED;
            return Err(HttpError::new(status, "Method Not Allowed"));
        }
        _ => return Err(HttpError::new(StatusCode::NOT_FOUND, "404 page not found")),
    }
    let (head, incoming) = request.into_parts();
    let packing = Packing::of(&head.headers);
    let app = &shared.app;
    let limits = BodyLimits::new(app, MEMORY_FACTOR, packing);
    let body = body::collect(app, &head.headers, incoming, limits).await?;
    shared.stats.bytes.add(body.bytes.len() as u64);
    let worker = shared.clone();
    let stored = storing(app, move || {
        let body = if packing == Packing::Gzip {
            body.unpacked(&worker.app, MEMORY_FACTOR)?
        } else {
            body
        };
        worker.store(&body.bytes)
    });
    stored.await??;
    Ok(response::empty(StatusCode::NO_CONTENT))
}

/// A stream of which some was read already.
struct Prefixed {
    read: Vec<u8>,
    stream: TcpStream,
}

impl AsyncRead for Prefixed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let len = self.read.len().min(buffer.remaining());
        buffer.put_slice(&self.read[..len]);
        self.read.drain(..len);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Prefixed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
