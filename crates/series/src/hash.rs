//! The hash that stands for a series key in the index.
//!
//! 96 bits of seeded XXH3. Two of a billion series collide with a chance below 1e-11, and the
//! seed is drawn per store, so nobody outside can look for a collision. The hash is therefore
//! taken as the key's identity: a lookup compares no text. It is written to disk; its input and
//! seed are part of the format (docs/formats/series-index.md).

use std::cell::RefCell;

use model::{DatabaseId, SeriesKey};

/// Identity of one series key of one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct KeyHash {
    /// Orders hashes first; picks the bucket.
    pub(crate) high: u64,
    /// Low bits.
    pub(crate) low: u32,
}

impl KeyHash {
    pub(crate) fn of(seed: u64, database: DatabaseId, key: &SeriesKey) -> Self {
        let tags = key.tags.iter().map(|(name, value)| (&**name, &**value));
        Self::of_parts(seed, database, &key.measurement, tags)
    }

    /// The hash of a key that has only this tag: stands for the tag in filters.
    pub(crate) fn of_term(
        seed: u64,
        database: DatabaseId,
        measurement: &str,
        tag: (&str, &str),
    ) -> Self {
        Self::of_parts(seed, database, measurement, std::iter::once(tag))
    }

    fn of_parts<'a>(
        seed: u64,
        database: DatabaseId,
        measurement: &str,
        tags: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        thread_local! {
            static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        SCRATCH.with_borrow_mut(|bytes| {
            bytes.clear();
            bytes.extend_from_slice(&database.0.to_le_bytes());
            put(bytes, measurement);
            for (name, value) in tags {
                put(bytes, name);
                put(bytes, value);
            }
            let hash = xxhash_rust::xxh3::xxh3_128_with_seed(bytes, seed);
            Self { high: (hash >> 64) as u64, low: hash as u32 }
        })
    }
}

fn put(bytes: &mut Vec<u8>, text: &str) {
    let len = u32::try_from(text.len()).expect("BUG: a series key is shorter than 64 KiB");
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_part_of_the_format() {
        let key = SeriesKey::parse(b"cpu,host=a,region=b").unwrap();
        let hash = KeyHash::of(7, DatabaseId(1), &key);
        assert_eq!(
            (hash.high, hash.low),
            (0x59bc9421873e4935, 0xb09bba34),
            "stored hashes depend on this value: changing it needs a new format version"
        );
        assert_ne!(hash, KeyHash::of(8, DatabaseId(1), &key));
        assert_ne!(hash, KeyHash::of(7, DatabaseId(2), &key));
    }
}
