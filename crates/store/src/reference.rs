//! The reference model: the whole contract over `BTreeMap`s, in memory, one lock around all of it.
//!
//! It says what the right answer is. Clarity counts, speed and memory do not; nothing is durable.
//! Where the contract leaves a choice (hints, how rows are cut into items, summaries in place of
//! rows) [`ReferenceOptions`] picks one, so that consumers can be tested with each.

mod metadata;
mod scan;
mod state;
mod summary;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use model::{DatabaseId, Interrupt, MeasurementSchema, PolicyId, TimeRange};
use parking_lot::Mutex;

pub(crate) use self::scan::{satisfies, window_of};
pub(crate) use self::summary::{FieldSummary, parts_of};

use self::metadata::ReferenceMetadata;
use self::scan::ReferenceScan;
use self::state::State;
use crate::{
    CatalogDocument, DeleteRequest, MetadataCursor, MetadataRequest, Metric, MetricKind, Revision,
    Scan, ScanRequest, Store, StoreError, SwapOutcome, WriteOutcome, WriteRequest,
};

/// The reference model as a store.
#[derive(Debug)]
pub struct ReferenceStore {
    options: ReferenceOptions,
    state: Mutex<State>,
}

/// What the model does where the contract leaves a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceOptions {
    /// Rows of one item at most, at least 1.
    pub item_rows: usize,
    /// When summaries stand in for rows.
    pub summaries: SummaryMode,
    /// Whether rows that fail the request's filters are left out.
    pub filters: bool,
    /// Whether `rows_per_series` and `with_any` are obeyed.
    pub rows_per_series: bool,
    /// Whether rows of several series are joined where a request allows it.
    pub joins_series: bool,
    /// Whether it says where series begin.
    pub ends: bool,
}

/// When summaries stand in for rows, if a request allows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryMode {
    /// Never.
    Never,
    /// For every window.
    Always,
    /// Some windows come as summaries, some as rows, some as two summaries, some as both.
    Mixed,
}

impl Default for ReferenceOptions {
    fn default() -> Self {
        Self {
            item_rows: 1024,
            summaries: SummaryMode::Never,
            filters: false,
            rows_per_series: true,
            joins_series: false,
            ends: false,
        }
    }
}

impl ReferenceStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::with_options(ReferenceOptions::default())
    }

    /// An empty store that makes the choices `options` say.
    ///
    /// # Panics
    /// If `options.item_rows` is 0.
    #[must_use]
    pub fn with_options(options: ReferenceOptions) -> Self {
        assert!(options.item_rows > 0, "an item has at least one row");
        Self { options, state: Mutex::default() }
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> Result<T, StoreError> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(StoreError::Closed);
        }
        Ok(work(&mut state))
    }
}

impl Default for ReferenceStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Store for ReferenceStore {
    fn write(&self, request: &WriteRequest<'_>) -> Result<WriteOutcome, StoreError> {
        self.with(|state| state.write(request))
    }

    fn scan(&self, request: &ScanRequest) -> Result<Box<dyn Scan>, StoreError> {
        request.context.interrupt.check()?;
        let scan = self.with(|state| ReferenceScan::new(state, request, self.options))?;
        Ok(Box::new(scan))
    }

    fn metadata(&self, request: &MetadataRequest) -> Result<Box<dyn MetadataCursor>, StoreError> {
        request.context.interrupt.check()?;
        let cursor =
            self.with(|state| ReferenceMetadata::new(state, request, self.options.item_rows))?;
        Ok(Box::new(cursor))
    }

    fn schema(
        &self,
        database: DatabaseId,
        measurement: &str,
        interrupt: &Interrupt,
    ) -> Result<Option<Arc<MeasurementSchema>>, StoreError> {
        interrupt.check()?;
        self.with(|state| state.schema(database, measurement).map(Arc::new))
    }

    fn revision(&self, policy: PolicyId, time: TimeRange) -> Result<Option<Revision>, StoreError> {
        self.with(|state| Some(Revision([state.last_change(policy, time), 0, 0])))
    }

    fn delete(&self, request: &DeleteRequest) -> Result<(), StoreError> {
        self.with(|state| state.delete(request))
    }

    fn expire(
        &self,
        database: DatabaseId,
        policy: PolicyId,
        before_ns: i64,
    ) -> Result<u64, StoreError> {
        self.with(|state| state.expire(database, policy, before_ns))
    }

    fn catalog(&self) -> Result<CatalogDocument, StoreError> {
        self.with(|state| state.catalog.clone())
    }

    fn swap_catalog(&self, expected: u64, bytes: &[u8]) -> Result<SwapOutcome, StoreError> {
        self.with(|state| {
            if state.catalog.version != expected {
                return SwapOutcome::Conflict(state.catalog.clone());
            }
            state.catalog = CatalogDocument { version: expected + 1, bytes: bytes.to_vec() };
            SwapOutcome::Swapped(expected + 1)
        })
    }

    fn metrics(&self) -> Vec<Metric> {
        let state = self.state.lock();
        vec![
            Metric {
                name: "series",
                help: "Series that have at least one row.",
                kind: MetricKind::Gauge,
                labels: Vec::new(),
                value: state.series_count() as f64,
            },
            Metric {
                name: "rows_written_total",
                help: "Rows stored by writes.",
                kind: MetricKind::Counter,
                labels: Vec::new(),
                value: state.rows_written as f64,
            },
        ]
    }

    fn close(&self) -> Result<(), StoreError> {
        self.with(|state| state.closed = true)
    }
}
