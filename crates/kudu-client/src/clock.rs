//! What time it is in the cluster: a moment that everything acknowledged so far lies before.
//!
//! Timestamps come from the clocks of the tablet servers, which differ a little. What a server has
//! acknowledged it has stamped with its own clock, so the latest of all clocks is after every row
//! that anybody was told is stored, also by another client.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prost::Message;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::client::Client;
use crate::error::Error;
use crate::proto::Empty;
use crate::rpc::{Body, Call, Endpoint};

const GENERIC_SERVICE: &str = "kudu.server.GenericService";
/// Longest wait for a clock: a server that does not answer acknowledges nothing, either.
const CLOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the list of servers is used.
const SERVERS_TTL: Duration = Duration::from_secs(30);
/// How long a server that did not answer is left alone.
const SILENT_FOR: Duration = Duration::from_secs(5);
/// Servers that the master has not heard of for so long are not asked, milliseconds.
const HEARTBEAT_AGE_MAX_MS: i32 = 60_000;

#[derive(Clone, PartialEq, Eq, Message)]
struct ServerClockResponse {
    #[prost(fixed64, optional, tag = "1")]
    timestamp: Option<u64>,
}

/// The servers whose clocks are asked.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    known: Mutex<Option<Known>>,
}

#[derive(Clone, Debug)]
struct Known {
    learned: Instant,
    servers: Arc<Vec<Clock>>,
}

#[derive(Debug)]
struct Clock {
    endpoint: Endpoint,
    silent_until: Mutex<Option<Instant>>,
}

impl Client {
    /// A timestamp after everything that any client was told is stored before this call began: a
    /// snapshot at it has all of that.
    ///
    /// # Errors
    /// No tablet server tells its time.
    pub async fn current_timestamp(&self) -> Result<u64, Error> {
        let servers = self.clocks().await?;
        let now = Instant::now();
        let awake = |clock: &Clock| clock.silent_until.lock().is_none_or(|until| until <= now);
        let mut asking = JoinSet::new();
        let mut alone = None;
        for at in 0..servers.len() {
            let Some(clock) = servers.get(at).filter(|clock| awake(clock)) else { continue };
            if servers.len() == 1 {
                alone = self.ask_clock(clock).await;
                continue;
            }
            let (client, servers) = (self.clone(), Arc::clone(&servers));
            asking.spawn(async move {
                match servers.get(at) {
                    Some(clock) => client.ask_clock(clock).await,
                    None => None,
                }
            });
        }
        let mut latest = alone;
        while let Some(told) = asking.join_next().await {
            latest = latest.max(told.ok().flatten());
        }
        let Some(latest) = latest else {
            *self.inner.clocks.known.lock() = None;
            let trace = format!("none of {} servers answered", servers.len());
            let operation = "asking the tablet servers for the time".to_owned();
            return Err(Error::TimedOut { operation, limit: CLOCK_TIMEOUT, trace });
        };
        self.observe_timestamp(latest);
        Ok(self.last_timestamp() + 1)
    }

    async fn ask_clock(&self, clock: &Clock) -> Option<u64> {
        let call = Call {
            service: GENERIC_SERVICE,
            method: "ServerClock",
            features: Vec::new(),
            request_id: None,
            timeout: CLOCK_TIMEOUT,
            body: Body::message(&Empty {}),
        };
        let answered = match self.inner.pool.call(&clock.endpoint, true, call).await {
            Ok((_, answer)) => answer.decode::<ServerClockResponse>().map(|told| told.timestamp),
            Err(error) => Err(error),
        };
        match answered {
            Ok(timestamp) => {
                *clock.silent_until.lock() = None;
                timestamp
            }
            Err(error) => {
                tracing::debug!("{} does not tell its time: {error}", clock.endpoint);
                *clock.silent_until.lock() = Some(Instant::now() + SILENT_FOR);
                None
            }
        }
    }

    async fn clocks(&self) -> Result<Arc<Vec<Clock>>, Error> {
        let known = self.inner.clocks.known.lock().clone();
        if let Some(known) = known.filter(|k| k.learned.elapsed() < SERVERS_TTL) {
            return Ok(known.servers);
        }
        let listed = self.list_tablet_servers().await?;
        let mut servers = Vec::new();
        for server in listed.iter().filter(|s| s.heartbeat_age_ms < HEARTBEAT_AGE_MAX_MS) {
            let Some(address) = server.addresses.first() else { continue };
            let endpoint = crate::config::parse_address(address, 0)?;
            servers.push(Clock { endpoint, silent_until: Mutex::new(None) });
        }
        let servers = Arc::new(servers);
        let known = Known { learned: Instant::now(), servers: Arc::clone(&servers) };
        *self.inner.clocks.known.lock() = Some(known);
        Ok(servers)
    }
}
