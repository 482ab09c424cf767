//! A column of UTF-8 strings: where each is, and their text.
//!
//! Equal strings may share their text (the entry of a dictionary, a state that stays): a column of a thousand rows and
//! five states is a thousand places and five texts. So a place says more than its text: strings with one place are
//! equal, and what was found for one holds for the other ([`Numbered`]).

mod memo;
mod numbered;
mod pattern;
mod pieces;

pub use memo::Memo;
pub use numbered::Numbered;
pub use pattern::{TextPattern, TextTest};
pub use pieces::TextPieces;

use crate::Bitmap;

/// Where a string is: its first byte and its length.
pub type TextPlace = (u32, u32);

/// Strings by their places in a text.
///
/// Invariant: the text is UTF-8 and each place lies within it, on boundaries of characters. A column holds less than
/// 4 GiB of text.
#[derive(Clone, Debug, Default)]
pub struct Strings {
    places: Vec<TextPlace>,
    bytes: Vec<u8>,
    /// Sum of the lengths.
    text_bytes: usize,
}

impl PartialEq for Strings {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.all_bytes().eq(other.all_bytes())
    }
}

impl Eq for Strings {}

impl Strings {
    /// No strings.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Strings one after another, by their boundaries: these start with 0, ascend and end with the length of
    /// `bytes`. `None` if they do not, or a string is not UTF-8.
    #[must_use]
    pub fn from_parts(offsets: &[u32], bytes: Vec<u8>) -> Option<Self> {
        if offsets.first() != Some(&0) || *offsets.last()? as usize != bytes.len() {
            return None;
        }
        let place = |w: &[u32]| Some((w[0], w[1].checked_sub(w[0])?));
        Self::from_places(offsets.windows(2).map(place).collect::<Option<_>>()?, bytes)
    }

    /// Takes over decoded parts, after checking the invariant. `None` if it does not hold.
    #[must_use]
    pub fn from_places(places: Vec<TextPlace>, bytes: Vec<u8>) -> Option<Self> {
        let is_ascii = bytes.is_ascii();
        let text_len = u32::try_from(bytes.len()).ok()?;
        let is_within = |(start, len): &TextPlace| {
            (*start <= text_len) & (*len <= text_len.wrapping_sub(*start))
        };
        // Without leaving early: many at a time.
        if !places.iter().fold(true, |all, place| all & is_within(place)) {
            return None;
        }
        // Most texts are ASCII, which is found out many bytes at a time.
        if !is_ascii {
            let text = std::str::from_utf8(&bytes).ok()?;
            let is_boundary = |at: u32| text.is_char_boundary(at as usize);
            if !places.iter().all(|(start, len)| is_boundary(*start) && is_boundary(start + len)) {
                return None;
            }
        }
        let text_bytes = places.iter().map(|place| place.1 as usize).sum();
        Some(Self { places, bytes, text_bytes })
    }

    /// Removes all strings and keeps their memory for others.
    pub fn clear(&mut self) {
        self.places.clear();
        self.bytes.clear();
        self.text_bytes = 0;
    }

