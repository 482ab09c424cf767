//! OpenTSDB's lines and its HTTP, on one port: the first line of a connection decides.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use ingest::opentsdb::{Command, parse_json, parse_line};
use ingest::point::Lines;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

use super::batches::{self, Sender};
use super::connections::{self, LineReader, texts};
use super::{ListenerStats, ListenerTarget};
use crate::app::App;
use crate::blocking::blocking;
use crate::body::{self, BodyLimits};
use crate::error::HttpError;
use crate::gzip::{self, UnpackError};
use crate::panic::CatchPanic;
use crate::response::{self, Response, ResponseBody};
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
}

/// Serves connections, for ever.
pub(super) async fn serve(
    app: Arc<App>,
    stats: Arc<ListenerStats>,
    listener: TcpListener,
    target: ListenerTarget,
) {
    let (sender, batches) = batches::of_listener(&target);
    let (app_too, stats_too) = (Arc::clone(&app), Arc::clone(&stats));
    let shared = Shared { app, stats, target: Arc::new(target), sender };
    let serve = |stream: TcpStream| serve_one(shared.clone(), stream);
    let accepting = connections::accept(listener, Arc::clone(&stats_too), serve);
    tokio::join!(accepting, batches.store(app_too, Some(stats_too)));
}

async fn serve_one(shared: Shared, stream: TcpStream) -> io::Result<()> {
    let mut reader = LineReader::new(stream);
    let Some(first) = reader.peek_line().await? else { return Ok(()) };
    if memchr::memmem::find(first, b" HTTP/1.").is_none() {
        return serve_lines(shared, reader).await;
    }
    let (read, stream) = reader.into_parts();
    let io = TokioIo::new(Prefixed { read, stream });
    let patience = shared.app.config.patience.head;
    let service = service_fn(move |request| answer(shared.clone(), request));
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .serve_connection(io, service)
        .await
        .map_err(io::Error::other)
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
        for _ in 0..asked {
            reader.stream().write_all(VERSION).await?;
        }
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
    Ok(answered.unwrap_or_else(|error| {
        let kind = HeaderValue::from_static("text/plain; charset=utf-8");
        let text = format!("{}\n", error.text);
        response::with_body(error.status, kind, ResponseBody::whole(text))
    }))
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
    let encoding = head.headers.get(CONTENT_ENCODING);
    let packed = encoding.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"gzip"));
    let app = &shared.app;
    let limits =
        BodyLimits { bytes_max: app.config.body_bytes_max(), memory_factor: MEMORY_FACTOR };
    let mut body = body::collect(app, &head.headers, incoming, limits).await?;
    shared.stats.bytes.add(body.bytes.len() as u64);
    let worker = shared.clone();
    let stored = blocking(move || {
        if !packed {
            return worker.store(&body.bytes);
        }
        let room = &mut body.room;
        let unpacked = gzip::unpack(&body.bytes, worker.app.config.unpacked_bytes_max(), |bytes| {
            room.grow(bytes.saturating_mul(MEMORY_FACTOR)).map_err(Unpacking)
        });
        worker.store(&unpacked.map_err(|failed| failed.0)?)
    });
    stored.await??;
    Ok(response::empty(StatusCode::NO_CONTENT))
}

/// Why unpacking stopped.
struct Unpacking(HttpError);

impl From<UnpackError> for Unpacking {
    fn from(error: UnpackError) -> Self {
        Self(match error {
            UnpackError::TooLong(_) => HttpError::too_large(),
            UnpackError::Broken(_) => HttpError::bad_request(error.to_string()),
        })
    }
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
