//! From a request to its answer: the route, and what all answers have.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, HeaderName, HeaderValue, ORIGIN,
};
use hyper::{HeaderMap, Method, Request, StatusCode};

use crate::app::App;
use crate::auth;
use crate::config::COMPATIBLE_VERSION;
use crate::connection::Activity;
use crate::error::HttpError;
use crate::info;
use crate::panic::CatchPanic;
use crate::profile;
use crate::record::RequestRecord;
use crate::response::{self, Response};
use crate::routes::{Access, Route};
use crate::{prometheus, query, v2, write};

const VERSION: HeaderName = HeaderName::from_static("x-influxdb-version");
const BUILD: HeaderName = HeaderName::from_static("x-influxdb-build");
const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest request id that is taken over from a client, bytes.
const REQUEST_ID_BYTES_MAX: usize = 256;

/// Answers one request. Never fails: whatever goes wrong becomes an answer.
pub(crate) async fn answer(
    app: Arc<App>,
    activity: Activity,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let route = Route::of_path(request.uri().path());
    let mut record = RequestRecord::begin(&app, activity, route, request.method(), request.uri());
    let id = request_id(request.headers(), &app);
    let origin = request.headers().get(ORIGIN).cloned();
    let mut response = match CatchPanic::new(dispatch(&app, &mut record, route, request)).await {
        Ok(response) => response,
        Err(panic) => {
            app.metrics.panics.add(1);
            tracing::error!(route = route.label(), "a request failed by a bug: {panic}");
            response::refusal(&HttpError::internal(format!("internal error: {panic}")))
        }
    };
    decorate(response.headers_mut(), id, origin);
    record.status = Some(response.status());
    response.body_mut().keep(record);
    Ok(response)
}

async fn dispatch(
    app: &Arc<App>,
    record: &mut RequestRecord,
    route: Route,
    request: Request<Incoming>,
) -> Response {
    if request.method() == Method::OPTIONS {
        return response::empty(StatusCode::OK);
    }
    if route == Route::Unknown {
        return response::not_found();
    }
    if !route.allows(request.method()) {
        return response::method_not_allowed(route.allow());
    }
    let query = request.uri().query();
    let caller = match auth::authenticate(app, route, request.headers(), query).await {
        Ok(caller) => caller,
        Err(error) => return response::refusal(&error),
    };
    let gzip = route.access() == Access::Debug && query::accepts_gzip(request.headers());
    record.user = caller.user().map(|user| user.name.clone());
    let answered = match route {
        Route::Query => Ok(query::handle(app, &caller, request).await),
        Route::Write | Route::V2Write => write::handle(app, &caller, route, request).await,
        Route::V2Query => Ok(v2::refuse_flux()),
        Route::V2Delete => v2::delete(app, &caller, request).await,
        Route::V2Buckets | Route::V2Bucket => v2::buckets(app, &caller, request).await,
        Route::PrometheusWrite => prometheus::write(app, &caller, request).await,
        Route::PrometheusRead => prometheus::read(app, &caller, request).await,
        Route::Ping | Route::Status => Ok(info::ping(request.uri().query())),
        Route::Health => Ok(info::health()),
        Route::Metrics => info::metrics(app).await,
        Route::DebugVars => info::vars(app).await,
        Route::DebugRequests => profile::handle(app, request.uri().query()).await,
        Route::Unknown => Ok(response::not_found()),
    };
    match answered {
        Ok(answer) if gzip => response::packed(answer),
        Ok(answer) => answer,
        Err(error) => response::refusal(&error),
    }
}

/// The client's id for the request, or a new one.
fn request_id(headers: &HeaderMap, app: &App) -> HeaderValue {
    let given = headers.get(X_REQUEST_ID).or_else(|| headers.get(REQUEST_ID));
    match given.filter(|id| !id.is_empty() && id.len() <= REQUEST_ID_BYTES_MAX) {
        Some(id) => id.clone(),
        None => app.request_ids.next(app.clock.now_ns()),
    }
}

fn decorate(headers: &mut HeaderMap, id: HeaderValue, origin: Option<HeaderValue>) {
    headers.insert(VERSION, HeaderValue::from_static(COMPATIBLE_VERSION));
    headers.insert(BUILD, HeaderValue::from_static("OSS"));
    headers.insert(REQUEST_ID, id.clone());
    headers.insert(X_REQUEST_ID, id);
    let Some(origin) = origin else { return };
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_METHODS, "DELETE, GET, OPTIONS, POST, PUT"),
        (
            ACCESS_CONTROL_ALLOW_HEADERS,
            "Accept, Accept-Encoding, Authorization, Content-Length, Content-Type, X-CSRF-Token, \
             X-HTTP-Method-Override",
        ),
        (ACCESS_CONTROL_EXPOSE_HEADERS, "Date, X-InfluxDB-Version, X-InfluxDB-Build"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
