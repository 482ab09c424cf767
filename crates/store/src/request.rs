//! Requests that change something.

use std::sync::Arc;

use model::{DatabaseId, FieldType, KeyError, LineBatch, Name, PolicyId, TagExpr, TimeRange};

use crate::{MatchingRows, NameFilter};

/// What a store has to know of a retention policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The database it belongs to.
    pub database: DatabaseId,
    /// The policy.
    pub id: PolicyId,
    /// Length of its partitions (InfluxDB: shard group duration), nanoseconds, positive. May change
    /// over time; existing partitions keep their bounds.
    pub partition_ns: i64,
    /// How long rows are kept, nanoseconds. `None`: for ever.
    pub retention_ns: Option<i64>,
}

/// Rows to be stored.
#[derive(Clone, Copy, Debug)]
pub struct WriteRequest<'a> {
    /// Where to.
    pub policy: Policy,
    /// The rows.
    pub batch: &'a LineBatch<'a>,
    /// The wall clock when the request arrived, nanoseconds: rows older than the retention of the
    /// policy are rejected by it.
    pub now_ns: i64,
}

/// What became of the rows. Rows not listed are durable and visible.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOutcome {
    /// Rows stored.
    pub rows_written: u64,
    /// Rows refused, ascending by row.
    pub rejected: Vec<RejectedRow>,
}

/// A row that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedRow {
    /// Index into the batch's rows.
    pub row: u32,
    /// Why.
    pub reason: RejectReason,
}

/// Why a row was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RejectReason {
    /// The raw key is no legal series key.
    #[error("{0}")]
    Key(#[from] KeyError),
    /// A tag or the only field has a reserved name.
    #[error("{0}")]
    ReservedName(String),
    /// A field came with another type than it has.
    #[error(
        "field type conflict: input field \"{field}\" on measurement \"{measurement}\" is type \
         {input}, already exists as type {existing}"
    )]
    FieldTypeConflict {
        /// The measurement.
        measurement: Name,
        /// The field.
        field: Name,
        /// The type it came with.
        input: FieldType,
        /// The type it has.
        existing: FieldType,
    },
    /// The row is older than its policy keeps rows.
    #[error("points beyond retention policy")]
    BeyondRetention,
    /// A configured limit (columns, series, ...) would be passed.
    #[error("{0}")]
    Limit(String),
}

/// Rows to be removed: visible as soon as the call returns, durable, and reclaimed in time.
#[derive(Clone, Debug)]
pub struct DeleteRequest {
    /// The database.
    pub database: DatabaseId,
    /// What goes.
    pub target: DeleteTarget,
}

/// What a delete removes. Everything named that does not exist is success.
#[derive(Clone, Debug)]
pub enum DeleteTarget {
    /// Rows of matching series within a time range, in every policy of the database. Series that
    /// are left without rows cease to exist; field types stay.
    Rows {
        /// Which measurements.
        measurements: NameFilter,
        /// Which of their series.
        series: TagExpr,
        /// Which of their rows.
        time: TimeRange,
    },
    /// Rows named one by one: those go that have the values named with them when the store gets there;
    /// what was written since stays. Series that are left without rows cease to exist; field types
    /// stay.
    ///
    /// The embedded store looks and removes in one step. `store-kudu` looks first: a row that another
    /// client writes between the two goes as well (docs/kudu.md).
    Matching(Arc<MatchingRows>),
    /// A measurement with its rows, series and field types.
    Measurement(Name),
    /// All rows of one policy.
    Policy(PolicyId),
    /// The partition of a policy that has exactly these bounds, with its rows. Series that are left
    /// without rows cease to exist; field types stay.
    Partition(PolicyId, TimeRange),
    /// Everything the database has but the catalog's entry.
    Database,
}
