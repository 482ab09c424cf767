//! What can go wrong in a query. The texts are InfluxDB's wherever it has the same failure.

use catalog::CatalogError;
use influxql::{ConditionError, DimensionError};
use model::{Interrupted, OverBudget};
use store::StoreError;

/// A failed statement.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The statement is not meaningful; the text says why.
    #[error("{0}")]
    Invalid(String),
    /// The statement is legal InfluxQL that this version does not execute.
    #[error("{0} is not supported yet")]
    Unsupported(String),
    /// The statement passes a configured limit.
    #[error("{0}")]
    Limit(String),
    /// The statement changes something and the context does not allow that.
    #[error("the server is read-only")]
    ReadOnly,
    /// The query needs more memory than it may have.
    #[error(transparent)]
    OverBudget(OverBudget),
    /// The query was cancelled or ran out of time.
    #[error(transparent)]
    Interrupted(Interrupted),
    /// The catalog refused.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
}

impl QueryError {
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::Invalid(text.into())
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported(what.into())
    }

    /// The failure as something that is read like a store reports it.
    pub(crate) fn into_store(self) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::OverBudget(over) => StoreError::OverBudget(over),
            Self::Interrupted(why) => StoreError::Interrupted(why),
            other => StoreError::Invalid(other.to_string()),
        }
    }
}

impl From<StoreError> for QueryError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::OverBudget(over) => Self::OverBudget(over),
            StoreError::Interrupted(why) => Self::Interrupted(why),
            other => Self::Store(other),
        }
    }
}

impl From<OverBudget> for QueryError {
    fn from(over: OverBudget) -> Self {
        Self::OverBudget(over)
    }
}

impl From<Interrupted> for QueryError {
    fn from(why: Interrupted) -> Self {
        Self::Interrupted(why)
    }
}

impl From<ConditionError> for QueryError {
    fn from(error: ConditionError) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl From<DimensionError> for QueryError {
    fn from(error: DimensionError) -> Self {
        Self::Invalid(error.to_string())
    }
}
