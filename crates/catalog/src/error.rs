//! What can go wrong. The texts are InfluxDB's and are compared by clients.

use store::StoreError;

/// A failed look-up or change.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// There is no such database.
    #[error("database not found: {0}")]
    DatabaseNotFound(String),
    /// There is no such retention policy (or the default one was dropped).
    #[error("retention policy not found: {0}")]
    PolicyNotFound(String),
    /// A name is empty, a path, or not printable.
    #[error("invalid name")]
    InvalidName,
    /// A name is longer than [`crate::NAME_BYTES_MAX`].
    #[error("name too long")]
    NameTooLong,
    /// The policy exists and is defined otherwise.
    #[error("retention policy already exists")]
    PolicyExists,
    /// The database exists and its default policy is another one.
    #[error("retention policy conflicts with an existing policy")]
    PolicyConflict,
    /// A policy must keep rows for an hour at least.
    #[error("retention policy duration must be at least 1h0m0s")]
    DurationTooLow,
    /// A policy must keep rows for one partition at least.
    #[error("retention policy duration must be greater than the shard duration")]
    IncompatibleDurations,
    /// A row must be kept once at least.
    #[error("replication factor must be greater than 0")]
    ReplicationTooLow,
    /// The database has another continuous query of this name.
    #[error("continuous query already exists")]
    ContinuousQueryExists,
    /// The policy has a subscription of this name.
    #[error("subscription already exists")]
    SubscriptionExists,
    /// The policy has no subscription of this name.
    #[error("subscription not found")]
    SubscriptionNotFound,
    /// A destination is no address that rows can be sent to.
    #[error("invalid subscription URL: {0}")]
    SubscriptionUrl(String),
    /// A user of that name exists, with another password or another rank.
    #[error("user already exists")]
    UserExists,
    /// There is no such user.
    #[error("user not found")]
    UserNotFound,
    /// A user's name is empty.
    #[error("username required")]
    UsernameRequired,
    /// A password cannot be hashed.
    #[error("cannot hash the password: {0}")]
    Password(String),
    /// All 2^32 identifiers were given.
    #[error("the catalog has no identifiers left: export the data into a new store")]
    IdsExhausted,
    /// The document is not one this version can work with.
    #[error("the catalog's document (version {version}) cannot be used: {detail}")]
    Document {
        /// The store's version of the document.
        version: u64,
        /// What is wrong with it.
        detail: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
