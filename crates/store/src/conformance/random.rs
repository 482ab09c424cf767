//! Runs a list of operations, and the generator of numbers behind such lists.

use super::apply::Pair;
use super::operation::Operation;
use super::{Factory, guard};

/// Does `operations` to a new store and says what went wrong, panics included.
pub(super) fn run(factory: Factory<'_>, operations: &[Operation]) -> Result<(), String> {
    guard(|| {
        let mut pair = Pair::new(factory());
        for operation in operations {
            pair.apply(operation)?;
        }
        Ok(())
    })
}

/// SplitMix64: a few lines, and the same numbers everywhere for ever.
pub(super) struct Random {
    state: u64,
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is small and not 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}
