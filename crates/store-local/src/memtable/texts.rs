//! Short texts that were stored a moment ago: a state that thousands of rows have is stored once.
//!
//! Rows whose texts share a slot are equal there, which whoever reads them can make use of. It is only a cache: a text
//! that others have pushed out is stored again.

use model::{string_slot, string_slot_parts};

use super::arena::Arena;

/// Texts remembered. A power of two.
const REMEMBERED: usize = 64;

/// Longer texts are mostly told apart by something.
const TEXT_BYTES_MAX: usize = 32;

/// Slots of texts, by hashes of these; none before the first text comes.
#[derive(Debug, Default)]
pub(super) struct RecentTexts(Option<Box<[u64; REMEMBERED]>>);

impl RecentTexts {
    /// The slot of a text in `arena`, to which it is added if it is not remembered.
    #[inline]
    pub(super) fn slot(&mut self, text: &[u8], arena: &mut Arena<u8>) -> u64 {
        if text.is_empty() || text.len() > TEXT_BYTES_MAX {
            return string_slot(arena.copy(text), text.len() as u32);
        }
        // A slot of length 0 stands for nothing yet.
        let remembered = self.0.get_or_insert_with(|| Box::new([0; REMEMBERED]));
        let known = &mut remembered[place(text)];
        let (start, len) = string_slot_parts(*known);
        if len as usize != text.len() || arena.items(start, text.len()) != text {
            *known = string_slot(arena.copy(text), text.len() as u32);
        }
        *known
    }

    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |slots| size_of_val(&**slots))
    }
}

/// Where a text is remembered: by its length, its first eight bytes and its last eight.
#[inline]
fn place(text: &[u8]) -> usize {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let (first, last) = match (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
        _ => (word(text), 0),
    };
    let mixed =
        (first ^ last.rotate_left(29) ^ text.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - REMEMBERED.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_slot_has_the_text_it_was_given_for(texts in prop::collection::vec("[ab]{0,34}|[ab]{0,2}", 0..200)) {
            let (mut arena, mut recent) = (Arena::<u8>::default(), RecentTexts::default());
            let slots: Vec<u64> =
                texts.iter().map(|text| recent.slot(text.as_bytes(), &mut arena)).collect();
            for (text, slot) in texts.iter().zip(slots) {
                let (start, len) = string_slot_parts(slot);
                prop_assert_eq!(arena.items(start, len as usize), text.as_bytes());
            }
        }
    }

    #[test]
    fn a_text_that_comes_again_is_stored_once() {
        let (mut arena, mut recent) = (Arena::<u8>::default(), RecentTexts::default());
        let first = recent.slot(b"running", &mut arena);
        for _ in 0..1000 {
            assert_eq!(recent.slot(b"running", &mut arena), first);
        }
        assert!(arena.bytes() < 100);
    }
}
