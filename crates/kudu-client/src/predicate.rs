//! Conditions on single columns, brought into one normal form: it is what servers are sent and what
//! decides which tablets are visited.

use std::cmp::Ordering;

use crate::error::Error;
use crate::proto::{Empty, EqualityPredicate, InListPredicate, PredicateMessage, RangePredicate};
use crate::schema::{Column, DataType, Schema, Value};

/// A condition that rows of a scan satisfy. Several are combined with AND. NULL satisfies
/// [`Predicate::is_null`] only.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicate {
    column: String,
    condition: Condition,
}

#[derive(Clone, Debug, PartialEq)]
enum Condition {
    Equal(Value),
    Less(Value),
    LessOrEqual(Value),
    Greater(Value),
    GreaterOrEqual(Value),
    In(Vec<Value>),
    IsNull,
    IsNotNull,
}

impl Predicate {
    fn new(column: &str, condition: Condition) -> Self {
        Self { column: column.to_owned(), condition }
    }

    /// `column = value`
    #[must_use]
    pub fn equal(column: &str, value: impl Into<Value>) -> Self {
        Self::new(column, Condition::Equal(value.into()))
    }

    /// `column < value`
    #[must_use]
    pub fn less(column: &str, value: impl Into<Value>) -> Self {
        Self::new(column, Condition::Less(value.into()))
    }

    /// `column <= value`
    #[must_use]
    pub fn less_or_equal(column: &str, value: impl Into<Value>) -> Self {
        Self::new(column, Condition::LessOrEqual(value.into()))
    }

    /// `column > value`
    #[must_use]
    pub fn greater(column: &str, value: impl Into<Value>) -> Self {
        Self::new(column, Condition::Greater(value.into()))
    }

    /// `column >= value`
    #[must_use]
    pub fn greater_or_equal(column: &str, value: impl Into<Value>) -> Self {
        Self::new(column, Condition::GreaterOrEqual(value.into()))
    }

    /// `column IN (values)`, in any order.
    #[must_use]
    pub fn in_list<V: Into<Value>>(column: &str, values: impl IntoIterator<Item = V>) -> Self {
        Self::new(column, Condition::In(values.into_iter().map(Into::into).collect()))
    }

    /// `column IS NULL`
    #[must_use]
    pub fn is_null(column: &str) -> Self {
        Self::new(column, Condition::IsNull)
    }

    /// `column IS NOT NULL`
    #[must_use]
    pub fn is_not_null(column: &str) -> Self {
        Self::new(column, Condition::IsNotNull)
    }
}

/// The normal form of all conditions on one column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Test {
    /// No row satisfies it.
    Nothing,
    IsNull,
    NotNull,
    Equal(Value),
    /// Ascending, at least two.
    In(Vec<Value>),
    /// `lower` is inclusive, `upper` exclusive; at least one is there.
    Range {
        lower: Option<Value>,
        upper: Option<Value>,
    },
}

/// Tests by column, at most one each.
pub(crate) type Tests = Vec<(usize, Test)>;

/// Brings conditions into normal form.
pub(crate) fn normalise(predicates: &[Predicate], schema: &Schema) -> Result<Tests, Error> {
    let mut tests: Tests = Vec::new();
    for predicate in predicates {
        let index = schema.index(&predicate.column)?;
        let Some(column) = schema.columns().get(index) else { continue };
        let Some(test) = to_test(&predicate.condition, column)? else { continue };
        match tests.iter_mut().find(|(i, _)| *i == index) {
            Some((_, known)) => *known = combine(known, &test, column.data_type),
            None => tests.push((index, test)),
        }
    }
    Ok(tests)
}

