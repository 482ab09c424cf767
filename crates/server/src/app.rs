//! What all requests share.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use catalog::Catalog;
use ingest::line_protocol::LineParser;
use model::Name;
use query::{ContinuousStatus, QueryRegistry};
use store::{Metric, Store};
use tokio::sync::Semaphore;

use crate::ServerConfig;
use crate::auth::Passwords;
use crate::listeners::ListenerStats;
use crate::metrics::Metrics;
use crate::pool::Pool;
use crate::profile::Profiles;
use crate::query::{QueryCache, QueryGate};
use crate::request_id::RequestIds;
use crate::room::BodyRoom;
use crate::subscriber::{ForwardingStore, Outbox};
use crate::write::WriteGroups;

/// Of the memory for bodies such a part is for copies that wait for subscribers.
const FORWARDED_PART: usize = 8;

/// The wall clock: nanoseconds since 1970-01-01 UTC.
#[derive(Clone)]
pub(crate) struct Clock(pub(crate) Arc<dyn Fn() -> i64 + Send + Sync>);

impl Clock {
    pub(crate) fn now_ns(&self) -> i64 {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// Writes that share none with others, at work at once, for each thread that serves connections; and so many on any
/// machine. Measured with two processors and 1000 connections (decisions/0011): fewer leave them idle while writes wait for the disk, more
/// interrupt each other.
const WRITES_PER_THREAD: usize = 8;
const WRITES_MIN: usize = 16;

/// Parsers that are kept beside one a thread that serves connections: others parse as well.
const PARSERS_MORE: usize = 2;

/// The parts of a running server.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) config: ServerConfig,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) clock: Clock,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) room: BodyRoom,
    pub(crate) parsers: Pool<LineParser>,
    pub(crate) write_groups: WriteGroups,
    /// For writes that share none with others.
    pub(crate) write_turns: Arc<Semaphore>,
    pub(crate) queries: QueryGate,
    pub(crate) query_cache: QueryCache,
    pub(crate) registry: Arc<QueryRegistry>,
    pub(crate) continuous: Arc<ContinuousStatus>,
    pub(crate) passwords: Passwords,
    pub(crate) profiles: Profiles,
    pub(crate) request_ids: RequestIds,
    /// What is counted of each further listener.
    pub(crate) listeners: Vec<Arc<ListenerStats>>,
}

impl App {
    pub(crate) fn new(
        config: ServerConfig,
        store: Arc<dyn Store>,
        catalog: Arc<Catalog>,
        clock: Clock,
    ) -> (Self, Outbox) {
        let metrics = Arc::new(Metrics::default());
        let forwarded_bytes = config.body_memory_bytes / FORWARDED_PART;
        let bodies_bytes = config.body_memory_bytes - forwarded_bytes;
        let (store, outbox) = ForwardingStore::new(store, &catalog, &metrics, forwarded_bytes);
        let app = Self {
            store: Arc::new(store),
            catalog,
            clock,
            metrics,
            room: BodyRoom::new(bodies_bytes, config.admission_wait),
            parsers: Pool::new(config.threads + PARSERS_MORE),
            write_groups: WriteGroups::default(),
            write_turns: Arc::new(Semaphore::new(
                (WRITES_PER_THREAD * config.threads).max(WRITES_MIN),
            )),
            queries: QueryGate::new(&config),
            query_cache: QueryCache::new(config.query_cache_bytes),
            registry: Arc::default(),
            continuous: Arc::default(),
            passwords: Passwords::new(config.threads, config.admission_wait),
            profiles: Profiles::default(),
            request_ids: RequestIds::new(),
            listeners: ListenerStats::of(&config),
            config,
        };
        (app, outbox)
    }

    /// The store's figures, those of databases under their names.
    pub(crate) fn store_metrics(&self) -> Vec<Metric> {
        let catalog = self.catalog.snapshot();
        let names: HashMap<String, &Name> =
            catalog.databases().iter().map(|d| (d.id.0.to_string(), &d.name)).collect();
        let mut all = self.store.metrics();
        all.retain_mut(|metric| {
            let Some((_, value)) = metric.labels.iter_mut().find(|(key, _)| *key == "database")
            else {
                return true;
            };
            // One that is being dropped has no name any more.
            names.get(value.as_str()).map(|name| *value = name.to_string()).is_some()
        });
        all
    }
}
