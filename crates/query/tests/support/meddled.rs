//! A store in which somebody writes while statements run.

#![allow(dead_code, reason = "each test binary uses a part")]

use std::fmt;
use std::sync::Arc;

use model::{DatabaseId, Interrupt, MeasurementSchema, PolicyId, TimeRange};
use store::reference::ReferenceStore;
use store::testing::{Row, write};
use store::{
    CatalogDocument, DeleteRequest, MetadataCursor, MetadataRequest, Metric, Policy, Revision,
    Scan, ScanRequest, Store, StoreError, SwapOutcome, WriteOutcome, WriteRequest,
};

use crate::support::{Database, NOW_NS};

/// What a store is about to do, or has just done.
#[derive(Debug)]
pub(crate) enum Moment<'a> {
    /// A scan was opened.
    Scanned(&'a ScanRequest),
    /// A delete begins.
    Deleting(&'a DeleteRequest),
}

/// The rows that somebody writes at a moment.
pub(crate) type Meddle = Box<dyn Fn(Moment<'_>) -> Vec<Row> + Send + Sync>;

struct Meddled {
    inner: ReferenceStore,
    meddle: Meddle,
}

/// An empty database over such a store.
pub(crate) fn database(meddle: Meddle) -> Database {
    let store = Arc::new(Meddled { inner: ReferenceStore::new(), meddle });
    let db = Database::over(store);
    let first = db.context.catalog.snapshot().resolve("t", None).expect("the database exists").id;
    assert_eq!(first, POLICY.id);
    db
}

/// The first policy of the first database.
const POLICY: Policy = Policy {
    database: DatabaseId(1),
    id: PolicyId(1),
    partition_ns: 604_800_000_000_000,
    retention_ns: None,
};

impl Meddled {
    fn meddle(&self, moment: Moment<'_>) -> Result<(), StoreError> {
        let rows = (self.meddle)(moment);
        if !rows.is_empty() {
            write(&self.inner, POLICY, &rows, NOW_NS)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Meddled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meddled").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl Store for Meddled {
    fn write(&self, request: &WriteRequest<'_>) -> Result<WriteOutcome, StoreError> {
        self.inner.write(request)
    }

    fn scan(&self, request: &ScanRequest) -> Result<Box<dyn Scan>, StoreError> {
        let scan = self.inner.scan(request)?;
        self.meddle(Moment::Scanned(request))?;
        Ok(scan)
    }

    fn metadata(&self, request: &MetadataRequest) -> Result<Box<dyn MetadataCursor>, StoreError> {
        self.inner.metadata(request)
    }

    fn schema(
        &self,
        database: DatabaseId,
        measurement: &str,
        interrupt: &Interrupt,
    ) -> Result<Option<Arc<MeasurementSchema>>, StoreError> {
        self.inner.schema(database, measurement, interrupt)
    }

    fn revision(&self, policy: PolicyId, time: TimeRange) -> Result<Option<Revision>, StoreError> {
        self.inner.revision(policy, time)
    }

    fn delete(&self, request: &DeleteRequest) -> Result<(), StoreError> {
        self.meddle(Moment::Deleting(request))?;
        self.inner.delete(request)
    }

    fn expire(&self, _: DatabaseId, _: PolicyId, _: i64) -> Result<u64, StoreError> {
        Err(StoreError::Unsupported("expiry"))
    }

    fn catalog(&self) -> Result<CatalogDocument, StoreError> {
        self.inner.catalog()
    }

    fn swap_catalog(&self, expected: u64, bytes: &[u8]) -> Result<SwapOutcome, StoreError> {
        self.inner.swap_catalog(expected, bytes)
    }

    fn metrics(&self) -> Vec<Metric> {
        self.inner.metrics()
    }

    fn close(&self) -> Result<(), StoreError> {
        self.inner.close()
    }
}
