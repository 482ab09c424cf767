//! The condition of SHOW MEASUREMENTS, which is about measurements and not about series: each
//! comparison names those that have the tag and (for `=` and `=~`) some series with such a value, or
//! (for `!=` and `!~`) none. AND and OR intersect and unite these sets.

use std::collections::BTreeSet;

use influxql::{BinaryOp, Expr};
use model::{DatabaseId, Name, TagExpr};
use store::{MetadataKind, MetadataRequest, NameFilter};

use crate::plan::{names_of, names_satisfying};
use crate::{QueryContext, QueryError};

/// Refuses comparisons of tags with anything but text.
pub(super) fn check(condition: &Expr) -> Result<(), QueryError> {
    if let Expr::Binary { op, lhs, rhs } = condition {
        let is_time = |side: &Expr| matches!(side, Expr::VarRef(var) if var.is_time());
        let names_tag = matches!(&**lhs, Expr::VarRef(_)) && !is_time(lhs) && !is_time(rhs);
        let equality = matches!(op, BinaryOp::Eq | BinaryOp::NotEq);
        if names_tag && equality && !matches!(&**rhs, Expr::String(_)) {
            return Err(QueryError::invalid(format!(
                "right side of '{}' must be a tag value string",
                op.as_str()
            )));
        }
    }
    influxql::visit::children(condition).try_for_each(check)
}

/// The measurements within `among` that satisfy a condition.
pub(super) fn satisfying(
    condition: &TagExpr,
    among: &NameFilter,
    database: DatabaseId,
    context: &QueryContext,
) -> Result<NameFilter, QueryError> {
    let sets = Sets { among, database, context };
    Ok(NameFilter::In(sets.of(condition)?.into_iter().collect()))
}

struct Sets<'a> {
    among: &'a NameFilter,
    database: DatabaseId,
    context: &'a QueryContext,
}

impl Sets<'_> {
    fn of(&self, condition: &TagExpr) -> Result<BTreeSet<Name>, QueryError> {
        let (name, tags): (Vec<_>, Vec<_>) =
            keys(condition).into_iter().partition(|key| &**key == "_name");
        if !name.is_empty() && tags.is_empty() {
            let names = names_satisfying(&self.request(condition), self.context)?;
            return Ok(names.into_iter().collect());
        }
        match condition {
            TagExpr::And(parts) => {
                let mut parts = parts.iter();
                let Some(first) = parts.next() else { return self.having(&TagExpr::True) };
                let mut found = self.of(first)?;
                for part in parts {
                    let other = self.of(part)?;
                    found.retain(|name| other.contains(name));
                }
                Ok(found)
            }
            TagExpr::Or(parts) => {
                let mut found = BTreeSet::new();
                for part in parts {
                    found.extend(self.of(part)?);
                }
                Ok(found)
            }
            TagExpr::Not(inner) => {
                let present = keys(inner).into_iter().map(present).collect();
                let mut having = self.having(&TagExpr::And(present))?;
                let without = self.of(inner)?;
                having.retain(|name| !without.contains(name));
                Ok(having)
            }
            leaf => {
                let present = keys(leaf).into_iter().map(present);
                self.having(&TagExpr::And(present.chain([leaf.clone()]).collect()))
            }
        }
    }

    /// Measurements with a series that satisfies `series`.
    fn having(&self, series: &TagExpr) -> Result<BTreeSet<Name>, QueryError> {
        Ok(names_of(&self.request(series), self.context)?.into_iter().collect())
    }

    fn request(&self, series: &TagExpr) -> MetadataRequest {
        MetadataRequest {
            database: self.database,
            kind: MetadataKind::Measurements,
            measurements: self.among.clone(),
            series: series.clone(),
            facts_max: None,
            context: self.context.scan_context(),
        }
    }
}

/// The tags that a condition is about.
fn keys(condition: &TagExpr) -> Vec<Name> {
    let mut keys = Vec::new();
    crate::plan::tag_names(condition, &mut |name| keys.push(name.clone()));
    keys
}

/// The tag is there.
fn present(key: Name) -> TagExpr {
    TagExpr::Not(Box::new(TagExpr::Equals(key, "".into())))
}
