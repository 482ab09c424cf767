//! From the hash of a raw series key to the series, for series that were written lately.
//!
//! A bounded memory of the series index: what is not here is looked up there (see `write::define`).
//! Two spellings of one key (tags in another order) are two entries.

use hashbrown::HashTable;
use model::{DatabaseId, SeriesId};
use parking_lot::RwLock;

/// Locks by hash; a batch takes each once.
const SHARDS: usize = 16;

/// Bytes of memory an entry takes, room for growth included.
pub(crate) const ENTRY_BYTES: usize = size_of::<Entry>() * 8 / 7 + 1;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// High and low half: two words align better than one of sixteen bytes.
    hash: (u64, u64),
    series: SeriesId,
}

/// The series of raw keys.
#[derive(Debug)]
pub(crate) struct Resolver {
    shards: Vec<RwLock<HashTable<Entry>>>,
    entries_per_shard_max: usize,
}

/// A raw key as the resolver knows it: its hash, told apart by database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyHash(u128);

impl KeyHash {
    /// The hash of a raw key of `database`.
    #[inline]
    pub(crate) fn new(database: DatabaseId, raw_key_hash: u128) -> Self {
        // An odd factor makes different databases move a hash by different amounts.
        let apart = u128::from(database.0).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        Self(raw_key_hash.wrapping_add(apart))
    }

    #[inline]
    fn shard(self) -> usize {
        (self.0 >> 124) as usize & (SHARDS - 1)
    }

    #[inline]
    fn halves(self) -> (u64, u64) {
        ((self.0 >> 64) as u64, self.0 as u64)
    }

    #[inline]
    fn table_hash(self) -> u64 {
        self.0 as u64
    }
}

impl Resolver {
    /// An empty resolver that keeps at most about `entries_max` series.
    pub(crate) fn new(entries_max: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            entries_per_shard_max: (entries_max / SHARDS).max(64),
        }
    }

    /// Looks up many keys: `found[i]` becomes the series of `keys[i]`, or `None`.
    pub(crate) fn find_all(&self, keys: &[KeyHash], found: &mut Vec<Option<SeriesId>>) {
        found.clear();
        found.resize(keys.len(), None);
        if keys.len() == 1 {
            found[0] = find(&self.shards[keys[0].shard()].read(), keys[0]);
            return;
        }
        // Sorted by shard, each lock is taken once and each table stays in cache.
        let mut counts = [0u32; SHARDS + 1];
        for key in keys {
            counts[key.shard() + 1] += 1;
        }
        for shard in 0..SHARDS {
            counts[shard + 1] += counts[shard];
        }
        let mut order = vec![0u32; keys.len()];
        let mut next = counts;
        for (at, key) in keys.iter().enumerate() {
            let slot = &mut next[key.shard()];
            order[*slot as usize] = at as u32;
            *slot += 1;
        }
        for shard in 0..SHARDS {
            let range = counts[shard] as usize..counts[shard + 1] as usize;
            if range.is_empty() {
                continue;
            }
            let table = self.shards[shard].read();
            for at in &order[range] {
                found[*at as usize] = find(&table, keys[*at as usize]);
            }
        }
    }

    /// Remembers a key.
    pub(crate) fn insert(&self, key: KeyHash, series: SeriesId) {
        let mut table = self.shards[key.shard()].write();
        if table.len() >= self.entries_per_shard_max {
            // Starting over costs one index lookup a live series, spread over the next batches;
            // keeping order of use would cost every row.
            table.clear();
        }
        let entry = Entry { hash: key.halves(), series };
        let rehash = |e: &Entry| e.hash.1;
        table
            .entry(key.table_hash(), |e| e.hash == key.halves(), rehash)
            .and_modify(|e| *e = entry)
            .or_insert(entry);
    }

    /// Forgets everything: some series ceased to exist.
    pub(crate) fn clear(&self) {
        for shard in &self.shards {
            shard.write().clear();
        }
    }

    /// Series remembered.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|s| s.read().len()).sum()
    }
}

#[inline]
fn find(table: &HashTable<Entry>, key: KeyHash) -> Option<SeriesId> {
    table.find(key.table_hash(), |e| e.hash == key.halves()).map(|e| e.series)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(database: u32, n: u64) -> KeyHash {
        KeyHash::new(DatabaseId(database), model::key_hash(&n.to_le_bytes()))
    }

    #[test]
    fn finds_what_was_inserted_per_database() {
        let resolver = Resolver::new(100_000);
        for n in 0..1000 {
            resolver.insert(key(1, n), SeriesId(n));
        }
        let mut found = Vec::new();
        let keys: Vec<_> = (0..2000).map(|n| key(1, n)).collect();
        resolver.find_all(&keys, &mut found);
        for (n, series) in found.iter().enumerate() {
            let expected = (n < 1000).then_some(SeriesId(n as u64));
            assert_eq!(*series, expected);
        }
        resolver.find_all(&[key(2, 5)], &mut found);
        assert_eq!(found, [None]);
        resolver.clear();
        resolver.find_all(&[key(1, 5)], &mut found);
        assert_eq!(found, [None]);
    }

    #[test]
    fn stays_within_its_bound() {
        let resolver = Resolver::new(4096);
        for n in 0..50_000 {
            resolver.insert(key(1, n), SeriesId(n));
            assert!(resolver.len() <= 4096 + SHARDS);
        }
        assert!(resolver.len() > 0);
    }
}
