//! Calls to the leading master, wherever it is.
//!
//! Invariants
//! - Masters are talked to with primary credentials only, since they issue a token for the tablet
//!   servers on no other connection.
//! - One discovery runs at a time; whoever needs a leader meanwhile waits for its result.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prost::Message;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

use crate::config::ClientConfig;
use crate::error::Error;
use crate::proto::{
    ConnectToMasterResponse, CreateTableResponse, Empty, ErrorOnlyResponse,
    GetTableLocationsResponse, GetTableSchemaResponse, GetTableStatisticsResponse, IsDoneResponse,
    ListTablesResponse, ListTabletServersResponse, MASTER_SERVICE, ServiceError, role,
};
use crate::retry::{Attempts, Reaction, on_call_error, status};
use crate::rpc::{Body, Call, CallError, Endpoint, Pool};

/// Codes of errors of a master.
pub(crate) mod master_code {
    pub(crate) const TABLE_NOT_FOUND: i32 = 3;
    pub(crate) const TABLE_ALREADY_PRESENT: i32 = 4;
    pub(crate) const CATALOG_MANAGER_NOT_INITIALIZED: i32 = 6;
    pub(crate) const NOT_THE_LEADER: i32 = 7;
    pub(crate) const REPLICATION_FACTOR_TOO_HIGH: i32 = 8;
    pub(crate) const TABLET_NOT_RUNNING: i32 = 9;
}

/// Answers of masters all carry an error of their own.
pub(crate) trait MasterAnswer: Message + Default {
    fn error(&self) -> Option<&ServiceError>;
}

macro_rules! master_answers {
    ($($answer:ty),*) => {
        $(impl MasterAnswer for $answer {
            fn error(&self) -> Option<&ServiceError> {
                self.error.as_ref()
            }
        })*
    };
}

master_answers!(
    ConnectToMasterResponse,
    CreateTableResponse,
    ErrorOnlyResponse,
    GetTableLocationsResponse,
    GetTableSchemaResponse,
    GetTableStatisticsResponse,
    IsDoneResponse,
    ListTablesResponse,
    ListTabletServersResponse
);

/// What a call to a master came to.
#[derive(Debug)]
pub(crate) struct MasterReply<R> {
    pub(crate) answer: Result<R, ServiceError>,
    /// Whether an attempt before this one may have been carried out.
    pub(crate) repeated: bool,
}

/// A master as the client finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Master {
    /// Where it listens, `host:port`.
    pub address: String,
    /// Whether it is one of those that the client was given.
    pub is_given: bool,
    /// How it answers.
    pub state: MasterState,
}

/// How a master answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MasterState {
    /// It leads.
    Leads,
    /// It answers, and another one leads.
    Follows,
    /// It does not answer as a master should; why.
    Failed(String),
}

/// The leading master, as far as known.
#[derive(Clone, Debug)]
struct Leader {
    endpoint: Endpoint,
    cluster_id: Option<String>,
}

type LeaderSlot = Arc<OnceCell<Leader>>;

/// The masters of a cluster.
#[derive(Debug)]
pub(crate) struct Masters {
    endpoints: Vec<Endpoint>,
    pool: Arc<Pool>,
    leader: Mutex<LeaderSlot>,
}

impl Masters {
    pub(crate) fn new(config: &ClientConfig, pool: Arc<Pool>) -> Self {
        Self { endpoints: config.masters.clone(), pool, leader: Mutex::new(LeaderSlot::default()) }
    }

    /// Identity of the cluster, if its masters tell (Kudu 1.15 does).
    pub(crate) async fn cluster_id(
        &self,
        attempts: &mut Attempts,
    ) -> Result<Option<String>, Error> {
        let (leader, _) = self.leader(attempts).await?;
        Ok(leader.cluster_id)
    }

    /// Where the leader is.
    pub(crate) async fn leader_address(&self, attempts: &mut Attempts) -> Result<String, Error> {
        let (leader, _) = self.leader(attempts).await?;
        Ok(leader.endpoint.to_string())
    }

