//! Conditions of the query around a join that its sides can use.
//!
//! A part of the condition that concerns the columns of one side, or the tags that rows pair by,
//! holds for no row where that side has none: the joined row would lack the values. So rows that
//! fail it can be left out before they are joined, whatever the kind of join, and the joined rows
//! are tested again.

use influxql::{DataType, Expr, Fill, LogicalOp, VarRef, visit};

use super::{JoinSide, JoinSource};
use crate::QueryError;
use crate::plan::resolve::condition_of;
use crate::plan::{Select, Source, types};

impl JoinSource {
    /// Gives each side the parts of the condition that concern it.
    pub(super) fn push_conditions(&mut self, condition: Option<&Expr>) -> Result<(), QueryError> {
        let Some(condition) = condition else { return Ok(()) };
        let mut parts = Vec::new();
        conjuncts(condition, &mut parts);
        for at in 0..self.sides.len() {
            let own = parts.iter().filter(|part| self.concerns(part, at));
            let own = own.map(|part| self.renamed((*part).clone(), at));
            let Some(own) = Expr::logical(LogicalOp::And, own.collect::<Vec<_>>()) else {
                continue;
            };
            let Some(source) = &mut self.sides[at].source else { continue };
            let annotated = types::annotate(own, std::slice::from_ref(source));
            let condition = condition_of(Some(&annotated), source)?;
            match source {
                Source::Measurement(measurement) => measurement.condition = condition,
                Source::Subquery(inner) => inner.condition = condition,
                Source::Join(_) => panic!("BUG: a join stands alone in its FROM"),
            }
        }
        Ok(())
    }

    /// The condition `own` of the subquery on the side `at`, with the parts of `condition` that choose
    /// among its groups: what they leave out need not be computed.
    pub(super) fn condition_inside(
        &self,
        at: usize,
        condition: Option<&Expr>,
        own: Option<&Expr>,
    ) -> Option<Expr> {
        let mut parts = Vec::new();
        if let Some(Source::Subquery(inner)) = &self.sides[at].source
            && keeps_groups_apart(&inner.select)
            && let Some(condition) = condition
        {
            conjuncts(condition, &mut parts);
            let is_tag = |name: &str| {
                self.has_tag(name)
                    && types::of_name(name, &inner.select.sources) == Some(DataType::Tag)
            };
            parts.retain(|part| {
                self.concerns(part, at) && visit::var_refs(part).iter().all(|var| is_tag(&var.name))
            });
        }
        Expr::logical(LogicalOp::And, own.into_iter().chain(parts).cloned().collect::<Vec<_>>())
    }

    /// Whether every comparison of `expr` is about the side `at` and nothing else.
    fn concerns(&self, expr: &Expr, at: usize) -> bool {
        match expr {
            Expr::Paren(inner) => self.concerns(inner, at),
            Expr::Logical { terms, .. } => terms.iter().all(|term| self.concerns(term, at)),
            Expr::Binary { op, .. } if op.is_comparison() => {
                let names = visit::var_refs(expr);
                !names.is_empty() && names.iter().all(|var| self.is_of(var, at))
            }
            _ => false,
        }
    }

    fn is_of(&self, var: &VarRef, at: usize) -> bool {
        match self.column(&var.name) {
            Some((side, _)) => side == at && var.data_type.is_none(),
            // A column of the same name would be taken for the tag on its side.
            None => self.has_tag(&var.name) && !self.sides[at].has_own(&var.name),
        }
    }

    /// `expr` with the names that columns have on the side `at`.
    fn renamed(&self, expr: Expr, at: usize) -> Expr {
        visit::rewrite(expr, &mut |expr| match expr {
            Expr::VarRef(var) => match self.column(&var.name) {
                Some((side, column)) if side == at => {
                    Expr::VarRef(VarRef::new(column.own.to_string()))
                }
                _ => Expr::VarRef(var),
            },
            other => other,
        })
    }
}

impl JoinSide {
    fn has_own(&self, name: &str) -> bool {
        self.columns.iter().any(|column| *column.own == *name)
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

fn conjuncts<'e>(expr: &'e Expr, parts: &mut Vec<&'e Expr>) {
    match expr {
        Expr::Paren(inner) => conjuncts(inner, parts),
        Expr::Logical { op: LogicalOp::And, terms } => {
            terms.iter().for_each(|term| conjuncts(term, parts));
        }
        part => parts.push(part),
    }
}