    /// Number of strings.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The string at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> &str {
        std::str::from_utf8(self.get_bytes(index)).expect("BUG: a string column holds UTF-8")
    }

    /// The bytes of the string at `index`, without the cost of proving them UTF-8 again.
    #[inline]
    #[must_use]
    pub fn get_bytes(&self, index: usize) -> &[u8] {
        self.bytes_at(self.places[index])
    }

    /// Where the strings are, in order. Two with the same place are equal.
    #[must_use]
    pub fn places(&self) -> &[TextPlace] {
        &self.places
    }

    /// The bytes of the string at one of [`Strings::places`].
    #[inline]
    #[must_use]
    pub fn bytes_at(&self, (start, len): TextPlace) -> &[u8] {
        &self.bytes[start as usize..start as usize + len as usize]
    }

    /// The text, if the strings lie in it one after another, none shared with or within another. Empty ones may be anywhere.
    #[must_use]
    pub fn in_a_row(&self) -> Option<&[u8]> {
        let mut end = 0;
        let follow = self.places.iter().filter(|place| place.1 > 0).all(|(start, len)| {
            let follows = *start >= end;
            end = start + len;
            follows
        });
        follow.then_some(&self.bytes)
    }

    fn all_bytes(&self) -> impl Iterator<Item = &[u8]> {
        self.places.iter().map(|place| self.bytes_at(*place))
    }

    /// Adds one string.
    ///
    /// # Panics
    /// If the column would hold 4 GiB or more: callers bound their batches far below.
    pub fn push(&mut self, text: &str) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(text.as_bytes());
        self.check_length();
        self.places.push((start, text.len() as u32));
        self.text_bytes += text.len();
    }

    /// Adds `count` empty strings.
    pub fn extend_empty(&mut self, count: usize) {
        self.places.resize(self.places.len() + count, EMPTY);
    }

    /// Makes room for the places of `count` more strings.
    pub fn reserve(&mut self, count: usize) {
        self.places.reserve(count);
    }

    /// Adds the strings `range` of `other`.
    ///
    /// # Panics
    /// As [`Strings::push`].
    pub fn extend_from(&mut self, other: &Self, range: std::ops::Range<usize>) {
        self.places.extend_from_slice(&other.places[range.clone()]);
        self.take_over(range.len(), other);
    }

    /// The strings at some indexes, in that order.
    ///
    /// # Panics
    /// As [`Strings::push`].
    #[must_use]
    pub fn take(&self, indexes: impl Iterator<Item = usize>) -> Self {
        self.take_some(indexes.map(Some))
    }

    /// The strings at some indexes, in that order, and empty ones for those without.
    ///
    /// # Panics
    /// As [`Strings::push`].
    #[must_use]
    pub fn take_some(&self, indexes: impl Iterator<Item = Option<usize>>) -> Self {
        let mut taken = Self::new();
        taken.places.extend(indexes.map(|index| index.map_or(EMPTY, |at| self.places[at])));
        taken.take_over(taken.len(), self);
        taken
    }

    /// Copies the text of the last `count` strings, whose places are those in `other` so far; hardly more of it than
    /// they have.
    fn take_over(&mut self, count: usize, other: &Self) {
        let from = self.places.len() - count;
        let added = &mut self.places[from..];
        let text_bytes: usize = added.iter().map(|(_, len)| *len as usize).sum();
        self.text_bytes += text_bytes;
        let base = self.bytes.len() as u32;
        if other.bytes.len() <= count {
            // So little that nobody asks whether all of it is needed.
            self.bytes.extend_from_slice(&other.bytes);
            added.iter_mut().for_each(|place| *place = (place.0 + base, place.1));
            return self.check_length();
        }
        let (mut start, mut end) = (u32::MAX, 0);
        for (at, len) in added.iter().filter(|(_, len)| *len > 0) {
            start = start.min(*at);
            end = end.max(at + len);
        }
        if end == 0 {
            added.fill(EMPTY);
        } else if (end - start) as usize <= text_bytes {
            // One piece of text, which strings may share. Empty ones may be anywhere.
            self.bytes.extend_from_slice(&other.bytes[start as usize..end as usize]);
            added.iter_mut().for_each(|place| {
                *place = (place.0.clamp(start, end) - start + base, place.1);
            });
        } else {
            let mut last = (EMPTY, EMPTY);
            for place in added {
                if *place != last.0 {
                    last = (*place, (self.bytes.len() as u32, place.1));
                    self.bytes.extend_from_slice(other.bytes_at(*place));
                }
                *place = last.1;
            }
        }
        self.check_length();
    }

    fn check_length(&self) {
        assert!(u32::try_from(self.bytes.len()).is_ok(), "BUG: a string column passed 4 GiB");
    }

    /// Puts empty strings among those from `at` on, which are those of the set bits in `rows` of `present`: one for each
    /// other bit.
    ///
    /// # Panics
    /// If there are not as many strings as set bits.
    pub fn spread(&mut self, at: usize, present: &Bitmap, rows: std::ops::Range<usize>) {
        present.spread(rows, &mut self.places, at);
    }

    /// A number for each string, by which what holds for one is known of all that share its text. `None` if hardly any do.
    #[must_use]
    pub fn numbered(&self) -> Option<Numbered> {
        Numbered::of(self)
    }

    /// The rows whose strings satisfy `holds`, which is asked once for most that share their text.
    #[must_use]
    pub fn matching(&self, mut holds: impl FnMut(&[u8]) -> bool) -> Bitmap {
        match self.numbered() {
            None => Bitmap::of(&self.places, |place| holds(self.bytes_at(place))),
            Some(Numbered { numbers, places }) => {
                let holds: Vec<bool> =
                    places.into_iter().map(|place| holds(self.bytes_at(place))).collect();
                Bitmap::of(&numbers, |number| holds[number as usize])
            }
        }
    }

    /// Sum of the strings' lengths, as if none shared its text.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// Bytes of memory the strings take, for budgets.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.places.len() * size_of::<TextPlace>()
    }

    /// The strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + '_ {
        (0..self.len()).map(|at| self.get(at))
    }
}

/// The place of an empty string: in any text, the empty one as well.
const EMPTY: TextPlace = (0, 0);

impl<'a> FromIterator<&'a str> for Strings {
    fn from_iter<I: IntoIterator<Item = &'a str>>(texts: I) -> Self {
        let mut column = Self::new();
        for text in texts {
            column.push(text);
        }
        column
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn strings_are_taken_in_any_order() {
        let texts: Strings = ["a", "", "über", "c"].into_iter().collect();
        let taken = texts.take([2, 0, 2, 1].into_iter());
        assert_eq!(taken.iter().collect::<Vec<_>>(), ["über", "a", "über", ""]);
        assert!(texts.take(std::iter::empty()).is_empty());
    }

