//! Seeded randomness whose output never changes: the same seed gives the same bytes on every machine and
//! with every version of every library, because recorded answers depend on generated data.
//!
//! xoshiro256++ for draws, the splitmix64 finaliser for stateless hashing (a value that belongs to host 17
//! must not depend on how many draws came before it), a table of normal quantiles for random walks.

use std::sync::LazyLock;

const NORMAL_BITS: u32 = 12;
const NORMAL_LEN: usize = 1 << NORMAL_BITS;
/// Draws of `NORMAL_BITS` that one 64-bit word holds.
const NORMALS_PER_WORD: u32 = 64 / NORMAL_BITS;

static NORMALS: LazyLock<Box<[f32; NORMAL_LEN]>> = LazyLock::new(normal_table);

/// Mixes a seed and an index into 64 well-distributed bits.
#[must_use]
pub fn hash(seed: u64, index: u64) -> u64 {
    let mut z =
        seed ^ index.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A stream of pseudo-random numbers.
#[derive(Debug, Clone)]
pub struct Random {
    state: [u64; 4],
    normals: &'static [f32; NORMAL_LEN],
    normal_word: u64,
    normals_left: u32,
}

impl Random {
    /// A stream that depends on the seed only.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut state = [0; 4];
        for (index, word) in state.iter_mut().enumerate() {
            *word = hash(seed, index as u64);
        }
        Self { state, normals: &NORMALS, normal_word: 0, normals_left: 0 }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in `0..bound` (0 when `bound` is 0). The bias is below 2^-32 for every bound used here.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with the given probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Normal with mean 0 and deviation 1, one of 4096 levels.
    pub fn normal(&mut self) -> f64 {
        if self.normals_left == 0 {
            self.normal_word = self.bits();
            self.normals_left = NORMALS_PER_WORD;
        }
        let index = (self.normal_word as usize) & (NORMAL_LEN - 1);
        self.normal_word >>= NORMAL_BITS;
        self.normals_left -= 1;
        f64::from(self.normals[index])
    }

    /// One element of a non-empty list.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }
}

/// Quantiles at the midpoints of equal slices of probability, found by bisection of the distribution
/// function and rounded to 2^-20 so that differences in the last digit of `exp` do not show.
fn normal_table() -> Box<[f32; NORMAL_LEN]> {
    let mut table = Box::new([0.0f32; NORMAL_LEN]);
    for index in 0..NORMAL_LEN {
        let probability = (index as f64 + 0.5) / NORMAL_LEN as f64;
        let (mut low, mut high) = (-6.0f64, 6.0f64);
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            if distribution(middle) < probability {
                low = middle;
            } else {
                high = middle;
            }
        }
        table[index] = ((low * f64::from(1u32 << 20)).round() / f64::from(1u32 << 20)) as f32;
    }
    table
}

/// Normal distribution function, as the power series around 0 (converges quickly for |x| <= 6).
fn distribution(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    let mut denominator = 1.0;
    for _ in 0..100 {
        denominator += 2.0;
        term *= x * x / denominator;
        sum += term;
    }
    0.5 + sum * (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_pinned() {
        let mut random = Random::new(42);
        let drawn: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(
            drawn,
            [15_021_278_609_987_233_951, 4_703_618_246_441_916_190, 10_940_436_064_522_152_425]
        );
    }

    #[test]
    fn normals_have_mean_zero_and_deviation_one() {
        let mut random = Random::new(1);
        let drawn: Vec<f64> = (0..200_000).map(|_| random.normal()).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        assert!(mean.abs() < 0.01, "{mean}");
        assert!((variance - 1.0).abs() < 0.02, "{variance}");
    }

    #[test]
    fn below_stays_below_and_reaches_every_value() {
        let mut random = Random::new(7);
        let mut seen = [false; 10];
        for _ in 0..1000 {
            seen[random.below(10) as usize] = true;
        }
        assert_eq!(seen, [true; 10]);
        assert_eq!(random.below(0), 0);
    }
}
