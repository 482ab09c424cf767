//! Conditions on rows.
//!
//! A comparison with a missing value, or of values that cannot be compared, does not hold.

use std::sync::Arc;

use codec::kernels::{self, Comparison};
use model::{Bitmap, Column, CompareOp, FieldType, Scalar, Strings, TagExpr, Values};

use super::column::{self, both, cast, type_of};
use super::expression::{Division, Expression};
use super::text_search::TextSearch;

/// A condition over columns.
#[derive(Clone, Debug)]
pub(crate) enum Predicate {
    /// Holds always or never.
    Constant(bool),
    /// All hold.
    All(Vec<Predicate>),
    /// At least one holds.
    Any(Vec<Predicate>),
    /// Both hold or neither does.
    Agree(Box<[Predicate; 2]>),
    /// A condition on tags, which is the same for all rows of a series.
    Tags(TagExpr),
    /// A comparison.
    Compare { op: CompareOp, lhs: Expression, rhs: Expression },
    /// A text matches (or, negated, is there and does not match).
    Matches { value: Expression, search: Arc<TextSearch>, negated: bool },
}

/// What a predicate is evaluated over.
pub(crate) struct Rows<'a> {
    /// The columns that slots refer to.
    pub slots: &'a [&'a Column],
    /// Number of rows.
    pub rows: usize,
    /// The rows whose series satisfy a condition on tags.
    pub tags: &'a dyn Fn(&TagExpr) -> Bitmap,
}

impl Predicate {
    /// The rows for which the condition holds.
    pub(crate) fn select(&self, input: &Rows<'_>) -> Bitmap {
        let value = |e: &Expression| e.evaluate(input.slots, input.rows, Division::Integer);
        match self {
            Self::Constant(holds) => Bitmap::filled(input.rows, *holds),
            Self::All(parts) => join(parts, input, true, |x, y| x & y),
            Self::Any(parts) => join(parts, input, false, |x, y| x | y),
            Self::Agree(sides) => {
                let [lhs, rhs] = sides.each_ref().map(|side| side.select(input));
                column::combine(&lhs, &rhs, |x, y| !(x ^ y))
            }
            Self::Tags(condition) => (input.tags)(condition),
            Self::Compare { op, lhs, rhs: Expression::Constant(constant) } => {
                let lhs = value(lhs);
                match compare_constant(*op, &lhs, constant) {
                    Some(bits) => only_valid(bits, lhs.validity.as_ref()),
                    None => compare(*op, &lhs, &column::repeated(constant, input.rows)),
                }
            }
            Self::Compare { op, lhs, rhs } => compare(*op, &value(lhs), &value(rhs)),
            Self::Matches { value: text, search, negated } => {
                matches(&value(text), search, *negated, input.rows)
            }
        }
    }
}

fn join(
    parts: &[Predicate],
    input: &Rows<'_>,
    start: bool,
    op: impl Fn(u64, u64) -> u64 + Copy,
) -> Bitmap {
    let mut parts = parts.iter();
    let Some(first) = parts.next() else { return Bitmap::filled(input.rows, start) };
    let first = first.select(input);
    parts.fold(first, |all, part| column::combine(&all, &part.select(input), op))
}

fn only_valid(bits: Bitmap, validity: Option<&Bitmap>) -> Bitmap {
    match validity {
        Some(validity) => column::combine(&bits, validity, |x, y| x & y),
        None => bits,
    }
}

/// One bit a value, as `compare` finds them many at a time.
fn found(op: CompareOp, count: usize, compare: impl FnOnce(Comparison, &mut Vec<u64>)) -> Bitmap {
    let mut words = Vec::new();
    compare(Comparison::of(|order| op.holds(order)), &mut words);
    Bitmap::from_words(words, count)
}

/// The hot forms of a comparison with a constant; `None` for the others. Validity is not looked at.
fn compare_constant(op: CompareOp, column: &Column, constant: &Scalar) -> Option<Bitmap> {
    macro_rules! kernel {
        ($compare:ident, $values:expr, $constant:expr) => {
            found(op, $values.len(), |op, out| kernels::$compare($values, op, $constant, out))
        };
    }
    Some(match (&column.values, constant) {
        (Values::Integer(v), Scalar::Integer(c)) => kernel!(compare_i64, v, *c),
        (Values::Integer(v), Scalar::Float(c)) => {
            let (op, c) = (op, *c);
            match op {
                CompareOp::Greater => Bitmap::of(v, |x| x as f64 > c),
                CompareOp::GreaterOrEqual => Bitmap::of(v, |x| x as f64 >= c),
                CompareOp::Less => Bitmap::of(v, |x| (x as f64) < c),
                CompareOp::LessOrEqual => Bitmap::of(v, |x| x as f64 <= c),
                CompareOp::Equal => Bitmap::of(v, |x| x as f64 == c),
                CompareOp::NotEqual => Bitmap::of(v, |x| x as f64 != c),
            }
        }
        (Values::Float(v), Scalar::Float(c)) => kernel!(compare_f64, v, *c),
        (Values::Float(v), Scalar::Integer(c)) => kernel!(compare_f64, v, *c as f64),
        (Values::Unsigned(v), Scalar::Unsigned(c)) => kernel!(compare_u64, v, *c),
        (Values::Unsigned(v), Scalar::Integer(c)) if *c >= 0 => {
            kernel!(compare_u64, v, c.cast_unsigned())
        }
        (Values::String(v), Scalar::String(c)) if is_equality(op) => {
            let want = op == CompareOp::Equal;
            v.matching(|text| (text == c.as_bytes()) == want)
        }
        (Values::Dictionary(codes, texts), Scalar::String(c)) if is_equality(op) => {
            let want = op == CompareOp::Equal;
            of_texts(codes, texts, |text| (text == &**c) == want)
        }
        _ => return None,
    })
}

