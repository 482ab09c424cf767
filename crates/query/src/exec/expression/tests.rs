use super::*;
use model::{Bitmap, Values};
use proptest::prelude::*;

fn column(values: Values, valid: &[bool]) -> Column {
    Column { values, validity: Some(valid.iter().copied().collect()) }
}

fn binary(op: ArithmeticOp, lhs: Expression, rhs: Expression) -> Expression {
    Expression::Binary { op, lhs: Box::new(lhs), rhs: Box::new(rhs) }
}

fn int(v: i64) -> Expression {
    Expression::Constant(Scalar::Integer(v))
}

#[test]
fn division_follows_influxdb() {
    let seven = column(Values::Integer(vec![7, 1, -7]), &[true, true, true]);
    let by = |divisor, division| {
        let e = binary(ArithmeticOp::Div, Expression::Slot(0), int(divisor));
        let out = e.evaluate(&[&seven], 3, division);
        (0..3).map(|row| out.get(row).unwrap()).collect::<Vec<_>>()
    };
    let floats = |v: [f64; 3]| v.map(Scalar::Float).to_vec();
    let ints = |v: [i64; 3]| v.map(Scalar::Integer).to_vec();
    assert_eq!(by(2, Division::Float), floats([3.5, 0.5, -3.5]));
    assert_eq!(by(2, Division::Integer), ints([3, 0, -3]));
    assert_eq!(by(0, Division::Float), floats([0.0; 3]));
    assert_eq!(by(0, Division::Integer), ints([0; 3]));
}

#[test]
fn a_missing_boolean_counts_as_false_beside_a_known_one() {
    let bits = |v: [bool; 3]| Values::Boolean(v.into_iter().collect::<Bitmap>());
    let a = column(bits([true, true, true]), &[true, false, false]);
    let b = column(bits([true, true, true]), &[false, true, false]);
    let e = binary(ArithmeticOp::BitOr, Expression::Slot(0), Expression::Slot(1));
    let out = e.evaluate(&[&a, &b], 3, Division::Float);
    let cells: Vec<_> = (0..3).map(|row| out.get(row)).collect();
    let yes = Some(Scalar::Boolean(true));
    assert_eq!(cells, [yes.clone(), yes, None]);
}

#[test]
fn functions_keep_or_change_types() {
    let ints = column(Values::Integer(vec![-3, 4]), &[true, false]);
    let apply = |function| {
        let e = Expression::Math { function, args: vec![Expression::Slot(0)] };
        let out = e.evaluate(&[&ints], 2, Division::Float).into_owned();
        (out.get(0), out.get(1))
    };
    assert_eq!(apply(MathFunction::Abs), (Some(Scalar::Integer(3)), None));
    assert_eq!(apply(MathFunction::Floor), (Some(Scalar::Integer(-3)), None));
    let (root, none) = apply(MathFunction::Sqrt);
    assert!(matches!(root, Some(Scalar::Float(v)) if v.is_nan()));
    assert_eq!(none, None);
    assert_eq!(apply(MathFunction::Exp).0, Some(Scalar::Float((-3f64).exp())));
}

proptest! {
    #[test]
    fn integers_wrap_as_scalars_do(
        rows in prop::collection::vec((any::<i64>(), any::<i64>(), any::<bool>()), 0..40),
    ) {
        let a = Column::new(Values::Integer(rows.iter().map(|r| r.0).collect()));
        let valid: Vec<bool> = rows.iter().map(|r| r.2).collect();
        let b = column(Values::Integer(rows.iter().map(|r| r.1).collect()), &valid);
        let e = binary(
            ArithmeticOp::Mod,
            binary(ArithmeticOp::Mul, Expression::Slot(0), Expression::Slot(1)),
            binary(ArithmeticOp::Sub, Expression::Slot(1), int(3)),
        );
        let out = e.evaluate(&[&a, &b], rows.len(), Division::Float);
        for (row, (x, y, valid)) in rows.iter().enumerate() {
            let divisor = y.wrapping_sub(3);
            let product = x.wrapping_mul(*y);
            let want = if divisor == 0 { 0 } else { product.wrapping_rem(divisor) };
            prop_assert_eq!(out.get(row), valid.then_some(Scalar::Integer(want)));
        }
    }
}
