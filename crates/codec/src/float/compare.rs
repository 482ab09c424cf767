//! Which floats of a page stand to a scalar as asked, found in the form they are packed in.
//!
//! Quotients by a power of ten ascend with the integers that are divided, so that a comparison of them is one of integers.

use super::open;
use crate::{
    COMPARED_ROWS_MAX, ComparedBits, PageComparison,
    error::Result,
    int::compare::{Numbers, compare, compare_pair, first_bits},
    kernels::Comparison,
    simd::SimdLevel,
};

/// Integers that are divided exactly as an encoder would: others are of no page it writes.
const INTEGERS_MAX: i64 = 1 << 51;
static INTEGERS: Numbers = Numbers {
    of: |bits| bits.cast_signed() as i128,
    min: -(INTEGERS_MAX as i128),
    max: INTEGERS_MAX as i128,
};

/// Which values of a page of `count` floats stand to `scalar` as asked; bits behind them are zero. `None`: pages of this
/// encoding, or so many values, have to be decoded to be compared, or with such a scalar.
pub fn compare_page_f64(
    bytes: &[u8],
    count: usize,
    comparison: Comparison,
    scalar: f64,
) -> Result<Option<ComparedBits>> {
    let Some((integers, Some(power))) = open(bytes) else { return Ok(None) };
    match of_integers(comparison, scalar, power) {
        Some(OfIntegers::Each(comparison, integer)) => {
            let page = (integers, count);
            compare(SimdLevel::detect(), page, comparison, integer.into(), &INTEGERS)
        }
        Some(OfIntegers::All(hold)) if (1..=COMPARED_ROWS_MAX).contains(&count) => {
            let bits = [if hold { u64::MAX } else { 0 }; COMPARED_ROWS_MAX / 64];
            Ok(Some(first_bits(bits, count)))
        }
        _ => Ok(None),
    }
}

impl<'a> PageComparison<'a> {
    /// The same for a page of floats; `None` as well if no integer is to others as the scalar is to quotients.
    #[must_use]
    pub fn of_f64(
        bytes: &'a [u8],
        count: usize,
        comparison: Comparison,
        scalar: f64,
    ) -> Option<Self> {
        let (integers, power) = open(bytes)?;
        match of_integers(comparison, scalar, power?)? {
            OfIntegers::Each(comparison, integer) => {
                Self::of(integers, count, comparison, integer.into(), &INTEGERS)
            }
            // All are so to one that is behind them.
            OfIntegers::All(hold) => {
                let comparison = if hold { Comparison::Less } else { Comparison::Greater };
                Self::of(integers, count, comparison, i128::from(u64::MAX), &INTEGERS)
            }
        }
    }
}

/// Which values of a page of `count` floats stand as asked to those of another in the same places, as [`compare_page_f64`]
/// would say.
pub fn compare_pages_f64(
    a: &[u8],
    b: &[u8],
    count: usize,
    comparison: Comparison,
) -> Result<Option<ComparedBits>> {
    match (open(a), open(b)) {
        (Some((a, Some(of_a))), Some((b, Some(of_b)))) if of_a == of_b => {
            compare_pair(SimdLevel::detect(), (a, b, count), comparison, &INTEGERS)
        }
        _ => Ok(None),
    }
}

/// What a comparison of quotients is of the integers that are divided.
#[derive(Clone, Copy, Debug, PartialEq)]
enum OfIntegers {
    Each(Comparison, i64),
    /// Whether it holds for each of them.
    All(bool),
}

