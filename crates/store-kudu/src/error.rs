//! What the cluster's errors mean to those who use the store.

use std::time::Duration;

use kudu_client::Error;
use store::StoreError;

/// When trying again makes sense after the cluster could not be reached in time.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// When servers that are missing may be back.
const SERVERS_AFTER: Duration = Duration::from_secs(10);

/// There are too few tablet servers for a table or a partition: what helps.
pub(crate) fn too_few_servers(detail: &str) -> String {
    format!(
        "the Kudu cluster has too few live tablet servers for the copies of a new table or \
         partition: start those that are missing (nyala cluster status shows them), or have fewer \
         copies made (kudu://.../?replicas=N for new tables, kudu table set_replication_factor for \
         those that exist); {detail}"
    )
}

/// The same for those who may try again.
pub(crate) fn lacks_servers(detail: &str) -> StoreError {
    StoreError::Overloaded { reason: too_few_servers(detail), retry_after: SERVERS_AFTER }
}

/// An error of the client as one of the store.
pub(crate) fn cluster(error: Error) -> StoreError {
    match error {
        _ if error.lacks_servers() => lacks_servers(&error.to_string()),
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
