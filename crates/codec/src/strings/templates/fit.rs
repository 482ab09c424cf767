//! How a text may lie over a word of a template, by what is beside the word.

use std::ops::RangeInclusive;

/// A way in which a text may lie over a word: a part of the text is in the word, and the rest is as what is beside it.
#[derive(Debug, PartialEq)]
pub(super) struct Fit<'t> {
    text: &'t [u8],
    pub(super) part: Part,
    /// Whether the rest of the text is all of it in the pieces beside the word, so that the word tells whether the text is there.
    pub(super) decides: bool,
}

/// What the part is to the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Within it, and all of the text.
    Within,
    /// Its beginning.
    Beginning,
    /// Its end.
    End,
    /// All of it.
    All,
}

impl<'t> Fit<'t> {
    /// Adds the ways in which `text` may lie over word `at` of a template with some pieces.
    pub(super) fn add(
        text: &'t [u8],
        pieces: &[&[u8]],
        (at, is_number): (usize, bool),
        fits: &mut Vec<Self>,
    ) {
        let (before, after) = (pieces[at], pieces[at + 1]);
        let (is_first, is_last) = (at == 0, at + 2 == pieces.len());
        // One byte mostly tells.
        let agrees_before = |start: usize| {
            let len = start.min(before.len());
            (len == 0 || before[before.len() - 1] == text[start - 1])
                && (start <= before.len() || !is_first)
                && before[before.len() - len..] == text[start - len..start]
        };
        let agrees_after = |end: usize| {
            let rest = &text[end..];
            let len = rest.len().min(after.len());
            (len == 0 || after[0] == rest[0])
                && (rest.len() <= after.len() || !is_last)
                && after[..len] == rest[..len]
        };
        let is_word = |part: &[u8]| !is_number || part.iter().all(u8::is_ascii_digit);
        if is_word(text) {
            fits.push(Self { text, part: Part::Within, decides: true });
        }
        for start in (0..text.len()).filter(|start| agrees_before(*start)) {
            let part = |end: usize| match (start > 0, end < text.len()) {
                (false, false) => None,
                (true, false) => Some(Part::Beginning),
                (false, true) => Some(Part::End),
                (true, true) => Some(Part::All),
            };
            for end in (start + 1..=text.len()).filter(|end| agrees_after(*end)) {
                if let Some(part) = part(end).filter(|_| is_word(&text[start..end])) {
                    let decides = start <= before.len() && text.len() - end <= after.len();
                    fits.push(Self { text: &text[start..end], part, decides });
                }
            }
        }
    }

    /// The same where the text is all of the string.
    pub(super) fn add_whole(
        text: &'t [u8],
        pieces: &[&[u8]],
        (at, is_number): (usize, bool),
        fits: &mut Vec<Self>,
    ) {
        let (before, after) = (pieces[at], pieces[at + 1]);
        let (is_first, is_last) = (at == 0, at + 2 == pieces.len());
        let begins = |start: &usize| {
            text[..*start].ends_with(before) && (!is_first || *start == before.len())
        };
        let ends = |end: &usize| {
            text[*end..].starts_with(after) && (!is_last || text.len() - *end == after.len())
        };
        for start in (0..text.len()).filter(begins) {
            for end in (start + 1..=text.len()).filter(ends) {
                Self::add_part(&text[start..end], Part::All, is_number, fits);
            }
        }
    }

    /// The ways in which a text may lie over the first word where it begins the string.
    pub(super) fn add_first(
        text: &'t [u8],
        pieces: &[&[u8]],
        is_number: bool,
        fits: &mut Vec<Self>,
    ) {
        let Some(text) = text.strip_prefix(pieces[0]) else { return };
        let after = pieces[1];
        let is_last = pieces.len() == 2;
        for end in 1..text.len() {
            let rest = &text[end..];
            let agrees = match rest.len() <= after.len() {
                true => after.starts_with(rest),
                false => !is_last && rest.starts_with(after),
            };
            if agrees {
                Self::add_part(&text[..end], Part::All, is_number, fits);
            }
        }
        Self::add_part(text, Part::Beginning, is_number, fits);
    }

    /// The same over the last word where it ends the string.
    pub(super) fn add_last(
        text: &'t [u8],
        pieces: &[&[u8]],
        is_number: bool,
        fits: &mut Vec<Self>,
    ) {
        let Some(text) = text.strip_suffix(pieces[pieces.len() - 1]) else { return };
        let before = pieces[pieces.len() - 2];
        let is_first = pieces.len() == 2;
        for start in 1..text.len() {
            let rest = &text[..start];
            let agrees = match rest.len() <= before.len() {
                true => before.ends_with(rest),
                false => !is_first && rest.ends_with(before),
            };
            if agrees {
                Self::add_part(&text[start..], Part::All, is_number, fits);
            }
        }
        Self::add_part(text, Part::End, is_number, fits);
    }

    /// Adds a way that does not decide.
    fn add_part(text: &'t [u8], part: Part, is_number: bool, fits: &mut Vec<Self>) {
        if !text.is_empty() && (!is_number || text.iter().all(u8::is_ascii_digit)) {
            fits.push(Self { text, part, decides: false });
        }
    }

    /// Whether the text may lie over a word so.
    pub(super) fn lies_over(&self, word: &[u8]) -> bool {
        match self.part {
            Part::Within => word.windows(self.text.len().max(1)).any(|part| part == self.text),
            Part::Beginning => word.starts_with(self.text),
            Part::End => word.ends_with(self.text),
            Part::All => word == self.text,
        }
    }

