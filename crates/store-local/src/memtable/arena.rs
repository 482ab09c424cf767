//! Memory of a memtable's rows: words handed out one after another, all given back at once.

/// Words a slab holds: 1 MiB. A chunk never spans slabs.
const SLAB_WORDS: usize = 1 << SLAB_BITS;
const SLAB_BITS: u32 = 17;

/// Longest chunk, words.
pub(super) const CHUNK_WORDS_MAX: usize = SLAB_WORDS;

/// Words in slabs, addressed by 32 bits: up to 32 GiB.
#[derive(Debug, Default)]
pub(super) struct Arena {
    slabs: Vec<Vec<u64>>,
}

impl Arena {
    /// Hands out `words` zeroed words; returns the address of the first.
    pub(super) fn allocate(&mut self, words: usize) -> u32 {
        assert!(words <= CHUNK_WORDS_MAX, "BUG: a chunk of {words} words");
        let fits = self.slabs.last().is_some_and(|slab| slab.len() + words <= SLAB_WORDS);
        if !fits {
            // The first slab grows as needed, so that thousands of small tables stay small.
            let capacity = if self.slabs.is_empty() { 0 } else { SLAB_WORDS };
            self.slabs.push(Vec::with_capacity(capacity));
        }
        let at = self.slabs.len() - 1;
        let slab = &mut self.slabs[at];
        let offset = slab.len();
        slab.resize(offset + words, 0);
        let address = (at << SLAB_BITS) + offset;
        u32::try_from(address).expect("BUG: a memtable passed 32 GiB")
    }

    /// The `len` words at `address`.
    #[inline]
    pub(super) fn words(&self, address: u32, len: usize) -> &[u64] {
        let (slab, offset) = split(address);
        &self.slabs[slab][offset..offset + len]
    }

    /// The `len` words at `address`, to write.
    #[inline]
    pub(super) fn words_mut(&mut self, address: u32, len: usize) -> &mut [u64] {
        let (slab, offset) = split(address);
        &mut self.slabs[slab][offset..offset + len]
    }

    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> usize {
        self.slabs.iter().map(|s| s.capacity() * 8).sum()
    }
}

#[inline]
fn split(address: u32) -> (usize, usize) {
    ((address >> SLAB_BITS) as usize, address as usize & (SLAB_WORDS - 1))
}
