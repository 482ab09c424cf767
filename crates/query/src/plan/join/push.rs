//! Conditions of the query around a join that its sides can use.
//!
//! A part of the condition that concerns the columns of one side, or the tags that rows pair by,
//! holds for no row where that side has none: the joined row would lack the values. So rows that
//! fail it can be left out before they are joined, whatever the kind of join, and the joined rows
//! are tested again.

use influxql::{Expr, LogicalOp, VarRef, visit};

use super::{JoinSide, JoinSource};
use crate::QueryError;
use crate::plan::push::{conjuncts, groups_inside, is_about};
use crate::plan::resolve::condition_of;
use crate::plan::{Source, types};

impl JoinSource {
    /// Gives each side the parts of the condition that concern it.
    pub(super) fn push_conditions(&mut self, condition: Option<&Expr>) -> Result<(), QueryError> {
        let Some(condition) = condition else { return Ok(()) };
        let mut parts = Vec::new();
        conjuncts(condition, &mut parts);
        for at in 0..self.sides.len() {
            let own = parts.iter().filter(|part| is_about(part, &|var| self.is_of(var, at)));
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
        let Some(Source::Subquery(inner)) = &self.sides[at].source else { return own.cloned() };
        let is_tag = |var: &VarRef| self.is_of(var, at) && self.has_tag(&var.name);
        groups_inside(&inner.select, condition, own, |part| is_about(part, &is_tag))
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
