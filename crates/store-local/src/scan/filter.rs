//! Row filters on fields: which rows of a column can satisfy `field op constant`.

use codec::kernels::{self, Comparison};
use model::{Bitmap, Column, CompareOp, Scalar, Values};

/// The rows of `column` that satisfy the comparison. A column of another type than the constant
/// satisfies nothing, a missing value neither.
pub(crate) fn matching(column: &Column, op: CompareOp, value: &Scalar) -> Bitmap {
    let mut rows: Bitmap = match (&column.values, value) {
        (Values::Float(v), Scalar::Float(x)) => words(v, op, *x, kernels::compare_f64),
        (Values::Integer(v), Scalar::Integer(x)) => words(v, op, *x, kernels::compare_i64),
        (Values::Unsigned(v), Scalar::Unsigned(x)) => words(v, op, *x, kernels::compare_u64),
        (Values::Boolean(v), Scalar::Boolean(x)) => {
            let mask = |value: bool| if op.holds(value.cmp(x)) { u64::MAX } else { 0 };
            let (of_true, of_false) = (mask(true), mask(false));
            let words = v.words().iter().map(|w| w & of_true | !w & of_false).collect();
            Bitmap::from_words(words, v.len())
        }
        (Values::String(v), Scalar::String(x)) => {
            // Texts order as their bytes do.
            let wanted = x.as_bytes();
            match op {
                CompareOp::Equal => v.matching(|text| text == wanted),
                CompareOp::NotEqual => v.matching(|text| text != wanted),
                _ => v.matching(|text| op.holds(text.cmp(wanted))),
            }
        }
        _ => Bitmap::filled(column.len(), false),
    };
    if let Some(validity) = &column.validity {
        let words = rows.words().iter().zip(validity.words()).map(|(r, v)| r & v).collect();
        rows = Bitmap::from_words(words, column.len());
    }
    rows
}

/// One bit a row, as `compare` finds them many at a time.
fn words<T>(
    values: &[T],
    op: CompareOp,
    constant: T,
    compare: impl Fn(&[T], Comparison, T, &mut Vec<u64>),
) -> Bitmap {
    let mut words = Vec::new();
    compare(values, Comparison::of(|order| op.holds(order)), constant, &mut words);
    Bitmap::from_words(words, values.len())
}

/// Whether two filters' rows leave any: the rows that satisfy both.
pub(crate) fn both(a: &Bitmap, b: &Bitmap) -> Bitmap {
    let words = a.words().iter().zip(b.words()).map(|(a, b)| a & b).collect();
    Bitmap::from_words(words, a.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OPS: [CompareOp; 6] = [
        CompareOp::Equal,
        CompareOp::NotEqual,
        CompareOp::Less,
        CompareOp::LessOrEqual,
        CompareOp::Greater,
        CompareOp::GreaterOrEqual,
    ];

    proptest! {
        #[test]
        fn finds_exactly_the_rows_that_satisfy(
            rows in prop::collection::vec(prop::option::of(-3i64..3), 0..200),
            constant in -3i64..3,
        ) {
            let mut column = Column::new(Values::Integer(Vec::new()));
            for row in &rows {
                match row {
                    Some(v) => column.extend_from(&Column::new(Values::Integer(vec![*v])), 0..1),
                    None => column.extend_missing(1),
                }
            }
            for op in OPS {
                let expected: Bitmap =
                    rows.iter().map(|r| r.is_some_and(|v| op.holds(v.cmp(&constant)))).collect();
                prop_assert_eq!(matching(&column, op, &Scalar::Integer(constant)), expected);
                prop_assert_eq!(matching(&column, op, &Scalar::Boolean(true)).count_ones(), 0);
                let booleans = rows.iter().map(|row| row.is_some_and(|v| v > 0)).collect();
                let column = Column { values: Values::Boolean(booleans), ..column.clone() };
                let constant = constant > 0;
                let holds = |v: i64| op.holds((v > 0).cmp(&constant));
                let expected: Bitmap = rows.iter().map(|r| r.is_some_and(holds)).collect();
                prop_assert_eq!(matching(&column, op, &Scalar::Boolean(constant)), expected);
            }
        }
    }

    #[test]
    fn not_a_number_differs_from_everything() {
        let column = Column::new(Values::Float(vec![f64::NAN, 1.0]));
        let ones = |op| matching(&column, op, &Scalar::Float(1.0)).ones().collect::<Vec<_>>();
        assert_eq!(ones(CompareOp::NotEqual), [0]);
        assert_eq!(ones(CompareOp::LessOrEqual), [1]);
    }
}
