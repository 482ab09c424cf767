//! What time it is in the cluster: a moment that everything acknowledged so far lies before.
//!
//! Timestamps come from the clocks of the tablet servers, which differ a little. What a server has
//! acknowledged it has stamped with its own clock, so the latest of all clocks is after every row
//! that anybody was told is stored, also by another client.
//!
//! A server that does not answer at all acknowledges nothing either, so the others are enough. One
//! that answers "too busy" goes on acknowledging, and is asked until it tells.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prost::Message;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::client::{Client, TabletServer};
use crate::error::Error;
use crate::proto::Empty;
use crate::retry::{Attempts, Reaction, on_call_error};
use crate::rpc::{Body, Call, CallError, Endpoint};

const GENERIC_SERVICE: &str = "kudu.server.GenericService";
/// Longest wait for a clock.
const CLOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest wait for the clock of a server that did not answer the last time.
const SILENT_TIMEOUT: Duration = Duration::from_millis(50);
/// How long the list of servers is used.
const SERVERS_TTL: Duration = Duration::from_secs(30);
/// Servers that the master has not heard of for so long are not asked.
const SILENCE_MAX: Duration = Duration::from_secs(60);

#[derive(Clone, PartialEq, Eq, Message)]
struct ServerClockResponse {
    #[prost(fixed64, optional, tag = "1")]
    timestamp: Option<u64>,
}

/// The servers whose clocks are asked.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    known: Mutex<Known>,
}

#[derive(Clone, Debug, Default)]
struct Known {
    learned: Option<Instant>,
    servers: Vec<Arc<Clock>>,
}

#[derive(Debug)]
struct Clock {
    endpoint: Endpoint,
    silent_since: Mutex<Option<Instant>>,
}

impl Clock {
    fn is_silent(&self) -> bool {
        self.silent_since.lock().is_some()
    }
}

impl Client {
    /// A timestamp after everything that any client was told is stored before this call began: a
    /// snapshot at it has all of that.
    ///
    /// # Errors
    /// No tablet server tells its time, or one that answers does not.
    pub async fn current_timestamp(&self) -> Result<u64, Error> {
        let operation = "asking the tablet servers for the time".to_owned();
        let mut attempts = self.attempts(operation.clone(), None);
        loop {
            let servers = self.clocks(&mut attempts).await?;
            let mut latest = None;
            let count = servers.len();
            if let [alone] = servers.as_slice() {
                latest = self.ask_clock(alone, attempts.part(operation.clone())).await?;
            } else {
                let mut asking = JoinSet::new();
                for clock in servers {
                    let (client, part) = (self.clone(), attempts.part(operation.clone()));
                    asking.spawn(async move { client.ask_clock(&clock, part).await });
                }
                while let Some(told) = asking.join_next().await {
                    let told = told.map_err(|e| Error::protocol("clock", e.to_string()))?;
                    latest = latest.max(told?);
                }
            }
            if let Some(latest) = latest {
                self.observe_timestamp(latest);
                return Ok(self.last_timestamp() + 1);
            }
            let message = format!("none of {count} tablet servers tells its time");
            attempts.failed("cluster", &message);
            self.inner.clocks.known.lock().learned = None;
            attempts.back_off().await?;
        }
    }

    /// What a server's clock says; `None`: it does not answer.
    async fn ask_clock(&self, clock: &Clock, mut attempts: Attempts) -> Result<Option<u64>, Error> {
        let server = clock.endpoint.to_string();
        // A connection that was idle may just have been closed: a new one tells more.
        let mut another_connection = true;
        loop {
            let patience = if clock.is_silent() { SILENT_TIMEOUT } else { CLOCK_TIMEOUT };
            let timeout = attempts.next_timeout()?.min(patience);
            let error = match self.server_clock(&clock.endpoint, timeout).await {
                Ok(timestamp) => {
                    *clock.silent_since.lock() = None;
                    return Ok(timestamp);
                }
                Err(error) => error,
            };
            attempts.failed(&server, &error);
            let lost = matches!(error, CallError::Network(_));
            match on_call_error(&error, &server, "ServerClock") {
                Reaction::Wait => attempts.back_off().await?,
                Reaction::NewAuthentication => {
                    self.inner.masters.renew_authentication(&mut attempts).await?;
                    attempts.back_off().await?;
                }
                Reaction::Fail(error) => return Err(error),
                _ if lost && another_connection => another_connection = false,
                _ => {
                    clock.silent_since.lock().get_or_insert_with(Instant::now);
                    return Ok(None);
                }
            }
        }
    }

