//! Numbers for texts, in the order that they are met: a tally tells values apart by 64 bits.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use model::Strings;

/// Numbers for texts.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts {
    texts: Strings,
    places: HashTable<u32>,
}

impl Texts {
    /// The number of a text: a new one, if it has none.
    pub(super) fn number(&mut self, text: &[u8], hasher: &DefaultHashBuilder) -> u32 {
        let texts = &mut self.texts;
        let hash = hasher.hash_one(text);
        if let Some(at) = self.places.find(hash, |at| texts.get_bytes(*at as usize) == text) {
            return *at;
        }
        let at = texts.len() as u32;
        texts.push(std::str::from_utf8(text).expect("BUG: a column of texts holds UTF-8"));
        self.places.insert_unique(hash, at, |at| hasher.hash_one(texts.get_bytes(*at as usize)));
        at
    }

    pub(super) fn text(&self, number: u64) -> &str {
        self.texts.get(number as usize)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.texts.memory_bytes() + self.places.allocation_size()
    }
}
