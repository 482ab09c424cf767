//! Copies of short texts, one behind another: 32 bytes at once, however few are wanted.

use crate::strings::TextPlace;

/// Bytes that are copied at once.
const AT_ONCE: usize = 32;

/// A text that may be read up to [`AT_ONCE`] bytes behind its end.
pub(super) struct Padded {
    /// With that many zeros at the end.
    bytes: Vec<u8>,
}

impl Padded {
    pub(super) fn new(mut text: Vec<u8>) -> Self {
        text.resize(text.len() + AT_ONCE, 0);
        Self { bytes: text }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() - AT_ONCE
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len()]
    }

    pub(super) fn get(&self, (start, len): TextPlace) -> &[u8] {
        &self.bytes[start as usize..start as usize + len as usize]
    }
}

/// Bytes with room for more, which count once that is [finished](Room::finish).
pub(super) struct Room<'a> {
    bytes: &'a mut Vec<u8>,
    /// Where these are and how many they may become, not to be looked up again with each piece.
    start: *mut u8,
    capacity: usize,
    /// How many are written.
    len: usize,
}

impl<'a> Room<'a> {
    /// Makes room for `more` bytes.
    pub(super) fn new(bytes: &'a mut Vec<u8>, more: usize) -> Self {
        bytes.reserve(more + AT_ONCE);
        Self { start: bytes.as_mut_ptr(), capacity: bytes.capacity(), len: bytes.len(), bytes }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[allow(unsafe_code)]
    pub(super) fn finish(self) {
        // SAFETY: so many bytes were there or written since, within the capacity.
        unsafe { self.bytes.set_len(self.len) }
    }

    /// Appends a piece of a text.
    ///
    /// # Panics
    /// If it is not within the text, or there is no room.
    #[inline]
    #[allow(unsafe_code)]
    pub(super) fn push(&mut self, text: &Padded, (start, len): TextPlace) {
        let (start, len, at) = (start as usize, len as usize, self.len);
        assert!(start + len <= text.len(), "BUG: a place outside of its text");
        assert!(at + len + AT_ONCE <= self.capacity, "BUG: no room was made");
        // SAFETY: `text` has `AT_ONCE` bytes behind its end, so that as many can be read from `start` and, if `len` is more, `len`
        // of them; behind `at` there is room for `len + AT_ONCE`. The two do not overlap: one is borrowed, the other
        // borrowed mutably. The first `len` bytes behind `at` are written before they count.
        unsafe {
            let from = text.bytes.as_ptr().add(start);
            let to = self.start.add(at);
            to.cast::<[u8; AT_ONCE]>()
                .write_unaligned(from.cast::<[u8; AT_ONCE]>().read_unaligned());
            if len > AT_ONCE {
                let (from, to) = (from.add(AT_ONCE), to.add(AT_ONCE));
                std::ptr::copy_nonoverlapping(from, to, len - AT_ONCE);
            }
        }
        self.len += len;
    }

    /// Appends the first `len` of some bytes.
    ///
    /// # Panics
    /// If there are not so many, or there is no room.
    #[inline]
    #[allow(unsafe_code)]
    pub(super) fn push_bytes<const N: usize>(&mut self, bytes: [u8; N], len: usize) {
        const { assert!(N <= AT_ONCE) };
        assert!(len <= N, "BUG: more bytes than there are");
        assert!(self.len + len + AT_ONCE <= self.capacity, "BUG: no room was made");
        // SAFETY: behind `len` there is room for `AT_ONCE` bytes, which are `N` and more; the first ones are written before they count.
        unsafe { self.start.add(self.len).cast::<[u8; N]>().write_unaligned(bytes) }
        self.len += len;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_are_copied_one_behind_another(
            text in prop::collection::vec(any::<u8>(), 0..60),
            places in prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 0..20),
        ) {
            let (mut out, mut expected) = (b"before".to_vec(), b"before".to_vec());
            let place = |(a, b): &(prop::sample::Index, prop::sample::Index)| {
                let (a, b) = (a.index(text.len() + 1), b.index(text.len() + 1));
                (a.min(b) as u32, a.abs_diff(b) as u32)
            };
            let places: Vec<TextPlace> = places.iter().map(place).collect();
            let total = places.iter().map(|(_, len)| *len as usize + *len as usize % 4).sum();
            let padded = Padded::new(text.clone());
            prop_assert_eq!(padded.len(), text.len());
            let mut room = Room::new(&mut out, total);
            for place in places {
                room.push(&padded, place);
                let digits = [b'1', b'2', b'3'];
                room.push_bytes(digits, place.1 as usize % 4);
                expected.extend_from_slice(padded.get(place));
                expected.extend_from_slice(&digits[..place.1 as usize % 4]);
                            }
            prop_assert_eq!(room.len(), expected.len());
            room.finish();
            prop_assert_eq!(out, expected);
        }
    }

    #[test]
    #[should_panic(expected = "BUG: a place outside of its text")]
    fn places_outside_are_refused() {
        Room::new(&mut Vec::new(), 100).push(&Padded::new(vec![1, 2]), (1, 2));
    }

    #[test]
    #[should_panic(expected = "BUG: no room was made")]
    fn more_than_there_is_room_for_is_refused() {
        let (mut out, text) = (Vec::new(), Padded::new(vec![0; 100]));
        let mut room = Room::new(&mut out, 10);
        (0..5).for_each(|_| room.push(&text, (0, 100)));
    }
}
