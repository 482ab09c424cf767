//! The cluster as a [`Store`].

use std::fmt;
use std::sync::Arc;

use model::{DatabaseId, Interrupt, MeasurementSchema, PolicyId, TimeRange};
use parking_lot::RwLock;
use store::{
    CatalogDocument, DeleteRequest, DeleteTarget, MetadataCursor, MetadataRequest, Metric,
    Revision, Scan, ScanRequest, Store, StoreError, SwapOutcome, WriteOutcome, WriteRequest,
};

use crate::catalog_slot;
use crate::metrics;
use crate::options::KuduOptions;
use crate::runtime::Runtime;
use crate::scan::KuduScan;
use crate::shared::Shared;

/// A handle on the tables of a cluster. Any number of handles, here and elsewhere, share them.
pub struct KuduStore {
    runtime: Runtime,
    /// `None` once it is closed. Held while an operation runs.
    shared: RwLock<Option<Arc<Shared>>>,
}

impl fmt::Debug for KuduStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self.shared.try_read().is_some_and(|shared| shared.is_some());
        f.debug_struct("KuduStore").field("open", &open).finish_non_exhaustive()
    }
}

impl KuduStore {
    /// Connects to a cluster, and makes the tables that are missing.
    ///
    /// # Errors
    /// [`StoreError`] says what is wrong with the cluster or the options.
    pub fn open(options: &KuduOptions) -> Result<Self, StoreError> {
        let runtime = Runtime::start()?;
        let shared = runtime.wait(Shared::open(runtime.handle().clone(), options))?;
        Ok(Self { runtime, shared: RwLock::new(Some(Arc::new(shared))) })
    }

    /// Copies that each tablet of a new table gets.
    #[must_use]
    pub fn replicas(&self) -> i32 {
        self.shared.read().as_ref().map_or(0, |shared| shared.replicas)
    }

    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&Runtime, &Arc<Shared>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let shared = self.shared.read_recursive();
        work(&self.runtime, shared.as_ref().ok_or(StoreError::Closed)?)
    }
}

impl Store for KuduStore {
    fn write(&self, request: &WriteRequest<'_>) -> Result<WriteOutcome, StoreError> {
        self.with(|runtime, shared| runtime.wait(shared.write(request)))
    }

    fn scan(&self, request: &ScanRequest) -> Result<Box<dyn Scan>, StoreError> {
        let interrupt = &request.context.interrupt;
        interrupt.check()?;
        self.with(|runtime, shared| {
            let scan = runtime.wait_for(interrupt, KuduScan::new(shared, request))?;
            Ok(Box::new(scan) as Box<dyn Scan>)
        })
    }

    fn metadata(&self, request: &MetadataRequest) -> Result<Box<dyn MetadataCursor>, StoreError> {
        let interrupt = &request.context.interrupt;
        interrupt.check()?;
        self.with(|runtime, shared| {
            let names = runtime.wait_for(interrupt, shared.names(request))?;
            Ok(Box::new(names) as Box<dyn MetadataCursor>)
        })
    }

    fn schema(
        &self,
        database: DatabaseId,
        measurement: &str,
        interrupt: &Interrupt,
    ) -> Result<Option<Arc<MeasurementSchema>>, StoreError> {
        interrupt.check()?;
        let read = |runtime: &Runtime, shared: &Arc<Shared>| {
            runtime.wait_for(interrupt, shared.schema(database, measurement))
        };
        self.with(read).map(|schema| schema.map(Arc::new))
    }

    /// None: other daemons write to the cluster as well.
    fn revision(&self, _: PolicyId, _: TimeRange) -> Result<Option<Revision>, StoreError> {
        Ok(None)
    }

    fn delete(&self, request: &DeleteRequest) -> Result<(), StoreError> {
        match &request.target {
            DeleteTarget::Matching(named) => self.delete_matching(request.database, named),
            _ => self.with(|runtime, shared| runtime.wait(shared.delete(request))),
        }
    }

    fn expire(
        &self,
        database: DatabaseId,
        policy: PolicyId,
        before_ns: i64,
    ) -> Result<u64, StoreError> {
        self.with(|runtime, shared| runtime.wait(shared.expire(database, policy, before_ns)))
    }

    fn catalog(&self) -> Result<CatalogDocument, StoreError> {
        self.with(|runtime, shared| runtime.wait(catalog_slot::read(&shared.registry)))
    }

    fn swap_catalog(&self, expected: u64, bytes: &[u8]) -> Result<SwapOutcome, StoreError> {
        self.with(|runtime, shared| {
            runtime.wait(catalog_slot::swap(&shared.registry, expected, bytes))
        })
    }

    fn metrics(&self) -> Vec<Metric> {
        self.shared.read_recursive().as_ref().map_or_else(Vec::new, |s| metrics::collect(s))
    }

    fn close(&self) -> Result<(), StoreError> {
        let shared = self.shared.write().take().ok_or(StoreError::Closed)?;
        drop(shared);
        self.runtime.stop();
        Ok(())
    }
}