    /// How each master answers now.
    pub(crate) async fn list(&self, attempts: &mut Attempts) -> Result<Vec<Master>, Error> {
        // Only a leader is known to name all of them.
        let (leader, _) = self.leader(attempts).await?;
        let timeout = attempts.next_timeout()?;
        let told = connect_to_master(&self.pool, &leader.endpoint, timeout).await;
        let told = told.map(|answer| answer.master_addrs).unwrap_or_default();
        let named: Vec<Endpoint> =
            told.iter().filter_map(|address| Endpoint::try_from(address).ok()).collect();
        // Names and addresses may stand for the same machines: only more masters are other ones.
        let more = named.len() > self.endpoints.len();
        let mut wanted = if more { named } else { self.endpoints.clone() };
        wanted.sort_unstable();
        wanted.dedup();
        let timeout = attempts.next_timeout()?;
        let mut asked = JoinSet::new();
        for endpoint in wanted {
            let pool = Arc::clone(&self.pool);
            asked.spawn(async move {
                let answer = connect_to_master(&pool, &endpoint, timeout).await;
                (endpoint, answer)
            });
        }
        let mut masters = Vec::new();
        while let Some(joined) = asked.join_next().await {
            let (endpoint, answer) = joined.map_err(|e| Error::OutcomeUnknown(e.to_string()))?;
            let state = match answer {
                Ok(ConnectToMasterResponse { error: Some(error), .. }) => {
                    MasterState::Failed(error.status.message.unwrap_or_default())
                }
                Ok(answer) if answer.role == Some(role::LEADER) => MasterState::Leads,
                Ok(_) => MasterState::Follows,
                Err(error) => MasterState::Failed(error.to_string()),
            };
            let is_given = self.endpoints.contains(&endpoint);
            masters.push(Master { address: endpoint.to_string(), is_given, state });
        }
        masters.sort_unstable_by(|a, b| a.address.cmp(&b.address));
        Ok(masters)
    }

    /// Gets a new authentication token: whatever the leader was, it is asked again. Nothing to do
    /// where another call has got one since this attempt began.
    pub(crate) async fn renew_authentication(&self, attempts: &mut Attempts) -> Result<(), Error> {
        if self.pool.has_credentials_since(attempts.attempt_began()) {
            return Ok(());
        }
        self.pool.set_credentials(None);
        let slot = Arc::clone(&self.leader.lock());
        self.forget(&slot);
        self.leader(attempts).await.map(drop)
    }

    /// Makes a call, repeating it until a leading master has answered. An error that the caller
    /// has to judge is part of the reply.
    pub(crate) async fn call<R: MasterAnswer>(
        &self,
        method: &'static str,
        request: &impl Message,
        features: &[u32],
        attempts: &mut Attempts,
    ) -> Result<MasterReply<R>, Error> {
        let body = Body::message(request);
        let mut repeated = false;
        loop {
            let (leader, slot) = self.leader(attempts).await?;
            let server = leader.endpoint.to_string();
            let call = Call {
                service: MASTER_SERVICE,
                method,
                features: features.to_vec(),
                request_id: None,
                timeout: attempts.next_timeout()?,
                body: body.clone(),
            };
            match self.exchange::<R>(&leader.endpoint, call).await {
                Ok(answer) => {
                    let Some(error) = answer.error().cloned() else {
                        return Ok(MasterReply { answer: Ok(answer), repeated });
                    };
                    let message = error.status.message.as_deref().unwrap_or_default();
                    match error.code {
                        master_code::NOT_THE_LEADER
                        | master_code::CATALOG_MANAGER_NOT_INITIALIZED => self.forget(&slot),
                        master_code::TABLET_NOT_RUNNING => {
                            return Ok(MasterReply { answer: Err(error), repeated });
                        }
                        _ if error.status.code == status::SERVICE_UNAVAILABLE => {}
                        _ => return Ok(MasterReply { answer: Err(error), repeated }),
                    }
                    attempts.failed(&server, &message);
                }
                Err(error) => {
                    attempts.failed(&server, &error);
                    match on_call_error(&error, &server, method) {
                        Reaction::Fail(error) => return Err(error),
                        Reaction::ServerFailed => {
                            repeated = true;
                            self.forget(&slot);
                        }
                        _ => {}
                    }
                }
            }
            attempts.back_off().await?;
        }
    }

    async fn exchange<R: MasterAnswer>(&self, to: &Endpoint, call: Call) -> Result<R, CallError> {
        self.pool.call(to, false, call).await?.1.decode()
    }

