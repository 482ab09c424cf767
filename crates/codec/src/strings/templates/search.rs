//! Which strings have some text in them, told from templates and the words that differ.
//!
//! If the text is in a piece of a template, all its strings have it. Else a word has a part of it: all of it, or what is left of it
//! where pieces beside the word agree with the rest ([`fit`](super::fit)). Most columns of words are ruled out by that, without
//! a look at them; of others the words are looked at, numbers as numbers, texts that strings share once. Only where that does not
//! decide strings are put together: where a text reaches over several words, or more is asked than whether it is there.

use std::ops::Range;

use super::fit::{Fit, Part};
use super::{Padded, Page, Wanted, each_stretch};
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
    let mut bits = vec![0u64; range.len().div_ceil(64)];
    let mut row = 0;
    each_stretch(reader, count, &Wanted::all(range), |reader, count, wanted| {
        search_stretch(reader, count, wanted.range(), (finder, max_bytes), |holds| {
            bits[row / 64] |= u64::from(holds) << (row % 64);
            row += 1;
        })
    })?;
    Ok(bits)
}

/// Calls `push` for each string of the range: whether it is wanted.
fn search_stretch(
    reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    (finder, max_bytes): (&TextFinder<'_>, usize),
    mut push: impl FnMut(bool),
) -> Result<()> {
    let page = Page::read(reader, count, &range, max_bytes)?;
    let mut found = Vec::with_capacity(page.templates.len());
    for code in 0..page.templates.len() {
        let mut of_template = of_template(&page, code, finder, max_bytes)?;
        if let Found::Perhaps(may_be) = &mut of_template {
            look_closer(&page, code, may_be, finder, max_bytes)?;
        }
        found.push(of_template);
    }
    let mut passed = vec![0; found.len()];
    for code in &page.codes[range] {
        let code = *code as usize;
        push(match &found[code] {
            Found::All => true,
            Found::None => false,
            Found::Some(are) | Found::Perhaps(are) => {
                passed[code] += 1;
                are[passed[code] - 1]
            }
        });
    }
    Ok(())
}

/// Puts those strings of a template together that may be wanted, a few at a time, and leaves those that are.
fn look_closer(
    page: &Page<'_>,
    code: usize,
    may_be: &mut [bool],
    finder: &TextFinder<'_>,
    max_bytes: usize,
) -> Result<()> {
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
    Ok(())
}

/// So many strings stay in the processor's first cache.
const LOOKED_AT_TOGETHER: usize = 256;

/// Which strings of a template are wanted.
enum Found {
    All,
    None,
    /// These, in order.
    Some(Vec<bool>),
    /// At most these.
    Perhaps(Vec<bool>),
}

fn of_template(
    page: &Page<'_>,
    code: usize,
    finder: &TextFinder<'_>,
    max_bytes: usize,
) -> Result<Found> {
    let template = &page.templates[code];
    let pieces: Vec<&[u8]> =
        page.pieces(code).iter().map(|piece| page.pieces_text.get(*piece)).collect();
    if template.within == 0 {
        return Ok(Found::None);
    }
    if template.words == 0 {
        return Ok(if finder.wants(pieces[0]) { Found::All } else { Found::None });
    }
    let perhaps_all = || Found::Perhaps(vec![true; template.within]);
    // A word beside a piece at an end may go on with what the piece begins.
    let reaches_over = |piece: &[u8]| match finder.wants {
        Wants::Starting => finder.texts.iter().any(|text| text.starts_with(piece)),
        _ => finder.texts.iter().any(|text| text.ends_with(piece)),
    };
    match finder.wants {
        Wants::Starting | Wants::Ending => {
            let is_start = matches!(finder.wants, Wants::Starting);
            let piece = pieces[if is_start { 0 } else { template.words }];
            return Ok(match finder.wants(piece) {
                true => Found::All,
                false if reaches_over(piece) => perhaps_all(),
                false => Found::None,
            });
        }
        Wants::Having if pieces.iter().any(|piece| (finder.has_text)(piece)) => {
            return Ok(Found::All);
        }
        Wants::Being | Wants::Matching(_)
            if pieces.iter().any(|piece| (finder.has_text)(piece)) =>
        {
            return Ok(perhaps_all());
        }
        _ => {}
    }
    by_words(page, code, &pieces, finder, max_bytes)
}

/// The same where no piece has a text.
fn by_words(
    page: &Page<'_>,
    code: usize,
    pieces: &[&[u8]],
    finder: &TextFinder<'_>,
    max_bytes: usize,
) -> Result<Found> {
    let template = &page.templates[code];
    let mut found = vec![false; template.within];
    let mut decides = matches!(finder.wants, Wants::Having);
    for (at, column) in page.columns(code).iter().enumerate() {
        let (is_number, within) = (column.is_number(), 0..template.within);
        let mut fits = Vec::new();
        finder.texts.iter().for_each(|text| Fit::add(text, pieces, (at, is_number), &mut fits));
        if fits.is_empty() {
            continue;
        }
        decides &= fits.iter().all(|fit| fit.decides);
        if is_number && fits.iter().all(|fit| fit.part != Part::Within) {
            let numbers = column.numbers(template, within)?;
            fits.iter().for_each(|fit| fit.select_numbers(&numbers, column.digits_min, &mut found));
        } else {
            let words = column.words(template, within.clone(), within, max_bytes)?;
            select_texts(words.into_texts(), &fits, finder, &mut found);
        }
    }
    Ok(match found.contains(&true) {
        false => Found::None,
        true if decides => Found::Some(found),
        true => Found::Perhaps(found),
    })
}

/// Adds those words which a text may lie over, or in.
fn select_texts(
    (places, text): (Vec<TextPlace>, Padded),
    fits: &[Fit<'_>],
    finder: &TextFinder<'_>,
    found: &mut [bool],
) {
    let may_be_within = fits.iter().any(|fit| fit.part == Part::Within);
    let all_within = fits.iter().all(|fit| fit.part == Part::Within);
    // Words lie one after another: what is in none of them is in all of them at most where two meet.
    let has_empty = places.iter().any(|(_, len)| *len == 0);
    if all_within && !has_empty && !(finder.has_text)(text.bytes()) {
        return;
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
            [] => holds(word),
            _ => *known[place.0 as usize].get_or_insert_with(|| holds(word)),
        };
    }
}
