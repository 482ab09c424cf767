//! Expressions.

use std::fmt::{self, Display, Formatter};

use super::{quote_ident, quote_string, write_list, write_regex};
use crate::ast::{Call, Expr, VarRef};
use crate::duration::{DurationText, MonthsText};

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Binary { op, lhs, rhs } => {
                write_operand(f, lhs, op.precedence())?;
                write!(f, " {} ", op.as_str())?;
                // All operators are left associative: an equally strong one on the right needs parentheses.
                write_operand(f, rhs, op.precedence() + 1)
            }
            Self::Logical { op, terms } => {
                for (i, term) in terms.iter().enumerate() {
                    if i > 0 {
                        write!(f, " {} ", op.as_str())?;
                    }
                    write_operand(f, term, op.precedence() + 1)?;
                }
                Ok(())
            }
            Self::Paren(inner) => write!(f, "({inner})"),
            Self::VarRef(v) => v.fmt(f),
            Self::Call(call) => call.fmt(f),
            Self::Distinct(name) => write!(f, "DISTINCT {}", quote_ident(name)),
            Self::Wildcard(w) => f.write_str(w.as_str()),
            Self::Regex(regex) => write_regex(f, regex),
            Self::Number(n) => write_number(f, *n),
            Self::Integer(n) => n.fmt(f),
            Self::Unsigned(n) => n.fmt(f),
            Self::String(s) => quote_string(s).fmt(f),
            Self::Boolean(b) => b.fmt(f),
            Self::Duration(ns) => DurationText(*ns).fmt(f),
            Self::Months(months) => MonthsText(*months).fmt(f),
            Self::Time(t) => write!(f, "'{t}'"),
            Self::Nil => f.write_str("nil"),
        }
    }
}

impl Display for VarRef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        quote_ident(&self.name).fmt(f)?;
        match self.data_type {
            Some(data_type) => write!(f, "::{}", data_type.as_str()),
            None => Ok(()),
        }
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        write_list(f, &self.args)?;
        f.write_str(")")
    }
}

/// Parsed trees have their parentheses as nodes; trees made by rewriting get those that keep their meaning.
fn write_operand(f: &mut Formatter<'_>, expr: &Expr, precedence_min: u8) -> fmt::Result {
    let precedence = match expr {
        Expr::Binary { op, .. } => op.precedence(),
        Expr::Logical { op, .. } => op.precedence(),
        _ => u8::MAX,
    };
    if precedence < precedence_min { write!(f, "({expr})") } else { expr.fmt(f) }
}

/// Three decimals, or as many as the value needs.
pub(super) fn write_number(f: &mut Formatter<'_>, n: f64) -> fmt::Result {
    let short = format!("{n:.3}");
    if n.is_finite() && short.parse() != Ok(n) { write!(f, "{n}") } else { f.write_str(&short) }
}
