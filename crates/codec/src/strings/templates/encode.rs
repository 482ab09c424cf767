//! Finds the templates of strings.
//!
//! A word is a run of letters and digits; all other bytes belong to templates. A word with a digit varies; another one varies
//! unless many strings have it: how many is told from some of the strings, so that these have few templates.

use std::ops::Range;

use hashbrown::{HashMap, HashSet};

use super::{DIGITS_MAX, stretches};
use crate::encoding::{Effort, id};
use crate::int::encode_u64;
use crate::strings::{Gathered, Nesting, Strings, encode_page};
use crate::wire::{put_length_prefixed, put_uvarint};

/// Of fewer strings hardly any template has enough.
const STRINGS_MIN: usize = 64;

/// Longer strings on the average are documents, not messages: of their words more would have to be in memory than there is text.
const STRING_BYTES_MAX: usize = 1024;

/// Strings looked at to tell which words vary.
const SAMPLE: usize = 512;

/// A word without digits belongs to templates if one string in so many has it: the first of these with few templates.
const STEADY_SHARES: [usize; 4] = [64, 16, 4, 1];

/// So many strings of the sample have to share their template with another one: all but one in so many.
const LONELY_PART: usize = 8;

/// Templates of fewer strings are not worth columns of their own: their strings are words of a template that has nothing else.
const TEMPLATE_STRINGS_MIN: usize = 8;

/// Where a word varies; strings that have this byte themselves are words as a whole.
const VARYING: u8 = 0;

/// A page, unless strings have little in common.
pub(in crate::strings) fn encode(strings: Strings<'_>, effort: Effort) -> Option<Vec<u8>> {
    if strings.len() < STRINGS_MIN {
        return None;
    }
    let mut out = vec![id::STRINGS_TEMPLATES];
    for Range { start, end } in stretches(strings.len()) {
        let stretch = Strings { offsets: &strings.offsets[start..=end], bytes: strings.bytes };
        if stretch.concatenated().len() > STRING_BYTES_MAX * stretch.len() {
            return None;
        }
        put_length_prefixed(&mut out, &encode_stretch(stretch, effort)?);
    }
    Some(out)
}

fn encode_stretch(strings: Strings<'_>, effort: Effort) -> Option<Vec<u8>> {
    let cut = Cut::new(strings, &steady_words(strings)?);
    let (templates, codes) = cut.templates(strings)?;
    let (mut n_words, mut pieces, mut columns) = (Vec::new(), Gathered::default(), Vec::new());
    for template in &templates {
        n_words.push(template.encode(effort, &mut pieces, &mut columns));
    }
    let mut out = Vec::new();
    put_uvarint(&mut out, templates.len() as u64);
    let mut page = Vec::new();
    encode_u64(&n_words, effort, &mut page);
    put_length_prefixed(&mut out, &page);
    page.clear();
    encode_page(pieces.strings(), effort, Nesting::Innermost, &mut page);
    put_length_prefixed(&mut out, &page);
    out.append(&mut columns);
    encode_u64(&codes, effort, &mut out);
    Some(out)
}

/// What a byte can be of a word.
const LETTER: u8 = 1;
const DIGIT: u8 = 2;

/// Of each byte what it is; 0: of no word.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'0'..=b'9' => DIGIT,
            b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => LETTER,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

/// The words of a text: where they are, and whether a digit is among their letters.
fn words(text: &[u8]) -> impl Iterator<Item = (Range<usize>, bool)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let class = |at: usize| text.get(at).map(|byte| CLASSES[*byte as usize]);
        while class(at)? == 0 {
            at += 1;
        }
        let (start, mut seen) = (at, 0);
        while let Some(class @ 1..) = class(at) {
            seen |= class;
            at += 1;
        }
        Some((start..at, seen & DIGIT != 0))
    })
}

