//! Durable log of opaque records with group commit.
//!
//! [`Wal::append`] orders a record and copies it into memory, [`Wal::wait_durable`] returns when it
//! is as durable as the [`SyncPolicy`] promises: whoever waits first writes and syncs everything
//! appended so far, the others sleep and are covered. [`Wal::open`] replays what the log holds.
//!
//! Layout: docs/formats/wal.md is normative.
//!
//! Invariants
//! - Records are replayed in the order of their positions; every record that [`Wal::wait_durable`]
//!   acknowledged is replayed exactly once, or its loss is reported in [`RecoveryReport`].
//! - A failed write or sync poisons the log: nothing is acknowledged after.
//!
//! Not here: what records mean, locking the directory against a second process (the owner's).

mod error;
mod files;
mod format;
pub mod fuzzing;
mod log;
mod metrics;
mod options;
mod recovery;
mod scan;
mod state;
mod ticker;

pub use error::{Corruption, WalError};
pub use format::{Lsn, RECORD_BYTES_MAX};
pub use log::Wal;
pub use metrics::{HISTOGRAM_BUCKETS, WalMetrics};
pub use options::{SyncPolicy, WalOptions};
pub use recovery::{LogFile, RecoveryReport, look};
