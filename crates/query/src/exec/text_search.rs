//! Which texts of a column a regular expression matches.
//!
//! Texts of a column lie one after another: where every match has a certain piece of text in it, that is looked for in all of
//! them at once, many bytes at a time, and only where it occurs is the expression asked. Many expressions are nothing but
//! such a piece (`/error/`), or the start of a text, its end or all of it (`/^GET/`). Of texts that rows share each is asked
//! about once.
//!
//! Not here: what InfluxQL's expressions mean (`influxql::translate_regex`), conditions on tags (`model::TagExpr`).

use model::{Bitmap, Strings, TextPattern, TextPieces, TextTest};
use regex::bytes::Regex;
use regex_syntax::hir::literal::{Extractor, Literal};
use regex_syntax::hir::{Hir, HirKind, Look};

/// Shorter pieces of text occur nearly everywhere.
const PIECE_BYTES_MIN: usize = 2;

/// As many pieces are looked for many bytes at a time; of more, fewer and shorter ones are made.
const PIECES_MAX: usize = 64;

/// A regular expression over texts.
#[derive(Clone, Debug)]
pub(crate) enum TextSearch {
    /// Every match has a certain piece of text in it.
    Pattern(TextPattern),
    /// Who knows. Over bytes: a column's texts need not be proved UTF-8 again.
    Asking(Regex),
}

/// What the text in an expression says of its matches.
enum By {
    /// They are exactly the texts with one of the pieces that pass the test.
    Exactly(TextPieces, TextTest),
    /// They are some of the texts with one of the pieces.
    Some(TextPieces),
    /// Nothing.
    Nothing,
}

impl TextSearch {
    /// Looks for what `pattern` matches, an expression in the syntax of crate `regex`.
    ///
    /// # Errors
    /// If it does not compile, or compiles to something huge.
    pub(crate) fn new(pattern: &str) -> Result<Self, regex::Error> {
        let regex = Regex::new(pattern)?;
        let (pieces, test) = match regex_syntax::parse(pattern).map_or(By::Nothing, |h| By::of(&h))
        {
            By::Exactly(pieces, test) => (pieces, test),
            By::Some(pieces) => (pieces, TextTest::Matching(regex)),
            By::Nothing => return Ok(Self::Asking(regex)),
        };
        Ok(Self::Pattern(TextPattern::new(pieces, test)))
    }

    /// What exactly the matches satisfy, in the form a store understands.
    pub(crate) fn pattern(&self) -> Option<&TextPattern> {
        match self {
            Self::Pattern(pattern) => Some(pattern),
            Self::Asking(_) => None,
        }
    }

    /// The texts that match; if `negated`, the others.
    pub(crate) fn select(&self, texts: &Strings, negated: bool) -> Bitmap {
        match self {
            Self::Pattern(pattern) => pattern.select(texts, !negated),
            Self::Asking(regex) => texts.matching(|text| regex.is_match(text) != negated),
        }
    }

    /// Whether a text matches.
    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        match self {
            Self::Pattern(pattern) => pattern.is_match(text),
            Self::Asking(regex) => regex.is_match(text),
        }
    }
}

impl By {
    fn of(hir: &Hir) -> Self {
        match hir.kind() {
            HirKind::Capture(capture) => return Self::of(&capture.sub),
            HirKind::Literal(piece) => return Self::having(TextPieces::one(&piece.0)),
            HirKind::Concat(parts) => {
                // What may be missing at an end does not decide whether there is a match.
                let is_needed = |part: &Hir| !matches!(part.kind(), HirKind::Repetition(repeated) if repeated.min == 0);
                let first = parts.iter().position(is_needed).unwrap_or(parts.len());
                let end = parts.iter().rposition(is_needed).map_or(first, |last| last + 1);
                if end - first < parts.len() {
                    return Self::of(&Hir::concat(parts[first..end].to_vec()));
                }
                if let Some(by) = Self::anchored(parts) {
                    return by;
                }
            }
            _ => {}
        }
        if let Some(piece) = needed(hir).filter(|piece| piece.len() >= PIECE_BYTES_MIN) {
            return Self::Some(TextPieces::one(piece));
        }
        Self::one_of(hir).unwrap_or(Self::Nothing)
    }

    fn having(pieces: TextPieces) -> Self {
        Self::Exactly(pieces, TextTest::Having)
    }

    /// A piece of text at the start, the end or both.
    fn anchored(parts: &[Hir]) -> Option<Self> {
        let is = |part: &Hir, look| matches!(part.kind(), HirKind::Look(is) if *is == look);
        let exactly = |text: &Hir, test| Some(Self::Exactly(TextPieces::one(literal(text)?), test));
        match parts {
            [start, text] if is(start, Look::Start) => exactly(text, TextTest::Starting),
            [text, end] if is(end, Look::End) => exactly(text, TextTest::Ending),
            [start, text, end] if is(start, Look::Start) && is(end, Look::End) => {
                exactly(text, TextTest::Being)
            }
            _ => None,
        }
    }

    /// Pieces of text of which every match begins with one, if these are few.
    fn one_of(hir: &Hir) -> Option<Self> {
        let mut pieces = Extractor::new().extract(hir);
        if pieces.len().is_some_and(|pieces| pieces > PIECES_MAX) {
            pieces.optimize_for_prefix_by_preference();
        }
        if pieces.min_literal_len().is_none_or(|len| len < PIECE_BYTES_MIN) {
            return None;
        }
        let all: Vec<&[u8]> = pieces.literals()?.iter().map(Literal::as_bytes).collect();
        let found = TextPieces::any_of(&all)?;
        // Where a piece has to be (`^`, `\b`) it does not say.
        let is_exact = pieces.is_exact() && hir.properties().look_set().is_empty();
        Some(if is_exact { Self::having(found) } else { Self::Some(found) })
    }
}

