//! Row filters on fields: which rows of a column satisfy `field op constant`, or `field op field`, or have a piece of text.

use codec::kernels::{self, Comparison};
use model::{Bitmap, Column, CompareOp, FieldFilter, Name, Operand, Scalar, TextPattern, Values};

/// The times that satisfy the comparison.
pub(crate) fn times(times: &[i64], op: CompareOp, bound: i64) -> Bitmap {
    words(times, op, bound, kernels::compare_i64)
}

/// What the values of a column are compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side<'a> {
    Constant(&'a Scalar),
    /// Whether a text is one that is looked for.
    Text(&'a TextPattern),
    /// The value of the same row.
    Column(&'a Column),
}

/// The rows of `column` that satisfy the comparison. Values of another type than the column's satisfy
/// nothing, missing values neither.
pub(crate) fn matching(column: &Column, op: CompareOp, side: Side<'_>) -> Bitmap {
    let rows = only_valid(
        match side {
            Side::Constant(constant) => matching_constant(&column.values, op, constant),
            Side::Text(pattern) => match &column.values {
                Values::String(texts) => pattern.select(texts, op == CompareOp::Equal),
                other => Bitmap::filled(other.len(), false),
            },
            Side::Column(other) => matching_column(&column.values, op, &other.values),
        },
        column,
    );
    match side {
        Side::Constant(_) | Side::Text(_) => rows,
        Side::Column(other) => only_valid(rows, other),
    }
}

fn matching_constant(values: &Values, op: CompareOp, constant: &Scalar) -> Bitmap {
    match (values, constant) {
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
        _ => Bitmap::filled(values.len(), false),
    }
}

fn matching_column(values: &Values, op: CompareOp, others: &Values) -> Bitmap {
    use Values::{Float, Integer, Unsigned};
    match (values, others) {
        (Float(a), Float(b)) => words(a, op, b.as_slice(), kernels::compare_pairs_f64),
        (Integer(a), Integer(b)) => words(a, op, b.as_slice(), kernels::compare_pairs_i64),
        (Unsigned(a), Unsigned(b)) => words(a, op, b.as_slice(), kernels::compare_pairs_u64),
        _ => Bitmap::filled(values.len(), false),
    }
}

/// Those of `rows` that have a value in `column`.
fn only_valid(rows: Bitmap, column: &Column) -> Bitmap {
    match &column.validity {
        Some(validity) => rows.and(validity),
        None => rows,
    }
}

/// Where columns that a filter looks at are among others: the left one, and the right one if there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilterColumns {
    left: usize,
    right: Option<usize>,
}

impl FilterColumns {
    /// The places of a filter's fields.
    pub(crate) fn of(filter: &FieldFilter, place: impl Fn(&Name) -> Option<usize>) -> Self {
        let place =
            |name| place(name).expect("BUG: filters are about fields that were not asked for");
        let right = match &filter.operand {
            Operand::Constant(_) | Operand::Text(_) => None,
            Operand::Field(other) => Some(place(other)),
        };
        Self { left: place(&filter.field), right }
    }

    /// The rows of some columns that satisfy the filter.
    pub(crate) fn matching(self, filter: &FieldFilter, columns: &[Column]) -> Bitmap {
        let side = match (&filter.operand, self.right) {
            (Operand::Constant(constant), _) => Side::Constant(constant),
            (Operand::Text(pattern), _) => Side::Text(pattern),
            (Operand::Field(_), Some(at)) => Side::Column(&columns[at]),
            (Operand::Field(_), None) => panic!("BUG: the places of another filter"),
        };
        matching(&columns[self.left], filter.op, side)
    }
}

/// One bit a row, as `compare` finds them many at a time.
fn words<T, U>(
    values: &[T],
    op: CompareOp,
    side: U,
    compare: impl Fn(&[T], Comparison, U, &mut Vec<u64>),
) -> Bitmap {
    let mut words = Vec::new();
    compare(values, Comparison::of(|order| op.holds(order)), side, &mut words);
    Bitmap::from_words(words, values.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn column_of(rows: &[Option<i64>]) -> Column {
        let mut column = Column::new(Values::Integer(Vec::new()));
        rows.iter().for_each(|row| column.push(row.map(Scalar::Integer).as_ref()));
        column
    }

    proptest! {
        #[test]
        fn finds_exactly_the_rows_that_satisfy(
            rows in prop::collection::vec(prop::option::of(-3i64..3), 0..200),
            constant in -3i64..3,
        ) {
            let column = column_of(&rows);
            for op in CompareOp::ALL {
                let expected: Bitmap =
                    rows.iter().map(|r| r.is_some_and(|v| op.holds(v.cmp(&constant)))).collect();
                let with = |constant: Scalar| matching(&column, op, Side::Constant(&constant));
                prop_assert_eq!(with(Scalar::Integer(constant)), expected);
                prop_assert_eq!(with(Scalar::Boolean(true)).count_ones(), 0);
                let reversed: Vec<_> = rows.iter().rev().copied().collect();
                let other = column_of(&reversed);
                let expected: Bitmap = rows
                    .iter()
                    .zip(&reversed)
                    .map(|(a, b)| matches!((a, b), (Some(a), Some(b)) if op.holds(a.cmp(b))))
                    .collect();
                prop_assert_eq!(matching(&column, op, Side::Column(&other)), expected);
                let booleans = rows.iter().map(|row| row.is_some_and(|v| v > 0)).collect();
                let column = Column { values: Values::Boolean(booleans), ..column.clone() };
                let constant = constant > 0;
                let holds = |v: i64| op.holds((v > 0).cmp(&constant));
                let expected: Bitmap = rows.iter().map(|r| r.is_some_and(holds)).collect();
                let side = Scalar::Boolean(constant);
                prop_assert_eq!(matching(&column, op, Side::Constant(&side)), expected);
            }
        }
    }

    #[test]
    fn not_a_number_differs_from_everything() {
        let column = Column::new(Values::Float(vec![f64::NAN, 1.0]));
        let ones = |op| {
            matching(&column, op, Side::Constant(&Scalar::Float(1.0))).ones().collect::<Vec<_>>()
        };
        assert_eq!(ones(CompareOp::NotEqual), [0]);
        assert_eq!(ones(CompareOp::LessOrEqual), [1]);
    }
}
