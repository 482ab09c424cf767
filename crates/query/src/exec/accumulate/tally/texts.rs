//! Numbers for texts, in the order that they are met: a tally tells values apart by 64 bits.
//!
//! Of very many texts a look at the table, one at where a text is and one at the text all wait for memory. So several texts
//! are looked for together: each step is asked for, for all of them, before the first of them takes it.
//!
//! Invariants
//! - A slot of the table is 0, or the lower half of a text's hash and, below it, its number and one.
//! - A text is in the slot that its hash says or behind it, with no free one between, the first slot being behind the last.
//! - At most half of the slots are taken.

use std::hash::BuildHasher;

use hashbrown::DefaultHashBuilder;
use model::Strings;

/// Texts that are looked for together: as many as a processor can wait for, and some.
pub(super) const TOGETHER: usize = 16;
/// Slots of the first table.
const SLOTS_MIN: usize = 64;

/// Numbers for texts.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts {
    texts: Strings,
    slots: Vec<u64>,
}

impl Texts {
    /// Gives the numbers of some texts, in order, a few at a time: new ones to those that have none.
    pub(super) fn numbers<'t>(
        &mut self,
        mut texts: impl Iterator<Item = &'t [u8]>,
        hasher: &DefaultHashBuilder,
        mut take: impl FnMut(&[u32]),
    ) {
        let mut together: [&[u8]; TOGETHER] = [&[]; TOGETHER];
        let mut numbers = [0; TOGETHER];
        loop {
            let mut n = 0;
            for (place, text) in together.iter_mut().zip(texts.by_ref().take(TOGETHER)) {
                *place = text;
                n += 1;
            }
            self.find(&together[..n], hasher, &mut numbers[..n]);
            take(&numbers[..n]);
            if n < TOGETHER {
                return;
            }
        }
    }

    /// The same of one text.
    pub(super) fn number(&mut self, text: &[u8], hasher: &DefaultHashBuilder) -> u32 {
        let mut number = [0];
        self.find(&[text], hasher, &mut number);
        number[0]
    }

    /// Finds the numbers of at most so many texts as are looked for together.
    fn find(&mut self, texts: &[&[u8]], hasher: &DefaultHashBuilder, numbers: &mut [u32]) {
        self.make_room(texts.len());
        let mut hashes = [0u32; TOGETHER];
        for (hash, text) in hashes.iter_mut().zip(texts) {
            *hash = hasher.hash_one(text) as u32;
            codec::prefetch(&self.slots[self.home(*hash)]);
        }
        if texts.len() > 1 {
            // Those that the hashes are likely to be of.
            let mut places = [None; TOGETHER];
            for (place, hash) in places.iter_mut().zip(&hashes[..texts.len()]) {
                let (_, number) = self.look(*hash, self.home(*hash));
                *place = number.and_then(|number| self.texts.places().get(number as usize));
                place.iter().for_each(|place| codec::prefetch(*place));
            }
            for place in places.into_iter().flatten() {
                let text = self.texts.bytes_at(*place);
                text.first().into_iter().chain(text.last()).for_each(codec::prefetch);
            }
        }
        for ((number, text), hash) in numbers.iter_mut().zip(texts).zip(hashes) {
            *number = self.find_one(text, hash);
        }
    }

    fn find_one(&mut self, text: &[u8], hash: u32) -> u32 {
        let mut from = self.home(hash);
        loop {
            let (at, number) = self.look(hash, from);
            let Some(number) = number else {
                let number = self.texts.len() as u32;
                let text = std::str::from_utf8(text).expect("BUG: a column of texts holds UTF-8");
                self.texts.push(text);
                self.slots[at] = u64::from(hash) << u32::BITS | u64::from(number + 1);
                return number;
            };
            if self.texts.get_bytes(number as usize) == text {
                return number;
            }
            from = self.behind(at);
        }
    }

    /// The first slot from one on that has a hash or is free, and the number in it.
    #[inline]
    fn look(&self, hash: u32, from: usize) -> (usize, Option<u32>) {
        let mut at = from;
        loop {
            let slot = self.slots[at];
            if slot == 0 || (slot >> u32::BITS) as u32 == hash {
                return (at, (slot as u32).checked_sub(1));
            }
            at = self.behind(at);
        }
    }

    /// The slot that a hash says.
    fn home(&self, hash: u32) -> usize {
        // Slots are a power of two.
        hash as usize & (self.slots.len() - 1)
    }

    fn behind(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }

    /// Makes the table larger, if it has not the slots for so many texts more.
    fn make_room(&mut self, more: usize) {
        let wanted = self.texts.len() + more;
        if wanted * 2 <= self.slots.len() {
            return;
        }
        let slots = (wanted * 3).next_power_of_two().max(SLOTS_MIN);
        let before = std::mem::replace(&mut self.slots, vec![0; slots]);
        for slot in before.into_iter().filter(|slot| *slot != 0) {
            let mut at = self.home((slot >> u32::BITS) as u32);
            while self.slots[at] != 0 {
                at = self.behind(at);
            }
            self.slots[at] = slot;
        }
    }

    pub(super) fn text(&self, number: u64) -> &str {
        self.texts.get(number as usize)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.texts.memory_bytes() + self.slots.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_keep_their_numbers_while_the_table_grows() {
        let all: Vec<String> = (0..5000).map(|at| format!("text {}", at * at)).collect();
        // All texts several times, more than once within those that are looked for together.
        let rows: Vec<usize> = (0..20_000)
            .map(|row| if row % 3 == 0 { row / 4 } else { row * 7 % (row / 4 + 1) })
            .collect();
        let (mut texts, hasher) = (Texts::default(), DefaultHashBuilder::default());
        let mut numbers = Vec::new();
        let asked = rows.iter().map(|row| all[*row].as_bytes());
        texts.numbers(asked, &hasher, |some| numbers.extend_from_slice(some));
        assert_eq!(numbers.len(), rows.len());
        let mut highest = 0;
        for (number, row) in numbers.iter().zip(&rows) {
            assert_eq!(texts.text(u64::from(*number)), all[*row]);
            assert!(*number <= highest, "numbers are given in order");
            highest = highest.max(number + 1);
            assert_eq!(texts.number(all[*row].as_bytes(), &hasher), *number);
        }
        assert_eq!(texts.texts.len(), highest as usize);
    }
}
