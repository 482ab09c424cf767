//! Questions about names: measurements, series, tag keys, tag values.

use model::{ColumnBatch, DatabaseId, Name, Regex, TagExpr};

use crate::{ScanContext, StoreError};

/// Which names are meant.
#[derive(Clone, Debug)]
pub enum NameFilter {
    /// Every name.
    All,
    /// Exactly these.
    In(Vec<Name>),
    /// Names that match.
    Matches(Regex),
    /// Names the inner filter does not accept.
    Not(Box<NameFilter>),
}

impl NameFilter {
    /// Whether `name` is meant.
    #[must_use]
    pub fn accepts(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::In(names) => names.iter().any(|n| **n == *name),
            Self::Matches(regex) => regex.is_match(name),
            Self::Not(inner) => !inner.accepts(name),
        }
    }
}

/// What is asked for. The answer's columns are text but for counts, one row a fact, sorted (where
/// nothing else is said) and distinct.
#[derive(Clone, Debug)]
pub enum MetadataKind {
    /// Column: measurement. Those with at least one matching series.
    Measurements,
    /// Columns: measurement, canonical series key.
    Series,
    /// Columns: measurement, number of its series (integer). Those with at least one matching series.
    SeriesCounts,
    /// Columns: measurement, tag key.
    TagKeys,
    /// Columns: measurement, tag key, tag value; for the keys the filter accepts.
    TagValues(NameFilter),
    /// Columns: number, policy id, first time, last time (ns), all in decimals; sorted by policy and
    /// time, whatever measurements and series are asked for. The partitions of the database that
    /// have rows; one whose rows were all deleted may still be there or not. Numbers are positive,
    /// count up from 1 over all databases, stay with a partition as long as it exists, also over
    /// restarts, and are never given to one of another range.
    Partitions,
}

/// A question about the names of one database, over all its policies.
#[derive(Clone, Debug)]
pub struct MetadataRequest {
    /// The database.
    pub database: DatabaseId,
    /// What is asked for.
    pub kind: MetadataKind,
    /// Which measurements.
    pub measurements: NameFilter,
    /// Which of their series.
    pub series: TagExpr,
    /// Facts wanted of each measurement, the first ones; `None`: all. A store may hand out more.
    pub facts_max: Option<u64>,
    /// Limits of the work.
    pub context: ScanContext,
}

/// An answer in parts. Rows come sorted over all parts.
pub trait MetadataCursor: Send {
    /// The next part, `None` at the end. Parts are never empty.
    ///
    /// # Errors
    /// [`StoreError`]; the cursor is of no further use then.
    fn next(&mut self) -> Result<Option<ColumnBatch>, StoreError>;
}