/// Words that belong to templates although they are words; `None`: there are too many templates.
fn steady_words<'a>(strings: Strings<'a>) -> Option<HashSet<&'a [u8]>> {
    let step = strings.len().div_ceil(SAMPLE);
    let sample: Vec<&[u8]> = (0..strings.len()).step_by(step).map(|at| strings.get(at)).collect();
    let mut counts: HashMap<&[u8], usize> = HashMap::new();
    for text in &sample {
        for (word, has_digit) in words(text) {
            if !has_digit {
                *counts.entry(&text[word]).or_default() += 1;
            }
        }
    }
    let with_share = |share: &usize| {
        let least = (sample.len() / share).max(2);
        let steady = counts.iter().filter(|(_, count)| **count >= least).map(|(word, _)| *word);
        let steady: HashSet<&[u8]> = steady.collect();
        let mut templates: HashMap<Vec<u8>, usize> = HashMap::new();
        for text in &sample {
            let mut key = Vec::new();
            cut(text, &steady, &mut key, &mut Vec::new());
            *templates.entry(key).or_default() += 1;
        }
        let lonely = templates.values().filter(|strings| **strings == 1).count();
        (lonely <= sample.len() / LONELY_PART).then_some(steady)
    };
    STEADY_SHARES.iter().find_map(with_share)
}

/// Appends the template of a text to `key`, with [`VARYING`] where words vary, and these words.
fn cut<'a>(
    text: &'a [u8],
    steady: &HashSet<&[u8]>,
    key: &mut Vec<u8>,
    varying: &mut Vec<&'a [u8]>,
) {
    if text.contains(&VARYING) {
        key.push(VARYING);
        varying.push(text);
        return;
    }
    let mut done = 0;
    for (word, has_digit) in words(text) {
        if !has_digit && steady.contains(&text[word.clone()]) {
            continue;
        }
        key.extend_from_slice(&text[done..word.start]);
        key.push(VARYING);
        done = word.end;
        varying.push(&text[word]);
    }
    key.extend_from_slice(&text[done..]);
}

/// All strings, cut.
struct Cut<'a> {
    /// Of each template its pieces, and how many strings have it.
    templates: Vec<(Vec<u8>, usize)>,
    /// The template of each string.
    of_strings: Vec<u32>,
    /// The varying words of all strings.
    words: Vec<&'a [u8]>,
}

impl<'a> Cut<'a> {
    fn new(strings: Strings<'a>, steady: &HashSet<&[u8]>) -> Self {
        let mut numbers: HashMap<Vec<u8>, u32> = HashMap::new();
        let mut counts: Vec<usize> = Vec::new();
        let (mut of_strings, mut words) = (Vec::with_capacity(strings.len()), Vec::new());
        let mut key = Vec::new();
        for text in strings.iter() {
            key.clear();
            cut(text, steady, &mut key, &mut words);
            let number = match numbers.get(&key) {
                Some(number) => *number,
                None => {
                    let next = counts.len() as u32;
                    counts.push(0);
                    *numbers.entry(key.clone()).or_insert(next)
                }
            };
            counts[number as usize] += 1;
            of_strings.push(number);
        }
        let mut templates = vec![(Vec::new(), 0); counts.len()];
        for (key, number) in numbers {
            templates[number as usize] = (key, counts[number as usize]);
        }
        Self { templates, of_strings, words }
    }

