//! Connections to servers, made when needed, shared by all calls.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::connection::{Answer, Call, CallError, Connection};
use super::negotiate::{Peer, negotiate};
use super::transport::Transport;
use crate::config::Security;
use crate::proto::{HostPort, SignedToken};

/// Longest wait for a TCP connection to one address of a host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for TCP and negotiation together.
const NEGOTIATION_TIMEOUT: Duration = Duration::from_secs(10);

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Endpoint {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl TryFrom<&HostPort> for Endpoint {
    type Error = String;

    fn try_from(message: &HostPort) -> Result<Self, String> {
        let port = u16::try_from(message.port).map_err(|_| format!("port {}", message.port))?;
        Ok(Self { host: message.host.clone(), port })
    }
}

/// A connection that is there, is being made, or still has to be made.
type Slot = Arc<OnceCell<Connection>>;

/// All connections of a client.
#[derive(Debug)]
pub(crate) struct Pool {
    security: Security,
    overrides: HashMap<String, Endpoint>,
    /// By server, and whether the cluster's token may be used: a master issues a new token only on
    /// a connection that was authenticated otherwise.
    slots: Mutex<HashMap<(Endpoint, bool), Slot>>,
    credentials: Mutex<Option<Credentials>>,
}

/// The cluster's token and certificates.
#[derive(Debug)]
struct Credentials {
    told: Instant,
    token: SignedToken,
    authorities: Vec<Vec<u8>>,
}

impl Pool {
    pub(crate) fn new(security: Security, overrides: HashMap<String, Endpoint>) -> Self {
        Self {
            security,
            overrides,
            slots: Mutex::new(HashMap::new()),
            credentials: Mutex::new(None),
        }
    }

    /// Sets or forgets the token that tablet servers are shown, with the cluster's certificates.
    pub(crate) fn set_credentials(&self, credentials: Option<(SignedToken, Vec<Vec<u8>>)>) {
        let told = Instant::now();
        *self.credentials.lock() =
            credentials.map(|(token, authorities)| Credentials { told, token, authorities });
    }

    /// Whether a master has told a token after `since`.
    pub(crate) fn has_credentials_since(&self, since: Instant) -> bool {
        self.credentials.lock().as_ref().is_some_and(|known| known.told > since)
    }

    /// The cluster's certificates (DER), once a master has told them.
    pub(crate) fn authorities(&self) -> Vec<Vec<u8>> {
        let known = self.credentials.lock();
        known.as_ref().map(|known| known.authorities.clone()).unwrap_or_default()
    }

    /// Makes a call on a connection to the server; the call's time limit is for both.
    pub(crate) async fn call(
        &self,
        endpoint: &Endpoint,
        may_use_token: bool,
        mut call: Call,
    ) -> Result<(Connection, Answer), CallError> {
        let begun = Instant::now();
        let limit = call.timeout;
        let connecting = self.connection(endpoint, may_use_token);
        let connected = tokio::time::timeout(limit, connecting).await;
        let connection = connected.map_err(|_| CallError::TimedOut(limit))??;
        call.timeout = limit.saturating_sub(begun.elapsed());
        let answer = connection.call(call).await?;
        Ok((connection, answer))
    }

    /// A negotiated connection to the server, made now if there is none.
    async fn connection(
        &self,
        endpoint: &Endpoint,
        may_use_token: bool,
    ) -> Result<Connection, CallError> {
        let slot = self.slot(endpoint, may_use_token);
        let made = slot.get_or_try_init(|| async {
            let token = may_use_token.then(|| self.credentials()).flatten();
            tokio::time::timeout(NEGOTIATION_TIMEOUT, self.connect(endpoint, token))
                .await
                .map_err(|_| CallError::TimedOut(NEGOTIATION_TIMEOUT))?
        });
        made.await.cloned()
    }

    fn credentials(&self) -> Option<(SignedToken, Vec<Vec<u8>>)> {
        let known = self.credentials.lock();
        known.as_ref().map(|known| (known.token.clone(), known.authorities.clone()))
    }

    fn slot(&self, endpoint: &Endpoint, may_use_token: bool) -> Slot {
        let mut slots = self.slots.lock();
        let slot = slots.entry((endpoint.clone(), may_use_token)).or_default();
        if slot.get().is_some_and(Connection::is_closed) {
            *slot = Slot::default();
        }
        Arc::clone(slot)
    }

    async fn connect(
        &self,
        endpoint: &Endpoint,
        token: Option<(SignedToken, Vec<Vec<u8>>)>,
    ) -> Result<Connection, CallError> {
        let address = endpoint.to_string();
        let target = self.overrides.get(&address).unwrap_or(endpoint);
        let resolved = tokio::net::lookup_host((target.host.as_str(), target.port))
            .await
            .map_err(|e| CallError::Network(format!("cannot resolve {target}: {e}")))?;
        let mut last = CallError::Network(format!("{target} has no address"));
        for socket_address in resolved {
            let stream = match connect_to(socket_address).await {
                Ok(stream) => stream,
                Err(error) => {
                    last = CallError::Network(format!("cannot connect to {target}: {error}"));
                    continue;
                }
            };
            let peer = Peer {
                address: &address,
                host: &target.host,
                is_loopback: is_local(&stream),
                security: &self.security,
                token: token.clone(),
            };
            match negotiate(Transport::new(stream), &peer).await {
                Err(CallError::Network(message)) => {
                    last = CallError::Network(format!("{target} ended negotiation: {message}"));
                }
                result => return result,
            }
        }
        Err(last)
    }
}

async fn connect_to(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The server takes a connection as local by the same rule.
fn is_local(stream: &TcpStream) -> bool {
    match (stream.peer_addr(), stream.local_addr()) {
        (Ok(peer), Ok(local)) => peer.ip().is_loopback() || peer.ip() == local.ip(),
        _ => false,
    }
}
