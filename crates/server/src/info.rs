//! What the server says of itself: `/ping`, `/status`, `/health`, `/metrics`, `/debug/vars`.

mod vars;

use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::HeaderValue;

use crate::app::App;
use crate::blocking::blocking;
use crate::config::COMPATIBLE_VERSION;
use crate::error::HttpError;
use crate::metrics::exposition;
use crate::params::Params;
use crate::response::{self, JSON, Response, ResponseBody};

/// Whether the server is there; with `verbose` which one it is.
pub(crate) fn ping(query: Option<&str>) -> Response {
    if matches!(Params::of_url(query).get("verbose"), "" | "0" | "false") {
        return response::empty(StatusCode::NO_CONTENT);
    }
    let text = format!("{{\"version\":\"{COMPATIBLE_VERSION}\"}}");
    response::with_body(StatusCode::OK, JSON, ResponseBody::whole(text))
}

/// Whether the server works.
pub(crate) fn health() -> Response {
    let text = format!(
        "{{\"checks\":[],\"message\":\"ready for queries and writes\",\"name\":\"influxdb\",\
         \"status\":\"pass\",\"version\":\"{COMPATIBLE_VERSION}\"}}"
    );
    response::with_body(StatusCode::OK, JSON, ResponseBody::whole(text))
}

/// Figures as InfluxDB shows them.
pub(crate) async fn vars(app: &Arc<App>) -> Result<Response, HttpError> {
    let worker = Arc::clone(app);
    let text = blocking(move || vars::document(&worker)).await?;
    let kind = HeaderValue::from_static("application/json; charset=utf-8");
    Ok(response::with_body(StatusCode::OK, kind, ResponseBody::whole(text)))
}

/// All figures in Prometheus' text format.
pub(crate) async fn metrics(app: &Arc<App>) -> Result<Response, HttpError> {
    // Stores look at many things for their figures.
    let worker = Arc::clone(app);
    let all = move || {
        let mut of_parts = worker.store_metrics();
        of_parts.extend(worker.query_cache.metrics());
        exposition(&worker.metrics, of_parts)
    };
    let text = blocking(all).await?;
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    Ok(response::with_body(StatusCode::OK, kind, ResponseBody::whole(text)))
}
