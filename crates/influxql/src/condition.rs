//! Taking the time range out of a condition.
//!
//! Every comparison with `time` narrows one range, whether AND or OR joins it to the rest; what is left is the condition on rows.

use crate::ast::{BinaryOp, Expr};
use crate::fold::{FoldContext, fold, fold_logical, paren, reduce};
use crate::time::{MAX_TIME_NS, MIN_TIME_NS, TimeZone, Timestamp, looks_like_time, parse_time};

/// A range of time; both ends belong to it. An end that is `None` was not given, which matters to planners.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TimeRange {
    /// First instant.
    pub min_ns: Option<i64>,
    /// Last instant.
    pub max_ns: Option<i64>,
}

impl TimeRange {
    /// First instant, or the earliest time a row can have.
    pub fn min_or_earliest_ns(&self) -> i64 {
        self.min_ns.unwrap_or(MIN_TIME_NS)
    }

    /// Last instant, or the latest time a row can have.
    pub fn max_or_latest_ns(&self) -> i64 {
        self.max_ns.unwrap_or(MAX_TIME_NS)
    }

    /// Whether no instant is in the range.
    pub fn is_empty(&self) -> bool {
        self.min_or_earliest_ns() > self.max_or_latest_ns()
    }

    /// The instants that are in both ranges.
    #[must_use]
    pub fn intersect(self, other: Self) -> Self {
        Self {
            min_ns: self.min_ns.max(other.min_ns),
            max_ns: match (self.max_ns, other.max_ns) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
        }
    }
}

/// Why a condition is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// A value where a comparison is needed.
    #[error("invalid condition expression: {0}")]
    NotACondition(String),
    /// Time compared by an operator that means nothing for it.
    #[error("invalid time comparison operator: {0}")]
    Operator(&'static str),
    /// Time compared with something that is no instant.
    #[error("invalid operation: time and {0} are not compatible")]
    Operand(&'static str),
    /// A string that looks like a time literal and is none.
    #[error("invalid timestamp string")]
    Timestamp,
    /// An instant after the last one of the database.
    #[error("time {0} overflows time literal")]
    Overflow(String),
    /// An instant before the first one of the database.
    #[error("time {0} underflows time literal")]
    Underflow(String),
}

/// Splits a condition into the part about rows, with its constants folded, and the range of time. `None` is a condition that is
/// always true.
pub fn split_condition(
    condition: &Expr,
    now_ns: i64,
    zone: &dyn TimeZone,
) -> Result<(Option<Expr>, TimeRange), ConditionError> {
    let context = FoldContext { now_ns: Some(now_ns), zone };
    let mut range = TimeRange::default();
    let rest = match split(condition, &context, &mut range)? {
        Some(Expr::Paren(inner)) => Some(*inner),
        rest => rest,
    };
    Ok((rest.filter(|rest| *rest != Expr::Boolean(true)), range))
}

fn split(
    condition: &Expr,
    context: &FoldContext<'_>,
    range: &mut TimeRange,
) -> Result<Option<Expr>, ConditionError> {
    match condition {
        Expr::Logical { op, terms } => {
            let mut rest = Vec::new();
            for term in terms {
                rest.extend(split(term, context, range)?);
            }
            Ok((!rest.is_empty()).then(|| fold_logical(*op, rest)))
        }
        Expr::Binary { op, lhs, rhs } => {
            if is_time(lhs) {
                *range = range.intersect(bounds(*op, rhs, context)?);
                Ok(None)
            } else if is_time(rhs) {
                *range = range.intersect(bounds(op.mirrored(), lhs, context)?);
                Ok(None)
            } else {
                Ok(Some(fold(condition.clone(), context)))
            }
        }
        Expr::Paren(inner) => Ok(split(inner, context, range)?.map(paren)),
        Expr::Boolean(_) => Ok(Some(condition.clone())),
        other => Err(ConditionError::NotACondition(other.to_string())),
    }
}

fn is_time(expr: &Expr) -> bool {
    matches!(expr, Expr::VarRef(v) if v.is_time())
}

/// The range that `time op operand` means.
fn bounds(
    op: BinaryOp,
    operand: &Expr,
    context: &FoldContext<'_>,
) -> Result<TimeRange, ConditionError> {
    let operand = match operand {
        Expr::String(text) if looks_like_time(text) => {
            Expr::Time(parse_time(text, context.zone).ok_or(ConditionError::Timestamp)?)
        }
        operand => reduce(operand.clone(), context),
    };
    let at_ns = match operand {
        Expr::Time(t) => instant_ns(t)?,
        Expr::Duration(ns) | Expr::Integer(ns) => ns,
        Expr::Number(ns) => ns as i64,
        other => return Err(ConditionError::Operand(other.influx_type_name())),
    };
    let (min_ns, max_ns) = match op {
        BinaryOp::Gt => (Some(at_ns.saturating_add(1)), None),
        BinaryOp::GtEq => (Some(at_ns), None),
        BinaryOp::Lt => (None, Some(at_ns.saturating_sub(1))),
        BinaryOp::LtEq => (None, Some(at_ns)),
        BinaryOp::Eq => (Some(at_ns), Some(at_ns)),
        other => return Err(ConditionError::Operator(other.as_str())),
    };
    Ok(TimeRange { min_ns, max_ns })
}

fn instant_ns(t: Timestamp) -> Result<i64, ConditionError> {
    if t > Timestamp::from_ns(MAX_TIME_NS) {
        return Err(ConditionError::Overflow(t.to_rfc3339_seconds()));
    }
    match t.to_ns() {
        Some(ns) if ns > MIN_TIME_NS => Ok(ns),
        _ => Err(ConditionError::Underflow(t.to_rfc3339_seconds())),
    }
}

#[cfg(test)]
mod tests;
