//! `POST /write`: checks, body, parse, store, and what to say about rows that were refused.
//!
//! The order of the checks is InfluxDB's and can be seen from outside.

mod groups;
mod outcome;
mod target;

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use ingest::line_protocol::{LineParser, ParseOptions, Parsed};
use store::{RejectedRow, WriteRequest};

use crate::app::App;
use crate::auth::Caller;
use crate::blocking::storing;
use crate::body::{self, BodyLimits, Packing, PiecedBody};
use crate::error::HttpError;
use crate::params::Params;
use crate::response::{self, Response};
use crate::routes::Route;

pub(crate) use groups::WriteGroups;
use outcome::Report;
pub(crate) use target::{Place, Target};

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
    let packing = Packing::of(&head.headers);
    let limits = BodyLimits::new(app, MEMORY_FACTOR, packing);
    let mut body =
        body::collect_pieces(app, &head.headers, body, limits).await.inspect_err(|error| {
            if error.status == StatusCode::SERVICE_UNAVAILABLE {
                app.metrics.writes_refused.add(1);
            }
        })?;
    // The store waits for the disk: that is no work for a thread that has connections to serve.
    if let Some(text) = groups::short_text(&target, &mut body, packing)? {
        groups::store(app, target, text, body.room).await?;
    } else {
        let worker = Arc::clone(app);
        storing(app, move || worker.write(&target, body, packing)).await??;
    }
    Ok(response::empty(StatusCode::NO_CONTENT))
}

impl App {
    /// Everything that is done with a body once it is here.
    fn write(&self, target: &Target, body: PiecedBody, packing: Packing) -> Result<(), HttpError> {
        // The room is held until all is stored.
        let (pieces, _room) = if packing == Packing::Gzip {
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
        self.keep_parser(parser, len_of(pieces));
        answer
    }

    /// Keeps a parser for the next, unless it has grown too much with what it read last.
    fn keep_parser(&self, parser: LineParser, bytes: usize) {
        if bytes <= KEPT_BODY_BYTES_MAX {
            self.parsers.give_back(parser);
        }
    }

    /// Stores what was parsed, and says what became of it.
    ///
    /// # Errors
    /// The refusal that tells of all that went wrong.
    pub(crate) fn store_parsed(
        &self,
        target: &Target,
        parsed: &Parsed<'_>,
        now_ns: i64,
    ) -> Result<(), HttpError> {
        self.count_unparsable(parsed);
        if parsed.batch.rows.is_empty() {
            Report::of(parsed, &[]).answer()
        } else if target.consistency_known {
            let rejected = self.store_rows(&target.place, parsed, now_ns, 1)?;
            Report::of(parsed, &rejected).answer()
        } else {
            Err(HttpError::bad_request("invalid consistency level"))
        }
    }

    /// Stores several bodies in one write, and says of each what became of it. `now_ns` is when one of them arrived.
    fn store_bodies(
        &self,
        place: &Place,
        bodies: &[(&[u8], ParseOptions)],
        now_ns: i64,
    ) -> Vec<Result<(), HttpError>> {
        let mut parser = self.parsers.take().unwrap_or_default();
        let parsed = parser.parse_bodies(bodies);
        self.count_unparsable(&parsed);
        let stored = if parsed.batch.rows.is_empty() {
            Ok(Vec::new())
        } else {
            self.store_rows(place, &parsed, now_ns, bodies.len())
        };
        let mut start = 0;
        let answers = bodies.iter().map(|(text, _)| {
            let lines = start..start + text.len() as u32;
            start = lines.end;
            match &stored {
                Ok(rejected) => Report::within(&parsed, rejected, lines).answer(),
                Err(refusal) => {
                    let report = Report::within(&parsed, &[], lines);
                    if report.has_rows() { Err(refusal.clone()) } else { report.answer() }
                }
            }
        });
        let answers = answers.collect();
        parser.recycle(parsed.batch);
        self.keep_parser(parser, start as usize);
        answers
    }

    fn count_unparsable(&self, parsed: &Parsed<'_>) {
        let unparsable = outcome::unparsable(&parsed.problems);
        self.metrics.lines_unparsable.add(unparsable as u64);
    }

    /// Stores the rows of so many bodies; says which the store refused.
    fn store_rows(
        &self,
        place: &Place,
        parsed: &Parsed<'_>,
        now_ns: i64,
        bodies: usize,
    ) -> Result<Vec<RejectedRow>, HttpError> {
        let snapshot = self.catalog.snapshot();
        let policy = snapshot
            .resolve(&place.database, Some(&place.policy))
            .map_err(|error| HttpError::internal(error.to_string()))?;
        let request = WriteRequest { policy, batch: &parsed.batch, now_ns };
        let outcome = self.store.write(&request).map_err(|error| {
            self.metrics.rows_failed.add(parsed.batch.rows.len() as u64);
            let refusal = HttpError::from(error);
            if refusal.status == StatusCode::SERVICE_UNAVAILABLE {
                self.metrics.writes_refused.add(bodies as u64);
            } else if refusal.status.is_server_error() {
                tracing::error!(database = place.database, "write failed: {}", refusal.text);
            }
            refusal
        })?;
        self.metrics.rows_written.add(outcome.rows_written);
        self.metrics.rows_rejected.add(outcome.rejected.len() as u64);
        Ok(outcome.rejected)
    }
}

fn len_of(pieces: &[&[u8]]) -> usize {
    pieces.iter().map(|piece| piece.len()).sum()
}
