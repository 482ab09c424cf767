//! SELECT and its clauses.

use super::{Call, Expr, Wildcard};
use crate::visit;

/// A SELECT, at the top level or as a subquery.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SelectStatement {
    /// What is selected; never empty after parsing.
    pub fields: Vec<Field>,
    /// `INTO`; never present in a subquery.
    pub into: Option<IntoTarget>,
    /// `FROM`; never empty after parsing.
    pub sources: Vec<Source>,
    /// `WHERE`.
    pub condition: Option<Expr>,
    /// `GROUP BY`: any expression here; the planner accepts tags, wildcards, regexes and one `time()`.
    pub dimensions: Vec<Expr>,
    /// `fill()`.
    pub fill: Fill,
    /// `HAVING`: which rows of the result are kept. An extension of Nyala.
    pub having: Option<Expr>,
    /// `ORDER BY`: one entry that names `time` or nothing, or (an extension of Nyala) columns of the result.
    pub order_by: Vec<SortField>,
    /// `LIMIT`; 0 = none.
    pub limit: u64,
    /// `OFFSET`.
    pub offset: u64,
    /// `SLIMIT`; 0 = none.
    pub series_limit: u64,
    /// `SOFFSET`.
    pub series_offset: u64,
    /// The name inside `tz()`, unchecked.
    pub time_zone: Option<String>,
}

/// One selected expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The expression; an [`Expr::Regex`] stands for the matching columns.
    pub expr: Expr,
    /// The name behind `AS`.
    pub alias: Option<String>,
}

/// What `FROM` reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A measurement, or those matching a regex.
    Measurement(Measurement),
    /// A SELECT in parentheses.
    SubQuery(Box<SelectStatement>),
    /// Several of these, joined; then it is the only source. An extension of Nyala.
    Join(Box<Join>),
}

/// `a JOIN b .. USING (tag, ..)`: rows of all sides with the same time and the same tags are one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    /// The leftmost side.
    pub first: JoinSide,
    /// The others, each joined to all that stand before it; never empty after parsing.
    pub others: Vec<(JoinKind, JoinSide)>,
    /// The tags of `USING`, those of all joins; `None` without it.
    pub using: Option<Vec<String>>,
}

/// One side of a [`Join`].
#[derive(Clone, Debug, PartialEq)]
pub struct JoinSide {
    /// A measurement that is named, or a SELECT that has an alias.
    pub source: Source,
    /// The name behind `AS`.
    pub alias: Option<String>,
}

/// Which rows a join keeps that have no partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JoinKind {
    /// None.
    Inner,
    /// Those on the left.
    Left,
    /// Those on both sides.
    Full,
}

/// `db.rp.name`, with anything but the name optional.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Measurement {
    /// Database; `None` = that of the request.
    pub database: Option<String>,
    /// Retention policy; `None` = the default one.
    pub retention_policy: Option<String>,
    /// Name or regex.
    pub name: MeasurementName,
}

/// The last part of a [`Measurement`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MeasurementName {
    /// A plain name.
    Name(String),
    /// Source text of a regex over names.
    Regex(String),
}

/// Where `INTO` writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IntoTarget {
    /// Database; `None` = that of the request.
    pub database: Option<String>,
    /// Retention policy; `None` = the default one.
    pub retention_policy: Option<String>,
    /// Measurement.
    pub name: TargetName,
}

/// The last part of an [`IntoTarget`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TargetName {
    /// A plain name.
    Name(String),
    /// `:MEASUREMENT`: the name of the measurement each row came from.
    SourceName,
}

/// What an empty bucket gives.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Fill {
    /// `fill(null)`, also when there is no fill().
    #[default]
    Null,
    /// `fill(none)`: no row.
    None,
    /// `fill(previous)`
    Previous,
    /// `fill(linear)`
    Linear,
    /// `fill(<integer>)`; whole floats are stored here too, as they fill alike.
    Integer(i64),
    /// `fill(<float>)`
    Number(f64),
}

/// One entry of `ORDER BY`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SortField {
    /// The column, `None` for a bare `ASC` or `DESC`.
    pub name: Option<String>,
    /// Direction.
    pub ascending: bool,
}

/// Why the `time()` of a `GROUP BY` is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DimensionError {
    /// Wrong number of arguments.
    #[error("time dimension expected 1 or 2 arguments")]
    ArgumentCount,
    /// The interval is not a duration.
    #[error("time dimension must have duration argument")]
    Interval,
    /// The interval is one of calendar months.
    #[error("calendar intervals are not supported in continuous queries")]
    Calendar,
}

