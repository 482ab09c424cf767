//! The embedded storage engine.
//!
//! WRITE  rows -> numbers (`write::prepare`) -> log (`wal`) -> memtable -> flush -> segment -> view
//! READ   view + series index -> spans per series -> merge where sources overlap -> batches
//!
//! Invariants
//! - A row is acknowledged when its log record is durable; memtables see batches in log order.
//! - Readers hold an immutable view; flush, compaction and delete swap in a new one together with
//!   the manifest.
//! - Later writes win field by field: sources of a partition are ordered by age, and only
//!   neighbours are ever merged.
//!
//! Not here: query plans, HTTP, what the catalog's document means.

mod bytes;
mod compaction;
mod delete;
#[cfg(test)]
mod documented;
mod engine;
mod error;
mod flush;
#[doc(hidden)]
pub mod fuzzing;
mod inspect;
mod local_store;
mod maintenance;
mod manifest;
mod memtable;
mod metadata;
mod metrics;
mod options;
mod pace;
mod recover;
mod rows;
mod scan;
mod schema;
mod sink;
mod tombstone;
mod view;
mod work;
mod write;

pub use compaction::Kept;
pub use inspect::{Damage, Inspector, LogInfo, ManifestInfo, MeasurementFields, SegmentFile};
pub use local_store::LocalStore;
pub use options::{StoreOptions, SyncPolicy};
pub use recover::OpenReport;
