//! The trait.

use std::fmt;
use std::sync::Arc;

use model::{DatabaseId, Interrupt, MeasurementSchema, PolicyId, TimeRange};

use crate::{
    DeleteRequest, MetadataCursor, MetadataRequest, Scan, ScanRequest, StoreError, WriteOutcome,
    WriteRequest,
};

/// Whatever keeps the rows.
///
/// Promises that hold for every implementation:
/// - When `write` returns, the rows it does not list as rejected are durable (as far as the
///   configured policy goes) and seen by every later call, through this or any other handle.
/// - (database, policy, series, time) names a row. Writing it again merges field by field; the last
///   write of a field wins, in the order the calls returned and, within a batch, in row order.
/// - A delete removes what was written before the call and nothing written after it returned.
/// - Memory stays within what the store was configured with and what requests' budgets allow.
pub trait Store: Send + Sync + fmt::Debug {
    /// Stores rows. Rows that break a rule are refused one by one; the others are stored.
    ///
    /// # Errors
    /// [`StoreError`]: nothing is acknowledged; some rows may have been stored all the same.
    fn write(&self, request: &WriteRequest<'_>) -> Result<WriteOutcome, StoreError>;

    /// Pins a view and resolves the series of a request. A measurement that does not exist has no
    /// series.
    ///
    /// # Errors
    /// [`StoreError`].
    fn scan(&self, request: &ScanRequest) -> Result<Box<dyn Scan>, StoreError>;

    /// Starts answering a question about names.
    ///
    /// # Errors
    /// [`StoreError`].
    fn metadata(&self, request: &MetadataRequest) -> Result<Box<dyn MetadataCursor>, StoreError>;

    /// What is known of a measurement; `None` if the database has no such measurement. A store that has
    /// to ask others for it stops waiting when `interrupt` says so.
    ///
    /// # Errors
    /// [`StoreError`].
    fn schema(
        &self,
        database: DatabaseId,
        measurement: &str,
        interrupt: &Interrupt,
    ) -> Result<Option<Arc<MeasurementSchema>>, StoreError>;

    /// What stands for the rows of a policy within `time` as they are now: if two revisions of the same
    /// policy and range are equal, every scan that was opened between them found the same rows. Rows
    /// elsewhere and work in the background may change it as well, and those of a store that was
    /// opened again are others. `None`: the store cannot tell, since rows change that it does not hear
    /// of. Takes no longer than opening a scan, and no disk.
    ///
    /// # Errors
    /// [`StoreError`].
    fn revision(&self, policy: PolicyId, time: TimeRange) -> Result<Option<Revision>, StoreError>;

    /// Removes rows. Durable and visible when it returns.
    ///
    /// # Errors
    /// [`StoreError`].
    fn delete(&self, request: &DeleteRequest) -> Result<(), StoreError>;

    /// Drops the partitions of a policy that end before `before_ns` (the last time they can hold is
    /// before it), and series that are left without rows; field types stay. Returns the number of
    /// partitions dropped.
    ///
    /// # Errors
    /// [`StoreError`].
    fn expire(
        &self,
        database: DatabaseId,
        policy: PolicyId,
        before_ns: i64,
    ) -> Result<u64, StoreError>;

    /// Reads the catalog's document.
    ///
    /// # Errors
    /// [`StoreError`].
    fn catalog(&self) -> Result<CatalogDocument, StoreError>;

    /// Replaces the catalog's document if it still has version `expected`. Durable when it returns.
    ///
    /// # Errors
    /// [`StoreError`].
    fn swap_catalog(&self, expected: u64, bytes: &[u8]) -> Result<SwapOutcome, StoreError>;

    /// Current figures for `/metrics` and statistics statements.
    fn metrics(&self) -> Vec<Metric>;

    /// Finishes what is in flight and lets go of everything. Later calls fail with
    /// [`StoreError::Closed`].
    ///
    /// # Errors
    /// [`StoreError`].
    fn close(&self) -> Result<(), StoreError>;
}

/// What stands for some rows at one moment; see [`Store::revision`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revision(
    /// Of a meaning that only the store knows.
    pub [u64; 3],
);

/// The catalog's document as a store keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogDocument {
    /// Counts up by one with each replacement; 0: never written.
    pub version: u64,
    /// The document, opaque to the store.
    pub bytes: Vec<u8>,
}

/// What became of a replacement of the catalog's document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwapOutcome {
    /// Done; the document has this version now.
    Swapped(u64),
    /// Somebody else replaced it before; this is what it is now.
    Conflict(CatalogDocument),
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Name as in Prometheus' conventions, without the product's prefix.
    pub name: &'static str,
    /// One line of explanation.
    pub help: &'static str,
    /// How it behaves over time.
    pub kind: MetricKind,
    /// Labels, name and value.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: f64,
}

/// How a figure behaves over time.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Upper bounds and cumulative counts of a histogram; `value` is the sum of what was observed.
    Histogram(Vec<(f64, u64)>),
}
