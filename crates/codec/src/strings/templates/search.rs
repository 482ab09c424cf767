//! Which strings have some text in them, told from templates and the words that differ.
//!
//! If the text is in a piece of a template, all its strings have it. Else a word has a part of it: all of it, or what is left of it
//! where pieces beside the word agree with the rest ([`fit`](super::fit)). Most columns of words are ruled out by that, without
//! a look at them; of others the words are looked at, numbers as numbers, texts that strings share once. Only where that does not
//! decide strings are put together: where a text reaches over several words, or more is asked than whether it is there.

use std::ops::Range;

use super::fit::{Fit, Part};
use super::{Column, Padded, Page, Wanted, each_stretch};
use crate::error::Result;
use crate::strings::TextPlace;
use crate::strings::search::{TextFinder, Wants};
use crate::wire::Reader;

/// A bit for each string of the range.
pub(in crate::strings) fn search(
    reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    finder: &TextFinder<'_>,
    max_bytes: usize,
) -> Result<Vec<u64>> {
    let mut bits = Bits { words: Vec::with_capacity(range.len().div_ceil(64)), last: 0, len: 0 };
    each_stretch(reader, count, &Wanted::all(range), |reader, count, wanted| {
        search_stretch(reader, count, wanted.range(), (finder, max_bytes), &mut bits)
    })?;
    Ok(bits.finish())
}

/// Bits, of which those of the last word are not in memory yet.
struct Bits {
    words: Vec<u64>,
    last: u64,
    len: usize,
}

impl Bits {
    fn extend(&mut self, bits: impl Iterator<Item = bool>) {
        let (mut last, mut len) = (self.last, self.len);
        for bit in bits {
            last |= u64::from(bit) << (len % 64);
            len += 1;
            if len % 64 == 0 {
                self.words.push(std::mem::take(&mut last));
            }
        }
        (self.last, self.len) = (last, len);
    }

    fn finish(mut self) -> Vec<u64> {
        if !self.len.is_multiple_of(64) {
            self.words.push(self.last);
        }
        self.words
    }
}

