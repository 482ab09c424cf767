//! What can go wrong, in words that say what to do about it.

use std::time::Duration;

use crate::cluster::master::master_code;

/// An error of the client. Everything transient was already retried within the time limit of the
/// call when one of these comes out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller asked for something that makes no sense; nothing was sent.
    #[error("invalid argument: {0}")]
    InvalidArgument(String),
    /// The time limit passed. The trace tells what was tried and how it went.
    #[error("{operation} did not finish within {limit:?}; {trace}")]
    TimedOut {
        /// What was being done.
        operation: String,
        /// The limit that applied.
        limit: Duration,
        /// Attempts and their errors, the last ones first.
        trace: String,
    },
    /// Not one of the masters given answered.
    #[error(
        "no master of {masters} can be reached ({last}): check the addresses (RPC port, 7051 by \
         default, not the web port) and that the masters run"
    )]
    MastersUnreachable {
        /// The addresses tried.
        masters: String,
        /// The last error.
        last: String,
    },
    /// Masters answer, none of them leads, and they know of masters that were not given.
    #[error("the cluster has masters that are missing from the client's list: add {missing}")]
    MastersMissing {
        /// Addresses to add.
        missing: String,
    },
    /// The server refuses this client.
    #[error("{server} refuses the client: {message}")]
    NotAuthorized {
        /// Address of the server.
        server: String,
        /// What it says, and what helps.
        message: String,
    },
    /// The server accepts Kerberos only, which this client does not speak.
    #[error(
        "{server} accepts Kerberos (GSSAPI) only, which this client does not support: let the \
         cluster accept other authentication (--rpc_authentication=optional)"
    )]
    KerberosRequired {
        /// Address of the server.
        server: String,
    },
    /// Encryption is required here, and the server does not offer it.
    #[error(
        "{server} does not offer TLS but the client requires it (as it does whenever it has a \
         password or certificates to check): start the server with --rpc_encryption=optional or \
         required, or set the client's encryption to disabled"
    )]
    EncryptionUnavailable {
        /// Address of the server.
        server: String,
    },
    /// The TLS handshake failed, mostly because of the certificate.
    #[error("TLS with {server} failed: {message}")]
    Tls {
        /// Address of the server.
        server: String,
        /// What is wrong.
        message: String,
    },
    /// The server is too old for the request.
    #[error("{server} does not support {method} with features {features:?}: upgrade Kudu")]
    Unsupported {
        /// Address of the server.
        server: String,
        /// The method called.
        method: String,
        /// Numbers of the missing features; empty if the method itself is missing.
        features: Vec<u32>,
    },
    /// There is no table of this name or id (any more).
    #[error("table {table} does not exist (dropped or renamed?)")]
    TableNotFound {
        /// Name or id.
        table: String,
    },
    /// A table of this name exists.
    #[error("table {table} exists already")]
    TableExists {
        /// Name.
        table: String,
    },
    /// A range partition with exactly these bounds, or a column of this name, exists.
    #[error("exists already: {0}")]
    AlreadyPresent(String),
    /// Rows or keys outside every range partition of the table.
    #[error(
        "{rows} rows of the batch (first: row {first_row}) fall into no range partition of table \
         {table}: add the range first; none of the rows of the batch was sent"
    )]
    NotCovered {
        /// The table.
        table: String,
        /// How many rows.
        rows: usize,
        /// The first of them.
        first_row: usize,
    },
    /// The schema the client knows does not fit the table any more.
    #[error("schema of table {table} has changed ({message}): open the table again")]
    SchemaChanged {
        /// The table.
        table: String,
        /// What the server says.
        message: String,
    },
    /// The master refuses the operation.
    #[error("master refuses {operation}: {message} (code {code}, status {status})")]
    Master {
        /// What was asked.
        operation: String,
        /// The master's error code.
        code: i32,
        /// Code of the status.
        status: i32,
        /// What it says.
        message: String,
    },
    /// A tablet server refuses the operation.
    #[error("{server} refuses {operation}: {message} (code {code}, status {status})")]
    Tablet {
        /// Address of the server.
        server: String,
        /// What was asked.
        operation: String,
        /// The server's error code.
        code: i32,
        /// Code of the status.
        status: i32,
        /// What it says.
        message: String,
    },
    /// The server could not carry out the call.
    #[error("{server} answers {method} with error {code}: {message}")]
    Remote {
        /// Address of the server.
        server: String,
        /// The method.
        method: String,
        /// Code of the RPC layer.
        code: i32,
        /// What it says.
        message: String,
    },
    /// A write was retried so late that the server no longer knows whether it had been applied.
    #[error("outcome of a write is unknown: {0}")]
    OutcomeUnknown(String),
    /// The snapshot is older than the history the servers keep, or in the future.
    #[error("snapshot cannot be read: {0}")]
    SnapshotUnavailable(String),
    /// A scan that is not fault-tolerant lost its server after it had handed out rows of a tablet.
    #[error(
        "scan was interrupted in the middle of a tablet ({0}): start it over, or make it fault \
         tolerant"
    )]
    ScanInterrupted(String),
    /// A server sent something that is not Kudu's protocol.
    #[error("{server} sent something unintelligible: {message}")]
    Protocol {
        /// Address of the server.
        server: String,
        /// What is wrong.
        message: String,
    },
}

impl Error {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::InvalidArgument(message.into())
    }

    pub(crate) fn protocol(server: &str, message: impl Into<String>) -> Self {
        Self::Protocol { server: server.to_owned(), message: message.into() }
    }

    /// Whether the master has too few live tablet servers for the copies that a new table or a new
    /// partition would get.
    #[must_use]
    pub fn lacks_servers(&self) -> bool {
        matches!(self, Self::Master { code: master_code::REPLICATION_FACTOR_TOO_HIGH, .. })
    }

    /// Whether the same call may succeed later without anything being changed.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::TimedOut { .. }
                | Self::MastersUnreachable { .. }
                | Self::ScanInterrupted(_)
                | Self::OutcomeUnknown(_)
        )
    }
}
