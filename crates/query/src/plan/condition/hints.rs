//! Comparisons of a field with a constant, another field or a text, in the form a store understands.

use model::{CompareOp, FieldFilter, FieldType, Name, Operand, Scalar};

use super::SlotSource;
use crate::exec::expression::Expression;
use crate::exec::predicate::Predicate;

/// Integers beyond this are not told apart as floats.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The filter that holds for the same rows as `predicate`, if it has a simple form.
pub(super) fn filter(predicate: &Predicate, slots: &[SlotSource]) -> Option<FieldFilter> {
    let Predicate::Matches { value: Expression::Slot(slot), search, negated } = predicate else {
        return comparison(predicate, slots);
    };
    let (name, _) = field(&slots[*slot]).filter(|(_, stored)| *stored == FieldType::String)?;
    let op = if *negated { CompareOp::NotEqual } else { CompareOp::Equal };
    let operand = Operand::Text(search.pattern()?.clone());
    Some(FieldFilter { field: name.clone(), op, operand })
}

/// The filter that holds for the same rows as a comparison.
fn comparison(predicate: &Predicate, slots: &[SlotSource]) -> Option<FieldFilter> {
    let Predicate::Compare { op, lhs: Expression::Slot(slot), rhs } = predicate else {
        return None;
    };
    let (name, stored) = field(&slots[*slot])?;
    let value = match rhs {
        Expression::Constant(value) => value,
        Expression::Slot(other) => {
            let (other, _) = field(&slots[*other])
                .filter(|(_, of_other)| *of_other == stored && stored.is_numeric())?;
            let operand = Operand::Field(other.clone());
            return Some(FieldFilter { field: name.clone(), op: *op, operand });
        }
        _ => return None,
    };
    let (op, value) = match (stored, value) {
        (FieldType::Float, Scalar::Integer(v)) if (*v as f64).abs() < EXACT_MAX => {
            (*op, Scalar::Float(*v as f64))
        }
        (FieldType::Integer, Scalar::Float(v)) => whole(*op, *v)?,
        (FieldType::Unsigned, Scalar::Integer(v)) if *v >= 0 => {
            (*op, Scalar::Unsigned(v.cast_unsigned()))
        }
        (FieldType::String | FieldType::Boolean, _)
            if !matches!(op, CompareOp::Equal | CompareOp::NotEqual) =>
        {
            return None;
        }
        (stored, value) if value.field_type() == stored => (*op, value.clone()),
        _ => return None,
    };
    Some(FieldFilter { field: name.clone(), op, operand: Operand::Constant(value) })
}

/// A field that is read as it is stored, and its type.
fn field(slot: &SlotSource) -> Option<(&Name, FieldType)> {
    match slot {
        SlotSource::Field { name, stored, wanted } if stored == wanted => Some((name, *stored)),
        _ => None,
    }
}

/// A comparison of integers that holds for the same integers as `op v`.
fn whole(op: CompareOp, v: f64) -> Option<(CompareOp, Scalar)> {
    if v.is_nan() || v.abs() >= EXACT_MAX {
        return None;
    }
    let (op, v) = match op {
        CompareOp::Greater => (CompareOp::Greater, v.floor()),
        CompareOp::GreaterOrEqual => (CompareOp::GreaterOrEqual, v.ceil()),
        CompareOp::Less => (CompareOp::Less, v.ceil()),
        CompareOp::LessOrEqual => (CompareOp::LessOrEqual, v.floor()),
        // Equal to a fraction: nothing is; the rows are looked at all the same.
        op if v.fract() == 0.0 => (op, v),
        _ => return None,
    };
    Some((op, Scalar::Integer(v as i64)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whole_comparisons_hold_for_the_same_integers(
            v in prop_oneof![-5.0f64..5.0, (-5i64..5).prop_map(|v| v as f64)],
            x in -6i64..6,
        ) {
            for op in CompareOp::ALL {
                let want = op.holds((x as f64).partial_cmp(&v).unwrap());
                if let Some((op, Scalar::Integer(v))) = whole(op, v) {
                    prop_assert_eq!(op.holds(x.cmp(&v)), want);
                }
            }
        }
    }
}