/// Adds a bit for each string of the range: whether it is wanted.
fn search_stretch(
    reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    (finder, max_bytes): (&TextFinder<'_>, usize),
    bits: &mut Bits,
) -> Result<()> {
    let mut page = Page::read(reader, count, max_bytes)?;
    let rules = (0..page.templates.len()).map(|code| Rule::of(&page, code, finder));
    let rules: Vec<Rule<'_>> = rules.collect();
    if rules.iter().all(|rule| matches!(rule, Rule::None)) {
        bits.extend(range.map(|_| false));
        return Ok(());
    }
    page.count(count, &range)?;
    let mut found = Vec::with_capacity(rules.len());
    for (code, rule) in rules.into_iter().enumerate() {
        found.push(match rule {
            _ if page.templates[code].within == 0 => Found::None,
            Rule::None => Found::None,
            Rule::All => Found::All,
            Rule::Perhaps => {
                let all = vec![true; page.templates[code].within];
                Found::Some(look_closer(&page, code, all, finder, max_bytes)?)
            }
            Rule::Words(columns) => by_words(&page, code, &columns, finder, max_bytes)?,
            Rule::AllWords(columns) => by_all_words(&page, code, &columns, finder, max_bytes)?,
        });
    }
    let mut passed = vec![0; found.len()];
    bits.extend(page.codes[range].iter().map(|code| {
        let code = *code as usize;
        match &found[code] {
            Found::All => true,
            Found::None => false,
            Found::Some(are) => {
                passed[code] += 1;
                are[passed[code] - 1]
            }
        }
    }));
    Ok(())
}

/// Puts those strings of a template together that may be wanted, a few at a time, and leaves those that are.
fn look_closer(
    page: &Page<'_>,
    code: usize,
    mut may_be: Vec<bool>,
    finder: &TextFinder<'_>,
    max_bytes: usize,
) -> Result<Vec<bool>> {
    let ranks: Vec<u32> =
        (0u32..).zip(&*may_be).filter_map(|(rank, may_be)| may_be.then_some(rank)).collect();
    let (mut text, mut places) = (Vec::new(), Vec::new());
    for ranks in ranks.chunks(LOOKED_AT_TOGETHER) {
        text.clear();
        places.clear();
        page.append(code, ranks, max_bytes, &mut text, |place| places.push(place))?;
        for (rank, (start, len)) in ranks.iter().zip(&places) {
            may_be[*rank as usize] = finder.wants(&text[*start as usize..][..*len as usize]);
        }
    }
    Ok(may_be)
}

/// So many strings stay in the processor's second cache. Fewer would be more work: columns may have to be decoded from the first.
const LOOKED_AT_TOGETHER: usize = 2048;

/// What a template's pieces say of its strings.
enum Rule<'t> {
    /// All are wanted.
    All,
    None,
    /// Some may be.
    Perhaps,
    /// Words in some columns decide, or tell which may be: of each its place, and how a text may lie over its words.
    Words(Vec<(usize, Vec<Fit<'t>>)>),
    /// The same, but words of each of them have to be such ones.
    AllWords(Vec<(usize, Vec<Fit<'t>>)>),
}

impl<'t> Rule<'t> {
    fn of(page: &Page<'_>, code: usize, finder: &TextFinder<'t>) -> Self {
        let of_pieces = page.pieces(code).iter().map(|piece| page.pieces_text.get(*piece));
        let pieces: Vec<&[u8]> = of_pieces.collect();
        let has_words = pieces.len() > 1;
        if !has_words {
            return if finder.wants(pieces[0]) { Self::All } else { Self::None };
        }
        let (first, last) = (pieces[0], pieces[pieces.len() - 1]);
        let is_number = |at: usize| page.columns(code)[at].is_number();
        let last_word = pieces.len() - 2;
        let mut fits = Vec::new();
        match finder.wants {
            // A word beside a piece at an end may go on with what the piece begins.
            Wants::Starting if finder.wants(first) => Self::All,
            Wants::Starting => {
                let mut add =
                    |text: &&'t [u8]| Fit::add_first(text, &pieces, is_number(0), &mut fits);
                finder.texts.iter().for_each(&mut add);
                Self::of_fits(vec![(0, fits)])
            }
            Wants::Ending if finder.wants(last) => Self::All,
            Wants::Ending => {
                let is_number = is_number(last_word);
                let mut add = |text: &&'t [u8]| Fit::add_last(text, &pieces, is_number, &mut fits);
                finder.texts.iter().for_each(&mut add);
                Self::of_fits(vec![(last_word, fits)])
            }
            Wants::Being => Self::of_all_words(page, code, &pieces, finder),
            Wants::Having if pieces.iter().any(|piece| (finder.has_text)(piece)) => Self::All,
            _ if pieces.iter().any(|piece| (finder.has_text)(piece)) => Self::Perhaps,
            _ => Self::of_words(page, code, &pieces, finder),
        }
    }

    /// The same where no piece has a text.
    fn of_words(page: &Page<'_>, code: usize, pieces: &[&[u8]], finder: &TextFinder<'t>) -> Self {
        let of_column = |(at, column): (usize, &Column<'_>)| {
            let (mut fits, is_number) = (Vec::new(), column.is_number());
            finder.texts.iter().for_each(|text| Fit::add(text, pieces, (at, is_number), &mut fits));
            (at, fits)
        };
        Self::of_fits(page.columns(code).iter().enumerate().map(of_column).collect())
    }

    /// The same if some column has ways in which a text may lie over its words.
    fn of_fits(mut columns: Vec<(usize, Vec<Fit<'t>>)>) -> Self {
        columns.retain(|(_, fits)| !fits.is_empty());
        if columns.is_empty() { Self::None } else { Self::Words(columns) }
    }

    /// The same where texts are looked for that are strings as a whole.
    fn of_all_words(
        page: &Page<'_>,
        code: usize,
        pieces: &[&[u8]],
        finder: &TextFinder<'t>,
    ) -> Self {
        let of_column = |(at, column): (usize, &Column<'_>)| {
            let (mut fits, place) = (Vec::new(), (at, column.is_number()));
            finder.texts.iter().for_each(|text| Fit::add_whole(text, pieces, place, &mut fits));
            (at, fits)
        };
        let columns: Vec<_> = page.columns(code).iter().enumerate().map(of_column).collect();
        // A word that is a text may be empty.
        let is_ruled_out = |(at, fits): &(usize, Vec<Fit<'_>>)| {
            fits.is_empty() && page.columns(code)[*at].is_number()
        };
        if columns.iter().any(is_ruled_out) { Self::None } else { Self::AllWords(columns) }
    }
}

/// Which strings of a template are wanted.
enum Found {
    All,
    None,
    /// These, in order.
    Some(Vec<bool>),
}

/// Those strings of a template that are wanted by the words of some columns.
fn by_words(
    page: &Page<'_>,
    code: usize,
    columns: &[(usize, Vec<Fit<'_>>)],
    finder: &TextFinder<'_>,
    max_bytes: usize,
) -> Result<Found> {
    let mut found = vec![false; page.templates[code].within];
    let mut has_empty = false;
    for column in columns {
        has_empty |= select(page, code, column, (finder, max_bytes), &mut found)?;
    }
    let mut fits = columns.iter().flat_map(|(_, fits)| fits);
    let decides =
        matches!(finder.wants, Wants::Having) && !has_empty && fits.all(|fit| fit.decides);
    Ok(match found.contains(&true) {
        false => Found::None,
        true if decides => Found::Some(found),
        true => Found::Some(look_closer(page, code, found, finder, max_bytes)?),
    })
}

/// The same if each column has to have such a word.
fn by_all_words(
    page: &Page<'_>,
    code: usize,
    columns: &[(usize, Vec<Fit<'_>>)],
    finder: &TextFinder<'_>,
    max_bytes: usize,
) -> Result<Found> {
    let mut found = vec![true; page.templates[code].within];
    for column in columns {
        let mut of_column = vec![false; found.len()];
        select(page, code, column, (finder, max_bytes), &mut of_column)?;
        found.iter_mut().zip(&of_column).for_each(|(found, here)| *found &= here);
        if !found.contains(&true) {
            return Ok(Found::None);
        }
    }
    Ok(Found::Some(look_closer(page, code, found, finder, max_bytes)?))
}

/// Adds those strings of a template of whose word in a column a text may have a part; whether there are empty words.
fn select(
    page: &Page<'_>,
    code: usize,
    (at, fits): &(usize, Vec<Fit<'_>>),
    (finder, max_bytes): (&TextFinder<'_>, usize),
    found: &mut [bool],
) -> Result<bool> {
    let template = &page.templates[code];
    let (column, within) = (&page.columns(code)[*at], 0..template.within);
    if column.is_number() && fits.iter().all(|fit| fit.part != Part::Within) {
        let numbers = column.numbers(template, within)?;
        fits.iter().for_each(|fit| fit.select_numbers(&numbers, column.digits_min, found));
        return Ok(false);
    }
    let words = column.words(template, within.clone(), within, max_bytes)?;
    Ok(select_texts(words.into_texts(), fits, finder, found))
}

/// Adds those words which a text may lie over, or in, and empty ones, over which no part of a text tells whether it lies. Whether
/// there are such.
fn select_texts(
    (places, text): (Vec<TextPlace>, Padded),
    fits: &[Fit<'_>],
    finder: &TextFinder<'_>,
    found: &mut [bool],
) -> bool {
    let may_be_within = fits.iter().any(|fit| fit.part == Part::Within);
    let all_within = fits.iter().all(|fit| fit.part == Part::Within);
    // Words lie one after another: what is in none of them is in all of them at most where two meet.
    let has_empty = places.iter().any(|(_, len)| *len == 0);
    if all_within && !has_empty && !(may_be_within && (finder.has_text)(text.bytes())) {
        return false;
    }
    let holds = |word: &[u8]| {
        fits.iter().any(|fit| fit.part != Part::Within && fit.lies_over(word))
            || may_be_within && (finder.has_text)(word)
    };
    // Of words that strings share each is looked at once. None that begins where another one does is another word, but an
    // empty one.
    let mut known = vec![None; text.len() + 1];
    for (found, place) in found.iter_mut().zip(&places) {
        let word = text.get(*place);
        *found |= match word {
            [] => true,
            _ => *known[place.0 as usize].get_or_insert_with(|| holds(word)),
        };
    }
    has_empty
}
