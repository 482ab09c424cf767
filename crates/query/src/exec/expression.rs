//! Expressions over columns: arithmetic and mathematical functions, a column at a time.
//!
//! Rules of types are InfluxDB's: integers stay integers and wrap, a float on either side makes
//! floats, division by zero is 0, what has no rule has no value.
//!
//! Not here: comparisons (see `predicate`), aggregates.

mod arithmetic;
mod math;

use std::borrow::Cow;

use model::{Column, FieldType, Scalar};

pub(crate) use arithmetic::ArithmeticOp;
pub(crate) use math::MathFunction;

use super::column;

/// Something to compute for each row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    /// A column of the input.
    Slot(usize),
    /// The same value for every row.
    Constant(Scalar),
    /// No value for any row.
    Missing,
    /// Two operands.
    Binary { op: ArithmeticOp, lhs: Box<Expression>, rhs: Box<Expression> },
    /// A mathematical function.
    Math { function: MathFunction, args: Vec<Expression> },
}

/// What the quotient of two integers is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Division {
    /// A float: among the selected fields.
    Float,
    /// An integer, cut toward zero: in conditions.
    Integer,
}

impl Expression {
    /// The values over `rows` rows of the columns `slots`.
    pub(crate) fn evaluate<'a>(
        &self,
        slots: &[&'a Column],
        rows: usize,
        division: Division,
    ) -> Cow<'a, Column> {
        match self {
            Self::Slot(slot) => Cow::Borrowed(slots[*slot]),
            Self::Constant(value) => Cow::Owned(column::repeated(value, rows)),
            Self::Missing => Cow::Owned(column::missing(FieldType::Float, rows)),
            Self::Binary { op, lhs, rhs } => {
                let lhs = lhs.evaluate(slots, rows, division);
                let rhs = rhs.evaluate(slots, rows, division);
                Cow::Owned(arithmetic::apply(*op, lhs, rhs, division))
            }
            Self::Math { function, args } => {
                let args: Vec<Column> = args
                    .iter()
                    .map(|arg| arg.evaluate(slots, rows, division).into_owned())
                    .collect();
                Cow::Owned(function.apply(args))
            }
        }
    }
}

#[cfg(test)]
mod tests;