/// `None`: every row satisfies it.
fn to_test(condition: &Condition, column: &Column) -> Result<Option<Test>, Error> {
    let data_type = column.data_type;
    let checked = |value: &Value| -> Result<Value, Error> {
        value.check(data_type, &column.name)?;
        Ok(value.clone())
    };
    Ok(Some(match condition {
        Condition::Equal(value) => Test::Equal(checked(value)?),
        Condition::Less(value) => range(None, Some(checked(value)?), data_type),
        Condition::LessOrEqual(value) => match checked(value)?.successor(data_type) {
            Some(next) => range(None, Some(next), data_type),
            None => Test::NotNull,
        },
        Condition::Greater(value) => match checked(value)?.successor(data_type) {
            Some(next) => range(Some(next), None, data_type),
            None => Test::Nothing,
        },
        Condition::GreaterOrEqual(value) => range(Some(checked(value)?), None, data_type),
        Condition::In(values) => list(values.iter().map(checked).collect::<Result<_, _>>()?),
        Condition::IsNull if column.nullable => Test::IsNull,
        Condition::IsNull => Test::Nothing,
        Condition::IsNotNull if column.nullable => Test::NotNull,
        Condition::IsNotNull => return Ok(None),
    }))
}

fn list(mut values: Vec<Value>) -> Test {
    values.sort_by(Value::compare);
    values.dedup_by(|a, b| a.compare(b) == Ordering::Equal);
    match values.len() {
        0 => Test::Nothing,
        1 => values.pop().map_or(Test::Nothing, Test::Equal),
        _ => Test::In(values),
    }
}

fn range(lower: Option<Value>, upper: Option<Value>, data_type: DataType) -> Test {
    if let (Some(low), Some(high)) = (&lower, &upper) {
        if low.compare(high) != Ordering::Less {
            return Test::Nothing;
        }
        if low.successor(data_type).is_some_and(|next| next.compare(high) == Ordering::Equal) {
            return Test::Equal(low.clone());
        }
    }
    Test::Range { lower, upper }
}

fn combine(a: &Test, b: &Test, data_type: DataType) -> Test {
    match (a, b) {
        (Test::IsNull, Test::IsNull) => Test::IsNull,
        (Test::Nothing | Test::IsNull, _) | (_, Test::Nothing | Test::IsNull) => Test::Nothing,
        (Test::NotNull, other) | (other, Test::NotNull) => other.clone(),
        (
            Test::Range { lower: low_a, upper: high_a },
            Test::Range { lower: low_b, upper: high_b },
        ) => {
            let lower = pick(low_a.as_ref(), low_b.as_ref(), Ordering::Greater);
            let upper = pick(high_a.as_ref(), high_b.as_ref(), Ordering::Less);
            range(lower, upper, data_type)
        }
        (Test::Equal(value), other) | (other, Test::Equal(value)) => {
            if accepts(other, value) {
                Test::Equal(value.clone())
            } else {
                Test::Nothing
            }
        }
        (Test::In(values), other) | (other, Test::In(values)) => {
            list(values.iter().filter(|value| accepts(other, value)).cloned().collect())
        }
    }
}

fn pick(a: Option<&Value>, b: Option<&Value>, wanted: Ordering) -> Option<Value> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if a.compare(b) == wanted { a } else { b }.clone()),
        (one, other) => one.or(other).cloned(),
    }
}

fn accepts(test: &Test, value: &Value) -> bool {
    match test {
        Test::Nothing | Test::IsNull => false,
        Test::NotNull => true,
        Test::Equal(wanted) => wanted.compare(value) == Ordering::Equal,
        Test::In(values) => values.binary_search_by(|v| v.compare(value)).is_ok(),
        Test::Range { lower, upper } => {
            lower.as_ref().is_none_or(|low| low.compare(value) != Ordering::Greater)
                && upper.as_ref().is_none_or(|high| value.compare(high) == Ordering::Less)
        }
    }
}

