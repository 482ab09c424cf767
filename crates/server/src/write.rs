//! `POST /write`: checks, body, parse, store, and what to say about rows that were refused.
//!
//! The order of the checks is InfluxDB's and can be seen from outside.

mod outcome;

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use ingest::line_protocol::{ParseOptions, Precision};
use store::WriteRequest;

use crate::app::App;
use crate::auth::Caller;
use crate::blocking::blocking;
use crate::body::{self, BodyLimits, PiecedBody};
use crate::error::HttpError;
use crate::params::Params;
use crate::response::{self, Response};
use crate::routes::Route;
use crate::v2::split_bucket;

/// Rows and values take up to about this many times the bytes of the text they come from, the text
/// included; rows of two or three characters take twice as much again.
const MEMORY_FACTOR: usize = 6;

/// Parsers of longer bodies have buffers that are not worth keeping.
const KEPT_BODY_BYTES_MAX: usize = 8 << 20;

/// Answers a write.
pub(crate) async fn handle(
    app: &Arc<App>,
    caller: &Caller,
    route: Route,
    request: Request<Incoming>,
) -> Result<Response, HttpError> {
    let params = Params::of_url(request.uri().query());
    let target = if route == Route::V2Write {
        Target::of_bucket(app, caller, &params)?
    } else {
        Target::of_database(app, caller, &params)?
    };
    let (head, body) = request.into_parts();
    let packed = body::is_packed(&head.headers);
    let limits = BodyLimits::of_text(app, MEMORY_FACTOR, packed);
    let body =
        body::collect_pieces(app, &head.headers, body, limits).await.inspect_err(|error| {
            if error.status == StatusCode::SERVICE_UNAVAILABLE {
                app.metrics.writes_refused.add(1);
            }
        })?;
    // The store waits for the disk: that is no work for a thread that has connections to serve.
    let worker = Arc::clone(app);
    blocking(move || worker.write(&target, body, packed)).await??;
    Ok(response::empty(StatusCode::NO_CONTENT))
}

/// Where rows go and how they are read.
#[derive(Debug)]
pub(crate) struct Target {
    database: String,
    policy: String,
    precision: Precision,
    consistency_known: bool,
}

impl Target {
    /// Database, policy and precision as InfluxDB 1 names them.
    fn of_database(app: &App, caller: &Caller, params: &Params) -> Result<Self, HttpError> {
        let precision = match params.get("precision") {
            "" => Precision::Nanosecond,
            name => Precision::from_name(name).ok_or_else(|| {
                HttpError::bad_request(format!(
                    "invalid precision {name:?} (use n, u, ms, s, m or h)"
                ))
            })?,
        };
        let consistency = params.get("consistency").to_ascii_lowercase();
        let target = Self {
            precision,
            consistency_known: matches!(&*consistency, "" | "any" | "one" | "quorum" | "all"),
            ..Self::of_samples(app, caller, params)?
        };
        Ok(target)
    }

    /// A bucket and a precision as InfluxDB 2 names them.
    fn of_bucket(app: &App, caller: &Caller, params: &Params) -> Result<Self, HttpError> {
        let precision = match params.get("precision") {
            "" | "ns" => Precision::Nanosecond,
            "us" => Precision::Microsecond,
            "ms" => Precision::Millisecond,
            "s" => Precision::Second,
            name => {
                let text = format!("invalid precision {name:?} (use ns, us, ms or s)");
                return Err(HttpError::bad_request(text));
            }
        };
        let (database, policy) = split_bucket(params.get("bucket"))?;
        Ok(Self { precision, ..Self::new(app, caller, database, policy)? })
    }

    /// Database and policy alone, for rows that say the rest themselves.
    pub(crate) fn of_samples(
        app: &App,
        caller: &Caller,
        params: &Params,
    ) -> Result<Self, HttpError> {
        Self::new(app, caller, params.get("db"), params.get("rp"))
    }

    /// Where a listener puts what nobody is asked about.
    pub(crate) fn of_listener(database: &str, policy: &str) -> Self {
        Self {
            database: database.to_owned(),
            policy: policy.to_owned(),
            precision: Precision::Nanosecond,
            consistency_known: true,
        }
    }

    /// The database.
    pub(crate) fn database(&self) -> &str {
        &self.database
    }

    fn new(app: &App, caller: &Caller, database: &str, policy: &str) -> Result<Self, HttpError> {
        if database.is_empty() {
            return Err(HttpError::bad_request("database is required"));
        }
        let catalog = app.catalog.snapshot();
        if catalog.database(database).is_none() {
            let text = format!("database not found: {database:?}");
            return Err(HttpError::new(StatusCode::NOT_FOUND, text));
        }
        caller.may_write(&catalog, database)?;
        Ok(Self::of_listener(database, policy))
    }
}

impl App {
    /// Everything that is done with a body once it is here.
    fn write(&self, target: &Target, body: PiecedBody, packed: bool) -> Result<(), HttpError> {
        // The room is held until all is stored.
        let (pieces, _room) = if packed {
            let body = body.joined().unpacked(self, MEMORY_FACTOR)?;
            (vec![body.bytes], body.room)
        } else {
            (body.pieces.by_lines(), body.room)
        };
        let pieces: Vec<&[u8]> = pieces.iter().map(|piece| &piece[..]).collect();
        self.metrics.write_bytes.add(len_of(&pieces) as u64);
        self.store_pieces(target, &pieces, self.clock.now_ns())
    }

    /// Stores lines that a listener took.
    ///
    /// # Errors
    /// As [`App::store_parsed`].
    pub(crate) fn store_lines(
        &self,
        target: &Target,
        text: &[u8],
        now_ns: i64,
    ) -> Result<(), HttpError> {
        self.store_pieces(target, &[text], now_ns)
    }

    /// Stores lines in pieces, each of which ends in a newline but the last.
    fn store_pieces(
        &self,
        target: &Target,
        pieces: &[&[u8]],
        now_ns: i64,
    ) -> Result<(), HttpError> {
        let options = ParseOptions::at(target.precision, now_ns);
        let mut parser = self.parsers.take().unwrap_or_default();
        let joined;
        let parsed = match parser.parse_pieces(pieces, &options) {
            Some(parsed) => parsed,
            None => {
                joined = pieces.concat();
                parser.parse(&joined, &options)
            }
        };
        let answer = self.store_parsed(target, &parsed, now_ns);
        parser.recycle(parsed.batch);
        if len_of(pieces) <= KEPT_BODY_BYTES_MAX {
            self.parsers.give_back(parser);
        }
        answer
    }

    /// Stores what was parsed, and says what became of it.
    ///
    /// # Errors
    /// The refusal that tells of all that went wrong.
    pub(crate) fn store_parsed(
        &self,
        target: &Target,
        parsed: &ingest::line_protocol::Parsed<'_>,
        now_ns: i64,
    ) -> Result<(), HttpError> {
        let unparsable = outcome::unparsable(&parsed.problems);
        self.metrics.lines_unparsable.add(unparsable as u64);
        if parsed.batch.rows.is_empty() {
            outcome::report(parsed, &[])
        } else if target.consistency_known {
            self.store_rows(target, parsed, now_ns)
        } else {
            Err(HttpError::bad_request("invalid consistency level"))
        }
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
            self.metrics.rows_failed.add(parsed.batch.rows.len() as u64);
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

fn len_of(pieces: &[&[u8]]) -> usize {
    pieces.iter().map(|piece| piece.len()).sum()
}
