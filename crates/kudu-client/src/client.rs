//! The client: what all tables of a cluster share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::clock::Clocks;
use crate::cluster::locations::Locations;
use crate::cluster::master::{Master, MasterAnswer, MasterReply, Masters, master_code};
use crate::config::ClientConfig;
use crate::error::Error;
use crate::proto::{
    Empty, GetTableSchemaResponse, GetTableStatisticsResponse, ListTablesRequest,
    ListTablesResponse, ListTabletServersResponse, ServiceError, TableIdentifier, TableRequest,
    master_feature,
};
use crate::retry::Attempts;
use crate::rpc::{Endpoint, Pool};
use crate::table::Table;
use crate::write::Requests;

/// Unit of the budget for bytes under way: permits of the semaphore stand for so many bytes.
pub(crate) const BUDGET_UNIT: usize = 1024;

/// A client of one cluster. Clones share connections and everything the client has learned.
///
/// Must be used inside a tokio runtime with time and network.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) config: ClientConfig,
    pub(crate) pool: Arc<Pool>,
    pub(crate) masters: Masters,
    pub(crate) requests: Requests,
    pub(crate) write_budget: Semaphore,
    pub(crate) write_budget_permits: u32,
    timestamp: AtomicU64,
    pub(crate) clocks: Clocks,
    /// Shared by all handles of a table, also those opened after its schema changed.
    locations: Mutex<HashMap<Bytes, Weak<Locations>>>,
}

/// A server that holds tablets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TabletServer {
    /// Its identity.
    pub uuid: String,
    /// Where it listens, `host:port`.
    pub addresses: Vec<String>,
    /// Version of Kudu, if it tells.
    pub version: Option<String>,
    /// Time since the leading master heard from it, milliseconds.
    pub heartbeat_age_ms: i32,
}

/// Size of a table, as the master last heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableStatistics {
    /// Bytes on disk over all leading replicas.
    pub disk_bytes: Option<i64>,
    /// Rows; lags behind by some heartbeats.
    pub live_rows: Option<i64>,
}

impl Client {
    /// A client with these settings. Nothing is sent before the first call.
    #[must_use]
    pub fn new(config: ClientConfig) -> Self {
        let pool = Arc::new(Pool::new(config.security.clone(), config.overrides.clone()));
        let units = config.write_bytes_in_flight_max / BUDGET_UNIT;
        let permits = u32::try_from(units).unwrap_or(u32::MAX).clamp(1, 1 << 28);
        let inner = Inner {
            masters: Masters::new(&config, Arc::clone(&pool)),
            pool,
            requests: Requests::new(),
            write_budget: Semaphore::new(permits as usize),
            write_budget_permits: permits,
            timestamp: AtomicU64::new(0),
            clocks: Clocks::default(),
            locations: Mutex::new(HashMap::new()),
            config,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Waits until a leading master answers, and gives the identity of the cluster.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn connect(&self) -> Result<Option<String>, Error> {
        let mut attempts = self.attempts("connecting to the masters".to_owned(), None);
        self.inner.masters.cluster_id(&mut attempts).await
    }

    /// The certificates (DER) that the cluster's servers are signed by, as its master tells: to be
    /// pinned from now on, if the master was believed rightly.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn authorities(&self) -> Result<Vec<Vec<u8>>, Error> {
        self.connect().await?;
        Ok(self.inner.pool.authorities())
    }

    /// Address of the master that leads, `host:port`.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn leading_master(&self) -> Result<String, Error> {
        let mut attempts = self.attempts("finding the leading master".to_owned(), None);
        self.inner.masters.leader_address(&mut attempts).await
    }

    /// The masters of the cluster and how each answers this client, in the order of addresses: those
    /// that were given, or those that the leader names if these are more.
    ///
    /// # Errors
    /// [`Error`]: no leading master answers.
    pub async fn list_masters(&self) -> Result<Vec<Master>, Error> {
        let mut attempts = self.attempts("asking the masters".to_owned(), None);
        self.inner.masters.list(&mut attempts).await
    }

