//! `/debug/requests`: who sends how much, watched for a while.
//!
//! Nothing is counted while nobody watches.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::app::App;
use crate::error::HttpError;
use crate::params::Params;
use crate::response::{self, JSON, Response, ResponseBody};
use crate::routes::Route;
use hyper::StatusCode;

/// Seconds that are watched if nobody says, and at most.
const SECONDS_DEFAULT: i64 = 10;
const SECONDS_MAX: i64 = 6 * 3600;

/// Those who watch at a time, at most.
const WATCHERS_MAX: usize = 16;
/// Senders that are told apart, at most.
const SENDERS_MAX: usize = 10_000;

/// Requests of one sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    writes: u64,
    queries: u64,
}

/// What one watcher has seen.
type Seen = Arc<Mutex<BTreeMap<String, Counts>>>;

/// All watchers.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    watchers: Mutex<Vec<Seen>>,
    count: AtomicUsize,
}

impl Profiles {
    /// Counts a request.
    pub(crate) fn count(&self, route: Route, user: Option<&str>, peer: Option<IpAddr>) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let (writes, queries) = match route {
            Route::Write | Route::V2Write | Route::PrometheusWrite => (1, 0),
            Route::Query | Route::PrometheusRead => (0, 1),
            _ => return,
        };
        let peer = peer.map_or_else(|| "unix".to_owned(), |peer| peer.to_string());
        let sender = user.map_or_else(|| peer.clone(), |user| format!("{user}:{peer}"));
        for seen in self.watchers.lock().iter() {
            let mut seen = seen.lock();
            if seen.len() >= SENDERS_MAX && !seen.contains_key(&sender) {
                continue;
            }
            let counts = seen.entry(sender.clone()).or_default();
            counts.writes += writes;
            counts.queries += queries;
        }
    }

    fn watch(&self) -> Option<Seen> {
        let mut watchers = self.watchers.lock();
        if watchers.len() >= WATCHERS_MAX {
            return None;
        }
        let seen = Seen::default();
        watchers.push(Arc::clone(&seen));
        self.count.store(watchers.len(), Ordering::Relaxed);
        Some(seen)
    }

    fn forget(&self, seen: &Seen) {
        let mut watchers = self.watchers.lock();
        watchers.retain(|other| !Arc::ptr_eq(other, seen));
        self.count.store(watchers.len(), Ordering::Relaxed);
    }
}

/// Forgets a watcher that has seen enough, or went away.
struct Watch<'a>(&'a Profiles, Seen);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.forget(&self.1);
    }
}

/// Watches for as long as is asked, then tells.
pub(crate) async fn handle(app: &App, query: Option<&str>) -> Result<Response, HttpError> {
    let seconds = seconds(Params::of_url(query).get("seconds"))?;
    let busy = || HttpError::overloaded("too many watch already", Duration::from_secs(10));
    let watch = Watch(&app.profiles, app.profiles.watch().ok_or_else(busy)?);
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let text = shown(&watch.1.lock());
    Ok(response::with_body(StatusCode::OK, JSON, ResponseBody::whole(text)))
}

fn seconds(text: &str) -> Result<u64, HttpError> {
    let seconds: i64 = match text {
        "" => SECONDS_DEFAULT,
        text => text.parse().map_err(|_| {
            HttpError::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))
        })?,
    };
    if seconds > SECONDS_MAX {
        let text = format!("exceeded maximum interval time: {seconds}s > 6h");
        return Err(HttpError::bad_request(text));
    }
    Ok(seconds.max(0).cast_unsigned())
}

fn shown(seen: &BTreeMap<String, Counts>) -> String {
    let line = |(sender, counts): (&String, &Counts)| {
        let Counts { writes, queries } = counts;
        let sender = serde_json::Value::from(sender.as_str());
        format!("{sender}: {{\"writes\":{writes},\"queries\":{queries}}}")
    };
    let lines: Vec<String> = seen.iter().map(line).collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_while_somebody_watches() {
        let profiles = Profiles::default();
        let peer = Some(IpAddr::from([127, 0, 0, 1]));
        profiles.count(Route::Write, None, peer);
        let seen = profiles.watch().expect("there is room");
        profiles.count(Route::Write, None, peer);
        profiles.count(Route::Query, Some("ann"), peer);
        profiles.count(Route::Query, Some("ann"), peer);
        profiles.count(Route::Ping, Some("ann"), peer);
        assert_eq!(
            shown(&seen.lock()),
            "{\n\"127.0.0.1\": {\"writes\":1,\"queries\":0},\n\"ann:127.0.0.1\": \
             {\"writes\":0,\"queries\":2}\n}\n"
        );
        drop(Watch(&profiles, Arc::clone(&seen)));
        profiles.count(Route::Write, None, peer);
        assert_eq!(seen.lock().len(), 2);
        assert_eq!(shown(&BTreeMap::new()), "{\n\n}\n");
    }

    #[test]
    fn how_long() {
        assert_eq!(seconds(""), Ok(10));
        assert_eq!(seconds("-1"), Ok(0));
        assert_eq!(
            seconds("25200").unwrap_err().text,
            "exceeded maximum interval time: 25200s > 6h"
        );
        assert_eq!(
            seconds("0s").unwrap_err().text,
            "strconv.ParseInt: parsing \"0s\": invalid syntax"
        );
    }
}
