//! Conditions a scan can be narrowed by.

use std::cmp::Ordering;

use regex::Regex;

use crate::{FieldType, Name, TextPattern};

/// A condition on the tags of a series. A series lacking a tag has the value `""` for it.
#[derive(Clone, Debug)]
pub enum TagExpr {
    /// Always holds.
    True,
    /// Never holds.
    False,
    /// All hold.
    And(Vec<TagExpr>),
    /// At least one holds.
    Or(Vec<TagExpr>),
    /// The inner condition does not hold.
    Not(Box<TagExpr>),
    /// The tag has exactly this value (`""`: the series lacks the tag).
    Equals(Name, Name),
    /// The tag has one of these values, sorted and distinct.
    In(Name, Vec<Name>),
    /// The tag's value matches.
    Matches(Name, Regex),
    /// Two tags have the same value.
    SameValue(Name, Name),
}

impl TagExpr {
    /// Whether the condition holds for a series whose tags `tag` looks up (`""` when absent).
    pub fn evaluate<'a>(&self, tag: &impl Fn(&str) -> &'a str) -> bool {
        match self {
            Self::True => true,
            Self::False => false,
            Self::And(parts) => parts.iter().all(|p| p.evaluate(tag)),
            Self::Or(parts) => parts.iter().any(|p| p.evaluate(tag)),
            Self::Not(part) => !part.evaluate(tag),
            Self::Equals(key, value) => tag(key) == &**value,
            Self::In(key, values) => {
                let have = tag(key);
                values.binary_search_by(|v| (**v).cmp(have)).is_ok()
            }
            Self::Matches(key, regex) => regex.is_match(tag(key)),
            Self::SameValue(a, b) => tag(a) == tag(b),
        }
    }
}

/// One value of a field's type.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// float64.
    Float(f64),
    /// int64.
    Integer(i64),
    /// uint64.
    Unsigned(u64),
    /// Text.
    String(Name),
    /// True or false.
    Boolean(bool),
}

impl Scalar {
    /// The type of the value.
    #[must_use]
    pub fn field_type(&self) -> FieldType {
        match self {
            Self::Float(_) => FieldType::Float,
            Self::Integer(_) => FieldType::Integer,
            Self::Unsigned(_) => FieldType::Unsigned,
            Self::String(_) => FieldType::String,
            Self::Boolean(_) => FieldType::Boolean,
        }
    }
}

/// How a field is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompareOp {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// For which values an operator holds, as far as bounds of the values tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// For none.
    Never,
    /// For some perhaps.
    Maybe,
    /// For all.
    Always,
}

impl CompareOp {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Equal,
        Self::NotEqual,
        Self::Less,
        Self::LessOrEqual,
        Self::Greater,
        Self::GreaterOrEqual,
    ];

    /// Whether two values that compare as `ordering` satisfy the operator.
    #[must_use]
    pub fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }

    /// Whether two values satisfy the operator of which only is known that they compare as something from `least` to
    /// `most`; if no order lies between these, nothing is known.
    #[must_use]
    pub fn holds_within(self, least: Ordering, most: Ordering) -> Holds {
        let orders = [Ordering::Less, Ordering::Equal, Ordering::Greater];
        let possible = orders.into_iter().filter(|order| least <= *order && *order <= most);
        let (mut some, mut all) = (least > most, true);
        for order in possible {
            some |= self.holds(order);
            all &= self.holds(order);
        }
        match (some, all) {
            (false, _) => Holds::Never,
            (true, true) if least <= most => Holds::Always,
            _ => Holds::Maybe,
        }
    }
}

/// A condition on one field that every wanted row satisfies; a row lacking the field does not.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldFilter {
    /// The field; it need not be among the requested ones.
    pub field: Name,
    /// The comparison, field on the left.
    pub op: CompareOp,
    /// What is on the right.
    pub operand: Operand,
}

/// What a field is compared with.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A constant of the field's own type.
    Constant(Scalar),
    /// Another field of the same type, which is a number; a row lacking it does not satisfy the condition.
    Field(Name),
    /// Texts that are looked for in a field of texts: they are wanted with [`CompareOp::Equal`], others with
    /// [`CompareOp::NotEqual`]; no other operator goes with them.
    Text(TextPattern),
}

impl FieldFilter {
    /// The fields that are looked at: the one on the left, and the one on the right if there is one.
    pub fn fields(&self) -> impl Iterator<Item = &Name> {
        let other = match &self.operand {
            Operand::Constant(_) | Operand::Text(_) => None,
            Operand::Field(other) => Some(other),
        };
        std::iter::once(&self.field).chain(other)
    }
}
