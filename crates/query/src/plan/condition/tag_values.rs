//! Regular expressions that are lists of a tag's values.
//!
//! Dashboards with a choice of hosts ask for `host =~ /^(a|b)$/`: looking up two values takes no time, matching all of them does.

use model::{Name, TagExpr};
use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{Hir, HirKind, Look};

use super::super::{regex, translated};
use crate::QueryError;

/// A condition that the tag `key` matches a regular expression in InfluxQL's syntax.
///
/// # Errors
/// If it does not compile, or compiles to something huge.
pub(super) fn matching(key: Name, source: &str) -> Result<TagExpr, QueryError> {
    let pattern = translated(source)?;
    let values = regex_syntax::parse(&pattern).ok().and_then(|hir| listed(&hir, pattern.len()));
    Ok(match values.as_deref() {
        Some([value]) => TagExpr::Equals(key, Name::clone(value)),
        Some(values) => TagExpr::In(key, values.to_vec()),
        None => TagExpr::Matches(key, regex(source)?),
    })
}

/// All texts that match, sorted, if they are so few that the expression lists them.
fn listed(hir: &Hir, few: usize) -> Option<Vec<Name>> {
    let HirKind::Concat(parts) = hir.kind() else { return None };
    let [first, inner @ .., last] = &parts[..] else { return None };
    let is = |part: &Hir, look| matches!(part.kind(), HirKind::Look(is) if *is == look);
    let inner = Hir::concat(inner.to_vec());
    let is_whole = is(first, Look::Start) && is(last, Look::End);
    if !is_whole || !inner.properties().look_set().is_empty() {
        return None;
    }
    let mut extractor = Extractor::new();
    extractor.limit_total(few).limit_literal_len(usize::MAX).limit_repeat(few);
    let texts = extractor.extract(&inner);
    if !texts.is_exact() {
        return None;
    }
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(Name::from);
    let mut values: Vec<Name> =
        texts.literals()?.iter().map(|literal| text(literal.as_bytes())).collect::<Option<_>>()?;
    values.sort_unstable();
    values.dedup();
    (!values.is_empty()).then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(source: &str) -> Option<Vec<String>> {
        match matching("host".into(), source).unwrap() {
            TagExpr::Equals(_, value) => Some(vec![value.to_string()]),
            TagExpr::In(_, values) => Some(values.iter().map(ToString::to_string).collect()),
            TagExpr::Matches(..) => None,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_an_expression_lists_is_looked_up() {
        let list = |texts: &[&str]| Some(texts.iter().map(ToString::to_string).collect());
        assert_eq!(values("^a$"), list(&["a"]));
        assert_eq!(values("^(host_12|host_7)$"), list(&["host_12", "host_7"]));
        assert_eq!(values("^(?:b|a|b)$"), list(&["a", "b"]));
        assert_eq!(values("^$"), list(&[""]));
        assert_eq!(values("^(|a)$"), list(&["", "a"]));
        assert_eq!(values("^host_[0-2]$"), list(&["host_0", "host_1", "host_2"]));
        assert_eq!(values("^(über|unter)$"), list(&["unter", "über"]));
        let hosts: Vec<String> = (1000..2000).map(|host| format!("host-{host}")).collect();
        assert_eq!(values(&format!("^({})$", hosts.join("|"))), Some(hosts));
        for source in
            ["a", "^a", "a$", "^a|b$", "^a.*$", "^a+$", "^[0-9]{4}$", r"^a\b$", "(?m)^a$", ".*", ""]
        {
            assert_eq!(values(source), None, "{source}");
        }
        assert!(matching("host".into(), "(").is_err());
    }
}
