//! One shard of the cache: a table, two queues and a memory of what was evicted.
//!
//! New entries enter a short queue and leave it again unless they are asked for repeatedly; those
//! that are, and those that come back soon after they left, live in a long queue that gives each
//! another round per use. A scan thus passes through the short queue and leaves the long one alone.
//!
//! Invariants
//! - Every entry is in the table and in exactly one queue.
//! - `bytes_used` is the sum of the entries' costs and at most `capacity_bytes`.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashTable;

use super::{Page, PageCacheStats};

/// What an entry costs besides its bytes: its slot, its places in table and queue, its allocations.
pub(super) const ENTRY_OVERHEAD_BYTES: usize = 160;

/// Uses that are remembered of an entry.
const USES_MAX: u8 = 3;
/// Uses in the short queue that take an entry to the long one. A page is often read twice in a row
/// by one scan, which says nothing about the next.
const USES_TO_STAY: u8 = 2;
/// The short queue's part of the capacity.
const SHORT_PART: usize = 10;
/// Evictions that are remembered at least; otherwise as many as there are slots.
const GHOSTS_MIN: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    file_id: u64,
    offset: u64,
    kind: u32,
}

impl Key {
    pub(super) fn page(file_id: u64, offset: u64) -> Self {
        Self { file_id, offset, kind: 0 }
    }

    pub(super) fn object(file_id: u64, offset: u64, kind: u16) -> Self {
        Self { file_id, offset, kind: 1 + u32::from(kind) }
    }

    /// Two rounds of a 64 by 64 bit product, its halves folded.
    #[inline]
    pub(super) fn hash(&self) -> u64 {
        let fold = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            (product as u64) ^ (product >> 64) as u64
        };
        let file = self.file_id ^ (u64::from(self.kind) << 40) ^ 0x9e37_79b9_7f4a_7c15;
        let mixed = fold(self.offset ^ 0xd1b5_4a32_d192_ed03, file | 1);
        fold(mixed ^ self.file_id, 0x8cb9_2ba7_2f3d_8dd7)
    }
}

/// What is kept.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Page(Arc<Page>),
    Object(Arc<dyn Any + Send + Sync>),
}

impl Value {
    pub(super) fn into_object<T: Any + Send + Sync>(self) -> Arc<T> {
        let object = match self {
            Self::Object(object) => object.downcast().ok(),
            Self::Page(_) => None,
        };
        object.expect("BUG: two types share a kind of cached object")
    }
}

#[derive(Debug)]
struct Slot {
    key: Key,
    /// `None` in a free slot.
    value: Option<Value>,
    cost: usize,
    uses: u8,
    /// In the short queue, not the long one.
    short: bool,
}

#[derive(Debug)]
pub(super) struct Shard {
    table: HashTable<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    short: VecDeque<u32>,
    long: VecDeque<u32>,
    short_bytes: usize,
    bytes_used: usize,
    capacity_bytes: usize,
    /// Hashes of evicted entries, each where its own bits say; a later one takes the place.
    ghosts: Vec<u64>,
    hits: u64,
    misses: u64,
    evictions: u64,
}

impl Shard {
    pub(super) fn new(capacity_bytes: usize) -> Self {
        Self {
            table: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            short: VecDeque::new(),
            long: VecDeque::new(),
            short_bytes: 0,
            bytes_used: 0,
            capacity_bytes,
            ghosts: vec![0; GHOSTS_MIN],
            hits: 0,
            misses: 0,
            evictions: 0,
        }
    }

    fn find(&self, hash: u64, key: &Key) -> Option<u32> {
        self.table.find(hash, |&slot| self.slots[slot as usize].key == *key).copied()
    }

    /// The entry, counted as used.
    #[inline]
    pub(super) fn get(&mut self, hash: u64, key: &Key) -> Option<Value> {
        let Some(slot) = self.find(hash, key) else {
            self.misses += 1;
            return None;
        };
        self.hits += 1;
        let slot = &mut self.slots[slot as usize];
        slot.uses = USES_MAX.min(slot.uses + 1);
        slot.value.clone()
    }

    /// The entry; its standing does not change.
    pub(super) fn peek(&mut self, hash: u64, key: &Key) -> Option<Value> {
        let found = self.find(hash, key);
        *(if found.is_some() { &mut self.hits } else { &mut self.misses }) += 1;
        self.slots[found? as usize].value.clone()
    }

    /// Whether there is such an entry; nothing counts.
    pub(super) fn has(&self, hash: u64, key: &Key) -> bool {
        self.find(hash, key).is_some()
    }

