//! Folding of constants: `now() - 2 * 30m` to an instant, `x > 1 + 2` to `x > 3`, `TRUE AND c` to `c`.
//!
//! The rules are InfluxDB's: integers wrap, a quotient of integers is a float, division by zero gives 0, a string next to an instant
//! or a duration is read as a time literal if it is one. What has no rule stays as it is.
//!
//! Not here: values of variables and of functions other than now().

use crate::ast::{BinaryOp, Call, Expr, LogicalOp};
use crate::time::{TimeZone, Timestamp, Utc, parse_time};

/// What folding knows besides the expression.
#[derive(Clone, Copy)]
pub struct FoldContext<'a> {
    /// The value of `now()`; `None` leaves calls of it in place.
    pub now_ns: Option<i64>,
    /// The zone of time literals without an offset.
    pub zone: &'a dyn TimeZone,
}

impl Default for FoldContext<'_> {
    /// Without a clock, in UTC.
    fn default() -> Self {
        Self { now_ns: None, zone: &Utc }
    }
}

impl std::fmt::Debug for FoldContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FoldContext").field("now_ns", &self.now_ns).finish_non_exhaustive()
    }
}

/// `expr` with its constant parts computed, and without parentheses around the whole.
#[must_use]
pub fn reduce(expr: Expr, context: &FoldContext<'_>) -> Expr {
    match fold(expr, context) {
        Expr::Paren(inner) => *inner,
        expr => expr,
    }
}

pub(crate) fn fold(expr: Expr, context: &FoldContext<'_>) -> Expr {
    match expr {
        Expr::Binary { op, mut lhs, mut rhs } => {
            fold_in(&mut lhs, context);
            fold_in(&mut rhs, context);
            fold_literals(op, &lhs, &rhs, context.zone).unwrap_or(Expr::Binary { op, lhs, rhs })
        }
        Expr::Logical { op, terms } => {
            fold_logical(op, terms.into_iter().map(|term| fold(term, context)))
        }
        Expr::Paren(inner) => paren(fold(*inner, context)),
        Expr::Call(Call { name, mut args }) => match context.now_ns {
            Some(now_ns) if name == "now" && args.is_empty() => {
                Expr::Time(Timestamp::from_ns(now_ns))
            }
            _ => {
                args.iter_mut().for_each(|arg| fold_in(arg, context));
                Expr::Call(Call { name, args })
            }
        },
        leaf => leaf,
    }
}

/// The same where the expression stands, so that boxes are kept.
fn fold_in(place: &mut Expr, context: &FoldContext<'_>) {
    *place = fold(std::mem::replace(place, Expr::Nil), context);
}

/// Parentheses, kept only around operators.
pub(crate) fn paren(inner: Expr) -> Expr {
    match inner {
        Expr::Binary { .. } | Expr::Logical { .. } => Expr::Paren(Box::new(inner)),
        inner => inner,
    }
}

/// A run of AND or OR without its neutral terms; one deciding term decides all.
pub(crate) fn fold_logical(op: LogicalOp, terms: impl IntoIterator<Item = Expr>) -> Expr {
    let deciding = op == LogicalOp::Or;
    let mut decided = false;
    let rest = Expr::logical(
        op,
        terms.into_iter().filter(|term| match term {
            Expr::Boolean(b) => {
                decided |= *b == deciding;
                false
            }
            _ => true,
        }),
    );
    if decided { Expr::Boolean(deciding) } else { rest.unwrap_or(Expr::Boolean(!deciding)) }
}

/// The value of `lhs op rhs` if both are literals and there is a rule for them.
fn fold_literals(op: BinaryOp, lhs: &Expr, rhs: &Expr, zone: &dyn TimeZone) -> Option<Expr> {
    use Expr::{Boolean, Duration, Integer, Nil, Number, String, Time, Unsigned};
    match (lhs, rhs) {
        (Boolean(_) | Duration(_) | Integer(_) | Number(_) | Time(_), Nil) => Some(Boolean(false)),
        (String(_), Nil) | (Nil, _) => {
            matches!(op, BinaryOp::Eq | BinaryOp::NotEq).then_some(Boolean(false))
        }
        (Boolean(a), Boolean(b)) => fold_booleans(op, *a, *b),
        (Integer(a), Integer(b)) => fold_integers(op, *a, *b),
        (Unsigned(a), Unsigned(b)) => fold_unsigned(op, *a, *b),
        (Integer(a), Unsigned(b)) => match u64::try_from(*a) {
            Err(_) if is_order(op) => compare(op, 0, 1),
            _ => fold_unsigned(op, *a as u64, *b),
        },
        (Unsigned(a), Integer(b)) => match u64::try_from(*b) {
            Err(_) if is_order(op) => compare(op, 1, 0),
            _ => fold_unsigned(op, *a, *b as u64),
        },
        (Number(_), Integer(_) | Unsigned(_) | Number(_))
        | (Integer(_) | Unsigned(_), Number(_)) => {
            fold_numbers(op, as_number(lhs)?, as_number(rhs)?)
        }
        (String(a), String(b)) => fold_strings(op, a, b, zone),
        _ => fold_times(op, lhs, rhs, zone),
    }
}

