//! `+ - * / % & | ^` on columns.

use std::borrow::Cow;

use model::{Bitmap, Column, FieldType, Values};

use super::Division;
use crate::exec::column::{self, both, cast, missing, type_of};

/// An operator that makes a value, not a truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArithmeticOp {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    BitAnd,
    BitOr,
    BitXor,
}

impl ArithmeticOp {
    fn is_bitwise(self) -> bool {
        matches!(self, Self::BitAnd | Self::BitOr | Self::BitXor)
    }
}

/// `lhs op rhs`, row by row.
pub(crate) fn apply(
    op: ArithmeticOp,
    lhs: Cow<'_, Column>,
    rhs: Cow<'_, Column>,
    division: Division,
) -> Column {
    use FieldType::{Boolean, Float, Integer, Unsigned};
    let types = (type_of(&lhs.values), type_of(&rhs.values));
    if types == (Boolean, Boolean) {
        return booleans(op, &lhs, &rhs);
    }
    let rows = lhs.len();
    let validity = both(lhs.validity.as_ref(), rhs.validity.as_ref());
    let values = match types {
        (Float, Float | Integer | Unsigned) | (Integer | Unsigned, Float) => {
            let lhs = cast(lhs.into_owned(), Float);
            let rhs = cast(rhs.into_owned(), Float);
            floats(op, &lhs.values, &rhs.values)
        }
        (Integer, Integer) => integers(op, &lhs.values, &rhs.values, division),
        (Unsigned, Unsigned | Integer) | (Integer, Unsigned) => {
            let lhs = cast(lhs.into_owned(), Unsigned);
            let rhs = cast(rhs.into_owned(), Unsigned);
            unsigneds(op, &lhs.values, &rhs.values)
        }
        _ => None,
    };
    match values {
        Some(values) => Column { values, validity },
        None => missing(Float, rows),
    }
}

fn zip<A: Copy, R>(a: &[A], b: &[A], op: impl Fn(A, A) -> R) -> Vec<R> {
    a.iter().zip(b).map(|(x, y)| op(*x, *y)).collect()
}

fn floats(op: ArithmeticOp, a: &Values, b: &Values) -> Option<Values> {
    let (Values::Float(a), Values::Float(b)) = (a, b) else { return None };
    Some(Values::Float(match op {
        ArithmeticOp::Add => zip(a, b, |x, y| x + y),
        ArithmeticOp::Sub => zip(a, b, |x, y| x - y),
        ArithmeticOp::Mul => zip(a, b, |x, y| x * y),
        ArithmeticOp::Div => zip(a, b, |x, y| if y == 0.0 { 0.0 } else { x / y }),
        ArithmeticOp::Mod => zip(a, b, |x, y| x % y),
        _ => return None,
    }))
}

fn integers(op: ArithmeticOp, a: &Values, b: &Values, division: Division) -> Option<Values> {
    let (Values::Integer(a), Values::Integer(b)) = (a, b) else { return None };
    Some(Values::Integer(match op {
        ArithmeticOp::Add => zip(a, b, i64::wrapping_add),
        ArithmeticOp::Sub => zip(a, b, i64::wrapping_sub),
        ArithmeticOp::Mul => zip(a, b, i64::wrapping_mul),
        ArithmeticOp::Div if division == Division::Float => {
            let quotient = |x: i64, y: i64| if y == 0 { 0.0 } else { x as f64 / y as f64 };
            return Some(Values::Float(zip(a, b, quotient)));
        }
        ArithmeticOp::Div => zip(a, b, |x, y| if y == 0 { 0 } else { x.wrapping_div(y) }),
        ArithmeticOp::Mod => zip(a, b, |x, y| if y == 0 { 0 } else { x.wrapping_rem(y) }),
        ArithmeticOp::BitAnd => zip(a, b, |x, y| x & y),
        ArithmeticOp::BitOr => zip(a, b, |x, y| x | y),
        ArithmeticOp::BitXor => zip(a, b, |x, y| x ^ y),
    }))
}

fn unsigneds(op: ArithmeticOp, a: &Values, b: &Values) -> Option<Values> {
    let (Values::Unsigned(a), Values::Unsigned(b)) = (a, b) else { return None };
    Some(Values::Unsigned(match op {
        ArithmeticOp::Add => zip(a, b, u64::wrapping_add),
        ArithmeticOp::Sub => zip(a, b, u64::wrapping_sub),
        ArithmeticOp::Mul => zip(a, b, u64::wrapping_mul),
        ArithmeticOp::Div => zip(a, b, |x, y| x.checked_div(y).unwrap_or(0)),
        ArithmeticOp::Mod => zip(a, b, |x, y| x.checked_rem(y).unwrap_or(0)),
        ArithmeticOp::BitAnd => zip(a, b, |x, y| x & y),
        ArithmeticOp::BitOr => zip(a, b, |x, y| x | y),
        ArithmeticOp::BitXor => zip(a, b, |x, y| x ^ y),
    }))
}

/// Logic on booleans: a missing operand counts as false if the other one is there.
fn booleans(op: ArithmeticOp, lhs: &Column, rhs: &Column) -> Column {
    let (Values::Boolean(a), Values::Boolean(b)) = (&lhs.values, &rhs.values) else {
        panic!("BUG: booleans expected");
    };
    if !op.is_bitwise() {
        return missing(FieldType::Boolean, a.len());
    }
    let known = |bits: &Bitmap, validity: Option<&Bitmap>| match validity {
        Some(validity) => column::combine(bits, validity, |x, y| x & y),
        None => bits.clone(),
    };
    let a = known(a, lhs.validity.as_ref());
    let b = known(b, rhs.validity.as_ref());
    let values = column::combine(&a, &b, |x, y| match op {
        ArithmeticOp::BitAnd => x & y,
        ArithmeticOp::BitOr => x | y,
        _ => x ^ y,
    });
    let validity = match (&lhs.validity, &rhs.validity) {
        (Some(a), Some(b)) => Some(column::combine(a, b, |x, y| x | y)),
        _ => None,
    };
    Column { values: Values::Boolean(values), validity }
}
