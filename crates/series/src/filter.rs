//! A split-block Bloom filter over key hashes: says "surely not here" without reading the disk.
//!
//! Each key sets eight bits in one block of 32 bytes, so a probe costs one cache miss.

use crate::hash::KeyHash;

const BITS_PER_KEY: u64 = 12;
const BLOCK_WORDS: usize = 8;
/// Bytes of one block.
pub(crate) const BLOCK_BYTES: usize = BLOCK_WORDS * 4;

/// Odd multipliers that pick one bit in each word of a block. Part of the format.
const SALTS: [u32; BLOCK_WORDS] = [
    0x9e37_79b1,
    0x85eb_ca77,
    0xc2b2_ae3d,
    0x27d4_eb2f,
    0x1656_67b1,
    0xd3a2_646d,
    0xfd70_46c5,
    0xb55a_4f09,
];

type Block = [u32; BLOCK_WORDS];

#[derive(Debug)]
pub(crate) struct Filter {
    blocks: Vec<Block>,
}

impl Filter {
    /// An empty filter for up to about `keys` keys.
    pub(crate) fn with_capacity(keys: u64) -> Self {
        let blocks = (keys * BITS_PER_KEY).div_ceil(BLOCK_BYTES as u64 * 8).max(1);
        Self { blocks: vec![[0; BLOCK_WORDS]; usize::try_from(blocks).expect("BUG: huge filter")] }
    }

    pub(crate) fn insert(&mut self, hash: KeyHash) {
        let at = self.block_of(hash);
        for (word, bit) in self.blocks[at].iter_mut().zip(bits(hash.low)) {
            *word |= bit;
        }
    }

    #[inline]
    pub(crate) fn may_contain(&self, hash: KeyHash) -> bool {
        let block = &self.blocks[self.block_of(hash)];
        let mut missing = 0;
        for (word, bit) in block.iter().zip(bits(hash.low)) {
            missing |= !word & bit;
        }
        missing == 0
    }

    pub(crate) fn bytes(&self) -> usize {
        self.blocks.len() * BLOCK_BYTES
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        self.blocks.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// `None` if `bytes` are no whole number of blocks, at least one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() || !bytes.len().is_multiple_of(BLOCK_BYTES) {
            return None;
        }
        let word = |b: &[u8]| u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        let block = |b: &[u8]| std::array::from_fn(|i| word(&b[i * 4..]));
        Some(Self { blocks: bytes.chunks_exact(BLOCK_BYTES).map(block).collect() })
    }

    fn block_of(&self, hash: KeyHash) -> usize {
        ((u128::from(hash.high) * self.blocks.len() as u128) >> 64) as usize
    }
}

fn bits(low: u32) -> Block {
    SALTS.map(|salt| 1 << (low.wrapping_mul(salt) >> 27))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(n: u64) -> KeyHash {
        let mixed = xxhash_rust::xxh3::xxh3_128_with_seed(&n.to_le_bytes(), 3);
        KeyHash { high: (mixed >> 64) as u64, low: mixed as u32 }
    }

    #[test]
    fn never_misses_and_seldom_errs() {
        let mut filter = Filter::with_capacity(20_000);
        (0..20_000).for_each(|n| filter.insert(hash(n)));
        let filter = Filter::decode(&filter.encode()).unwrap();
        assert!((0..20_000).all(|n| filter.may_contain(hash(n))));
        let wrong = (20_000..120_000).filter(|n| filter.may_contain(hash(*n))).count();
        assert!(wrong < 1_000, "{wrong} of 100000 false positives");
        assert!(Filter::decode(&[]).is_none());
        assert!(Filter::decode(&[0; 33]).is_none());
    }
}
