//! What can go wrong in a store. Three kinds of failure, three forms: the caller's mistakes and
//! limits say what to do; the environment's name the place; our own bugs panic and are not here.

use std::path::PathBuf;
use std::time::Duration;

use model::{Interrupted, OverBudget};

/// A failed store operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The request breaks a rule or a limit; sent again unchanged it fails again.
    #[error("{0}")]
    Invalid(String),
    /// There is no room right now; the same request may be sent again later.
    #[error("overloaded: {reason}; try again in {} s", retry_after.as_secs().max(1))]
    Overloaded {
        /// Which limit was reached and what it is set to.
        reason: String,
        /// When trying again makes sense.
        retry_after: Duration,
    },
    /// The request needs more memory than it may have.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    /// The request was cancelled or ran out of time.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// Bytes on disk are not what was written. Other data stays readable.
    #[error("corruption in {} at offset {offset}: {detail}", path.display())]
    Corruption {
        /// The file.
        path: PathBuf,
        /// Where in it, bytes from the start.
        offset: u64,
        /// What was found.
        detail: String,
    },
    /// The disk (or the remote store) failed this operation.
    #[error("{0}")]
    Io(String),
    /// An earlier failure makes it unsafe to accept writes; reads still work. Restart after mending.
    #[error("the store is read-only since an earlier failure: {0}")]
    ReadOnly(String),
    /// The store does not have this ability.
    #[error("not supported by this store: {0}")]
    Unsupported(&'static str),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}
