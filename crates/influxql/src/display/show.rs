//! The SHOW statements that carry clauses.

use std::fmt::{self, Display, Formatter};

use super::{
    quote_ident, write_clause, write_count, write_database, write_list, write_list_clause,
    write_measurements, write_order_by, write_regex,
};
use crate::ast::{
    Cardinality, CardinalityBy, MeasurementName, ShowCardinality, ShowCardinalityBy, ShowFieldKeys,
    ShowMeasurements, ShowSeries, ShowTagKeys, ShowTagValues, TagKeyMatch,
};

impl Display for ShowMeasurements {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("SHOW MEASUREMENTS")?;
        write_database(f, self.database.as_ref())?;
        if let Some(source) = &self.source {
            let op = match source.name {
                MeasurementName::Name(_) => "=",
                MeasurementName::Regex(_) => "=~",
            };
            write!(f, " WITH MEASUREMENT {op} {source}")?;
        }
        write_clause(f, "WHERE", self.condition.as_ref())?;
        write_order_by(f, &self.order_by)?;
        write_count(f, "LIMIT", self.limit)?;
        write_count(f, "OFFSET", self.offset)
    }
}

impl Display for ShowSeries {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("SHOW SERIES")?;
        write_database(f, self.database.as_ref())?;
        write_measurements(f, &self.sources)?;
        write_clause(f, "WHERE", self.condition.as_ref())?;
        write_order_by(f, &self.order_by)?;
        write_count(f, "LIMIT", self.limit)?;
        write_count(f, "OFFSET", self.offset)
    }
}

impl Display for ShowTagKeys {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("SHOW TAG KEYS")?;
        write_database(f, self.database.as_ref())?;
        write_measurements(f, &self.sources)?;
        write_clause(f, "WHERE", self.condition.as_ref())?;
        write_order_by(f, &self.order_by)?;
        write_count(f, "LIMIT", self.limit)?;
        write_count(f, "OFFSET", self.offset)?;
        write_count(f, "SLIMIT", self.series_limit)?;
        write_count(f, "SOFFSET", self.series_offset)
    }
}

impl Display for ShowTagValues {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("SHOW TAG VALUES")?;
        write_database(f, self.database.as_ref())?;
        write_measurements(f, &self.sources)?;
        self.key.fmt(f)?;
        write_clause(f, "WHERE", self.condition.as_ref())?;
        write_order_by(f, &self.order_by)?;
        write_count(f, "LIMIT", self.limit)?;
        write_count(f, "OFFSET", self.offset)
    }
}

impl Display for ShowFieldKeys {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("SHOW FIELD KEYS")?;
        write_database(f, self.database.as_ref())?;
        write_measurements(f, &self.sources)?;
        write_order_by(f, &self.order_by)?;
        write_count(f, "LIMIT", self.limit)?;
        write_count(f, "OFFSET", self.offset)
    }
}

impl Display for ShowCardinality {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.of {
            Cardinality::Series => "SHOW SERIES",
            Cardinality::Measurement => "SHOW MEASUREMENT",
            Cardinality::TagKey => "SHOW TAG KEY",
            Cardinality::TagValues(_) => "SHOW TAG VALUES",
            Cardinality::FieldKey => "SHOW FIELD KEY",
        })?;
        f.write_str(if self.exact { " EXACT CARDINALITY" } else { " CARDINALITY" })?;
        write_database(f, self.database.as_ref())?;
        write_measurements(f, &self.sources)?;
        if let Cardinality::TagValues(key) = &self.of {
            key.fmt(f)?;
        }
        write_clause(f, "WHERE", self.condition.as_ref())?;
        write_list_clause(f, "GROUP BY", &self.dimensions)?;
        write_count(f, "LIMIT", self.limit)?;
        write_count(f, "OFFSET", self.offset)
    }
}

impl Display for ShowCardinalityBy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("SHOW CARDINALITY")?;
        write_database(f, self.database.as_ref())?;
        write_measurements(f, &self.sources)?;
        f.write_str(match self.by {
            CardinalityBy::Measurement => " BY MEASUREMENT",
            CardinalityBy::TagKey => " BY TAG KEY",
            CardinalityBy::TagValue => " BY TAG VALUE",
        })?;
        write_count(f, "LIMIT", self.limit)?;
        write_count(f, "OFFSET", self.offset)
    }
}

impl Display for TagKeyMatch {
    /// With a space before it.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(" WITH KEY ")?;
        match self {
            Self::Eq(key) => write!(f, "= {}", quote_ident(key)),
            Self::NotEq(key) => write!(f, "!= {}", quote_ident(key)),
            Self::In(keys) => {
                f.write_str("IN (")?;
                write_list(f, keys.iter().map(|key| quote_ident(key)))?;
                f.write_str(")")
            }
            Self::Regex(regex) => {
                f.write_str("=~ ")?;
                write_regex(f, regex)
            }
            Self::NotRegex(regex) => {
                f.write_str("!~ ")?;
                write_regex(f, regex)
            }
        }
    }
}
