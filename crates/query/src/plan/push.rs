//! Parts of a condition that choose among the groups of an inner query: what they leave out need not be computed there.
//!
//! The rows of the inner query are tested again.

use influxql::{DataType, Expr, Fill, LogicalOp, VarRef, visit};

use super::{Select, Source, SubquerySource, types};

/// The condition `own` of a subquery with the parts of `condition`, that of the query around it, whose names are annotated,
/// that are about its tags alone.
pub(super) fn condition_inside(
    subquery: &SubquerySource,
    condition: Option<&Expr>,
    own: Option<&Expr>,
) -> Option<Expr> {
    let select = &subquery.select;
    let is_tag = |var: &VarRef| {
        var.data_type == Some(DataType::Tag)
            && select.own_dimensions.iter().any(|dimension| **dimension == *var.name)
            && !select.outputs.iter().any(|output| output.reference == var.name)
    };
    groups_inside(select, condition, own, |part| is_about(part, &is_tag))
}

/// The condition `own` of an inner query with those parts of `condition` that are about the tags of its groups, among those
/// that may be looked at there.
pub(super) fn groups_inside(
    select: &Select,
    condition: Option<&Expr>,
    own: Option<&Expr>,
    may_be_inside: impl Fn(&Expr) -> bool,
) -> Option<Expr> {
    let mut parts = Vec::new();
    if keeps_groups_apart(select)
        && let Some(condition) = condition
    {
        conjuncts(condition, &mut parts);
        let is_tag =
            |var: &VarRef| types::of_name(&var.name, &select.sources) == Some(DataType::Tag);
        parts.retain(|part| {
            may_be_inside(part) && visit::var_refs(part).iter().all(|var| is_tag(var))
        });
    }
    Expr::logical(LogicalOp::And, own.into_iter().chain(parts).cloned().collect::<Vec<_>>())
}

/// Whether `expr` is made of comparisons, and each is about columns that `is_one` says and nothing else.
pub(super) fn is_about(expr: &Expr, is_one: &dyn Fn(&VarRef) -> bool) -> bool {
    match expr {
        Expr::Paren(inner) => is_about(inner, is_one),
        Expr::Logical { terms, .. } => terms.iter().all(|term| is_about(term, is_one)),
        Expr::Binary { op, .. } if op.is_comparison() => {
            let names = visit::var_refs(expr);
            !names.is_empty() && names.iter().all(|var| is_one(var))
        }
        _ => false,
    }
}

/// Whether what a SELECT gives for a group depends on no other group, and the tags of its groups are
/// those of measurements.
fn keeps_groups_apart(select: &Select) -> bool {
    let is_measured = select.sources.iter().all(|s| matches!(s, Source::Measurement(_)));
    // Without a bound the first row of any group is where empty windows begin.
    let has_own_windows =
        select.windows.is_none() || select.fill == Fill::None || select.has_lower_bound();
    is_measured && has_own_windows && select.series_limit == 0 && select.series_offset == 0
}

/// The parts that all have to hold.
pub(super) fn conjuncts<'e>(expr: &'e Expr, parts: &mut Vec<&'e Expr>) {
    match expr {
        Expr::Paren(inner) => conjuncts(inner, parts),
        Expr::Logical { op: LogicalOp::And, terms } => {
            terms.iter().for_each(|term| conjuncts(term, parts));
        }
        part => parts.push(part),
    }
}