    /// Adds those of some numbers, of which as many digits are shown at least, which the text may lie over so; not for a text within
    /// them.
    pub(super) fn select_numbers(&self, numbers: &[u64], digits_min: usize, found: &mut [bool]) {
        if self.part == Part::End && self.text.len() < DIGITS_MAX {
            let Some((modulus, rest)) = self.modulus() else { return };
            let shortest = if digits_min >= self.text.len() { 0 } else { modulus / 10 };
            let holds = |number| number % modulus == rest && number >= shortest;
            return select(numbers, found, holds);
        }
        for range in self.ranges(digits_min) {
            let (first, len) = (*range.start(), range.end() - range.start());
            select(numbers, found, |number| number.wrapping_sub(first) <= len);
        }
    }

    /// By what, and with what rest, numbers are divided that end with the digits of the text.
    fn modulus(&self) -> Option<(u64, u64)> {
        Some((10u64.checked_pow(self.text.len() as u32)?, number(self.text)?))
    }

    /// The numbers that begin with the digits of the text, or have no other ones, as those that end with as many as a number can have.
    fn ranges(&self, digits_min: usize) -> Vec<RangeInclusive<u64>> {
        let Some(first) = number(self.text) else { return Vec::new() };
        let (len, shortest) = (self.text.len(), digits_min.max(1));
        let mut more = match self.part {
            Part::Beginning => shortest.saturating_sub(len)..DIGITS_MAX,
            Part::All | Part::End if len >= shortest => 0..1,
            _ => 0..0,
        };
        if self.text.starts_with(b"0") {
            // A number that has as few digits as are shown of any.
            more.start = more.start.max(shortest.saturating_sub(len));
            more.end = more.end.min((shortest + 1).saturating_sub(len));
        }
        let range = |more: usize| {
            let all = 10u64.checked_pow(more as u32)?;
            let from = first.checked_mul(all)?;
            Some(from..=from.saturating_add(all - 1))
        };
        more.map_while(range).collect()
    }
}

/// Adds those of some numbers for which something holds.
fn select(numbers: &[u64], found: &mut [bool], holds: impl Fn(u64) -> bool) {
    for (found, number) in found.iter_mut().zip(numbers) {
        *found |= holds(*number);
    }
}

/// A number has at most so many digits.
const DIGITS_MAX: usize = 20;

/// The number with these digits, if it is one of 64 bits.
fn number(digits: &[u8]) -> Option<u64> {
    let digit = |all: u64, digit: &u8| all.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    digits.iter().try_fold(0, digit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_selected_as_their_digits_are(
            numbers in prop::collection::vec(
                prop_oneof![0u64..200, any::<u64>(), Just(u64::MAX), (0u32..20).prop_map(|n| 10u64.saturating_pow(n))],
                1..20,
            ),
            digits_min in 1usize..20,
            text in prop_oneof!["[0-9]{1,3}", "[01]{1,21}", Just(u64::MAX.to_string()), Just("18446744073709551616".into())],
            of in any::<Option<(prop::sample::Index, prop::sample::Index, prop::sample::Index)>>(),
        ) {
            let shown: Vec<String> = numbers.iter().map(|number| format!("{number:0digits_min$}")).collect();
            // A part of one of the numbers, or any digits.
            let text = of.map_or(text, |(which, from, to)| {
                let number = which.get(&shown);
                let (from, to) = (from.index(number.len()), to.index(number.len()));
                number[from.min(to)..=from.max(to)].to_owned()
            });
            for part in [Part::Beginning, Part::End, Part::All] {
                let fit = Fit { text: text.as_bytes(), part, decides: true };
                let mut found = vec![false; numbers.len()];
                fit.select_numbers(&numbers, digits_min, &mut found);
                let expected: Vec<bool> = shown.iter().map(|number| fit.lies_over(number.as_bytes())).collect();
                prop_assert_eq!(found, expected, "{:?} of {:?}", part, shown);
            }
        }
    }

    #[test]
    fn a_text_lies_over_a_word_where_the_pieces_agree() {
        let fits = |text: &'static str, pieces: &[&[u8]], at: usize, is_number: bool| {
            let mut fits = Vec::new();
            Fit::add(text.as_bytes(), pieces, (at, is_number), &mut fits);
            let fit = |fit: &Fit<'_>| {
                (std::str::from_utf8(fit.text).unwrap().to_owned(), fit.part, fit.decides)
            };
            fits.iter().map(fit).collect::<Vec<_>>()
        };
        let pieces: [&[u8]; 3] = [b"status ", b" took ", b"ms"];
        assert_eq!(fits("status 50", &pieces, 0, true), [("50".into(), Part::Beginning, true)]);
        assert_eq!(fits("500 took", &pieces, 0, true), [("500".into(), Part::End, true)]);
        assert_eq!(fits("s 5 t", &pieces, 0, true), [("5".into(), Part::All, true)]);
        assert_eq!(fits("s 5 took 7", &pieces, 0, true), [("5".into(), Part::All, false)]);
        assert_eq!(fits("5 took 7", &pieces, 1, true), [("7".into(), Part::Beginning, false)]);
        assert_eq!(fits("77", &pieces, 1, true), [("77".into(), Part::Within, true)]);
        assert_eq!(fits("a", &pieces, 1, true), []);
        assert_eq!(fits("a", &pieces, 1, false), [("a".into(), Part::Within, true)]);
        assert_eq!(fits("msx", &pieces, 1, true), []);
    }
}
