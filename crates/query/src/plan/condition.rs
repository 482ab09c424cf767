//! Conditions: what of them a store can decide, and what is left for each row.
//!
//! A condition is a conjunction of parts. Parts about tags alone are decided by the store, exactly.
//! Of the others the store gets what they imply for tags, and comparisons of a field with a constant,
//! another field or pieces of text as hints; they are evaluated again for every row.

mod hints;
mod measurement;
mod tag_values;
mod tags;
mod truth;

use std::sync::Arc;

use influxql::{BinaryOp, Expr, LogicalOp, VarRef};
use model::{CompareOp, FieldFilter, FieldType, Name, TagExpr};

pub(crate) use measurement::{mentions_name, metadata, names_satisfying, within_measurement};
pub(crate) use tags::{
    of_cardinality as cardinality_condition, of_metadata as tag_condition, tag_names,
};

use super::lower::{arithmetic, constant};
use super::text_search;
use crate::QueryError;
use crate::exec::expression::{Expression, MathFunction};
use crate::exec::predicate::Predicate;

/// Which rows of a source are wanted.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    /// Decided by the store.
    pub tags: TagExpr,
    /// Hints for the store.
    pub filters: Vec<FieldFilter>,
    /// Whether rows that satisfy all `filters` satisfy `predicate`.
    pub is_filtered_exactly: bool,
    /// Evaluated for each row.
    pub predicate: Option<Predicate>,
    /// What the slots of `predicate` are.
    pub slots: Vec<SlotSource>,
}

/// Where the values of a slot come from, in one source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SlotSource {
    /// A field, read as another type perhaps.
    Field { name: Name, stored: FieldType, wanted: FieldType },
    /// A tag.
    Tag(Name),
    /// Nowhere: the source has no such column.
    Missing(FieldType),
}

impl Condition {
    /// Every row.
    pub(crate) fn none() -> Self {
        Self {
            tags: TagExpr::True,
            filters: Vec::new(),
            is_filtered_exactly: true,
            predicate: None,
            slots: Vec::new(),
        }
    }

    /// The condition `expr`, whose names are annotated; `resolve` says what they are in the source.
    ///
    /// # Errors
    /// [`QueryError::Invalid`] for what is no condition.
    pub(crate) fn new(
        expr: Option<&Expr>,
        resolve: &dyn Fn(&VarRef) -> SlotSource,
    ) -> Result<Self, QueryError> {
        let Some(expr) = expr else { return Ok(Self::none()) };
        let mut builder = Builder { resolve, slots: Vec::new() };
        let predicate = builder.predicate(expr)?;
        let mut condition = Self { slots: builder.slots, ..Self::none() };
        let (mut decided, mut rest) = (Vec::new(), Vec::new());
        for part in conjuncts(predicate) {
            let implied = tags::implied(&part);
            if !matches!(implied, TagExpr::True) {
                decided.push(implied);
            }
            if !tags::is_decided(&part) {
                let filter = hints::filter(&part, &condition.slots);
                condition.is_filtered_exactly &= filter.is_some();
                condition.filters.extend(filter);
                rest.push(part);
            }
        }
        condition.tags = tags::all(decided);
        condition.predicate = match rest.len() {
            0 => None,
            1 => rest.pop(),
            _ => Some(Predicate::All(rest)),
        };
        Ok(condition)
    }

    /// The same condition with nothing left to the store: for sources that are no store's.
    ///
    /// # Errors
    /// As [`Condition::new`].
    pub(crate) fn for_rows(
        expr: Option<&Expr>,
        resolve: &dyn Fn(&VarRef) -> SlotSource,
    ) -> Result<Self, QueryError> {
        let Some(expr) = expr else { return Ok(Self::none()) };
        let mut builder = Builder { resolve, slots: Vec::new() };
        let predicate = Some(builder.predicate(expr)?);
        let slots = builder.slots;
        Ok(Self { predicate, is_filtered_exactly: false, slots, ..Self::none() })
    }
}

fn conjuncts(predicate: Predicate) -> Vec<Predicate> {
    match predicate {
        Predicate::All(parts) => parts.into_iter().flat_map(conjuncts).collect(),
        Predicate::Constant(true) => Vec::new(),
        other => vec![other],
    }
}

fn joined(op: LogicalOp, parts: Vec<Predicate>) -> Predicate {
    match op {
        LogicalOp::And => Predicate::All(parts),
        LogicalOp::Or => tags::merge_any(parts),
    }
}

struct Builder<'a> {
    resolve: &'a dyn Fn(&VarRef) -> SlotSource,
    slots: Vec<SlotSource>,
}

