use super::*;
use proptest::prelude::*;

fn select(predicate: &Predicate, slots: &[&Column], rows: usize) -> Vec<bool> {
    let tags = |_: &TagExpr| Bitmap::filled(rows, false);
    let bits = predicate.select(&Rows { slots, rows, tags: &tags });
    (0..rows).map(|row| bits.get(row)).collect()
}

fn compare_slot(op: CompareOp, constant: Scalar) -> Predicate {
    Predicate::Compare { op, lhs: Expression::Slot(0), rhs: Expression::Constant(constant) }
}

proptest! {
    #[test]
    fn numbers_compare_across_types(
        rows in prop::collection::vec((-5i64..5, any::<bool>()), 0..150),
        constant in -5i64..5,
        kind in 0usize..9,
    ) {
        let as_kind = |v: i64, kind: usize| match kind {
            0 => Scalar::Integer(v),
            1 => Scalar::Float(v as f64),
            _ => Scalar::Unsigned(v.unsigned_abs()),
        };
        let real = |v: i64, kind: usize| if kind == 2 { v.abs() } else { v };
        let (left, right) = (kind % 3, kind / 3);
        let mut values = Column::new(Values::empty(as_kind(0, left).field_type()));
        for (v, valid) in &rows {
            values.push(valid.then(|| as_kind(*v, left)).as_ref());
        }
        for op in CompareOp::ALL {
            let got = select(&compare_slot(op, as_kind(constant, right)), &[&values], rows.len());
            for (got, (v, valid)) in got.into_iter().zip(&rows) {
                let holds = op.holds(real(*v, left).cmp(&real(constant, right)));
                prop_assert_eq!(got, *valid && holds);
            }
        }
    }
}

#[test]
fn what_cannot_be_compared_does_not_hold() {
    let texts = Column::new(Values::String(["a", "b"].into_iter().collect()));
    for op in CompareOp::ALL {
        assert_eq!(select(&compare_slot(op, Scalar::Integer(1)), &[&texts], 2), [false; 2]);
    }
    let less = compare_slot(CompareOp::Less, Scalar::String("b".into()));
    assert_eq!(select(&less, &[&texts], 2), [false; 2]);
    let equal = compare_slot(CompareOp::Equal, Scalar::String("b".into()));
    assert_eq!(select(&equal, &[&texts], 2), [false, true]);
}

#[test]
fn regexes_see_only_what_is_there() {
    let mut texts = Column::new(Values::String(["ab", "b"].into_iter().collect()));
    texts.extend_missing(1);
    let search = Arc::new(TextSearch::new("^a").unwrap());
    let matches = |negated| Predicate::Matches {
        value: Expression::Slot(0),
        search: Arc::clone(&search),
        negated,
    };
    assert_eq!(select(&matches(false), &[&texts], 3), [true, false, false]);
    assert_eq!(select(&matches(true), &[&texts], 3), [false, true, false]);
    let either = Predicate::Any(vec![matches(false), matches(true)]);
    assert_eq!(select(&either, &[&texts], 3), [true, true, false]);
}
