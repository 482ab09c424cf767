//! The `Store` contract over an Apache Kudu cluster: any number of daemons share one set of tables.
//!
//! Layout of the tables: docs/kudu.md. In short: a data table for each measurement and policy with
//! the key (series id, time) and a nullable column a field, and narrow tables, a row a value, for
//! fields and measurements that are too many for that; one table for names, types, ids and the
//! catalog (the registry); two for series. Kudu brings log, replication, compaction and failover.
//!
//! Invariants
//! - Who makes something with a name that others may make too (a measurement, a field's type, a
//!   series, a block of ids, a version of the catalog) inserts a row; the first insert decides.
//! - Everything a reader needs for finding rows (range, column, series, tags) is in the registry
//!   before the first such row is written.
//! - A write is acknowledged after a look at the registry that came after its rows: the measurement
//!   still has this id, and none of its series counts as dead.
//! - A read takes one moment of the cluster's time, after everything acknowledged so far, and reads
//!   all tables as of it.
//!
//! Not here: Kudu's protocol (kudu-client), files, plans.

mod ahead;
mod authority;
mod cache;
mod catalog_slot;
mod data;
mod dead;
mod delete;
mod error;
mod expire;
mod gone;
mod ids;
mod kudu_store;
mod layout;
mod measurement;
mod metadata;
mod metrics;
mod options;
mod partitions;
mod ranges;
mod registry;
mod runtime;
mod scan;
mod series;
mod shared;
mod status;
mod write;

pub use authority::cluster_authority;
pub use kudu_store::KuduStore;
pub use options::KuduOptions;
pub use status::cluster_status;
