//! What the cluster's errors mean to those who use the store.

use std::time::Duration;

use kudu_client::Error;
use store::StoreError;

/// When trying again makes sense after the cluster could not be reached in time.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// An error of the client as one of the store.
pub(crate) fn cluster(error: Error) -> StoreError {
    match error {
        _ if error.is_transient() => StoreError::Overloaded {
            reason: format!("the Kudu cluster does not answer in time: {error}"),
            retry_after: RETRY_AFTER,
        },
        Error::TableNotFound { table } => StoreError::Io(format!(
            "table {table} of the Kudu cluster is gone: it was dropped or renamed by somebody \
             else; restore it, or drop the measurement"
        )),
        other => StoreError::Io(format!("Kudu: {other}")),
    }
}

/// Somebody keeps on changing what this needs.
pub(crate) fn contended(what: &str) -> StoreError {
    StoreError::Overloaded {
        reason: format!("{what} is being changed by others all the time"),
        retry_after: RETRY_AFTER,
    }
}

/// A row of this store's own tables is not what this store writes.
pub(crate) fn unintelligible(table: &str, what: &str) -> StoreError {
    StoreError::Io(format!("table {table} of the Kudu cluster has {what}: was it changed by hand?"))
}
