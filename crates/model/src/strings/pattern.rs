//! What texts are looked for: a store can tell them from others, and where they cannot be.

use regex::bytes::Regex;

use super::{Strings, TextPieces};
use crate::Bitmap;

/// Texts that have one of some pieces in them and pass a test.
#[derive(Clone, Debug, PartialEq)]
pub struct TextPattern {
    pieces: TextPieces,
    test: TextTest,
}

/// What texts pass, of those with a piece.
#[derive(Clone, Debug)]
pub enum TextTest {
    /// All.
    Having,
    /// Those that begin with one.
    Starting,
    /// Those that end with one.
    Ending,
    /// Those that are one.
    Being,
    /// Those that match.
    Matching(Regex),
}

impl PartialEq for TextTest {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Matching(a), Self::Matching(b)) => a.as_str() == b.as_str(),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl TextPattern {
    /// Texts with one of the pieces that pass the test.
    #[must_use]
    pub fn new(pieces: TextPieces, test: TextTest) -> Self {
        Self { pieces, test }
    }

    /// The pieces of which each of the texts has one.
    #[must_use]
    pub fn pieces(&self) -> &TextPieces {
        &self.pieces
    }

    /// The test.
    #[must_use]
    pub fn test(&self) -> &TextTest {
        &self.test
    }

    /// Whether a text is looked for.
    #[must_use]
    pub fn is_match(&self, text: &[u8]) -> bool {
        let mut pieces = self.pieces.texts();
        match &self.test {
            TextTest::Having => self.pieces.are_in(text),
            TextTest::Starting => pieces.any(|piece| text.starts_with(piece)),
            TextTest::Ending => pieces.any(|piece| text.ends_with(piece)),
            TextTest::Being => pieces.any(|piece| text == piece),
            TextTest::Matching(regex) => regex.is_match(text),
        }
    }

    /// Those of some texts that are looked for; if not `wanted`, the others.
    #[must_use]
    pub fn select(&self, texts: &Strings, wanted: bool) -> Bitmap {
        let found = match &self.test {
            TextTest::Having => texts.with_pieces(&self.pieces, |_| true),
            TextTest::Matching(regex) => {
                texts.with_pieces(&self.pieces, |text| regex.is_match(text))
            }
            TextTest::Starting | TextTest::Ending | TextTest::Being => None,
        };
        match found {
            Some(found) if wanted => found,
            Some(found) => {
                let others = found.words().iter().map(|word| !word).collect();
                Bitmap::from_words(others, found.len())
            }
            None => texts.matching(|text| self.is_match(text) == wanted),
        }
    }
}
