//! Memory of a memtable's rows and their text: items handed out one after another, all given back at once.
//!
//! Nothing moves once a slab has its full length: a writer who needs a little more never waits for megabytes
//! to be copied into memory that nobody has touched yet.

/// Bytes of a slab. What is handed out at once never spans slabs; what is longer gets a slab of its own length.
const SLAB_BYTES: usize = 1 << 20;

/// Longest chunk of words, words.
pub(super) const CHUNK_WORDS_MAX: usize = Arena::<u64>::SLAB_ITEMS;

/// Most bytes an [`Arena<u8>`] can take whatever the lengths it is asked for: a slab begins when the one before has no
/// room, so that two neighbours hold a slab's length together, and slabs are numbered in 12 bits.
pub(crate) const TEXT_BYTES_MAX: usize = (1 << 31) - 2 * SLAB_BYTES;

/// Items in slabs, addressed by 32 bits: up to 4 G items.
#[derive(Debug)]
pub(super) struct Arena<T> {
    slabs: Vec<Vec<T>>,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self { slabs: Vec::new() }
    }
}

impl<T: Copy + Default> Arena<T> {
    const SLAB_ITEMS: usize = SLAB_BYTES / size_of::<T>();
    const SLAB_BITS: u32 = Self::SLAB_ITEMS.trailing_zeros();

    /// Hands out `len` items of no value; returns the address of the first.
    pub(super) fn allocate(&mut self, len: usize) -> u32 {
        assert!(len <= Self::SLAB_ITEMS, "BUG: {len} items at once");
        let (address, slab) = self.slab_for(len);
        slab.resize(slab.len() + len, T::default());
        address
    }

    /// Takes a copy of `items`; returns the address of the first.
    pub(super) fn copy(&mut self, items: &[T]) -> u32 {
        let (address, slab) = self.slab_for(items.len());
        slab.extend_from_slice(items);
        address
    }

    /// A slab at the end of which there is room for `len` items, and the address of the first of them.
    #[inline]
    fn slab_for(&mut self, len: usize) -> (u32, &mut Vec<T>) {
        // The end of a full slab has no address: what is empty needs one as well.
        let has_room = |slab: &Vec<T>| slab.len() + len.max(1) <= Self::SLAB_ITEMS;
        if !self.slabs.last().is_some_and(has_room) {
            // The first slab grows as needed, so that thousands of small tables stay small.
            let capacity = if self.slabs.is_empty() { len } else { len.max(Self::SLAB_ITEMS) };
            self.slabs.push(Vec::with_capacity(capacity));
        }
        let at = self.slabs.len() - 1;
        let slab = &mut self.slabs[at];
        let address = (at << Self::SLAB_BITS) + slab.len();
        (u32::try_from(address).expect("BUG: an arena of more than 32 bits"), slab)
    }

    /// The `len` items at `address`.
    #[inline]
    pub(super) fn items(&self, address: u32, len: usize) -> &[T] {
        let (slab, offset) = Self::split(address);
        &self.slabs[slab][offset..offset + len]
    }

    /// The `len` items at `address`, to write.
    #[inline]
    pub(super) fn items_mut(&mut self, address: u32, len: usize) -> &mut [T] {
        let (slab, offset) = Self::split(address);
        &mut self.slabs[slab][offset..offset + len]
    }

    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> usize {
        self.slabs.iter().map(|s| s.capacity() * size_of::<T>()).sum()
    }

    #[inline]
    fn split(address: u32) -> (usize, usize) {
        ((address >> Self::SLAB_BITS) as usize, address as usize & (Self::SLAB_ITEMS - 1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_copied_is_found_and_slabs_stay_few(
            lengths in prop::collection::vec(
                prop_oneof![
                    0..100_usize,
                    0..3 * SLAB_BYTES,
                    prop::sample::select(vec![0, 1, SLAB_BYTES - 1, SLAB_BYTES]),
                ],
                0..40,
            )
        ) {
            let mut arena = Arena::<u8>::default();
            let texts: Vec<Vec<u8>> =
                lengths.iter().enumerate().map(|(i, len)| vec![i as u8; *len]).collect();
            let addresses: Vec<u32> = texts.iter().map(|text| arena.copy(text)).collect();
            for (text, address) in texts.iter().zip(addresses) {
                prop_assert_eq!(arena.items(address, text.len()), text.as_slice());
            }
            let total: usize = lengths.iter().sum();
            prop_assert!(arena.slabs.len() <= 2 * total.div_ceil(SLAB_BYTES) + 1);
        }
    }

    #[test]
    fn an_empty_text_behind_a_full_slab_is_found() {
        let mut arena = Arena::<u8>::default();
        let first = arena.copy(&[]);
        let full = arena.copy(&vec![1; SLAB_BYTES]);
        let empty = arena.copy(&[]);
        assert_eq!(arena.items(first, 0), b"");
        assert_eq!(arena.items(full, SLAB_BYTES), vec![1; SLAB_BYTES]);
        assert_eq!(arena.items(empty, 0), b"");
    }

    #[test]
    fn a_slab_number_fits_for_all_text_that_is_allowed() {
        let slabs = 2 * TEXT_BYTES_MAX.div_ceil(SLAB_BYTES) + 1;
        assert!(slabs << Arena::<u8>::SLAB_BITS <= 1 << 32);
    }

    #[test]
    fn a_small_arena_takes_little() {
        let mut arena = Arena::<u64>::default();
        let address = arena.allocate(10);
        arena.items_mut(address, 10)[9] = 7;
        assert_eq!(arena.items(address, 10)[9], 7);
        assert!(arena.bytes() < 1000);
    }
}
