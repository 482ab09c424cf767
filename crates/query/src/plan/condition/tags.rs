//! Conditions on tags: deciding them, joining them, and what others imply for them.

use influxql::{BinaryOp, Expr, LogicalOp};
use model::{Name, TagExpr};

use super::tag_values;
use crate::QueryError;
use crate::exec::predicate::Predicate;

/// Whether a predicate says something about tags only.
pub(super) fn is_decided(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::Constant(_) | Predicate::Tags(_) => true,
        Predicate::All(parts) | Predicate::Any(parts) => parts.iter().all(is_decided),
        _ => false,
    }
}

/// The strongest condition on tags that holds wherever `predicate` does; the same thing if it is
/// decided by tags.
pub(super) fn implied(predicate: &Predicate) -> TagExpr {
    match predicate {
        Predicate::Constant(false) => TagExpr::False,
        Predicate::Tags(tags) => tags.clone(),
        Predicate::All(parts) => all(parts.iter().map(implied).collect()),
        Predicate::Any(parts) => any(parts.iter().map(implied).collect()),
        _ => TagExpr::True,
    }
}

/// All of `parts`.
pub(super) fn all(parts: Vec<TagExpr>) -> TagExpr {
    let mut kept = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            TagExpr::True => {}
            TagExpr::False => return TagExpr::False,
            TagExpr::And(inner) => kept.extend(inner),
            other => kept.push(other),
        }
    }
    match kept.len() {
        0 => TagExpr::True,
        1 => kept.remove(0),
        _ => TagExpr::And(kept),
    }
}

/// At least one of `parts`; equalities of one tag become a list.
pub(super) fn any(parts: Vec<TagExpr>) -> TagExpr {
    let mut kept: Vec<TagExpr> = Vec::with_capacity(parts.len());
    let mut lists: Vec<(Name, Vec<Name>)> = Vec::new();
    let mut list = |key: Name, values: Vec<Name>| match lists.iter_mut().find(|l| l.0 == key) {
        Some((_, all)) => all.extend(values),
        None => lists.push((key, values)),
    };
    for part in parts {
        match part {
            TagExpr::False => {}
            TagExpr::True => return TagExpr::True,
            TagExpr::Or(inner) => kept.extend(inner),
            TagExpr::Equals(key, value) => list(key, vec![value]),
            TagExpr::In(key, values) => list(key, values),
            other => kept.push(other),
        }
    }
    for (key, mut values) in lists {
        values.sort_unstable();
        values.dedup();
        kept.push(match values.len() {
            1 => TagExpr::Equals(key, values.remove(0)),
            _ => TagExpr::In(key, values),
        });
    }
    match kept.len() {
        0 => TagExpr::False,
        1 => kept.remove(0),
        _ => TagExpr::Or(kept),
    }
}

/// At least one of `parts`, with those about tags joined into one.
pub(super) fn merge_any(parts: Vec<Predicate>) -> Predicate {
    let (decided, mut rest): (Vec<_>, Vec<_>) = parts.into_iter().partition(is_decided);
    if !decided.is_empty() {
        match any(decided.iter().map(implied).collect()) {
            TagExpr::False => {}
            TagExpr::True => return Predicate::Constant(true),
            tags => rest.push(Predicate::Tags(tags)),
        }
    }
    match rest.len() {
        0 => Predicate::Constant(false),
        1 => rest.remove(0),
        _ => Predicate::Any(rest),
    }
}

/// Calls `visit` with every tag that `condition` looks at.
pub(crate) fn tag_names(condition: &TagExpr, visit: &mut impl FnMut(&Name)) {
    match condition {
        TagExpr::True | TagExpr::False => {}
        TagExpr::And(parts) | TagExpr::Or(parts) => {
            parts.iter().for_each(|part| tag_names(part, visit));
        }
        TagExpr::Not(part) => tag_names(part, visit),
        TagExpr::Equals(key, _) | TagExpr::In(key, _) | TagExpr::Matches(key, _) => visit(key),
        TagExpr::SameValue(a, b) => {
            visit(a);
            visit(b);
        }
    }
}

/// The condition of a statement about names, where every name is a tag.
///
/// # Errors
/// [`QueryError::Invalid`] for what is no condition on tags.
pub(crate) fn of_metadata(expr: &Expr) -> Result<TagExpr, QueryError> {
    of_names(expr, &|| Err(QueryError::invalid("invalid tag comparison operator")))
}

/// As [`of_metadata`]; a comparison of something else than tags holds for no series.
///
/// # Errors
/// A regex that does not compile.
pub(crate) fn of_cardinality(expr: &Expr) -> Result<TagExpr, QueryError> {
    of_names(expr, &|| Ok(TagExpr::False))
}

fn of_names(
    expr: &Expr,
    otherwise: &dyn Fn() -> Result<TagExpr, QueryError>,
) -> Result<TagExpr, QueryError> {
    match expr.without_parens() {
        Expr::Boolean(true) => Ok(TagExpr::True),
        Expr::Boolean(false) => Ok(TagExpr::False),
        Expr::Logical { op, terms } => {
            let parts = terms
                .iter()
                .map(|term| of_names(term, otherwise))
                .collect::<Result<Vec<_>, _>>()?;
            Ok(match op {
                LogicalOp::And => all(parts),
                LogicalOp::Or => any(parts),
            })
        }
        Expr::Binary { op, lhs, rhs } => {
            let (lhs, rhs) = (lhs.without_parens(), rhs.without_parens());
            let (key, other) = match (lhs, rhs) {
                (Expr::VarRef(var), other) | (other, Expr::VarRef(var)) => (&var.name, other),
                _ => return otherwise(),
            };
            let key = Name::from(key.as_str());
            let positive = match other {
                Expr::String(value) => TagExpr::Equals(key, value.as_str().into()),
                Expr::Regex(source) => tag_values::matching(key, source)?,
                Expr::VarRef(second) => TagExpr::SameValue(key, second.name.as_str().into()),
                _ => return otherwise(),
            };
            match op {
                BinaryOp::Eq | BinaryOp::EqRegex => Ok(positive),
                BinaryOp::NotEq | BinaryOp::NotEqRegex => Ok(TagExpr::Not(Box::new(positive))),
                _ => otherwise(),
            }
        }
        _ => otherwise(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(text: &str) -> String {
        let expr = influxql::parse_expr(text, &influxql::Params::new()).unwrap();
        of_metadata(&expr).map_or_else(|e| e.to_string(), |t| format!("{t:?}"))
    }

    #[test]
    fn equalities_of_one_tag_become_a_list() {
        assert_eq!(tags("a = 'x' OR a = 'y' OR a = 'x'"), r#"In("a", ["x", "y"])"#);
        assert_eq!(tags("a = 'x' OR a = 'x'"), r#"Equals("a", "x")"#);
        assert_eq!(tags("a = 'x' AND TRUE"), r#"Equals("a", "x")"#);
        assert_eq!(tags("a = b"), r#"SameValue("a", "b")"#);
    }

    #[test]
    fn only_comparisons_of_tags_are_conditions() {
        for text in ["a > 'x'", "a = 5", "'x' = 'x'", "a"] {
            assert_eq!(tags(text), "invalid tag comparison operator", "{text}");
        }
    }
}
