//! Evaluates a condition on tags over one measurement of one part.
//!
//! A set may stand for everything but itself, so that `!=` and absent tags cost nothing until the
//! end, when the measurement's list of all series is read once.

use std::ops::ControlFlow;

use model::{Name, Regex, TagExpr};
use regex_syntax::hir::Look;
use regex_syntax::hir::literal::Extractor;
use roaring::RoaringTreemap;

use crate::error::SeriesResult;
use crate::part::MeasurementPart;
use crate::posting::{Posting, Union};

/// Fewer values of a tag are matched sooner than it is known what an expression's matches begin with.
const MANY_VALUES: u64 = 256;

/// The series a condition holds for.
pub(crate) fn select(part: &dyn MeasurementPart, expr: &TagExpr) -> SeriesResult<RoaringTreemap> {
    match evaluate(part, expr)? {
        Selected::These(ids) => Ok(ids),
        Selected::AllBut(ids) => {
            let mut all = part.all()?;
            all -= ids;
            Ok(all)
        }
    }
}

#[derive(Clone, Debug)]
enum Selected {
    These(RoaringTreemap),
    AllBut(RoaringTreemap),
}

impl Selected {
    fn none() -> Self {
        Self::These(RoaringTreemap::new())
    }

    fn all() -> Self {
        Self::AllBut(RoaringTreemap::new())
    }

    fn not(self) -> Self {
        match self {
            Self::These(ids) => Self::AllBut(ids),
            Self::AllBut(ids) => Self::These(ids),
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::These(a), Self::These(b)) => Self::These(a & b),
            (Self::These(a), Self::AllBut(b)) | (Self::AllBut(b), Self::These(a)) => {
                Self::These(a - b)
            }
            (Self::AllBut(a), Self::AllBut(b)) => Self::AllBut(a | b),
        }
    }

    fn is_none(&self) -> bool {
        matches!(self, Self::These(ids) if ids.is_empty())
    }
}

fn evaluate(part: &dyn MeasurementPart, expr: &TagExpr) -> SeriesResult<Selected> {
    match expr {
        TagExpr::True => Ok(Selected::all()),
        TagExpr::False => Ok(Selected::none()),
        TagExpr::And(parts) => all_of(part, parts, false),
        // One of them holds unless all do not.
        TagExpr::Or(parts) => Ok(all_of(part, parts, true)?.not()),
        TagExpr::Not(inner) => Ok(evaluate(part, inner)?.not()),
        TagExpr::Equals(key, value) => one_of(part, key, std::slice::from_ref(value)),
        TagExpr::In(key, values) => one_of(part, key, values),
        TagExpr::Matches(key, regex) => matches(part, key, regex),
        TagExpr::SameValue(a, b) => same_value(part, a, b),
    }
}

/// All of `parts` hold, or with `negated`: none does. Cheap conditions first, so that an empty
/// answer spares the others.
fn all_of(part: &dyn MeasurementPart, parts: &[TagExpr], negated: bool) -> SeriesResult<Selected> {
    let mut order: Vec<&TagExpr> = parts.iter().collect();
    order.sort_by_key(|expr| cost(expr));
    let mut selected = Selected::all();
    for expr in order {
        let holds = evaluate(part, expr)?;
        selected = selected.and(if negated { holds.not() } else { holds });
        if selected.is_none() {
            break;
        }
    }
    Ok(selected)
}

fn cost(expr: &TagExpr) -> u32 {
    match expr {
        TagExpr::True | TagExpr::False => 0,
        TagExpr::Equals(..) => 1,
        TagExpr::In(..) => 2,
        TagExpr::Matches(..) => 4,
        TagExpr::SameValue(..) => 5,
        TagExpr::Not(inner) => cost(inner),
        TagExpr::And(parts) | TagExpr::Or(parts) => {
            parts.iter().map(cost).max().unwrap_or(0).max(3)
        }
    }
}

/// The series lacking a tag.
fn absent(part: &dyn MeasurementPart, key: u32) -> SeriesResult<Selected> {
    Ok(match part.present(key)? {
        None => Selected::none(),
        Some(present) => Selected::AllBut(present),
    })
}

