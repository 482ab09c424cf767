//! Random numbers that are the same for ever: a run must be reproducible with its seed years later.

/// SplitMix64.
#[derive(Clone, Debug)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is above 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        // The high half of the product: evenly spread but for 1 in 2^64 / bound.
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    pub(super) fn coin(&mut self) -> bool {
        self.next() >> 63 == 1
    }
}
