//! `POST /write`: checks, body, parse, store, and what to say about rows that were refused.
//!
//! The order of the checks is InfluxDB's and can be seen from outside.

mod outcome;
mod parsers;

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::CONTENT_ENCODING;
use hyper::{HeaderMap, Request, StatusCode};
use ingest::line_protocol::{ParseOptions, Precision};
use store::WriteRequest;

pub(crate) use parsers::ParserPool;

use crate::app::App;
use crate::body::{self, BodyLimits, WholeBody};
use crate::error::HttpError;
use crate::gzip::{self, UnpackError};
use crate::params::Params;
use crate::response::{self, Response};

/// Rows and values take up to about this many times the bytes of the text they come from, the text
/// included; rows of two or three characters take twice as much again.
const MEMORY_FACTOR: usize = 6;
/// Line protocol packs so well; more is asked for when it turns out to be.
const PACKED_FACTOR: usize = 10;

/// Answers a write.
pub(crate) async fn handle(
    app: &Arc<App>,
    request: Request<Incoming>,
) -> Result<Response, HttpError> {
    let target = Target::check(app, request.uri().query())?;
    let (head, body) = request.into_parts();
    let packed = is_packed(&head.headers);
    let limits = BodyLimits {
        bytes_max: app.config.body_bytes_max(),
        memory_factor: MEMORY_FACTOR * if packed { PACKED_FACTOR } else { 1 },
    };
    let body = body::collect(app, &head.headers, body, limits).await.inspect_err(|error| {
        if error.status == StatusCode::SERVICE_UNAVAILABLE {
            app.metrics.writes_refused.add(1);
        }
    })?;
    // The store waits for the disk: that is no work for a thread that has connections to serve.
    let worker = Arc::clone(app);
    let written = tokio::task::spawn_blocking(move || worker.write(&target, body, packed)).await;
    match written {
        Ok(outcome) => outcome.map(|()| response::empty(StatusCode::NO_CONTENT)),
        Err(failed) if failed.is_panic() => {
            std::panic::resume_unwind(failed.into_panic());
        }
        Err(_) => Err(HttpError::overloaded("the server stops", Duration::from_secs(5))),
    }
}

fn is_packed(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_ENCODING)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"gzip"))
}

/// Where rows go and how they are read.
#[derive(Debug)]
struct Target {
    database: String,
    policy: String,
    precision: Precision,
    consistency_known: bool,
}

impl Target {
    fn check(app: &App, query: Option<&str>) -> Result<Self, HttpError> {
        let params = Params::of_url(query);
        let precision = match params.get("precision") {
            "" => Precision::Nanosecond,
            name => Precision::from_name(name).ok_or_else(|| {
                HttpError::bad_request(format!(
                    "invalid precision {name:?} (use n, u, ms, s, m or h)"
                ))
            })?,
        };
        let database = params.get("db");
        if database.is_empty() {
            return Err(HttpError::bad_request("database is required"));
        }
        if app.catalog.snapshot().database(database).is_none() {
            let text = format!("database not found: {database:?}");
            return Err(HttpError::new(StatusCode::NOT_FOUND, text));
        }
        let consistency = params.get("consistency").to_ascii_lowercase();
        Ok(Self {
            database: database.to_owned(),
            policy: params.get("rp").to_owned(),
            precision,
            consistency_known: matches!(&*consistency, "" | "any" | "one" | "quorum" | "all"),
        })
    }
}

impl App {
    /// Everything that is done with a body once it is here.
    fn write(&self, target: &Target, body: WholeBody, packed: bool) -> Result<(), HttpError> {
        let WholeBody { bytes, mut room } = body;
        let unpacked;
        let text: &[u8] = if packed {
            let grow = |bytes: usize| {
                room.grow(bytes.saturating_mul(MEMORY_FACTOR)).map_err(Unpacking::NoRoom)
            };
            unpacked = gzip::unpack(&bytes, self.config.unpacked_bytes_max(), grow)?;
            drop(bytes);
            &unpacked
        } else {
            unpacked = bytes;
            &unpacked
        };
        let now_ns = self.clock.now_ns();
        let default_time_ns = now_ns - now_ns.rem_euclid(target.precision.unit_ns());
        let options = ParseOptions { precision: target.precision, default_time_ns };
        let mut parser = self.parsers.take();
        let parsed = parser.parse(text, &options);
        let unparsable = outcome::unparsable(&parsed.problems);
        self.metrics.lines_unparsable.add(unparsable as u64);
        let answer = if parsed.batch.rows.is_empty() {
            outcome::report(&parsed, &[])
        } else if target.consistency_known {
            self.store_rows(target, &parsed, now_ns)
        } else {
            Err(HttpError::bad_request("invalid consistency level"))
        };
        parser.recycle(parsed.batch);
        self.parsers.give_back(parser, text.len());
        answer
    }

    fn store_rows(
        &self,
        target: &Target,
        parsed: &ingest::line_protocol::Parsed<'_>,
        now_ns: i64,
    ) -> Result<(), HttpError> {
        let snapshot = self.catalog.snapshot();
        let policy = snapshot
            .resolve(&target.database, Some(&target.policy))
            .map_err(|error| HttpError::internal(error.to_string()))?;
        let request = WriteRequest { policy, batch: &parsed.batch, now_ns };
        let outcome = self.store.write(&request).map_err(|error| {
            let refusal = HttpError::from(error);
            if refusal.status == StatusCode::SERVICE_UNAVAILABLE {
                self.metrics.writes_refused.add(1);
            } else if refusal.status.is_server_error() {
                tracing::error!(database = target.database, "write failed: {}", refusal.text);
            }
            refusal
        })?;
        self.metrics.rows_written.add(outcome.rows_written);
        self.metrics.rows_rejected.add(outcome.rejected.len() as u64);
        outcome::report(parsed, &outcome.rejected)
    }
}

/// Why unpacking stopped.
enum Unpacking {
    Failed(UnpackError),
    NoRoom(HttpError),
}

impl From<UnpackError> for Unpacking {
    fn from(error: UnpackError) -> Self {
        Self::Failed(error)
    }
}

impl From<Unpacking> for HttpError {
    fn from(why: Unpacking) -> Self {
        match why {
            Unpacking::Failed(UnpackError::TooLong(_)) => Self::too_large(),
            Unpacking::Failed(broken) => Self::bad_request(broken.to_string()),
            Unpacking::NoRoom(refusal) => refusal,
        }
    }
}