/// Rules with a duration or an instant on at least one side.
fn fold_times(op: BinaryOp, lhs: &Expr, rhs: &Expr, zone: &dyn TimeZone) -> Option<Expr> {
    use Expr::{Duration, Integer, Number, String, Time};
    match (lhs, rhs) {
        (Duration(a), Duration(b)) => fold_durations(op, *a, *b),
        (Duration(a), Integer(b)) => scale(op, *a, *b),
        (Duration(a), Number(b)) => scale(op, *a, *b as i64),
        (Integer(a), Duration(b)) => shift(op, Timestamp::from_ns(*a), *b),
        (Time(a), Duration(b) | Integer(b)) => shift(op, *a, *b),
        // Read as a duration here, an integer can only be added.
        (Duration(a) | Integer(a), Time(b)) => (op == BinaryOp::Add).then(|| Time(b.plus_ns(*a))),
        (Time(a), Time(b)) => match op {
            BinaryOp::Sub => Some(Duration(a.since_ns(*b))),
            _ => compare(op, *a, *b),
        },
        (String(a), Duration(_) | Time(_) | Integer(_)) => {
            fold_times(op, &Time(parse_time(a, zone)?), rhs, zone)
        }
        (Duration(_) | Time(_) | Integer(_), String(b)) => {
            fold_times(op, lhs, &Time(parse_time(b, zone)?), zone)
        }
        _ => None,
    }
}

fn fold_booleans(op: BinaryOp, a: bool, b: bool) -> Option<Expr> {
    let value = match op {
        BinaryOp::Eq => a == b,
        BinaryOp::NotEq | BinaryOp::BitXor => a != b,
        BinaryOp::BitAnd => a && b,
        BinaryOp::BitOr => a || b,
        _ => return None,
    };
    Some(Expr::Boolean(value))
}

fn fold_integers(op: BinaryOp, a: i64, b: i64) -> Option<Expr> {
    let value = match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div => {
            return Some(Expr::Number(if b == 0 { 0.0 } else { a as f64 / b as f64 }));
        }
        BinaryOp::Mod => a.checked_rem(b).unwrap_or(0),
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitOr => a | b,
        BinaryOp::BitXor => a ^ b,
        _ => return compare(op, a, b),
    };
    Some(Expr::Integer(value))
}

fn fold_unsigned(op: BinaryOp, a: u64, b: u64) -> Option<Expr> {
    let value = match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div => a.checked_div(b).unwrap_or(0),
        BinaryOp::Mod => a.checked_rem(b).unwrap_or(0),
        _ => return compare(op, a, b),
    };
    Some(Expr::Unsigned(value))
}

fn fold_numbers(op: BinaryOp, a: f64, b: f64) -> Option<Expr> {
    let value = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div if b == 0.0 => 0.0,
        BinaryOp::Div => a / b,
        BinaryOp::Mod => a % b,
        _ => return compare(op, a, b),
    };
    Some(Expr::Number(value))
}

fn fold_durations(op: BinaryOp, a: i64, b: i64) -> Option<Expr> {
    match op {
        BinaryOp::Add => Some(Expr::Duration(a.wrapping_add(b))),
        BinaryOp::Sub => Some(Expr::Duration(a.wrapping_sub(b))),
        _ => compare(op, a, b),
    }
}

/// Strings compare as instants if both are time literals, and for order only then.
fn fold_strings(op: BinaryOp, a: &str, b: &str, zone: &dyn TimeZone) -> Option<Expr> {
    if op == BinaryOp::Add {
        return Some(Expr::String([a, b].concat()));
    }
    match (parse_time(a, zone), parse_time(b, zone)) {
        (Some(a), Some(b)) => fold_times(op, &Expr::Time(a), &Expr::Time(b), zone),
        _ if is_order(op) => None,
        _ => compare(op, a, b),
    }
}

/// `duration * n` and `duration / n`.
fn scale(op: BinaryOp, ns: i64, n: i64) -> Option<Expr> {
    match op {
        BinaryOp::Mul => Some(Expr::Duration(ns.wrapping_mul(n))),
        BinaryOp::Div if n == 0 => Some(Expr::Duration(0)),
        BinaryOp::Div => Some(Expr::Duration(ns.wrapping_div(n))),
        _ => None,
    }
}

/// `instant + duration` and `instant - duration`.
fn shift(op: BinaryOp, at: Timestamp, ns: i64) -> Option<Expr> {
    match op {
        BinaryOp::Add => Some(Expr::Time(at.plus_ns(ns))),
        BinaryOp::Sub => Some(Expr::Time(at.minus_ns(ns))),
        _ => None,
    }
}

fn as_number(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Number(n) => Some(*n),
        Expr::Integer(n) => Some(*n as f64),
        Expr::Unsigned(n) => Some(*n as f64),
        _ => None,
    }
}

fn is_order(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Lt | BinaryOp::LtEq | BinaryOp::Gt | BinaryOp::GtEq)
}

fn compare<T: PartialOrd + Copy>(op: BinaryOp, a: T, b: T) -> Option<Expr> {
    let value = match op {
        BinaryOp::Eq => a == b,
        BinaryOp::NotEq => a != b,
        BinaryOp::Lt => a < b,
        BinaryOp::LtEq => a <= b,
        BinaryOp::Gt => a > b,
        BinaryOp::GtEq => a >= b,
        _ => return None,
    };
    Some(Expr::Boolean(value))
}

#[cfg(test)]
mod tests;
