//! `/query`: statements in, their answers out.
//!
//! A request whose statements are light is executed on the thread that received it, into one
//! buffer. As soon as something turns out to be more than that (a heavy statement, one that changes
//! something and waits for the disk, a large answer), the execution moves on to a worker thread as
//! it is, and its answer is streamed. So a wrong estimate costs a moment and not a thread. What was
//! asked before may not have to be executed at all (`cache`).

mod cache;
mod execution;
mod gate;
mod kinds;
mod request;
mod worker;

use std::sync::Arc;
use std::time::Instant;

use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, HeaderValue};
use hyper::{Request, StatusCode};
use tokio::sync::oneshot;

pub(crate) use cache::QueryCache;
pub(crate) use gate::{Active, Need, QueryGate};
pub(crate) use request::accepts_gzip;

use crate::app::App;
use crate::auth::Caller;
use crate::error::HttpError;
use crate::gzip;
use crate::response::{self, CancelOnDrop, Response, ResponseBody, Stream};
use crate::threads;
use cache::Collecting;
use execution::Execution;
use request::{AnswerForm, Asked, QueryRequest};
use worker::{First, Sink};

/// Pieces that wait for the client before the worker does.
const PIECES_MAX: usize = 4;

const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// Answers a query request.
pub(crate) async fn handle(
    app: &Arc<App>,
    caller: &Caller,
    request: Request<Incoming>,
) -> Response {
    let form = AnswerForm::of_request(&request);
    match respond(app, caller, request, &form).await {
        Ok(response) => response,
        Err(error) => response::refusal_as(&error, form.options.format, form.content_type),
    }
}

async fn respond(
    app: &Arc<App>,
    caller: &Caller,
    request: Request<Incoming>,
    form: &AnswerForm,
) -> Result<Response, HttpError> {
    let asked = Asked::read(app, request).await?;
    let start = Instant::now();
    let question = app.query_cache.question(&asked, form.options.format, caller);
    if let Some(bytes) = question.as_ref().and_then(|q| app.query_cache.find(q, app)) {
        app.metrics.statements.add(1);
        app.metrics.light_queries.observe(start.elapsed());
        return Ok(with_encoding(form, asked.gzip, ResponseBody::whole(bytes)));
    }
    let request = QueryRequest::new(&asked, app, caller, form)?;
    let active = match Active::enter(app) {
        Ok(active) => active,
        Err(text) => {
            let bytes = packed(request.gzip, execution::only_error(&request, &text));
            return Ok(with_encoding(form, request.gzip, ResponseBody::whole(bytes)));
        }
    };
    if request.is_async {
        run_detached(app, request, active);
        return Ok(response::empty(StatusCode::NO_CONTENT));
    }
    let gzip = request.gzip;
    let keeping = question.and_then(|q| app.query_cache.prepare(q, &request, app));
    let mut execution = Execution::new(app, request);
    match execution.advance_light() {
        None => {
            app.metrics.light_queries.observe(start.elapsed());
            let bytes = packed(gzip, execution.take());
            if let Some(keeping) = keeping.filter(|_| !execution.has_failed()) {
                app.query_cache.keep(keeping, &bytes, app);
            }
            Ok(with_encoding(form, gzip, ResponseBody::whole(bytes)))
        }
        Some(need) => {
            let sent = (gzip, keeping.and_then(|keeping| keeping.collecting(app)));
            continue_on_worker(app, form, execution, need, active, sent).await
        }
    }
}

fn packed(gzip: bool, bytes: Vec<u8>) -> Vec<u8> {
    if gzip { gzip::pack(&bytes) } else { bytes }
}

fn with_encoding(form: &AnswerForm, gzip: bool, body: ResponseBody) -> Response {
    let mut response = response::with_body(StatusCode::OK, form.content_type.clone(), body);
    if gzip {
        response.headers_mut().insert(CONTENT_ENCODING, GZIP);
    }
    response
}

async fn continue_on_worker(
    app: &Arc<App>,
    form: &AnswerForm,
    execution: Execution,
    need: Need,
    active: Active,
    (gzip, collecting): (bool, Option<Collecting>),
) -> Result<Response, HttpError> {
    // From here on the client's leaving ends the work, also while nothing is sent yet.
    let cancel = CancelOnDrop(execution.interrupt().clone());
    let turn = app.queries.turn(need, &app.metrics).await?;
    let (pieces, receiver) = tokio::sync::mpsc::channel(PIECES_MAX);
    let (first, first_seen) = oneshot::channel();
    let sink = Sink::new(app, (pieces, first), gzip, collecting, turn);
    threads::pool().spawn_blocking(move || {
        let _active = active;
        worker::run(execution, sink);
    });
    match first_seen.await {
        Ok(First::Whole(bytes)) => Ok(with_encoding(form, gzip, ResponseBody::whole(bytes))),
        Ok(First::Streaming) => {
            let stream = Stream { pieces: receiver, _cancel: cancel };
            Ok(with_encoding(form, gzip, ResponseBody::stream(stream)))
        }
        Ok(First::Failed(error)) => Err(error),
        Err(_) => Err(HttpError::internal("the server stops")),
    }
}

/// Executes a request that nobody waits for.
fn run_detached(app: &Arc<App>, request: QueryRequest, active: Active) {
    let app = Arc::clone(app);
    threads::pool().spawn(async move {
        match app.queries.turn(Need::Processor, &app.metrics).await {
            Ok(turn) => {
                let sink = Sink::discard(&app, turn);
                let execution = Execution::new(&app, request);
                tokio::task::spawn_blocking(move || {
                    let _active = active;
                    worker::run(execution, sink);
                });
            }
            Err(error) => tracing::warn!("an asynchronous query was not executed: {}", error.text),
        }
    });
}
