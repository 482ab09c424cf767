//! Series in the order of the values of some tags.

use crate::TagColumn;

/// Some series, sorted by the values that they have of some tags, the first tag first, then by ordinal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesGroups {
    /// Their ordinals.
    pub series: Vec<u32>,
    /// Where those of each combination of values start, and the end.
    pub starts: Vec<u32>,
}

/// Bits of an ordinal.
const ORDINAL_BITS: u32 = u32::BITS;

impl SeriesGroups {
    /// Bytes of memory that a series may take while it is sorted.
    pub const BYTES_MAX: usize = size_of::<u128>() + 2 * size_of::<u32>();

    /// Sorts series of a table by `tags` of it.
    #[must_use]
    pub fn new(series: Vec<u32>, tags: &[&TagColumn]) -> Self {
        let bits =
            |tag: &&TagColumn| usize::BITS - tag.values.len().saturating_sub(1).leading_zeros();
        let bits: Vec<u32> = tags.iter().map(bits).collect();
        // Codes of all tags in one number: 400,000 series with ten tags take 20 ms, and 83 where one code after the other is
        // compared.
        match bits.iter().sum::<u32>() + ORDINAL_BITS {
            ..=64 => Self::packed(
                series.iter().map(|series| packed::<u64>(*series, tags, &bits)).collect(),
                |key| key >> ORDINAL_BITS,
                |key| key as u32,
            ),
            65..=128 => Self::packed(
                series.iter().map(|series| packed::<u128>(*series, tags, &bits)).collect(),
                |key| key >> ORDINAL_BITS,
                |key| key as u32,
            ),
            _ => Self::compared(series, tags),
        }
    }

    fn packed<K: Ord + Copy>(
        mut keys: Vec<K>,
        codes_of: impl Fn(K) -> K,
        ordinal_of: impl Fn(K) -> u32,
    ) -> Self {
        keys.sort_unstable();
        let is_new = |at: usize| codes_of(keys[at - 1]) != codes_of(keys[at]);
        let starts = starts_of(keys.len(), is_new);
        Self { series: keys.into_iter().map(ordinal_of).collect(), starts }
    }

    fn compared(mut series: Vec<u32>, tags: &[&TagColumn]) -> Self {
        let codes = |series: u32| tags.iter().map(move |tag| tag.codes[series as usize]);
        series.sort_unstable_by(|a, b| codes(*a).cmp(codes(*b)).then(a.cmp(b)));
        let starts = starts_of(series.len(), |at| codes(series[at - 1]).ne(codes(series[at])));
        Self { series, starts }
    }
}

/// The codes of a series, the first tag's highest, and then its ordinal.
fn packed<K>(series: u32, tags: &[&TagColumn], bits: &[u32]) -> K
where
    K: From<u32> + std::ops::Shl<u32, Output = K> + std::ops::BitOr<Output = K>,
{
    let codes = tags.iter().zip(bits).map(|(tag, bits)| (tag.codes[series as usize], *bits));
    let codes = codes.chain([(series, ORDINAL_BITS)]);
    codes.fold(K::from(0), |key, (code, bits)| (key << bits) | K::from(code))
}

fn starts_of(len: usize, is_new: impl Fn(usize) -> bool) -> Vec<u32> {
    let inner = (1..len).filter(|at| is_new(*at)).map(|at| at as u32);
    let mut starts = vec![0];
    starts.extend(inner);
    starts.extend((len > 0).then_some(len as u32));
    starts
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn series_are_in_the_order_of_their_values(
            codes in prop::collection::vec(prop::array::uniform3(0u32..5), 0..40),
            // How many values each tag has, as a power of two: together they fit 64 bits, 128, or neither.
            bits in prop::array::uniform3(prop::sample::select(vec![3u32, 10, 19])),
            repeats in prop::sample::select(vec![1usize, 3]),
        ) {
            let tag = |at: usize| {
                let values = (0..1 << bits[at]).map(|_| "").collect();
                let codes = codes.iter().map(|codes| codes[at]).collect();
                TagColumn { key: "k".into(), codes, values: Arc::new(values) }
            };
            let tags: Vec<TagColumn> = (0..3).map(tag).collect();
            let tags: Vec<&TagColumn> = (0..repeats).flat_map(|_| &tags).collect();
            let series: Vec<u32> = (0..codes.len() as u32).collect();
            let groups = SeriesGroups::new(series.clone(), &tags);
            let mut sorted = series;
            sorted.sort_by_key(|series| codes[*series as usize]);
            let of = |at: usize| codes[sorted[at] as usize];
            let mut starts: Vec<u32> =
                (0..sorted.len()).filter(|at| *at == 0 || of(at - 1) != of(*at)).map(|at| at as u32).collect();
            starts.push(sorted.len() as u32);
            if sorted.is_empty() {
                starts = vec![0];
            }
            prop_assert_eq!(groups, SeriesGroups { series: sorted, starts });
        }
    }
}