    /// Keeps an entry. Returns the one that is there already, if it is, and what had to go, which
    /// the caller drops without the lock.
    pub(super) fn insert(
        &mut self,
        hash: u64,
        key: Key,
        value: Value,
        bytes: usize,
    ) -> (Option<Value>, Vec<Value>) {
        if let Some(slot) = self.find(hash, &key) {
            return (self.slots[slot as usize].value.clone(), Vec::new());
        }
        let cost = bytes.saturating_add(ENTRY_OVERHEAD_BYTES);
        if cost > self.capacity_bytes {
            return (None, Vec::new());
        }
        let mut evicted = Vec::new();
        while self.bytes_used > self.capacity_bytes - cost {
            evicted.extend(self.evict());
        }
        let ghost = self.ghost(hash);
        let short = self.ghosts[ghost] != hash;
        if !short {
            self.ghosts[ghost] = 0;
        }
        let slot = Slot { key, value: Some(value), cost, uses: 0, short };
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                if self.slots.len() > self.ghosts.len() {
                    self.grow_ghosts();
                }
                u32::try_from(self.slots.len() - 1).expect("BUG: a shard of 2^32 entries")
            }
        };
        let slots = &self.slots;
        self.table.insert_unique(hash, index, |&slot| slots[slot as usize].key.hash());
        self.bytes_used += cost;
        if short {
            self.short_bytes += cost;
            self.short.push_back(index);
        } else {
            self.long.push_back(index);
        }
        (None, evicted)
    }

    /// Counts `bytes` more of the object at `address`, if it is the entry's. Returns what had to go, which
    /// may be the entry itself.
    pub(super) fn grow(
        &mut self,
        hash: u64,
        key: &Key,
        address: *const (),
        bytes: usize,
    ) -> Vec<Value> {
        let Some(index) = self.find(hash, key) else { return Vec::new() };
        let slot = &mut self.slots[index as usize];
        let held = match &slot.value {
            Some(Value::Object(object)) => Arc::as_ptr(object).cast::<()>(),
            _ => std::ptr::null(),
        };
        if held != address {
            return Vec::new();
        }
        slot.cost += bytes;
        self.bytes_used += bytes;
        if slot.short {
            self.short_bytes += bytes;
        }
        let mut evicted = Vec::new();
        while self.bytes_used > self.capacity_bytes {
            evicted.extend(self.evict());
        }
        evicted
    }

    fn ghost(&self, hash: u64) -> usize {
        hash as usize & (self.ghosts.len() - 1)
    }

    fn grow_ghosts(&mut self) {
        let double = self.ghosts.len() * 2;
        for hash in std::mem::replace(&mut self.ghosts, vec![0; double]) {
            let ghost = self.ghost(hash);
            self.ghosts[ghost] = hash;
        }
    }

    /// Moves one entry on: out, or to the end of the long queue.
    fn evict(&mut self) -> Option<Value> {
        let short_is_due =
            self.short_bytes > self.capacity_bytes / SHORT_PART || self.long.is_empty();
        let queue = if short_is_due { &mut self.short } else { &mut self.long };
        let index = queue.pop_front().expect("BUG: bytes in use without an entry");
        let slot = &mut self.slots[index as usize];
        if slot.short && slot.uses >= USES_TO_STAY {
            slot.short = false;
            slot.uses = 0;
            self.short_bytes -= slot.cost;
            self.long.push_back(index);
            return None;
        }
        if !slot.short && slot.uses > 0 {
            slot.uses -= 1;
            self.long.push_back(index);
            return None;
        }
        if slot.short {
            let hash = slot.key.hash();
            let ghost = self.ghost(hash);
            self.ghosts[ghost] = hash;
        }
        self.evictions += 1;
        self.free_slot(index)
    }

    /// Frees a slot that is in no queue any more.
    fn free_slot(&mut self, index: u32) -> Option<Value> {
        let slot = &mut self.slots[index as usize];
        let (value, cost, short, hash) =
            (slot.value.take(), slot.cost, slot.short, slot.key.hash());
        self.bytes_used -= cost;
        if short {
            self.short_bytes -= cost;
        }
        match self.table.find_entry(hash, |&other| other == index) {
            Ok(entry) => {
                entry.remove();
            }
            Err(_) => panic!("BUG: an entry of a queue is not in the table"),
        }
        self.free.push(index);
        value
    }

    /// Drops the entries of a file; the caller drops what is returned without the lock.
    pub(super) fn remove_file(&mut self, file_id: u64) -> Vec<Value> {
        let of_file = |slot: &Slot| slot.value.is_some() && slot.key.file_id == file_id;
        let doomed: Vec<u32> = (0u32..)
            .zip(&self.slots)
            .filter_map(|(index, slot)| of_file(slot).then_some(index))
            .collect();
        if doomed.is_empty() {
            return Vec::new();
        }
        let slots = &self.slots;
        self.short.retain(|&index| !of_file(&slots[index as usize]));
        self.long.retain(|&index| !of_file(&slots[index as usize]));
        doomed.into_iter().filter_map(|index| self.free_slot(index)).collect()
    }

    pub(super) fn add_to(&self, stats: &mut PageCacheStats) {
        stats.hits += self.hits;
        stats.misses += self.misses;
        stats.evictions += self.evictions;
        stats.entries += self.table.len() as u64;
        stats.bytes_used += self.bytes_used as u64;
        stats.capacity_bytes += self.capacity_bytes as u64;
    }

    #[cfg(test)]
    pub(super) fn check(&self) {
        let live = self.slots.iter().filter(|slot| slot.value.is_some());
        let (mut bytes, mut short_bytes, mut entries) = (0, 0, 0);
        for slot in live {
            bytes += slot.cost;
            short_bytes += if slot.short { slot.cost } else { 0 };
            entries += 1;
            assert!(self.find(slot.key.hash(), &slot.key).is_some());
        }
        assert_eq!((bytes, short_bytes), (self.bytes_used, self.short_bytes));
        assert!(bytes <= self.capacity_bytes);
        assert_eq!(entries, self.table.len());
        assert_eq!(entries, self.short.len() + self.long.len());
        assert_eq!(self.slots.len(), entries + self.free.len());
        assert!(self.short.iter().all(|&i| self.slots[i as usize].short));
        assert!(self.long.iter().all(|&i| !self.slots[i as usize].short));
    }
}
