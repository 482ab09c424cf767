//! Conditions as operands: `(n > 5) = b`, `(n > 5 AND ok) = false`, `(n > 5) & ok`.
//!
//! A condition either holds or not, also where values are missing: `(n > 5) = false` keeps rows without
//! `n`. A column of booleans beside it has to have a value. Anything else is no truth, and comparing a
//! condition with it, or for order, never holds.

use influxql::{BinaryOp, Expr};
use model::{CompareOp, Scalar, TagExpr};

use super::Builder;
use crate::QueryError;
use crate::exec::expression::Expression;
use crate::exec::predicate::Predicate;

/// An operand that is true or false.
struct Truth {
    /// Where it is true.
    holds: Predicate,
    /// Where it is either, if that is not everywhere.
    known: Option<Predicate>,
}

/// Whether the value of an expression is that of a condition.
pub(super) fn is_condition(expr: &Expr) -> bool {
    match expr.without_parens() {
        Expr::Logical { .. } => true,
        Expr::Binary { op, lhs, rhs } => {
            op.is_comparison() || is_bitwise(*op) && (is_condition(lhs) || is_condition(rhs))
        }
        _ => false,
    }
}

/// Whether an operator makes a truth of two.
pub(super) fn is_bitwise(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor)
}

impl Builder<'_> {
    /// A comparison of which one side is a condition.
    pub(super) fn comparison_of_truths(
        &mut self,
        op: BinaryOp,
        lhs: &Expr,
        rhs: &Expr,
    ) -> Result<Predicate, QueryError> {
        self.of_both(lhs, rhs, |lhs, rhs| match op {
            BinaryOp::Eq => agree(lhs, rhs),
            BinaryOp::NotEq => not(agree(lhs, rhs)),
            _ => Predicate::Constant(false),
        })
    }

    /// `lhs & rhs`, `lhs | rhs` or `lhs ^ rhs` as a condition.
    pub(super) fn bitwise(
        &mut self,
        op: BinaryOp,
        lhs: &Expr,
        rhs: &Expr,
    ) -> Result<Predicate, QueryError> {
        self.of_both(lhs, rhs, |lhs, rhs| match op {
            BinaryOp::BitAnd => Predicate::All(vec![lhs, rhs]),
            BinaryOp::BitOr => Predicate::Any(vec![lhs, rhs]),
            _ => not(agree(lhs, rhs)),
        })
    }

    /// What `join` makes of two truths, where both are known.
    fn of_both(
        &mut self,
        lhs: &Expr,
        rhs: &Expr,
        join: impl FnOnce(Predicate, Predicate) -> Predicate,
    ) -> Result<Predicate, QueryError> {
        let (lhs, rhs) = (self.truth(lhs)?, self.truth(rhs)?);
        let mut parts = vec![join(lhs.holds, rhs.holds)];
        parts.extend([lhs.known, rhs.known].into_iter().flatten());
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => Predicate::All(parts),
        })
    }

    fn truth(&mut self, expr: &Expr) -> Result<Truth, QueryError> {
        match expr.without_parens() {
            Expr::Boolean(holds) => Ok(Truth { holds: Predicate::Constant(*holds), known: None }),
            condition if is_condition(condition) => {
                Ok(Truth { holds: self.operand(condition)?, known: None })
            }
            Expr::Regex(_) => Ok(Truth {
                holds: Predicate::Constant(false),
                known: Some(Predicate::Constant(false)),
            }),
            value => {
                let value = self.expression(value)?;
                let either = vec![is(value.clone(), true), is(value.clone(), false)];
                Ok(Truth { holds: is(value, true), known: Some(Predicate::Any(either)) })
            }
        }
    }

    /// A condition within another, where also a column of booleans is one.
    fn operand(&mut self, expr: &Expr) -> Result<Predicate, QueryError> {
        match expr {
            Expr::Logical { op, terms } => {
                let terms = terms.iter().map(|term| match term.without_parens() {
                    boolean @ Expr::VarRef(_) => Ok(is(self.expression(boolean)?, true)),
                    other => self.operand(other),
                });
                Ok(super::joined(*op, terms.collect::<Result<_, _>>()?))
            }
            // A time narrows what is read, which cannot be had beside being compared.
            Expr::Binary { lhs, rhs, .. } if [lhs, rhs].iter().any(|side| is_time(side)) => {
                Err(QueryError::invalid(format!("invalid condition expression: {expr}")))
            }
            other => self.predicate(other),
        }
    }
}

fn is_time(expr: &Expr) -> bool {
    matches!(expr.without_parens(), Expr::VarRef(var) if var.is_time())
}

fn is(value: Expression, wanted: bool) -> Predicate {
    let rhs = Expression::Constant(Scalar::Boolean(wanted));
    Predicate::Compare { op: CompareOp::Equal, lhs: value, rhs }
}

/// Holds where both do or neither does.
fn agree(lhs: Predicate, rhs: Predicate) -> Predicate {
    match (lhs, rhs) {
        (Predicate::Constant(true), other) | (other, Predicate::Constant(true)) => other,
        (Predicate::Constant(false), other) | (other, Predicate::Constant(false)) => not(other),
        (lhs, rhs) => Predicate::Agree(Box::new([lhs, rhs])),
    }
}

/// Holds where `predicate` does not. Of tags it stays a condition that a store decides.
fn not(predicate: Predicate) -> Predicate {
    match predicate {
        Predicate::Constant(holds) => Predicate::Constant(!holds),
        Predicate::Tags(TagExpr::Not(tags)) => Predicate::Tags(*tags),
        Predicate::Tags(tags) => Predicate::Tags(TagExpr::Not(Box::new(tags))),
        other => Predicate::Agree(Box::new([other, Predicate::Constant(false)])),
    }
}
