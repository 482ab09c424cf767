//! What the owner of a log chooses.

use std::time::Duration;

use crate::error::WalError;
use crate::format::{DATA_START, FILE_BYTES_MAX, Lsn, RECORD_HEADER_BYTES};

/// What [`Wal::wait_durable`](crate::Wal::wait_durable) promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPolicy {
    /// The record is synced to the disk: it survives power loss.
    Always,
    /// The record is with the operating system: it survives the death of the process. A thread of
    /// the log syncs at least this often, which bounds what power loss takes.
    Interval(Duration),
    /// The record is with the operating system, which writes it when it likes. Files are still
    /// synced when they are full and when the log is closed.
    Never,
}

/// Longest page of [`WalOptions::page_bytes`].
const PAGE_BYTES_MAX: usize = 1 << 20;

/// Sizes and promises of a log.
#[derive(Clone, Copy, Debug)]
pub struct WalOptions {
    /// What an acknowledgement promises.
    pub sync: SyncPolicy,
    /// Length of a log file under load, allocated ahead; the first ones are smaller. A larger batch
    /// of records gets a file of its own.
    pub file_bytes: u64,
    /// Most bytes that wait in memory for the next write; as many again may be under way.
    pub pending_bytes_max: usize,
    /// What the operating system writes at least. If little is missing a batch is filled up to the end
    /// of such a page, which the next sync would otherwise write again.
    pub page_bytes: usize,
    /// How long an append waits for room in memory before it gives up as overloaded.
    pub append_wait_max: Duration,
    /// The log continues at this position or later, even if its files are gone. The owner passes
    /// the position up to which it keeps records elsewhere, so that positions are never used twice.
    pub position_min: Lsn,
}

impl Default for WalOptions {
    fn default() -> Self {
        Self {
            sync: SyncPolicy::Always,
            file_bytes: 64 << 20,
            pending_bytes_max: 8 << 20,
            page_bytes: 4096,
            append_wait_max: Duration::from_secs(10),
            position_min: Lsn(0),
        }
    }
}

impl WalOptions {
    pub(crate) fn check(&self) -> Result<(), WalError> {
        let refuse = |detail| Err(WalError::InvalidOptions { detail });
        if self.file_bytes <= DATA_START as u64 + RECORD_HEADER_BYTES as u64 {
            return refuse("file_bytes is smaller than a file with one record");
        }
        if self.file_bytes > FILE_BYTES_MAX {
            return refuse("file_bytes is above 1 GiB");
        }
        if self.pending_bytes_max == 0 || self.pending_bytes_max as u64 > FILE_BYTES_MAX / 2 {
            return refuse("pending_bytes_max must be between 1 byte and 512 MiB");
        }
        if self.page_bytes == 0 || self.page_bytes > PAGE_BYTES_MAX {
            return refuse("page_bytes must be between 1 byte and 1 MiB");
        }
        if self.sync == SyncPolicy::Interval(Duration::ZERO) {
            return refuse("a sync interval of zero; use SyncPolicy::Always");
        }
        if self.position_min.0 > Lsn::MAX.0 / 2 {
            return refuse("position_min leaves no room for records");
        }
        Ok(())
    }
}
