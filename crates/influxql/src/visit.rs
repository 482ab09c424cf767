//! Walking and rewriting expressions.
//!
//! Recursion is as deep as the tree, which the parser bounds; runs of AND and OR are loops.

use crate::ast::{Call, Expr, VarRef};

/// The direct operands, arguments or terms of `expr`, in the order of the text.
pub fn children(expr: &Expr) -> impl Iterator<Item = &Expr> {
    let (one, two, many): (Option<&Expr>, Option<&Expr>, &[Expr]) = match expr {
        Expr::Binary { lhs, rhs, .. } => (Some(lhs), Some(rhs), &[]),
        Expr::Paren(inner) => (Some(inner), None, &[]),
        Expr::Logical { terms, .. } => (None, None, terms),
        Expr::Call(call) => (None, None, &call.args),
        _ => (None, None, &[]),
    };
    one.into_iter().chain(two).chain(many)
}

/// Calls `visit` on `expr` and everything below it, parents first; where `visit` gives false, what is below is left out.
pub fn walk<'e>(expr: &'e Expr, visit: &mut impl FnMut(&'e Expr) -> bool) {
    if visit(expr) {
        for child in children(expr) {
            walk(child, visit);
        }
    }
}

/// The first answer of `find`, parents before children and left before right.
pub fn find_map<'e, T>(expr: &'e Expr, find: &mut impl FnMut(&'e Expr) -> Option<T>) -> Option<T> {
    find(expr).or_else(|| children(expr).find_map(|child| find_map(child, find)))
}

/// Whether `test` holds for `expr` or anything below it.
pub fn any<'e>(expr: &'e Expr, test: &mut impl FnMut(&'e Expr) -> bool) -> bool {
    find_map(expr, &mut |e| test(e).then_some(())).is_some()
}

/// Replaces every node by what `change` makes of it, children first.
#[must_use]
pub fn rewrite(expr: Expr, change: &mut impl FnMut(Expr) -> Expr) -> Expr {
    let expr = match expr {
        Expr::Binary { op, mut lhs, mut rhs } => {
            rewrite_in(&mut lhs, change);
            rewrite_in(&mut rhs, change);
            Expr::Binary { op, lhs, rhs }
        }
        Expr::Logical { op, terms } => {
            let terms = terms.into_iter().map(|term| rewrite(term, change));
            // Splicing keeps the form flat when a term has become a run of the same operator.
            Expr::logical(op, terms.collect::<Vec<_>>()).expect("BUG: a run has terms")
        }
        Expr::Paren(mut inner) => {
            rewrite_in(&mut inner, change);
            Expr::Paren(inner)
        }
        Expr::Call(Call { name, mut args }) => {
            args.iter_mut().for_each(|arg| rewrite_in(arg, change));
            Expr::Call(Call { name, args })
        }
        leaf => leaf,
    };
    change(expr)
}

/// The same where the expression stands, so that boxes are kept.
fn rewrite_in(place: &mut Expr, change: &mut impl FnMut(Expr) -> Expr) {
    *place = rewrite(std::mem::replace(place, Expr::Nil), change);
}

/// All references to names, in order of appearance, repeated as they are; those inside calls too.
pub fn var_refs(expr: &Expr) -> Vec<&VarRef> {
    let mut refs = Vec::new();
    walk(expr, &mut |e| {
        if let Expr::VarRef(v) = e {
            refs.push(v);
        }
        true
    });
    refs
}

/// All calls, outer before inner.
pub fn calls(expr: &Expr) -> Vec<&Call> {
    let mut calls = Vec::new();
    walk(expr, &mut |e| {
        if let Expr::Call(call) = e {
            calls.push(call);
        }
        true
    });
    calls
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BinaryOp, LogicalOp, Params, parse_expr};

    fn expr(text: &str) -> Expr {
        parse_expr(text, &Params::new()).expect("valid")
    }

    #[test]
    fn collects_in_order() {
        let e = expr("a + f(b, g(c)) > 3 AND (d = 'x' OR a = 1)");
        let names: Vec<_> = var_refs(&e).iter().map(|v| v.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "d", "a"]);
        let names: Vec<_> = calls(&e).iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["f", "g"]);
    }

    #[test]
    fn walk_leaves_out_what_is_refused() {
        let e = expr("a + f(b)");
        let mut seen = 0;
        walk(&e, &mut |e| {
            seen += 1;
            !matches!(e, Expr::Call(_))
        });
        assert_eq!(seen, 3);
    }

    #[test]
    fn rewrites_children_first_and_stays_flat() {
        let e = rewrite(expr("a = 1 OR b = 2 OR c"), &mut |e| match e {
            Expr::VarRef(v) if v.name == "c" => expr("x = 3 OR y = 4"),
            Expr::VarRef(v) => Expr::var(v.name.to_uppercase()),
            other => other,
        });
        assert_eq!(e, expr("A = 1 OR B = 2 OR x = 3 OR y = 4"));
    }

    #[test]
    fn rewrite_reaches_everything() {
        let e = rewrite(expr("-(f(1) * 1) + 1"), &mut |e| match e {
            Expr::Integer(1) => Expr::Integer(7),
            other => other,
        });
        assert_eq!(e.to_string(), "-1 * (f(7) * 7) + 7");
    }

    #[test]
    fn logical_of_few_terms() {
        assert_eq!(Expr::logical(LogicalOp::And, []), None);
        assert_eq!(Expr::logical(LogicalOp::And, [Expr::Nil]), Some(Expr::Nil));
        let binary = Expr::binary(BinaryOp::Eq, Expr::Nil, Expr::Nil);
        assert!(any(&binary, &mut |e| *e == Expr::Nil));
    }
}
