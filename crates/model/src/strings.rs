//! A column of UTF-8 strings in Arrow's memory layout.

/// Strings one after another, with their boundaries.
///
/// Invariant: `offsets` starts with 0, ascends, ends with `bytes.len()`, and each string between
/// two offsets is UTF-8. A column holds less than 4 GiB of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strings {
    offsets: Vec<u32>,
    bytes: Vec<u8>,
}

impl Default for Strings {
    fn default() -> Self {
        Self { offsets: vec![0], bytes: Vec::new() }
    }
}

impl Strings {
    /// No strings.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes over decoded parts, after checking the invariant. `None` if it does not hold.
    #[must_use]
    pub fn from_parts(offsets: Vec<u32>, bytes: Vec<u8>) -> Option<Self> {
        if offsets.first() != Some(&0) || *offsets.last()? as usize != bytes.len() {
            return None;
        }
        let text = std::str::from_utf8(&bytes).ok()?;
        let ascending = offsets.windows(2).all(|w| w[0] <= w[1]);
        let cut_well = ascending && offsets.iter().all(|at| text.is_char_boundary(*at as usize));
        cut_well.then_some(Self { offsets, bytes })
    }

    /// Removes all strings and keeps their memory for others.
    pub fn clear(&mut self) {
        self.offsets.truncate(1);
        self.bytes.clear();
    }

    /// Number of strings.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The string at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> &str {
        let range = self.offsets[index] as usize..self.offsets[index + 1] as usize;
        std::str::from_utf8(&self.bytes[range]).expect("BUG: a string column holds UTF-8")
    }

    /// The bytes of the string at `index`, without the cost of proving them UTF-8 again.
    #[must_use]
    pub fn get_bytes(&self, index: usize) -> &[u8] {
        &self.bytes[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }

    /// Adds one string.
    ///
    /// # Panics
    /// If the column would hold 4 GiB or more: callers bound their batches far below.
    pub fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        let end = u32::try_from(self.bytes.len()).expect("BUG: a string column passed 4 GiB");
        self.offsets.push(end);
    }

    /// Adds the strings `range` of `other`.
    ///
    /// # Panics
    /// As [`Strings::push`].
    pub fn extend_from(&mut self, other: &Self, range: std::ops::Range<usize>) {
        let first = other.offsets[range.start];
        let base = u32::try_from(self.bytes.len()).expect("BUG: a string column passed 4 GiB");
        let end = other.offsets[range.end];
        self.bytes.extend_from_slice(&other.bytes[first as usize..end as usize]);
        assert!(u32::try_from(self.bytes.len()).is_ok(), "BUG: a string column passed 4 GiB");
        self.offsets
            .extend(other.offsets[range.start + 1..=range.end].iter().map(|at| at - first + base));
    }

    /// The strings at some indexes, in that order.
    ///
    /// # Panics
    /// As [`Strings::push`].
    #[must_use]
    pub fn take(&self, indexes: impl Iterator<Item = usize>) -> Self {
        let mut taken = Self::new();
        taken.offsets.reserve(indexes.size_hint().0);
        for index in indexes {
            taken.bytes.extend_from_slice(self.get_bytes(index));
            let end = u32::try_from(taken.bytes.len());
            taken.offsets.push(end.expect("BUG: a string column passed 4 GiB"));
        }
        taken
    }

    /// Puts empty strings among those from `at` on: one for each `false`; the strings that are there are the
    /// `true` ones.
    ///
    /// # Panics
    /// If there are not as many strings as `true` ones.
    pub fn spread(&mut self, at: usize, present: impl Iterator<Item = bool>) {
        let ends = self.offsets.split_off(at + 1);
        let (mut end, mut ends) = (self.offsets[at], ends.into_iter());
        self.offsets.extend(present.map(|is_there| {
            if is_there {
                end = ends.next().expect("BUG: fewer strings than rows that have one");
            }
            end
        }));
        assert!(ends.next().is_none(), "BUG: more strings than rows that have one");
    }

    /// The boundaries: one more than there are strings.
    #[must_use]
    pub fn offsets(&self) -> &[u32] {
        &self.offsets
    }

    /// All text, one string after another.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + '_ {
        (0..self.len()).map(|at| self.get(at))
    }
}

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
        texts.spread(1, [false, true, false, false, true, false].into_iter());
        let spread: Vec<&str> = texts.iter().collect();
        assert_eq!(spread, ["before", "", "x", "", "", "yz", ""]);
    }
}
