//! What all times are multiples of: rows come every so many seconds, so that few bits tell their times apart.
//!
//! Whether a number is a multiple of another, and the quotient if so, takes a multiplication by the inverse of
//! its odd part modulo 2^64, not a division (H. S. Warren, Hacker's Delight, section 10-17).

/// A divisor of some numbers, mostly the greatest there is.
#[derive(Clone, Copy, Debug)]
pub(in crate::exec) struct Step {
    zeros: u32,
    /// Of what is left of it without the `zeros` at its end.
    inverse: u64,
    /// The greatest quotient there can be.
    quotient_max: u64,
}

impl Step {
    /// The greatest common divisor of numbers; one, if all are zero.
    pub(in crate::exec) fn of(numbers: impl Iterator<Item = u64>) -> Self {
        let (mut divisor, mut step) = (0, Self::new(1));
        for number in numbers {
            if divisor == 0 || step.quotient(number).is_none() {
                divisor = gcd(divisor, number);
                step = Self::new(divisor.max(1));
            }
            if divisor == 1 {
                break;
            }
        }
        step
    }

    fn new(divisor: u64) -> Self {
        let zeros = divisor.trailing_zeros();
        let odd = divisor >> zeros;
        // Newton's iteration: right in three bits at first, in twice as many each time.
        let inverse = (0..5).fold(odd, |inverse, _| {
            inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)))
        });
        Self { zeros, inverse, quotient_max: u64::MAX / divisor }
    }

    /// How many times the step a number is, if that is whole.
    #[inline]
    pub(in crate::exec) fn quotient(self, number: u64) -> Option<u64> {
        let quotient = number.wrapping_mul(self.inverse).rotate_right(self.zeros);
        (quotient <= self.quotient_max).then_some(quotient)
    }

    /// The same of a number that is known to be a multiple.
    #[inline]
    pub(in crate::exec) fn exact(self, number: u64) -> u64 {
        number.wrapping_mul(self.inverse) >> self.zeros
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quotients_are_those_of_a_division(
            divisor in prop_oneof![1u64..1000, (0u32..64).prop_map(|bits| 1 << bits), 1u64..],
            quotient: u64,
            number: u64,
        ) {
            let step = Step::new(divisor);
            let multiple = quotient % (u64::MAX / divisor).max(1) * divisor;
            for number in [number, multiple, multiple.wrapping_add(1), 0, u64::MAX] {
                let expected = number.is_multiple_of(divisor).then(|| number / divisor);
                prop_assert_eq!(step.quotient(number), expected);
                expected.into_iter().for_each(|quotient| assert_eq!(step.exact(number), quotient));
            }
        }

        #[test]
        fn all_numbers_are_multiples(
            divisor in 1u64..1 << 40, factors in prop::collection::vec(0u64..1 << 20, 0..40),
        ) {
            let numbers = factors.iter().map(|factor| factor * divisor);
            let step = Step::of(numbers.clone());
            let greatest = numbers.clone().fold(0, gcd);
            for number in numbers {
                prop_assert_eq!(step.quotient(number), Some(number / greatest.max(1)));
            }
        }
    }
}
