//! The syntax tree: plain data, one type for each clause, no behaviour beyond what the tree itself answers.
//!
//! Absent names are `None`, absent limits are 0, durations are nanoseconds. Keywords never appear as strings.

mod expr;
mod select;
mod show;
mod statement;

pub use expr::{BinaryOp, Call, DataType, Expr, LogicalOp, VarRef, Wildcard};
pub use select::{
    DimensionError, Field, Fill, IntoTarget, Join, JoinKind, JoinSide, Measurement,
    MeasurementName, SelectStatement, SortField, Source, TargetName,
};
pub use show::{
    Cardinality, CardinalityBy, ShowCardinality, ShowCardinalityBy, ShowFieldKeys,
    ShowMeasurements, ShowSeries, ShowTagKeys, ShowTagValues, TagKeyMatch,
};
pub use statement::{
    AlterRetentionPolicy, CreateContinuousQuery, CreateDatabase, CreateRetentionPolicy,
    CreateSubscription, DatabasePolicy, DestinationMode, Password, Privilege, Statement,
};

/// A request: the statements of one text, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// The statements; empty for a text of white space and semicolons.
    pub statements: Vec<Statement>,
}
