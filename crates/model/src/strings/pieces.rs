//! Pieces of text that are looked for in many texts at once.

use std::ops::Range;
use std::sync::Arc;

use aho_corasick::Span;
use aho_corasick::packed::Searcher;
use memchr::memmem;

use super::Strings;
use crate::Bitmap;

/// Pieces of text, one or a few, prepared to be looked for.
#[derive(Clone, Debug)]
pub struct TextPieces(Arc<Pieces>);

#[derive(Debug)]
struct Pieces {
    /// None has another one in it, so that no two can begin at the same byte.
    texts: Vec<Box<[u8]>>,
    finder: Finder,
}

#[derive(Debug)]
enum Finder {
    One(memmem::Finder<'static>),
    /// Many bytes at a time: up to 64 are looked for so.
    Several(Searcher),
}

impl PartialEq for TextPieces {
    fn eq(&self, other: &Self) -> bool {
        self.texts().eq(other.texts())
    }
}

impl TextPieces {
    /// Prepares to look for a piece.
    #[must_use]
    pub fn one(text: &[u8]) -> Self {
        let finder = Finder::One(memmem::Finder::new(text).into_owned());
        Self(Arc::new(Pieces { texts: vec![text.into()], finder }))
    }

    /// Prepares to look for any of some pieces. `None`: they are too many or too short to be looked for together.
    #[must_use]
    pub fn any_of(texts: &[&[u8]]) -> Option<Self> {
        let texts = shortest(texts);
        match texts.as_slice() {
            [] => None,
            [one] => Some(Self::one(one)),
            several => {
                let finder = Finder::Several(Searcher::new(several)?);
                let texts = texts.into_iter().map(Box::from).collect();
                Some(Self(Arc::new(Pieces { texts, finder })))
            }
        }
    }

    /// The pieces.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.0.texts.iter().map(|text| &**text)
    }

    /// Whether one of them is in `text`.
    #[must_use]
    pub fn are_in(&self, text: &[u8]) -> bool {
        self.find(text, 0).is_some()
    }

    /// Where one of them is next in `text`, from a byte on.
    #[must_use]
    pub fn find(&self, text: &[u8], from: usize) -> Option<Range<usize>> {
        match &self.0.finder {
            Finder::One(finder) => {
                let found = from + finder.find(&text[from..])?;
                Some(found..found + finder.needle().len())
            }
            Finder::Several(searcher) => {
                Some(searcher.find_in(text, Span::from(from..text.len()))?.range())
            }
        }
    }
}

/// Those pieces that have no other in them: where one of all is, one of these is. No two of them can begin at the same byte,
/// so that none that reaches into the next text hides one that does not ([`Strings::with_pieces`]).
fn shortest<'p>(all: &[&'p [u8]]) -> Vec<&'p [u8]> {
    let has = |text: &[u8], other: &[u8]| memmem::find(text, other).is_some();
    let is_shortest = |at: usize| {
        all.iter().enumerate().all(|(other, &it)| match it == all[at] {
            true => other >= at,
            false => !has(all[at], it),
        })
    };
    (0..all.len()).filter(|at| is_shortest(*at)).map(|at| all[at]).collect()
}

impl Strings {
    /// The texts that have one of the pieces in them, and for which `holds`; all texts are looked through at once. `None` if they
    /// do not lie one after another.
    #[must_use]
    pub fn with_pieces(
        &self,
        pieces: &TextPieces,
        holds: impl Fn(&[u8]) -> bool,
    ) -> Option<Bitmap> {
        let (text, places) = (self.in_a_row()?, self.places());
        let mut words = vec![0; places.len().div_ceil(64)];
        let (mut at, mut row) = (0, 0);
        while let Some(found) = pieces.find(text, at) {
            let end = |row: usize| places[row].0 as usize + places[row].1 as usize;
            while row < places.len() && (end(row) <= found.start || places[row].1 == 0) {
                row += 1;
            }
            if row == places.len() {
                break;
            }
            let of_row = places[row].0 as usize..end(row);
            if found.start < of_row.start || found.end > of_row.end {
                // Part of it is another text's.
                at = found.start + 1;
                continue;
            }
            at = of_row.end;
            words[row / 64] |= u64::from(holds(&text[of_row])) << (row % 64);
        }
        Some(Bitmap::from_words(words, places.len()))
    }
}