    /// The next call looks for the leader anew, unless somebody else has found one since.
    fn forget(&self, slot: &LeaderSlot) {
        let mut current = self.leader.lock();
        if Arc::ptr_eq(&current, slot) {
            *current = LeaderSlot::default();
        }
    }

    async fn leader(&self, attempts: &mut Attempts) -> Result<(Leader, LeaderSlot), Error> {
        let slot = Arc::clone(&self.leader.lock());
        // Whoever discovers may have more time than this one.
        let left = attempts.until_deadline();
        let found = tokio::time::timeout(left, slot.get_or_try_init(|| self.discover(attempts)));
        match found.await {
            Ok(found) => {
                let found = found?.clone();
                Ok((found, slot))
            }
            Err(_) => Err(attempts.timed_out()),
        }
    }

    /// Asks all masters until one says that it leads.
    async fn discover(&self, attempts: &mut Attempts) -> Result<Leader, Error> {
        loop {
            let timeout = attempts.next_timeout()?;
            let mut asked = JoinSet::new();
            for endpoint in self.endpoints.clone() {
                let pool = Arc::clone(&self.pool);
                asked.spawn(async move {
                    let answer = connect_to_master(&pool, &endpoint, timeout).await;
                    (endpoint, answer)
                });
            }
            let mut reachable = 0;
            let mut known: Vec<Endpoint> = Vec::new();
            let mut last = String::new();
            // One master that refuses says nothing about the others.
            let mut refusal = None;
            while let Some(joined) = asked.join_next().await {
                let Ok((endpoint, answer)) = joined else { continue };
                let server = endpoint.to_string();
                match answer {
                    Ok(answer) if answer.role == Some(role::LEADER) && answer.error.is_none() => {
                        return Ok(self.adopt(endpoint, answer));
                    }
                    Ok(answer) => {
                        reachable += 1;
                        attempts.failed(&server, &"is not the leading master");
                        let others = answer.master_addrs.iter();
                        known.extend(others.filter_map(|a| Endpoint::try_from(a).ok()));
                    }
                    Err(error) => {
                        last = format!("{server}: {error}");
                        attempts.failed(&server, &error);
                        match on_call_error(&error, &server, "ConnectToMaster") {
                            Reaction::Fail(error) => refusal = Some(error),
                            Reaction::Wait => reachable += 1,
                            _ => {}
                        }
                    }
                }
            }
            if let Some(error) = refusal {
                return Err(error);
            }
            self.check_missing(&known)?;
            if let Err(error) = attempts.back_off().await {
                return Err(if reachable == 0 { self.unreachable(last) } else { error });
            }
        }
    }

    fn adopt(&self, endpoint: Endpoint, answer: ConnectToMasterResponse) -> Leader {
        tracing::debug!(master = %endpoint, "leading master found");
        if let Some(token) = answer.authn_token
            && !answer.ca_cert_der.is_empty()
        {
            self.pool.set_credentials(Some((token, answer.ca_cert_der)));
        }
        Leader { endpoint, cluster_id: answer.cluster_id }
    }

    /// The leader may be a master that the client was not told of.
    fn check_missing(&self, known: &[Endpoint]) -> Result<(), Error> {
        let mut missing: Vec<String> = known
            .iter()
            .filter(|endpoint| !self.endpoints.contains(endpoint))
            .map(ToString::to_string)
            .collect();
        missing.sort_unstable();
        missing.dedup();
        // Names and addresses may stand for the same machines: only more masters are missing ones.
        let mut all: Vec<&Endpoint> = known.iter().collect();
        all.sort_unstable();
        all.dedup();
        if all.len() <= self.endpoints.len() {
            return Ok(());
        }
        Err(Error::MastersMissing { missing: missing.join(", ") })
    }

    fn unreachable(&self, last: String) -> Error {
        let masters: Vec<String> = self.endpoints.iter().map(ToString::to_string).collect();
        Error::MastersUnreachable { masters: masters.join(", "), last }
    }
}

async fn connect_to_master(
    pool: &Pool,
    endpoint: &Endpoint,
    timeout: Duration,
) -> Result<ConnectToMasterResponse, CallError> {
    let call = Call {
        service: MASTER_SERVICE,
        method: "ConnectToMaster",
        features: Vec::new(),
        request_id: None,
        timeout,
        body: Body::message(&Empty {}),
    };
    pool.call(endpoint, false, call).await?.1.decode()
}
