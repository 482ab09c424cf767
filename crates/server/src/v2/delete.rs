//! `POST /api/v2/delete`: rows of a stretch of time, of series that a predicate picks.

use std::sync::Arc;

use catalog::Privilege;
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use influxql::Utc;
use model::{Name, TagExpr, TimeRange};
use serde::Deserialize;
use store::{DeleteRequest, DeleteTarget, NameFilter};

use super::{predicate, split_bucket};
use crate::app::App;
use crate::auth::Caller;
use crate::blocking::blocking;
use crate::body::{self, BodyLimits, Packing};
use crate::error::HttpError;
use crate::params::Params;
use crate::response::{self, Response};

/// What goes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    start: String,
    stop: String,
    predicate: String,
}

/// Deletes, in every policy of the bucket's database.
pub(crate) async fn handle(
    app: &Arc<App>,
    caller: &Caller,
    request: Request<Incoming>,
) -> Result<Response, HttpError> {
    let params = Params::of_url(request.uri().query());
    let (database, policy) = split_bucket(params.get("bucket"))?;
    let state = app.catalog.snapshot();
    let missing = |text: String| HttpError::new(StatusCode::NOT_FOUND, text);
    let found = state.database(database);
    let found =
        found.ok_or_else(|| missing(format!("delete - database not found: {database:?}")))?;
    if !policy.is_empty() && found.policy(policy).is_none() {
        let text = format!("delete - retention policy not found in {database:?}: {policy:?}");
        return Err(missing(text));
    }
    caller.may(Privilege::Write, "delete from", &state, database)?;
    let id = found.id;
    let (head, incoming) = request.into_parts();
    let limits = BodyLimits::new(app, 4, Packing::Plain);
    let body = body::collect(app, &head.headers, incoming, limits).await?;
    let asked: Asked = serde_json::from_slice(&body.bytes)
        .map_err(|e| HttpError::bad_request(format!("delete - body is no JSON object: {e}")))?;
    let target = target(&asked, database, policy)?;
    let worker = Arc::clone(app);
    let deleted = blocking(move || worker.store.delete(&DeleteRequest { database: id, target }));
    deleted.await??;
    Ok(response::empty(StatusCode::OK))
}

fn target(asked: &Asked, database: &str, policy: &str) -> Result<DeleteTarget, HttpError> {
    let Asked { start, stop, predicate } = asked;
    let refuse = |why: &str| {
        HttpError::bad_request(format!(
            "delete - predicate only supports equality operators and conjunctions. database: \
             {database:?}, retention policy: {policy:?}, start: {start:?}, stop: {stop:?}, \
             predicate: {predicate:?}, error: {why}"
        ))
    };
    let (start_ns, stop_ns) = (time(start, "start")?, time(stop, "stop")?);
    let pairs = predicate::equalities(predicate).map_err(|why| refuse(&why))?;
    let mut measurement: Option<String> = None;
    let mut tags = Vec::new();
    let mut nothing = start_ns >= stop_ns;
    for (key, value) in pairs {
        match key.as_str() {
            "_field" => return Err(refuse("single fields cannot be deleted")),
            "_measurement" => {
                nothing |= measurement.as_ref().is_some_and(|other| *other != value);
                measurement = Some(value);
            }
            _ => tags.push(TagExpr::Equals(key.into(), value.into())),
        }
    }
    Ok(DeleteTarget::Rows {
        measurements: match measurement {
            None => NameFilter::All,
            Some(name) => NameFilter::In(vec![Name::from(name.as_str())]),
        },
        series: if nothing { TagExpr::False } else { TagExpr::And(tags) },
        // The end is not deleted; nothing is before the beginning of time.
        time: TimeRange::new(start_ns, stop_ns.saturating_sub(1)).intersect(&TimeRange::ALL),
    })
}

/// A time, nanoseconds since 1970-01-01 UTC.
fn time(text: &str, field: &str) -> Result<i64, HttpError> {
    let time = if text.contains('T') { influxql::time::parse_time(text, &Utc) } else { None };
    let ns = time.and_then(influxql::Timestamp::to_ns);
    ns.ok_or_else(|| {
        let text = format!("delete - {field} field in RFC3339Nano format required");
        HttpError::bad_request(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(start: &str, stop: &str, predicate: &str) -> Result<DeleteTarget, String> {
        let [start, stop, predicate] = [start, stop, predicate].map(str::to_owned);
        target(&Asked { start, stop, predicate }, "d", "r").map_err(|error| error.text)
    }

    const START: &str = "1970-01-01T00:00:01Z";
    const STOP: &str = "1970-01-01T01:00:02.5+01:00";

    #[test]
    fn what_goes() {
        let target = of(START, STOP, "_measurement=m AND host=\"a\"").unwrap();
        let DeleteTarget::Rows { measurements, series, time } = target else { panic!("rows") };
        assert!(measurements.accepts("m") && !measurements.accepts("n"));
        assert!(series.evaluate(&|_| "a") && !series.evaluate(&|_| "b"));
        assert_eq!(time, TimeRange::new(1_000_000_000, 2_499_999_999));
    }

    #[test]
    fn what_cannot_go() {
        let rows = |target| match target {
            DeleteTarget::Rows { series, .. } => series.evaluate(&|_| ""),
            _ => panic!("rows"),
        };
        assert!(rows(of(START, STOP, "").unwrap()));
        assert!(!rows(of(STOP, START, "").unwrap()));
        assert!(!rows(of(START, STOP, "_measurement=a AND _measurement=b").unwrap()));
    }

    #[test]
    fn what_is_refused() {
        let start = "delete - start field in RFC3339Nano format required";
        for text in ["", "1970-01-01", "12", "tomorrow"] {
            assert_eq!(of(text, STOP, "").unwrap_err(), start, "{text}");
        }
        let stop = "delete - stop field in RFC3339Nano format required";
        assert_eq!(of(START, "x", "").unwrap_err(), stop);
        for predicate in ["host != a", "_field=v"] {
            let text = of(START, STOP, predicate).unwrap_err();
            assert!(text.starts_with("delete - predicate only supports equality"), "{text}");
        }
    }
}
