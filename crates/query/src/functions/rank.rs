//! Values at ranks: medians and percentiles.
//!
//! Of many values the one at a rank is found where they lie: they are counted in buckets of one width between the least and
//! the greatest, and only what is in the bucket of the rank is copied and searched.

use super::values::{Number, Value};

/// Fewer values are copied and searched at once.
const COUNTED_MIN: usize = 2048;
const BUCKET_BITS: u32 = 10;
/// Neighbouring values are counted apart: those in one bucket would wait for each other.
const TABLES: usize = 4;

/// A value at some rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Nth<T> {
    pub value: T,
    /// Its rank less the number of values that are smaller.
    pub among_equals: usize,
}

/// The value at position `rank` of the sorted ones, which come in parts; `None` if there are not so many.
pub(crate) fn nth<T: Value>(parts: &[&[T]], rank: usize) -> Option<Nth<T>> {
    let total: usize = parts.iter().map(|part| part.len()).sum();
    if rank >= total {
        return None;
    }
    let bounds = if total < COUNTED_MIN { None } else { bounds(parts) };
    let Some((least, most)) = bounds else {
        return Some(nth_of(&mut parts.concat(), rank));
    };
    let shift = (u64::BITS - (most - least).leading_zeros()).saturating_sub(BUCKET_BITS);
    let bucket_of = |value: T| ((value.key() - least) >> shift) as usize;
    let (mut bucket, mut before) = (0, 0);
    for count in counts(parts, bucket_of) {
        if before + count > rank {
            break;
        }
        before += count;
        bucket += 1;
    }
    let mut within = parts.iter().flat_map(|part| part.iter()).copied();
    if shift == 0 {
        let value = within.find(|value| bucket_of(*value) == bucket)?;
        return Some(Nth { value, among_equals: rank - before });
    }
    let mut of_bucket: Vec<T> = within.filter(|value| bucket_of(*value) == bucket).collect();
    Some(nth_of(&mut of_bucket, rank - before))
}

/// The keys of the least and the greatest value; `None` if one of the values is no number, which has no bucket.
fn bounds<T: Value>(parts: &[&[T]]) -> Option<(u64, u64)> {
    let mut some = parts.iter().filter(|part| !part.is_empty());
    some.try_fold((u64::MAX, 0), |(least, most), part| {
        let (min, max) = T::extremes(part)?;
        Some((least.min(min.key()), most.max(max.key())))
    })
}

/// How many values are in each bucket.
fn counts<T: Value>(parts: &[&[T]], bucket_of: impl Fn(T) -> usize) -> Vec<usize> {
    let mut tables = [const { [0u32; 1 << BUCKET_BITS] }; TABLES];
    for part in parts {
        let (chunks, rest) = part.as_chunks::<TABLES>();
        for chunk in chunks {
            for (table, value) in tables.iter_mut().zip(chunk) {
                table[bucket_of(*value)] += 1;
            }
        }
        rest.iter().for_each(|value| tables[0][bucket_of(*value)] += 1);
    }
    let count = |at: usize| tables.iter().map(|table| table[at] as usize).sum();
    (0..1 << BUCKET_BITS).map(count).collect()
}

fn nth_of<T: Value>(values: &mut [T], rank: usize) -> Nth<T> {
    let (below, value, _) = values.select_nth_unstable_by(rank, |a, b| a.order(*b));
    let value = *value;
    let among_equals = below.iter().filter(|other| other.order(value).is_eq()).count();
    Nth { value, among_equals }
}

/// The middle value; of an even number of values the middle between the two.
pub(crate) fn median<T: Number>(parts: &[&[T]]) -> Option<f64> {
    let total: usize = parts.iter().map(|part| part.len()).sum();
    let Nth { value: high, among_equals } = nth(parts, total / 2)?;
    if !total.is_multiple_of(2) {
        return Some(high.to_f64());
    }
    let low = if among_equals > 0 {
        high
    } else {
        let below = parts.iter().flat_map(|part| part.iter()).copied();
        below.filter(|value| value.order(high).is_lt()).max_by(|a, b| a.order(*b))?
    };
    Some(low.to_f64() + high.distance(low) / 2.0)
}

