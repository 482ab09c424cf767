//! `_name` in conditions: the measurement's name, as if it were a tag.
//!
//! Stores know tags alone. Here what a condition says of the name is decided for each measurement, and
//! what is left of it is about tags. A tag of that name is never looked at, a field of that name is one.

use std::collections::VecDeque;

use model::{ColumnBatch, Name, TagExpr};
use store::{MetadataCursor, MetadataKind, MetadataRequest, NameFilter, StoreError};

use super::{Condition, tags};
use crate::exec::predicate::Predicate;
use crate::plan::names_of;
use crate::{QueryContext, QueryError};

const NAME: &str = "_name";

/// Whether a condition is about the name of the measurement.
pub(crate) fn mentions_name(condition: &TagExpr) -> bool {
    let mut found = false;
    tags::tag_names(condition, &mut |key| found |= &**key == NAME);
    found
}

/// What `condition` is for the measurement `name`.
pub(crate) fn within_measurement(condition: &TagExpr, name: &Name) -> TagExpr {
    let each =
        |parts: &[TagExpr]| parts.iter().map(|part| within_measurement(part, name)).collect();
    match condition {
        TagExpr::And(parts) => tags::all(each(parts)),
        TagExpr::Or(parts) => tags::any(each(parts)),
        TagExpr::Not(part) => match within_measurement(part, name) {
            TagExpr::True => TagExpr::False,
            TagExpr::False => TagExpr::True,
            part => TagExpr::Not(Box::new(part)),
        },
        TagExpr::SameValue(a, b) => match (&**a == NAME, &**b == NAME) {
            (true, true) => TagExpr::True,
            (true, false) => TagExpr::Equals(b.clone(), name.clone()),
            (false, true) => TagExpr::Equals(a.clone(), name.clone()),
            (false, false) => condition.clone(),
        },
        TagExpr::Equals(key, _) | TagExpr::In(key, _) | TagExpr::Matches(key, _)
            if &**key == NAME =>
        {
            if condition.evaluate(&|_| name) {
                TagExpr::True
            } else {
                TagExpr::False
            }
        }
        other => other.clone(),
    }
}

impl Condition {
    /// Decides what the condition says of the measurement's name.
    pub(crate) fn decide_name(&mut self, name: &Name) {
        if mentions_name(&self.tags) {
            self.tags = within_measurement(&self.tags, name);
        }
        if let Some(predicate) = &mut self.predicate {
            decide(predicate, name);
        }
    }
}

fn decide(predicate: &mut Predicate, name: &Name) {
    match predicate {
        Predicate::Tags(tags) if mentions_name(tags) => *tags = within_measurement(tags, name),
        Predicate::All(parts) | Predicate::Any(parts) => {
            parts.iter_mut().for_each(|part| decide(part, name));
        }
        Predicate::Agree(sides) => sides.iter_mut().for_each(|side| decide(side, name)),
        _ => {}
    }
}

/// The measurements that pass a filter and of which a condition holds whatever their tags are, for
/// a condition on the name alone.
///
/// # Errors
/// A failing store.
pub(crate) fn names_satisfying(
    request: &MetadataRequest,
    context: &QueryContext,
) -> Result<Vec<Name>, QueryError> {
    let mut names = measurements(request, context)?;
    names.retain(|name| matches!(within_measurement(&request.series, name), TagExpr::True));
    Ok(names)
}

fn measurements(
    request: &MetadataRequest,
    context: &QueryContext,
) -> Result<Vec<Name>, QueryError> {
    let all = MetadataRequest {
        kind: MetadataKind::Measurements,
        series: TagExpr::True,
        facts_max: None,
        ..request.clone()
    };
    names_of(&all, context)
}

/// Asks the store for names, of each measurement with what the condition is for it.
///
/// # Errors
/// A failing store.
pub(crate) fn metadata(
    request: MetadataRequest,
    context: &QueryContext,
) -> Result<Box<dyn MetadataCursor>, QueryError> {
    if !mentions_name(&request.series) {
        return Ok(context.store.metadata(&request)?);
    }
    // A tag compared with the name gives each measurement a condition of its own.
    let own = compares_tags(&request.series);
    let mut parts: VecDeque<Part> = VecDeque::new();
    for name in measurements(&request, context)? {
        let series = within_measurement(&request.series, &name);
        if matches!(series, TagExpr::False) {
            continue;
        }
        let decisions = decisions(&request.series, &name);
        match parts.back_mut() {
            Some(part) if !own && part.decisions == decisions => part.names.push(name),
            _ => parts.push_back(Part { names: vec![name], series, decisions }),
        }
    }
    Ok(Box::new(PartsCursor { parts, current: None, request, context: context.clone() }))
}

/// Measurements for which the condition is the same.
struct Part {
    names: Vec<Name>,
    series: TagExpr,
    decisions: Vec<bool>,
}

/// What each comparison of the name comes to; the condition is the same where these are.
fn decisions(condition: &TagExpr, name: &Name) -> Vec<bool> {
    let mut found = Vec::new();
    visit(condition, &mut |leaf| match leaf {
        TagExpr::Equals(key, _) | TagExpr::In(key, _) | TagExpr::Matches(key, _)
            if &**key == NAME =>
        {
            found.push(leaf.evaluate(&|_| name));
        }
        _ => {}
    });
    found
}

/// Whether a tag is compared with the name.
fn compares_tags(condition: &TagExpr) -> bool {
    let mut found = false;
    visit(condition, &mut |leaf| {
        found |= matches!(leaf, TagExpr::SameValue(a, b) if (&**a == NAME) != (&**b == NAME));
    });
    found
}

fn visit(condition: &TagExpr, leaf: &mut impl FnMut(&TagExpr)) {
    match condition {
        TagExpr::And(parts) | TagExpr::Or(parts) => {
            parts.iter().for_each(|part| visit(part, leaf));
        }
        TagExpr::Not(part) => visit(part, leaf),
        other => leaf(other),
    }
}

/// The answers for one part after the other.
struct PartsCursor {
    parts: VecDeque<Part>,
    current: Option<Box<dyn MetadataCursor>>,
    request: MetadataRequest,
    context: QueryContext,
}

impl MetadataCursor for PartsCursor {
    fn next(&mut self) -> Result<Option<ColumnBatch>, StoreError> {
        loop {
            if let Some(current) = &mut self.current
                && let Some(batch) = current.next()?
            {
                return Ok(Some(batch));
            }
            let Some(part) = self.parts.pop_front() else { return Ok(None) };
            let request = MetadataRequest {
                measurements: NameFilter::In(part.names),
                series: part.series,
                ..self.request.clone()
            };
            self.current = Some(self.context.store.metadata(&request)?);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(text: &str) -> String {
        let expr = influxql::parse_expr(text, &influxql::Params::new()).unwrap();
        let condition = tags::of_metadata(&expr).unwrap();
        format!("{:?}", within_measurement(&condition, &"cpu".into()))
    }

    #[test]
    fn what_is_said_of_the_name_is_decided() {
        assert_eq!(within("_name = 'cpu'"), "True");
        assert_eq!(within("_name != 'cpu'"), "False");
        assert_eq!(within("_name = 'mem' OR _name = 'cpu'"), "True");
        assert_eq!(within("_name =~ /^c/ AND host = 'a'"), r#"Equals("host", "a")"#);
        assert_eq!(within("_name !~ /^c/ OR host = 'a'"), r#"Equals("host", "a")"#);
        assert_eq!(within("_name = host"), r#"Equals("host", "cpu")"#);
        assert_eq!(within("host != 'a'"), r#"Not(Equals("host", "a"))"#);
    }
}
