//! Pages whose values are all `base + factor * something smaller`.
//!
//! Timestamps are the reason: nanoseconds on a grid of seconds have a common divisor of 10^9, and
//! without it each value would carry thirty bits of zeros in disguise.

use std::ops::Range;

use super::{Nesting, Sink, decode_page, encode_page};
use crate::{
    bitpack::BLOCK,
    encoding::{Effort, id},
    entropy::TightPart,
    error::Result,
    simd::multiversion,
    wire::{Reader, put_ivarint, put_uvarint},
};

/// Divides exactly: by a shift and a multiplication with the inverse modulo 2^64.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExactDivisor {
    twos: u32,
    inverse: u64,
    /// The largest multiple of the odd part, divided by it.
    quotient_max: u64,
}

impl ExactDivisor {
    fn new(divisor: u64) -> Self {
        let twos = divisor.trailing_zeros();
        let odd = divisor >> twos;
        // Newton's iteration doubles the number of correct low bits: 3, 6, 12, 24, 48, 96.
        let mut inverse = odd;
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        }
        Self { twos, inverse, quotient_max: u64::MAX / odd }
    }
}

multiversion! {
    /// Whether all `values - base` are multiples.
    fn divides_all / divides_all_at(values: &[u64], base: u64, divisor: ExactDivisor) -> bool {
        let low = (1u64 << divisor.twos) - 1;
        let mut bad = false;
        for &value in values {
            let value = value.wrapping_sub(base);
            let quotient = value.wrapping_mul(divisor.inverse);
            // A multiple of the odd part maps to its quotient, anything else above the maximum.
            bad |= value & low != 0;
            bad |= quotient > divisor.quotient_max;
        }
        !bad
    }
}

multiversion! {
    /// Appends `(values - base) / divisor`, which must be exact.
    fn divide_all / divide_all_at(
        values: &[u64], base: u64, divisor: ExactDivisor, out: &mut Vec<i64>,
    ) {
        out.extend(values.iter().map(|value| {
            let value = value.wrapping_sub(base) >> divisor.twos;
            value.wrapping_mul(divisor.inverse) as i64
        }));
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The greatest common divisor of all `values - base`; at least one of them is not zero.
///
/// Looks at a few values first: most columns have none, and learn it here. `divisor_min` ends the
/// search early when the divisor is too small to be of use.
pub(super) fn common_divisor(values: &[u64], base: u64, divisor_min: u64) -> u64 {
    let mut divisor = 0;
    for value in values.iter().step_by(values.len().div_ceil(16)) {
        divisor = gcd(value.wrapping_sub(base), divisor);
        if divisor != 0 && divisor < divisor_min {
            return 1;
        }
    }
    for chunk in values.chunks(BLOCK) {
        if divisor == 0 || !divides_all(chunk, base, ExactDivisor::new(divisor)) {
            for value in chunk {
                divisor = gcd(value.wrapping_sub(base), divisor);
            }
            if divisor != 0 && divisor < divisor_min {
                return 1;
            }
        }
    }
    divisor.max(1)
}

pub(super) fn encode(values: &[u64], base: u64, factor: u64, effort: Effort, out: &mut Vec<u8>) {
    let mut scaled = Vec::with_capacity(values.len());
    divide_all(values, base, ExactDivisor::new(factor), &mut scaled);
    out.push(id::INT_SCALED);
    put_ivarint(out, base as i64);
    put_uvarint(out, factor);
    encode_page(&scaled, effort, Nesting::Scaled, out);
}

multiversion! {
    /// What values were before they were divided, less a base.
    pub(super) fn multiply / multiply_at(values: &mut [u64], factor: u64, base: u64) {
        for value in values.iter_mut() {
            *value = value.wrapping_mul(factor).wrapping_add(base);
        }
    }
}

pub(super) fn decode(
    mut reader: Reader<'_>,
    count: usize,
    range: Range<usize>,
    block: &mut [u64],
    ahead: Option<TightPart<'_>>,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let base = reader.ivarint()? as u64;
    let factor = reader.uvarint()?;
    let mut scale = |values: &mut [u64]| {
        multiply(values, factor, base);
        sink(values);
    };
    decode_page(reader.rest(), count, range, Nesting::Scaled, block, ahead, &mut scale)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn finds_the_divisor(
            factor in 1u64..1 << 40,
            quotients in prop::collection::vec(0u64..1 << 20, 1..3000),
            base: u64,
        ) {
            let values: Vec<u64> =
                quotients.iter().map(|q| base.wrapping_add(q * factor)).collect();
            let expected = quotients.iter().fold(0, |g, q| gcd(q * factor, g)).max(1);
            prop_assert_eq!(common_divisor(&values, base, 1), expected);
            let mut scaled = Vec::new();
            divide_all(&values, base, ExactDivisor::new(factor), &mut scaled);
            prop_assert!(scaled.iter().zip(&quotients).all(|(s, q)| *s as u64 == *q));
        }

        #[test]
        fn divisibility_is_exact(value: u64, bits in 0u32..64, divisor in 1u64..) {
            let divisor = (divisor >> bits).max(1);
            prop_assert_eq!(
                divides_all(&[value], 0, ExactDivisor::new(divisor)), value % divisor == 0
            );
        }
    }
}
