//! The SHOW statements that carry clauses.

use super::{Expr, Measurement, SortField};

/// `SHOW MEASUREMENTS`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShowMeasurements {
    /// `ON`
    pub database: Option<String>,
    /// `WITH MEASUREMENT`: a name or a regex.
    pub source: Option<Measurement>,
    /// `WHERE`
    pub condition: Option<Expr>,
    /// `ORDER BY`
    pub order_by: Vec<SortField>,
    /// `LIMIT`; 0 = none.
    pub limit: u64,
    /// `OFFSET`
    pub offset: u64,
}

/// `SHOW SERIES`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShowSeries {
    /// `ON`
    pub database: Option<String>,
    /// `FROM`; empty = all.
    pub sources: Vec<Measurement>,
    /// `WHERE`
    pub condition: Option<Expr>,
    /// `ORDER BY`
    pub order_by: Vec<SortField>,
    /// `LIMIT`; 0 = none.
    pub limit: u64,
    /// `OFFSET`
    pub offset: u64,
}

/// `SHOW TAG KEYS`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShowTagKeys {
    /// `ON`
    pub database: Option<String>,
    /// `FROM`; empty = all.
    pub sources: Vec<Measurement>,
    /// `WHERE`
    pub condition: Option<Expr>,
    /// `ORDER BY`
    pub order_by: Vec<SortField>,
    /// `LIMIT`; 0 = none.
    pub limit: u64,
    /// `OFFSET`
    pub offset: u64,
    /// `SLIMIT`; 0 = none.
    pub series_limit: u64,
    /// `SOFFSET`
    pub series_offset: u64,
}

/// `SHOW TAG VALUES`
#[derive(Clone, Debug, PartialEq)]
pub struct ShowTagValues {
    /// `ON`
    pub database: Option<String>,
    /// `FROM`; empty = all.
    pub sources: Vec<Measurement>,
    /// `WITH KEY`
    pub key: TagKeyMatch,
    /// `WHERE`
    pub condition: Option<Expr>,
    /// `ORDER BY`
    pub order_by: Vec<SortField>,
    /// `LIMIT`; 0 = none.
    pub limit: u64,
    /// `OFFSET`
    pub offset: u64,
}

/// `SHOW FIELD KEYS`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShowFieldKeys {
    /// `ON`
    pub database: Option<String>,
    /// `FROM`; empty = all.
    pub sources: Vec<Measurement>,
    /// `ORDER BY`
    pub order_by: Vec<SortField>,
    /// `LIMIT`; 0 = none.
    pub limit: u64,
    /// `OFFSET`
    pub offset: u64,
}

/// `SHOW .. [EXACT] CARDINALITY`
#[derive(Clone, Debug, PartialEq)]
pub struct ShowCardinality {
    /// What is counted.
    pub of: Cardinality,
    /// `EXACT`
    pub exact: bool,
    /// `ON`
    pub database: Option<String>,
    /// `FROM`; empty = all.
    pub sources: Vec<Measurement>,
    /// `WHERE`
    pub condition: Option<Expr>,
    /// `GROUP BY`
    pub dimensions: Vec<Expr>,
    /// `LIMIT`; 0 = none.
    pub limit: u64,
    /// `OFFSET`
    pub offset: u64,
}

/// What a [`ShowCardinality`] counts.
#[derive(Clone, Debug, PartialEq)]
pub enum Cardinality {
    /// `SERIES`
    Series,
    /// `MEASUREMENT`
    Measurement,
    /// `TAG KEY`
    TagKey,
    /// `TAG VALUES .. WITH KEY`
    TagValues(TagKeyMatch),
    /// `FIELD KEY`
    FieldKey,
}

/// `SHOW CARDINALITY .. BY ..`: where the series of a database are. An extension of Nyala.
#[derive(Clone, Debug, PartialEq)]
pub struct ShowCardinalityBy {
    /// What the series are counted by.
    pub by: CardinalityBy,
    /// `ON`
    pub database: Option<String>,
    /// `FROM`; empty = all.
    pub sources: Vec<Measurement>,
    /// `LIMIT`; 0 = not given.
    pub limit: u64,
    /// `OFFSET`
    pub offset: u64,
}

/// What a [`ShowCardinalityBy`] counts by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardinalityBy {
    /// `MEASUREMENT`
    Measurement,
    /// `TAG KEY`
    TagKey,
    /// `TAG VALUE`
    TagValue,
}

/// `WITH KEY ..`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagKeyMatch {
    /// `= key`
    Eq(String),
    /// `!= key`
    NotEq(String),
    /// `IN (key, ..)`; never empty after parsing.
    In(Vec<String>),
    /// `=~ /regex/`
    Regex(String),
    /// `!~ /regex/`
    NotRegex(String),
}
