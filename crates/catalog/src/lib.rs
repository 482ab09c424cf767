//! The catalog: which databases, retention policies and users there are.
//!
//! One versioned document in the store's catalog slot. Readers take an immutable snapshot; a change
//! is made to a copy, swapped in if nobody else was faster, and published. Rules and messages are
//! InfluxDB's. What a drop leaves in the store is remembered in the document until it is gone.

mod catalog;
mod document;
mod draft;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod password;
mod rules;
mod state;
mod users;

pub use catalog::{Catalog, CatalogOptions};
pub use error::CatalogError;
pub use password::PasswordHash;
pub use rules::{NAME_BYTES_MAX, PolicySpec};
pub use state::{
    CatalogState, ContinuousQuery, Database, PolicyInfo, Subscription, SubscriptionMode,
};
pub use users::{Privilege, User};