impl Builder<'_> {
    fn predicate(&mut self, expr: &Expr) -> Result<Predicate, QueryError> {
        match expr {
            Expr::Paren(inner) => self.predicate(inner),
            Expr::Boolean(holds) => Ok(Predicate::Constant(*holds)),
            Expr::Logical { op, terms } => {
                let parts = terms.iter().map(|term| self.predicate(term));
                Ok(joined(*op, parts.collect::<Result<_, _>>()?))
            }
            Expr::Binary { op, lhs, rhs } if op.is_comparison() => {
                self.comparison(*op, lhs.without_parens(), rhs.without_parens())
            }
            Expr::Binary { op, lhs, rhs } if truth::is_bitwise(*op) => {
                self.bitwise(*op, lhs.without_parens(), rhs.without_parens())
            }
            other => Err(QueryError::invalid(format!("invalid condition expression: {other}"))),
        }
    }

    fn comparison(
        &mut self,
        op: BinaryOp,
        lhs: &Expr,
        rhs: &Expr,
    ) -> Result<Predicate, QueryError> {
        if truth::is_condition(lhs) || truth::is_condition(rhs) {
            return self.comparison_of_truths(op, lhs, rhs);
        }
        if let Expr::VarRef(left) = lhs
            && let SlotSource::Tag(key) = (self.resolve)(left)
            && let Some(decided) = self.tag_comparison(op, &key, rhs)?
        {
            return Ok(decided);
        }
        if let Expr::VarRef(right) = rhs
            && let SlotSource::Tag(key) = (self.resolve)(right)
            && let Some(decided) = self.tag_comparison(op.mirrored(), &key, lhs)?
        {
            return Ok(decided);
        }
        if let Expr::Regex(source) = rhs {
            return Ok(Predicate::Matches {
                value: self.expression(lhs)?,
                search: Arc::new(text_search(source)?),
                negated: op == BinaryOp::NotEqRegex,
            });
        }
        let Some(compare) = compare_op(op) else {
            // A regex operator without a regex matches nothing.
            return Ok(Predicate::Constant(false));
        };
        let (lhs, rhs) = (self.expression(lhs)?, self.expression(rhs)?);
        Ok(match lhs {
            // Constants belong on the right.
            Expression::Constant(_) => {
                Predicate::Compare { op: mirrored(compare), lhs: rhs, rhs: lhs }
            }
            lhs => Predicate::Compare { op: compare, lhs, rhs },
        })
    }

    /// A tag against `other`; `None` if rows have to be looked at.
    fn tag_comparison(
        &self,
        op: BinaryOp,
        key: &Name,
        other: &Expr,
    ) -> Result<Option<Predicate>, QueryError> {
        let positive = match other {
            Expr::String(value) => TagExpr::Equals(key.clone(), value.as_str().into()),
            Expr::Regex(source) => tag_values::matching(key.clone(), source)?,
            Expr::VarRef(var) => match (self.resolve)(var) {
                SlotSource::Tag(second) => TagExpr::SameValue(key.clone(), second),
                _ => return Ok(None),
            },
            // A tag is never equal to anything but text, nor different from it.
            other if other.is_literal() => return Ok(Some(Predicate::Constant(false))),
            _ => return Ok(None),
        };
        Ok(Some(match op {
            BinaryOp::Eq | BinaryOp::EqRegex => Predicate::Tags(positive),
            BinaryOp::NotEq | BinaryOp::NotEqRegex => {
                Predicate::Tags(TagExpr::Not(Box::new(positive)))
            }
            _ => Predicate::Constant(false),
        }))
    }

    fn expression(&mut self, expr: &Expr) -> Result<Expression, QueryError> {
        Ok(match expr {
            Expr::Paren(inner) => self.expression(inner)?,
            Expr::VarRef(var) => Expression::Slot(self.slot((self.resolve)(var))),
            Expr::Binary { op, lhs, rhs } => match arithmetic(*op) {
                Some(op) => Expression::Binary {
                    op,
                    lhs: Box::new(self.expression(lhs)?),
                    rhs: Box::new(self.expression(rhs)?),
                },
                None => {
                    return Err(QueryError::invalid(format!(
                        "invalid condition expression: {expr}"
                    )));
                }
            },
            Expr::Call(call) => match MathFunction::by_name(&call.name) {
                Some(function) if call.args.len() == function.arity() => {
                    let args = call.args.iter().map(|arg| self.expression(arg));
                    Expression::Math { function, args: args.collect::<Result<_, _>>()? }
                }
                _ => Expression::Missing,
            },
            literal => constant(literal).map_or(Expression::Missing, Expression::Constant),
        })
    }

    fn slot(&mut self, source: SlotSource) -> usize {
        match self.slots.iter().position(|slot| *slot == source) {
            Some(at) => at,
            None => {
                self.slots.push(source);
                self.slots.len() - 1
            }
        }
    }
}

fn compare_op(op: BinaryOp) -> Option<CompareOp> {
    Some(match op {
        BinaryOp::Eq => CompareOp::Equal,
        BinaryOp::NotEq => CompareOp::NotEqual,
        BinaryOp::Lt => CompareOp::Less,
        BinaryOp::LtEq => CompareOp::LessOrEqual,
        BinaryOp::Gt => CompareOp::Greater,
        BinaryOp::GtEq => CompareOp::GreaterOrEqual,
        _ => return None,
    })
}

fn mirrored(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Less => CompareOp::Greater,
        CompareOp::LessOrEqual => CompareOp::GreaterOrEqual,
        CompareOp::Greater => CompareOp::Less,
        CompareOp::GreaterOrEqual => CompareOp::LessOrEqual,
        same => same,
    }
}