/// The piece of text that an expression is.
fn literal(hir: &Hir) -> Option<&[u8]> {
    match hir.kind() {
        HirKind::Literal(piece) => Some(&piece.0),
        HirKind::Capture(capture) => literal(&capture.sub),
        _ => None,
    }
}

/// A piece of text that an expression's matches have in them.
fn needed(hir: &Hir) -> Option<&[u8]> {
    match hir.kind() {
        HirKind::Repetition(repeated) if repeated.min > 0 => needed(&repeated.sub),
        HirKind::Capture(capture) => needed(&capture.sub),
        HirKind::Concat(parts) => parts.iter().filter_map(needed).max_by_key(|piece| piece.len()),
        _ => literal(hir),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kind(pattern: &str) -> String {
        let search = TextSearch::new(pattern).unwrap();
        let Some(pattern) = search.pattern() else { return "asking".into() };
        let mut pieces = pattern.pieces().texts();
        let (several, first) = (pieces.len() > 1, String::from_utf8_lossy(pieces.next().unwrap()));
        match pattern.test() {
            TextTest::Having if several => "pieces".into(),
            TextTest::Having => format!("piece {first}"),
            TextTest::Starting => format!("start {first}"),
            TextTest::Ending => format!("end {first}"),
            TextTest::Being => format!("whole {first}"),
            TextTest::Matching(_) if several => "maybe pieces".into(),
            TextTest::Matching(_) => format!("maybe {first}"),
        }
    }

    #[test]
    fn expressions_are_known_by_the_text_in_them() {
        for (pattern, found) in [
            ("slow query", "piece slow query"),
            ("(slow query)", "piece slow query"),
            (".*slow query.*", "piece slow query"),
            ("x?y", "piece y"),
            ("^GET", "start GET"),
            ("^(GET)", "start GET"),
            ("ms$", "end ms"),
            ("^GET$", "whole GET"),
            ("trace .*00ff", "maybe trace "),
            ("[0-9]+ms [0-9]+", "maybe ms "),
            ("^.*ab", "maybe ab"),
            ("(?:ab)+c?", "maybe ab"),
            ("timeout|slow", "pieces"),
            ("(?i)abc", "pieces"),
            ("(?i)abc.+", "maybe pieces"),
            ("^(?:ab|cd)", "maybe pieces"),
            ("a|bc", "asking"),
            ("", "asking"),
            (".*", "asking"),
            ("[0-9]+", "asking"),
            (r"\bab\b", "maybe ab"),
        ] {
            assert_eq!(kind(pattern), found, "{pattern}");
        }
        assert!(TextSearch::new("(").is_err());
    }

    #[test]
    fn a_piece_across_two_texts_is_none() {
        let texts: Strings = ["xa", "", "bx", "ab", "", "aab"].into_iter().collect();
        let search = TextSearch::new("ab").unwrap();
        assert_eq!(search.select(&texts, false).ones().collect::<Vec<_>>(), [3, 5]);
        assert_eq!(search.select(&texts, true).ones().collect::<Vec<_>>(), [0, 1, 2, 4]);
        let either = TextSearch::new("aab|ba").unwrap();
        assert_eq!(either.select(&texts, false).ones().collect::<Vec<_>>(), [5]);
        // "bab" begins where "ba" does, and ends in the next text.
        let texts: Strings = ["ba", "b"].into_iter().collect();
        for pattern in ["(ab|ba)b?$", "bab|ba", "(ab|ba)b?"] {
            let search = TextSearch::new(pattern).unwrap();
            assert_eq!(search.select(&texts, false).ones().collect::<Vec<_>>(), [0], "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn finds_what_the_expression_matches(
            words in prop::collection::vec("[abü]{0,4}", 0..80),
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "a", "ab", "ba", "bü", ".", ".*", "a*", "(ab)", "(?:ba)+", "a|b", "(ab|ba)", "^", "$", r"\b",
                    "(?i:AB)", "[ab]", "b?", "ü", "^ab", "aa$",
                ]),
                0..4,
            ),
            shares in any::<bool>(),
        ) {
            let pattern = parts.concat();
            let mut texts: Strings = words.iter().map(String::as_str).collect();
            if shares {
                texts = texts.take((0..words.len() * 9).map(|at| at % words.len()));
            }
            let search = TextSearch::new(&pattern).unwrap();
            let regex = model::Regex::new(&pattern).unwrap();
            let expected: Vec<bool> = texts.iter().map(|text| regex.is_match(text)).collect();
            let bits = |found: Bitmap| (0..found.len()).map(|at| found.get(at)).collect::<Vec<_>>();
            prop_assert_eq!(bits(search.select(&texts, false)), expected.clone(), "{}", pattern);
            let others: Vec<bool> = expected.iter().map(|holds| !holds).collect();
            prop_assert_eq!(bits(search.select(&texts, true)), others, "{}", pattern);
            for (text, expected) in texts.iter().zip(expected) {
                prop_assert_eq!(search.is_match(text.as_bytes()), expected);
            }
        }
    }
}