/// `None`: there is no such comparison, as with a scalar that is no number.
fn of_integers(comparison: Comparison, scalar: f64, power: f64) -> Option<OfIntegers> {
    let about = (scalar * power).floor();
    if about.is_nan() || about.abs() >= INTEGERS_MAX as f64 {
        return None;
    }
    let quotient = |integer: i64| integer as f64 / power;
    // The first whose quotient is not below the scalar; that product was rounded.
    let near = about as i64 - 2..=about as i64 + 3;
    let first = near.clone().find(|integer| quotient(*integer) >= scalar)?;
    if first == *near.start() || quotient(first + 1) == scalar {
        return None;
    }
    if quotient(first) == scalar {
        return Some(OfIntegers::Each(comparison, first));
    }
    Some(match comparison {
        Comparison::Equal => OfIntegers::All(false),
        Comparison::NotEqual => OfIntegers::All(true),
        Comparison::Less | Comparison::LessOrEqual => OfIntegers::Each(Comparison::Less, first),
        Comparison::Greater | Comparison::GreaterOrEqual => {
            OfIntegers::Each(Comparison::GreaterOrEqual, first)
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Effort, encode_f64};

    fn page(values: &[f64]) -> Vec<u8> {
        let mut page = Vec::new();
        encode_f64(values, Effort::Fast, &mut page);
        page
    }

    fn bits(rows: impl Iterator<Item = bool>) -> ComparedBits {
        let mut bits = ComparedBits::default();
        rows.enumerate().for_each(|(row, holds)| bits[row / 64] |= u64::from(holds) << (row % 64));
        bits
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn rows_are_those_of_the_definition(
            digits in 0i32..12,
            base in prop_oneof![Just(0i64), -100_000i64..100_000, any::<i64>().prop_map(|n| n >> 13)],
            steps in prop::collection::vec((-300i64..300, -40i64..40), 1..513),
            comparison in prop::sample::select(Comparison::ALL.to_vec()),
            // One of the values, about one, or any.
            scalar in (any::<prop::sample::Index>(), -2i64..3, -2i64..3, prop::option::of(any::<f64>())),
        ) {
            let float = |integer: i64| integer as f64 / 10f64.powi(digits);
            let a: Vec<f64> = steps.iter().map(|(step, _)| float(base + step)).collect();
            let b: Vec<f64> = steps.iter().map(|(step, other)| float(base + step + other / 20)).collect();
            let (at, integers, ulps, any) = scalar;
            let (of, _) = steps[at.index(steps.len())];
            let about = float(base + of + integers);
            // Next to zero are the smallest numbers of either sign, which its bits and one more or less are not.
            let next = if ulps < 0 { f64::next_down } else { f64::next_up };
            let about = (0..ulps.abs()).fold(about, |about, _| next(about));
            let scalar = any.unwrap_or(about);
            let holds = |left: &f64, right: &f64| left.partial_cmp(right).is_some_and(|order| comparison.holds(order));
            let found = compare_page_f64(&page(&a), a.len(), comparison, scalar).unwrap();
            if let Some(found) = found {
                prop_assert_eq!(found, bits(a.iter().map(|value| holds(value, &scalar))));
            }
            // What it is made for.
            let is_usual = a.len() > 8 && any.is_none() && digits < 4 && base.abs() < 1 << 40;
            prop_assert!(found.is_some() || !is_usual, "{} of {:?}", scalar, &a[..a.len().min(9)]);
            if let Some(mut page) = PageComparison::of_f64(&page(&a), a.len(), comparison, scalar) {
                let found = page.compare(0..a.len()).unwrap();
                prop_assert_eq!(found, bits(a.iter().map(|value| holds(value, &scalar))));
            }
            if let Some(found) = compare_pages_f64(&page(&a), &page(&b), a.len(), comparison).unwrap() {
                prop_assert_eq!(found, bits(a.iter().zip(&b).map(|(a, b)| holds(a, b))));
            }
        }
    }

    #[test]
    fn scalars_between_two_values_and_those_that_are_none() {
        let values: Vec<f64> = (0..100).map(|at| f64::from(at * 37 % 100) / 10.0).collect();
        let count = |comparison, scalar: f64| {
            let bits = compare_page_f64(&page(&values), 100, comparison, scalar).unwrap();
            bits.map(|bits| bits.iter().map(|word| word.count_ones()).sum::<u32>())
        };
        assert_eq!(count(Comparison::Less, 0.25), Some(3));
        assert_eq!(count(Comparison::LessOrEqual, 0.3), Some(4));
        assert_eq!(count(Comparison::GreaterOrEqual, 0.25), Some(97));
        assert_eq!(count(Comparison::Equal, 0.25), Some(0));
        assert_eq!(count(Comparison::NotEqual, 0.25), Some(100));
        assert_eq!(count(Comparison::Equal, -0.0), Some(1));
        assert_eq!(count(Comparison::Less, f64::NAN), None);
        assert_eq!(count(Comparison::Less, f64::INFINITY), None);
        let strays = [1.0, f64::NAN, -0.0];
        assert_eq!(compare_page_f64(&page(&strays), 3, Comparison::Less, 2.0), Ok(None));
    }
}
