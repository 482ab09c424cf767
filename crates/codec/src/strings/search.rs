//! Which strings of a page are one of some texts, or have one in them, for pages that tell it without being decoded.

use std::ops::Range;

use super::{dictionary, templates};
use crate::encoding::id;
use crate::error::{Result, check_range};
use crate::wire::Reader;

/// Pieces of text that are looked for.
#[derive(Clone, Copy)]
pub struct TextFinder<'a> {
    /// The texts.
    pub texts: &'a [&'a [u8]],
    /// Whether strings are wanted that are one of them, not those that have one in them.
    pub are_whole: bool,
    /// Whether a string is wanted.
    pub is_wanted: &'a dyn Fn(&[u8]) -> bool,
}

impl std::fmt::Debug for TextFinder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextFinder")
            .field("texts", &self.texts)
            .field("are_whole", &self.are_whole)
            .finish_non_exhaustive()
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
            let bits = if (finder.is_wanted)(reader.rest()) { u64::MAX } else { 0 };
            Ok(Some(filled(range.len(), bits)))
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

/// The first so many bits of copies of a word.
fn filled(len: usize, word: u64) -> Vec<u64> {
    let mut words = vec![word; len.div_ceil(64)];
    if let Some(last) = words.last_mut().filter(|_| !len.is_multiple_of(64)) {
        *last &= (1 << (len % 64)) - 1;
    }
    words
}
