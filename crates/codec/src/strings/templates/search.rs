//! Which strings have some text in them, told from templates and the words that differ.
//!
//! If the text is in a piece of a template, all its strings have it. Else a word has a part of it: all of it, or what is left of it
//! where pieces beside the word agree with the rest. Most columns of words are ruled out by that, without a look at them;
//! of others the words are looked at, those that strings share once, and only strings are put together of which a word may do.

use std::ops::Range;

use super::{Page, Room, Template, Words, each_stretch};
use crate::error::Result;
use crate::strings::{Output, TextFinder, TextPlace};
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
    each_stretch(reader, count, &range, |reader, count, range| {
        search_stretch(reader, count, range, (finder, max_bytes), |holds| {
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
    let found = (0..page.templates.len()).map(|code| of_template(&page, code, finder, max_bytes));
    let found: Vec<Found> = found.collect::<Result<_>>()?;
    let is_open = |code: usize| matches!(&found[code], Found::Some(_));
    let words = Words::decode(&page, max_bytes, is_open)?;
    let mut next = words.starts.clone();
    let mut passed = vec![0; found.len()];
    let mut string = Vec::new();
    for code in &page.codes[range] {
        let code = *code as usize;
        let holds = match &found[code] {
            Found::All => true,
            Found::None => false,
            Found::Some(may_have) => {
                let at = passed[code];
                passed[code] += 1;
                if may_have[at] {
                    string.clear();
                    let mut room = Room::new(&mut string, page.string_len(code, &words, &next));
                    page.append(code, &words, &mut next, &mut room);
                    (finder.is_wanted)(&string)
                } else {
                    let Template { first, words, .. } = page.templates[code];
                    next[first..first + words].iter_mut().for_each(|next| *next += 1);
                    false
                }
            }
        };
        push(holds);
    }
    Ok(())
}

/// Which strings of a template are wanted.
enum Found {
    All,
    None,
    /// Perhaps these, in order.
    Some(Vec<bool>),
}

fn of_template(
    page: &Page<'_>,
    code: usize,
    finder: &TextFinder<'_>,
    max_bytes: usize,
) -> Result<Found> {
    let template = page.templates[code];
    let pieces: Vec<&[u8]> =
        page.pieces(code).iter().map(|piece| page.pieces_text.get(*piece)).collect();
    // A piece is a whole string if there are no words.
    let may_be_all = template.words == 0 || !finder.are_whole;
    if may_be_all && pieces.iter().any(|piece| (finder.is_wanted)(piece)) {
        return Ok(Found::All);
    }
    if template.within == 0 {
        return Ok(Found::None);
    }
    let mut found: Option<Vec<bool>> = None;
    for (at, column) in page.columns[template.first..][..template.words].iter().enumerate() {
        let is_number = column.digits_min > 0;
        let within = |text: &&[u8]| !is_number || text.iter().all(u8::is_ascii_digit);
        let may_be_within = finder.texts.iter().any(within);
        let aligns = |text: &&[u8]| may_align(text, &pieces, at, is_number);
        let may_align = finder.texts.iter().any(aligns);
        if !may_be_within && !may_align {
            continue;
        }
        let (mut places, mut text) = (Vec::new(), Vec::new());
        let mut into = Output { places: &mut places, bytes: &mut text, max_bytes };
        column.decode(&template, &mut into)?;
        // Words lie one after another: what is in none of them is in all of them at most where two meet.
        let has_empty = places.iter().any(|(_, len)| *len == 0);
        if !may_align && !has_empty && !finder.are_whole && !(finder.is_wanted)(&text) {
            continue;
        }
        let found = found.get_or_insert_with(|| vec![false; template.within]);
        let mut known = vec![None; text.len() + 1];
        for (found, place) in found.iter_mut().zip(&places) {
            *found |= touches(finder, &text, *place, &mut known);
        }
    }
    Ok(match found {
        Some(found) if found.contains(&true) => Found::Some(found),
        _ => Found::None,
    })
}

/// Whether a part of `text`, but not all of it, may be in word `at` of a template, or all that is in the word, by what is beside the
/// word.
fn may_align(text: &[u8], pieces: &[&[u8]], at: usize, is_number: bool) -> bool {
    let (before, after) = (pieces[at], pieces[at + 1]);
    let (is_first, is_last) = (at == 0, at + 2 == pieces.len());
    let agrees_before = |start: usize| {
        let len = start.min(before.len());
        (start <= before.len() || !is_first)
            && before[before.len() - len..] == text[start - len..start]
    };
    let agrees_after = |end: usize| {
        let rest = &text[end..];
        let len = rest.len().min(after.len());
        (rest.len() <= after.len() || !is_last) && after[..len] == rest[..len]
    };
    let is_word = |part: &[u8]| !is_number || part.iter().all(u8::is_ascii_digit);
    (0..text.len()).filter(|start| agrees_before(*start)).any(|start| {
        let ends = (start + 1..=text.len()).filter(|end| *end - start < text.len());
        ends.filter(|end| agrees_after(*end)).any(|end| is_word(&text[start..end]))
    })
}

/// Whether one of the texts, or a part of one at one of its ends, is in a word, or the word in it. `known`: what is known of words that
/// strings share, by where they begin.
fn touches(
    finder: &TextFinder<'_>,
    text: &[u8],
    (start, len): TextPlace,
    known: &mut [Option<bool>],
) -> bool {
    // None that begins where another one does is another word, but an empty one.
    if len == 0 {
        return true;
    }
    let word = &text[start as usize..][..len as usize];
    *known[start as usize].get_or_insert_with(|| {
        let reaches_in = |text: &&[u8]| {
            let shorter = text.len().min(word.len());
            let meets_end =
                |len| text.starts_with(&word[word.len() - len..]) || text.ends_with(&word[..len]);
            (1..=shorter).any(meets_end) || text.windows(word.len()).any(|within| within == word)
        };
        finder.texts.iter().any(reaches_in) || (finder.is_wanted)(word)
    })
}
