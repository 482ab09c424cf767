//! What can go wrong, and what was found damaged.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use platform::DiskError;

use crate::format::{Lsn, RECORD_BYTES_MAX};

/// Why the log refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum WalError {
    /// A disk operation failed while opening or releasing; what the log holds is untouched.
    #[error("log: {0}")]
    Disk(#[from] DiskError),
    /// A write or sync failed. Records not acknowledged by then may or may not be in the log; the
    /// log must be opened again to find out.
    #[error("log is stopped until it is opened again, because a disk operation failed: {cause}")]
    Poisoned {
        /// The first failure.
        cause: Arc<DiskError>,
    },
    /// The disk is full. The record is kept in memory and may still become durable later, but is
    /// not acknowledged; the log goes on by itself once there is space.
    #[error("log cannot grow, free disk space: {cause}")]
    DiskFull {
        /// What failed.
        cause: DiskError,
    },
    /// Too many bytes wait for the disk. The record was not appended.
    #[error("log: {pending_bytes} bytes still wait for the disk after {waited:?}, try again later")]
    Overloaded {
        /// Bytes in memory that no write has taken yet.
        pending_bytes: usize,
        /// How long the append waited.
        waited: Duration,
    },
    /// A record must have at least one byte.
    #[error("log: a record must not be empty")]
    EmptyRecord,
    /// A record is above [`RECORD_BYTES_MAX`].
    #[error("log: a record of {bytes} bytes is above the limit of {RECORD_BYTES_MAX}, split it")]
    RecordTooLarge {
        /// Length of the record; saturates.
        bytes: u64,
    },
    /// The position is not one of a record appended here.
    #[error("log: position {lsn} is beyond the end {end}")]
    BeyondEnd {
        /// The position asked for.
        lsn: Lsn,
        /// Where the log ends.
        end: Lsn,
    },
    /// [`Wal::close`](crate::Wal::close) was called.
    #[error("log is closed")]
    Closed,
    /// All positions are used up.
    #[error("log: no positions left after {0}")]
    PositionsExhausted(Lsn),
    /// A file was written by a later version with features this one does not know.
    #[error("log file {}: {detail}; use the version that wrote it", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What is not known here.
        detail: String,
    },
    /// A file cannot be read into memory.
    #[error("log file {}: {bytes} bytes do not fit into memory", path.display())]
    OutOfMemory {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// The receiver of replayed records refused one.
    #[error("log: replaying the record that ends at {lsn}: {source}")]
    Replay {
        /// End of the record.
        lsn: Lsn,
        /// The receiver's reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An option is out of its range.
    #[error("log options: {detail}")]
    InvalidOptions {
        /// Which and why.
        detail: &'static str,
    },
    /// The system refused the thread that syncs at an interval.
    #[error("log: cannot start the sync thread: {0}")]
    Thread(std::io::Error),
}

/// Bytes that were durable once and are not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corruption {
    /// The file.
    pub path: PathBuf,
    /// Where the damage starts.
    pub offset: u64,
    /// Bytes of the log that are lost with it: 0 if nothing is, `u64::MAX` if unknown.
    pub lost_bytes: u64,
    /// What was found.
    pub detail: String,
}