    #[test]
    fn empty_strings_are_put_among_others() {
        let mut texts: Strings = ["before", "x", "yz"].into_iter().collect();
        let present = [true, false, true, false, false, true, false].into_iter().collect();
        texts.spread(1, &present, 1..7);
        let spread: Vec<&str> = texts.iter().collect();
        assert_eq!(spread, ["before", "", "x", "", "", "yz", ""]);
    }

    /// What a column of strings is: each of them.
    fn each(strings: &Strings) -> Vec<&str> {
        strings.iter().collect()
    }

    #[test]
    fn strings_in_a_row_share_nothing() {
        let in_a_row = |places: &[TextPlace]| {
            Strings::from_places(places.to_vec(), b"abcdef".to_vec()).unwrap().in_a_row().is_some()
        };
        assert!(
            in_a_row(&[])
                && in_a_row(&[(0, 2), (2, 3), (0, 0), (5, 1)])
                && in_a_row(&[(1, 1), (4, 2)])
        );
        assert!(
            !in_a_row(&[(0, 2), (1, 3)])
                && !in_a_row(&[(2, 1), (2, 1)])
                && !in_a_row(&[(3, 1), (0, 2)])
        );
    }

    #[test]
    fn parts_that_break_the_invariant_are_refused() {
        let text = || "aüb".as_bytes().to_vec();
        assert!(Strings::from_parts(&[0, 1, 3, 4], text()).is_some());
        for offsets in [&[][..], &[1, 4], &[0, 3], &[0, 3, 1, 4], &[0, 2, 4]] {
            assert_eq!(Strings::from_parts(offsets, text()), None, "{offsets:?}");
        }
        assert!(Strings::from_places(vec![(3, 1), (0, 3), (0, 0)], text()).is_some());
        for place in [(0, 5), (5, 0), (2, 1), (0, 2), (u32::MAX, u32::MAX)] {
            assert_eq!(Strings::from_places(vec![place], text()), None, "{place:?}");
        }
        assert_eq!(Strings::from_places(Vec::new(), vec![0xff]), None);
    }

    proptest! {
        #[test]
        fn strings_are_those_of_a_list_however_they_share_text(
            words in prop::collection::vec("[aü]{0,3}", 1..6),
            codes in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
            picked in prop::collection::vec(prop::option::of(any::<prop::sample::Index>()), 0..40),
            (from, to) in (0..40_usize, 0..40_usize),
        ) {
            // A dictionary and places in it.
            let dictionary: Strings = words.iter().map(String::as_str).collect();
            let codes: Vec<usize> = codes.iter().map(|code| code.index(words.len())).collect();
            let places = codes.iter().map(|code| dictionary.places()[*code]).collect();
            let shared = Strings::from_places(places, dictionary.bytes.clone()).unwrap();
            let model: Vec<&str> = codes.iter().map(|code| words[*code].as_str()).collect();
            prop_assert_eq!(each(&shared), model.clone());
            prop_assert_eq!(&shared, &model.iter().copied().collect::<Strings>());
            prop_assert_eq!(shared.text_bytes(), model.iter().map(|s| s.len()).sum::<usize>());
            let found = shared.matching(|text| text.starts_with(b"a"));
            let expected: Bitmap = model.iter().map(|text| text.starts_with('a')).collect();
            prop_assert_eq!(found, expected);
            if let Some(numbered) = shared.numbered() {
                let place = |number: &u32| numbered.places[*number as usize];
                let places: Vec<TextPlace> = numbered.numbers.iter().map(place).collect();
                prop_assert_eq!(&places, shared.places());
            }

            let range = from.min(to).min(model.len())..from.max(to).min(model.len());
            let mut extended: Strings = ["x", "", "x"].into_iter().collect();
            extended.extend_from(&shared, range.clone());
            extended.extend_empty(1);
            let joined = [&["x", "", "x"], &model[range.clone()], &[""]].concat();
            prop_assert_eq!(each(&extended), joined.clone());
            prop_assert_eq!(extended.text_bytes(), joined.concat().len());
            prop_assert!(extended.bytes.len() <= extended.text_bytes() + range.len());

            if !model.is_empty() {
                let picked: Vec<_> =
                    picked.iter().map(|at| at.as_ref().map(|at| at.index(model.len()))).collect();
                let taken = shared.take_some(picked.iter().copied());
                let expected: Vec<&str> =
                    picked.iter().map(|at| at.map_or("", |at| model[at])).collect();
                prop_assert_eq!(each(&taken), expected);
                prop_assert!(taken.bytes.len() <= taken.text_bytes() + picked.len());
            }
        }
    }
}
