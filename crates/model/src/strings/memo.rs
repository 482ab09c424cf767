//! What was found for some strings, by their places, while they come one by one.

use super::TextPlace;

/// Places a [`Memo`] remembers. A power of two.
const REMEMBERED: usize = 64;

/// What was found for strings of one column by their places: of those met before, the last ones. Each string is asked
/// about once as long as there are not many.
#[derive(Debug)]
pub struct Memo<T> {
    last: Option<(TextPlace, T)>,
    found: [Option<(TextPlace, T)>; REMEMBERED],
}

impl<T: Copy> Default for Memo<T> {
    fn default() -> Self {
        Self { last: None, found: [None; REMEMBERED] }
    }
}

impl<T: Copy> Memo<T> {
    /// What `find` says of the string at `place`, or said before. All places must be of one column.
    #[inline]
    pub fn get(&mut self, place: TextPlace, find: impl FnOnce() -> T) -> T {
        match self.last {
            Some((last, found)) if last == place => return found,
            _ => {}
        }
        // Fibonacci hashing of the first byte's place: that of two strings is one only if one is empty.
        let entry = &mut self.found[(place.0.wrapping_mul(0x9e37_79b1) >> 26) as usize];
        let found = match entry {
            Some((known, found)) if *known == place => *found,
            _ => {
                let found = find();
                *entry = Some((place, found));
                found
            }
        };
        self.last = Some((place, found));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memo_asks_once_for_what_it_remembers() {
        let mut asked = Vec::new();
        let mut memo = Memo::default();
        for place in [(0, 1), (0, 1), (7, 2), (0, 1), (7, 3), (7, 2)] {
            let found = memo.get(place, || {
                asked.push(place);
                place.0 + place.1
            });
            assert_eq!(found, place.0 + place.1);
        }
        assert_eq!(asked, [(0, 1), (7, 2), (7, 3), (7, 2)]);
    }
}
