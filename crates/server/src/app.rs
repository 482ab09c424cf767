//! What all requests share.

use std::fmt;
use std::sync::Arc;

use catalog::Catalog;
use query::QueryRegistry;
use store::Store;

use crate::ServerConfig;
use crate::auth::Passwords;
use crate::metrics::Metrics;
use crate::profile::Profiles;
use crate::query::QueryGate;
use crate::request_id::RequestIds;
use crate::room::BodyRoom;
use crate::write::ParserPool;

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

/// The parts of a running server.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) config: ServerConfig,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
    pub(crate) room: BodyRoom,
    pub(crate) parsers: ParserPool,
    pub(crate) queries: QueryGate,
    pub(crate) registry: Arc<QueryRegistry>,
    pub(crate) passwords: Passwords,
    pub(crate) profiles: Profiles,
    pub(crate) request_ids: RequestIds,
}

impl App {
    pub(crate) fn new(
        config: ServerConfig,
        store: Arc<dyn Store>,
        catalog: Arc<Catalog>,
        clock: Clock,
    ) -> Self {
        Self {
            store,
            catalog,
            clock,
            metrics: Metrics::default(),
            room: BodyRoom::new(config.body_memory_bytes, config.admission_wait),
            parsers: ParserPool::new(config.threads),
            queries: QueryGate::new(&config),
            registry: Arc::default(),
            passwords: Passwords::new(config.threads, config.admission_wait),
            profiles: Profiles::default(),
            request_ids: RequestIds::new(),
            config,
        }
    }
}
