//! SELECT.

use std::fmt::{self, Display, Formatter};

use super::{
    quote_ident, quote_string, write_clause, write_count, write_list_clause, write_order_by,
    write_regex,
};
use crate::ast::{
    Field, Fill, IntoTarget, Join, JoinSide, Measurement, MeasurementName, SelectStatement, Source,
    TargetName,
};

impl Display for SelectStatement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("SELECT ")?;
        super::write_list(f, &self.fields)?;
        write_clause(f, "INTO", self.into.as_ref())?;
        write_list_clause(f, "FROM", &self.sources)?;
        write_clause(f, "WHERE", self.condition.as_ref())?;
        write_list_clause(f, "GROUP BY", &self.dimensions)?;
        self.fill.fmt(f)?;
        write_clause(f, "HAVING", self.having.as_ref())?;
        write_order_by(f, &self.order_by)?;
        write_count(f, "LIMIT", self.limit)?;
        write_count(f, "OFFSET", self.offset)?;
        write_count(f, "SLIMIT", self.series_limit)?;
        write_count(f, "SOFFSET", self.series_offset)?;
        match &self.time_zone {
            Some(zone) => write!(f, " TZ({})", quote_string(zone)),
            None => Ok(()),
        }
    }
}

impl Display for Field {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)?;
        write_clause(f, "AS", self.alias.as_ref().map(|alias| quote_ident(alias)))
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measurement(m) => m.fmt(f),
            Self::SubQuery(select) => write!(f, "({select})"),
            Self::Join(join) => join.fmt(f),
        }
    }
}

impl Display for Join {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.first.fmt(f)?;
        for (kind, side) in &self.others {
            write!(f, " {} {side}", kind.as_str())?;
        }
        let Some(tags) = &self.using else { return Ok(()) };
        f.write_str(" USING (")?;
        super::write_list(f, tags.iter().map(|tag| quote_ident(tag)))?;
        f.write_str(")")
    }
}

impl Display for JoinSide {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)?;
        write_clause(f, "AS", self.alias.as_ref().map(|alias| quote_ident(alias)))
    }
}

impl Display for Measurement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_path(f, self.database.as_deref(), self.retention_policy.as_deref())?;
        match &self.name {
            MeasurementName::Name(name) => quote_ident(name).fmt(f),
            MeasurementName::Regex(regex) => write_regex(f, regex),
        }
    }
}

impl Display for IntoTarget {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_path(f, self.database.as_deref(), self.retention_policy.as_deref())?;
        match &self.name {
            TargetName::Name(name) => quote_ident(name).fmt(f),
            // It cannot stand alone; an empty policy is the default one.
            TargetName::SourceName
                if self.database.is_none() && self.retention_policy.is_none() =>
            {
                f.write_str("\"\".:MEASUREMENT")
            }
            TargetName::SourceName => f.write_str(":MEASUREMENT"),
        }
    }
}

/// `db.rp.`, `db..`, `rp.` or nothing.
fn write_path(f: &mut Formatter<'_>, database: Option<&str>, policy: Option<&str>) -> fmt::Result {
    if let Some(database) = database {
        write!(f, "{}.", quote_ident(database))?;
    }
    if let Some(policy) = policy {
        quote_ident(policy).fmt(f)?;
    }
    if database.is_some() || policy.is_some() { f.write_str(".") } else { Ok(()) }
}

impl Display for Fill {
    /// With a space before it; nothing for the default.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => Ok(()),
            Self::None => f.write_str(" fill(none)"),
            Self::Previous => f.write_str(" fill(previous)"),
            Self::Linear => f.write_str(" fill(linear)"),
            Self::Integer(n) => write!(f, " fill({n})"),
            Self::Number(n) if n.fract() == 0.0 => write!(f, " fill({n}.0)"),
            Self::Number(n) => write!(f, " fill({n})"),
        }
    }
}
