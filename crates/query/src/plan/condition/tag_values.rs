//! Regular expressions that are lists of a tag's values.
//!
//! Dashboards with a choice of hosts ask for `host =~ /^(a|b)$/`: looking up two values takes no time, matching all of them does.

use model::{Name, TagExpr};
use regex_syntax::hir::{Class, Hir, HirKind, Look};

use super::super::{compiled, translated};
use crate::QueryError;

/// Texts and bytes of them that may be put together to find a list's values: expressions come from anybody, and short ones can stand for much.
const LIST_WORK_MAX: usize = 4 << 20;

/// A condition that the tag `key` matches a regular expression in InfluxQL's syntax.
///
/// # Errors
/// If it does not compile, or compiles to something huge. What lists values need not be compiled.
pub(super) fn matching(key: Name, source: &str) -> Result<TagExpr, QueryError> {
    let pattern = translated(source)?;
    let values = regex_syntax::parse(&pattern).ok().and_then(|hir| listed(&hir, pattern.len()));
    let Some(mut values) = values else { return Ok(TagExpr::Matches(key, compiled(&pattern)?)) };
    values.sort_unstable();
    values.dedup();
    let mut values: Vec<Name> = values.into_iter().map(Name::from).collect();
    Ok(match values.len() {
        1 => TagExpr::Equals(key, values.remove(0)),
        _ => TagExpr::In(key, values),
    })
}

/// All texts that match, one at least and `count_max` at most, if they have to be whole values of a tag.
fn listed(hir: &Hir, count_max: usize) -> Option<Vec<String>> {
    let HirKind::Concat(parts) = hir.kind() else { return None };
    let [first, inner @ .., last] = &parts[..] else { return None };
    let is = |part: &Hir, look| matches!(part.kind(), HirKind::Look(is) if *is == look);
    let is_whole = is(first, Look::Start) && is(last, Look::End);
    is_whole.then(|| Lister { count_max, work_left: LIST_WORK_MAX }.joined(inner)).flatten()
}

/// Lists what expressions match, as long as it is not too much.
struct Lister {
    count_max: usize,
    work_left: usize,
}

impl Lister {
    /// All texts that match. No expression is gone through twice.
    fn texts(&mut self, hir: &Hir) -> Option<Vec<String>> {
        match hir.kind() {
            HirKind::Empty => Some(vec![String::new()]),
            HirKind::Literal(text) => Some(vec![std::str::from_utf8(&text.0).ok()?.to_owned()]),
            HirKind::Class(Class::Unicode(class)) => {
                let chars = class.iter().flat_map(|range| range.start()..=range.end());
                let all: Vec<String> = chars.take(self.count_max + 1).map(String::from).collect();
                self.work_left = self.work_left.checked_sub(all.len())?;
                self.few(all)
            }
            HirKind::Capture(capture) => self.texts(&capture.sub),
            HirKind::Concat(parts) => self.joined(parts),
            HirKind::Alternation(parts) => {
                let mut all = Vec::new();
                for part in parts {
                    all.append(&mut self.texts(part)?);
                    if all.len() > self.count_max {
                        return None;
                    }
                }
                Some(all)
            }
            HirKind::Class(Class::Bytes(_)) | HirKind::Look(_) | HirKind::Repetition(_) => None,
        }
    }

    /// Texts that match all of `parts`, one behind the other.
    fn joined(&mut self, parts: &[Hir]) -> Option<Vec<String>> {
        let mut all = vec![String::new()];
        for part in parts {
            let texts = self.texts(part)?;
            let size = |texts: &[String]| texts.iter().map(|text| text.len() + 1).sum::<usize>();
            let work = match &texts[..] {
                [only] => all.len() * (only.len() + 1),
                _ => size(&all) * texts.len() + size(&texts) * all.len(),
            };
            self.work_left = self.work_left.checked_sub(work)?;
            match &texts[..] {
                [only] => all.iter_mut().for_each(|text| text.push_str(only)),
                _ => {
                    let behind = |text: &String| {
                        texts.iter().map(move |more| text.clone() + more).collect::<Vec<_>>()
                    };
                    all = self.few(all.iter().flat_map(behind).collect())?;
                }
            }
        }
        Some(all)
    }

    fn few(&self, texts: Vec<String>) -> Option<Vec<String>> {
        (1..=self.count_max).contains(&texts.len()).then_some(texts)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
        // Long lists take as long as they are; what would be far longer than the expression is not listed.
        let many: Vec<String> = (0..50_000).map(|host| format!("host-{host:05}")).collect();
        assert_eq!(values(&format!("^({})$", many.join("|"))), Some(many));
        let wide = format!("^{}({})$", "x".repeat(30_000), "a|bb|".repeat(300) + "c");
        assert_eq!(values(&wide), None);
        let nothing = format!("^{}{}$", "(a|b)".repeat(15), "()".repeat(100_000));
        assert_eq!(values(&nothing), None);
        let letters = format!("^({})$", [r"(\pL)"; 20_000].join("|"));
        assert_eq!(listed(&regex_syntax::parse(&letters).unwrap(), letters.len()), None);
        for source in [
            "a",
            "^a",
            "a$",
            "^a|b$",
            "^a.*$",
            "^a+$",
            "^[0-9]{4}$",
            "^[a-z][a-z]$",
            "^[^a]$",
            r"^a\b$",
            "^(a|b$)$",
            "(?m)^a$",
            ".*",
            "",
        ] {
            assert_eq!(values(source), None, "{source}");
        }
        assert!(matching("host".into(), "(").is_err());
    }

    proptest! {
        #[test]
        fn a_list_is_what_the_expression_matches(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "a", "b", "ü", "(a|b)", "(?:ab|)", "[ab]", "(a|(b|ab))", "a?", "(?i:a)", "()", "a{2}", "|", ".", "^",
                ]),
                0..5,
            ),
            words in prop::collection::vec("[abAü]{0,5}", 0..60),
        ) {
            let source = format!("^({})$", parts.concat());
            let regex = compiled(&translated(&source).unwrap()).unwrap();
            if let Some(values) = values(&source) {
                prop_assert!(values.is_sorted_by(|a, b| a < b));
                for value in &values {
                    prop_assert!(regex.is_match(value), "{} lists {:?}", source, value);
                }
                for word in &words {
                    prop_assert_eq!(values.contains(word), regex.is_match(word), "{} {:?}", source, word);
                }
            }
        }
    }
}
