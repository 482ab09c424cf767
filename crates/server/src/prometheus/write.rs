//! Remote write: samples in.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use ingest::prometheus::{BodyError, ROW_BYTES_FACTOR, write_rows};

use super::unpack;
use crate::app::App;
use crate::auth::Caller;
use crate::blocking::storing;
use crate::body::{self, BodyLimits, Packing};
use crate::error::HttpError;
use crate::params::Params;
use crate::response::{self, Response};
use crate::write::Target;

/// The unpacked body is held, and its rows.
const MEMORY_FACTOR: usize = ROW_BYTES_FACTOR + 1;

/// Answers a remote write.
pub(crate) async fn handle(
    app: &Arc<App>,
    caller: &Caller,
    request: Request<Incoming>,
) -> Result<Response, HttpError> {
    let params = Params::of_url(request.uri().query());
    let target = Target::of_samples(app, caller, &params)?;
    let (head, incoming) = request.into_parts();
    let limits = BodyLimits::new(app, MEMORY_FACTOR, Packing::Snappy);
    let mut body = body::collect(app, &head.headers, incoming, limits).await?;
    let worker = Arc::clone(app);
    let stored = storing(app, move || {
        let unpacked = unpack(&worker, &body.bytes, &mut body.room, MEMORY_FACTOR)?;
        let parsed = write_rows(&unpacked).map_err(|error| match error {
            BodyError::Malformed(text) => HttpError::bad_request(text),
            BodyError::TooLarge => HttpError::too_large(),
        })?;
        worker.store_parsed(&target, &parsed, worker.clock.now_ns())
    });
    stored.await??;
    Ok(response::empty(StatusCode::NO_CONTENT))
}
