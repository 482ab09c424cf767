//! Values of slots where very many differ: in parts by their hash, each with a table of its own.
//!
//! One table of millions is out of the processor's caches, and each lookup waits for memory, as does everything in it
//! whenever it grows. So what is added to a part waits until it is much beside what the part has, and is then taken while that is
//! near: radix partitioning, as hash joins and aggregations of columnar stores do it (Manegold, Boncz, Kersten:
//! Optimizing Main-Memory Join on Modern Hardware, TKDE 2002).
//!
//! Invariants
//! - Values with one slot and identity are in one part, and once in its entries.
//! - All spreads have the same hash function: what a part of one has is in the same part of another.

use std::hash::BuildHasher;
use std::sync::LazyLock;

use hashbrown::hash_table::Entry as Place;
use hashbrown::{DefaultHashBuilder, HashTable};
use model::FieldType;

use super::{Entry, identity};

/// Parts: of 2^20 values, each has 200 KB.
const PARTS: usize = 256;
/// So many wait for a part at least,
const WAITING_MIN: usize = 128;
/// and this part of what it has.
const WAITING_PART: usize = 2;

/// By chance, so that nobody can choose values that collide.
static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// Values with how often they occur.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    input: FieldType,
    parts: Vec<Part>,
    /// Bytes of memory that parts take, about: as of when they were looked at last.
    memory_bytes: usize,
}

#[derive(Clone, Debug, Default)]
struct Part {
    entries: Vec<Entry>,
    /// Hashes and places in `entries`.
    places: HashTable<(u32, u32)>,
    /// What was added since.
    waiting: Vec<Entry>,
    /// Of the memory that is known to be taken.
    bytes_known: usize,
}

impl Spread {
    /// With these values.
    pub(super) fn of(input: FieldType, entries: Vec<Entry>) -> Self {
        let part = |_| Part::with_room(2 * entries.len() / PARTS);
        let mut spread = Self { input, parts: (0..PARTS).map(part).collect(), memory_bytes: 0 };
        entries.into_iter().for_each(|entry| spread.add(entry));
        spread
    }

    /// Adds occurrences of a value.
    #[inline]
    pub(super) fn add(&mut self, entry: Entry) {
        // Of a hash parts go by the upper half, their tables by the lower.
        let hash = HASHER.hash_one((entry.slot, identity(self.input, entry.bits)));
        let part = &mut self.parts[(hash >> u32::BITS) as usize % PARTS];
        part.waiting.push(entry);
        if part.waiting.len() >= WAITING_MIN.max(part.entries.len() / WAITING_PART) {
            part.settle(self.input);
            self.memory_bytes += part.grown_bytes();
        }
    }

    /// Adds all values of another, whose slots are the same.
    pub(super) fn merge(&mut self, other: Self) {
        for (mine, mut theirs) in self.parts.iter_mut().zip(other.parts) {
            mine.settle(self.input);
            mine.waiting = std::mem::take(&mut theirs.waiting);
            mine.settle(self.input);
            mine.waiting = theirs.entries;
            mine.settle(self.input);
            mine.waiting = Vec::new();
            self.memory_bytes += mine.grown_bytes();
        }
    }

    /// All values, each once, in parts.
    pub(super) fn into_entries(mut self) -> impl Iterator<Item = Vec<Entry>> {
        self.parts.iter_mut().for_each(|part| part.settle(self.input));
        self.parts.into_iter().map(|part| part.entries)
    }

    /// Bytes of memory taken.
    pub(super) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }
}

impl Part {
    fn with_room(entries: usize) -> Self {
        let places = HashTable::with_capacity(entries);
        Self { entries: Vec::with_capacity(entries), places, ..Self::default() }
    }

    /// Takes what waits.
    fn settle(&mut self, input: FieldType) {
        let Self { entries, places, waiting, .. } = self;
        for new in waiting.drain(..) {
            let wanted = identity(input, new.bits);
            let hash = HASHER.hash_one((new.slot, wanted)) as u32;
            let is_it = |(its_hash, at): &(u32, u32)| {
                *its_hash == hash && {
                    let entry = &entries[*at as usize];
                    entry.slot == new.slot && identity(input, entry.bits) == wanted
                }
            };
            match places.entry(whole(hash), is_it, |(hash, _)| whole(*hash)) {
                Place::Occupied(place) => entries[place.get().1 as usize].add(new.bits, new.found),
                Place::Vacant(place) => {
                    place.insert((hash, entries.len() as u32));
                    entries.push(new);
                }
            }
        }
    }

    /// Bytes of memory that it takes more than when it was asked before.
    fn grown_bytes(&mut self) -> usize {
        let bytes = (self.entries.capacity() + self.waiting.capacity()) * size_of::<Entry>()
            + self.places.allocation_size();
        let grown = bytes.saturating_sub(self.bytes_known);
        self.bytes_known += grown;
        grown
    }
}

/// What a table is given, which looks at both ends of a hash.
fn whole(hash: u32) -> u64 {
    u64::from(hash) << u32::BITS | u64::from(hash)
}
