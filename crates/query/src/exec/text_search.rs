//! Which texts of a column a regular expression matches.
//!
//! Texts of a column lie one after another: where every match has a certain piece of text in it, that is looked for in all of
//! them at once, many bytes at a time, and only where it occurs is the expression asked. Many expressions are nothing but
//! such a piece (`/error/`), or the start of a text, its end or all of it (`/^GET/`). Of texts that rows share each is asked
//! about once.
//!
//! Not here: what InfluxQL's expressions mean (`influxql::translate_regex`), conditions on tags (`model::TagExpr`).

use model::{Bitmap, Strings, TextPieces};
use regex::bytes::Regex;
use regex_syntax::hir::literal::{Extractor, Literal};
use regex_syntax::hir::{Hir, HirKind, Look};

/// Shorter pieces of text occur nearly everywhere.
const PIECE_BYTES_MIN: usize = 2;

/// As many pieces are looked for many bytes at a time; of more, fewer and shorter ones are made.
const PIECES_MAX: usize = 64;

/// A regular expression over texts.
#[derive(Clone, Debug)]
pub(crate) struct TextSearch {
    /// Over bytes: a column's texts need not be proved UTF-8 again.
    regex: Regex,
    by: By,
}

/// How matches are found.
#[derive(Clone, Debug)]
enum By {
    /// Exactly the texts with one of the pieces match.
    Pieces(TextPieces),
    /// Exactly the texts that begin with it.
    Start(Vec<u8>),
    /// Exactly the texts that end with it.
    End(Vec<u8>),
    /// Exactly the texts that are it.
    Whole(Vec<u8>),
    /// No other texts than those with one of the pieces match.
    MaybePieces(TextPieces),
    /// Who knows.
    Asking,
}

impl TextSearch {
    /// Looks for what `pattern` matches, an expression in the syntax of crate `regex`.
    ///
    /// # Errors
    /// If it does not compile, or compiles to something huge.
    pub(crate) fn new(pattern: &str) -> Result<Self, regex::Error> {
        let regex = Regex::new(pattern)?;
        let by = regex_syntax::parse(pattern).map_or(By::Asking, |hir| By::of(&hir));
        Ok(Self { regex, by })
    }

    /// The pieces of text of which exactly the matches have one, if that is all there is to the expression.
    pub(crate) fn pieces(&self) -> Option<&TextPieces> {
        match &self.by {
            By::Pieces(pieces) => Some(pieces),
            _ => None,
        }
    }

    /// The texts that match; if `negated`, the others.
    pub(crate) fn select(&self, texts: &Strings, negated: bool) -> Bitmap {
        let found = match &self.by {
            By::Pieces(pieces) => texts.with_pieces(pieces, |_| true),
            By::MaybePieces(pieces) => texts.with_pieces(pieces, |text| self.regex.is_match(text)),
            By::Start(_) | By::End(_) | By::Whole(_) | By::Asking => None,
        };
        match found {
            Some(found) if negated => {
                Bitmap::from_words(found.words().iter().map(|word| !word).collect(), found.len())
            }
            Some(found) => found,
            None => texts.matching(|text| self.is_match(text) != negated),
        }
    }

    /// Whether a text matches.
    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        match &self.by {
            By::Pieces(pieces) => pieces.are_in(text),
            By::Start(piece) => text.starts_with(piece),
            By::End(piece) => text.ends_with(piece),
            By::Whole(whole) => text == &**whole,
            By::MaybePieces(_) | By::Asking => self.regex.is_match(text),
        }
    }
}

impl By {
    fn of(hir: &Hir) -> Self {
        match hir.kind() {
            HirKind::Capture(capture) => return Self::of(&capture.sub),
            HirKind::Literal(piece) => return Self::Pieces(TextPieces::one(&piece.0)),
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
            return Self::MaybePieces(TextPieces::one(piece));
        }
        Self::one_of(hir).unwrap_or(Self::Asking)
    }

    /// A piece of text at the start, the end or both.
    fn anchored(parts: &[Hir]) -> Option<Self> {
        let is = |part: &Hir, look| matches!(part.kind(), HirKind::Look(is) if *is == look);
        let piece = |text: &Hir| literal(text).map(Vec::from);
        match parts {
            [start, text] if is(start, Look::Start) => Some(Self::Start(piece(text)?)),
            [text, end] if is(end, Look::End) => Some(Self::End(piece(text)?)),
            [start, text, end] if is(start, Look::Start) && is(end, Look::End) => {
                Some(Self::Whole(piece(text)?))
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
        Some(if is_exact { Self::Pieces(found) } else { Self::MaybePieces(found) })
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
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let first = |pieces: &TextPieces| text(pieces.texts().next().unwrap());
        match &TextSearch::new(pattern).unwrap().by {
            By::Pieces(pieces) if pieces.texts().len() == 1 => {
                format!("piece {}", first(pieces))
            }
            By::Pieces(_) => "pieces".into(),
            By::Start(piece) => format!("start {}", text(piece)),
            By::End(piece) => format!("end {}", text(piece)),
            By::Whole(piece) => format!("whole {}", text(piece)),
            By::MaybePieces(pieces) if pieces.texts().len() == 1 => {
                format!("maybe {}", first(pieces))
            }
            By::MaybePieces(_) => "maybe pieces".into(),
            By::Asking => "asking".into(),
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
