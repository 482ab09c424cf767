//! Row filters on fields: which rows of a column can satisfy `field op constant`.

use model::{Bitmap, Column, CompareOp, Scalar, Values};

/// The rows of `column` that satisfy the comparison. A column of another type than the constant
/// satisfies nothing, a missing value neither.
pub(crate) fn matching(column: &Column, op: CompareOp, value: &Scalar) -> Bitmap {
    let mut rows: Bitmap = match (&column.values, value) {
        (Values::Float(v), Scalar::Float(x)) => v
            .iter()
            .map(|a| a.partial_cmp(x).map_or(op == CompareOp::NotEqual, |o| op.holds(o)))
            .collect(),
        (Values::Integer(v), Scalar::Integer(x)) => compare(v, op, *x),
        (Values::Unsigned(v), Scalar::Unsigned(x)) => compare(v, op, *x),
        (Values::Boolean(v), Scalar::Boolean(x)) => {
            (0..v.len()).map(|at| op.holds(v.get(at).cmp(x))).collect()
        }
        (Values::String(v), Scalar::String(x)) => v.iter().map(|a| op.holds(a.cmp(&**x))).collect(),
        _ => Bitmap::filled(column.len(), false),
    };
    if let Some(validity) = &column.validity {
        let words = rows.words().iter().zip(validity.words()).map(|(r, v)| r & v).collect();
        rows = Bitmap::from_words(words, column.len());
    }
    rows
}

/// One comparison a row, without branches: the inner loops vectorise.
fn compare<T: Copy + Ord>(values: &[T], op: CompareOp, constant: T) -> Bitmap {
    let words = values.chunks(64).map(|chunk| match op {
        CompareOp::Equal => word(chunk, |v| v == constant),
        CompareOp::NotEqual => word(chunk, |v| v != constant),
        CompareOp::Less => word(chunk, |v| v < constant),
        CompareOp::LessOrEqual => word(chunk, |v| v <= constant),
        CompareOp::Greater => word(chunk, |v| v > constant),
        CompareOp::GreaterOrEqual => word(chunk, |v| v >= constant),
    });
    Bitmap::from_words(words.collect(), values.len())
}

fn word<T: Copy>(chunk: &[T], holds: impl Fn(T) -> bool) -> u64 {
    chunk.iter().enumerate().fold(0, |word, (at, value)| word | u64::from(holds(*value)) << at)
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