impl SelectStatement {
    /// Whether no function is called in the field list.
    pub fn is_raw(&self) -> bool {
        !self.any_field_node(|e| matches!(e, Expr::Call(_)))
    }

    /// Whether rows come in ascending time, before they are sorted by columns.
    pub fn time_ascending(&self) -> bool {
        match self.order_by.as_slice() {
            [only] if !self.sorts_by_columns() => only.ascending,
            _ => true,
        }
    }

    /// Whether `ORDER BY` names more than the time.
    pub fn sorts_by_columns(&self) -> bool {
        let by_time = |s: &SortField| s.name.as_deref().is_none_or(|name| name == "time");
        match self.order_by.as_slice() {
            [] => false,
            [only] => !by_time(only),
            _ => true,
        }
    }

    /// Whether a field holds `*` or a regex anywhere.
    pub fn has_field_wildcard(&self) -> bool {
        self.any_field_node(|e| matches!(e, Expr::Wildcard(_) | Expr::Regex(_)))
    }

    /// Whether a dimension is `*` or a regex.
    pub fn has_dimension_wildcard(&self) -> bool {
        self.dimensions.iter().any(|d| matches!(d, Expr::Wildcard(_) | Expr::Regex(_)))
    }

    /// The first `time(..)` of `GROUP BY`.
    pub fn time_dimension(&self) -> Option<&Call> {
        self.dimensions.iter().find_map(|d| match d {
            Expr::Call(call) if call.name == "time" => Some(call),
            _ => None,
        })
    }

    /// Length of the `GROUP BY time()` buckets in ns; `None` without one.
    pub fn group_by_interval(&self) -> Result<Option<i64>, DimensionError> {
        let Some(call) = self.time_dimension() else { return Ok(None) };
        match call.args.as_slice() {
            [Expr::Duration(ns)] | [Expr::Duration(ns), _] => Ok(Some(*ns)),
            [Expr::Months(_), ..] => Err(DimensionError::Calendar),
            [_] | [_, _] => Err(DimensionError::Interval),
            _ => Err(DimensionError::ArgumentCount),
        }
    }

    fn any_field_node(&self, mut test: impl FnMut(&Expr) -> bool) -> bool {
        self.fields.iter().any(|f| visit::any(&f.expr, &mut test))
    }
}

impl Field {
    /// A field without an alias.
    pub fn new(expr: Expr) -> Self {
        Self { expr, alias: None }
    }
}

impl Join {
    /// All sides, from left to right.
    pub fn sides(&self) -> impl Iterator<Item = &JoinSide> {
        std::iter::once(&self.first).chain(self.others.iter().map(|(_, side)| side))
    }

    /// All sides, from left to right.
    pub fn sides_mut(&mut self) -> impl Iterator<Item = &mut JoinSide> {
        std::iter::once(&mut self.first).chain(self.others.iter_mut().map(|(_, side)| side))
    }
}

impl JoinSide {
    /// What its columns are called by: the alias, or the name of the measurement.
    pub fn name(&self) -> Option<&str> {
        match (&self.alias, &self.source) {
            (Some(alias), _) => Some(alias),
            (None, Source::Measurement(measurement)) => measurement.plain_name(),
            (None, _) => None,
        }
    }
}

impl JoinKind {
    /// The words of the join.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inner => "JOIN",
            Self::Left => "LEFT JOIN",
            Self::Full => "FULL JOIN",
        }
    }
}

impl Measurement {
    /// A name without database and retention policy.
    pub fn named(name: impl Into<String>) -> Self {
        Self { database: None, retention_policy: None, name: MeasurementName::Name(name.into()) }
    }

    /// The measurements whose name matches, without database and retention policy.
    pub fn matching(regex: impl Into<String>) -> Self {
        Self { database: None, retention_policy: None, name: MeasurementName::Regex(regex.into()) }
    }

    /// The plain name, `None` for a regex.
    pub fn plain_name(&self) -> Option<&str> {
        match &self.name {
            MeasurementName::Name(name) => Some(name),
            MeasurementName::Regex(_) => None,
        }
    }
}

impl Wildcard {
    /// The wildcard as written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Any => "*",
            Self::Field => "*::field",
            Self::Tag => "*::tag",
        }
    }
}
