//! Failures of the parts, said as the store's.

use std::path::Path;
use std::time::Duration;

use platform::DiskError;
use segment::SegmentError;
use series::SeriesError;
use store::StoreError;
use wal::{Lsn, WalError};

use crate::bytes::Malformed;

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(crate) fn disk_error(error: DiskError) -> StoreError {
    StoreError::Io(error.to_string())
}

pub(crate) fn wal_error(error: WalError) -> StoreError {
    match error {
        WalError::Overloaded { .. } | WalError::DiskFull { .. } => StoreError::Overloaded {
            reason: error.to_string(),
            retry_after: Duration::from_secs(1),
        },
        WalError::Poisoned { .. } => StoreError::ReadOnly(error.to_string()),
        WalError::RecordTooLarge { .. } => StoreError::Invalid(error.to_string()),
        WalError::Closed => StoreError::Closed,
        WalError::Replay { source, .. } => match source.downcast::<StoreError>() {
            Ok(error) => *error,
            Err(source) => StoreError::Io(source.to_string()),
        },
        error => StoreError::Io(error.to_string()),
    }
}

pub(crate) fn segment_error(error: SegmentError) -> StoreError {
    match error {
        SegmentError::Corrupt { path, offset, detail } => {
            StoreError::Corruption { path, offset, detail }
        }
        error => StoreError::Io(error.to_string()),
    }
}

pub(crate) fn series_error(error: SeriesError) -> StoreError {
    match error {
        SeriesError::Corrupt { path, offset, detail } => {
            StoreError::Corruption { path, offset, detail }
        }
        SeriesError::OverBudget(over) => StoreError::OverBudget(over),
        error => StoreError::Io(error.to_string()),
    }
}

pub(crate) fn corrupt_record(dir: &Path, lsn: Lsn, error: Malformed) -> StoreError {
    StoreError::Corruption { path: dir.to_owned(), offset: lsn.0, detail: error.to_string() }
}

/// The same failure once more, for whoever meets it later.
pub(crate) fn repeated(error: &StoreError) -> StoreError {
    match error {
        StoreError::Corruption { path, offset, detail } => {
            StoreError::Corruption { path: path.clone(), offset: *offset, detail: detail.clone() }
        }
        error => StoreError::Io(error.to_string()),
    }
}
