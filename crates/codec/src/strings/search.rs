//! Which strings of a page are one of some texts, or have one in them, for pages that tell it without being decoded.

use std::ops::Range;

use super::{alphabet, dictionary, templates};
use crate::encoding::id;
use crate::error::{Result, check_range};
use crate::wire::Reader;

/// Pieces of text that are looked for.
#[derive(Clone, Copy)]
pub struct TextFinder<'a> {
    /// The pieces.
    pub texts: &'a [&'a [u8]],
    /// Whether one of them is in some text.
    pub has_text: &'a dyn Fn(&[u8]) -> bool,
    /// Which strings are wanted.
    pub wants: Wants<'a>,
}

/// Which strings are wanted, by the texts that are looked for.
#[derive(Clone, Copy)]
pub enum Wants<'a> {
    /// Those that have one of them.
    Having,
    /// Those that are one of them.
    Being,
    /// Those that begin with one of them.
    Starting,
    /// Those that end with one of them.
    Ending,
    /// Those that have one of them and for which this holds.
    Matching(&'a dyn Fn(&[u8]) -> bool),
}

impl TextFinder<'_> {
    /// Whether a string is wanted.
    pub(super) fn wants(&self, string: &[u8]) -> bool {
        match self.wants {
            Wants::Having => (self.has_text)(string),
            Wants::Being => self.texts.contains(&string),
            Wants::Starting => self.texts.iter().any(|text| string.starts_with(text)),
            Wants::Ending => self.texts.iter().any(|text| string.ends_with(text)),
            Wants::Matching(holds) => (self.has_text)(string) && holds(string),
        }
    }
}

impl std::fmt::Debug for TextFinder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextFinder").field("texts", &self.texts).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Wants<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Having => "Having",
            Self::Being => "Being",
            Self::Starting => "Starting",
            Self::Ending => "Ending",
            Self::Matching(_) => "Matching",
        })
    }
}

/// A bit for each of the strings `range` of a page of `count` whether it is wanted, bits behind the last one zero; `None`: the strings have to be decoded to
/// tell.
///
/// # Errors
/// If the page is damaged, or what has to be decoded of it is larger than `max_bytes`.
pub fn search_strings(
    bytes: &[u8],
    count: usize,
    range: Range<usize>,
    finder: &TextFinder<'_>,
    max_bytes: usize,
) -> Result<Option<Vec<u64>>> {
    check_range(&range, count)?;
    let mut reader = Reader::new(bytes);
    match reader.u8()? {
        id::STRINGS_CONSTANT if count > 0 => {
            let bits = if finder.wants(reader.rest()) { u64::MAX } else { 0 };
            Ok(Some(filled(range.len(), bits)))
        }
        id::STRINGS_ALPHABET if count > 0 => {
            alphabet::search(reader, count, range, finder).map(Some)
        }
        id::STRINGS_DICTIONARY if count > 0 => {
            dictionary::search(reader, count, range, finder, max_bytes).map(Some)
        }
        id::STRINGS_TEMPLATES if count > 0 => {
            templates::search(reader, count, range, finder, max_bytes).map(Some)
        }
        _ => Ok(None),
    }
}

/// Whether some strings of a page take as much shorter to search than all as they are fewer.
#[must_use]
pub fn are_searched_apart(page: &[u8]) -> bool {
    matches!(page.first(), Some(&(id::STRINGS_CONSTANT | id::STRINGS_ALPHABET)))
}

/// The first so many bits of copies of a word.
pub(super) fn filled(len: usize, word: u64) -> Vec<u64> {
    let mut words = vec![word; len.div_ceil(64)];
    if let Some(last) = words.last_mut().filter(|_| !len.is_multiple_of(64)) {
        *last &= (1 << (len % 64)) - 1;
    }
    words
}