    async fn server_clock(
        &self,
        endpoint: &Endpoint,
        timeout: Duration,
    ) -> Result<Option<u64>, CallError> {
        let call = Call {
            service: GENERIC_SERVICE,
            method: "ServerClock",
            features: Vec::new(),
            request_id: None,
            timeout,
            body: Body::message(&Empty {}),
        };
        let (_, answer) = self.inner.pool.call(endpoint, true, call).await?;
        Ok(answer.decode::<ServerClockResponse>()?.timestamp)
    }

    async fn clocks(&self, attempts: &mut Attempts) -> Result<Vec<Arc<Clock>>, Error> {
        let known = self.inner.clocks.known.lock().clone();
        if known.learned.is_some_and(|learned| learned.elapsed() < SERVERS_TTL) {
            return Ok(known.servers);
        }
        let listed = self.tablet_servers(attempts).await?;
        let mut known = self.inner.clocks.known.lock();
        known.servers = merge(&known.servers, &listed)?;
        known.learned = Some(Instant::now());
        Ok(known.servers.clone())
    }
}

/// The servers to be asked from now on. A master that has just started lists only those that have
/// reported to it since, so one that is known stays until it is known to be gone.
fn merge(known: &[Arc<Clock>], listed: &[TabletServer]) -> Result<Vec<Arc<Clock>>, Error> {
    let silence_max_ms = SILENCE_MAX.as_millis();
    let mut servers = Vec::new();
    let mut gone = Vec::new();
    for server in listed {
        let Some(address) = server.addresses.first() else { continue };
        let endpoint = crate::config::parse_address(address, 0)?;
        if u128::try_from(server.heartbeat_age_ms).unwrap_or(0) >= silence_max_ms {
            gone.push(endpoint);
            continue;
        }
        let same = known.iter().find(|clock| clock.endpoint == endpoint);
        let fresh = || Arc::new(Clock { endpoint, silent_since: Mutex::default() });
        servers.push(same.map_or_else(fresh, Arc::clone));
    }
    for clock in known {
        let is_listed = servers.iter().any(|other| other.endpoint == clock.endpoint);
        let silent_since = *clock.silent_since.lock();
        let is_lost = silent_since.is_some_and(|since| since.elapsed() >= SILENCE_MAX);
        if !is_listed && !is_lost && !gone.contains(&clock.endpoint) {
            servers.push(Arc::clone(clock));
        }
    }
    Ok(servers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(address: &str, heartbeat_age_ms: i32) -> TabletServer {
        TabletServer {
            uuid: String::new(),
            addresses: vec![address.to_owned()],
            version: None,
            heartbeat_age_ms,
        }
    }

    fn addresses(servers: &[Arc<Clock>]) -> Vec<String> {
        servers.iter().map(|clock| clock.endpoint.to_string()).collect()
    }

    #[test]
    fn a_master_that_has_just_started_hides_no_server() {
        let all = [listed("a:1", 0), listed("[::1]:2", 0), listed("c:3", 0)];
        let known = merge(&[], &all).unwrap();
        assert_eq!(addresses(&known), ["a:1", "[::1]:2", "c:3"]);
        let some = merge(&known, &all[1..2]).unwrap();
        assert_eq!(addresses(&some), ["[::1]:2", "a:1", "c:3"]);
        assert!(Arc::ptr_eq(&some[0], &known[1]), "what is known of a server stays");
    }

    #[test]
    fn lost_servers_go() {
        let known = merge(&[], &[listed("a:1", 0), listed("b:2", 0)]).unwrap();
        let reported = merge(&known, &[listed("a:1", 60_000), listed("b:2", 0)]).unwrap();
        assert_eq!(addresses(&reported), ["b:2"]);
        assert_eq!(addresses(&merge(&known, &[]).unwrap()), ["a:1", "b:2"]);
        let long_ago = Instant::now().checked_sub(SILENCE_MAX);
        *known[0].silent_since.lock() = Some(long_ago.unwrap());
        assert_eq!(addresses(&merge(&known, &[]).unwrap()), ["b:2"]);
    }
}
