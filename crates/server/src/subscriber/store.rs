//! A store that leaves a copy of what it stored for subscribers.

use std::sync::Arc;

use catalog::Catalog;
use model::{DatabaseId, Interrupt, MeasurementSchema, PolicyId, TimeRange};
use store::{
    CatalogDocument, DeleteRequest, MetadataCursor, MetadataRequest, Metric, Revision, Scan,
    ScanRequest, Store, StoreError, SwapOutcome, WriteOutcome, WriteRequest,
};

use super::{Inbox, Outbox, channel};
use crate::lines::{bytes_of, lines};
use crate::metrics::Metrics;

/// A store whose writes are forwarded.
#[derive(Debug)]
pub(crate) struct ForwardingStore {
    store: Arc<dyn Store>,
    catalog: Arc<Catalog>,
    metrics: Arc<Metrics>,
    inbox: Inbox,
}

impl ForwardingStore {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        catalog: &Arc<Catalog>,
        metrics: &Arc<Metrics>,
        waiting_bytes_max: usize,
    ) -> (Self, Outbox) {
        let (inbox, outbox) = channel(waiting_bytes_max);
        let (catalog, metrics) = (Arc::clone(catalog), Arc::clone(metrics));
        (Self { store, catalog, metrics, inbox }, outbox)
    }

    fn is_subscribed(&self, database: DatabaseId, policy: PolicyId) -> bool {
        let catalog = self.catalog.snapshot();
        if !catalog.has_subscriptions() {
            return false;
        }
        let database = catalog.databases().iter().find(|found| found.id == database);
        let policy = database.and_then(|d| d.policies.iter().find(|found| found.id == policy));
        policy.is_some_and(|found| !found.subscriptions.is_empty())
    }

    fn forward(&self, request: &WriteRequest<'_>, outcome: &WriteOutcome) {
        // Where there is no room for the lines they are not made.
        let place = self.inbox.place(bytes_of(request.batch));
        let put = place.is_some_and(|place| {
            let text = lines(request.batch, &outcome.rejected);
            place.put(request.policy.id, outcome.rows_written, text)
        });
        if put {
            self.metrics.subscription_writes.add(1);
        } else {
            self.metrics.subscription_writes_dropped.add(1);
        }
    }
}

impl Store for ForwardingStore {
    fn write(&self, request: &WriteRequest<'_>) -> Result<WriteOutcome, StoreError> {
        let outcome = self.store.write(request)?;
        let subscribed = self.is_subscribed(request.policy.database, request.policy.id);
        if outcome.rows_written > 0 && subscribed {
            self.forward(request, &outcome);
        }
        Ok(outcome)
    }

    fn scan(&self, request: &ScanRequest) -> Result<Box<dyn Scan>, StoreError> {
        self.store.scan(request)
    }

    fn metadata(&self, request: &MetadataRequest) -> Result<Box<dyn MetadataCursor>, StoreError> {
        self.store.metadata(request)
    }

    fn schema(
        &self,
        database: DatabaseId,
        measurement: &str,
        interrupt: &Interrupt,
    ) -> Result<Option<Arc<MeasurementSchema>>, StoreError> {
        self.store.schema(database, measurement, interrupt)
    }

    fn revision(&self, policy: PolicyId, time: TimeRange) -> Result<Option<Revision>, StoreError> {
        self.store.revision(policy, time)
    }

    fn delete(&self, request: &DeleteRequest) -> Result<(), StoreError> {
        self.store.delete(request)
    }

    fn expire(
        &self,
        database: DatabaseId,
        policy: PolicyId,
        before_ns: i64,
    ) -> Result<u64, StoreError> {
        self.store.expire(database, policy, before_ns)
    }

    fn catalog(&self) -> Result<CatalogDocument, StoreError> {
        self.store.catalog()
    }

    fn swap_catalog(&self, expected: u64, bytes: &[u8]) -> Result<SwapOutcome, StoreError> {
        self.store.swap_catalog(expected, bytes)
    }

    fn metrics(&self) -> Vec<Metric> {
        self.store.metrics()
    }

    fn close(&self) -> Result<(), StoreError> {
        self.store.close()
    }
}