    /// The templates that are worth it with their columns, and which each string has; `None`: none is.
    fn templates(self, strings: Strings<'a>) -> Option<(Vec<Template<'a>>, Vec<u64>)> {
        let mut made: Vec<Template<'a>> = Vec::new();
        let mut places: Vec<Option<usize>> = Vec::with_capacity(self.templates.len());
        for (key, count) in &self.templates {
            let is_kept = *count >= TEMPLATE_STRINGS_MIN;
            places.push(is_kept.then_some(made.len()));
            if is_kept {
                made.push(Template::new(key.clone(), *count));
            }
        }
        if made.is_empty() {
            return None;
        }
        let mut others = None;
        let (mut codes, mut words) = (Vec::with_capacity(strings.len()), self.words.as_slice());
        for (text, number) in strings.iter().zip(&self.of_strings) {
            let n_words =
                self.templates[*number as usize].0.iter().filter(|b| **b == VARYING).count();
            let (of_text, rest) = words.split_at(n_words);
            words = rest;
            let place = places[*number as usize];
            let code = place.unwrap_or_else(|| {
                *others.get_or_insert_with(|| {
                    made.push(Template::new(vec![VARYING], 0));
                    made.len() - 1
                })
            });
            let whole = [text];
            let of_text = if place.is_some() { of_text } else { &whole };
            for (column, word) in made[code].columns.iter_mut().zip(of_text) {
                column.push(*word);
            }
            codes.push(code as u64);
        }
        Some((made, codes))
    }
}

/// A template with the words that its strings have.
struct Template<'a> {
    key: Vec<u8>,
    columns: Vec<Vec<&'a [u8]>>,
}

impl<'a> Template<'a> {
    fn new(key: Vec<u8>, strings: usize) -> Self {
        let n_words = key.iter().filter(|byte| **byte == VARYING).count();
        let columns = (0..n_words).map(|_| Vec::with_capacity(strings)).collect();
        Self { key, columns }
    }

    /// Appends pieces and columns; how many columns there are.
    fn encode(&self, effort: Effort, pieces: &mut Gathered, out: &mut Vec<u8>) -> u64 {
        let mut fixed = self.key.split(|byte| *byte == VARYING);
        let mut piece = fixed.next().unwrap_or_default().to_vec();
        let mut n_columns = 0;
        for (words, after) in self.columns.iter().zip(fixed) {
            let first = words[0];
            if words.iter().all(|word| *word == first) {
                piece.extend_from_slice(first);
                piece.extend_from_slice(after);
                continue;
            }
            n_columns += 1;
            let mut page = Vec::new();
            match Numbers::of(words) {
                Some(numbers) => {
                    piece.extend_from_slice(numbers.before);
                    pieces.push(&piece);
                    piece.clear();
                    piece.extend_from_slice(numbers.after);
                    put_uvarint(out, numbers.digits_min as u64);
                    encode_u64(&numbers.values, effort, &mut page);
                }
                None => {
                    pieces.push(&piece);
                    piece.clear();
                    put_uvarint(out, 0);
                    let mut texts = Gathered::default();
                    words.iter().for_each(|word| texts.push(word));
                    encode_page(texts.strings(), effort, Nesting::Column, &mut page);
                }
            }
            put_length_prefixed(out, &page);
            piece.extend_from_slice(after);
        }
        pieces.push(&piece);
        n_columns
    }
}

/// Words that are numbers between the same letters.
struct Numbers<'a> {
    before: &'a [u8],
    after: &'a [u8],
    digits_min: usize,
    values: Vec<u64>,
}

impl<'a> Numbers<'a> {
    fn of(words: &[&'a [u8]]) -> Option<Self> {
        let first = *words.first()?;
        let start = first.iter().position(u8::is_ascii_digit)?;
        let end = first.iter().rposition(u8::is_ascii_digit)? + 1;
        let (before, after) = (&first[..start], &first[end..]);
        let digits_of = |word: &&'a [u8]| word.strip_prefix(before)?.strip_suffix(after);
        let digits: Vec<&[u8]> = words.iter().map(digits_of).collect::<Option<_>>()?;
        let digits_min = digits.iter().map(|digits| digits.len()).min()?;
        let mut values = Vec::with_capacity(words.len());
        for digits in digits {
            // Zeros before a number are written as far as all have so many digits.
            let is_padded = digits.len() > digits_min && digits[0] == b'0';
            if is_padded || digits.len() > DIGITS_MAX || !digits.iter().all(u8::is_ascii_digit) {
                return None;
            }
            values.push(digits.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0')));
        }
        (digits_min > 0).then_some(Self { before, after, digits_min, values })
    }
}
