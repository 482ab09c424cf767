//! What is written down of each request: figures, and a line for the access log.

use std::sync::Arc;
use std::time::Instant;

use hyper::{Method, StatusCode, Uri};
use model::Name;

use crate::app::App;
use crate::connection::Activity;
use crate::routes::Route;

/// Longest query text in the access log, bytes.
const LOGGED_QUERY_BYTES_MAX: usize = 1024;

/// A request on its way. Dropping it writes it down, whatever became of the request: lives in the
/// handler first and in the answer's body afterwards.
#[derive(Debug)]
pub(crate) struct RequestRecord {
    app: Arc<App>,
    activity: Activity,
    route: Route,
    start: Instant,
    /// Method and target for the access log; only if somebody reads it.
    line: Option<String>,
    /// Who sends it, if that is known.
    pub(crate) user: Option<Name>,
    /// `None`: the client went away before it had an answer.
    pub(crate) status: Option<StatusCode>,
    pub(crate) bytes_out: u64,
    /// The answer ended early, by a failure of ours.
    pub(crate) aborted: bool,
}

impl RequestRecord {
    pub(crate) fn begin(
        app: &Arc<App>,
        activity: Activity,
        route: Route,
        method: &Method,
        uri: &Uri,
    ) -> Self {
        activity.begin_request(route.kind());
        app.metrics.request_begun(route);
        let logged = app.config.access_log
            || tracing::enabled!(target: "nyala::access", tracing::Level::DEBUG);
        Self {
            app: Arc::clone(app),
            activity,
            route,
            start: Instant::now(),
            line: logged.then(|| line_of(method, uri)),
            user: None,
            status: None,
            bytes_out: 0,
            aborted: false,
        }
    }
}

impl RequestRecord {
    /// What goes on on the request's connection.
    pub(crate) fn activity(&self) -> &Activity {
        &self.activity
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        self.activity.end_request();
        let metrics = &self.app.metrics;
        let took = self.start.elapsed();
        metrics.request_done(self.route, self.status, took, self.bytes_out);
        let (user, peer) = (self.user.as_deref(), self.activity.peer());
        self.app.profiles.count(self.route, user, peer);
        let Some(line) = &self.line else { return };
        // The level of an event has to be known where it is written.
        macro_rules! log {
            ($event:ident) => {
                tracing::$event!(
                    target: "nyala::access",
                    peer = %peer.map_or_else(|| "-".to_owned(), |peer| peer.to_string()),
                    user = user.unwrap_or("-"),
                    status = self.status.map_or(0, |status| status.as_u16()),
                    bytes_out = self.bytes_out,
                    took_us = took.as_micros() as u64,
                    aborted = self.aborted,
                    "{line}"
                )
            };
        }
        if self.app.config.access_log { log!(info) } else { log!(debug) }
    }
}

/// Method, path and parameters, without passwords.
fn line_of(method: &Method, uri: &Uri) -> String {
    let mut line = format!("{method} {}", uri.path());
    let pairs = form_urlencoded::parse(uri.query().unwrap_or("").as_bytes());
    for (number, (key, value)) in pairs.enumerate() {
        line.push(if number == 0 { '?' } else { '&' });
        line.push_str(&key);
        line.push('=');
        match &*key {
            "p" => line.push_str("[REDACTED]"),
            _ => {
                let value = influxql::redact(&value);
                let end =
                    value.char_indices().map(|(at, _)| at).find(|at| *at > LOGGED_QUERY_BYTES_MAX);
                line.push_str(&value[..end.unwrap_or(value.len())]);
            }
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_logged() {
        let line = |uri: &'static str| line_of(&Method::GET, &Uri::from_static(uri));
        assert_eq!(line("/ping"), "GET /ping");
        assert_eq!(line("/query?u=me&p=secret"), "GET /query?u=me&p=[REDACTED]");
        let set = line("/query?q=SET+PASSWORD+FOR+u+%3D+%27secret%27&db=d");
        assert!(!set.contains("secret") && set.contains("[REDACTED]"), "{set}");
    }
}