/// As servers are sent it. Never called for [`Test::Nothing`]: such a scan asks nobody.
pub(crate) fn to_message(column: &Column, test: &Test) -> PredicateMessage {
    let wire = |value: &Value| value.wire(column.data_type);
    let mut message =
        PredicateMessage { column: Some(column.name.clone()), ..PredicateMessage::default() };
    match test {
        Test::IsNull => message.is_null = Some(Empty {}),
        Test::NotNull => message.is_not_null = Some(Empty {}),
        Test::Equal(value) => {
            message.equality = Some(EqualityPredicate { value: Some(wire(value)) });
        }
        Test::In(values) => {
            message.in_list = Some(InListPredicate { values: values.iter().map(wire).collect() });
        }
        Test::Range { lower, upper } => {
            message.range = Some(RangePredicate {
                lower: lower.as_ref().map(wire),
                upper: upper.as_ref().map(wire),
            });
        }
        Test::Nothing => message.in_list = Some(InListPredicate { values: Vec::new() }),
    }
    message
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn schema() -> Schema {
        Schema::new(
            vec![Column::new("k", DataType::Int8), Column::new("v", DataType::Int8).nullable()],
            1,
        )
        .unwrap()
    }

    fn test_of(predicates: &[Predicate]) -> Option<Test> {
        normalise(predicates, &schema()).unwrap().into_iter().next().map(|(_, test)| test)
    }

    #[test]
    fn normal_forms() {
        let range = |lower: i32, upper: i32| {
            Some(Test::Range { lower: Some(lower.into()), upper: Some(upper.into()) })
        };
        let at_least = Predicate::greater_or_equal("v", 3);
        assert_eq!(test_of(&[at_least.clone(), Predicate::less_or_equal("v", 8)]), range(3, 9));
        let equal = Some(Test::Equal(3.into()));
        assert_eq!(test_of(&[at_least.clone(), Predicate::less("v", 4)]), equal);
        assert_eq!(test_of(&[at_least.clone(), Predicate::less("v", 3)]), Some(Test::Nothing));
        assert_eq!(test_of(&[at_least.clone(), Predicate::in_list("v", [3, 1, 3])]), equal);
        assert_eq!(test_of(&[Predicate::less_or_equal("v", 127)]), Some(Test::NotNull));
        assert_eq!(test_of(&[Predicate::greater("v", 127)]), Some(Test::Nothing));
        assert_eq!(test_of(&[Predicate::is_null("v"), at_least]), Some(Test::Nothing));
        assert_eq!(test_of(&[Predicate::is_null("k")]), Some(Test::Nothing));
        assert_eq!(test_of(&[Predicate::is_not_null("k")]), None);
        assert_eq!(test_of(&[Predicate::in_list("v", [0_i32; 0])]), Some(Test::Nothing));
        assert!(normalise(&[Predicate::equal("v", 300)], &schema()).is_err());
        assert!(normalise(&[Predicate::equal("nope", 3)], &schema()).is_err());
    }

    fn any_predicate() -> impl Strategy<Value = Predicate> {
        let value = -5_i32..5;
        prop_oneof![
            value.clone().prop_map(|v| Predicate::equal("v", v)),
            value.clone().prop_map(|v| Predicate::less("v", v)),
            value.clone().prop_map(|v| Predicate::less_or_equal("v", v)),
            value.clone().prop_map(|v| Predicate::greater("v", v)),
            value.clone().prop_map(|v| Predicate::greater_or_equal("v", v)),
            prop::collection::vec(value, 0..6).prop_map(|v| Predicate::in_list("v", v)),
            Just(Predicate::is_null("v")),
            Just(Predicate::is_not_null("v")),
        ]
    }

    fn satisfies(predicate: &Predicate, cell: Option<i32>) -> bool {
        let as_int = |value: &Value| match value {
            Value::Int(v) => *v as i32,
            _ => unreachable!(),
        };
        match (&predicate.condition, cell) {
            (Condition::IsNull, cell) => cell.is_none(),
            (_, None) => false,
            (Condition::IsNotNull, Some(_)) => true,
            (Condition::Equal(v), Some(c)) => c == as_int(v),
            (Condition::Less(v), Some(c)) => c < as_int(v),
            (Condition::LessOrEqual(v), Some(c)) => c <= as_int(v),
            (Condition::Greater(v), Some(c)) => c > as_int(v),
            (Condition::GreaterOrEqual(v), Some(c)) => c >= as_int(v),
            (Condition::In(values), Some(c)) => values.iter().any(|v| c == as_int(v)),
        }
    }

    proptest! {
        #[test]
        fn the_normal_form_means_the_same(
            predicates in prop::collection::vec(any_predicate(), 1..5),
        ) {
            let test = test_of(&predicates).unwrap();
            for cell in (-6..6).map(Some).chain([None]) {
                let wanted = predicates.iter().all(|p| satisfies(p, cell));
                let got = match cell {
                    None => test == Test::IsNull,
                    Some(cell) => accepts(&test, &cell.into()),
                };
                prop_assert_eq!(got, wanted, "{:?} of {:?}", cell, test);
            }
        }
    }
}