fn is_equality(op: CompareOp) -> bool {
    matches!(op, CompareOp::Equal | CompareOp::NotEqual)
}

/// A comparison of two columns.
fn compare(op: CompareOp, lhs: &Column, rhs: &Column) -> Bitmap {
    use FieldType::{Boolean, Float, Integer, String, Unsigned};
    macro_rules! pairs {
        ($compare:ident, $a:expr, $b:expr) => {
            found(op, $a.len(), |op, out| kernels::$compare($a, op, $b, out))
        };
    }
    let validity = both(lhs.validity.as_ref(), rhs.validity.as_ref());
    let rows = lhs.len();
    let bits = match (type_of(&lhs.values), type_of(&rhs.values)) {
        (Float, Float | Integer | Unsigned) | (Integer | Unsigned, Float) => {
            let (lhs, rhs) = (cast(lhs.clone(), Float), cast(rhs.clone(), Float));
            match (&lhs.values, &rhs.values) {
                (Values::Float(a), Values::Float(b)) => pairs!(compare_pairs_f64, a, b),
                _ => panic!("BUG: cast to floats before"),
            }
        }
        (Integer, Integer) | (Unsigned, Unsigned) => match (&lhs.values, &rhs.values) {
            (Values::Unsigned(a), Values::Unsigned(b)) => pairs!(compare_pairs_u64, a, b),
            (Values::Integer(a), Values::Integer(b)) => pairs!(compare_pairs_i64, a, b),
            _ => Bitmap::filled(rows, false),
        },
        (Integer | Unsigned, Integer | Unsigned) => {
            let wide = |column: &Column, row| match &column.values {
                Values::Integer(v) => i128::from(v[row]),
                Values::Unsigned(v) => i128::from(v[row]),
                _ => 0,
            };
            (0..rows).map(|row| op.holds(wide(lhs, row).cmp(&wide(rhs, row)))).collect()
        }
        (Boolean, Boolean) if is_equality(op) => match (&lhs.values, &rhs.values) {
            (Values::Boolean(a), Values::Boolean(b)) => {
                let flip = if op == CompareOp::Equal { u64::MAX } else { 0 };
                column::combine(a, b, |x, y| x ^ y ^ flip)
            }
            _ => Bitmap::filled(rows, false),
        },
        (String, String) if is_equality(op) => {
            let want = op == CompareOp::Equal;
            (0..rows)
                .map(|row| (text(&lhs.values, row) == text(&rhs.values, row)) == want)
                .collect()
        }
        _ => Bitmap::filled(rows, false),
    };
    only_valid(bits, validity.as_ref())
}

fn text(values: &Values, row: usize) -> &[u8] {
    match values {
        Values::String(v) => v.get_bytes(row),
        Values::Dictionary(codes, texts) => texts.get_bytes(codes[row] as usize),
        _ => b"",
    }
}

/// A bit for each code whether its text is wanted; no text is asked about more often than it occurs.
fn of_texts(codes: &[u32], texts: &Strings, is_wanted: impl Fn(&str) -> bool) -> Bitmap {
    if codes.len() < texts.len() {
        return Bitmap::of(codes, |code| is_wanted(texts.get(code as usize)));
    }
    let holds: Vec<bool> = texts.iter().map(is_wanted).collect();
    Bitmap::of(codes, |code| holds[code as usize])
}

fn matches(column: &Column, search: &TextSearch, negated: bool, rows: usize) -> Bitmap {
    let bits = match &column.values {
        Values::String(v) => search.select(v, negated),
        Values::Dictionary(codes, texts) => {
            of_texts(codes, texts, |text| search.is_match(text.as_bytes()) != negated)
        }
        _ => return Bitmap::filled(rows, false),
    };
    only_valid(bits, column.validity.as_ref())
}

#[cfg(test)]
mod tests;