    /// Names of tables that contain `filter`.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list_tables(&self, filter: &str) -> Result<Vec<String>, Error> {
        let filter = (!filter.is_empty()).then(|| filter.to_owned());
        let request = ListTablesRequest { name_filter: filter };
        let answer: ListTablesResponse = self.ask_master("ListTables", &request).await?;
        Ok(answer.tables.into_iter().map(|table| table.name).collect())
    }

    /// The tablet servers that have reported to the leading master.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list_tablet_servers(&self) -> Result<Vec<TabletServer>, Error> {
        let mut attempts = self.attempts("ListTabletServers".to_owned(), None);
        self.tablet_servers(&mut attempts).await
    }

    pub(crate) async fn tablet_servers(
        &self,
        attempts: &mut Attempts,
    ) -> Result<Vec<TabletServer>, Error> {
        let method = "ListTabletServers";
        let reply: MasterReply<ListTabletServersResponse> =
            self.inner.masters.call(method, &Empty {}, &[], attempts).await?;
        let answer = reply.answer.map_err(|e| master_error(method, "", &e))?;
        let servers = answer.servers.into_iter().map(|server| {
            let registration = server.registration.unwrap_or_default();
            let addresses = registration.rpc_addresses.iter();
            let addresses = addresses.filter_map(|a| Endpoint::try_from(a).ok());
            TabletServer {
                uuid: String::from_utf8_lossy(&server.instance_id.permanent_uuid).into_owned(),
                addresses: addresses.map(|endpoint| endpoint.to_string()).collect(),
                version: registration.software_version,
                heartbeat_age_ms: server.millis_since_heartbeat.unwrap_or(0),
            }
        });
        Ok(servers.collect())
    }

    /// Opens a table: reads its schema as it is now.
    ///
    /// # Errors
    /// [`Error::TableNotFound`] and others.
    pub async fn open_table(&self, name: &str) -> Result<Table, Error> {
        let id = TableIdentifier { table_id: None, table_name: Some(name.to_owned()) };
        self.open(id, name).await
    }

    pub(crate) async fn open(&self, id: TableIdentifier, shown: &str) -> Result<Table, Error> {
        let mut attempts = self.attempts(format!("opening table {shown}"), None);
        let answer = self.table_schema(id, shown, &mut attempts).await?;
        Table::new(self.clone(), answer, shown)
    }

    pub(crate) async fn table_schema(
        &self,
        table: TableIdentifier,
        shown: &str,
        attempts: &mut Attempts,
    ) -> Result<GetTableSchemaResponse, Error> {
        let request = TableRequest { table };
        let reply: MasterReply<GetTableSchemaResponse> =
            self.inner.masters.call("GetTableSchema", &request, &[], attempts).await?;
        reply.answer.map_err(|e| master_error("GetTableSchema", shown, &e))
    }

    /// Size of a table.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn table_statistics(&self, name: &str) -> Result<TableStatistics, Error> {
        let table = TableIdentifier { table_id: None, table_name: Some(name.to_owned()) };
        let mut attempts = self.attempts(format!("statistics of table {name}"), None);
        let reply: MasterReply<GetTableStatisticsResponse> = self
            .inner
            .masters
            .call("GetTableStatistics", &TableRequest { table }, &[], &mut attempts)
            .await?;
        let answer = reply.answer.map_err(|e| master_error("GetTableStatistics", name, &e))?;
        Ok(TableStatistics { disk_bytes: answer.on_disk_size, live_rows: answer.live_row_count })
    }

    /// Checks that the servers know the operations whose names end in `Ignore`; `upserts` means
    /// [`Operation::UpsertIgnore`](crate::Operation::UpsertIgnore), too (Kudu 1.17).
    ///
    /// # Errors
    /// [`Error::Unsupported`] if not.
    pub async fn require_ignore_operations(&self, upserts: bool) -> Result<(), Error> {
        let mut features = vec![master_feature::IGNORE_OPERATIONS];
        features.extend(upserts.then_some(master_feature::UPSERT_IGNORE));
        let mut attempts = self.attempts("asking for features".to_owned(), None);
        let reply: MasterReply<ListTablesResponse> = self
            .inner
            .masters
            .call(
                "ListTables",
                &ListTablesRequest { name_filter: Some("\u{1}".to_owned()) },
                &features,
                &mut attempts,
            )
            .await?;
        reply.answer.map(drop).map_err(|e| master_error("ListTables", "", &e))
    }

    /// The latest timestamp any server has told this client: what has been read and written so far
    /// happened before. Hand it to another client's [`Client::observe_timestamp`] for it to see it.
    #[must_use]
    pub fn last_timestamp(&self) -> u64 {
        self.inner.timestamp.load(Ordering::Acquire)
    }

    /// Later reads and writes of this client happen after `timestamp`, which must come from
    /// [`Client::last_timestamp`] of a client of the same cluster.
    pub fn observe_timestamp(&self, timestamp: u64) {
        self.inner.timestamp.fetch_max(timestamp, Ordering::AcqRel);
    }

    pub(crate) fn propagated_timestamp(&self) -> Option<u64> {
        Some(self.last_timestamp()).filter(|timestamp| *timestamp > 0)
    }

    pub(crate) fn attempts(&self, operation: String, limit: Option<Duration>) -> Attempts {
        let config = &self.inner.config;
        let limit = limit.unwrap_or(config.operation_timeout);
        Attempts::new(operation, limit, config.attempt_timeout)
    }

    async fn ask_master<R: MasterAnswer>(
        &self,
        method: &'static str,
        request: &impl prost::Message,
    ) -> Result<R, Error> {
        let mut attempts = self.attempts(method.to_owned(), None);
        let reply: MasterReply<R> =
            self.inner.masters.call(method, request, &[], &mut attempts).await?;
        reply.answer.map_err(|e| master_error(method, "", &e))
    }

    pub(crate) fn locations(&self, table_id: &Bytes) -> Arc<Locations> {
        let mut all = self.inner.locations.lock();
        if let Some(known) = all.get(table_id).and_then(Weak::upgrade) {
            return known;
        }
        all.retain(|_, locations| locations.strong_count() > 0);
        let fresh = Arc::new(Locations::new(table_id.clone()));
        all.insert(table_id.clone(), Arc::downgrade(&fresh));
        fresh
    }
}

/// What a master's refusal means to a caller who works on `table`.
pub(crate) fn master_error(operation: &str, table: &str, error: &ServiceError) -> Error {
    let message = error.status.message.clone().unwrap_or_default();
    match (error.code, error.status.code) {
        (master_code::TABLE_NOT_FOUND, _) => Error::TableNotFound { table: table.to_owned() },
        (master_code::TABLE_ALREADY_PRESENT, _) => Error::TableExists { table: table.to_owned() },
        (_, crate::retry::status::ALREADY_PRESENT) => Error::AlreadyPresent(message),
        (code, status) => {
            Error::Master { operation: format!("{operation} {table}"), code, status, message }
        }
    }
}
