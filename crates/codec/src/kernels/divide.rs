//! Which of even steps each number lies in.

use crate::simd::multiversion;

/// The longest reach of numbers whose steps [`steps_of_i64`] finds.
pub const STEPS_REACH_MAX: u64 = 1 << 62;

/// How far numbers are clamped to, so that they are integers again without a look: far beyond every step.
const CLAMPED: f64 = (1u64 << 62) as f64;

multiversion! {
    /// Appends for each value how many whole steps of `step` it lies behind `start`.
    ///
    /// Exact for values at or behind `start`, less than [`STEPS_REACH_MAX`] and less than 2^32 steps; for others the number
    /// is unspecified.
    ///
    /// # Panics
    /// Unless `step` is positive.
    pub fn steps_of_i64 / steps_of_i64_at(
        values: &[i64], start: i64, step: i64, out: &mut Vec<u32>,
    ) {
        assert!(step > 0, "BUG: a step of {step}");
        let reciprocal = 1.0 / step as f64;
        let before = out.len();
        out.resize(before + values.len(), 0);
        for (out, value) in out[before..].iter_mut().zip(values) {
            let behind = value.wrapping_sub(start);
            // Of a quotient below 2^32 three roundings of 53 bits change the whole part by one at most.
            let near = (behind as f64 * reciprocal).clamp(-CLAMPED, CLAMPED);
            // SAFETY: `near` is no NaN, since the reciprocal is positive and finite, and lies between the clamps, which an
            // `i64` holds.
            #[allow(unsafe_code)]
            let near = unsafe { near.to_int_unchecked::<i64>() };
            let rest = behind.wrapping_sub(near.wrapping_mul(step));
            *out = near.wrapping_sub(i64::from(rest < 0)).wrapping_add(i64::from(rest >= step)) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simd::SimdLevel;

    proptest! {
        #[test]
        fn steps_are_quotients(
            start in any::<i64>(),
            step in prop_oneof![1i64..1 << 62, 1i64..1000, Just(60_000_000_000), Just(1)],
            places in prop::collection::vec((0u64..1 << 32, -1i64..2, any::<u64>()), 0..80),
        ) {
            let reach = STEPS_REACH_MAX.min((step as u64).saturating_mul(1 << 32));
            let behind = |(count, beside, any): &(u64, i64, u64)| {
                // At the edge of a step, or anywhere.
                let at_edge = (step as u64).saturating_mul(*count).wrapping_add_signed(*beside);
                if any % 2 == 0 { at_edge % reach } else { any % reach }
            };
            let behind: Vec<u64> = places.iter().map(behind).collect();
            let values: Vec<i64> = behind.iter().map(|b| start.wrapping_add_unsigned(*b)).collect();
            let expected: Vec<u32> = behind.iter().map(|b| (b / step as u64) as u32).collect();
            for level in SimdLevel::available() {
                let mut found = vec![7];
                steps_of_i64_at(level, &values, start, step, &mut found);
                prop_assert_eq!(&found[1..], &expected, "{:?}", level);
            }
        }
    }
}
