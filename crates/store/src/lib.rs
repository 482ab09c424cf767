//! The `Store` contract: what the layers above may ask of whatever keeps the rows.
//!
//! A store is an embedded engine or a client of a remote cluster; nothing here assumes files, one
//! machine or a language. Besides the trait this crate holds the reference model that says what the
//! right answer is, and the conformance suite that every implementation must pass.
//!
//! Calls are synchronous and pull-based: a short query runs on the thread that received it. A store
//! with a runtime of its own hides it behind bounded channels.

pub mod conformance;
mod contract;
mod error;
mod matching;
mod metadata;
mod partitions;
pub mod reference;
mod request;
mod scan;
mod series_groups;
mod series_orders;
pub mod testing;

pub use contract::{CatalogDocument, Metric, MetricKind, Revision, Store, SwapOutcome};
pub use error::StoreError;
pub use matching::{Comparison, MatchingRows};
pub use metadata::{MetadataCursor, MetadataKind, MetadataRequest, NameFilter};
pub use partitions::{ListedPartition, list_partitions};
pub use request::{
    DeleteRequest, DeleteTarget, Policy, RejectReason, RejectedRow, WriteOutcome, WriteRequest,
};
pub use scan::{
    ExtentPart, Scan, ScanContext, ScanCursor, ScanItem, ScanRequest, ScanSlice, ScanStats,
    SeriesTable, SummaryParts, TagColumn, TimeOrder, Windows, even_cuts, read_for_rows,
};
pub use series_groups::SeriesGroups;
pub use series_orders::SeriesOrders;