/// The position of the nearest rank among `count` sorted values; `None` where there is none.
pub(crate) fn percentile_rank(count: usize, percentage: f64) -> Option<usize> {
    let rank = (count as f64 * percentage / 100.0 + 0.5).floor() - 1.0;
    (rank >= 0.0 && rank < count as f64).then_some(rank as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn percentiles_take_the_nearest_rank() {
        for (count, percentage, rank) in [
            (10, 50.0, Some(4)),
            (10, 0.0, None),
            (10, 4.0, None),
            (10, 5.0, Some(0)),
            (10, 100.0, Some(9)),
            (10, 106.0, None),
            (5, 50.0, Some(2)),
            (1, 50.0, Some(0)),
            (0, 50.0, None),
            (3, f64::NAN, None),
            (3, -5.0, None),
        ] {
            assert_eq!(percentile_rank(count, percentage), rank, "{count} {percentage}");
        }
    }

    fn sorted<T: Value>(values: &[T]) -> Vec<T> {
        let mut sorted = values.to_vec();
        sorted.sort_by(|a, b| a.order(*b));
        sorted
    }

    fn check<T: Number + PartialEq + std::fmt::Debug>(values: &[T], parts: usize, rank: usize) {
        let (sorted, parts) = (sorted(values), values.chunks(parts).collect::<Vec<&[T]>>());
        let value = sorted[rank];
        let smaller = values.iter().filter(|other| other.order(value).is_lt()).count();
        assert_eq!(nth(&parts, rank), Some(Nth { value, among_equals: rank - smaller }));
        assert_eq!(nth(&parts, values.len()), None);
        let (low, high) = (sorted[(values.len() - 1) / 2], sorted[values.len() / 2]);
        let expected = low.to_f64() + high.distance(low) / 2.0;
        assert_eq!(median(&parts), Some(expected));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn values_at_ranks_are_those_of_the_sorted_ones(
            few in prop::collection::vec(any::<i64>(), 1..60),
            // Nothing but a few values, many that differ, and all there is with some of these far apart.
            width in prop_oneof![Just(5i64), Just(100_000), Just(i64::MAX)],
            repeats in prop_oneof![Just(1usize), Just(150)],
            parts in 1usize..700,
            rank in any::<prop::sample::Index>(),
        ) {
            let mixed = |at: usize| few[at % few.len()].wrapping_mul(at as i64 * 2 + 1) % width;
            let values: Vec<i64> = (0..few.len() * repeats).map(mixed).collect();
            let rank = rank.index(values.len());
            check(&values, parts, rank);
            let unsigned: Vec<u64> = values.iter().map(|v| v.cast_unsigned()).collect();
            check(&unsigned, parts, rank);
            let floats: Vec<f64> = values.iter().map(|v| *v as f64 / -8.0).collect();
            check(&floats, parts, rank);
        }
    }

    #[test]
    fn zeros_of_both_signs_are_equal() {
        let zeros: Vec<f64> = (0..5000).map(|at| if at % 2 == 0 { 0.0 } else { -0.0 }).collect();
        assert_eq!(nth(&[&zeros[..], &[1.0, -1.0]], 2500).unwrap().among_equals, 2499);
    }

    /// A subquery may make such values (the root of a negative number).
    #[test]
    fn what_is_no_number_is_ranked_without_a_bucket() {
        let mut values: Vec<f64> = (0..5000).map(f64::from).collect();
        values.extend([f64::NAN, -f64::NAN]);
        assert_eq!(nth(&[&values], 2500).unwrap().value, 2499.0, "one is before all numbers");
        assert!(nth(&[&values], 5001).unwrap().value.is_nan());
        let none = vec![f64::NAN; 5000];
        assert!(nth(&[&none[..], &[]], 2500).unwrap().value.is_nan());
        assert!(median(&[&none]).unwrap().is_nan());
    }
}