fn one_of(part: &dyn MeasurementPart, key: &str, values: &[Name]) -> SeriesResult<Selected> {
    let empty = values.iter().any(|value| value.is_empty());
    let Some(key) = part.find_key(key) else {
        return Ok(if empty { Selected::all() } else { Selected::none() });
    };
    let mut posting = Posting::default();
    if let [value] = values
        && !empty
    {
        part.postings(key, value, &mut posting)?;
        return Ok(Selected::These(posting.into_set()));
    }
    let mut union = Union::default();
    for value in values.iter().filter(|value| !value.is_empty()) {
        part.postings(key, value, &mut posting)?;
        posting.add_to(&mut union);
    }
    let having = Selected::These(union.finish());
    if empty {
        // In this or absent: not (neither).
        return Ok(absent(part, key)?.not().and(having.not()).not());
    }
    Ok(having)
}

fn matches(part: &dyn MeasurementPart, key: &str, regex: &Regex) -> SeriesResult<Selected> {
    let matches_absent = regex.is_match("");
    let Some(key) = part.find_key(key) else {
        return Ok(if matches_absent { Selected::all() } else { Selected::none() });
    };
    let worth_it = !matches_absent && part.value_count(key) >= MANY_VALUES;
    let prefix = if worth_it { prefix_of(regex) } else { String::new() };
    // Where absent tags match, gather the values that do not.
    let mut union = Union::default();
    let mut posting = Posting::default();
    part.for_each_value(key, &prefix, &mut |value, series| {
        if regex.is_match(value) != matches_absent {
            series.load(&mut posting)?;
            posting.add_to(&mut union);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let gathered = Selected::These(union.finish());
    Ok(if matches_absent { gathered.not() } else { gathered })
}

/// What every text that matches begins with: values are sorted, and few may begin so.
fn prefix_of(regex: &Regex) -> String {
    let Ok(hir) = regex_syntax::parse(regex.as_str()) else { return String::new() };
    if !hir.properties().look_set_prefix().contains(Look::Start) {
        return String::new();
    }
    let beginnings = Extractor::new().extract(&hir);
    let shared = beginnings.longest_common_prefix().unwrap_or_default();
    // A character that is cut in two is none.
    let whole = std::str::from_utf8(shared).map_or_else(|e| &shared[..e.valid_up_to()], |_| shared);
    String::from_utf8_lossy(whole).into_owned()
}

fn same_value(part: &dyn MeasurementPart, a: &str, b: &str) -> SeriesResult<Selected> {
    if a == b {
        return Ok(Selected::all());
    }
    let (a, b) = match (part.find_key(a), part.find_key(b)) {
        (None, None) => return Ok(Selected::all()),
        (Some(key), None) | (None, Some(key)) => return absent(part, key),
        (Some(a), Some(b)) => (a, b),
    };
    let mut union = Union::default();
    let (mut left, mut right) = (Posting::default(), Posting::default());
    // Look up the values of the tag with fewer of them.
    let (few, many) = if part.value_count(a) <= part.value_count(b) { (a, b) } else { (b, a) };
    part.for_each_value(few, "", &mut |value, series| {
        part.postings(many, value, &mut right)?;
        if !right.is_empty() {
            series.load(&mut left)?;
            let both = left.clone().into_set() & right.clone().into_set();
            union.add_set(&both);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let same = Selected::These(union.finish());
    let both_absent = absent(part, a)?.and(absent(part, b)?);
    Ok(same.not().and(both_absent.not()).not())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_what_every_match_begins_with() {
        for (pattern, prefix) in [
            ("^host_1.*7$", "host_1"),
            ("^(?:web-1|web-22)", "web-"),
            ("^(web)[0-9]{3}x", "web"),
            ("^a|^b", ""),
            ("^(ü|û)x", ""),
            ("host", ""),
            ("^.*x", ""),
            ("(^a)|b", ""),
            ("(?i)^a", ""),
            ("(?m)^a", ""),
            ("^ab?", "a"),
            ("^", ""),
        ] {
            assert_eq!(prefix_of(&Regex::new(pattern).unwrap()), prefix, "{pattern}");
        }
    }
}
